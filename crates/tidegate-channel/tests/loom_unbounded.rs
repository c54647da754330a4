//! The unbounded channel under loom: production code with blocks of two slots, every interleaving within the preemption
//! bound.
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p tidegate-channel --test loom_unbounded`
//!
//! Pairs of actions from every place in a block, then the three-thread races of a border: who reads in a block that is
//! left, who brings the next one. Each model ends with the same questions: did every value go to exactly one place, in
//! order, and is nothing parked that could go on?
#![cfg(loom)]

mod support;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use loom::thread;
use support::{Counted, Ledger, Look, Woken};
use tidegate_channel::{unbounded, Operation, Receiver, RecvError, Sender};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Send,
    SendTwo,
    Recv,
    TryRecv,
    /// Polls a receive once and drops it: parked, or delivered meanwhile.
    DropRecv,
    /// Drops the receive that was parked before the threads began: parked still, or delivered.
    DropParked,
    Close,
    /// The last drop of a side.
    LastTx,
    LastRx,
    /// Takes a permit and uses it.
    Permit,
    Len,
}

use Act::*;

/// A channel whose words stand at the same position, `filled` values further, perhaps a receive parked.
#[derive(Clone, Copy, Debug)]
struct Start {
    at: usize,
    filled: usize,
    parked: bool,
}

type Receive = Pin<Box<dyn Future<Output = Result<Counted, RecvError>> + std::marker::Send>>;

/// What one thread has in hand, and what it saw.
struct Hand {
    tx: Option<Sender<Counted>>,
    rx: Option<Receiver<Counted>>,
    value: Option<Counted>,
    second: Option<Counted>,
    parked: Option<(Receive, Arc<Woken>)>,
    sent: Vec<usize>,
    received: Vec<usize>,
}

impl Hand {
    fn receive(&mut self, end: Result<Counted, RecvError>) {
        self.received.extend(end.map(|value| value.id));
    }

    fn act(&mut self, act: Act) {
        match act {
            Send => {
                let value = self.value.take().unwrap();
                let id = value.id;
                let mut send = Box::pin(self.tx.take().unwrap().into_send(value));
                if send.ends().is_ok() {
                    self.sent.push(id);
                }
            }
            SendTwo => {
                let tx = self.tx.take().unwrap();
                for value in [self.value.take(), self.second.take()].into_iter().flatten() {
                    let id = value.id;
                    if tx.try_send(value).is_ok() {
                        self.sent.push(id);
                    }
                }
            }
            Permit => {
                let value = self.value.take().unwrap();
                let id = value.id;
                let tx = self.tx.take().unwrap();
                let permit = tx.try_reserve();
                if permit.is_ok_and(|permit| permit.send(value).is_ok()) {
                    self.sent.push(id);
                }
            }
            Recv | DropRecv => {
                let (woken, waker) = Woken::new();
                let mut receive: Receive = Box::pin(self.rx.take().unwrap().into_recv());
                match receive.look_with(&waker) {
                    Poll::Ready(end) => self.receive(end),
                    Poll::Pending if act == Recv => self.parked = Some((receive, woken)),
                    Poll::Pending => drop(receive),
                }
            }
            TryRecv => {
                let end = self.rx.take().unwrap().try_recv();
                self.receive(end);
            }
            DropParked => drop(self.parked.take()),
            Close => drop(self.rx.take().unwrap().close().then_some(())),
            Len => assert!(self.rx.take().unwrap().len() <= 8),
            LastTx => drop(self.tx.take()),
            LastRx => drop(self.rx.take()),
        }
    }
}

/// Runs one case once, inside a loom model.
fn run(start: Start, acts: &[Act]) {
    let ledger = Ledger::default();
    let (tx, rx) = unbounded();
    let (mut tx, mut rx) = (Some(tx), Some(rx));
    let mut made = 0;
    let mut value = || {
        made += 1;
        ledger.value(made - 1)
    };
    for _ in 0..start.at {
        assert!(tx.as_ref().unwrap().try_send(value()).is_ok());
        assert!(rx.as_ref().unwrap().try_recv().is_ok());
    }
    let mut sent = Vec::new();
    let mut parked = start.parked.then(|| {
        let (woken, waker) = Woken::new();
        let mut receive: Receive = Box::pin(rx.as_ref().unwrap().clone().into_recv());
        receive.parks_with(&waker);
        (receive, woken)
    });
    for _ in 0..start.filled {
        let value = value();
        sent.push(value.id);
        assert!(tx.as_ref().unwrap().try_send(value).is_ok());
    }
    let mut hands: Vec<_> = acts
        .iter()
        .map(|&act| Hand {
            tx: matches!(act, Send | SendTwo | Permit).then(|| tx.clone().unwrap()),
            rx: matches!(act, Recv | DropRecv | TryRecv | Close | Len).then(|| rx.clone().unwrap()),
            value: matches!(act, Send | SendTwo | Permit).then(&mut value),
            second: (act == SendTwo).then(&mut value),
            parked: if act == DropParked { parked.take() } else { None },
            sent: Vec::new(),
            received: Vec::new(),
        })
        .collect();
    for (act, hand) in acts.iter().zip(&mut hands) {
        match act {
            LastTx => hand.tx = tx.take(),
            LastRx => hand.rx = rx.take(),
            _ => {}
        }
    }
    let own = hands.remove(0);
    let threads: Vec<_> = acts[1..]
        .iter()
        .zip(hands)
        .map(|(&act, mut hand)| {
            thread::spawn(move || {
                hand.act(act);
                hand
            })
        })
        .collect();
    let mut own = own;
    own.act(acts[0]);
    let mut seen = vec![own];
    seen.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
    finish((tx, rx), parked, sent, seen, start, acts);
    ledger.settled();
}

/// At the end of a model: G1, G2, and nobody parked beside a value or on a closed channel.
fn finish(
    (tx, rx): (Option<Sender<Counted>>, Option<Receiver<Counted>>),
    parked: Option<(Receive, Arc<Woken>)>,
    mut sent: Vec<usize>,
    seen: Vec<Hand>,
    start: Start,
    acts: &[Act],
) {
    let mut pending: Vec<_> = parked.into_iter().collect();
    let mut received = Vec::new();
    for hand in seen {
        sent.extend(&hand.sent);
        received.extend(&hand.received);
        pending.extend(hand.parked);
    }
    pending.retain_mut(|(receive, woken)| match receive.look() {
        Poll::Ready(end) => {
            assert!(woken.count() > 0, "it ended, and its task was not woken");
            received.extend(end.map(|value| value.id));
            false
        }
        Poll::Pending => true,
    });
    let closed = tx.as_ref().is_none_or(Sender::is_closed);
    assert!(!closed || pending.is_empty(), "parked on a closed channel");
    let Some(rx) = rx else {
        assert!(tx.is_none_or(|tx| tx.is_empty()), "a value was left behind by the last receiver");
        return;
    };
    assert!(pending.is_empty() || rx.is_empty(), "parked beside a value");
    let in_threads = received.len();
    while let Ok(value) = rx.try_recv() {
        received.push(value.id);
    }
    // Values of the beginning, from one sender: what is left leaves in order, unless a delivery was seen late.
    let late = start.parked || acts.iter().any(|act| matches!(act, DropParked | DropRecv));
    let order = if late { &received[in_threads..] } else { &received[..] };
    let threads = acts.iter().filter(|act| matches!(act, Recv | TryRecv)).count();
    if threads < 2 {
        let first: Vec<_> = order.iter().filter(|id| sent[..start.filled].contains(id)).collect();
        assert!(first.is_sorted(), "out of order: {received:?}");
    }
    received.sort_unstable();
    sent.sort_unstable();
    assert_eq!(received, sent, "received, sent");
    if closed {
        assert!(matches!(rx.try_recv(), Err(RecvError::Closed)));
    }
}

fn explore(start: Start, acts: &'static [Act], bound: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(2).min(bound));
    builder.max_branches = 20_000;
    let before = std::time::Instant::now();
    builder.check(move || run(start, acts));
    eprintln!("{start:?} {acts:?} {:?}", before.elapsed());
}

/// Every pair that makes sense, from one start.
fn pairs(start: Start) {
    const PAIRS: &[&[Act]] = &[
        &[Send, Send],
        &[Send, Recv],
        &[Send, TryRecv],
        &[Send, DropRecv],
        &[Send, Close],
        &[Send, LastTx],
        &[Send, LastRx],
        &[Send, Permit],
        &[Send, Len],
        &[Recv, Recv],
        &[Recv, TryRecv],
        &[Recv, DropRecv],
        &[Recv, Close],
        &[Recv, LastTx],
        &[Recv, LastRx],
        &[Recv, Permit],
        &[Recv, Len],
        &[TryRecv, TryRecv],
        &[TryRecv, Close],
        &[TryRecv, LastTx],
        &[TryRecv, LastRx],
        &[TryRecv, Permit],
        &[Close, LastTx],
        &[Close, LastRx],
        &[Close, Permit],
        &[LastTx, LastRx],
        &[Permit, LastRx],
        &[Permit, Permit],
    ];
    const WITH_PARKED: &[&[Act]] = &[
        &[Send, DropParked],
        &[Recv, DropParked],
        &[TryRecv, DropParked],
        &[Close, DropParked],
        &[Permit, DropParked],
        &[LastTx, DropParked],
        &[LastRx, DropParked],
    ];
    PAIRS.iter().for_each(|acts| explore(start, acts, 2));
    if start.parked {
        WITH_PARKED.iter().for_each(|acts| explore(start, acts, 2));
    }
}

#[test]
fn pairs_from_empty() {
    pairs(Start { at: 0, filled: 0, parked: false });
}

#[test]
fn pairs_from_empty_at_a_border() {
    pairs(Start { at: 1, filled: 0, parked: false });
}

#[test]
fn pairs_from_one_value() {
    pairs(Start { at: 0, filled: 1, parked: false });
}

#[test]
fn pairs_from_one_value_at_a_border() {
    pairs(Start { at: 1, filled: 1, parked: false });
}

#[test]
fn pairs_from_a_block() {
    pairs(Start { at: 0, filled: 2, parked: false });
    pairs(Start { at: 1, filled: 3, parked: false });
}

#[test]
fn pairs_from_a_parked_receive() {
    pairs(Start { at: 0, filled: 0, parked: true });
    pairs(Start { at: 1, filled: 0, parked: true });
}

#[test]
fn pairs_from_a_delivery() {
    pairs(Start { at: 0, filled: 1, parked: true });
    pairs(Start { at: 1, filled: 2, parked: true });
}

/// U5: of three receives in two blocks one may still read in the block that another one retires and a third one, or a
/// sender, uses again.
#[test]
fn three_receives() {
    explore(Start { at: 0, filled: 3, parked: false }, &[TryRecv, TryRecv, TryRecv], 2);
    explore(Start { at: 1, filled: 3, parked: false }, &[TryRecv, Recv, TryRecv], 1);
}

/// U5: the block that is left is entered again at once: by who crosses the next border, and sends one value more.
#[test]
fn a_block_is_used_again() {
    explore(Start { at: 0, filled: 3, parked: false }, &[TryRecv, TryRecv, SendTwo], 2);
    explore(Start { at: 2, filled: 3, parked: false }, &[TryRecv, TryRecv, SendTwo], 1);
}

/// U4: in a block that is used again a send is still copying, and a receive waits for it, while others cross the border, both
/// ways, and come round to the block once more: stamps of its first use say nothing.
#[test]
fn a_copy_in_a_block_that_is_used_again() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 20_000;
    builder.expect_explicit_explore = true;
    builder.check(|| {
        let ledger = Ledger::default();
        let (tx, rx) = unbounded();
        for n in 0..4 {
            assert!(tx.try_send(ledger.value(n)).is_ok() && rx.try_recv().unwrap() == n);
        }
        let (sender, receiver, value) = (tx.clone(), rx.clone(), ledger.value(4));
        let copies = thread::spawn(move || assert!(sender.try_send(value).is_ok()));
        let waits = thread::spawn(move || receiver.try_recv().ok());
        loom::explore();
        assert!(tx.try_send(ledger.value(5)).is_ok());
        let mut seen: Vec<_> = rx.try_recv().into_iter().collect();
        // What follows has one order: it would take hours.
        loom::stop_exploring();
        (6..9).for_each(|n| assert!(tx.try_send(ledger.value(n)).is_ok()));
        copies.join().unwrap();
        seen.extend(waits.join().unwrap());
        seen.extend(std::iter::from_fn(|| rx.try_recv().ok()));
        let mut ids: Vec<_> = seen.iter().map(|value| value.id).collect();
        ids.sort_unstable();
        assert!(ids.into_iter().eq(4..9));
        drop(seen);
        ledger.settled();
    });
}

/// U2: a sender that stops between its looks at tail and block, while another one crosses.
#[test]
fn a_send_beside_a_crossing() {
    explore(Start { at: 0, filled: 0, parked: false }, &[Send, SendTwo], 3);
    explore(Start { at: 0, filled: 0, parked: false }, &[SendTwo, SendTwo], 2);
    explore(Start { at: 1, filled: 0, parked: false }, &[SendTwo, Recv], 2);
}

/// U7, I7: who goes on from what another receiver has seen of the tail, without a look of its own, has that tail behind it:
/// head does not pass tail, as a third one's `len` sees it.
#[test]
fn a_claim_by_what_another_has_seen() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 20_000;
    builder.check(|| {
        let (tx, rx) = unbounded();
        let (takes, asks) = (rx.clone(), rx.clone());
        let second = thread::spawn(move || takes.try_recv().is_ok());
        let third = thread::spawn(move || assert!(asks.len() <= 1));
        // This thread's, which loom lets begin: see `loom_permits`.
        tx.try_send(1).unwrap();
        let here = rx.try_recv().is_ok();
        let there = second.join().unwrap();
        third.join().unwrap();
        assert!(here ^ there, "exactly one of them took it");
    });
}

/// U1, U2: three senders meet at a border.
#[test]
fn three_sends() {
    explore(Start { at: 0, filled: 0, parked: false }, &[Send, Send, Send], 2);
    explore(Start { at: 1, filled: 0, parked: false }, &[Send, Send, Permit], 1);
}

/// Both words cross at once, and the spare block changes hands.
#[test]
fn both_ends_cross() {
    explore(Start { at: 1, filled: 2, parked: false }, &[Send, TryRecv, TryRecv], 1);
    explore(Start { at: 3, filled: 1, parked: false }, &[Send, Send, TryRecv], 1);
    explore(Start { at: 0, filled: 3, parked: false }, &[TryRecv, TryRecv, Send], 1);
}

/// G7: the end in the middle of it.
#[test]
fn an_end_between_two() {
    explore(Start { at: 1, filled: 0, parked: false }, &[Send, Send, LastRx], 1);
    explore(Start { at: 1, filled: 1, parked: false }, &[Send, TryRecv, LastRx], 1);
    explore(Start { at: 1, filled: 1, parked: false }, &[Send, Recv, Close], 1);
    explore(Start { at: 1, filled: 2, parked: true }, &[DropParked, TryRecv, LastTx], 1);
}

/// Several blocks by whole threads: one sends across two borders, one receives.
#[test]
fn a_stream_of_blocks() {
    let mut builder = loom::model::Builder::new();
    // Minutes at 2.
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(2) - 1);
    builder.max_branches = 20_000;
    builder.check(|| {
        let (tx, rx) = unbounded();
        let sender = thread::spawn(move || (0..4).for_each(|n| tx.try_send(n).unwrap()));
        (0..4).for_each(|n| assert_eq!(rx.recv().wait(), Ok(n)));
        assert_eq!(rx.recv().wait(), Err(RecvError::Closed));
        sender.join().unwrap();
    });
}
