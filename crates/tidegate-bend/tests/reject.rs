//! Programs that must fail, each with its exact report.
//!
//! `tests/reject/NAME.bend` is the program and `NAME.err` the report. `BLESS=1 cargo test` writes the
//! reports anew; read the difference before you commit it.

use std::path::{Path, PathBuf};

use tidegate_bend::{check_file, Options};

fn programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reject");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "bend"))
        .collect();
    files.sort();
    files
}

#[test]
fn each_program_fails_with_its_report() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    let programs = programs();
    assert!(programs.len() > 60, "only {} programs found", programs.len());
    for path in programs {
        let report = match check_file(&path, Options::default()) {
            Ok(_) => String::from("the program passed\n"),
            Err(failure) => failure.render() + "\n",
        };
        let expected_path = path.with_extension("err");
        if bless {
            std::fs::write(&expected_path, &report).expect("the report can be written");
            continue;
        }
        let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
        if report != expected {
            wrong.push(format!("{}:\n{report}--- expected:\n{expected}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn affinity_reads_as_in_bend() {
    let text = "import Base\n\ndef double(x: U32) -> U32:\n  U32.add(x, x)\n\ndef main() -> U32:\n  double(1)\n";
    let failure = tidegate_bend::check_text("main.bend", text, Options::default()).expect_err("x is used twice");
    assert_eq!(
        failure.render(),
        "SOME PROOFS FAIL\n\
         Error:\n\
         - expected : x\n\
         - observed : x (consumed more than once)\n\
         Location: double\n\
         2 | \n\
         3>| def double(x: U32) -> U32:\n\
         \x20 |            ^\n\
         4 |   U32.add(x, x)"
    );
}

#[test]
fn the_context_lists_the_names_in_scope() {
    let text = "import Base\n\ndef f(label: String, n: U32) -> Nat:\n  n\n";
    let failure = tidegate_bend::check_text("f.bend", text, Options { library: true }).expect_err("n is a U32");
    assert!(failure.render().contains("Context:\n- label : String\n- n     : U32\nLocation: f\n"));
}
