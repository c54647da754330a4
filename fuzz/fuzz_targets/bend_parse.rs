//! Lexer and parser: no panic, and what parses reads back from its own print.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_bend::parser;
use tidegate_bend::syntax::Interner;

fuzz_target!(|text: &str| {
    // Deep text is for `bend_check`, which brings a stack that holds it.
    if text.len() > 4_096 {
        return;
    }
    let mut names = Interner::new();
    let Ok(tree) = parser::parse(text, 0, &mut names) else {
        return;
    };
    let printed = tree.print(&names);
    let again = parser::parse(&printed, 0, &mut names).expect("a printed tree parses");
    assert_eq!(printed, again.print(&names));
});
