//! Programs made by chance, and what must come of them by the sentences about order and channels.
//!
//! The model is those sentences and nothing else: a FIFO run queue, and channels with a buffer, a queue of
//! receivers and a queue of senders. Its clock moves once, if at all: while one computation keeps busy
//! until every deadline has passed, but for those of an hour. A program that would have to wait an hour
//! is left out.

use std::collections::VecDeque;

use super::expectation::{Expectation, USUAL_LIMIT};
use super::process::run;
use super::programs::{compare, empty_folder, tidegate_run};

const HOUR: u32 = 3_600_000;

/// What a computation does next. The numbers are those of channels and computations.
#[derive(Clone, Copy, Debug)]
enum Act {
    Send {
        to: usize,
        value: u32,
        wait: Wait,
    },
    Receive {
        from: usize,
        wait: Wait,
    },
    Close {
        channel: usize,
    },
    Spawn {
        computation: usize,
    },
    Sleep {
        ms: u32,
    },
    /// Keeps busy, without an effect that parks, until all deadlines but those of an hour have passed.
    Spin,
}

/// How long a send or a receive waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// `Chan.send`, `Chan.recv`
    ForGood,
    /// `Chan.try_send` and `Chan.try_recv` with 0 ms
    NotAtAll,
    /// the same with some ms
    Ms(u32),
}

#[derive(Debug)]
struct Program {
    rooms: Vec<usize>,
    computations: Vec<Vec<Act>>,
}

/// Numbers by chance, the same for the same seed (splitmix64).
#[derive(Debug)]
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bound = u64::try_from(bound).expect("a small number");
        usize::try_from((z ^ (z >> 31)) % bound).expect("below a small number")
    }
}

impl Program {
    fn by_chance(seed: u64) -> Program {
        let mut chance = Chance(seed);
        let rooms = (0..3).map(|_| chance.below(3)).collect();
        // Every eighth is a long one, in which closes are so much rarer.
        let acts = if seed % 8 == 0 { 60 } else { 6 };
        let mut computations: Vec<Vec<Act>> = (0..6)
            .map(|computation| {
                let count = acts + chance.below(acts);
                (0..count).map(|act| Act::by_chance(&mut chance, 4 * acts, computation, act)).collect()
            })
            .collect();
        // Each but the first is spawned by one before it.
        for computation in (1..computations.len()).rev() {
            let spawner = &mut computations[chance.below(computation)];
            let place = chance.below(3);
            spawner.insert(place, Act::Spawn { computation });
        }
        Program { rooms, computations }
    }

    /// Computations that wait for good or for some time, on one side of a channel each, until a last one
    /// has kept busy for longer; then they look for each other without waiting.
    fn with_deadlines(seed: u64) -> Program {
        const WAITERS: usize = 8;
        let mut chance = Chance(seed);
        let mut computations =
            vec![(1..WAITERS + 2).map(|computation| Act::Spawn { computation }).collect::<Vec<Act>>()];
        for computation in 1..=WAITERS {
            let value = u32::try_from(computation * 100).expect("a small number");
            let ms = 60 * (1 + u32::try_from(chance.below(8)).expect("a small number"));
            let wait = if chance.below(2) == 0 { Wait::ForGood } else { Wait::Ms(ms) };
            let first = match chance.below(5) {
                0 => Act::Sleep { ms },
                1 | 2 => Act::Send { to: 0, value, wait },
                _ => Act::Receive { from: 1, wait },
            };
            let count = chance.below(3);
            let then = (0..count).map(|_| match chance.below(31) {
                0 => Act::Close { channel: chance.below(2) },
                1..=15 => Act::Receive { from: 0, wait: Wait::NotAtAll },
                _ => Act::Send { to: 1, value: value + 1, wait: Wait::NotAtAll },
            });
            computations.push([first].into_iter().chain(then).collect());
        }
        computations.push(vec![Act::Spin]);
        Program { rooms: vec![0, 0, 0], computations }
    }

    /// The program in Bend.
    fn text(&self) -> String {
        let mut lines = vec![PRELUDE.to_owned()];
        for (number, acts) in self.computations.iter().enumerate() {
            lines.push(format!(
                "def p{number}(+c0: Chan(U32), +c1: Chan(U32), +c2: Chan(U32)) -> IO(Unit):\n  do IO<Unit>:"
            ));
            lines.extend(acts.iter().enumerate().map(|(place, act)| act.text(number, place)));
            lines.push("    return Unit{}\n".to_owned());
        }
        lines.push("def main() -> IO(Unit):\n  do IO<Unit>:".to_owned());
        lines.extend((0..3).map(|c| format!("    +c{c} : Chan(U32) <- Chan.new(U32, {})", self.rooms[c])));
        lines.push("    p0(c0, c1, c2)\n".to_owned());
        lines.join("\n")
    }
}

const PRELUDE: &str = "import Base

def sent(got: Result<&1, &1, U32, Unit>) -> String:
  match got:
    case Done{_}: \"done\"
    case Fail{v}: \"fail \" ++ U32.show(v)

def try_sent(got: Poll<&1, &1, Result<&1, &1, U32, Unit>, U32>) -> String:
  match got:
    case Ready{answer}: sent(answer)
    case Wait{v}: \"wait \" ++ U32.show(v)

def received(got: Maybe<&1, U32>) -> String:
  match got:
    case Some{v}: \"some \" ++ U32.show(v)
    case None{}: \"none\"

def try_received(got: Poll<&1, &1, Maybe<&1, U32>, Unit>) -> String:
  match got:
    case Ready{answer}: received(answer)
    case Wait{_}: \"wait\"

@unsafe
def spin(+until: Nat, early: Bool) -> IO(Unit):
  match early:
    case False{}: IO.pure(Unit, Unit{})
    case True{}: IO.bind(Nat, Unit, IO.now(), now => spin(until, Nat.is_lt(now, until)))

def spin_for(ms: Nat) -> IO(Unit):
  IO.bind(Nat, Unit, IO.now(), now => spin(Nat.add(now, ms), True{}))
";

impl Act {
    /// A close in one of so many; else a send or a receive.
    fn by_chance(chance: &mut Chance, closes: usize, computation: usize, act: usize) -> Act {
        let channel = chance.below(3);
        let wait = [Wait::ForGood, Wait::ForGood, Wait::NotAtAll, Wait::Ms(HOUR)][chance.below(4)];
        match chance.below(closes) {
            0 => Act::Close { channel },
            n if n % 2 == 0 => Act::Receive { from: channel, wait },
            _ => {
                let value = u32::try_from(computation * 1000 + act).expect("a small number");
                Act::Send { to: channel, value, wait }
            }
        }
    }

    /// Its statements: it acts, and tells what came of it.
    fn text(self, computation: usize, place: usize) -> String {
        let (act, told) = match self {
            Act::Send { to, value, wait: Wait::ForGood } => {
                (format!("r{place} : Result<&1, &1, U32, Unit> <- Chan.send(U32, c{to}, {value})"), "sent")
            }
            Act::Send { to, value, wait } => {
                let ms = wait.ms();
                let answer = "Poll<&1, &1, Result<&1, &1, U32, Unit>, U32>";
                (format!("r{place} : {answer} <- Chan.try_send(U32, c{to}, {value}, {ms})"), "try_sent")
            }
            Act::Receive { from, wait: Wait::ForGood } => {
                (format!("r{place} : Maybe<&1, U32> <- Chan.recv(U32, c{from})"), "received")
            }
            Act::Receive { from, wait } => {
                let ms = wait.ms();
                let answer = "Poll<&1, &1, Maybe<&1, U32>, Unit>";
                (format!("r{place} : {answer} <- Chan.try_recv(U32, c{from}, {ms})"), "try_received")
            }
            Act::Close { channel } => {
                return format!("    Chan.close(U32, c{channel})\n    IO.print(\"{computation}.{place} closed\")");
            }
            Act::Spawn { computation: spawned } => {
                let act = format!("IO.spawn(Unit, p{spawned}(c0, c1, c2))");
                return format!("    {act}\n    IO.print(\"{computation}.{place} spawned\")");
            }
            Act::Sleep { ms } => return format!("    IO.sleep({ms})\n    IO.print(\"{computation}.{place} slept\")"),
            Act::Spin => return format!("    spin_for(700n)\n    IO.print(\"{computation}.{place} spun\")"),
        };
        format!("    {act}\n    IO.print(\"{computation}.{place} \" ++ {told}(r{place}))")
    }
}

impl Wait {
    fn ms(self) -> u32 {
        match self {
            Wait::Ms(ms) => ms,
            Wait::ForGood | Wait::NotAtAll => 0,
        }
    }
}

#[derive(Debug, Default)]
struct Channel {
    room: usize,
    closed: bool,
    buffer: VecDeque<u32>,
    receivers: VecDeque<usize>,
    senders: VecDeque<(usize, u32)>,
}

/// A computation: where it is, and what the effect there answered if it was woken from it.
#[derive(Debug, Default)]
struct State {
    place: usize,
    woken_with: Option<String>,
}

/// The end of a run of the model.
#[derive(Debug, PartialEq, Eq)]
enum End {
    AllEnded,
    Deadlock,
    /// Somebody would wait for an hour.
    Hangs,
}

#[derive(Debug)]
struct Model<'p> {
    program: &'p Program,
    channels: Vec<Channel>,
    states: Vec<State>,
    queue: VecDeque<usize>,
    parked: usize,
    /// Deadlines in the order in which they were parked on.
    timers: Vec<(u32, usize)>,
    spun: bool,
    output: Vec<String>,
}

impl<'p> Model<'p> {
    fn new(program: &'p Program) -> Model<'p> {
        Model {
            program,
            channels: program.rooms.iter().map(|room| Channel { room: *room, ..Channel::default() }).collect(),
            states: program.computations.iter().map(|_| State::default()).collect(),
            queue: VecDeque::from([0]),
            parked: 0,
            timers: Vec::new(),
            spun: false,
            output: Vec::new(),
        }
    }

    fn run(mut self) -> (Vec<String>, End) {
        while let Some(computation) = self.queue.pop_front() {
            self.turn(computation);
            if std::mem::take(&mut self.spun) {
                self.expire();
            }
        }
        let end = match (self.parked, self.timers.len()) {
            (0, _) => End::AllEnded,
            (_, 0) => End::Deadlock,
            _ => End::Hangs,
        };
        (self.output, end)
    }

    /// The computation runs until it parks or ends.
    fn turn(&mut self, computation: usize) {
        let program = self.program;
        while let Some(act) = program.computations[computation].get(self.states[computation].place) {
            let answer = self.states[computation].woken_with.take().or_else(|| self.act(computation, *act));
            let Some(answer) = answer else {
                self.parked += 1;
                self.timers.extend(act.deadline().map(|ms| (ms, computation)));
                return;
            };
            self.output.push(format!("{computation}.{} {answer}", self.states[computation].place));
            self.states[computation].place += 1;
        }
    }

    /// What the effect answers at once; `None`: it parks.
    fn act(&mut self, computation: usize, act: Act) -> Option<String> {
        match act {
            Act::Spawn { computation } => {
                self.queue.push_back(computation);
                Some("spawned".to_owned())
            }
            Act::Close { channel } => {
                self.close(channel);
                Some("closed".to_owned())
            }
            Act::Sleep { .. } => None,
            Act::Spin => {
                self.spun = true;
                Some("spun".to_owned())
            }
            Act::Send { to, value, wait } => {
                let answer = self.send(to, value);
                if answer.is_none() && wait == Wait::NotAtAll {
                    return Some(format!("wait {value}"));
                }
                if answer.is_none() {
                    self.channels[to].senders.push_back((computation, value));
                }
                answer
            }
            Act::Receive { from, wait } => {
                let answer = self.receive(from);
                if answer.is_none() && wait == Wait::NotAtAll {
                    return Some("wait".to_owned());
                }
                if answer.is_none() {
                    self.channels[from].receivers.push_back(computation);
                }
                answer
            }
        }
    }

    fn send(&mut self, to: usize, value: u32) -> Option<String> {
        let channel = &mut self.channels[to];
        if channel.closed {
            return Some(format!("fail {value}"));
        }
        if let Some(receiver) = channel.receivers.pop_front() {
            self.wake(receiver, format!("some {value}"));
            return Some("done".to_owned());
        }
        if channel.buffer.len() < channel.room {
            channel.buffer.push_back(value);
            return Some("done".to_owned());
        }
        None
    }

    fn receive(&mut self, from: usize) -> Option<String> {
        let channel = &mut self.channels[from];
        let next = channel.senders.front().map(|(sender, _)| *sender);
        if let Some(value) = channel.buffer.pop_front() {
            if let Some((_, refill)) = channel.senders.pop_front() {
                channel.buffer.push_back(refill);
            }
            if let Some(sender) = next {
                self.wake(sender, "done".to_owned());
            }
            return Some(format!("some {value}"));
        }
        if let Some((sender, value)) = channel.senders.pop_front() {
            self.wake(sender, "done".to_owned());
            return Some(format!("some {value}"));
        }
        channel.closed.then(|| "none".to_owned())
    }

    fn close(&mut self, channel: usize) {
        let channel = &mut self.channels[channel];
        channel.closed = true;
        let (receivers, senders) = (std::mem::take(&mut channel.receivers), std::mem::take(&mut channel.senders));
        for receiver in receivers {
            self.wake(receiver, "none".to_owned());
        }
        for (sender, value) in senders {
            self.wake(sender, format!("fail {value}"));
        }
    }

    /// All that is due is handled in deadline order, ties in park order.
    fn expire(&mut self) {
        let mut due: Vec<(u32, usize)> = self.timers.iter().copied().filter(|(ms, _)| *ms < HOUR).collect();
        due.sort_by_key(|(ms, _)| *ms);
        for (_, computation) in due {
            let answer = match self.program.computations[computation][self.states[computation].place] {
                Act::Send { to, value, .. } => {
                    self.channels[to].senders.retain(|(sender, _)| *sender != computation);
                    format!("wait {value}")
                }
                Act::Receive { from, .. } => {
                    self.channels[from].receivers.retain(|receiver| *receiver != computation);
                    "wait".to_owned()
                }
                Act::Sleep { .. } => "slept".to_owned(),
                act => unreachable!("{act:?} has no deadline"),
            };
            self.wake(computation, answer);
        }
    }

    /// A woken waiter goes to the tail.
    fn wake(&mut self, computation: usize, answer: String) {
        self.states[computation].woken_with = Some(answer);
        self.parked -= 1;
        self.timers.retain(|(_, sleeper)| *sleeper != computation);
        self.queue.push_back(computation);
    }
}

impl Act {
    /// After how many ms it would be woken if it parked.
    fn deadline(self) -> Option<u32> {
        match self {
            Act::Send { wait: Wait::Ms(ms), .. } | Act::Receive { wait: Wait::Ms(ms), .. } | Act::Sleep { ms } => {
                Some(ms)
            }
            _ => None,
        }
    }
}

/// The header that says what the model says; `None` if it is a program for an hour.
fn header(program: &Program) -> Option<String> {
    let (output, end) = Model::new(program).run();
    let stdout: String = output.iter().flat_map(|line| ["# stdout: ", line, "\n"]).collect();
    match end {
        End::Hangs => None,
        End::AllEnded => Some(stdout),
        End::Deadlock => {
            let line = "bend: deadlock: every computation waits on a channel";
            Some(stdout + "# status: 1\n# stderr: " + line + "\n# stderr: ...\n")
        }
    }
}

/// Runs these programs and compares what comes of them with what the model says.
fn check(name: &str, count: usize, programs: impl Iterator<Item = Program>) {
    let folder = empty_folder(name);
    let mut failures = Vec::new();
    let programs = programs.filter_map(|program| Some((header(&program)?, program)));
    for (number, (header, program)) in programs.enumerate().take(count) {
        let path = folder.join(format!("{name}{number}.bend"));
        std::fs::write(&path, header.clone() + &program.text()).expect("the file can be written");
        let mut command = tidegate_run(&path);
        command.args(["--threads", if number % 4 == 0 { "2" } else { "1" }]);
        let expectation = Expectation::read(&header).expect("a header");
        if let Err(failure) = compare(&expectation, &run(command, USUAL_LIMIT)) {
            failures.push(format!("{}: {failure}", path.display()));
        }
    }
    let failed = failures.len();
    failures.truncate(3);
    assert!(failures.is_empty(), "{failed} of {count} programs failed, for instance:\n\n{}", failures.join("\n\n"));
}

#[test]
fn programs_by_chance_do_as_the_model_does() {
    check("chance", 120, (0..).map(Program::by_chance));
}

#[test]
fn deadlines_by_chance_do_as_the_model_does() {
    check("deadlines", 12, (0..).map(Program::with_deadlines));
}

/// How many of the programs end, how many deadlock, and all that is expected of them.
fn kinds(programs: impl Iterator<Item = Program>) -> (usize, usize, String) {
    let headers: Vec<String> = programs.filter_map(|program| header(&program)).collect();
    let deadlocks = headers.iter().filter(|header| header.contains("deadlock")).count();
    (headers.len() - deadlocks, deadlocks, headers.concat())
}

/// The programs are worth running: many end each way, and each kind of answer comes.
#[test]
fn the_programs_by_chance_are_of_all_kinds() {
    let (ends, deadlocks, text) = kinds((0..1000).map(Program::by_chance));
    assert!(ends > 40 && deadlocks > 40, "{ends} end, {deadlocks} deadlocks");
    for answer in [" done\n", " fail ", " some ", " none\n", " wait\n", " wait ", " spawned\n", " closed\n"] {
        assert!(text.matches(answer).count() > 100, "hardly any{answer}");
    }
    let (ends, deadlocks, text) = kinds((0..100).map(Program::with_deadlines));
    assert!(ends > 10 && deadlocks > 10, "{ends} end, {deadlocks} deadlocks");
    for answer in [" done\n", " fail ", " some ", " none\n", " wait\n", " wait ", " slept\n", " closed\n"] {
        assert!(text.matches(answer).count() > 20, "hardly any{answer}");
    }
}
