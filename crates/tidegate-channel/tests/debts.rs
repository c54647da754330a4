//! Who leaves a line by a timer may let in many behind it: the thread of the timer a few, the driver thread the others (O4,
//! N5, A5).
#![cfg(not(loom))]

mod support;
#[path = "support/watchdog.rs"]
mod watchdog;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tidegate_channel::{bounded, bounded_by, Operation, Receiver, RecvError, ReserveError, WeightedSendError};
use tidegate_wait::context::{enter, Hooks, WaitInfo};
use tidegate_wait::timer::{is_settling, sleep, Next, Turner, Wheel};
use tidegate_wait::wake_batch::BATCH;

use support::Look;
use watchdog::watched;

const MS: Duration = Duration::from_millis(1);
/// How many stand behind the one that leaves: more than a few holds let in.
const LINE: usize = if cfg!(miri) { BATCH + 8 } else { 8 * BATCH };

/// Counts its wakes, by thread: that of the test, or another.
struct Woken {
    home: ThreadId,
    here: AtomicUsize,
    elsewhere: AtomicUsize,
}

impl Woken {
    fn new() -> (Arc<Woken>, Waker) {
        let home = thread::current().id();
        let woken = Arc::new(Woken { home, here: AtomicUsize::new(0), elsewhere: AtomicUsize::new(0) });
        (woken.clone(), Waker::from(woken))
    }

    fn here(&self) -> usize {
        self.here.load(SeqCst)
    }

    fn count(&self) -> usize {
        self.here() + self.elsewhere.load(SeqCst)
    }

    /// Until so many have been woken; the watchdog waits for us.
    fn reaches(&self, n: usize) {
        while self.count() < n {
            thread::yield_now();
        }
        assert_eq!(self.count(), n);
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        let count = if thread::current().id() == self.home { &self.here } else { &self.elsewhere };
        count.fetch_add(1, SeqCst);
    }
}

/// Nobody is let in any more.
fn settle() {
    while is_settling() {
        thread::yield_now();
    }
}

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

    /// All go on, in order (G2), and nothing is left.
    #[track_caller]
    fn all_go_on(mut self) {
        self.woken.reaches(LINE);
        assert!(self.first.ends() && self.behind.iter_mut().all(|send| send.ends()));
        assert_eq!(self.rx.try_recv(), Ok(self.next));
        let rest: Vec<u64> = std::iter::from_fn(|| self.rx.try_recv().ok()).collect();
        assert!(rest.len() == LINE && rest.is_sorted(), "{}: {rest:?}", self.what);
        settle();
        drop((self.first, self.behind));
        assert_eq!(self.rx.try_recv(), Err(RecvError::Closed), "{}: nobody keeps a half", self.what);
    }
}

/// On a thread whose timers go off only when this wheel is turned.
fn with_wheel<R>(f: impl FnOnce(&Wheel) -> R) -> R {
    let wheel = new_wheel();
    watched(thread::current().name().map(str::to_owned), || enter(&wheel, &Deaf, || f(&wheel)))
}

fn turn_all(wheel: &Wheel) {
    while wheel.turn() == Next::More {}
}

/// Each kind of line, all deadlines past.
fn each_line(f: impl Fn(&Wheel, Line)) {
    for make in [Line::weighted, Line::reserving] {
        with_wheel(|wheel| {
            let line = make();
            thread::sleep(2 * MS);
            f(wheel, line);
        });
    }
}

/// G3, G6: the thread of the timer lets in one hold's part, though it turns its wheel until nothing is left to do; those it
/// leaves go on although it does nothing any more.
#[test]
fn a_timers_thread_lets_in_a_part() {
    each_line(|wheel, line| {
        turn_all(wheel);
        let here = line.woken.here();
        assert!((1..=BATCH).contains(&here), "{}: {here} of {LINE}", line.what);
        let woken = line.woken.clone();
        line.all_go_on();
        assert_eq!(woken.here(), here);
    });
}

/// G3, G6: a timer of the driver's own goes off before it has let in a long line.
#[test]
fn the_driver_has_other_timers() {
    if cfg!(miri) {
        return;
    }
    const LONG: usize = 50_000;
    /// Arms a timer at its first wake, on the thread that wakes it; counts the others.
    #[derive(Default)]
    struct Arms(AtomicUsize, Mutex<Option<Pin<Box<tidegate_wait::timer::Sleep>>>>, Arc<Mutex<Option<usize>>>);
    struct Ends(Arc<Arms>);
    impl Wake for Ends {
        fn wake(self: Arc<Self>) {
            let let_in = self.0 .0.load(SeqCst);
            self.0 .2.lock().unwrap().get_or_insert(let_in);
        }
    }
    impl Wake for Arms {
        fn wake(self: Arc<Self>) {
            if self.0.fetch_add(1, SeqCst) == BATCH {
                let mut sleep = Box::pin(sleep(Duration::from_nanos(1)));
                assert!(sleep.look_with(&Waker::from(Arc::new(Ends(self.clone())))).is_pending());
                *self.1.lock().unwrap() = Some(sleep);
            }
        }
    }
    with_wheel(|wheel| {
        let arms = Arc::new(Arms::default());
        let (tx, _rx) = bounded_by(LONG as u64 + 1, |&n: &u64| n);
        tx.try_send(1).unwrap();
        let mut heavy = Box::pin(tx.send(LONG as u64 + 1).timeout(MS));
        heavy.parks();
        let waker = Waker::from(arms.clone());
        let mut line: Vec<_> = (0..LONG).map(|_| Box::pin(tx.send(1))).collect();
        line.iter_mut().for_each(|send| send.parks_with(&waker));
        thread::sleep(2 * MS);
        turn_all(wheel);
        while arms.0.load(SeqCst) < LONG {
            thread::yield_now();
        }
        let let_in = *arms.2.lock().unwrap();
        assert!(let_in.is_some_and(|let_in| let_in < LONG), "it went off after {let_in:?}");
    });
}

/// What a wheel has begun goes on when it has died.
#[test]
fn the_wheel_dies_meanwhile() {
    for make in [Line::weighted, Line::reserving] {
        let wheel = new_wheel();
        let line = enter(&wheel, &Deaf, || {
            let line = make();
            thread::sleep(2 * MS);
            turn_all(&wheel);
            line
        });
        drop(wheel);
        watched("the wheel dies", || line.all_go_on());
    }
}

/// O4: two leave one line in one turn: it has one payer, and stands in the list once; and so it is the next time.
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
            turn_all(wheel);
            match way {
                "dropped" => drop(heavy),
                _ => assert!(heavy.iter_mut().all(|send| send.ends().is_err())),
            }
            woken.reaches(LINE);
            assert_eq!(tx.weight(), LINE as u64 + 1);
            assert_eq!(std::iter::from_fn(|| rx.try_recv().ok()).count(), LINE + 1);
            settle();
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
            turn_all(wheel);
            assert!(many.iter_mut().all(|reservation| reservation.ends().is_err()));
            woken.reaches(LINE);
            assert_eq!(tx.len(), LINE + 1);
            assert!(line.iter_mut().all(|send| send.ends().is_ok()));
            assert_eq!(std::iter::from_fn(|| rx.try_recv().ok()).count(), LINE + 1);
            settle();
        }
    });
}

/// O4: the next payer of a channel may come, by another wheel, as soon as all is paid.
#[test]
fn payers_follow_each_other() {
    let wheels = [new_wheel(), new_wheel()];
    for _round in 0..if cfg!(miri) { 3 } else { 50 } {
        let (tx, _rx) = bounded_by(8 * LINE as u64, |&n| n);
        tx.try_send(1).unwrap();
        let mut lines = Vec::new();
        for wheel in &wheels {
            let mut heavy = Box::pin(tx.send(8 * LINE as u64).timeout(MS));
            enter(wheel, &Deaf, || heavy.parks());
            let (woken, waker) = Woken::new();
            let mut line: Vec<_> = (0..LINE).map(|_| Box::pin(tx.send(1))).collect();
            line.iter_mut().for_each(|send| send.parks_with(&waker));
            lines.push((heavy, line, woken));
        }
        thread::sleep(2 * MS);
        thread::scope(|scope| wheels.iter().for_each(|wheel| drop(scope.spawn(|| turn_all(wheel)))));
        watched("payers", || lines.iter().for_each(|(_, _, woken)| woken.reaches(LINE)));
    }
}

/// Several lines at once: all are let in.
#[test]
fn many_lines() {
    each_line(|wheel, line| {
        let others = [Line::weighted(), Line::reserving(), Line::weighted()];
        thread::sleep(2 * MS);
        turn_all(wheel);
        others.into_iter().chain([line]).for_each(Line::all_go_on);
    });
}

/// N5: what a task finds owed meanwhile it leaves to the driver: the end of the one that expired, a drop, a receive.
#[test]
fn a_task_leaves_it_to_the_driver() {
    each_line(|wheel, mut line| {
        turn_all(wheel);
        assert!(line.first.ends(), "its task looks at its end");
        drop(line.behind.pop());
        let has_dropped_one = line.woken.here();
        assert_eq!(line.rx.try_recv(), Ok(line.next));
        assert!(line.woken.here() <= 3 * BATCH, "{}: {} of {LINE}", line.what, line.woken.here());
        assert!(has_dropped_one <= 2 * BATCH);
        settle();
        assert!(line.behind.iter_mut().all(|send| send.ends()));
    });
}

/// G7: a close refuses who has not been let in yet, in order; what was let in drains; then the receiver sees the end.
#[test]
fn a_close_comes_between() {
    each_line(|wheel, mut line| {
        turn_all(wheel);
        assert!(line.rx.close());
        line.woken.reaches(LINE);
        let sent: Vec<bool> = line.behind.iter_mut().map(Look::ends).collect();
        let let_in = sent.iter().filter(|&&sent| sent).count();
        assert!(sent.is_sorted_by(|a, b| a >= b) && let_in > 0);
        settle();
        let received = std::iter::from_fn(|| line.rx.try_recv().ok()).count();
        assert_eq!((received, line.rx.len()), (let_in + 1, 0), "{}", line.what);
        assert_eq!(line.rx.try_recv(), Err(RecvError::Closed), "{}: no permit is left", line.what);
    });
}

/// O4: a debt keeps the channel's memory, and nothing else; values and halves may go meanwhile.
#[test]
fn everybody_goes_meanwhile() {
    with_wheel(|wheel| {
        let value = Arc::new(());
        let (tx, rx) = bounded_by(2 * LINE as u64, move |(weight, _): &(u64, Arc<()>)| *weight);
        let values = value.clone();
        let send = |weight| Box::pin(tx.clone().into_send((weight, values.clone())));
        tx.try_send((1, value.clone())).unwrap();
        let mut heavy = Box::pin(tx.clone().into_send((2 * LINE as u64, value.clone())).timeout(MS));
        heavy.parks();
        let mut line: Vec<_> = (0..LINE).map(|_| send(1)).collect();
        line.iter_mut().for_each(Look::parks);
        thread::sleep(2 * MS);
        turn_all(wheel);
        drop((heavy, line, rx, tx));
        drop(values);
        while Arc::strong_count(&value) > 1 {
            thread::yield_now();
        }
    });
}

/// G9: receives beside it; nobody who can go on is left.
#[test]
fn beside_receives() {
    let rounds = if cfg!(miri) { 2 } else { 100 };
    for round in 0..rounds {
        each_line(|wheel, line| {
            turn_all(wheel);
            let mut received = 0;
            while received <= LINE - round % 3 {
                received += usize::from(line.rx.try_recv().is_ok());
            }
            line.woken.reaches(LINE);
            settle();
            assert_eq!(line.rx.len(), LINE + 1 - received);
        });
    }
}
