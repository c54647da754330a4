//! t
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let mut names = tidegate_bend::syntax::Interner::new();
    match tidegate_bend::parser::parse(&text, 0, &mut names) {
        Ok(t) => print!("{}", t.print(&names)),
        Err(e) => { let mut s = tidegate_bend::diagnostic::Sources::default(); s.add(&path, text); println!("{}", e.render(&s)) }
    }
}
