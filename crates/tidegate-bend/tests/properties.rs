//! Random text and random trees: nothing panics, nothing hangs, and a printed tree reads back.
//!
//! The seeds are fixed, so a failure here is a failure everywhere. `fuzz/` looks further.

use std::time::{Duration, Instant};

use tidegate_bend::syntax::{Interner, Tree};
use tidegate_bend::{check_text, parser, Options};

/// A linear congruential generator: the tests need variety, not quality.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

const TOKENS: [&str; 70] = [
    "def ",
    "type ",
    "law ",
    "match ",
    "case ",
    "do ",
    "return ",
    "for ",
    "exs ",
    "where ",
    " is ",
    "import ",
    "Type",
    "Data",
    "Kind",
    "Quant",
    "@unsafe\n",
    "f",
    "x",
    "M.y",
    "U32",
    "List",
    "Some",
    "None{}",
    "IO",
    "Nat",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    ",",
    ";",
    ":",
    "=",
    "->",
    "=>",
    "<-",
    "==",
    "!=",
    "<>",
    "++",
    "<&>",
    "&&",
    "||",
    "&1",
    "&",
    "|",
    "+",
    "-",
    "*",
    "/",
    " % ",
    "%",
    "@",
    "~",
    "?",
    "!",
    "1n+",
    "3n",
    "42",
    "1.5",
    "'c'",
    "\"s\"",
    "\n",
    "\n  ",
    " ",
];

/// Text that is mostly wrong.
fn soup(random: &mut Random) -> String {
    let mut text = String::from("import Base\n\ndef f(x: U32) -> U32:\n  ");
    for _ in 0..random.below(60) {
        text.push_str(random.pick(&TOKENS));
        if random.below(3) == 0 {
            text.push(' ');
        }
    }
    text
}

/// A term of the grammar.
fn term(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return random
            .pick(&[
                "x", "y", "3", "2n", "1.5", "'c'", "\"s\\n\"", "&1", "Type", "Data", "{==}", "?hole", "U32.add",
                "Unit{}", "[]",
            ])
            .to_owned();
    }
    let mut sub = || term(random, depth - 1);
    let (a, b, c) = (sub(), sub(), sub());
    let operator = random.pick(&[
        "->", "&", "|", "||", "&&", "<=", "<>", "++", "<&>", ".|.", ".^.", ".&.", "<<", ">>", "+", "-", "*", "/", "%",
    ]);
    // Half of the matches have their cases further right the deeper they are nested; the cases of the others stand
    // far left, where they may be those of a match around them.
    let column = random.below(2) * 20 * (4 - depth) + random.below(8);
    let indent = " ".repeat(column);
    match random.below(21) {
        0 => format!("f({a}, {b})"),
        1 => format!("(x => {a})"),
        2 => format!("({a} {operator} {b} : U32)"),
        3 => format!("({a}, {b}, {c})"),
        4 => format!("[{a}, {b}]"),
        5 => format!("K{{{a}, {b}}}"),
        6 => format!("{{{a} : {b}}}"),
        7 => format!("{{{a} == {b} : {c}}}"),
        8 => format!("{{{a} != {b} : {c}}}"),
        9 => format!("(@-x: U32 -> {a})"),
        10 => format!("(&x: U32 -> {a})"),
        11 => format!("T<({a}), {b}>"),
        12 => format!("f!(~({a}), {b})"),
        13 => format!("[({a}) : U32 * 8n]"),
        14 => format!("2n+({a})"),
        15 => format!("(x)[{a}]"),
        16 => format!("(%e @ p : {a}; {b})"),
        17 => format!("(x = {a}; +y : U32 = {b}; p q = {c} z; {a})"),
        18 => format!(
            "(match x y:\n{indent}case K{{a, +b}} 2n+c: {a}\n{indent}case h <> (p, q) _: {b}\n{indent}case [a, 'c'] \"s\": {c})"
        ),
        19 => format!("f(m => match m:\n{indent}case Some{{x}}: {a}\n{indent}case None{{}}: {b}, {c})"),
        _ => format!("(do M<&1, U32>:\n    x : U32 <- {a}; y : U32 = {b}; Unit <- {c}; {a}; return {b})"),
    }
}

fn program(random: &mut Random) -> String {
    let depth = random.below(4);
    let (a, b, c) = (term(random, depth), term(random, depth), term(random, depth));
    format!(
        "import Base\nimport ./m.bend as M\n\ntype T<a, -A: Kind(a)> is Kind(a):\n  K{{x: A, +y: U32}}\n\n\
         law l:\n  for ~x: U32\n  exs y: U32 where {{x == y : U32}}\n  ({a})\n\n\
         @unsafe\ndef f?(a, -A: Type, +x: U32, ~g: U32 -> U32) -> ({b}):\n  {c}\n\ndef h() -> IO(U32): import \"h.c\"\n"
    )
}

/// The tree without the places of its parts: two texts of one tree differ in those only.
fn shape(tree: &Tree) -> String {
    let text = format!("{tree:?}");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("Span {") {
        out.push_str(&rest[..at]);
        let end = rest[at..].find('}').map_or(rest.len(), |end| at + end + 1);
        rest = &rest[end..];
    }
    out + rest
}

/// Prints what parses and parses it again.
fn reads_back(text: &str) -> bool {
    let mut names = Interner::new();
    let Ok(tree) = parser::parse(text, 0, &mut names) else {
        return false;
    };
    let printed = tree.print(&names);
    match parser::parse(&printed, 0, &mut names) {
        Ok(again) => assert_eq!(shape(&tree), shape(&again), "{text}\n--- printed:\n{printed}"),
        Err(error) => panic!("{error:?}\n--- of:\n{text}\n--- printed:\n{printed}"),
    }
    assert_eq!(printed, parser::parse(&printed, 0, &mut names).expect("it parsed").print(&names));
    true
}

#[test]
fn printed_trees_read_back() {
    let mut random = Random(1);
    let parsed = (0..2_000).filter(|_| reads_back(&program(&mut random))).count();
    // The rest are cut short by a statement or an argument that ends where another construct goes on.
    assert!(parsed > 1_800, "only {parsed} of 2000 programs parse");
}

#[test]
fn soup_that_parses_reads_back() {
    let mut random = Random(2);
    for _ in 0..20_000 {
        reads_back(&soup(&mut random));
    }
}

#[test]
fn base_reads_back() {
    for path in ["types", "bool", "number", "option", "list", "text", "container", "io"] {
        let path = format!("{}/src/base/{path}.bend", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("a part of Base");
        assert!(reads_back(&text));
    }
}

#[test]
fn checks_of_random_programs_end_without_panic() {
    let mut random = Random(3);
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(8) {
        let text = if random.below(2) == 0 {
            soup(&mut random)
        } else {
            program(&mut random).replace("import ./m.bend as M\n", "")
        };
        let begun = Instant::now();
        let _ = check_text("random.bend", &text, Options { library: true });
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?} for:\n{text}", begun.elapsed());
    }
}

/// Programs of the reject folder with a token of theirs removed, doubled or exchanged.
#[test]
fn checks_of_damaged_programs_end_without_panic() {
    let folder = format!("{}/tests/reject", env!("CARGO_MANIFEST_DIR"));
    let mut programs: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok())
        .filter(|text| !text.contains("as N") && !text.contains("as Me"))
        .collect();
    programs.sort();
    let mut random = Random(4);
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(8) {
        let mut text = programs[random.below(programs.len())].clone();
        let mut at = random.below(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        match random.below(3) {
            0 => text.truncate(at),
            1 => text.insert_str(at, random.pick(&TOKENS)),
            _ => {
                text.remove(at.min(text.len() - 2));
            }
        }
        let _ = check_text("damaged.bend", &text, Options { library: true });
    }
}

/// Texts that once did not read back.
#[test]
fn blocks_in_last_place_read_back() {
    for body in [
        "do IO<Unit>:\n    A <- b do IO<Unit>:\n   n(1)\n    c",
        "x = do IO<Unit>:\n    a\n  x",
        "x y = a do IO<Unit>:\n    a\n  x",
        "%e : do M<>: a b",
    ] {
        assert!(reads_back(&format!("def f() -> U32:\n  {body}\n")), "{body}");
    }
}

/// A comparison is an argument like another, with and without the comma after it.
#[test]
fn comparisons_before_a_comma_read_back() {
    for body in ["f(\"s\" <U name)", "f(a < b, c)", "f(a <b c)", "(1 < 2, T<a, b>)", "[f(x) < y, z]"] {
        assert!(reads_back(&format!("def g() -> U32:\n  {body}\n")), "{body}");
    }
}

/// Cases left of their `match`: the printer puts them right of it, and the tree is the same.
#[test]
fn cases_left_of_their_match_read_back() {
    let cases = "\n case A{}: x\n case B{}: y";
    for declaration in [
        format!("def f() -> U32:\n      m => match m:{cases}"),
        format!("def f() -> U32:\n      x = m => match m:{cases}\n      x(1)"),
        format!("def f() -> U32:\n      (match m:{cases}, match n:{cases})"),
        format!("def f() -> U32:\n      %e : P; match m:{cases}"),
        format!("def f() -> U32:\n      do M<>:\n        g(m => match m:{cases})\n        y"),
        format!("def f() -> U32:\n      do M<>:\n        m => match m:{cases}\n        y"),
        format!("law l:\n      for m: U32\n      match m:{cases}"),
        format!("law l:\n      for m: U32 where (match m:{cases})\n      m => match m:{cases}"),
        String::from("def f() -> U32:\n      match m:\n case A{}: m => match m:\n  case A{}: x\n case B{}: y"),
        String::from("def f() -> U32:\n      match m:\n case A{}: m => match m:\n case B{}: do M<>:\n x\n case C{}: y"),
    ] {
        assert!(reads_back(&format!("{declaration}\n")), "{declaration}");
    }
}
