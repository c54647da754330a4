//! The examples print what stands beside them: `NAME.out` on stdout and, for one that fails, `NAME.err`
//! on stderr, as [`super::pattern`] reads them.

use std::fs;
use std::path::Path;

use super::expectation::Expectation;
use super::process::run;
use super::programs::{compare, programs, tidegate_run};

/// The lines of a file, as lines of a header.
fn directives(key: &str, path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.lines().flat_map(|line| ["# ", key, ": ", line, "\n"]).collect())
}

#[test]
fn the_examples_print_what_stands_beside_them() {
    let paths = programs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bend"));
    assert!(paths.len() >= 8, "only {} examples", paths.len());
    let mut failures = Vec::new();
    for path in paths {
        let output = directives("stdout", &path.with_extension("out"));
        let mut header = output.unwrap_or_else(|| panic!("{}: no .out beside it", path.display()));
        if let Some(errors) = directives("stderr", &path.with_extension("err")) {
            header = header + "# status: 1\n" + &errors;
        }
        header += "# limit-s: 120\n";
        let expectation = Expectation::read(&header).expect("a header");
        let mut command = tidegate_run(&path);
        command.env("USER", "Ada");
        if let Err(failure) = compare(&expectation, &run(command, expectation.limit)) {
            failures.push(format!("{}: {failure}", path.display()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
