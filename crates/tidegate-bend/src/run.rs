//! Runs checked programs on Tidegate's own runtime, channels and timers.
//!
//! | module | what it is |
//! | --- | --- |
//! | `code`, `compile`, `flow` | the core to flat code: which value is moved, which is copied |
//! | `value`, `text`, `array` | values: 16 bytes, counted references, dropped without recursion |
//! | `machine`, `primitive`, `show` | what runs the code: stacks on the heap, so that depth is no danger |
//! | `parallel` | parallel lets on several threads |
//! | `world`, `channel`, `file`, `output` | effects: each a task's operation on a channel, a timer, the blocking pool |
//! | `report`, `stats` | deadlocks, and what a run has done |
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use tidegate_bend::run::{End, Output, Runnable, Settings};
//! use tidegate_bend::{check_text, Options};
//!
//! # struct Shared(Arc<Mutex<Vec<u8>>>);
//! # impl std::io::Write for Shared {
//! #     fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
//! #         self.0.lock().unwrap().write(bytes)
//! #     }
//! #     fn flush(&mut self) -> std::io::Result<()> {
//! #         Ok(())
//! #     }
//! # }
//! let text = "import Base\n\ndef main() -> IO(Unit):\n  IO.print(\"hello\")\n";
//! let checked = check_text("hello.bend", text, Options::default())?;
//! let printed = Arc::new(Mutex::new(Vec::new()));
//! let output = Output::to(Shared(printed.clone()));
//! let ran = Runnable::new(&checked)?.run(Settings::default(), &output);
//! assert!(matches!(ran.end, End::Finished));
//! assert_eq!(*printed.lock().unwrap(), b"hello\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod array;
mod channel;
mod code;
mod compile;
mod file;
mod flow;
mod machine;
mod map;
mod output;
mod parallel;
mod primitive;
mod report;
mod show;
mod stats;
mod text;
mod value;
mod world;

use std::fmt;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use tidegate_runtime::{RunError, Runtime};

pub use machine::MAX_STACK;
pub use output::Output;
pub use report::{Deadlock, Waiting};
pub use stats::Stats;

use crate::Checked;
use code::{Code, Site};
use machine::{Exit, Machine};
use parallel::PoolOwner;
use value::Value;
use world::World;

/// The most threads that evaluate.
pub const MAX_THREADS: usize = 128;

/// How to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many threads evaluate parallel lets; above [`MAX_THREADS`] that many.
    pub threads: NonZeroUsize,
    /// What `IO.args` answers.
    pub arguments: Vec<String>,
}

impl Default for Settings {
    /// One thread, no arguments.
    fn default() -> Settings {
        Settings { threads: NonZeroUsize::MIN, arguments: Vec::new() }
    }
}

/// A program that was not even started: it needs what this runtime has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bend: {}", self.0)
    }
}

impl std::error::Error for Refused {}

/// How a run has ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum End {
    /// Every computation has ended.
    Finished,
    /// `IO.die`.
    Died {
        /// The exit status.
        code: u32,
        /// What is to be said.
        message: String,
    },
    /// A runtime error: what it was.
    Failed(String),
    /// Nothing can go on.
    Deadlock(Deadlock),
    /// The output could not be written.
    OutputFailed(io::Error),
}

impl End {
    /// The exit status.
    #[must_use]
    pub fn status(&self) -> u32 {
        match self {
            End::Finished => 0,
            End::Died { code, .. } => *code,
            End::Failed(_) | End::Deadlock(_) | End::OutputFailed(_) => 1,
        }
    }

    /// What stands on the standard error at the end, without a last line break. `None`: nothing.
    #[must_use]
    pub fn message(&self) -> Option<String> {
        match self {
            End::Finished => None,
            End::Died { message, .. } => Some(message.clone()),
            End::Failed(text) => Some(format!("bend: {text}")),
            End::Deadlock(deadlock) => Some(deadlock.to_string()),
            End::OutputFailed(error) => Some(format!("bend: cannot write to stdout: {error}")),
        }
    }
}

/// What is wrong inside a run.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The program's fault: the text of `bend: TEXT`.
    Error(String),
    /// The run is over; this thread need not go on.
    Stopped,
}

impl Failure {
    pub(crate) fn error(text: impl Into<String>) -> Failure {
        Failure::Error(text.into())
    }

    /// A program that passed the check in full cannot come here. One may in which a type comparison was let pass.
    pub(crate) fn internal(text: &str) -> Failure {
        Failure::Error(format!("{text} (in code that the check has let pass?)"))
    }
}

impl From<Failure> for End {
    fn from(failure: Failure) -> End {
        match failure {
            Failure::Error(text) => End::Failed(text),
            Failure::Stopped => End::Finished,
        }
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub end: End,
    /// What it has done.
    pub stats: Stats,
}

/// A program, compiled.
#[derive(Debug)]
pub struct Runnable {
    code: Arc<Code>,
    main: u32,
}

impl Runnable {
    /// Compiles a checked program.
    ///
    /// # Errors
    /// It has no `main`, or `main` reaches something that this runtime does not run: sockets, bodies in other languages.
    pub fn new(checked: &Checked) -> Result<Runnable, Refused> {
        let Some(main) = checked.program.main else {
            return Err(Refused(String::from("there is no main: the file was checked as a library")));
        };
        let compiled = crate::on_large_stack(|| compile::compile(&checked.program, &checked.sources, main));
        let (code, main) = compiled.map_err(|error| Refused(error.to_string()))?.map_err(Refused)?;
        Ok(Runnable { code: Arc::new(code), main })
    }

    /// Runs it to its end, on this thread. What it prints goes to `output`, which is flushed at the end; the message of the
    /// end is left to the caller.
    pub fn run(&self, settings: Settings, output: &Output) -> Ran {
        let start = Instant::now();
        let mut stats = Stats::default();
        let mut end = self.evaluate(settings, output, &mut stats);
        if let Err(error) = output.flush() {
            end = End::OutputFailed(error);
        }
        stats.wall_time = start.elapsed();
        stats.peak_memory = stats::peak_memory();
        Ran { end, stats }
    }

    /// The value of `main`; if it is an action, what that does.
    fn evaluate(&self, settings: Settings, output: &Output, stats: &mut Stats) -> End {
        let threads = settings.threads.get().min(MAX_THREADS);
        let owner = PoolOwner::new(threads, &self.code);
        let mut machine = Machine::new(owner.as_ref().map(PoolOwner::pool));
        machine.begin(&self.code, self.main, []);
        match machine.run(&self.code) {
            Ok(Exit::Done(action)) if action.is_action() => {
                self.act(action, machine, threads as u32, settings.arguments, output, stats)
            }
            Ok(Exit::Done(value)) => match output.write([show::show(&self.code, &value).as_bytes(), b"\n"]) {
                Ok(()) => End::Finished,
                Err(error) => End::OutputFailed(error),
            },
            Ok(Exit::Effect(_)) => Failure::internal("an effect outside of an action").into(),
            Err(failure) => failure.into(),
        }
    }

    fn act(
        &self,
        action: Value,
        machine: Machine,
        threads: u32,
        arguments: Vec<String>,
        output: &Output,
        stats: &mut Stats,
    ) -> End {
        let idle_output = output.clone();
        let built = Runtime::builder().closed_world(true).on_idle(move || idle_output.flush_quietly()).build();
        let runtime = match built {
            Ok(runtime) => runtime,
            Err(error) => return End::Failed(error.to_string()),
        };
        let (over, is_over) = tidegate_channel::bounded(1);
        let world = World::new(self.code.clone(), machine, output.clone(), threads, arguments, over);
        let main = world.clone();
        let ran = runtime.block_on(async move {
            main.spawn(action, Site::NONE);
            is_over.recv().await
        });
        let end = match (world.take_end(), ran) {
            (Some(end), _) => end,
            (None, Ok(_)) => End::Finished,
            (None, Err(RunError::Deadlock(_))) => End::Deadlock(world.table.borrow().waiting(&self.code)),
            (None, Err(error)) => End::Failed(error.to_string()),
        };
        world.count(stats);
        end
    }
}

/// Writes to the standard error. If that is closed there is nobody to tell.
fn write_error(parts: &[&[u8]]) {
    let mut stderr = io::stderr().lock();
    for part in parts {
        let _written = stderr.write_all(part);
    }
}
