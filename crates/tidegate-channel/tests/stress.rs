//! A storm of operations from many threads, and the oracle afterwards: every value went to exactly one place, and nothing
//! is left (G1, G2, G6, G7, G8, G9; CASES 10, 12, 14, 17, 18, 19, 27).
//!
//! Capacities 0, 1, 2 and 64, and no limit; sends, also built in place, and receives, tries, blocked waits, waits for the
//! close; batches both ways; reservations of one slot and of more, permits that are used, kept over a close, dropped; time-outs
//! on a clock that the test turns and on the system's; tokens; wakers that change; withdrawals, operations dropped unpolled,
//! parked, delivered; halves dropped and brought back by weak ones, down to the last; both ways to close.
//!
//! `TIDEGATE_STRESS_OPS` sets the number of operations of each capacity (10^7 for the long tier). A hang is a failure: the
//! watchdog names the storm and its seed.
#![cfg(not(loom))]

mod support;
#[path = "support/watchdog.rs"]
mod watchdog;

use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use support::{poll, Rng, Woken};
use tidegate_channel::{
    bounded, unbounded, Operation, OwnedPermit, OwnedPermits, OwnedReceiving, OwnedReserving, OwnedReservingMany,
    OwnedSending, Parked, Receiver, RecvError, ReserveError, SendError, Sender, Unsent, WeakReceiver, WeakSender,
};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::{Cancellable, Timed, Unlimited};
use tidegate_wait::timer::ManualClock;
use watchdog::watched;

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

    /// Every value has gone one way. `all_received`: somebody received until the end, so what was sent came out.
    fn settled(&self, all_received: bool) {
        for (thread, row) in self.values.iter().enumerate() {
            for (number, bits) in row[..self.next[thread].load(SeqCst)].iter().enumerate() {
                let bits = bits.load(SeqCst);
                assert_ne!(bits & DROPPED, 0, "value {thread}/{number} leaked: {bits:b}");
                assert_ne!(bits & (RECEIVED | RETURNED), RECEIVED | RETURNED, "value {thread}/{number}: both");
                assert_ne!(bits & (SENT | RETURNED), SENT | RETURNED, "value {thread}/{number}: sent and returned");
                assert!(!all_received || bits & (SENT | RECEIVED) != SENT, "value {thread}/{number}: sent and lost");
            }
        }
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
    fn id(&self) -> (usize, usize) {
        (self.thread, self.number)
    }

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

/// How often something happened, in all threads.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    operations: usize,
    sent: usize,
    received: usize,
    timed_out: usize,
    cancelled: usize,
    refused: usize,
    withdrawn: usize,
    dropped: usize,
    closes: usize,
    /// Batches that were sent whole, and in part; batches of more than one that were received.
    batches: [usize; 3],
    permits: usize,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.operations += other.operations;
        self.sent += other.sent;
        self.received += other.received;
        self.timed_out += other.timed_out;
        self.cancelled += other.cancelled;
        self.refused += other.refused;
        self.withdrawn += other.withdrawn;
        self.dropped += other.dropped;
        self.closes += other.closes;
        (0..3).for_each(|kind| self.batches[kind] += other.batches[kind]);
        self.permits += other.permits;
    }
}

/// What a storm does beside sending and receiving.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Weather {
    /// `usize::MAX`: no limit.
    cap: usize,
    /// Receives are dropped, too: then values may come back late, and their order is not promised.
    drops: bool,
    close: Option<Parked>,
    /// Nobody but the workers and their operations has halves, and they drop theirs.
    last_halves: bool,
    system_clock: bool,
}

type Limits = Timed<Cancellable<'static, Unlimited>>;
type Boxed<R> = Pin<Box<dyn Future<Output = R> + Send>>;

enum Op {
    Send((usize, usize), Pin<Box<OwnedSending<Value, Limits>>>),
    SendWith((usize, usize), Boxed<Result<(), SendError<Value>>>),
    SendMany(Vec<(usize, usize)>, Boxed<Result<usize, SendError<Unsent<Value>>>>),
    Reserve(Pin<Box<OwnedReserving<Value, Limits>>>),
    ReserveMany(Pin<Box<OwnedReservingMany<Value, Limits>>>),
    Recv(Pin<Box<OwnedReceiving<Value, Limits>>>),
    RecvMany(Boxed<(Vec<Value>, Result<usize, RecvError>)>),
    Closed(Boxed<()>),
}

/// Reserved slots.
enum Slots {
    One(OwnedPermit<Value>),
    Many(OwnedPermits<Value>),
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
    tx: Option<Sender<Value>>,
    rx: Option<Receiver<Value>>,
    weak: (WeakSender<Value>, WeakReceiver<Value>),
    book: Arc<Book>,
    clock: Arc<ManualClock>,
    tokens: Arc<Mutex<Vec<CancelToken>>>,
    weather: Weather,
    /// It is this one that closes.
    close: Option<Parked>,
    last: [Option<usize>; THREADS],
    pending: Vec<Pending>,
    slots: Vec<Slots>,
    tally: Tally,
}

/// What became of a batch: the first so many were sent, the others came back in order.
fn settle_batch(book: &Book, ids: &[(usize, usize)], end: Result<usize, SendError<Unsent<Value>>>) -> usize {
    let (sent, rest) = match end {
        Ok(sent) => (sent, Vec::new()),
        Err(error) => {
            let unsent = error.into_inner();
            (unsent.sent, unsent.rest)
        }
    };
    assert_eq!(sent + rest.len(), ids.len(), "a batch is whole");
    ids[..sent].iter().for_each(|id| book.mark(id.0, id.1, SENT));
    for (value, id) in rest.iter().zip(&ids[sent..]) {
        assert_eq!(value.id(), *id, "another value came back");
        value.mark(RETURNED);
    }
    sent
}

impl Worker {
    fn value(&self) -> Value {
        self.book.value(self.id)
    }

    fn sent(&mut self, (thread, number): (usize, usize), end: Result<(), SendError<Value>>) {
        match &end {
            Ok(()) => self.tally.sent += 1,
            Err(SendError::TimedOut(_)) => self.tally.timed_out += 1,
            Err(SendError::Cancelled(_)) => self.tally.cancelled += 1,
            Err(_) => self.tally.refused += 1,
        }
        match end {
            Ok(()) => self.book.mark(thread, number, SENT),
            Err(error) => {
                let value = error.into_inner();
                assert_eq!(value.id(), (thread, number), "another value came back");
                value.mark(RETURNED);
            }
        }
    }

    fn sent_many(&mut self, ids: &[(usize, usize)], end: Result<usize, SendError<Unsent<Value>>>) {
        let is_whole = end.is_ok();
        let sent = settle_batch(&self.book, ids, end);
        self.tally.batches[0] += usize::from(is_whole);
        self.tally.batches[1] += usize::from(!is_whole && sent > 0);
    }

    fn received_many(&mut self, values: Vec<Value>, end: Result<usize, RecvError>) {
        match end {
            Ok(received) => assert_eq!(received, values.len()),
            Err(end) => {
                assert!(values.is_empty());
                return self.received(Err(end));
            }
        }
        self.tally.batches[2] += usize::from(values.len() > 1);
        values.into_iter().for_each(|value| self.received(Ok(value)));
    }

    fn reserved<P>(&mut self, end: Result<P, ReserveError>, slots: impl FnOnce(P) -> Slots) {
        match end {
            Ok(permit) => self.slots.push(slots(permit)),
            Err(ReserveError::TimedOut) => self.tally.timed_out += 1,
            Err(ReserveError::Cancelled) => self.tally.cancelled += 1,
            Err(_) => self.tally.refused += 1,
        }
    }

    /// Uses one of the reserved slots, or gives some back.
    fn use_slot(&mut self) {
        let Some(at) = (!self.slots.is_empty()).then(|| self.rng.below(self.slots.len())) else { return };
        let slots = self.slots.swap_remove(at);
        if self.rng.below(4) == 0 {
            return drop(slots);
        }
        let value = self.value();
        let id = value.id();
        self.tally.permits += 1;
        let end = match slots {
            Slots::One(permit) => permit.send(value),
            Slots::Many(mut permits) => {
                let end = permits.send(value);
                if !permits.is_empty() {
                    self.slots.push(Slots::Many(permits));
                }
                end
            }
        };
        self.sent(id, end);
    }

    fn received(&mut self, end: Result<Value, RecvError>) {
        let value = match end {
            Ok(value) => value,
            Err(RecvError::TimedOut) => return self.tally.timed_out += 1,
            Err(RecvError::Cancelled) => return self.tally.cancelled += 1,
            Err(_) => return self.tally.refused += 1,
        };
        self.tally.received += 1;
        value.mark(RECEIVED);
        let last = self.last[value.thread].replace(value.number);
        assert!(self.weather.drops || last < Some(value.number), "order of one sender at one receiver");
    }

    fn token(&mut self) -> CancelToken {
        let tokens = self.tokens.lock().unwrap();
        tokens[self.rng.below(tokens.len())].clone()
    }

    fn limit(&mut self) -> Duration {
        [Duration::ZERO, MS, 3 * MS, 20 * MS, Duration::MAX][self.rng.below(5)]
    }

    /// An operation, if there is a half for it.
    fn begin(&mut self, send: bool) -> Option<Op> {
        let (token, limit, kind) = (self.token(), self.limit(), self.rng.below(8));
        if send {
            let tx = self.tx.clone()?;
            let value = self.value();
            let id = value.id();
            Some(match kind {
                0 => Op::SendWith(
                    id,
                    Box::pin(async move { tx.send_with(|| value).cancel_on(&token).timeout(limit).await }),
                ),
                1 => {
                    let values: Vec<_> =
                        std::iter::once(value).chain((0..self.rng.below(5)).map(|_| self.value())).collect();
                    let ids = values.iter().map(Value::id).collect();
                    Op::SendMany(
                        ids,
                        Box::pin(async move { tx.send_many(values).cancel_on(&token).timeout(limit).await }),
                    )
                }
                // What a permit sends passes the parked by: no order of one sender.
                2 if self.weather.drops => {
                    value.mark(RETURNED);
                    Op::Reserve(Box::pin(tx.into_reserve().cancel_on_owned(token).timeout(limit)))
                }
                3 if self.weather.drops => {
                    value.mark(RETURNED);
                    let many = 1 + self.rng.below(self.weather.cap.clamp(1, 5));
                    Op::ReserveMany(Box::pin(tx.into_reserve_many(many).cancel_on_owned(token).timeout(limit)))
                }
                _ => Op::Send(id, Box::pin(tx.into_send(value).cancel_on_owned(token).timeout(limit))),
            })
        } else {
            let rx = self.rx.clone()?;
            Some(match kind {
                0 => Op::Closed(Box::pin(
                    async move { rx.closed().cancel_on(&token).timeout(limit).await.unwrap_or(()) },
                )),
                1 => {
                    let most = 1 + self.rng.below(5);
                    Op::RecvMany(Box::pin(async move {
                        let mut values = Vec::new();
                        let end = rx.recv_many(&mut values, most).cancel_on(&token).timeout(limit).await;
                        (values, end)
                    }))
                }
                _ => Op::Recv(Box::pin(rx.into_recv().cancel_on_owned(token).timeout(limit))),
            })
        }
    }

    /// Polls; keeps what is still pending.
    fn drive(&mut self, mut pending: Pending) {
        pending.seen = pending.woken.count();
        let waker = &pending.waker;
        match &mut pending.op {
            Op::Send(id, send) => match poll(send.as_mut(), waker) {
                Poll::Ready(end) => return self.sent(*id, end),
                Poll::Pending => {}
            },
            Op::SendWith(id, send) => match poll(send.as_mut(), waker) {
                Poll::Ready(end) => return self.sent(*id, end),
                Poll::Pending => {}
            },
            Op::SendMany(ids, send) => match poll(send.as_mut(), waker) {
                Poll::Ready(end) => {
                    let ids = std::mem::take(ids);
                    return self.sent_many(&ids, end);
                }
                Poll::Pending => {}
            },
            Op::Reserve(reserve) => match poll(reserve.as_mut(), waker) {
                Poll::Ready(end) => return self.reserved(end, Slots::One),
                Poll::Pending => {}
            },
            Op::ReserveMany(reserve) => match poll(reserve.as_mut(), waker) {
                Poll::Ready(end) => return self.reserved(end, Slots::Many),
                Poll::Pending => {}
            },
            Op::Recv(receive) => match poll(receive.as_mut(), waker) {
                Poll::Ready(end) => return self.received(end),
                Poll::Pending => {}
            },
            Op::RecvMany(receive) => match poll(receive.as_mut(), waker) {
                Poll::Ready((values, end)) => return self.received_many(values, end),
                Poll::Pending => {}
            },
            Op::Closed(closed) => match poll(closed.as_mut(), waker) {
                Poll::Ready(()) => return,
                Poll::Pending => {}
            },
        }
        self.pending.push(pending);
    }

    /// In order means: one receive at a time.
    fn may_receive(&self) -> bool {
        self.weather.drops || !self.pending.iter().any(|pending| matches!(pending.op, Op::Recv(_) | Op::RecvMany(_)))
    }

    fn take(&mut self) -> Option<Pending> {
        let n = self.pending.len();
        (n > 0).then(|| self.pending.swap_remove(self.rng.below(n)))
    }

    fn give_up(&mut self, op: Op, withdraw: bool) {
        match op {
            Op::Send(_, mut send) if withdraw => {
                if let Some(value) = send.as_mut().withdraw() {
                    self.tally.withdrawn += 1;
                    value.mark(RETURNED);
                }
            }
            op => {
                self.tally.dropped += 1;
                drop(op);
            }
        }
    }

    /// A send that is built in its place, polled once and withdrawn.
    fn withdraw_built(&mut self) {
        let Some(tx) = self.tx.clone() else { return };
        let value = self.value();
        let id = value.id();
        let mut send = pin!(tx.send_with(|| value).timeout(3 * MS));
        let end = poll(send.as_mut(), Waker::noop());
        match (end, send.withdraw()) {
            (Poll::Ready(end), back) => {
                assert!(back.is_none(), "two ends");
                self.sent(id, end);
            }
            (Poll::Pending, Some(value)) => {
                self.tally.withdrawn += 1;
                value.mark(RETURNED);
            }
            (Poll::Pending, None) => self.sent(id, Ok(())),
        }
    }

    /// Halves go and come: clones, weak ones; in some storms the worker's own.
    fn halves(&mut self) {
        let upgraded = (self.weak.0.upgrade(), self.weak.1.upgrade());
        let (has_tx, has_rx) = (self.tx.is_some(), self.rx.is_some());
        assert!((!has_tx || upgraded.0.is_some()) && (!has_rx || upgraded.1.is_some()), "there is a half");
        if self.weather.last_halves {
            match self.rng.below(4) {
                0 => self.tx = None,
                1 => self.rx = None,
                2 => self.tx = upgraded.0,
                _ => self.rx = upgraded.1,
            }
        }
    }

    fn step(&mut self) {
        self.tally.operations += 1;
        // A blocked wait on the system's clock is slow.
        let blocks = !self.weather.system_clock || self.rng.below(16) == 0;
        match self.rng.below(19) {
            0 | 1 => {
                let Some(tx) = &self.tx else { return };
                let value = self.value();
                let id = value.id();
                let end = tx.try_send(value);
                self.sent(id, end);
            }
            2 | 3 if self.may_receive() => {
                let Some(rx) = &self.rx else { return };
                let end = rx.try_recv();
                self.received(end);
            }
            4..=6 if self.pending.len() < 12 => {
                let send = self.rng.below(2) == 0 || !self.may_receive();
                let Some(op) = self.begin(send) else { return };
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
                Some(pending) if self.weather.drops || !matches!(pending.op, Op::Recv(..) | Op::RecvMany(..)) => {
                    let withdraw = self.rng.below(2) == 0;
                    self.give_up(pending.op, withdraw);
                }
                pending => self.pending.extend(pending),
            },
            11 if blocks => {
                let Some(tx) = self.tx.clone() else { return };
                let value = self.value();
                let id = value.id();
                let end = match self.rng.below(2) {
                    0 => tx.send(value).timeout(2 * MS).wait(),
                    _ => tx.send_with(|| value).timeout(2 * MS).wait(),
                };
                self.sent(id, end);
            }
            12 if blocks && self.may_receive() => {
                let Some(rx) = self.rx.clone() else { return };
                let end = rx.recv().timeout(2 * MS).wait();
                self.received(end);
            }
            13 => {
                let send = self.rng.below(2) == 0;
                drop(self.begin(send));
                self.halves();
            }
            14 => {
                let fresh = CancelToken::new();
                let mut tokens = self.tokens.lock().unwrap();
                let at = self.rng.below(tokens.len());
                let old = std::mem::replace(&mut tokens[at], fresh);
                drop(tokens);
                old.cancel();
            }
            15 => self.withdraw_built(),
            16 | 17 => self.use_slot(),
            _ => self.clock.advance(MS / 2),
        }
    }

    fn run(mut self, ops: usize) -> (Vec<Pending>, Tally) {
        let (clock, system_clock) = (self.clock.clone(), self.weather.system_clock);
        // Somewhere in the second half.
        let moment = ops / 2 + self.rng.below(ops / 2);
        let mut steps = || {
            for n in 0..ops {
                self.step();
                if let (Some(parked), true) = (self.close, n == moment) {
                    let closed = self.tx.as_ref().is_some_and(|tx| tx.close_with(parked));
                    self.tally.closes += usize::from(closed);
                }
            }
        };
        match system_clock {
            true => steps(),
            false => clock.enter(steps),
        }
        // What is still reserved goes to the line.
        drop(self.slots);
        (self.pending, self.tally)
    }
}

fn storm(seed: u64, weather: Weather, ops: usize) -> Tally {
    let (tx, rx) = if weather.cap == usize::MAX { unbounded() } else { bounded(weather.cap) };
    let book = Book::new(4 * ops + 64);
    let clock = Arc::new(ManualClock::new());
    let tokens = Arc::new(Mutex::new((0..4).map(|_| CancelToken::new()).collect::<Vec<_>>()));
    let weak = (tx.downgrade(), rx.downgrade());
    let workers = (0..THREADS).map(|id| Worker {
        id,
        rng: Rng(seed * 1000 + id as u64),
        tx: Some(tx.clone()),
        rx: Some(rx.clone()),
        weak: weak.clone(),
        book: book.clone(),
        clock: clock.clone(),
        tokens: tokens.clone(),
        weather,
        close: weather.close.filter(|_| id as u64 == seed % THREADS as u64),
        last: [None; THREADS],
        pending: Vec::new(),
        slots: Vec::new(),
        tally: Tally::default(),
    });
    let workers: Vec<_> = workers.collect();
    let halves = (!weather.last_halves).then_some((tx, rx));
    let over = AtomicBool::new(false);
    let mut tally = Tally::default();
    let results: Vec<_> = std::thread::scope(|scope| {
        let (over, clock, tx) = (&over, &clock, halves.as_ref().map(|halves| &halves.0));
        let workers: Vec<_> = workers.into_iter().map(|worker| scope.spawn(move || worker.run(ops))).collect();
        // Blocked waits end by time: somebody must turn the clock while all others block.
        scope.spawn(move || {
            let extra = if weather.drops || weather.close.is_some() { THREADS * 64 } else { 0 };
            while !over.load(SeqCst) {
                clock.advance(MS);
                assert!(tx.is_none_or(|tx| tx.len() <= weather.cap.saturating_add(extra)));
                // Miri would run little else.
                if cfg!(miri) {
                    std::thread::sleep(MS);
                }
                std::thread::yield_now();
            }
        });
        let results = workers.into_iter().map(|worker| worker.join()).collect();
        // Also after a panic, or this would never end.
        over.store(true, SeqCst);
        results
    });
    let mut pending = Vec::new();
    for result in results {
        let (left, one) = result.unwrap();
        pending.extend(left);
        tally.add(one);
    }
    settle(pending, halves, &clock, &book);
    assert!(weak.0.upgrade().is_none() && weak.1.upgrade().is_none());
    let left = format!("{:?}", weak.0);
    assert!(left.contains("len: 0") && left.contains("parked_senders: 0, parked_receivers: 0"), "{left}");
    book.settled(!weather.last_halves);
    assert_eq!(Arc::strong_count(&book), 1, "a value is left");
    assert_eq!(clock.armed(), 0, "a timer is left");
    tally
}

/// After the storm: who has ended was woken; who has not is rightly parked; then everything goes.
fn settle(
    mut pending: Vec<Pending>,
    halves: Option<(Sender<Value>, Receiver<Value>)>,
    clock: &ManualClock,
    book: &Arc<Book>,
) {
    let (mut sends, mut receives, mut late) = (0, 0, 0);
    let is_closed = halves.as_ref().is_some_and(|(tx, _)| tx.is_closed());
    // A reservation that was granted keeps receivers from seeing the end.
    pending.sort_by_key(|pending| !matches!(pending.op, Op::Reserve(_) | Op::ReserveMany(_)));
    for mut pending in pending {
        let waker = &pending.waker;
        let mark = |id: (usize, usize), end: Result<(), SendError<Value>>| match end {
            Ok(()) => book.mark(id.0, id.1, SENT),
            Err(error) => error.into_inner().mark(RETURNED),
        };
        let over = clock.enter(|| match &mut pending.op {
            Op::Send(id, send) => poll(send.as_mut(), waker).map(|end| mark(*id, end)),
            Op::SendWith(id, send) => poll(send.as_mut(), waker).map(|end| mark(*id, end)),
            Op::SendMany(ids, send) => poll(send.as_mut(), waker).map(|end| {
                settle_batch(book, ids, end);
            }),
            Op::Reserve(reserve) => poll(reserve.as_mut(), waker).map(drop),
            Op::ReserveMany(reserve) => poll(reserve.as_mut(), waker).map(drop),
            Op::Recv(receive) => poll(receive.as_mut(), waker).map(|end| end.map_or((), |value| value.mark(RECEIVED))),
            Op::RecvMany(receive) => {
                poll(receive.as_mut(), waker).map(|(values, _)| values.iter().for_each(|value| value.mark(RECEIVED)))
            }
            Op::Closed(closed) => poll(closed.as_mut(), waker),
        });
        match (&pending.op, over, &halves) {
            (_, Poll::Ready(()), _) => assert!(pending.woken.count() > pending.seen, "ended, and not woken"),
            // The room, or the value, that the others leave behind was given on while they were looked at.
            (Op::Send(..) | Op::SendWith(..) | Op::SendMany(..), _, Some((tx, _))) => {
                sends += usize::from(!tx.is_full())
            }
            (Op::Reserve(_) | Op::ReserveMany(_), _, Some((tx, _))) => sends += usize::from(!tx.is_full()),
            (Op::Recv(_) | Op::RecvMany(_), _, Some((_, rx))) => receives += usize::from(!rx.is_empty()),
            _ => {}
        }
        late += usize::from(is_closed && over.is_pending());
        if let Some((tx, _)) = &halves {
            assert!(
                tx.capacity() > 0 || tx.parked_senders() == 0 || tx.parked_receivers() == 0,
                "two that should meet"
            );
        }
    }
    assert_eq!((sends, receives, late), (0, 0, 0), "parked beside room, beside a value, on a closed channel");
    let Some((tx, rx)) = halves else { return };
    assert_eq!((tx.parked_senders(), tx.parked_receivers()), (0, 0));
    while let Ok(value) = rx.try_recv() {
        value.mark(RECEIVED);
    }
    assert_eq!((rx.len(), tx.sender_count(), tx.receiver_count()), (0, 1, 1));
    // Nobody is parked any more, on either side.
    let sent = tx.try_send(book.value(0)).is_ok();
    assert_eq!((sent, rx.len() == 1), (!is_closed && tx.capacity() > 0, sent));
}

fn operations() -> usize {
    let scale = std::env::var("TIDEGATE_STRESS_OPS").ok().and_then(|ops| ops.parse().ok());
    scale.unwrap_or(if cfg!(miri) { 300 } else { 100_000 })
}

/// Storms of each kind, until that many operations have begun.
fn storms(cap: usize) {
    let calm = Weather { cap, drops: true, close: None, last_halves: false, system_clock: false };
    let closing = |parked| Weather { close: Some(parked), ..calm };
    // How many operations each thread does in one, and how many such storms make a round: what ends a channel is short.
    let kinds = [
        (calm, 5_000, 1),
        (Weather { drops: false, ..calm }, 5_000, 1),
        (closing(Parked::GiveBack), 250, 10),
        (closing(Parked::Admit), 250, 10),
        (Weather { drops: false, ..closing(Parked::Admit) }, 250, 10),
        (Weather { last_halves: true, ..calm }, 250, 10),
        (Weather { system_clock: true, ..calm }, 1_000, 1),
    ];
    let mut tally = Tally::default();
    let mut seed = 0;
    while tally.operations < operations() {
        for (weather, ops, times) in kinds {
            for _ in 0..if cfg!(miri) { 1 } else { times } {
                seed += 1;
                let ops = if cfg!(miri) { 30 } else { ops };
                tally.add(watched((weather, seed, ops), || storm(seed, weather, ops)));
            }
        }
    }
    eprintln!("capacity {cap}: {seed} storms, {tally:?}");
    let Tally { operations, sent, received, timed_out, cancelled, refused, withdrawn, dropped, .. } = tally;
    let (is_bounded, has_slots) = (cap != usize::MAX, cap != 0);
    let only = |possible: bool, count: usize| if possible { count } else { 1 };
    let all = [
        [operations, sent, received, timed_out],
        [cancelled, refused, only(is_bounded, withdrawn), dropped],
        [tally.closes, only(has_slots, tally.permits), tally.batches[0], only(is_bounded, tally.batches[1])],
        [tally.batches[2], 1, 1, 1],
    ];
    assert!(cfg!(miri) || all.as_flattened().iter().all(|count| *count > 0), "some of it never happened: {tally:?}");
}

#[test]
fn without_a_buffer() {
    storms(0);
}

#[test]
fn with_one_slot() {
    storms(1);
}

#[test]
fn with_two_slots() {
    storms(2);
}

#[test]
fn with_many_slots() {
    storms(64);
}

#[test]
fn without_a_limit() {
    storms(usize::MAX);
}
