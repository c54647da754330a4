//! `tidegate run`, compared with the sentences that say what it does.
//!
//! Each program below `run/` says in the comments at its head what must come of it
//! (`run/expectation.rs`); each folder is one test here. `run/README.md` lists the sentences and the
//! programs that test them.

mod run {
    pub(crate) mod arithmetic;
    pub(crate) mod command;
    pub(crate) mod examples;
    pub(crate) mod expectation;
    pub(crate) mod index;
    pub(crate) mod model;
    pub(crate) mod pattern;
    pub(crate) mod process;
    pub(crate) mod programs;
}

use run::programs::group;

/// The folders, each of which is a test below.
pub(crate) const GROUPS: [&str; 25] = [
    "args",
    "channels",
    "close",
    "containers",
    "deadlock",
    "deep",
    "die",
    "end",
    "files",
    "flushing",
    "fork_join",
    "functions",
    "imports",
    "lists",
    "matches",
    "numbers",
    "order",
    "parallel",
    "pure_main",
    "refused",
    "stale",
    "text",
    "timed",
    "timers",
    "within",
];

#[test]
fn args() {
    group("args");
}

#[test]
fn channels() {
    group("channels");
}

#[test]
fn close() {
    group("close");
}

#[test]
fn containers() {
    group("containers");
}

#[test]
fn deadlock() {
    group("deadlock");
}

#[test]
fn deep() {
    group("deep");
}

#[test]
fn die() {
    group("die");
}

#[test]
fn end() {
    group("end");
}

#[test]
fn files() {
    group("files");
}

#[test]
fn flushing() {
    group("flushing");
}

#[test]
fn fork_join() {
    group("fork_join");
}

#[test]
fn functions() {
    group("functions");
}

#[test]
fn imports() {
    group("imports");
}

#[test]
fn lists() {
    group("lists");
}

#[test]
fn matches() {
    group("matches");
}

#[test]
fn numbers() {
    group("numbers");
}

#[test]
fn order() {
    group("order");
}

#[test]
fn parallel() {
    group("parallel");
}

#[test]
fn pure_main() {
    group("pure_main");
}

#[test]
fn refused() {
    group("refused");
}

#[test]
fn stale() {
    group("stale");
}

#[test]
fn text() {
    group("text");
}

#[test]
fn timed() {
    group("timed");
}

#[test]
fn timers() {
    group("timers");
}

#[test]
fn within() {
    group("within");
}
