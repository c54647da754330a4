//! The `tidegate` command.
// But for the look at stdout before the start, in `stdout/before_main.rs`.
#![deny(unsafe_code)]

mod bench;
mod color;
mod json;
mod run;
mod stdout;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use tidegate_bend::diagnostic::Failure;
use tidegate_bend::{check_file, Options};

/// Bend IO programs on Tidegate's channels and timers.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check a Bend program: names, arity, cases, affinity, types and descent.
    ///
    /// Nothing runs. The answer is one line that says what was checked, with a line for each thing
    /// that was not (equality proofs are read and skipped), or the errors on stderr and exit status 1.
    Check {
        /// The program's file; what it imports is found from there.
        file: PathBuf,
        /// Print one JSON object on stdout instead, for editors.
        #[arg(long)]
        json: bool,
        /// The file is there to be imported: don't ask for a main.
        #[arg(long)]
        library: bool,
    },
    /// Check a Bend program and run it.
    ///
    /// A program that does not pass the check runs nothing. The exit status is 0 when every computation has ended, the code
    /// of an IO.die, 1 after an error or a deadlock, 130 after an interrupt.
    Run(run::Arguments),
    /// Measure Tidegate and its peers side by side, in a clone of its repository.
    ///
    /// Builds the benchmark with cargo and runs it: all that follows is for the benchmark, and the exit status is its own.
    /// `tidegate bench --quick` takes about two minutes, after a build of several.
    Bench(bench::Arguments),
    /// Print a completion script for a shell.
    ///
    /// For bash: tidegate completions bash > ~/.local/share/bash-completion/completions/tidegate
    Completions {
        /// The shell.
        shell: Shell,
    },
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return answer(&error),
    };
    match cli.command {
        Command::Check { file, json, library } => check(&file, json, Options { library }),
        Command::Run(arguments) => run::run(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "tidegate", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
    }
}

fn check(file: &Path, json: bool, options: Options) -> ExitCode {
    let result = check_file(file, options);
    let passed = result.is_ok();
    if json {
        let object = match &result {
            Ok(checked) => json::passed(checked),
            Err(failure) => json::failed(failure),
        };
        let written = print(&(object + "\n"));
        return if passed { written } else { ExitCode::FAILURE };
    }
    match result {
        Ok(checked) => print(&(checked.report.lines().join("\n") + "\n")),
        Err(failure) => reject(&failure),
    }
}

/// Tells why a program did not pass.
fn reject(failure: &Failure) -> ExitCode {
    let report = color::errors(&failure.render());
    // A closed stderr leaves nobody to tell.
    let _ = writeln!(io::stderr(), "{report}");
    ExitCode::FAILURE
}

/// Says what is wrong with the command line, or gives the help or the version that it asks for.
fn answer(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        error.exit();
    }
    printed(stdout::print_by(|| error.print()))
}

fn print(text: &str) -> ExitCode {
    printed(stdout::print(text))
}

/// What comes of a write to stdout. A reader that went away is no error of ours; anything else is.
fn printed(written: io::Result<()>) -> ExitCode {
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "tidegate: cannot write to stdout: {error}");
            ExitCode::FAILURE
        }
    }
}
