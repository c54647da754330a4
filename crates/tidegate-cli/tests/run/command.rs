//! What the command does that no program can say of itself: its options, its pipes, its signals.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::expectation::USUAL_LIMIT;
use super::process::{reader, run, Ended, Running};
use super::programs::{empty_folder, root, tidegate_run};

/// A program of one of the folders.
fn program(name: &str) -> PathBuf {
    root().join(name)
}

/// A program that is written down here.
fn written(name: &str, text: &str) -> PathBuf {
    let path = empty_folder(name).join(format!("{name}.bend"));
    std::fs::write(&path, text).expect("the file can be written");
    path
}

/// Runs a program with arguments as they stand.
fn outcome(path: &Path, arguments: &[&str]) -> Ended {
    let mut command = tidegate_run(path);
    command.args(arguments);
    let ended = run(command, USUAL_LIMIT);
    assert!(ended.status.is_some(), "{} {arguments:?} hangs", path.display());
    assert!(!ended.stderr().contains("panicked"), "{}", ended.stderr());
    ended
}

#[test]
fn a_thread_count_is_1_or_more() {
    let path = program("args/thread_count_default.bend");
    for arguments in [
        &["--threads", "0"][..],
        &["--threads", "x"],
        &["--threads", ""],
        &["--threads", "-1"],
        &["--threads", "1.5"],
        &["--threads", "2x"],
        &["--threads"],
    ] {
        let ended = outcome(&path, arguments);
        assert_ne!(ended.code(), Some(0), "{arguments:?}");
        assert_eq!(ended.stdout(), "", "{arguments:?}: nothing runs");
        let message = "expected a thread count of 1 or more after --threads";
        assert!(ended.stderr().contains(message), "{arguments:?}: {}", ended.stderr());
    }
}

#[test]
fn options_may_stand_before_the_file() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["run", "--threads", "3"]).arg(program("args/thread_count_3.bend"));
    let ended = run(command, USUAL_LIMIT);
    assert_eq!((ended.code(), ended.stdout()), (Some(0), "3\n".to_owned()), "{}", ended.stderr());
}

#[test]
fn arguments_need_no_dashes_before_them() {
    let ended = outcome(&program("args/after_the_dashes.bend"), &["a", "b c", "ü"]);
    assert_eq!((ended.code(), ended.stdout()), (Some(0), "[a]\n[b c]\n[ü]\n".to_owned()), "{}", ended.stderr());
}

#[test]
fn empty_and_odd_arguments_arrive() {
    let ended = outcome(&program("args/after_the_dashes.bend"), &["--", "", "a\nb", "--help", "-x"]);
    let expected = "[]\n[a\nb]\n[--help]\n[-x]\n".to_owned();
    assert_eq!((ended.code(), ended.stdout()), (Some(0), expected), "{}", ended.stderr());
}

/// What is not UTF-8 is told or replaced, but it is no panic.
#[test]
#[cfg(unix)]
fn arguments_and_variables_that_are_not_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let odd = OsStr::from_bytes(b"a\xffb");
    for (path, arguments) in [("args/after_the_dashes.bend", &["--"][..]), ("args/get_env.bend", &[])] {
        let mut command = tidegate_run(&program(path));
        command.args(arguments).env("TIDEGATE_TEST", odd);
        if !arguments.is_empty() {
            command.arg(odd);
        }
        let ended = run(command, USUAL_LIMIT);
        assert!(ended.status.is_some(), "{path} hangs");
        assert!(!ended.stderr().contains("panicked"), "{path}: {}", ended.stderr());
        assert!(!(ended.stdout().is_empty() && ended.stderr().is_empty()), "{path} says nothing");
    }
}

#[test]
fn a_file_that_is_not_there() {
    let ended = outcome(&program("refused/nowhere.bend"), &[]);
    assert_eq!((ended.code(), ended.stdout()), (Some(1), String::new()));
    assert!(ended.stderr().contains("nowhere.bend"), "{}", ended.stderr());
}

/// `IO.die` anywhere prints its message, however long.
#[test]
fn a_message_of_a_megabyte() {
    let text =
        "import Base\n\ndef main() -> IO(Unit):\n  IO.die(Unit, 7, String.repeat(\"0123456789abcdef\", 65536n))\n";
    let ended = outcome(&written("megabyte", text), &[]);
    assert_eq!((ended.code(), ended.stdout()), (Some(7), String::new()));
    assert_eq!(ended.stderr().trim_end_matches('\n').len(), 1 << 20);
    assert!(ended.stderr().starts_with("0123456789abcdef0123456789abcdef"));
    assert!(ended.stderr().trim_end().ends_with("0123456789abcdef"));
}

const PRINT_FOREVER: &str = "import Base

@unsafe
def forever(+n: U32) -> IO(Unit):
  IO.bind(Unit, Unit, IO.print(U32.show(n)), _ => forever(U32.inc(n)))

def main() -> IO(Unit):
  forever(0)
";

/// `tidegate run .. | head -1`: the program ends when nobody reads any more, and says nothing of a panic.
#[test]
#[cfg(unix)]
fn a_reader_that_goes_away_ends_the_program() {
    let path = written("reader-gone", PRINT_FOREVER);
    let mut running = Running::start(tidegate_run(&path));
    let stderr = reader(running.0.stderr.take());
    let mut stdout = BufReader::new(running.0.stdout.take().expect("a pipe"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a first line");
    assert_eq!(line, "0\n");
    drop(stdout);
    let status = running.wait(USUAL_LIMIT);
    drop(running);
    let stderr = String::from_utf8_lossy(&stderr.join().expect("a reader")).into_owned();
    assert!(status.is_some(), "it still runs; stderr: {stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// Runs the command with its streams as a shell redirects them.
#[cfg(unix)]
fn redirected(redirection: &str, arguments: &[&str]) -> Ended {
    let mut command = Command::new("sh");
    let script = format!("exec \"$@\" {redirection}");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_tidegate")]).args(arguments);
    let ended = run(command, USUAL_LIMIT);
    assert!(ended.status.is_some(), "{arguments:?} {redirection}: it hangs");
    assert!(!ended.stderr().contains("panicked"), "{arguments:?} {redirection}: {}", ended.stderr());
    ended
}

/// A program that prints, and one that does not.
#[cfg(unix)]
fn loud_and_silent(name: &str) -> [String; 2] {
    ["IO.print(\"here\")", "IO.sleep(1)"].map(|action| {
        let name = format!("{name}-{}", &action[3..8]);
        let path = written(&name, &format!("import Base\n\ndef main() -> IO(Unit):\n  {action}\n"));
        path.into_os_string().into_string().expect("UTF-8")
    })
}

/// Stdout is closed, or open for reading only: output that is lost is not a success, but whoever has none loses none.
#[test]
#[cfg(unix)]
fn a_stdout_that_takes_nothing_is_a_failure() {
    let [loud, silent] = loud_and_silent("lost");
    for redirection in [">&-", "1</dev/null", ">&- 0<&-", ">&- 0</dev/null"] {
        let ended = redirected(redirection, &["run", &loud]);
        let line = "bend: cannot write to stdout: Bad file descriptor (os error 9)\n";
        assert_eq!((ended.code(), ended.stderr()), (Some(1), line.to_owned()), "{redirection}");
        let ended = redirected(redirection, &["run", &silent]);
        assert_eq!((ended.code(), ended.stderr()), (Some(0), String::new()), "{redirection}");
    }
}

#[test]
#[cfg(unix)]
fn a_closed_stdout_and_statistics() {
    let [loud, silent] = loud_and_silent("lost-statistics");
    for json in [false, true] {
        let options = ["--stats", "--json"];
        let options = &options[..1 + usize::from(json)];
        let [ended, well] = [&loud, &silent].map(|path| redirected(">&-", &[&["run", path], options].concat()));
        let stderr = ended.stderr();
        let (line, statistics) = stderr.split_once('\n').expect("a line");
        assert_eq!((ended.code(), line), (Some(1), "bend: cannot write to stdout: Bad file descriptor (os error 9)"));
        for statistics in [statistics, &well.stderr()] {
            assert_eq!(statistics.starts_with("{\"computations\":1,"), json, "{statistics}");
            assert!(statistics.contains("computations"), "{statistics}");
        }
        assert_eq!(well.code(), Some(0));
    }
}

/// What is thrown away on purpose is, in whatever mode the null device is open.
#[test]
#[cfg(unix)]
fn a_stdout_that_is_the_null_device_is_well() {
    let [loud, _] = loud_and_silent("null");
    for redirection in [">/dev/null", ">>/dev/null", "1<>/dev/null", ">/dev/null 0<&-"] {
        let ended = redirected(redirection, &["run", &loud]);
        assert_eq!((ended.code(), ended.stderr()), (Some(0), String::new()), "{redirection}");
    }
}

/// Nobody can be told, but stdout gets all and the status is the program's.
#[test]
#[cfg(unix)]
fn a_closed_stdin_and_a_closed_stderr_lose_nothing() {
    let [loud, _] = loud_and_silent("others-closed");
    let ended = redirected("0<&- 2>&-", &["run", &loud, "--stats"]);
    assert_eq!((ended.code(), ended.stdout(), ended.stderr()), (Some(0), "here\n".to_owned(), String::new()));
}

/// A closed stdin is an empty one, whose end is read at once.
#[test]
#[cfg(target_os = "linux")]
fn a_closed_stdin_is_at_its_end() {
    let text = "import Base

def shown(done: File & Result<&1, &1, U32 & String, String>) -> String:
  match done:
    case (_, Done{text}): \"[\" ++ text ++ \"]\"
    case (_, Fail{(_, message)}): message

def main() -> IO(Unit):
  do IO<Unit>:
    file : File <- IO.try(File, File.open(\"/dev/stdin\", \"r\"))
    done : File & Result<&1, &1, U32 & String, String> <- File.read(file, 100)
    IO.print(shown(done))
";
    let path = written("stdin-closed", text);
    let ended = redirected("0<&-", &["run", path.to_str().expect("UTF-8")]);
    assert_eq!((ended.code(), ended.stdout()), (Some(0), "[]\n".to_owned()), "{}", ended.stderr());
}

/// The other commands print on the same stdout.
#[test]
#[cfg(unix)]
fn no_command_takes_lost_output_for_a_success() {
    let [loud, _] = loud_and_silent("lost-answers");
    let mut redirections = vec![">&-", "1</dev/null"];
    if cfg!(target_os = "linux") {
        redirections.push(">/dev/full");
    }
    for redirection in redirections {
        for arguments in [
            &["check", &loud][..],
            &["check", &loud, "--json"],
            &["completions", "bash"],
            &["run", "--help"],
            &["--help"],
            &["--version"],
        ] {
            let ended = redirected(redirection, arguments);
            let begins = ended.stderr().starts_with("tidegate: cannot write to stdout: ");
            assert!(begins && ended.stderr().lines().count() == 1, "{arguments:?} {redirection}: {}", ended.stderr());
            assert_eq!(ended.code(), Some(1), "{arguments:?} {redirection}");
        }
    }
}

/// Output that is lost is not a success.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_a_failure() {
    let [loud, _] = loud_and_silent("full-disk");
    let ended = redirected(">/dev/full", &["run", &loud]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.stderr().starts_with("bend: cannot write to stdout: "), "{}", ended.stderr());
}

/// A program that says on stdout and on stderr that it has begun, and then goes on for good.
fn endless(rest: &str) -> String {
    format!(
        "import Base

@unsafe
def spin(n: U32) -> U32:
  spin(U32.inc(n))

def two() -> U32:
  a b = spin(0) spin(1)
  U32.add(a, b)

@unsafe
def nap(+c: Chan(U32)) -> IO(Unit):
  IO.bind(Poll<&1, &1, Maybe<&1, U32>, Unit>, Unit, Chan.try_recv(U32, c, 1), _ => nap(c))

@unsafe
def busy(+n: U32) -> IO(Unit):
  IO.bind(Nat, Unit, IO.now(), _ => busy(n))

def main() -> IO(Unit):
  do IO<Unit>:
    +c : Chan(U32) <- Chan.new(U32, 0)
    IO.print(\"before\")
    IO.print_err(\"begun\")
    {rest}
"
    )
}

/// Starts such a program and waits until it has begun.
#[cfg(unix)]
fn begun(name: &str, rest: &str, arguments: &[&str]) -> (Running, BufReader<std::process::ChildStderr>) {
    let mut command = tidegate_run(&written(name, &endless(rest)));
    command.args(arguments);
    let mut running = Running::start(command);
    let mut stderr = BufReader::new(running.0.stderr.take().expect("a pipe"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("a line on stderr");
    assert_eq!(line, "begun\n", "{name}");
    (running, stderr)
}

/// Ctrl-C ends whatever runs: what was printed is there, and a shell sees status 130.
#[cfg(unix)]
fn interrupted(name: &str, rest: &str, arguments: &[&str]) {
    use std::os::unix::process::ExitStatusExt as _;

    let (mut running, mut stderr) = begun(name, rest, arguments);
    let stdout = reader(running.0.stdout.take());
    // Past its beginning, so that it is in the middle of what it goes on with.
    std::thread::sleep(Duration::from_millis(100));
    let id = running.0.id().to_string();
    let killed = Command::new("sh").args(["-c", "kill -INT \"$0\"", &id]).status().expect("the shell starts");
    assert!(killed.success());
    let status = running.wait(USUAL_LIMIT);
    drop(running);
    let status = status.unwrap_or_else(|| panic!("{name}: it still runs"));
    let stdout = stdout.join().expect("a reader");
    assert_eq!(String::from_utf8_lossy(&stdout), "before\n", "{name}: flushed");
    assert!(status.code() == Some(130) || status.signal() == Some(2), "{name}: {status}");
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("UTF-8");
    assert!(!said.contains("panicked"), "{name}: {said}");
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_a_sleep() {
    interrupted("interrupted-sleep", "IO.sleep(4000000)", &[]);
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_a_pure_loop() {
    interrupted("interrupted-loop", "IO.print(U32.show(spin(0)))", &["--threads", "1"]);
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_parallel_loops() {
    interrupted("interrupted-parallel", "IO.print(U32.show(two()))", &["--threads", "2"]);
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_a_loop_of_timers() {
    interrupted("interrupted-timers", "nap(c)", &[]);
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_a_loop_of_effects() {
    interrupted("interrupted-effects", "busy(0)", &[]);
}

/// Somebody who reads along sees what was printed while the program sleeps.
#[test]
#[cfg(unix)]
fn output_is_seen_before_the_end() {
    let (mut running, _stderr) = begun("seen", "IO.sleep(4000000)", &[]);
    let mut stdout = running.0.stdout.take().expect("a pipe");
    let (told, seen) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 7];
        // If the program is killed first, nobody listens any more.
        let _ = stdout.read_exact(&mut bytes).map(|()| told.send(bytes));
    });
    let bytes = seen.recv_timeout(USUAL_LIMIT).expect("the line");
    assert_eq!(&bytes, b"before\n");
}

/// Every example of the language's page that has a main runs to a status of 0.
#[test]
fn the_documentation_runs() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bend.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let examples = page.split("```bend\n").skip(1).filter_map(|part| part.split("```").next());
    let mut count = 0;
    for (number, example) in examples.enumerate().filter(|(_, example)| example.contains("def main")) {
        let mut command = tidegate_run(&written(&format!("documentation{number}"), example));
        command.env("USER", "Ada");
        let ended = run(command, USUAL_LIMIT);
        assert_eq!(ended.code(), Some(0), "{example}\n{}", ended.stderr());
        assert_eq!(ended.stderr(), "", "{example}");
        assert_ne!(ended.stdout(), "", "{example}");
        count += 1;
    }
    assert!(count > 10, "only {count} examples");
}
