//! A permit beside everything that may happen to its channel (M1–M4): its slot goes to the first in line, its value arrives,
//! and nobody is left waiting who could go on.
#![cfg(loom)]

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tidegate_channel::{bounded, OwnedPermit, OwnedReceiving, OwnedReserving, OwnedSending, Parked, Receiver, Sender};

/// Counts its drops.
struct Value(Arc<AtomicUsize>);

impl Drop for Value {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn look<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Who stands in line when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Nobody,
    Send,
    Reserve,
    SendThenReceive,
    Receive,
}

/// What the other thread does meanwhile.
#[derive(Clone, Copy, Debug)]
enum Event {
    TrySend,
    TryRecv,
    Recv,
    TryReserve,
    Close,
    Admit,
    DropFirst,
    DropReceiver,
}

const LINES: [Line; 5] = [Line::Nobody, Line::Send, Line::Reserve, Line::SendThenReceive, Line::Receive];
const EVENTS: [Event; 8] = [
    Event::TrySend,
    Event::TryRecv,
    Event::Recv,
    Event::TryReserve,
    Event::Close,
    Event::Admit,
    Event::DropFirst,
    Event::DropReceiver,
];

#[derive(Default)]
struct Waiting {
    send: Option<Pin<Box<OwnedSending<Value>>>>,
    reserve: Option<Pin<Box<OwnedReserving<Value>>>>,
    receives: Vec<Pin<Box<OwnedReceiving<Value>>>>,
}

struct World {
    dropped: Arc<AtomicUsize>,
    made: usize,
}

impl World {
    fn value(&mut self) -> Value {
        self.made += 1;
        Value(self.dropped.clone())
    }
}

fn run(capacity: usize, line: Line, event: Event, sends: bool) {
    let mut world = World { dropped: Arc::default(), made: 0 };
    let (tx, rx) = bounded::<Value>(capacity);
    let permit = take(&tx);
    for _ in 1..capacity {
        assert!(tx.try_send(world.value()).is_ok());
    }
    let mut waiting = Waiting::default();
    if matches!(line, Line::Send | Line::SendThenReceive) {
        let mut send = Box::pin(tx.clone().into_send(world.value()));
        assert!(look(&mut send).is_pending());
        waiting.send = Some(send);
    }
    if line == Line::Reserve {
        let mut reserve = Box::pin(tx.clone().into_reserve());
        assert!(look(&mut reserve).is_pending());
        waiting.reserve = Some(reserve);
    }
    if capacity == 1 && matches!(line, Line::Receive | Line::SendThenReceive) {
        let mut receive = Box::pin(rx.clone().into_recv());
        assert!(look(&mut receive).is_pending());
        waiting.receives.push(receive);
    }
    let (value, extra) = (sends.then(|| world.value()), world.value());
    let other = loom::thread::spawn(move || match value {
        Some(value) => drop(permit.send(value)),
        None => drop(permit),
    });
    let rx = act(event, &tx, rx, &mut waiting, extra);
    other.join().unwrap();
    settle(&tx, rx, waiting);
    drop(tx);
    assert_eq!(world.dropped.load(SeqCst), world.made, "each value was dropped once");
}

fn take(tx: &Sender<Value>) -> OwnedPermit<Value> {
    match look(&mut Box::pin(tx.clone().into_reserve())) {
        Poll::Ready(Ok(permit)) => permit,
        _ => panic!("there was room"),
    }
}

fn act(
    event: Event,
    tx: &Sender<Value>,
    rx: Receiver<Value>,
    waiting: &mut Waiting,
    extra: Value,
) -> Option<Receiver<Value>> {
    match event {
        Event::TrySend => drop(tx.try_send(extra)),
        Event::TryRecv => drop(rx.try_recv()),
        Event::Recv => {
            let mut receive = Box::pin(rx.clone().into_recv());
            if look(&mut receive).is_pending() {
                waiting.receives.push(receive);
            }
        }
        Event::TryReserve => drop(tx.try_reserve()),
        Event::Close => drop(tx.close()),
        Event::Admit => drop(tx.close_with(Parked::Admit)),
        Event::DropFirst => {
            waiting.send = None;
            waiting.reserve = None;
        }
        Event::DropReceiver => {
            waiting.receives.clear();
            drop(rx);
            return None;
        }
    }
    Some(rx)
}

/// Both threads have gone, and no permit is left: whoever still waits must have a reason.
fn settle(tx: &Sender<Value>, rx: Option<Receiver<Value>>, mut waiting: Waiting) {
    let mut sender_waits = false;
    if let Some(send) = &mut waiting.send {
        sender_waits |= look(send).is_pending();
    }
    if let Some(reserve) = &mut waiting.reserve {
        // A permit that it got is dropped here.
        sender_waits |= look(reserve).is_pending();
    }
    if sender_waits {
        assert!(tx.is_full() && !tx.is_closed() && rx.is_some(), "a sender waits beside room");
    }
    for receive in &mut waiting.receives {
        if look(receive).is_pending() {
            assert!(tx.is_empty() && !tx.is_closed(), "a receiver waits beside a value, or after the end");
            assert_eq!(tx.parked_senders(), 0);
        }
    }
    drop(waiting);
    if let Some(rx) = rx {
        while rx.try_recv().is_ok() {}
        assert!(!tx.is_full(), "a slot was lost");
    }
}

fn every(capacity: usize, sends: bool) {
    for line in LINES {
        if capacity > 1 && matches!(line, Line::Receive | Line::SendThenReceive) {
            continue;
        }
        for event in EVENTS {
            let mut model = loom::model::Builder::new();
            model.preemption_bound = model.preemption_bound.or(Some(2));
            model.check(move || run(capacity, line, event, sends));
        }
    }
}

#[test]
fn a_permit_that_sends_capacity_1() {
    every(1, true);
}

#[test]
fn a_permit_that_is_dropped_capacity_1() {
    every(1, false);
}

#[test]
fn a_permit_that_sends_capacity_2() {
    every(2, true);
}

#[test]
fn a_permit_that_is_dropped_capacity_2() {
    every(2, false);
}

/// How the slot that another thread may still be reading comes to be filled.
#[derive(Clone, Copy, Debug)]
enum Fill {
    /// By a permit's own value.
    Send,
    /// By a parked send's, when a permit is dropped.
    Drop,
    /// By a parked send's, when a receive takes the slot before it: with permits the one that became free is another.
    Receive,
}

/// M2, I6: a receive has claimed the first slot, and may be in the middle of its read while that slot is promised, and filled.
///
/// The receive is this thread's, which loom lets begin: where two threads read a word, and then one of them writes it, loom
/// sees no reason to try the other order.
fn fill_beside_a_read(capacity: usize, fill: Fill) -> bool {
    let mut world = World { dropped: Arc::default(), made: 0 };
    let (tx, rx) = bounded::<Value>(capacity);
    for _ in 0..capacity {
        assert!(tx.try_send(world.value()).is_ok());
    }
    let (own, parked) = (world.value(), world.value());
    let (sender, receiver) = (tx.clone(), rx.clone());
    let other = loom::thread::spawn(move || {
        // Else the slot has not been claimed yet.
        let Ok(permit) = sender.try_reserve() else { return false };
        let left = match fill {
            Fill::Send => {
                assert!(permit.send(own).is_ok());
                capacity
            }
            Fill::Drop | Fill::Receive => {
                let mut send = Box::pin(sender.send(parked));
                assert!(look(&mut send).is_pending());
                if matches!(fill, Fill::Receive) {
                    assert!(receiver.try_recv().is_ok());
                }
                drop(permit);
                assert!(look(&mut send).is_ready());
                capacity - usize::from(matches!(fill, Fill::Receive))
            }
        };
        assert_eq!(sender.len(), left);
        true
    });
    assert!(rx.try_recv().is_ok());
    let filled = other.join().unwrap();
    settle(&tx, Some(rx), Waiting::default());
    drop(tx);
    assert_eq!(world.dropped.load(SeqCst), world.made, "each value was dropped once");
    filled
}

fn beside_a_read(capacity: usize, fill: Fill) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(2));
    let filled = Arc::new(AtomicUsize::new(0));
    let seen = filled.clone();
    model.check(move || _ = seen.fetch_add(usize::from(fill_beside_a_read(capacity, fill)), SeqCst));
    // Once after the read is not enough.
    assert!(filled.load(SeqCst) > 1, "it was never filled beside the read");
}

#[test]
fn a_permit_s_value_beside_a_read() {
    [1, 2].into_iter().for_each(|capacity| beside_a_read(capacity, Fill::Send));
}

#[test]
fn a_dropped_permit_s_slot_beside_a_read() {
    [1, 2].into_iter().for_each(|capacity| beside_a_read(capacity, Fill::Drop));
}

#[test]
fn a_receive_lets_a_send_in_beside_a_read() {
    beside_a_read(2, Fill::Receive);
}
