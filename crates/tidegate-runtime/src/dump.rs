//! What everybody waits for, as a table for people and as JSON for programs.

use core::fmt;
use core::panic::Location;
use std::time::Duration;

use tidegate_wait::origin::Origin;

use crate::deadlock;
use crate::handle::Shared;
use crate::scheduler::{pool, Local, Status, View, WorkerPool};
use crate::task::Header;

/// What a task is called that runs on a thread of its own.
const JOB: &str = "blocking job";

/// A picture of a runtime: its tasks in the order of their spawns, its blocking jobs, and who waits for whom in a circle.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidegate_runtime::{spawn_named, yield_now, Handle, Runtime};
/// let rt = Runtime::new()?;
/// rt.block_on(async {
///     let _sleeper = spawn_named("sleeper", tidegate_wait::timer::sleep(std::time::Duration::from_secs(9)));
///     yield_now().await;
///     let dump = Handle::current()?.dump();
///     assert!(dump.to_string().contains("sleeper"));
///     assert!(dump.to_json().contains("\"sleep\""));
///     Ok::<_, tidegate_runtime::NoRuntime>(())
/// })??;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Dump {
    /// The tasks that have not ended, in the order of their spawns; in a pool, of those that one thread has spawned.
    pub tasks: Vec<TaskInfo>,
    /// The blocking jobs that are running.
    pub jobs: Vec<JobInfo>,
    /// How many blocking jobs have not begun.
    pub queued_jobs: usize,
    /// Circles of tasks, by their indices in `tasks`, in which each joins the next and nothing else can wake any.
    pub circles: Vec<Vec<usize>>,
    /// False: the runtime did not answer in time, or is shut down; the tasks are missing.
    pub is_complete: bool,
}

/// A task in a [`Dump`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskInfo {
    /// What it was called.
    pub name: Option<String>,
    /// Where it was spawned.
    pub spawned: &'static Location<'static>,
    /// What it is doing.
    pub state: TaskState,
    /// Its address, as objects that are tasks have it.
    pub(crate) id: usize,
}

/// What a task is doing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TaskState {
    /// It is being polled.
    Running,
    /// It is queued.
    Runnable,
    /// It waits on something of Tidegate's. (On the last, if its last poll left several parked.)
    Waiting {
        /// What for.
        object: ObjectInfo,
        /// For how long, as of the scheduler's last look at the clock.
        since: Duration,
        /// Something else may end the wait, too: a limit in time, a token.
        is_limited: bool,
    },
    /// It waits on something that is not Tidegate's.
    Elsewhere,
}

/// Something that is waited for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ObjectInfo {
    /// What it is: `"channel"`, `"sleep"`, `"task"`, `"blocking job"` …
    pub kind: &'static str,
    /// What the task does with it: `"send"`, `"receive"` …
    pub operation: &'static str,
    /// What it was called.
    pub name: Option<String>,
    /// Where it was made.
    pub created: Option<&'static Location<'static>>,
    /// Its number; equal for the same object.
    pub id: usize,
    /// The task, if it is one and is alive: its index in [`Dump::tasks`].
    pub task: Option<usize>,
}

/// A blocking job in a [`Dump`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobInfo {
    /// What it was called.
    pub name: Option<String>,
    /// Where it was spawned.
    pub spawned: &'static Location<'static>,
    /// For how long it has been running.
    pub since: Duration,
    id: usize,
}

impl Dump {
    pub(crate) fn of(local: &Local) -> Dump {
        Dump::of_view(local.shared(), &View::of(local))
    }

    /// From any thread.
    pub(crate) fn of_pool(shared: &Shared, workers: &'static WorkerPool) -> Dump {
        Dump::of_view(shared, &View::Pool(pool::View::new(workers)))
    }

    fn of_view(shared: &Shared, view: &View<'_>) -> Dump {
        let mut dump = Dump::unanswered(shared);
        dump.is_complete = true;
        view.for_each(|task| dump.tasks.extend(TaskInfo::of(view, task)));
        let index: std::collections::HashMap<usize, usize> =
            dump.tasks.iter().enumerate().map(|(index, task)| (task.id, index)).collect();
        let named: Vec<_> = dump.tasks.iter().map(|task| (task.name.clone(), task.spawned)).collect();
        for task in &mut dump.tasks {
            match &mut task.state {
                TaskState::Waiting { object, .. } if object.kind == deadlock::TASK => {
                    object.task = index.get(&object.id).copied();
                    if let Some(joined) = object.task {
                        (object.name, object.created) = (named[joined].0.clone(), Some(named[joined].1));
                    } else if let Some(job) = dump.jobs.iter().find(|job| job.id == object.id) {
                        object.kind = JOB;
                        (object.name, object.created) = (job.name.clone(), Some(job.spawned));
                    }
                }
                _ => {}
            }
        }
        let circles = deadlock::circles(view);
        dump.circles = circles.iter().map(|circle| circle.iter().map(|id| index[id]).collect()).collect();
        dump
    }

    /// Without its tasks.
    pub(crate) fn unanswered(shared: &Shared) -> Dump {
        let (jobs, queued_jobs) = shared.pool().jobs();
        let job = |job: crate::blocking::RunningJob| JobInfo {
            name: job.name,
            spawned: job.spawned,
            since: job.since.elapsed(),
            id: job.id,
        };
        Dump {
            tasks: Vec::new(),
            jobs: jobs.into_iter().map(job).collect(),
            queued_jobs,
            circles: Vec::new(),
            is_complete: false,
        }
    }
}

impl TaskInfo {
    fn of(view: &View<'_>, task: &Header) -> Option<TaskInfo> {
        let id = core::ptr::from_ref(task).addr();
        let state = match view.status(task) {
            Status::Ended => return None,
            Status::Running => TaskState::Running,
            Status::Runnable => TaskState::Runnable,
            Status::Parked(None) => TaskState::Elsewhere,
            Status::Parked(Some(wait)) => TaskState::Waiting {
                object: ObjectInfo::of(view.names_of(wait.what), wait.object, wait.origin),
                since: Duration::from_nanos(view.now_ns().saturating_sub(wait.since)),
                is_limited: wait.is_limited,
            },
        };
        Some(TaskInfo { name: task.spawned.name().map(str::to_owned), spawned: task.spawned.place(), state, id })
    }

    /// Its name, or where it was spawned.
    fn label(&self) -> String {
        match &self.name {
            Some(name) => name.clone(),
            None => format!("(spawned at {})", self.spawned),
        }
    }
}

impl ObjectInfo {
    fn of((operation, kind): (&'static str, &'static str), id: usize, origin: Origin) -> ObjectInfo {
        ObjectInfo { kind, operation, name: origin.name().map(str::to_owned), created: origin.place(), id, task: None }
    }
}

impl fmt::Display for ObjectInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            "sleep" => return f.write_str("sleep"),
            kind => write!(f, "{} on {kind} ", self.operation)?,
        }
        match &self.name {
            Some(name) => write!(f, "{name:?}")?,
            None => write!(f, "{:#x}", self.id)?,
        }
        match self.created {
            Some(place) if [deadlock::TASK, JOB].contains(&self.kind) => write!(f, " (spawned at {place})"),
            Some(place) => write!(f, " (made at {place})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskState::Running => f.write_str("running"),
            TaskState::Runnable => f.write_str("runnable"),
            TaskState::Elsewhere => f.write_str("waits on something outside of Tidegate"),
            TaskState::Waiting { object, since, is_limited } => {
                let limited = if *is_limited { ", with a limit" } else { "" };
                write!(f, "{object}, for {since:.1?}{limited}")
            }
        }
    }
}

/// The table for people.
impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_complete {
            writeln!(
                f,
                "the runtime did not answer: it is not running, or one poll takes long; its tasks are missing"
            )?;
        }
        let rows: Vec<[String; 3]> = self
            .tasks
            .iter()
            .map(|task| {
                let name = task.name.clone().unwrap_or_else(|| "-".into());
                [name, task.spawned.to_string(), task.state.to_string()]
            })
            .collect();
        let width = |column: usize, title: &str| rows.iter().map(|row| row[column].len()).chain([title.len()]).max();
        let (name, spawned) = (width(0, "task").unwrap_or(0), width(1, "spawned at").unwrap_or(0));
        writeln!(f, "{:name$}  {:spawned$}  what it does", "task", "spawned at")?;
        for [task, place, state] in &rows {
            writeln!(f, "{task:name$}  {place:spawned$}  {state}")?;
        }
        for circle in &self.circles {
            let names: Vec<String> = circle.iter().map(|index| self.tasks[*index].label()).collect();
            writeln!(f, "a circle: {} joins {}", names.join(", which joins "), names[0])?;
        }
        for job in &self.jobs {
            let name = job.name.as_deref().unwrap_or("-");
            writeln!(f, "blocking job {name} (spawned at {}): running for {:.1?}", job.spawned, job.since)?;
        }
        match self.queued_jobs {
            0 => Ok(()),
            queued => writeln!(f, "blocking jobs that have not begun: {queued}"),
        }
    }
}

impl Dump {
    /// The same for programs: one JSON object, `{"complete", "tasks", "circles", "jobs", "queued_jobs"}`; times in
    /// nanoseconds.
    #[must_use]
    pub fn to_json(&self) -> String {
        let list = |items: Vec<String>| format!("[{}]", items.join(","));
        let circles = self.circles.iter().map(|circle| list(circle.iter().map(usize::to_string).collect())).collect();
        let tasks = self.tasks.iter().map(TaskInfo::to_json).collect();
        let jobs = self
            .jobs
            .iter()
            .map(|job| {
                let (name, place) = (optional(job.name.as_deref()), string(&job.spawned.to_string()));
                format!(r#"{{"name":{name},"spawned":{place},"since_ns":{}}}"#, job.since.as_nanos())
            })
            .collect();
        format!(
            r#"{{"complete":{},"tasks":{},"circles":{},"jobs":{},"queued_jobs":{}}}"#,
            self.is_complete,
            list(tasks),
            list(circles),
            list(jobs),
            self.queued_jobs
        )
    }
}

impl TaskInfo {
    fn to_json(&self) -> String {
        let (name, place) = (optional(self.name.as_deref()), string(&self.spawned.to_string()));
        let state = match &self.state {
            TaskState::Running => r#""state":"running""#.into(),
            TaskState::Runnable => r#""state":"runnable""#.into(),
            TaskState::Elsewhere => r#""state":"elsewhere""#.into(),
            TaskState::Waiting { object, since, is_limited } => format!(
                r#""state":"waiting","object":{},"since_ns":{},"limited":{is_limited}"#,
                object.to_json(),
                since.as_nanos()
            ),
        };
        format!(r#"{{"name":{name},"spawned":{place},{state}}}"#)
    }
}

impl ObjectInfo {
    fn to_json(&self) -> String {
        let place = self.created.map(ToString::to_string);
        let task = self.task.map_or_else(|| "null".into(), |task| task.to_string());
        format!(
            r#"{{"kind":{},"operation":{},"id":{},"name":{},"created":{},"task":{task}}}"#,
            string(self.kind),
            string(self.operation),
            self.id,
            optional(self.name.as_deref()),
            optional(place.as_deref()),
        )
    }
}

fn optional(text: Option<&str>) -> String {
    text.map_or_else(|| "null".into(), string)
}

/// A JSON string.
fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
