//! The bounded channel as a sequential specification: what each operation does, one at a time; with mutants of it.
#![allow(dead_code, unreachable_pub)]

use std::collections::{BTreeMap, VecDeque};

/// A fault to plant, so that a checker can show that it sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    None,
    /// A value handed to a parked receive is gone, and the receive waits on.
    LostHandOff,
    /// A freed slot is left to whoever comes first, past the parked send.
    Barging,
    /// Returned deliveries come back last in, first out.
    ReorderedStash,
    /// The last parked send is admitted first.
    LastInFirst,
    /// Buffered values are dropped by the close.
    CloseDrops,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    Sent,
    Got(u32),
    Closed,
    Full,
    Empty,
    /// Given up by its owner, without a value.
    GivenUp,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    cap: usize,
    fault: Fault,
    pub ring: VecDeque<u32>,
    stash: Vec<(u32, u32)>,
    tx: VecDeque<(usize, u32)>,
    rx: VecDeque<usize>,
    tickets: u32,
    pub closed: bool,
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
            tx: VecDeque::new(),
            rx: VecDeque::new(),
            tickets: 0,
            closed: false,
            ended: BTreeMap::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.ring.len() + self.stash.len()
    }

    pub fn is_parked(&self, op: usize) -> bool {
        self.rx.contains(&op) || self.tx.iter().any(|&(id, _)| id == op)
    }

    fn hand_over(&mut self, value: u32, ticket: u32) {
        if self.fault == Fault::LostHandOff {
            return;
        }
        if let Some(op) = self.rx.pop_front() {
            self.ended.insert(op, (End::Got(value), ticket));
        }
    }

    /// `None`: it parks as `op`.
    pub fn send(&mut self, op: Option<usize>, value: u32) -> Option<End> {
        if self.closed {
            return Some(End::Closed);
        }
        if !self.rx.is_empty() {
            self.tickets += 1;
            self.hand_over(value, self.tickets);
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
        if let Some(value) = self.ring.pop_front() {
            let admitted = match self.fault {
                Fault::Barging if self.ring.len() + 1 == self.cap => None,
                Fault::LastInFirst => self.tx.pop_back(),
                _ => self.tx.pop_front(),
            };
            if let Some((id, parked)) = admitted {
                self.ring.push_back(parked);
                self.ended.insert(id, (End::Sent, 0));
            }
            return Some(End::Got(value));
        }
        if self.closed {
            return Some(End::Closed);
        }
        match op {
            None => Some(End::Empty),
            Some(op) => {
                self.rx.push_back(op);
                None
            }
        }
    }

    /// The owner gives a parked or ended operation up, before it has seen the end.
    pub fn leave(&mut self, op: usize) {
        self.tx.retain(|&(id, _)| id != op);
        self.rx.retain(|&id| id != op);
        if let Some((End::Got(value), ticket)) = self.ended.remove(&op) {
            if self.rx.is_empty() {
                self.stash.push((ticket, value));
                self.stash.sort_unstable();
            } else {
                self.hand_over(value, ticket);
            }
        }
    }

    pub fn close(&mut self) -> bool {
        if self.closed {
            return false;
        }
        self.closed = true;
        if self.fault == Fault::CloseDrops {
            self.ring.clear();
        }
        let parked = self.tx.drain(..).map(|(op, _)| op).chain(self.rx.drain(..));
        self.ended.extend(parked.map(|op| (op, (End::Closed, 0))));
        true
    }
}
