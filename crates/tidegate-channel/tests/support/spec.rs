//! The bounded channel as a sequential specification, of any capacity from 0 and for both ways to close: what each
//! operation does, one at a time; with mutants of it.
//!
//! A close takes several steps, as the channel's does: one that ends the sends (`close_begin`), then one for each parked
//! send that is let in, and one for everybody else (`close_step`). Other operations may stand in between.
#![allow(dead_code, unreachable_pub)]

use std::collections::{BTreeMap, VecDeque};

/// A fault to plant, so that a checker can show that it sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    None,
    /// A value handed to a parked receive is gone, and the receive waits on.
    LostHandOff,
    /// A freed slot is left to whoever comes first, past the parked send; without slots, a value goes to the receive that
    /// parked last.
    Barging,
    /// Returned deliveries come back last in, first out.
    ReorderedStash,
    /// The last parked send is admitted first.
    LastInFirst,
    /// Buffered values are dropped by the close.
    CloseDrops,
    /// A close lets the last parked send in first.
    AdmitReversed,
    /// Receivers see the end before what a close lets in.
    ClosedTooSoon,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    Sent,
    Got(u32),
    Closed,
    Full,
    Empty,
    /// Given up, by its owner, a timer or a token, without having had an effect that anybody sees.
    GivenUp,
}

/// Which halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    Tx,
    Rx,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    cap: usize,
    fault: Fault,
    pub ring: VecDeque<u32>,
    stash: Vec<(u32, u32)>,
    overflow: VecDeque<u32>,
    pub tx: VecDeque<(usize, u32)>,
    pub rx: VecDeque<usize>,
    waits: Vec<usize>,
    /// Whom the close under way has still to end.
    closing: (VecDeque<(usize, u32)>, VecDeque<usize>),
    admitting: bool,
    tickets: u32,
    pub closed: bool,
    pub senders: usize,
    pub receivers: usize,
    /// Operations that parked and have ended since, with the ticket of a delivery.
    pub ended: BTreeMap<usize, (End, u32)>,
}

impl Spec {
    pub fn new(cap: usize, fault: Fault) -> Spec {
        Spec {
            cap,
            fault,
            ring: VecDeque::new(),
            stash: Vec::new(),
            overflow: VecDeque::new(),
            tx: VecDeque::new(),
            rx: VecDeque::new(),
            waits: Vec::new(),
            closing: (VecDeque::new(), VecDeque::new()),
            admitting: false,
            tickets: 0,
            closed: false,
            senders: 1,
            receivers: 1,
            ended: BTreeMap::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.ring.len() + self.stash.len() + self.overflow.len()
    }

    pub fn is_parked(&self, op: usize) -> bool {
        let sends = self.tx.iter().chain(&self.closing.0);
        self.rx.contains(&op)
            || self.waits.contains(&op)
            || self.closing.1.contains(&op)
            || sends.clone().any(|&(id, _)| id == op)
    }

    fn hand_over(&mut self, value: u32, ticket: u32) {
        if self.fault == Fault::LostHandOff {
            return;
        }
        let first = match self.fault {
            Fault::Barging if self.cap == 0 => self.rx.pop_back(),
            _ => self.rx.pop_front(),
        };
        if let Some(op) = first {
            self.ended.insert(op, (End::Got(value), ticket));
        }
    }

    fn hand_over_anew(&mut self, value: u32) {
        self.tickets += 1;
        self.hand_over(value, self.tickets);
    }

    /// `None`: it parks as `op`.
    pub fn send(&mut self, op: Option<usize>, value: u32) -> Option<End> {
        if self.closed {
            return Some(End::Closed);
        }
        if !self.rx.is_empty() {
            self.hand_over_anew(value);
            return Some(End::Sent);
        }
        if self.ring.len() < self.cap && (self.tx.is_empty() || self.fault == Fault::Barging) {
            self.ring.push_back(value);
            return Some(End::Sent);
        }
        match op {
            None => Some(End::Full),
            Some(op) => {
                self.tx.push_back((op, value));
                None
            }
        }
    }

    /// As above.
    pub fn recv(&mut self, op: Option<usize>) -> Option<End> {
        if !self.stash.is_empty() {
            let at = match self.fault {
                Fault::ReorderedStash => self.stash.len() - 1,
                _ => 0,
            };
            return Some(End::Got(self.stash.remove(at).1));
        }
        let item = self.ring.pop_front();
        if item.is_some() || self.cap == 0 {
            let admitted = match self.fault {
                Fault::Barging if self.cap > 0 && self.ring.len() + 1 == self.cap => None,
                Fault::LastInFirst => self.tx.pop_back(),
                _ => self.tx.pop_front(),
            };
            if let Some((id, parked)) = admitted {
                self.ended.insert(id, (End::Sent, 0));
                self.ring.push_back(parked);
            }
            // Without slots the parked value itself is the item.
            if let Some(value) = item.or_else(|| self.ring.pop_front()) {
                return Some(End::Got(value));
            }
        }
        if self.closed {
            if self.fault == Fault::ClosedTooSoon {
                return Some(End::Closed);
            }
            if let Some(value) = self.overflow.pop_front() {
                return Some(End::Got(value));
            }
            if !self.admitting {
                return Some(End::Closed);
            }
        }
        match op {
            None => Some(End::Empty),
            Some(op) => {
                self.rx.push_back(op);
                None
            }
        }
    }

    /// A wait for the close.
    pub fn wait(&mut self, op: usize) -> Option<End> {
        if !self.closed {
            self.waits.push(op);
        }
        self.closed.then_some(End::Closed)
    }

    /// A parked or ended operation is given up before its owner has seen the end. Returns the end, if there was one.
    pub fn leave(&mut self, op: usize) -> Option<End> {
        self.tx.retain(|&(id, _)| id != op);
        self.rx.retain(|&id| id != op);
        self.closing.0.retain(|&(id, _)| id != op);
        self.closing.1.retain(|&id| id != op);
        self.waits.retain(|&id| id != op);
        let (end, ticket) = self.ended.remove(&op)?;
        if let End::Got(value) = end {
            if self.rx.is_empty() {
                self.stash.push((ticket, value));
                if self.fault != Fault::ReorderedStash {
                    self.stash.sort_unstable();
                }
            } else {
                self.hand_over(value, ticket);
            }
        }
        Some(end)
    }

    /// The first step of a close. False: it is closed already.
    pub fn close_begin(&mut self, admit: bool) -> bool {
        if self.closed {
            return false;
        }
        self.closed = true;
        if self.fault == Fault::CloseDrops {
            self.ring.clear();
        }
        self.closing.0 = std::mem::take(&mut self.tx);
        self.admitting = admit && !self.closing.0.is_empty();
        if !self.admitting {
            self.closing.1 = std::mem::take(&mut self.rx);
        }
        true
    }

    /// One more step of it. True: the last.
    pub fn close_step(&mut self) -> bool {
        if self.admitting && self.receivers > 0 {
            let next = match self.fault {
                Fault::AdmitReversed => self.closing.0.pop_back(),
                _ => self.closing.0.pop_front(),
            };
            if let Some((op, value)) = next {
                self.ended.insert(op, (End::Sent, 0));
                if self.rx.is_empty() {
                    self.overflow.push_back(value);
                } else {
                    self.hand_over_anew(value);
                }
                return false;
            }
        }
        self.admitting = false;
        let sends = self.closing.0.drain(..).map(|(op, _)| op);
        let parked = sends.chain(self.closing.1.drain(..)).chain(self.rx.drain(..)).chain(self.waits.drain(..));
        self.ended.extend(parked.map(|op| (op, (End::Closed, 0))));
        true
    }

    /// A whole close.
    pub fn close(&mut self, admit: bool) -> bool {
        self.close_begin(admit) && {
            while !self.close_step() {}
            true
        }
    }

    fn halves(&mut self, side: Side) -> &mut usize {
        match side {
            Side::Tx => &mut self.senders,
            Side::Rx => &mut self.receivers,
        }
    }

    /// A half goes. True: the last one: it closes, and if it was a receiver it drains.
    pub fn drop_half(&mut self, side: Side) -> bool {
        *self.halves(side) -= 1;
        *self.halves(side) == 0
    }

    /// A weak half becomes one, if there is another.
    pub fn upgrade(&mut self, side: Side) -> bool {
        let halves = self.halves(side);
        let can = *halves > 0;
        *halves += usize::from(can);
        can
    }

    /// The last receiver drops what is buffered.
    pub fn drain(&mut self) {
        self.ring.clear();
        self.stash.clear();
        self.overflow.clear();
    }
}
