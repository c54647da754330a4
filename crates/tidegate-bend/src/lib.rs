//! Reads Bend IO programs, tells what is wrong with them before anything runs, and runs them.
//!
//! A file goes through [`lexer`], [`parser`] and a checker (names, arity, cases, affinity, simple
//! types, descent); what is left is a [`core::Program`], without types and proofs, which [`run`] compiles and runs.
//! What is wrong is a [`diagnostic::Failure`] in Bend's own layout.
//!
//! ```
//! use tidegate_bend::{check_text, Options};
//!
//! let text = "import Base\n\ndef main() -> IO(Unit):\n  IO.print(\"hello\")\n";
//! let checked = check_text("hello.bend", text, Options::default())?;
//! assert!(checked.program.main.is_some());
//! # Ok::<(), tidegate_bend::diagnostic::Failure>(())
//! ```
#![forbid(unsafe_code)]

pub mod base;
mod check;
pub mod core;
pub mod diagnostic;
mod elaborated;
mod hash;
pub mod lexer;
mod load;
mod lower;
pub mod parser;
mod report;
pub mod run;
pub mod syntax;

use std::path::Path;

pub use check::{ConstructorId, DataId, DefId};
pub use report::Report;

use diagnostic::{Failure, Sources};

/// The stack of the thread that a check runs on: the depth of a tree is bounded
/// ([`parser::MAX_DEPTH`]), and this holds a tree of that depth in a debug build.
const STACK: usize = 1 << 30;

/// How to check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The file is there to be imported: it needs no `main`.
    pub library: bool,
}

/// A program that passed.
#[derive(Debug)]
pub struct Checked {
    /// The program, ready to run.
    pub program: core::Program,
    /// What was checked, and what was not.
    pub report: Report,
    /// The files it is made of.
    pub sources: Sources,
}

/// Checks a file and all it imports.
///
/// # Errors
/// [`Failure::Unreadable`] if the file can't be read, [`Failure::Rejected`] if something in it or in
/// what it imports is wrong.
pub fn check_file(path: &Path, options: Options) -> Result<Checked, Failure> {
    on_large_stack(|| check_loaded(load::load(path, None)?, path, options))?
}

/// Checks `text` as if it were the file `path`; its imports are looked for beside that.
///
/// # Errors
/// As [`check_file`].
pub fn check_text(path: impl AsRef<Path>, text: &str, options: Options) -> Result<Checked, Failure> {
    let path = path.as_ref();
    on_large_stack(|| check_loaded(load::load(path, Some(text.to_owned()))?, path, options))?
}

fn check_loaded(loaded: load::Loaded, path: &Path, options: Options) -> Result<Checked, Failure> {
    let load::Loaded { sources, names, modules, order, base_visible } = loaded;
    let mut book = check::Book::new(names, modules, base_visible, sources.texts());
    let findings = check::check(&mut book, &order, !options.library);
    if !findings.errors.is_empty() {
        return Err(Failure::Rejected { sources, errors: findings.errors });
    }
    let program = lower::lower(&book, &findings);
    let report = Report::new(&book, &findings, path);
    Ok(Checked { program, report, sources })
}

/// Runs `work` on a thread whose stack holds the deepest tree.
fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(String::from("bend-check")).stack_size(STACK);
        match thread.spawn_scoped(scope, work) {
            Ok(running) => Ok(running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
            Err(error) => Err(Failure::unreadable(
                Path::new("the program"),
                format!("no memory for a stack of {STACK} bytes ({error})"),
            )),
        }
    })
}
