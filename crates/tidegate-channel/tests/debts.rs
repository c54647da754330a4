//! Who leaves a line by a timer may let in many behind it: in parts, between the turns of the wheel (O4, N5, A5).
#![cfg(not(loom))]

mod support;
#[path = "support/watchdog.rs"]
mod watchdog;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tidegate_channel::{bounded, bounded_by, Operation, Receiver, RecvError, ReserveError, WeightedSendError};
use tidegate_wait::context::{enter, Hooks, WaitInfo};
use tidegate_wait::timer::{sleep, Next, Turner, Wheel};
use tidegate_wait::wake_batch::BATCH;

use support::{Look, Woken};
use watchdog::watched;

const MS: Duration = Duration::from_millis(1);
/// How many stand behind the one that leaves: more than a few holds let in.
const LINE: usize = if cfg!(miri) { 4 } else { 8 } * BATCH;

struct Deaf;

impl Turner for Deaf {
    fn earlier(&self) {}
}

impl Hooks for Deaf {
    fn parked(&self, _: WaitInfo) {}
}

fn new_wheel() -> Wheel {
    Wheel::register(Arc::new(Deaf)).expect("a number is free")
}

/// A line on one channel: the first leaves by a timer, and all behind it can go on then.
struct Line {
    what: &'static str,
    first: Pin<Box<dyn Future<Output = bool>>>,
    behind: Vec<Pin<Box<dyn Future<Output = bool>>>>,
    woken: Arc<Woken>,
    rx: Receiver<u64>,
    /// What was received before, plus 1.
    next: u64,
}

impl Line {
    /// A channel limited by weight; the first is as heavy as the limit.
    fn weighted() -> Line {
        let (tx, rx) = bounded_by(2 * LINE as u64, |&n| if n == 1 { 2 * LINE as u64 } else { 1 });
        tx.try_send(0).unwrap();
        let heavy = tx.clone().into_send(1).timeout(MS);
        let first = async { heavy.await == Err(WeightedSendError::TimedOut(1)) };
        let behind = move |n| -> Pin<Box<dyn Future<Output = bool>>> {
            let send = tx.clone().into_send(n);
            Box::pin(async { send.await.is_ok() })
        };
        Line::park("weighted", Box::pin(first), (2..LINE as u64 + 2).map(behind), rx, 0)
    }

    /// A bounded channel; the first wants all slots, and has collected all but one.
    fn reserving() -> Line {
        let (tx, rx) = bounded(LINE + 1);
        (0..=LINE as u64).for_each(|n| tx.try_send(n).unwrap());
        let many = tx.clone().into_reserve_many(LINE + 1).timeout(MS);
        let first = async { many.await.err() == Some(ReserveError::TimedOut) };
        let behind = move |n| -> Pin<Box<dyn Future<Output = bool>>> {
            let send = tx.clone().into_send(n);
            Box::pin(async { send.await.is_ok() })
        };
        let numbers = LINE as u64 + 2..2 * LINE as u64 + 2;
        let line = Line::park("reserving", Box::pin(first), numbers.map(behind), rx, LINE as u64);
        (0..LINE as u64).for_each(|n| assert_eq!(line.rx.try_recv(), Ok(n)));
        assert_eq!((line.woken.count(), line.rx.len()), (0, 1));
        line
    }

    fn park(
        what: &'static str,
        mut first: Pin<Box<dyn Future<Output = bool>>>,
        behind: impl Iterator<Item = Pin<Box<dyn Future<Output = bool>>>>,
        rx: Receiver<u64>,
        next: u64,
    ) -> Line {
        first.parks();
        let (woken, waker) = Woken::new();
        let mut behind: Vec<_> = behind.collect();
        behind.iter_mut().for_each(|send| send.parks_with(&waker));
        Line { what, first, behind, woken, rx, next }
    }

    /// All went on, in order (G2), and nothing is left.
    #[track_caller]
    fn all_went_on(mut self) {
        assert_eq!(self.woken.count(), LINE, "{}", self.what);
        assert!(self.first.ends() && self.behind.iter_mut().all(|send| send.ends()));
        assert_eq!(self.rx.try_recv(), Ok(self.next));
        let rest: Vec<u64> = std::iter::from_fn(|| self.rx.try_recv().ok()).collect();
        assert!(rest.len() == LINE && rest.is_sorted(), "{}: {rest:?}", self.what);
        drop((self.first, self.behind));
        assert_eq!(self.rx.try_recv(), Err(RecvError::Closed), "{}: nobody keeps a half", self.what);
    }
}

/// On a thread whose timers go off only when this wheel is turned; a list that has become a circle is no hang.
fn with_wheel<R>(f: impl FnOnce(&Wheel) -> R) -> R {
    let wheel = new_wheel();
    watched(thread::current().name().map(str::to_owned), || enter(&wheel, &Deaf, || f(&wheel)))
}

/// Each kind of line, on a thread whose timers go off only when its wheel is turned; all deadlines are past.
fn each_line(f: impl Fn(&Wheel, Line)) {
    for make in [Line::weighted, Line::reserving] {
        with_wheel(|wheel| {
            let line = make();
            thread::sleep(2 * MS);
            f(wheel, line);
        });
    }
}

/// G3, G6: one turn lets in a bounded part of the line, and another timer goes off in between.
#[test]
fn a_line_goes_on_in_parts() {
    each_line(|wheel, line| {
        let mut other = Box::pin(sleep(Duration::from_nanos(1)));
        let (mut let_in, mut turns, mut other_ended_at) = (0, 0, None);
        loop {
            let next = wheel.turn();
            turns += 1;
            let part = line.woken.count() - let_in;
            assert!(part <= 2 * BATCH, "{}: {part} in one turn", line.what);
            let_in += part;
            if other_ended_at.is_none() && other.look().is_ready() {
                other_ended_at = Some(let_in);
            }
            if next != Next::More {
                break;
            }
            thread::sleep(Duration::from_micros(50));
        }
        assert!(turns >= LINE / (2 * BATCH), "{}: {turns} turns", line.what);
        assert!(other_ended_at.is_some_and(|let_in| let_in < LINE), "{}: {other_ended_at:?}", line.what);
        line.all_went_on();
    });
}

/// What was begun by a wheel that goes is done by then.
#[test]
fn a_wheel_that_dies_lets_all_in() {
    for make in [Line::weighted, Line::reserving] {
        let wheel = new_wheel();
        let line = enter(&wheel, &Deaf, || {
            let line = make();
            thread::sleep(2 * MS);
            assert_eq!(wheel.turn(), Next::More);
            line
        });
        drop(wheel);
        line.all_went_on();
    }
}

/// O4: two leave one line in one turn: it has one payer, and stands in the wheel once; and so it is the next time.
#[test]
fn two_leave_at_once() {
    with_wheel(|wheel| {
        let (tx, rx) = bounded_by(2 * LINE as u64, |&n| n);
        for way in ["dropped", "ended", "ended"] {
            tx.try_send(1).unwrap();
            let mut heavy = [2 * LINE as u64; 2].map(|n| Box::pin(tx.send(n).timeout(MS)));
            heavy.iter_mut().for_each(Look::parks);
            let (woken, waker) = Woken::new();
            let mut line: Vec<_> = (0..LINE).map(|_| Box::pin(tx.send(1))).collect();
            line.iter_mut().for_each(|send| send.parks_with(&waker));
            thread::sleep(2 * MS);
            assert_eq!(wheel.turn(), Next::More);
            match way {
                "dropped" => drop(heavy),
                _ => assert!(heavy.iter_mut().all(|send| send.ends().is_err())),
            }
            while wheel.turn() == Next::More {}
            assert_eq!((woken.count(), tx.weight()), (LINE, LINE as u64 + 1));
            assert_eq!(std::iter::from_fn(|| rx.try_recv().ok()).count(), LINE + 1);
        }
    });
}

/// The same for reservations, of which only the first has collected anything.
#[test]
fn two_reservations_leave_at_once() {
    with_wheel(|wheel| {
        let (tx, rx) = bounded(LINE + 1);
        for _time in 0..3 {
            (0..=LINE as u64).for_each(|n| tx.try_send(n).unwrap());
            let mut many = [(); 2].map(|()| Box::pin(tx.reserve_many(LINE + 1).timeout(MS)));
            many.iter_mut().for_each(Look::parks);
            let (woken, waker) = Woken::new();
            let mut line: Vec<_> = (0..LINE as u64).map(|n| Box::pin(tx.send(n))).collect();
            line.iter_mut().for_each(|send| send.parks_with(&waker));
            (0..LINE as u64).for_each(|n| assert_eq!(rx.try_recv(), Ok(n)));
            thread::sleep(2 * MS);
            assert_eq!(wheel.turn(), Next::More);
            assert!(many.iter_mut().all(|reservation| reservation.ends().is_err()));
            while wheel.turn() == Next::More {}
            assert_eq!((woken.count(), tx.len()), (LINE, LINE + 1));
            assert!(line.iter_mut().all(|send| send.ends().is_ok()));
            assert_eq!(std::iter::from_fn(|| rx.try_recv().ok()).count(), LINE + 1);
        }
    });
}

/// Several lines have their turns, one part each; none waits for all of another.
#[test]
fn lines_take_turns() {
    each_line(|wheel, line| {
        let others = [Line::weighted(), Line::reserving()];
        thread::sleep(2 * MS);
        assert_eq!(wheel.turn(), Next::More);
        let lines: Vec<Line> = others.into_iter().chain([line]).collect();
        for _ in 0..4 * lines.len() {
            let counts: Vec<usize> = lines.iter().map(|line| line.woken.count()).collect();
            let spread = counts.iter().max().unwrap() - counts.iter().min().unwrap();
            assert!(spread <= 2 * BATCH, "{counts:?}");
            let _more = wheel.turn();
        }
        while wheel.turn() == Next::More {}
        lines.into_iter().for_each(Line::all_went_on);
    });
}

/// N5: what a task finds owed meanwhile, as it leaves the line, it leaves to the wheel; so does a receive.
#[test]
fn a_task_leaves_it_to_the_wheel() {
    each_line(|wheel, mut line| {
        assert_eq!(wheel.turn(), Next::More);
        let let_in = line.woken.count();
        assert!((1..LINE).contains(&let_in));
        drop(line.behind.pop());
        assert!(line.first.ends(), "its task looks at its end");
        assert_eq!(line.woken.count(), let_in, "{}", line.what);
        assert_eq!(line.rx.try_recv(), Ok(line.next));
        assert!(line.woken.count() <= let_in + BATCH, "{}", line.what);
        while wheel.turn() == Next::More {}
        assert_eq!(line.woken.count(), LINE - 1, "{}", line.what);
        assert!(line.behind.iter_mut().all(|send| send.ends()));
        assert_eq!(std::iter::from_fn(|| line.rx.try_recv().ok()).count(), LINE - 1);
    });
}

/// G7: a close refuses who has not been let in yet, in order; what was let in drains; then the receiver sees the end.
#[test]
fn a_close_comes_between() {
    each_line(|wheel, mut line| {
        assert_eq!(wheel.turn(), Next::More);
        let let_in = line.woken.count();
        assert!((1..LINE).contains(&let_in));
        assert!(line.rx.close());
        assert_eq!(line.woken.count(), LINE);
        let sent: Vec<bool> = line.behind.iter_mut().map(Look::ends).collect();
        assert!(sent[..let_in].iter().all(|&sent| sent) && !sent[let_in..].iter().any(|&sent| sent));
        let received = std::iter::from_fn(|| line.rx.try_recv().ok()).count();
        assert_eq!((received, line.rx.len()), (let_in + 1, 0), "{}", line.what);
        while wheel.turn() == Next::More {}
        assert_eq!(line.rx.try_recv(), Err(RecvError::Closed), "{}: no permit is left", line.what);
    });
}

/// O4: the debt keeps the channel's memory, and nothing else; values and halves may go meanwhile.
#[test]
fn everybody_goes_meanwhile() {
    each_line(|wheel, line| {
        assert_eq!(wheel.turn(), Next::More);
        drop(line);
        while wheel.turn() == Next::More {}
        assert_eq!(wheel.armed(), 0);
    });
}

/// G9: receives, drops and turns of the wheel on several threads; nobody who can go on is left.
#[test]
fn turned_beside_other_threads() {
    let rounds = if cfg!(miri) { 2 } else { 200 };
    for round in 0..rounds {
        each_line(|wheel, line| {
            // Else a receive might give the first all that it wants.
            assert_eq!(wheel.turn(), Next::More);
            let received = thread::scope(|scope| {
                let rx = line.rx.clone();
                let receiver = scope.spawn(move || {
                    let mut received = 0;
                    while received <= LINE - round % 3 {
                        received += usize::from(rx.try_recv().is_ok());
                        thread::yield_now();
                    }
                    received
                });
                while wheel.turn() == Next::More {}
                receiver.join().unwrap()
            });
            assert_eq!(line.woken.count(), LINE);
            assert_eq!(line.rx.len(), LINE + 1 - received);
        });
    }
}
