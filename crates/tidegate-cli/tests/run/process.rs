//! Runs a command that may hang.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None`: it hung and was killed.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) took: Duration,
}

impl Ended {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// A process that is killed with its owner.
#[derive(Debug)]
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has mostly ended by itself; an error says so.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(command.spawn().expect("the command starts"))
    }

    /// Waits for its end, but not longer than that.
    pub(crate) fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().expect("a child of ours") {
                return Some(status);
            }
            if start.elapsed() > limit {
                return None;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Reads a pipe to its end beside the test, so that the child never waits for room in it.
pub(crate) fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    let mut pipe = pipe.expect("a pipe");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A pipe that breaks has told all it had to tell.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// Runs the command to its end, or kills it.
pub(crate) fn run(command: Command, limit: Duration) -> Ended {
    let start = Instant::now();
    let mut running = Running::start(command);
    let (stdout, stderr) = (reader(running.0.stdout.take()), reader(running.0.stderr.take()));
    let status = running.wait(limit);
    let took = start.elapsed();
    drop(running);
    let bytes = |reader: JoinHandle<Vec<u8>>| reader.join().expect("a reader ends with its pipe");
    Ended { status, stdout: bytes(stdout), stderr: bytes(stderr), took }
}

#[test]
#[cfg(unix)]
fn a_hang_is_ended() {
    let mut command = Command::new("sleep");
    command.arg("60");
    let ended = run(command, Duration::from_millis(50));
    assert!(ended.status.is_none());
    assert!(ended.took < Duration::from_secs(50));
}

#[test]
#[cfg(unix)]
fn output_and_status_are_kept() {
    let mut command = Command::new("sh");
    command.args(["-c", "echo out; echo err >&2; exit 3"]);
    let ended = run(command, Duration::from_secs(20));
    assert_eq!((ended.code(), ended.stdout(), ended.stderr()), (Some(3), "out\n".to_owned(), "err\n".to_owned()));
}
