//! The channel beside its specification: random operations from one thread, each compared with what it should have done.
//!
//! One thread sees every state between two operations, and every parked operation may be polled, given up, timed out,
//! cancelled or withdrawn in any of them (G1, G2, G6, G7, G8; CASES 1, 2, 3, 12, 13, 17, 21, 25).
#![cfg(not(loom))]

#[path = "support/spec.rs"]
mod spec;
mod support;

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use spec::{End, Fault, Spec};
use support::{Counted, Ledger, Look, Rng};
use tidegate_channel::{bounded, Operation, OwnedReceiving, OwnedSending, RecvError, SendError};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::{Cancellable, Timed, Unlimited};
use tidegate_wait::timer::ManualClock;

type Limits = Timed<Cancellable<'static, Unlimited>>;

enum Op {
    Send(u32, Pin<Box<OwnedSending<Counted, Limits>>>),
    Recv(Pin<Box<OwnedReceiving<Counted, Limits>>>),
}

struct Parked {
    id: usize,
    op: Op,
    token: CancelToken,
    /// In ms on the clock.
    deadline: u64,
}

fn sent(value: u32, end: Result<(), SendError<Counted>>) -> End {
    match end {
        Ok(()) => End::Sent,
        Err(error) => {
            let end = match error {
                SendError::Closed(_) => End::Closed,
                SendError::Full(_) => End::Full,
                _ => End::GivenUp,
            };
            assert!(error.into_inner() == value as usize, "another value came back");
            end
        }
    }
}

fn received(end: Result<Counted, RecvError>) -> End {
    match end {
        Ok(value) => End::Got(value.id as u32),
        Err(RecvError::Closed) => End::Closed,
        Err(RecvError::Empty) => End::Empty,
        Err(_) => End::GivenUp,
    }
}

fn look(op: &mut Op) -> Option<End> {
    match op {
        Op::Send(value, send) => match send.look() {
            Poll::Ready(end) => Some(sent(*value, end)),
            Poll::Pending => None,
        },
        Op::Recv(receive) => match receive.look() {
            Poll::Ready(end) => Some(received(end)),
            Poll::Pending => None,
        },
    }
}

fn run(seed: u64, cap: usize, steps: usize) {
    let mut rng = Rng(seed);
    let (clock, ledger) = (ManualClock::new(), Ledger::default());
    let (tx, rx) = bounded(cap);
    let mut spec = Spec::new(cap, Fault::None);
    let mut parked: Vec<Parked> = Vec::new();
    let (mut now, mut next) = (0_u64, 0_u32);
    clock.enter(|| {
        for id in 0..steps {
            match rng.below(13) {
                kind @ 0..=3 => {
                    let (token, limit) = (CancelToken::new(), [1, 3, 10, u64::MAX][rng.below(4)]);
                    let wait = if limit == u64::MAX { Duration::MAX } else { Duration::from_millis(limit) };
                    let (mut op, expected) = if kind < 2 {
                        next += 1;
                        let send = tx.clone().into_send(ledger.value(next as usize));
                        let send = Box::pin(send.cancel_on_owned(token.clone()).timeout(wait));
                        (Op::Send(next, send), spec.send(Some(id), next))
                    } else {
                        let receive = rx.clone().into_recv().cancel_on_owned(token.clone()).timeout(wait);
                        (Op::Recv(Box::pin(receive)), spec.recv(Some(id)))
                    };
                    assert_eq!(look(&mut op), expected);
                    if expected.is_none() {
                        parked.push(Parked { id, op, token, deadline: now.saturating_add(limit) });
                    }
                }
                4 => {
                    next += 1;
                    let end = sent(next, tx.try_send(ledger.value(next as usize)));
                    assert_eq!(Some(end), spec.send(None, next));
                }
                5 | 6 => assert_eq!(Some(received(rx.try_recv())), spec.recv(None)),
                7 => {
                    now += 1;
                    clock.advance(Duration::from_millis(1));
                    for expired in parked.iter().filter(|parked| parked.deadline <= now) {
                        if spec.is_parked(expired.id) {
                            spec.leave(expired.id);
                            spec.ended.insert(expired.id, (End::GivenUp, 0));
                        }
                    }
                }
                8 if id * 10 > steps * 9 && rng.below(10) == 0 => assert_eq!(rx.close(), spec.close()),
                8..=12 if parked.is_empty() => {}
                8 => {
                    let chosen = &parked[rng.below(parked.len())];
                    chosen.token.cancel();
                    if spec.is_parked(chosen.id) {
                        spec.leave(chosen.id);
                        spec.ended.insert(chosen.id, (End::GivenUp, 0));
                    }
                }
                9 | 10 => {
                    let at = rng.below(parked.len());
                    let end = look(&mut parked[at].op);
                    assert_eq!(end, spec.ended.remove(&parked[at].id).map(|(end, _)| end));
                    if end.is_some() {
                        parked.swap_remove(at);
                    }
                }
                11 => {
                    let chosen = parked.swap_remove(rng.below(parked.len()));
                    spec.leave(chosen.id);
                    drop(chosen.op);
                }
                _ => {
                    let at = rng.below(parked.len());
                    let id = parked[at].id;
                    if let Op::Send(value, send) = &mut parked[at].op {
                        let back = send.as_mut().withdraw().map(|value| value.id as u32);
                        let gone = spec.ended.get(&id).is_some_and(|&(end, _)| end == End::Sent);
                        assert_eq!(back, (!gone).then_some(*value));
                        spec.leave(id);
                        parked.swap_remove(at);
                    }
                }
            }
            assert_eq!((tx.len(), tx.is_full()), (spec.len(), spec.ring.len() == cap));
            assert_eq!(rx.is_closed(), spec.closed);
        }
        parked.clear();
        assert_eq!(clock.armed(), 0);
    });
    drop((tx, rx));
    ledger.settled();
}

#[test]
fn every_operation_does_as_specified() {
    let (runs, steps) = if cfg!(miri) { (1, 100) } else { (150, 1_500) };
    for seed in 0..runs {
        for cap in [1, 2, 3, 64] {
            run(seed, cap, steps);
        }
    }
}
