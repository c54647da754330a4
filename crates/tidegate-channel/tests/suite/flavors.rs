//! The flavors that every test runs on, and the two manners in which an operation waits.

#![allow(unreachable_pub)]

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tidegate_channel::{bounded, rendezvous, unbounded, Operation, Receiver, RecvError, Sender};
use tidegate_wait::timer::ManualClock;

use crate::support::{until, within, Look};

/// A name, how to make it, how many values fill its buffer; without a limit, how many a test puts there: over borders.
const FLAVORS: [(&str, Make, usize); 5] = [
    ("rendezvous", Make::Rendezvous, 0),
    ("bounded(1)", Make::Bounded, 1),
    ("bounded(2)", Make::Bounded, 2),
    ("bounded(64)", Make::Bounded, 64),
    ("unbounded", Make::Unbounded, if cfg!(miri) { 3 } else { 130 }),
];

const MANNERS: [Manner; 2] = [Manner::Async, Manner::Blocking];

/// More than any cell takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq)]
enum Make {
    Rendezvous,
    Bounded,
    Unbounded,
}

/// A row of the table, for one test.
pub struct Flavor {
    pub name: &'static str,
    pub capacity: usize,
    make: Make,
    skipped: Mutex<Option<&'static str>>,
}

impl Flavor {
    pub fn make<T>(&self) -> (Sender<T>, Receiver<T>) {
        match self.make {
            Make::Rendezvous => rendezvous(),
            Make::Bounded => bounded(self.capacity),
            Make::Unbounded => unbounded(),
        }
    }

    /// What `Sender::capacity` says.
    pub fn limit(&self) -> usize {
        if self.has_limit() {
            self.capacity
        } else {
            usize::MAX
        }
    }

    /// Is there a limit, so that a send may have to wait?
    pub fn has_limit(&self) -> bool {
        self.make != Make::Unbounded
    }

    /// The same, for a test that is about such sends from here on: otherwise the cell is skipped.
    pub fn sends_wait(&self) -> bool {
        if !self.has_limit() {
            self.skip("a send never waits");
        }
        self.has_limit()
    }

    /// Fills the buffer, with `value(0)` first: the next send has to wait, if sends do.
    #[track_caller]
    pub fn fill<T>(&self, tx: &Sender<T>, value: impl FnMut(usize) -> T) {
        let before = tx.len();
        (0..self.capacity).map(value).for_each(|value| tx.try_send(value).unwrap());
        assert_eq!((tx.is_full(), tx.len()), (self.has_limit(), before + self.capacity));
    }

    /// Puts one value into the channel: into the buffer, or else by a delivery that its receive does not take.
    #[track_caller]
    pub fn hold<T>(&self, tx: &Sender<T>, rx: &Receiver<T>, value: T) {
        let mut receive = Box::pin(rx.recv());
        if self.capacity == 0 {
            assert!(receive.look().is_pending());
        }
        assert!(tx.try_send(value).is_ok());
    }

    /// From here on this cell makes no sense for this flavor; the reason is shown.
    pub fn skip(&self, reason: &'static str) {
        *self.skipped.lock().unwrap() = Some(reason);
    }
}

/// Runs a test on every flavor. A failure names the flavor.
pub fn each_flavor(test: impl Fn(&Flavor)) {
    let skipped = flavors().filter(|flavor| cell(flavor, flavor.name, &test)).count();
    assert_ne!(skipped, FLAVORS.len(), "skipped everywhere");
}

/// Runs a test on every flavor, with operations that are polled by hand, and with such that block a thread.
pub fn each_manner(test: impl Fn(&Flavor, Manner)) {
    let cells = flavors().flat_map(|flavor| {
        let test = &test;
        MANNERS.map(move |manner| {
            let flavor = Flavor { skipped: Mutex::default(), ..flavor };
            cell(&flavor, &format!("{}, {manner}", flavor.name), |flavor| test(flavor, manner))
        })
    });
    let skipped = cells.filter(|&skipped| skipped).count();
    assert_ne!(skipped, FLAVORS.len() * MANNERS.len(), "skipped everywhere");
}

fn flavors() -> impl Iterator<Item = Flavor> {
    let flavors =
        FLAVORS.into_iter().map(|(name, make, capacity)| Flavor { name, capacity, make, skipped: Mutex::default() });
    // Long rings are slow under Miri, and differ from short ones by their windows only, which it turns off.
    flavors.filter(|flavor| !cfg!(miri) || flavor.capacity < 8)
}

/// True: it was skipped.
fn cell(flavor: &Flavor, name: &str, test: impl FnOnce(&Flavor)) -> bool {
    struct Names<'n>(&'n str);
    impl Drop for Names<'_> {
        fn drop(&mut self) {
            if thread::panicking() {
                eprintln!("this was {}", self.0);
            }
        }
    }
    let _names = Names(name);
    within(LIMIT, name, || test(flavor));
    let skipped = *flavor.skipped.lock().unwrap();
    if let Some(reason) = skipped {
        println!("skipped: {} [{name}]: {reason}", thread::current().name().unwrap_or_default());
    }
    skipped.is_some()
}

/// How an operation is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// A future that the test polls.
    Async,
    /// `.wait()`, on a thread of its own.
    Blocking,
}

impl fmt::Display for Manner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Manner::Async { "async" } else { "blocking" })
    }
}

std::thread_local! {
    /// The clock of the test that runs on this thread.
    static CLOCK: RefCell<Option<Arc<ManualClock>>> = const { RefCell::new(None) };
}

/// Runs a test under a clock that stands still until it is moved; also the threads that it blocks.
pub fn with_clock(test: impl FnOnce(&ManualClock)) {
    with_shared_clock(|clock| test(clock));
}

/// The same, with a clock for the test's own threads and wakers.
pub fn with_shared_clock(test: impl FnOnce(&Arc<ManualClock>)) {
    let clock = Arc::new(ManualClock::new());
    let outer = CLOCK.replace(Some(clock.clone()));
    clock.enter(|| test(&clock));
    CLOCK.set(outer);
}

impl Manner {
    /// Parks a send, and returns when it is parked.
    #[track_caller]
    pub fn park_send<T, O>(self, tx: &Sender<T>, send: O) -> Waiting<O::Output>
    where
        O: Operation<Output: Send> + Send + 'static,
    {
        let before = tx.parked_senders();
        let waiting = self.start(send);
        until(|| tx.parked_senders() > before);
        waiting
    }

    /// Parks a receive, and returns when it is parked.
    #[track_caller]
    pub fn park_recv<T, O>(self, rx: &Receiver<T>, receive: O) -> Waiting<O::Output>
    where
        O: Operation<Output: Send> + Send + 'static,
    {
        let before = rx.parked_receivers();
        let waiting = self.start(receive);
        until(|| rx.parked_receivers() > before);
        waiting
    }

    /// Does an operation that can go on at once, or will be let go on by other threads.
    pub fn run<O: Operation>(self, operation: O) -> O::Output {
        match self {
            Manner::Async => Box::pin(operation).ends(),
            Manner::Blocking => operation.wait(),
        }
    }

    #[track_caller]
    fn start<O>(self, operation: O) -> Waiting<O::Output>
    where
        O: Operation<Output: Send> + Send + 'static,
    {
        match self {
            Manner::Async => {
                let mut operation = Box::pin(operation);
                operation.parks();
                Waiting::Polled(operation)
            }
            Manner::Blocking => {
                let clock = CLOCK.with_borrow(Clone::clone);
                Waiting::Blocked(thread::spawn(move || match clock {
                    Some(clock) => clock.enter(|| operation.wait()),
                    None => operation.wait(),
                }))
            }
        }
    }
}

/// An operation that waits, in either manner.
pub enum Waiting<T> {
    Polled(Pin<Box<dyn Future<Output = T> + Send>>),
    Blocked(JoinHandle<T>),
}

impl<T> Waiting<T> {
    /// It is over: by the next poll, or by the thread's return.
    #[track_caller]
    pub fn ends(self) -> T {
        match self {
            Waiting::Polled(mut operation) => operation.ends(),
            Waiting::Blocked(thread) => thread.join().unwrap(),
        }
    }
}

/// What is left in a channel, by `try_recv`, and what that says at the end.
pub fn drain<T>(rx: &Receiver<T>) -> (Vec<T>, RecvError) {
    let mut values = Vec::new();
    loop {
        match rx.try_recv() {
            Ok(value) => values.push(value),
            Err(end) => return (values, end),
        }
    }
}

/// Waits until so many timers are armed: a blocked operation arms its own after it has parked.
pub fn until_armed(clock: &ManualClock, n: usize) {
    until(|| clock.armed() == n);
}
