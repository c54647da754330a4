//! Runs the programs of a folder and compares what came of them with what they say.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::expectation::{Expectation, Status};
use super::pattern::{difference, line_matches, lines_match};
use super::process::{run, Ended};

/// Where the folders of programs are.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run")
}

/// An empty folder for one run.
pub(crate) fn empty_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run").join(name);
    // It may be there from an earlier run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder can be made");
    folder
}

/// The command that runs a program, without the program's own arguments.
pub(crate) fn tidegate_run(program: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("run").arg(program);
    command
}

/// The programs of a folder, in order.
pub(crate) fn programs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "bend"))
        .collect();
    paths.sort();
    paths
}

/// Runs each program of that folder, and fails with all that went wrong.
pub(crate) fn group(name: &str) {
    let paths = programs(&root().join(name));
    assert!(!paths.is_empty(), "no programs in {name}");
    let failures: Vec<String> = paths.iter().flat_map(|path| program_failures(path)).collect();
    let count = failures.len();
    assert!(failures.is_empty(), "{count} of the runs of {name} failed:\n\n{}", failures.join("\n\n"));
}

/// Runs a program with each number of threads it asks for.
fn program_failures(path: &Path) -> Vec<String> {
    let name = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let text = fs::read_to_string(path).expect("a program");
    let expectation = match Expectation::read(&text) {
        Ok(expectation) => expectation,
        Err(error) => return vec![format!("{name}: {error}")],
    };
    let default = [String::new()];
    let threads = if expectation.threads.is_empty() { &default[..] } else { &expectation.threads };
    let runs = threads.iter().map(|threads| {
        let ended = run(command(path, &expectation, threads), expectation.limit);
        let run = if threads.is_empty() { name.clone() } else { format!("{name} --threads {threads}") };
        compare(&expectation, &ended).err().map(|failure| format!("{run}: {failure}"))
    });
    runs.flatten().collect()
}

fn command(path: &Path, expectation: &Expectation, threads: &str) -> Command {
    let stem = path.file_stem().expect("a name").to_str().expect("a plain name");
    let group = path.parent().and_then(Path::file_name).expect("a folder").to_str().expect("a plain name");
    let folder = empty_folder(&format!("{group}-{stem}"));
    let mut command = tidegate_run(path);
    if !threads.is_empty() {
        command.args(["--threads", threads]);
    }
    if !expectation.args.is_empty() {
        let folder = folder.to_str().expect("a plain path");
        command.arg("--").args(expectation.args.iter().map(|arg| arg.replace("<tmp>", folder)));
    }
    command.envs(expectation.env.iter().map(|(name, value)| (name, value)));
    command.current_dir(folder);
    command
}

/// Is that what was expected?
///
/// # Errors
/// What was not.
pub(crate) fn compare(expectation: &Expectation, ended: &Ended) -> Result<(), String> {
    let mut failures = Vec::new();
    match (ended.status, &expectation.status) {
        (None, _) => failures.push(format!("hangs: killed after {:?}", ended.took)),
        (Some(status), Status::Is(code)) if status.code() != Some(*code) => {
            failures.push(format!("{status}, but {code} was expected"));
        }
        (Some(status), Status::AnyFailure) if status.success() => {
            failures.push("a success, but a failure was expected".to_owned());
        }
        _ => {}
    }
    if ended.took < expectation.least {
        failures.push(format!("ended after {:?}, but not before {:?} was expected", ended.took, expectation.least));
    }
    let stderr = ended.stderr();
    if stderr.contains("panicked at") {
        failures.push("a panic".to_owned());
    }
    let (patterns, closed) = expectation.stdout_lines();
    let stdout = ended.stdout();
    if !text_matches(&patterns, &stdout, Some(closed)) {
        failures.push(format!("stdout:\n{}", shown(&patterns, &stdout, closed)));
    }
    if expectation.stderr_has.is_empty() || !expectation.stderr.is_empty() {
        let patterns: Vec<&str> = expectation.stderr.iter().map(String::as_str).collect();
        if !text_matches(&patterns, &stderr, None) {
            failures.push(format!("stderr:\n{}", difference(&patterns, &lines(&stderr))));
        }
    }
    for pattern in &expectation.stderr_has {
        if !stderr.lines().any(|line| line_matches(pattern, line)) {
            failures.push(format!("stderr has no line like `{pattern}`"));
        }
    }
    if failures.is_empty() {
        return Ok(());
    }
    if !stderr.is_empty() && !failures.iter().any(|failure| failure.starts_with("stderr:")) {
        failures.push(format!("stderr was:\n{}", stderr.chars().take(2000).collect::<String>()));
    }
    Err(failures.join("\n"))
}

/// The lines, whether or not the last one has an end.
fn lines(text: &str) -> Vec<&str> {
    if text.is_empty() {
        return Vec::new();
    }
    text.strip_suffix('\n').unwrap_or(text).split('\n').collect()
}

/// Does the text have these lines, and does its last one have an end (`None`: never mind)?
fn text_matches(patterns: &[&str], text: &str, closed: Option<bool>) -> bool {
    let ends = closed.is_none_or(|closed| text.is_empty() || text.ends_with('\n') == closed);
    ends && lines_match(patterns, &lines(text))
}

fn shown(patterns: &[&str], text: &str, closed: bool) -> String {
    let end = match (closed, text.ends_with('\n')) {
        (true, false) if !text.is_empty() => "  (its last line has no end)\n",
        (false, true) => "  (its last line should have no end)\n",
        _ => "",
    };
    difference(patterns, &lines(text)) + end
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::time::Duration;

    /// What a shell does, compared with what a header says.
    fn outcome(header: &str, script: &str) -> Result<(), String> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let expectation = Expectation::read(header).expect("a header");
        compare(&expectation, &run(command, expectation.limit.min(Duration::from_secs(5))))
    }

    fn fails(header: &str, script: &str, reason: &str) {
        let failure = outcome(header, script).expect_err("a difference");
        assert!(failure.contains(reason), "{failure}");
    }

    #[test]
    fn what_is_as_told_passes() {
        assert_eq!(outcome("# status: 2\n# stdout: a\n# stderr: b\n", "echo a; echo b >&2; exit 2"), Ok(()));
        assert_eq!(outcome("# stderr: b\n", "printf b >&2"), Ok(()));
        assert_eq!(outcome("# stdout: a\\\n", "printf a"), Ok(()));
        assert_eq!(outcome("# status: any\n", "exit 9"), Ok(()));
        assert_eq!(outcome("# stderr-has: <*>b\n", "echo a >&2; echo ab >&2"), Ok(()));
        assert_eq!(outcome("", "true"), Ok(()));
    }

    #[test]
    fn every_difference_fails() {
        fails("", "exit 1", "0 was expected");
        fails("# status: any\n", "true", "a failure was expected");
        fails("# stdout: a\n", "echo b", "  - a\n  + b");
        fails("", "echo b", "  + b");
        fails("# stdout: a\n", "true", "  - a");
        fails("# stdout: a\n", "printf a", "has no end");
        fails("# stdout: a\\\n", "echo a", "should have no end");
        fails("", "echo b >&2", "stderr:\n  + b");
        fails("# stderr: b\n", "true", "stderr:\n  - b");
        fails("# stderr-has: b\n", "echo ab >&2", "no line like `b`");
        fails("# least-ms: 4000\n", "true", "not before");
        fails("# limit-s: 1\n", "sleep 3", "hangs");
        fails("# stderr: ...\n", "echo \"thread 'main' panicked at x\" >&2", "a panic");
    }
}
