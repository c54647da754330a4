//! The command as its users meet it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tidegate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidegate")).args(arguments).output().expect("the command starts")
}

/// A folder of its own for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    folder
}

fn file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).expect("the file can be written");
    path.to_str().expect("a plain path").to_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// The file must be refused, with that on stderr and nothing on stdout.
fn refused(path: &str, report: &str) {
    let output = tidegate(&["check", path]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stderr(&output).contains(report), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
}

const HELLO: &str = "import Base\n\ndef main() -> IO(Unit):\n  IO.print(\"hello\")\n";

#[test]
fn a_program_that_passes_says_what_was_checked() {
    let path = file(&folder("passes"), "hello.bend", HELLO);
    let output = tidegate(&["check", &path]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(
        stdout(&output),
        format!("{path}: checked 1 definition: names, arity, cases, affinity, types, descent\n")
    );
    assert_eq!(stderr(&output), "");
}

#[test]
fn skipped_proofs_are_told() {
    let text = format!("{HELLO}\nlaw refl:\n  for x: Nat\n  {{x == x : Nat}}\n\ndef refl(x):\n  {{==}}\n");
    let output = tidegate(&["check", &file(&folder("proofs"), "proof.bend", text)]);
    assert!(output.status.success());
    assert!(stdout(&output).contains("not checked: 1: equality proofs, read and skipped: refl"), "{}", stdout(&output));
}

/// A definition with a proof inside is one that was checked, but for the proof; a whole proof is not.
#[test]
fn a_definition_with_a_proof_inside_counts() {
    let text =
        "import Base\n\ndef take(n: Nat, -e: {0n == 0n : Nat}) -> Nat:\n  n\n\ndef give() -> Nat:\n  take(0n, {==})\n";
    let output = tidegate(&["check", "--library", &file(&folder("inner"), "inner.bend", text)]);
    assert!(stdout(&output).contains("checked 2 definitions:"), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("not checked: 1: equality proofs, read and skipped: give"), "{}", stdout(&output));
}

#[test]
fn types_let_pass_are_told() {
    let types = "import Base\n\ndef T(n: Nat) -> Type:\n  match n:\n    case 0n: U32\n    case 1n+p: T(p)\n\n";
    let line = "not checked: 1: type comparisons let pass, which hang on equations or on values that are not computed";
    for (name, text) in [
        // An open call on both sides.
        ("open", "def f(n: Nat, m: Nat, x: T(n)) -> T(m):\n  x\n"),
        // More steps than are taken.
        ("long", "def f(x: T(30000n)) -> U32:\n  x\n"),
        ("function", "def P(n: Nat) -> Type:\n  match n:\n    case 0n: U32 -> U32\n    case 1n+p: P(p)\n\ndef f() -> P(30000n):\n  x => x\n"),
        // The sides of an equation, outside of a proof.
        ("equation", "def f(n: Nat, -e: {n == 0n : Nat}) -> Nat:\n  n\n"),
    ] {
        let path = file(&folder("undecided"), &format!("{name}.bend"), format!("{types}{text}"));
        let output = tidegate(&["check", "--library", &path]);
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        assert!(stdout(&output).contains(&format!("{line}: f\n")), "{name}: {}", stdout(&output));
        let output = tidegate(&["check", "--library", "--json", &path]);
        assert!(stdout(&output).contains(r#""types":["f"]"#), "{name}: {}", stdout(&output));
    }
    let decided = format!("{types}def f(x: T(3n)) -> U32:\n  x\n");
    let output = tidegate(&["check", "--library", &file(&folder("undecided"), "decided.bend", decided)]);
    assert!(!stdout(&output).contains("not checked"), "{}", stdout(&output));
}

#[test]
fn a_declared_type_let_pass_is_told() {
    let text = "import Base\n\ntype Zero<n: Nat> is Data:\n  Zero{-e: {n == 0n : Nat}}\n";
    let output = tidegate(&["check", "--library", &file(&folder("undecided"), "zero.bend", text)]);
    assert!(stdout(&output).contains("are not computed: Zero\n"), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn the_examples_pass() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bend");
    let mut count = 0;
    for entry in std::fs::read_dir(examples).expect("the examples are there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "bend") {
            let output = tidegate(&["check", path.to_str().expect("a plain path")]);
            assert!(output.status.success(), "{}", stderr(&output));
            count += 1;
        }
    }
    assert!(count >= 3, "only {count} examples");
}

#[test]
fn files_that_cannot_be_read() {
    let folder = folder("unreadable");
    refused(folder.join("nowhere.bend").to_str().expect("a plain path"), "nowhere.bend: no such file");
    refused(folder.to_str().expect("a plain path"), "it is a directory");
    refused(&file(&folder, "latin.bend", b"# caf\xe9\n"), "it is not UTF-8 (byte 5)");
}

#[test]
fn files_without_a_proper_main() {
    let folder = folder("main");
    refused(&file(&folder, "empty.bend", ""), "- observed : no main");
    refused(&file(&folder, "comment.bend", "# nothing\n"), "- observed : no main");
    refused(&file(&folder, "none.bend", "import Base\n\ndef f() -> U32:\n  0\n"), "- observed : no main");
    refused(&file(&folder, "wrong.bend", "import Base\n\ndef main(x: U32) -> U32:\n  x\n"), "main without parameters");
    let output =
        tidegate(&["check", "--library", &file(&folder, "library.bend", "import Base\n\ndef f() -> U32:\n  0\n")]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_pure_main_is_a_program() {
    let folder = folder("pure");
    for (name, result, value) in
        [("n", "Nat", "3n"), ("l", "List<U32>", "[1, 2]"), ("s", "String", "\"text\""), ("b", "Bool", "True{}")]
    {
        let text = format!("import Base\n\ndef main() -> {result}:\n  {value}\n");
        let output = tidegate(&["check", &file(&folder, &format!("{name}.bend"), text)]);
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

#[test]
fn tabs_carriage_returns_and_a_missing_last_newline_are_fine() {
    let folder = folder("blanks");
    for (name, text) in [
        ("tabs.bend", HELLO.replace("  ", "\t")),
        ("crlf.bend", HELLO.replace('\n', "\r\n")),
        ("end.bend", HELLO.trim_end().to_owned()),
    ] {
        let output = tidegate(&["check", &file(&folder, name, text)]);
        assert!(output.status.success(), "{name}: {}", stderr(&output));
    }
}

#[test]
fn imports_are_checked_with_the_program() {
    let folder = folder("imports");
    std::fs::create_dir_all(folder.join("sub-dir")).expect("the folder can be made");
    file(&folder, "sub-dir/shape.bend", "import Base\nimport ../area.bend as Area\n\ntype Shape is Data:\n  Square{side: U32}\n\ndef size(s: Shape) -> U32:\n  match s:\n    case Square{side}: Area.square(side)\n");
    file(&folder, "area.bend", "import Base\n\ndef square(+x: U32) -> U32:\n  (x * x : U32)\n");
    let main = "import Base\nimport ./sub-dir/shape.bend as S\nimport area.bend as A\n\ndef main() -> U32:\n  (S.size(S.Square{3}) + A.square(2) : U32)\n";
    let path = file(&folder, "main.bend", main);
    let output = tidegate(&["check", &path]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("in 3 files"), "{}", stdout(&output));
    refused(&file(&folder, "main2.bend", main.replace("S.size", "S.weight")), "- observed : S.weight");
    file(&folder, "area.bend", "import Base\n\ndef square(x: U32) -> U32:\n  (x * x : U32)\n");
    refused(&path, "Location: square (");
}

#[test]
fn import_cycles_are_errors() {
    let folder = folder("cycle");
    file(&folder, "b.bend", "import ./a.bend as A\n");
    refused(&file(&folder, "a.bend", "import ./b.bend as B\n"), "imports without a cycle");
}

#[test]
fn a_definition_fills_a_law_of_an_import() {
    let folder = folder("laws");
    file(&folder, "laws.bend", "import Base\n\nlaw same:\n  for x: Nat\n  {x == x : Nat}\n");
    let text = "import Base\nimport ./laws.bend as Laws\n\ndef Laws.same(x):\n  {==}\n\ndef main() -> U32:\n  0\n";
    let output = tidegate(&["check", &file(&folder, "proof.bend", text)]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("read and skipped: Laws.same"), "{}", stdout(&output));
}

#[test]
fn json_for_editors() {
    let folder = folder("json");
    let output = tidegate(&["check", "--json", &file(&folder, "ok.bend", HELLO)]);
    assert!(output.status.success());
    assert!(stdout(&output).starts_with("{\"ok\":true,"), "{}", stdout(&output));
    let path = file(&folder, "bad.bend", "import Base\n\ndef main() -> U32:\n  \"é\" ++ x\n");
    let output = tidegate(&["check", "--json", &path]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), "");
    let object = stdout(&output);
    for part in [
        "\"ok\":false",
        "\"line\":4",
        "\"column\":10",
        "\"end_column\":11",
        "\"observed\":\"x\"",
        "\"definition\":\"main\"",
    ] {
        assert!(object.contains(part), "{object} lacks {part}");
    }
    let output = tidegate(&["check", "--json", folder.join("nowhere.bend").to_str().expect("a plain path")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("no such file"));
}

#[test]
fn no_colors_in_a_pipe() {
    let path = file(&folder("color"), "bad.bend", "def main() -> U32:\n  0\n");
    assert!(!stderr(&tidegate(&["check", &path])).contains('\u{1b}'));
    assert!(!stdout(&tidegate(&["--help"])).contains('\u{1b}'));
}

#[test]
fn help_version_and_completions() {
    let help = tidegate(&["--help"]);
    assert!(help.status.success());
    assert!(stdout(&help).contains("check"));
    assert!(stdout(&tidegate(&["check", "--help"])).contains("--json"));
    assert!(stdout(&tidegate(&["--version"])).starts_with("tidegate "));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = tidegate(&["completions", shell]);
        assert!(output.status.success());
        assert!(stdout(&output).contains("tidegate"), "{shell}");
    }
    assert_eq!(tidegate(&["chek"]).status.code(), Some(2));
    assert_eq!(tidegate(&["check"]).status.code(), Some(2));
}

/// Every example of `docs/bend.md` is a program or a library that passes.
#[test]
fn the_documentation_passes() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bend.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let folder = folder("documentation");
    let examples: Vec<&str> = page.split("```bend\n").skip(1).filter_map(|part| part.split("```").next()).collect();
    assert!(examples.len() > 10);
    for (number, example) in examples.iter().enumerate() {
        let path = file(&folder, &format!("example{number}.bend"), example);
        let library: &[&str] = if example.contains("def main") { &[] } else { &["--library"] };
        let output = tidegate(&[&["check", &path], library].concat());
        assert!(output.status.success(), "{example}\n{}", stderr(&output));
    }
}
