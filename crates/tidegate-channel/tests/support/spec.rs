//! The bounded and the unbounded channel as a sequential specification, of any capacity from 0, with permits and batches
//! and for both ways to close: what each operation does, one at a time; with mutants of it.
//!
//! What takes the channel several holds of its lock takes several steps here, and other operations may stand in between:
//! - A close is one that ends the sends (`close_begin`), then one for each value that is let in, one that ends the
//!   admission, and one for everybody else (`close_step`).
//! - The end of a closed channel's last permit is one (`permit_end`), then one that ends the receives (`end_receives`).
//! - A batch that is not parked is a step for each value (`send` and `recv` without an operation).
#![allow(dead_code, unreachable_pub)]

use std::collections::{BTreeMap, VecDeque};

/// The capacity of the unbounded channel.
pub const UNBOUNDED: usize = usize::MAX;

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
    /// The slot of a permit goes to whoever parked last, past the front of the line.
    PermitBarging,
    /// Receivers see the end of a closed channel while a permit is out.
    PermitForgotten,
    /// A parked batch goes to the end of the line with each value that it gives.
    BatchLosesPlace,
    /// A parked batch gives its last value first.
    BatchReordered,
    /// A batch that does not send all gets one value less back than is left.
    LostRest,
}

/// Why a batch of sends ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    Sent,
    Closed,
    Full,
    GivenUp,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    Sent,
    Got(u32),
    /// A reservation has a permit.
    Permit,
    Closed,
    Full,
    Empty,
    /// Given up, by its owner, a timer or a token, without having had an effect that anybody sees.
    GivenUp,
    /// A batch of sends: how many went, how many came back.
    SentMany(u8, u8, Why),
    /// A batch of receives: the values, then zeros.
    GotMany([u32; 3]),
}

/// Which halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    Tx,
    Rx,
}

/// What stands in the line of the senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sender {
    Send(u32),
    /// A batch of so many values, from `next` on so many are left.
    Batch {
        next: u32,
        left: u8,
        all: u8,
    },
    Reserve,
}

impl Sender {
    /// How it ends if it is refused, or leaves.
    fn refused(self, why: Why, fault: Fault) -> End {
        match self {
            Sender::Batch { left, all, .. } => {
                End::SentMany(all - left, left - u8::from(fault == Fault::LostRest), why)
            }
            _ if why == Why::Closed => End::Closed,
            _ => End::GivenUp,
        }
    }
}

type Line = VecDeque<(usize, Sender)>;

/// What somebody in line has to give, or wants.
enum Offer {
    Value(u32),
    Slot,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    cap: usize,
    fault: Fault,
    pub ring: VecDeque<u32>,
    stash: Vec<(u32, u32)>,
    overflow: VecDeque<u32>,
    pub tx: Line,
    pub rx: VecDeque<usize>,
    waits: Vec<usize>,
    /// The sends that the close under way has still to end.
    closing: Line,
    admitting: bool,
    /// Slots that are promised.
    pub permits: usize,
    tickets: u32,
    pub closed: bool,
    /// Halves. A permit has one of its own.
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
            closing: VecDeque::new(),
            admitting: false,
            permits: 0,
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

    /// Is every slot taken or promised?
    pub fn is_full(&self) -> bool {
        self.ring.len() + self.permits >= self.cap
    }

    pub fn is_parked(&self, op: usize) -> bool {
        let senders = self.tx.iter().chain(&self.closing);
        self.rx.contains(&op) || self.waits.contains(&op) || senders.clone().any(|&(id, _)| id == op)
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

    /// Takes the next offer of whoever stands at this place of a line, and ends him if it was his last.
    fn offer(&mut self, closing: bool, at: usize) -> Offer {
        let (fault, line) = (self.fault, if closing { &mut self.closing } else { &mut self.tx });
        let (op, sender) = &mut line[at];
        let (op, offer) = match sender {
            Sender::Send(value) => (*op, Offer::Value(*value)),
            Sender::Reserve => (*op, Offer::Slot),
            Sender::Batch { next, left, all } => {
                let last = *next + u32::from(*left) - 1;
                let value = if fault == Fault::BatchReordered { last } else { *next };
                *next += u32::from(fault != Fault::BatchReordered);
                *left -= 1;
                if *left != 0 {
                    if fault == Fault::BatchLosesPlace {
                        let batch = line.remove(at).unwrap();
                        line.push_back(batch);
                    }
                    return Offer::Value(value);
                }
                let end = End::SentMany(*all, 0, Why::Sent);
                self.ended.insert(*op, (end, 0));
                line.remove(at);
                return Offer::Value(value);
            }
        };
        line.remove(at);
        let end = match offer {
            Offer::Value(_) => End::Sent,
            Offer::Slot if closing => End::Closed,
            Offer::Slot => End::Permit,
        };
        self.senders += usize::from(end == End::Permit);
        self.ended.insert(op, (end, 0));
        offer
    }

    /// `None`: it parks as `op`.
    pub fn send(&mut self, op: Option<usize>, value: u32) -> Option<End> {
        if self.closed {
            return Some(End::Closed);
        }
        if !self.rx.is_empty() && self.tx.is_empty() {
            self.hand_over_anew(value);
            return Some(End::Sent);
        }
        if !self.is_full() && (self.tx.is_empty() || self.fault == Fault::Barging) {
            self.ring.push_back(value);
            return Some(End::Sent);
        }
        match op {
            None => Some(End::Full),
            Some(op) => {
                self.tx.push_back((op, Sender::Send(value)));
                None
            }
        }
    }

    /// Parks the `left` values from `next` on of a batch of `all`; its last `send` was refused for want of room.
    pub fn park_batch(&mut self, op: usize, next: u32, left: u8, all: u8) {
        self.tx.push_back((op, Sender::Batch { next, left, all }));
    }

    /// A batch that is not parked ends with `left` of `all` unsent.
    pub fn end_batch(&self, left: u8, all: u8, why: Why) -> End {
        match left {
            0 => End::SentMany(all, 0, Why::Sent),
            _ => Sender::Batch { next: 0, left, all }.refused(why, self.fault),
        }
    }

    /// As `send`.
    pub fn reserve(&mut self, op: Option<usize>) -> Option<End> {
        if self.closed {
            return Some(End::Closed);
        }
        if self.tx.is_empty() && !self.is_full() {
            self.permits += 1;
            self.senders += 1;
            return Some(End::Permit);
        }
        match op {
            Some(op) if self.cap != 0 => {
                self.tx.push_back((op, Sender::Reserve));
                None
            }
            // Without slots there is nothing to reserve.
            _ => Some(End::Full),
        }
    }

    /// A permit sends a value or, without one, is dropped. Its half is the caller's to drop. True: it was the closed
    /// channel's last, and `end_receives` must follow.
    pub fn permit_end(&mut self, value: Option<u32>) -> (End, bool) {
        let end = match value {
            Some(_) if self.receivers == 0 => {
                self.free_slot();
                End::Closed
            }
            Some(value) if !self.rx.is_empty() => {
                self.hand_over_anew(value);
                self.free_slot();
                End::Sent
            }
            Some(value) => {
                let behind = self.closed && (self.admitting || !self.overflow.is_empty());
                if behind { &mut self.overflow } else { &mut self.ring }.push_back(value);
                self.permits -= 1;
                End::Sent
            }
            None => {
                self.free_slot();
                End::GivenUp
            }
        };
        (end, self.closed && self.permits == 0 && !self.admitting && !self.rx.is_empty())
    }

    /// The slot of a permit finds its next owner.
    fn free_slot(&mut self) {
        while !self.tx.is_empty() {
            let at = if self.fault == Fault::PermitBarging { self.tx.len() - 1 } else { 0 };
            match self.offer(false, at) {
                Offer::Slot => return,
                Offer::Value(value) if self.rx.is_empty() => {
                    self.ring.push_back(value);
                    break;
                }
                Offer::Value(value) => self.hand_over_anew(value),
            }
        }
        self.permits -= 1;
    }

    /// Ends the receives that are parked although nothing can come any more.
    pub fn end_receives(&mut self) {
        if self.permits == 0 {
            self.ended.extend(self.rx.drain(..).map(|op| (op, (End::Closed, 0))));
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
            let at = match self.fault {
                Fault::Barging if self.cap > 0 && self.ring.len() + 1 == self.cap => None,
                Fault::LastInFirst => self.tx.len().checked_sub(1),
                _ => (!self.tx.is_empty()).then_some(0),
            };
            match at.map(|at| self.offer(false, at)) {
                Some(Offer::Value(value)) => self.ring.push_back(value),
                Some(Offer::Slot) => self.permits += 1,
                None => {}
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
            if !self.admitting && (self.permits == 0 || self.fault == Fault::PermitForgotten) {
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

    /// A parked operation leaves: how it ends.
    pub fn give_up(&mut self, op: usize) -> End {
        let mut senders = self.tx.iter().chain(&self.closing);
        let sender = senders.find(|&&(id, _)| id == op).map(|&(_, sender)| sender);
        self.tx.retain(|&(id, _)| id != op);
        self.closing.retain(|&(id, _)| id != op);
        self.rx.retain(|&id| id != op);
        self.waits.retain(|&id| id != op);
        sender.map_or(End::GivenUp, |sender| sender.refused(Why::GivenUp, self.fault))
    }

    /// A parked or ended operation is dropped before its owner has seen the end. Returns the end, if there was one. True:
    /// as in `permit_end`, which a permit that was granted comes to.
    pub fn leave(&mut self, op: usize) -> (Option<End>, bool) {
        let Some((end, ticket)) = self.ended.remove(&op) else {
            self.give_up(op);
            return (None, false);
        };
        match end {
            End::Got(value) if self.rx.is_empty() => {
                self.stash.push((ticket, value));
                if self.fault != Fault::ReorderedStash {
                    self.stash.sort_unstable();
                }
            }
            End::Got(value) => self.hand_over(value, ticket),
            End::Permit => {
                self.senders -= 1;
                return (Some(end), self.permit_end(None).1);
            }
            _ => {}
        }
        (Some(end), false)
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
        self.closing = std::mem::take(&mut self.tx);
        self.admitting = admit && !self.closing.is_empty();
        true
    }

    /// One more step of it. True: the last.
    pub fn close_step(&mut self) -> bool {
        if self.admitting {
            if self.receivers == 0 || self.closing.is_empty() {
                self.admitting = false;
                return false;
            }
            let at = if self.fault == Fault::AdmitReversed { self.closing.len() - 1 } else { 0 };
            match self.offer(true, at) {
                Offer::Value(value) if self.rx.is_empty() => self.overflow.push_back(value),
                Offer::Value(value) => self.hand_over_anew(value),
                Offer::Slot => {}
            }
            return false;
        }
        let fault = self.fault;
        let refused = |(op, sender): (usize, Sender)| (op, (sender.refused(Why::Closed, fault), 0));
        self.ended.extend(self.closing.drain(..).map(refused));
        self.end_receives();
        self.ended.extend(self.waits.drain(..).map(|op| (op, (End::Closed, 0))));
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
