//! `tidegate bench`: the benchmark of the workspace one stands in.
//!
//! Its peers are other people's channels and runtimes, which a published command must not depend on. So this starts
//! cargo, in the workspace where the benchmark is a package of its own.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::run::fail;

const PACKAGE: &str = "tidegate-bench";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What the benchmark gets; `tidegate bench -- --help` says what there is.
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn bench(arguments: &Arguments) -> ExitCode {
    let here = match std::env::current_dir() {
        Ok(here) => here,
        Err(error) => return fail(&format!("tidegate: no current folder: {error}")),
    };
    let Some(manifest) = manifest(&here) else {
        return fail(&format!(
            "tidegate: {} is not in Tidegate's workspace, and the benchmark is nowhere else: clone the repository and \
             run this in it",
            here.display()
        ));
    };
    // Whoever was started by cargo uses that one again.
    let cargo = std::env::var_os("CARGO").filter(|cargo| !cargo.is_empty()).unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    // By the manifest and not from its folder: files named in the arguments are those of this folder.
    command.args(["run", "--release", "--package", PACKAGE, "--manifest-path"]).arg(manifest).arg("--");
    command.args(&arguments.arguments);
    match become_or_run(command) {
        Ok(status) => status,
        Err(error) => fail(&format!("tidegate: cannot start {}: {error}", Path::new(&cargo).display())),
    }
}

/// The manifest of the workspace around `folder` that has the benchmark.
fn manifest(folder: &Path) -> Option<PathBuf> {
    let is_ours = |folder: &Path| {
        let text = std::fs::read_to_string(folder.join("bench/Cargo.toml")).unwrap_or_default();
        let is_named = text.lines().any(|line| line.trim() == format!("name = \"{PACKAGE}\""));
        is_named && folder.join("Cargo.toml").is_file()
    };
    folder.ancestors().find(|folder| is_ours(folder)).map(|folder| folder.join("Cargo.toml"))
}

/// Becomes the command: signals and the exit status are its own.
#[cfg(unix)]
fn become_or_run(mut command: Command) -> io::Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;

    Err(command.exec())
}

#[cfg(not(unix))]
fn become_or_run(mut command: Command) -> io::Result<ExitCode> {
    let status = command.status()?;
    // What is no byte is no success either.
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
