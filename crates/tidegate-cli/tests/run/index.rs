//! `README.md` lists every sentence that a program quotes, and every program.

use std::collections::BTreeSet;
use std::fs;

use super::expectation::Expectation;
use super::programs::{programs, root};

/// The folders of programs.
fn folders() -> Vec<String> {
    let entries = fs::read_dir(root()).expect("the folder");
    let folders = entries.map(|entry| entry.expect("an entry")).filter(|entry| entry.path().is_dir());
    folders.map(|folder| folder.file_name().into_string().expect("a plain name")).collect()
}

#[test]
fn every_folder_is_a_test() {
    let known: BTreeSet<&str> = crate::GROUPS.into_iter().collect();
    let found = folders();
    assert_eq!(known, found.iter().map(String::as_str).collect());
    // A name in the list without its test would be a folder that nobody runs.
    let tests = include_str!("../run.rs");
    for name in known {
        assert!(tests.contains(&format!("group(\"{name}\")")), "no test runs {name}");
    }
}

#[test]
fn every_program_and_sentence_is_listed() {
    let list = fs::read_to_string(root().join("README.md")).expect("the list").replace("\\|", "|");
    for folder in folders() {
        for path in programs(&root().join(&folder)) {
            let name = format!("{folder}/{}", path.file_stem().expect("a name").to_string_lossy());
            let text = fs::read_to_string(&path).expect("a program");
            let expectation = Expectation::read(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!expectation.quotes.is_empty(), "{name} quotes nothing");
            assert!(list.contains(&format!("`{name}`")), "README.md does not list {name}");
            for quote in expectation.quotes {
                assert!(list.contains(&quote), "README.md lacks the sentence of {name}: {quote}");
            }
        }
    }
}

#[test]
fn every_listed_program_is_there() {
    let list = fs::read_to_string(root().join("README.md")).expect("the list");
    let mut count = 0;
    for name in list.split('`').filter(|code| folders().iter().any(|folder| code.starts_with(&format!("{folder}/")))) {
        assert!(root().join(format!("{name}.bend")).is_file(), "README.md lists {name}, which is not there");
        count += 1;
    }
    assert!(count > 100, "only {count} programs listed");
}
