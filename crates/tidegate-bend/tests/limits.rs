//! Long files are fast, deep ones get an answer; neither overflows a stack, here nor when dropped.

use std::fmt::Write as _;
use std::time::Instant;

use tidegate_bend::{check_text, Options};

/// Checks a text on this thread, whose stack is that of a test.
fn answer(text: &str) -> Result<(), String> {
    match check_text("limits.bend", text, Options { library: true }) {
        Ok(checked) => {
            drop(checked);
            Ok(())
        }
        Err(failure) => Err(failure.render()),
    }
}

/// Fails unless the text passes, or fails for its depth.
fn passes_or_is_too_deep(text: &str) {
    if let Err(report) = answer(text) {
        assert!(report.contains("nested at most"), "{}", &report[..report.len().min(500)]);
    }
}

#[test]
fn nesting_of_ten_thousand_gets_an_answer() {
    let deep = 10_000;
    let nest = |open: &str, inner: &str, close: &str, count: usize| {
        format!("{}{inner}{}", open.repeat(count), close.repeat(count))
    };
    for count in [4_900, deep] {
        let head = "import Base\n\ndef main() -> U32:\n  ";
        passes_or_is_too_deep(&format!("{head}{}\n", nest("(", "1", ")", count)));
        passes_or_is_too_deep(&format!("{head}{}\n", nest("U32.inc(", "1", ")", count)));
        passes_or_is_too_deep(&format!("{head}{}\n", nest("{", "1", " : U32}", count)));
        let tower = nest("List<", "U32", ">", count);
        passes_or_is_too_deep(&format!("import Base\n\ndef main() -> {tower}:\n  []\n"));
        let arrows = "U32 -> ".repeat(count);
        passes_or_is_too_deep(&format!("import Base\n\ndef f() -> {arrows}U32:\n  {}1\n", "x => ".repeat(count)));
        let pattern = nest("Succ{", "p", "}", count);
        passes_or_is_too_deep(&format!(
            "import Base\n\ndef f(n: Nat) -> U32:\n  match n:\n    case {pattern}: 1\n    case _: 0\n"
        ));
    }
}

#[test]
fn unclosed_nesting_is_an_error() {
    for open in ["(", "[", "{", "U32.inc(", "x => (", "@x: ", "%", "+", "do IO<"] {
        let text = format!("import Base\n\ndef main() -> U32:\n  {}", open.repeat(20_000));
        assert!(answer(&text).is_err());
    }
}

#[test]
fn matches_nest_deeply() {
    let mut text = String::from("import Base\n\ndef f(n: Nat) -> U32:\n");
    for level in 0..1_000 {
        let indent = " ".repeat(level + 1);
        let name = if level == 0 { String::from("n") } else { format!("p{}", level - 1) };
        let _ = write!(text, "{indent}match {name}:\n{indent} case 0n: 0\n{indent} case 1n+p{level}:\n");
    }
    let _ = writeln!(text, "{}1", " ".repeat(1_002));
    assert_eq!(answer(&text), Ok(()));
}

#[test]
fn a_long_file_takes_time_in_proportion() {
    // 10^5 lines in a release build take well under two seconds; a debug build gets fewer lines.
    let lines = if cfg!(debug_assertions) { 10_000 } else { 100_000 };
    let mut text = String::from("import Base\n");
    for number in 0..lines / 7 {
        let _ = write!(
            text,
            "\ndef f{number}(n: Nat, +x: U32) -> U32:\n  match n:\n    case 0n: x\n    case 1n+p:\n      \
             y = U32.add(x, {number})\n      f{number}(p, (y * 3 + 1 : U32))\n"
        );
    }
    let started = Instant::now();
    assert_eq!(answer(&text), Ok(()));
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn a_long_block_is_walked_not_recursed_into() {
    let mut text = String::from("import Base\n\ndef main() -> IO(Unit):\n  do IO<Unit>:\n");
    for number in 0..20_000 {
        let _ = writeln!(text, "    x{number} : Nat <- IO.now()");
    }
    text.push_str("    IO.print(\"end\")\n\ndef f() -> U32:\n  y0 = 1\n");
    for number in 0..20_000 {
        let _ = writeln!(text, "  y{} = U32.inc(y{number})", number + 1);
    }
    text.push_str("  y20000\n\ndef g() -> List<U32>:\n  [");
    text.push_str(&"1, ".repeat(20_000));
    text.push_str("]\n\ndef h(n: U32) -> U32:\n  match n:\n");
    for number in 0..5_000 {
        let _ = writeln!(text, "    case {number}: {number}");
    }
    text.push_str("    case _: 0\n");
    assert_eq!(answer(&text), Ok(()));
}

#[test]
fn a_long_body_of_destructuring_lets_is_checked() {
    // The types of the second form mention those of all lets before, unless they are computed.
    let lets = if cfg!(debug_assertions) { 50_000 } else { 100_000 };
    let mut text = String::from("import Base\n\ndef pair(x: U32) -> U32 & U32:\n  (x, 1)\n\ndef f(a0: U32) -> U32:\n");
    for number in 1..=lets {
        let _ = writeln!(text, "  (a{number}, b{number}) = pair(a{})", number - 1);
    }
    let _ = write!(text, "  a{lets}\n\ndef g(p: U32 & U32) -> U32:\n  (a0, b0) = p\n");
    for number in 1..=lets {
        let _ = writeln!(text, "  (a{number}, b{number}) = (b{before}, a{before})", before = number - 1);
    }
    let _ = writeln!(text, "  a{lets}");
    assert_eq!(answer(&text), Ok(()));
}

#[test]
fn types_that_never_stop_computing_get_an_answer() {
    let text = "import Base\n\n@unsafe\ndef T(n: Nat) -> Type:\n  T(1n+n)\n\n@unsafe\ndef S(n: Nat) -> Type:\n  \
                S(n) -> S(n)\n\ndef f(x: T(0n), y: S(0n)) -> U32:\n  y(x)\n";
    let _ = answer(text);
}

#[test]
fn a_match_that_splits_without_end_gets_an_answer() {
    let width = 30;
    let mut text = String::from("import Base\n\ndef f(");
    for column in 0..width {
        let _ = write!(text, "x{column}: Bool, ");
    }
    text.push_str(") -> U32:\n  match");
    for column in 0..width {
        let _ = write!(text, " x{column}");
    }
    text.push_str(":\n");
    for row in 0..width - 2 {
        text.push_str("    case");
        for column in 0..width {
            let pattern = if column == row || column == row + 1 {
                " True{}"
            } else if column == row + 2 {
                " False{}"
            } else {
                " _"
            };
            text.push_str(pattern);
        }
        let _ = writeln!(text, ": {row}");
    }
    let _ = answer(&text);
}
