//! What threads call, and what was seen of it.

use crate::spec::{End, Fault, Side, Spec};
use crate::support::Rng;

/// The most values of a batch.
pub const MANY: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Never,
    /// One step of the clock.
    Time,
    /// The token of the whole history.
    Token,
}

#[derive(Clone, Copy, Debug)]
pub enum Call {
    TrySend(u32),
    TryRecv,
    Send(u32, Limit),
    Recv(Limit),
    /// A receive, or a send, that is polled once and dropped.
    Abandon,
    AbandonSend(u32),
    /// A send that is polled once and withdrawn.
    Withdraw(u32),
    /// A batch of so many values in a row.
    SendMany(u32, u8, Limit),
    TrySendMany(u32, u8),
    WithdrawMany(u32, u8),
    /// At most so many.
    RecvMany(u8, Limit),
    TryRecvMany(u8),
    /// A thread keeps the permits that it gets.
    Reserve(Limit),
    TryReserve,
    AbandonReserve,
    /// The permit that the thread got last is used, or dropped.
    SendPermit(u32),
    DropPermit,
    Close(bool),
    Closed,
    /// The clock takes a step; the token is cancelled.
    Advance,
    Cancel,
    Drop(Side),
    /// A weak half becomes one, which is dropped.
    Upgrade(Side),
}

impl Call {
    /// The owner ends it, after it has parked.
    pub fn is_given_up(self) -> bool {
        use Call::{Abandon, AbandonReserve, AbandonSend, Withdraw, WithdrawMany};
        matches!(self, Abandon | AbandonSend(_) | Withdraw(_) | WithdrawMany(..) | AbandonReserve)
    }

    pub fn limit(self) -> Limit {
        match self {
            Call::Send(_, limit)
            | Call::Recv(limit)
            | Call::SendMany(_, _, limit)
            | Call::RecvMany(_, limit)
            | Call::Reserve(limit) => limit,
            _ => Limit::Never,
        }
    }

    /// Ends a permit.
    pub fn needs_permit(self) -> bool {
        matches!(self, Call::SendPermit(_) | Call::DropPermit)
    }
}

/// What one thread has still to call.
pub struct Script<'p> {
    calls: &'p [Call],
}

impl<'p> Script<'p> {
    pub fn new(calls: &'p [Call]) -> Script<'p> {
        Script { calls }
    }

    /// The next call of a thread that has so many permits. It drops them at its end, and before it waits for a value: a
    /// closed channel does not end before them, and would not end this wait. What needs a permit is left out without one.
    pub fn next(&mut self, permits: usize) -> Option<Call> {
        while permits == 0 && self.calls.first().is_some_and(|call| call.needs_permit()) {
            self.calls = &self.calls[1..];
        }
        match self.calls.first() {
            None | Some(Call::Recv(_) | Call::RecvMany(..)) if permits != 0 => Some(Call::DropPermit),
            next => {
                self.calls = self.calls.get(1..).unwrap_or_default();
                next.copied()
            }
        }
    }

    /// Would `next` have one?
    pub fn has_next(&self, permits: usize) -> bool {
        Script { calls: self.calls }.next(permits).is_some()
    }
}

/// One operation as it was seen: between these two moments, with this end.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub call: Call,
    pub begin: usize,
    pub over: usize,
    /// It was seen to be parked at this moment.
    pub parked: usize,
    pub end: End,
}

/// Where a history begins.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub cap: usize,
    pub threads: usize,
    pub each: usize,
    /// The halves that stay until the end, beside each thread's own pair.
    pub tx_stays: bool,
    pub rx_stays: bool,
}

impl Setting {
    pub fn random(cap: usize, rng: &mut Rng) -> Setting {
        let (threads, each) = [(2, 3), (3, 2), (2, 4), (3, 3), (4, 2)][rng.below(5)];
        let (tx_stays, rx_stays) = [(true, true), (true, false), (false, true)][rng.below(3)];
        Setting { cap, threads, each, tx_stays, rx_stays }
    }

    pub fn spec(self, fault: Fault) -> Spec {
        let mut spec = Spec::new(self.cap, fault);
        spec.senders = self.threads + usize::from(self.tx_stays);
        spec.receivers = self.threads + usize::from(self.rx_stays);
        spec
    }

    /// What each thread calls.
    pub fn plan(self, rng: &mut Rng) -> Vec<Vec<Call>> {
        let mut next = 1;
        (0..self.threads)
            .map(|_| {
                let mut has = (true, true);
                (0..self.each).map(|_| random_call(rng, &mut next, &mut has)).collect()
            })
            .collect()
    }
}

/// A call that a thread with these halves can make; values from `next` on.
fn random_call(rng: &mut Rng, next: &mut u32, has: &mut (bool, bool)) -> Call {
    let limit = [Limit::Never, Limit::Never, Limit::Never, Limit::Time, Limit::Token][rng.below(5)];
    let many = 1 + rng.below(usize::from(MANY)) as u8;
    let value = *next;
    // More than most calls take.
    *next += u32::from(MANY);
    match (rng.below(46), *has) {
        (0..=3, (true, _)) => Call::TrySend(value),
        (4..=6, (_, true)) => Call::TryRecv,
        (7..=10, (true, _)) => Call::Send(value, limit),
        (11..=14, (_, true)) => Call::Recv(limit),
        (15..=17, (_, true)) => Call::Abandon,
        (18, (true, _)) => Call::AbandonSend(value),
        (19, (true, _)) => Call::Withdraw(value),
        (20, (true, _)) => Call::Close(false),
        (21 | 22, (true, _)) => Call::Close(true),
        (23, (_, true)) => Call::Closed,
        (24, _) => Call::Cancel,
        (25, (true, _)) => {
            has.0 = false;
            Call::Drop(Side::Tx)
        }
        (26, (_, true)) => {
            has.1 = false;
            Call::Drop(Side::Rx)
        }
        (27, _) => Call::Upgrade(Side::Tx),
        (28, _) => Call::Upgrade(Side::Rx),
        (29..=31, (true, _)) => Call::SendMany(value, many, limit),
        (32, (true, _)) => Call::TrySendMany(value, many),
        (33, (true, _)) => Call::WithdrawMany(value, many),
        (34 | 35, (_, true)) => Call::RecvMany(many, limit),
        (36, (_, true)) => Call::TryRecvMany(many),
        (37..=39, (true, _)) => Call::Reserve(limit),
        (40, (true, _)) => Call::TryReserve,
        (41, (true, _)) => Call::AbandonReserve,
        (42 | 43, _) => Call::SendPermit(value),
        (44, _) => Call::DropPermit,
        _ => Call::Advance,
    }
}
