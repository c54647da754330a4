//! A storm of operations from many threads, and the oracle afterwards: every value went to exactly one place, and nothing
//! is left (G1, G2, G7, G8, G9; CASES 10, 12, 14, 17, 18, 19, 27).
//!
//! `TIDEGATE_STRESS_OPS` sets the number of operations of the whole run (10^7 for the long tier).
#![cfg(not(loom))]

mod support;

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use support::{poll, Rng, Woken};
use tidegate_channel::{bounded, Operation, OwnedReceiving, OwnedSending, Receiver, RecvError, SendError, Sender};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::{Cancellable, Timed, Unlimited};
use tidegate_wait::timer::ManualClock;

const MS: Duration = Duration::from_millis(1);
const THREADS: usize = if cfg!(miri) { 2 } else { 4 };

/// Where each value has been: bits, set once each.
const RECEIVED: u8 = 1;
const RETURNED: u8 = 2;
const SENT: u8 = 4;
const DROPPED: u8 = 8;

struct Book {
    values: Vec<Vec<AtomicU8>>,
    next: Vec<AtomicUsize>,
}

impl Book {
    fn new(limit: usize) -> Arc<Book> {
        let row = || (0..limit).map(|_| AtomicU8::new(0)).collect();
        Arc::new(Book {
            values: (0..THREADS).map(|_| row()).collect(),
            next: (0..THREADS).map(|_| AtomicUsize::new(0)).collect(),
        })
    }

    fn value(self: &Arc<Book>, thread: usize) -> Value {
        let number = self.next[thread].fetch_add(1, SeqCst);
        Value { thread, number, canary: canary(thread, number), book: self.clone() }
    }

    fn mark(&self, thread: usize, number: usize, bit: u8) {
        let before = self.values[thread][number].fetch_or(bit, SeqCst);
        assert_eq!(before & bit, 0, "value {thread}/{number}: {bit} twice");
    }
}

fn canary(thread: usize, number: usize) -> [u64; 5] {
    [0x5eed ^ (thread as u64) << 32 ^ number as u64; 5]
}

struct Value {
    thread: usize,
    number: usize,
    canary: [u64; 5],
    book: Arc<Book>,
}

impl Value {
    fn mark(&self, bit: u8) {
        assert_eq!(self.canary, canary(self.thread, self.number), "torn");
        self.book.mark(self.thread, self.number, bit);
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.mark(DROPPED);
    }
}

type Limits = Timed<Cancellable<'static, Unlimited>>;

enum Op {
    Send((usize, usize), Pin<Box<OwnedSending<Value, Limits>>>),
    Recv(Pin<Box<OwnedReceiving<Value, Limits>>>),
}

struct Pending {
    op: Op,
    woken: Arc<Woken>,
    waker: Waker,
    seen: usize,
}

struct Worker {
    id: usize,
    rng: Rng,
    tx: Sender<Value>,
    rx: Receiver<Value>,
    book: Arc<Book>,
    clock: Arc<ManualClock>,
    tokens: Arc<Mutex<Vec<CancelToken>>>,
    /// Receives are dropped, too: then values may come back late, and their order is not promised.
    drops: bool,
    last: [Option<usize>; THREADS],
    pending: Vec<Pending>,
    successes: usize,
}

impl Worker {
    fn sent(&mut self, (thread, number): (usize, usize), end: Result<(), SendError<Value>>) {
        match end {
            Ok(()) => {
                self.successes += 1;
                self.book.mark(thread, number, SENT);
            }
            Err(error) => {
                let value = error.into_inner();
                assert_eq!((value.thread, value.number), (thread, number), "another value came back");
                value.mark(RETURNED);
            }
        }
    }

    fn received(&mut self, end: Result<Value, RecvError>) {
        let Ok(value) = end else { return };
        value.mark(RECEIVED);
        let last = self.last[value.thread].replace(value.number);
        assert!(self.drops || last < Some(value.number), "order of one sender at one receiver");
    }

    fn token(&mut self) -> CancelToken {
        let tokens = self.tokens.lock().unwrap();
        tokens[self.rng.below(tokens.len())].clone()
    }

    fn limit(&mut self) -> Duration {
        [Duration::ZERO, MS, 3 * MS, 20 * MS, Duration::MAX][self.rng.below(5)]
    }

    fn begin(&mut self, send: bool) -> Op {
        let (token, limit) = (self.token(), self.limit());
        if send {
            let value = self.book.value(self.id);
            let id = (value.thread, value.number);
            Op::Send(id, Box::pin(self.tx.clone().into_send(value).cancel_on_owned(token).timeout(limit)))
        } else {
            Op::Recv(Box::pin(self.rx.clone().into_recv().cancel_on_owned(token).timeout(limit)))
        }
    }

    /// Polls; keeps what is still pending.
    fn drive(&mut self, mut pending: Pending) {
        pending.seen = pending.woken.count();
        match &mut pending.op {
            Op::Send(id, send) => match poll(send.as_mut(), &pending.waker) {
                Poll::Ready(end) => return self.sent(*id, end),
                Poll::Pending => {}
            },
            Op::Recv(receive) => match poll(receive.as_mut(), &pending.waker) {
                Poll::Ready(end) => return self.received(end),
                Poll::Pending => {}
            },
        }
        self.pending.push(pending);
    }

    /// In order means: one receive at a time.
    fn may_receive(&self) -> bool {
        self.drops || !self.pending.iter().any(|pending| matches!(pending.op, Op::Recv(_)))
    }

    fn take(&mut self) -> Option<Pending> {
        let n = self.pending.len();
        (n > 0).then(|| self.pending.swap_remove(self.rng.below(n)))
    }

    fn give_up(&mut self, op: Op, withdraw: bool) {
        match op {
            Op::Send(_, mut send) if withdraw => {
                if let Some(value) = send.as_mut().withdraw() {
                    value.mark(RETURNED);
                }
            }
            op => drop(op),
        }
    }

    fn step(&mut self) {
        match self.rng.below(16) {
            0 | 1 => {
                let value = self.book.value(self.id);
                let id = (value.thread, value.number);
                let end = self.tx.try_send(value);
                self.sent(id, end);
            }
            2 | 3 if self.may_receive() => {
                let end = self.rx.try_recv();
                self.received(end);
            }
            4..=6 if self.pending.len() < 12 => {
                let send = self.rng.below(2) == 0 || !self.may_receive();
                let op = self.begin(send);
                let (woken, waker) = Woken::new();
                self.drive(Pending { op, woken, waker, seen: 0 });
            }
            2..=8 => {
                if let Some(mut pending) = self.take() {
                    if self.rng.below(3) == 0 {
                        (pending.woken, pending.waker) = Woken::new();
                    }
                    self.drive(pending);
                }
            }
            9 | 10 => match self.take() {
                Some(pending) if self.drops || matches!(pending.op, Op::Send(..)) => {
                    let withdraw = self.rng.below(2) == 0;
                    self.give_up(pending.op, withdraw);
                }
                pending => self.pending.extend(pending),
            },
            11 => {
                let value = self.book.value(self.id);
                let id = (value.thread, value.number);
                let end = self.tx.send(value).timeout(2 * MS).wait();
                self.sent(id, end);
            }
            12 if self.may_receive() => {
                let end = self.rx.recv().timeout(2 * MS).wait();
                self.received(end);
            }
            13 => {
                let send = self.rng.below(2) == 0;
                drop(self.begin(send));
                let halves = (self.tx.clone(), self.rx.clone());
                drop(halves);
            }
            14 => {
                let fresh = CancelToken::new();
                let mut tokens = self.tokens.lock().unwrap();
                let at = self.rng.below(tokens.len());
                let old = std::mem::replace(&mut tokens[at], fresh);
                drop(tokens);
                old.cancel();
            }
            _ => self.clock.advance(MS / 2),
        }
    }
}

fn storm(seed: u64, cap: usize, ops: usize, drops: bool, close: bool) -> usize {
    let (tx, rx) = bounded(cap);
    let book = Book::new(2 * ops + 64);
    let clock = Arc::new(ManualClock::new());
    let tokens = Arc::new(Mutex::new((0..4).map(|_| CancelToken::new()).collect::<Vec<_>>()));
    let (over, successes) = (AtomicBool::new(false), AtomicUsize::new(0));
    let pending: Vec<Pending> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|id| {
                let mut worker = Worker {
                    id,
                    rng: Rng(seed * 1000 + id as u64),
                    tx: tx.clone(),
                    rx: rx.clone(),
                    book: book.clone(),
                    clock: clock.clone(),
                    tokens: tokens.clone(),
                    drops,
                    last: [None; THREADS],
                    pending: Vec::new(),
                    successes: 0,
                };
                let (clock, successes) = (clock.clone(), &successes);
                scope.spawn(move || {
                    clock.enter(|| {
                        for n in 0..ops {
                            worker.step();
                            if close && worker.id == 0 && n == ops * 9 / 10 {
                                worker.tx.close();
                            }
                        }
                    });
                    successes.fetch_add(worker.successes, SeqCst);
                    worker.pending
                })
            })
            .collect();
        // Blocked waits end by time: somebody must turn the clock while all others block.
        scope.spawn(|| {
            while !over.load(SeqCst) {
                clock.advance(MS);
                assert!(tx.len() <= cap + if drops { THREADS * 16 } else { 0 });
                // Miri would run little else.
                if cfg!(miri) {
                    std::thread::sleep(MS);
                }
                std::thread::yield_now();
            }
        });
        let pending = workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
        over.store(true, SeqCst);
        pending
    });
    settle(pending, tx, rx, &clock, &book);
    assert_eq!(clock.armed(), 0, "a timer is left");
    successes.into_inner()
}

/// After the storm: who has ended was woken; who has not is rightly parked; then everything goes, and is counted.
fn settle(pending: Vec<Pending>, tx: Sender<Value>, rx: Receiver<Value>, clock: &ManualClock, book: &Arc<Book>) {
    let (mut sends, mut receives) = (0, 0);
    for mut pending in pending {
        let over = clock.enter(|| match &mut pending.op {
            Op::Send(id, send) => poll(send.as_mut(), &pending.waker).map(|end| match end {
                Ok(()) => book.mark(id.0, id.1, SENT),
                Err(error) => error.into_inner().mark(RETURNED),
            }),
            Op::Recv(receive) => {
                poll(receive.as_mut(), &pending.waker).map(|end| end.map_or((), |value| value.mark(RECEIVED)))
            }
        });
        match (&pending.op, over) {
            (_, Poll::Ready(())) => assert!(pending.woken.count() > pending.seen, "ended, and not woken"),
            // The room, or the value, that the others leave behind was given on while they were looked at.
            (Op::Send(..), Poll::Pending) => sends += usize::from(!tx.is_full()),
            (Op::Recv(_), Poll::Pending) => receives += usize::from(!rx.is_empty()),
        }
    }
    assert_eq!((sends, receives), (0, 0), "parked beside room, beside a value");
    while let Ok(value) = rx.try_recv() {
        value.mark(RECEIVED);
    }
    assert_eq!((rx.len(), tx.sender_count(), tx.receiver_count()), (0, 1, 1));
    // Nobody is parked any more, on either side.
    assert!(tx.is_closed() || (tx.try_send(book.value(0)).is_ok() && rx.len() == 1));
    drop((tx, rx));
    for (thread, row) in book.values.iter().enumerate() {
        for (number, bits) in row[..book.next[thread].load(SeqCst)].iter().enumerate() {
            let bits = bits.load(SeqCst);
            assert_ne!(bits & DROPPED, 0, "value {thread}/{number} leaked: {bits:b}");
            assert_ne!(bits & (RECEIVED | RETURNED), RECEIVED | RETURNED, "value {thread}/{number}: both");
            assert_ne!(bits & (SENT | RETURNED), SENT | RETURNED, "value {thread}/{number}: sent and returned");
        }
    }
    assert_eq!(Arc::strong_count(book), 1, "a value is left");
}

fn operations() -> usize {
    let scale = std::env::var("TIDEGATE_STRESS_OPS").ok().and_then(|ops| ops.parse().ok());
    scale.unwrap_or(if cfg!(miri) { 300 } else { 150_000 })
}

fn storms(drops: bool, close: bool) {
    let configurations = [(1, 1), (2, 1), (64, 1), (1, 2), (2, 3), (1, 5)];
    let configurations = if cfg!(miri) { &configurations[..2] } else { &configurations[..] };
    // Several channels with a bounded book each, rather than one endless one.
    let each = (operations() / 3 / configurations.len() / THREADS).max(30);
    for &(cap, seed) in configurations {
        let mut successes = 0;
        for round in 0..each.div_ceil(20_000) {
            successes += storm(seed * 7919 + round as u64, cap, each.min(20_000), drops, close);
        }
        assert!(successes > 0, "the storm does nothing");
    }
}

/// All operations, and receives are dropped in every state.
#[test]
fn with_dropped_receives() {
    storms(true, false);
}

/// Values of one sender arrive in order at each receiver, as long as no delivered receive is dropped.
#[test]
fn in_order() {
    storms(false, false);
}

/// The channel is closed in the middle of it.
#[test]
fn with_a_close() {
    storms(true, true);
}
