//! What the computations of a run share, and what becomes of an effect.
//!
//! Everything here belongs to the runtime's one thread. A computation is a task ([`computation`]); inside a poll it has
//! the machine to itself. An effect that can answer at once does so and the machine goes on: no poll ends in between, so
//! nobody else runs, however many such effects there are. The others become an operation that the task awaits.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_channel::{Operation as _, Sender};
use tidegate_runtime::{spawn_blocking, spawn_local, JoinHandle};
use tidegate_wait::timer::sleep;

use super::channel::{Channel, Ends, Received, Sent};
use super::code::{Code, EffectInfo, EffectKind, Site};
use super::file::{fail, FileJob};
use super::machine::{Exit, Machine, Saved};
use super::output::Output;
use super::report::{Table, Wait};
use super::stats::{Counts, Stats};
use super::value::Value;
use super::{array, text, End, Failure};
use crate::base::Primitive;
use crate::core::Known;

/// See the module.
#[derive(Debug)]
pub(super) struct World {
    pub(super) code: Arc<Code>,
    machine: RefCell<Machine>,
    output: Output,
    pub(super) counts: Counts,
    pub(super) table: RefCell<Table>,
    start: Instant,
    threads: u32,
    arguments: Vec<String>,
    /// How the run ends, if not by the end of every computation.
    end: RefCell<Option<End>>,
    has_ended: Cell<bool>,
    /// How many computations there are.
    living: Cell<usize>,
    /// Told when there is none any more, or the run has ended.
    over: Sender<()>,
    /// `Done{Unit{}}`
    done: Value,
}

/// What a computation waits for.
enum Park {
    Send(Arc<Channel>, Value),
    Recv(Arc<Channel>),
    /// In milliseconds, not as a `Duration`, which is four times as large.
    TrySend(Arc<Channel>, Value, u32),
    TryRecv(Arc<Channel>, u32),
    Sleep(u32),
    File(Box<FileJob>),
}

/// What became of an effect.
enum Next {
    Answer(Value),
    Park(Park),
    End(End),
}

/// The shortest time that can be waited for: `sleep(0)` parks, too.
const INSTANT: Duration = Duration::from_nanos(1);

/// A computation's side of the world. A panic in it is a fault of ours, which must not look like a deadlock.
struct Inhabitant(Rc<World>);

impl Drop for Inhabitant {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.finish(Some(End::Failed(String::from("the runtime has failed; the reason stands above"))));
        }
    }
}

/// A computation from its beginning to its end.
///
/// A block, and operations that are made where they are awaited: the parameters of an `async fn` would stand in the task
/// twice, and there are many tasks.
#[allow(clippy::manual_async_fn)] // the paragraph above
fn computation(inhabitant: Inhabitant, number: usize, mut saved: Saved) -> impl Future<Output = ()> {
    async move {
        let world = &inhabitant.0;
        while let Some(park) = world.go_on(number, &mut saved) {
            let answer = match park {
                Park::Send(channel, value) => world.sent(match channel.ends() {
                    Ends::Ring(sender, _) => sender.send(value).await.into(),
                    Ends::Blocks(sender, _) => Box::pin(sender.send(value)).await.into(),
                }),
                Park::Recv(channel) => world.received(channel.receiver().recv().await.into()),
                Park::TrySend(channel, value, ms) => world.tried_send(match channel.ends() {
                    Ends::Ring(sender, _) => sender.send(value).timeout(millis(ms)).await.into(),
                    Ends::Blocks(sender, _) => Box::pin(sender.send(value).timeout(millis(ms))).await.into(),
                }),
                Park::TryRecv(channel, ms) => {
                    world.tried_recv(channel.receiver().recv().timeout(millis(ms)).await.into())
                }
                Park::Sleep(ms) => {
                    sleep(millis(ms).max(INSTANT)).await;
                    world.unit()
                }
                Park::File(job) => match spawn_job(job, world.code.known).await {
                    Ok(answer) => answer,
                    Err(error) => fail(&world.code.known, 1, &format!("no thread for a file operation: {error}")),
                },
            };
            world.wake(number);
            saved.answer(answer);
        }
    }
}

fn spawn_job(job: Box<FileJob>, known: Known) -> JoinHandle<Value> {
    spawn_blocking(move || job.run(&known))
}

impl World {
    pub(super) fn new(
        code: Arc<Code>,
        machine: Machine,
        output: Output,
        threads: u32,
        arguments: Vec<String>,
        over: Sender<()>,
    ) -> Rc<World> {
        let known = code.known;
        Rc::new(World {
            code,
            machine: RefCell::new(machine),
            output,
            counts: Counts::default(),
            table: RefCell::default(),
            start: Instant::now(),
            threads,
            arguments,
            end: RefCell::new(None),
            has_ended: Cell::new(false),
            living: Cell::new(0),
            over,
            done: Value::one(known.done, Value::Plain(known.unit)),
        })
    }

    /// A new computation at the tail of the run queue.
    pub(super) fn spawn(self: &Rc<World>, action: Value, site: u32) {
        self.living.set(self.living.get() + 1);
        self.counts.computations.set(self.counts.computations.get() + 1);
        let number = self.table.borrow_mut().add(site);
        let saved = Saved::new(&self.code, action);
        spawn_local(computation(Inhabitant(self.clone()), number, saved)).detach();
    }

    /// How the run has ended before the end of every computation.
    pub(super) fn take_end(&self) -> Option<End> {
        self.end.borrow_mut().take()
    }

    fn finish(&self, end: Option<End>) {
        if let Some(end) = end {
            self.has_ended.set(true);
            self.end.borrow_mut().get_or_insert(end);
        }
        // It has room for one, and one is enough.
        let _told = self.over.try_send(());
    }

    fn wake(&self, number: usize) {
        self.table.borrow_mut().wake(number);
    }

    /// Runs a computation until it waits. `None`: it is over, or everything is.
    fn go_on(self: &Rc<World>, number: usize, saved: &mut Saved) -> Option<Park> {
        if self.has_ended.get() {
            return None;
        }
        let mut machine = self.machine.borrow_mut();
        machine.load(saved);
        loop {
            let effect = match machine.run(&self.code) {
                Ok(Exit::Done(_)) => break,
                Ok(Exit::Effect(effect)) => self.code.effects[effect as usize],
                Err(failure) => {
                    self.finish(Some(failure.into()));
                    return None;
                }
            };
            match self.perform(&mut machine, effect) {
                Next::Answer(value) => machine.answer(value),
                Next::Park(park) => {
                    machine.save(saved);
                    self.park(number, &park);
                    return Some(park);
                }
                Next::End(end) => {
                    self.finish(Some(end));
                    return None;
                }
            }
        }
        self.table.borrow_mut().remove(number);
        self.living.set(self.living.get() - 1);
        if self.living.get() == 0 {
            self.finish(None);
        }
        None
    }

    /// Notes what a computation waits for.
    fn park(&self, number: usize, park: &Park) {
        let wait = match park {
            Park::Send(channel, _) => Wait::Send { room: channel.room, site: channel.site },
            Park::Recv(channel) => Wait::Recv { room: channel.room, site: channel.site },
            Park::TrySend(..) | Park::TryRecv(..) | Park::Sleep(_) => {
                self.counts.timers.set(self.counts.timers.get() + 1);
                Wait::Time
            }
            Park::File(_) => Wait::File,
        };
        self.table.borrow_mut().park(number, wait);
    }

    fn perform(self: &Rc<World>, machine: &mut Machine, effect: EffectInfo) -> Next {
        let EffectKind::Primitive(primitive) = effect.kind else {
            return Next::End(Failure::internal("an effect that is none").into());
        };
        let site = if effect.site == Site::NONE { machine.site() } else { effect.site };
        let mut arguments = machine.arguments.drain(..);
        let mut next = || arguments.next().unwrap_or_default();
        let (first, second, third) = (next(), next(), next());
        drop(arguments);
        match first {
            Value::Channel(channel) => self.on_channel(primitive, channel, second, &third),
            Value::Text(start, buffer) => self.on_text(primitive, &(start, buffer), second),
            Value::U32(number) => self.on_number(primitive, number, second, site),
            Value::File(_) => file_job(primitive, first, second, third),
            Value::Sequence(..) | Value::Effect(..) if primitive == Primitive::IoSpawn => {
                self.spawn(first, site);
                Next::Answer(self.unit())
            }
            _ => self.without_argument(primitive),
        }
    }

    fn on_channel(&self, primitive: Primitive, channel: Arc<Channel>, second: Value, third: &Value) -> Next {
        self.counts.operations.set(self.counts.operations.get() + 1);
        Next::Answer(match (primitive, third) {
            (Primitive::ChanSend, _) => match channel.try_send(second) {
                Sent::Waits(value) => return Next::Park(Park::Send(channel, value)),
                sent => self.sent(sent),
            },
            (Primitive::ChanRecv, _) => match channel.try_recv() {
                Received::Waits => return Next::Park(Park::Recv(channel)),
                received => self.received(received),
            },
            (Primitive::ChanTrySend, Value::U32(ms)) => match channel.try_send(second) {
                Sent::Waits(value) if *ms > 0 => return Next::Park(Park::TrySend(channel, value, *ms)),
                sent => self.tried_send(sent),
            },
            (Primitive::ChanTryRecv, _) => match (channel.try_recv(), second) {
                (Received::Waits, Value::U32(ms)) if ms > 0 => return Next::Park(Park::TryRecv(channel, ms)),
                (received, _) => self.tried_recv(received),
            },
            _ => {
                channel.close();
                self.unit()
            }
        })
    }

    fn on_text(&self, primitive: Primitive, first: &text::Text, second: Value) -> Next {
        let shown = || text::shown(first);
        match primitive {
            Primitive::IoPrint => self.write(first, b"\n"),
            Primitive::IoWrite => self.write(first, b""),
            Primitive::IoPrintErr => {
                // Who reads both in one place sees them in order.
                if let Err(error) = self.output.flush() {
                    return Next::End(End::OutputFailed(error));
                }
                super::write_error(&[shown().as_bytes(), b"\n"]);
                Next::Answer(self.unit())
            }
            Primitive::IoGetEnv => {
                let known = &self.code.known;
                let name = shown();
                Next::Answer(match std::env::var_os(&*name) {
                    Some(value) => Value::one(known.done, text::text(&value.to_string_lossy())),
                    None => fail(known, 1, &format!("{name} is not set")),
                })
            }
            _ => {
                let mode = match second {
                    Value::Text(start, buffer) => text::shown(&(start, buffer)).into_owned(),
                    _ => String::new(),
                };
                Next::Park(Park::File(Box::new(FileJob::Open { path: shown().into_owned(), mode })))
            }
        }
    }

    fn write(&self, content: &text::Text, end: &[u8]) -> Next {
        match self.output.write([text::shown(content).as_bytes(), end]) {
            Ok(()) => Next::Answer(self.unit()),
            Err(error) => Next::End(End::OutputFailed(error)),
        }
    }

    fn on_number(&self, primitive: Primitive, number: u32, second: Value, site: u32) -> Next {
        match (primitive, second) {
            (Primitive::IoSleep, _) => Next::Park(Park::Sleep(number)),
            (Primitive::ChanNew, _) => Next::Answer(Value::Channel(Arc::new(Channel::new(number, site)))),
            (_, Value::Text(start, buffer)) => {
                Next::End(End::Died { code: number, message: text::shown(&(start, buffer)).into_owned() })
            }
            _ => Next::End(Failure::internal("an effect at values of other types").into()),
        }
    }

    fn without_argument(&self, primitive: Primitive) -> Next {
        let known = &self.code.known;
        Next::Answer(match primitive {
            Primitive::IoArgs => array::list(known, self.arguments.iter().map(|argument| text::text(argument))),
            Primitive::IoNow => Value::Nat(self.start.elapsed().as_millis() as u64),
            Primitive::IoThreadCount => Value::U32(self.threads),
            Primitive::IoRandomU32 => Value::one(known.done, Value::U32(random())),
            _ => return Next::End(Failure::internal("an effect at values of other types").into()),
        })
    }

    fn unit(&self) -> Value {
        Value::Plain(self.code.known.unit)
    }

    fn sent(&self, sent: Sent) -> Value {
        match sent {
            Sent::Done => self.done.clone(),
            Sent::Closed(value) | Sent::Waits(value) => Value::one(self.code.known.fail, value),
        }
    }

    fn received(&self, received: Received) -> Value {
        match received {
            Received::Value(value) => Value::one(self.code.known.some, value),
            Received::Closed | Received::Waits => Value::Plain(self.code.known.none),
        }
    }

    fn tried_send(&self, sent: Sent) -> Value {
        match sent {
            Sent::Waits(value) => {
                self.count_time_out();
                Value::one(self.code.known.wait, value)
            }
            sent => Value::one(self.code.known.ready, self.sent(sent)),
        }
    }

    fn tried_recv(&self, received: Received) -> Value {
        match received {
            Received::Waits => {
                self.count_time_out();
                Value::one(self.code.known.wait, self.unit())
            }
            received => Value::one(self.code.known.ready, self.received(received)),
        }
    }

    /// Writes down what has been counted.
    pub(super) fn count(&self, stats: &mut Stats) {
        stats.computations = self.counts.computations.get();
        stats.channel_operations = self.counts.operations.get();
        stats.time_outs = self.counts.time_outs.get();
        stats.timers = self.counts.timers.get();
        stats.peak_parked = self.table.borrow().peak();
    }

    fn count_time_out(&self) {
        self.counts.time_outs.set(self.counts.time_outs.get() + 1);
    }
}

fn millis(ms: u32) -> Duration {
    Duration::from_millis(u64::from(ms))
}

/// From the seeds that the standard library gets from the system: for games and jitter, not for keys.
fn random() -> u32 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new().build_hasher().finish() as u32
}

fn file_job(primitive: Primitive, file: Value, second: Value, third: Value) -> Next {
    let job = match (primitive, second, third) {
        (Primitive::FileRead, Value::U32(max), _) => FileJob::Read(file, max),
        (Primitive::FileReadBytes, Value::U32(max), _) => FileJob::ReadBytes(file, max),
        (Primitive::FileReadAt, Value::U32(offset), Value::U32(max)) => FileJob::ReadAt(file, offset, max),
        (Primitive::FileSize, ..) => FileJob::Size(file),
        (Primitive::FileWrite, Value::Text(start, buffer), _) => {
            FileJob::Write(file, text::shown(&(start, buffer)).into_owned().into_bytes())
        }
        (Primitive::FileWriteBytes, bytes, _) => FileJob::Write(file, bytes_of(bytes)),
        (Primitive::FileClose, ..) => FileJob::Close(file),
        _ => return Next::End(Failure::internal("an effect at values of other types").into()),
    };
    Next::Park(Park::File(Box::new(job)))
}

/// The low bytes of a list's numbers.
fn bytes_of(mut list: Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let mut rest = Value::Empty;
        let is_cell = list.unpack(|(at, part)| match (at, part) {
            (0, Value::U32(byte)) => bytes.push(byte as u8),
            (_, part) => rest = part,
        });
        if !is_cell {
            return bytes;
        }
        list = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::compile::compile;

    #[test]
    fn a_computation_is_small() {
        let text = "import Base\n\ndef main() -> IO(Unit):\n  IO.sleep(1)\n";
        let checked = crate::check_text("small.bend", text, crate::Options::default()).expect("it passes");
        let main = checked.program.main.expect("there is one");
        let (code, _) = compile(&checked.program, &checked.sources, main).expect("it can run");
        let (over, _is_over) = tidegate_channel::bounded(1);
        let output = Output::to(std::io::sink());
        let world = World::new(Arc::new(code), Machine::new(None), output, 1, Vec::new(), over);
        let saved = Saved::new(&world.code, Value::Empty);
        let task = computation(Inhabitant(world.clone()), 0, saved);
        assert!(size_of_val(&task) <= 272, "{} bytes", size_of_val(&task));
    }
}
