//! `tidegate run`.

use std::ffi::OsString;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tidegate_bend::run::{Output, Runnable, Settings, MAX_THREADS};
use tidegate_bend::{check_file, Options};

/// How long an interrupt waits for a write that is under way, to whoever reads too slowly.
const PATIENCE: Duration = Duration::from_millis(200);

/// The status after an interrupt, as shells give it: 128 and the number of the signal.
const INTERRUPTED: i32 = 130;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The program's file; what it imports is found from there.
    file: PathBuf,
    /// How many threads evaluate parallel lets: the CPUs, unless set; 128 at most.
    ///
    /// IO computations never run in parallel with each other.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "", allow_hyphen_values = true)]
    threads: Option<String>,
    /// Print what the run has done on stderr: computations, channel operations, time-outs, timers, memory, time.
    #[arg(long)]
    stats: bool,
    /// With --stats: one JSON object, on stderr, in the last line.
    #[arg(long, requires = "stats")]
    json: bool,
    /// What IO.args answers. `--` ends the options of this command: what comes after it may begin with a dash.
    #[arg(value_name = "ARGS")]
    arguments: Vec<OsString>,
}

/// A count of threads as it was written; too many are as many as there may be.
fn threads(text: Option<&str>) -> Option<NonZeroUsize> {
    let Some(text) = text else {
        return Some(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));
    };
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    NonZeroUsize::new(text.parse().unwrap_or(MAX_THREADS))
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let Some(threads) = threads(arguments.threads.as_deref()) else {
        return fail("bend: expected a thread count of 1 or more after --threads");
    };
    let checked = match check_file(&arguments.file, Options::default()) {
        Ok(checked) => checked,
        Err(failure) => return crate::reject(&failure),
    };
    let runnable = match Runnable::new(&checked) {
        Ok(runnable) => runnable,
        Err(refused) => return fail(&refused.to_string()),
    };
    drop(checked);
    let output = crate::stdout::output();
    if let Err(error) = flush_at_interrupt(&output) {
        return fail(&format!("bend: cannot take interrupts: {error}"));
    }
    let words = arguments.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let ran = runnable.run(Settings { threads, arguments: words }, &output);
    if let Some(message) = ran.end.message() {
        tell(&message);
    }
    if arguments.stats {
        match arguments.json {
            true => tell(&ran.stats.to_json()),
            false => tell(ran.stats.to_string().trim_end()),
        }
    }
    // The system takes the low byte, as from any program. What the run has left in memory goes with the process.
    std::process::exit(ran.end.status() as i32)
}

fn flush_at_interrupt(output: &Output) -> Result<(), ctrlc::Error> {
    let output = output.clone();
    ctrlc::set_handler(move || {
        // Whether it could be written or not, the program ends.
        let _written = output.flush_within(PATIENCE);
        std::process::exit(INTERRUPTED);
    })
}

/// Writes a line to stderr. If that is closed there is nobody to tell.
fn tell(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _written = stderr.write_all(text.as_bytes()).and_then(|()| stderr.write_all(b"\n"));
}

pub(crate) fn fail(text: &str) -> ExitCode {
    tell(text);
    ExitCode::FAILURE
}
