//! The search for an order of the steps, and the steps themselves.

use std::collections::HashSet;

use crate::history::{Call, Event, Limit, Setting};
use crate::spec::{End, Fault, Side, Spec, Why};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    Waiting,
    Parked,
    /// A batch, not parked, of which so many values have been sent.
    Sending(u8),
    /// A batch that has received these.
    Taking([u32; 3]),
    /// It has taken this many steps, and takes more, whatever others do.
    Begun(u8),
    /// A permit's end has come to this; what it leaves behind is still to be done.
    Leaving(u8, End),
    Ended,
}

/// What a step of the specification comes to.
pub enum Next {
    End(End),
    Stage(Stage),
    /// It can't take one now.
    Not,
}

fn or_parked(end: Option<End>) -> Next {
    end.map_or(Next::Stage(Stage::Parked), Next::End)
}

/// The end of a permit, as `Spec::permit_end` says; `half`: it has one to drop.
fn left((end, last): (End, bool), half: bool) -> Next {
    match (last, half) {
        (true, _) => Next::Stage(Stage::Leaving(if half { 0 } else { 1 }, end)),
        (false, true) => Next::Stage(Stage::Leaving(2, end)),
        (false, false) => Next::End(end),
    }
}

/// The first step of a call.
pub fn begin(spec: &mut Spec, op: usize, call: Call) -> Next {
    match call {
        Call::TrySend(value) => or_parked(spec.send(None, value)),
        Call::TryRecv => or_parked(spec.recv(None)),
        Call::Send(value, _) | Call::AbandonSend(value) | Call::Withdraw(value) => {
            or_parked(spec.send(Some(op), value))
        }
        Call::Recv(_) | Call::Abandon => or_parked(spec.recv(Some(op))),
        Call::SendMany(..) | Call::TrySendMany(..) | Call::WithdrawMany(..) => send_next(spec, op, call, 0),
        Call::RecvMany(..) | Call::TryRecvMany(_) => take_next(spec, op, call, [0; 3]),
        Call::Reserve(_) | Call::AbandonReserve => or_parked(spec.reserve(Some(op))),
        Call::TryReserve => or_parked(spec.reserve(None)),
        Call::SendPermit(value) => left(spec.permit_end(Some(value)), true),
        Call::DropPermit => left(spec.permit_end(None), true),
        Call::Close(admit) if spec.close_begin(admit) => Next::Stage(Stage::Begun(0)),
        Call::Close(_) => Next::End(End::Empty),
        Call::Closed => or_parked(spec.closed.then_some(End::Closed)),
        Call::Drop(side) if spec.drop_half(side) => Next::Stage(Stage::Begun(1)),
        Call::Upgrade(side) if spec.upgrade(side) => Next::Stage(Stage::Begun(0)),
        Call::Drop(_) | Call::Upgrade(_) | Call::Advance | Call::Cancel => Next::End(End::GivenUp),
    }
}

/// The next value of a batch that has sent `sent`. (A run of several in one step is several steps without others between.)
fn send_next(spec: &mut Spec, op: usize, call: Call, sent: u8) -> Next {
    let (Call::SendMany(first, all, _) | Call::TrySendMany(first, all) | Call::WithdrawMany(first, all)) = call else {
        return Next::Not;
    };
    match spec.send(None, first + u32::from(sent)) {
        Some(End::Sent) if sent + 1 == all => Next::End(End::SentMany(all, 0, Why::Sent)),
        Some(End::Sent) => Next::Stage(Stage::Sending(sent + 1)),
        Some(End::Closed) => Next::End(spec.end_batch(all - sent, all, Why::Closed)),
        _ if matches!(call, Call::TrySendMany(..)) => Next::End(spec.end_batch(all - sent, all, Why::Full)),
        _ => {
            spec.park_batch(op, first + u32::from(sent), all - sent, all);
            Next::Stage(Stage::Parked)
        }
    }
}

/// The same on the other side: after the first value, what is there.
fn take_next(spec: &mut Spec, op: usize, call: Call, values: [u32; 3]) -> Next {
    match spec.recv(None) {
        Some(End::Got(value)) => taken(call, values, value),
        _ if values[0] != 0 => Next::End(End::GotMany(values)),
        Some(End::Empty) if !matches!(call, Call::TryRecvMany(_)) => or_parked(spec.recv(Some(op))),
        end => or_parked(end),
    }
}

/// One more value has come.
fn taken(call: Call, mut values: [u32; 3], value: u32) -> Next {
    let (Call::RecvMany(max, _) | Call::TryRecvMany(max)) = call else { return Next::Not };
    let Some(at) = values.iter().position(|&value| value == 0) else { return Next::Not };
    values[at] = value;
    match at + 1 == usize::from(max) {
        true => Next::End(End::GotMany(values)),
        false => Next::Stage(Stage::Taking(values)),
    }
}

/// What the end of a parked operation comes to for its call: a delivery to a batch is only its first value.
pub fn parked_end(call: Call, end: End) -> Next {
    match (call, end) {
        (Call::RecvMany(..), End::Got(value)) => taken(call, [0; 3], value),
        _ => Next::End(end),
    }
}

/// A further step, of its own, of one that is parked or has begun.
pub fn go_on(spec: &mut Spec, op: usize, call: Call, stage: Stage) -> Next {
    match (call, stage) {
        (_, Stage::Sending(sent)) => send_next(spec, op, call, sent),
        (_, Stage::Taking(values)) => take_next(spec, op, call, values),
        (_, Stage::Leaving(step, end)) => leave_on(spec, step, end),
        (Call::Abandon | Call::AbandonSend(_) | Call::AbandonReserve, Stage::Parked) => {
            let (_unseen, last) = spec.leave(op);
            left((End::GivenUp, last), false)
        }
        (Call::Withdraw(_), Stage::Parked) => match spec.leave(op).0 {
            Some(End::Sent) => Next::End(End::Sent),
            _ => Next::End(End::GivenUp),
        },
        (Call::WithdrawMany(..), Stage::Parked) => {
            let end = if spec.is_parked(op) { spec.give_up(op) } else { spec.leave(op).0.unwrap_or(End::Empty) };
            // Withdrawn, it says what is left, not why.
            Next::End(match end {
                End::SentMany(sent, left, _) if left != 0 => End::SentMany(sent, left, Why::GivenUp),
                end => end,
            })
        }
        (Call::Closed, Stage::Parked) if spec.closed => Next::End(End::Closed),
        (Call::Close(_), Stage::Begun(_)) => match spec.close_step() {
            true => Next::End(End::Closed),
            false => Next::Stage(stage),
        },
        (Call::Drop(side) | Call::Upgrade(side), Stage::Begun(step)) => drop_on(spec, call, side, step),
        _ => Next::Not,
    }
}

/// The steps of a permit's end: the receives that it leaves behind, the drop of its half.
fn leave_on(spec: &mut Spec, step: u8, end: End) -> Next {
    let next = |step| Next::Stage(Stage::Leaving(step, end));
    match step {
        0 | 1 => {
            spec.end_receives();
            if step == 0 {
                next(2)
            } else {
                Next::End(end)
            }
        }
        2 if spec.drop_half(Side::Tx) => next(3),
        3 if spec.close_begin(false) => next(4),
        4 if !spec.close_step() => next(4),
        _ => Next::End(end),
    }
}

/// The steps of the drop of a half, and of an upgrade to one that is dropped.
fn drop_on(spec: &mut Spec, call: Call, side: Side, step: u8) -> Next {
    let upgrade = matches!(call, Call::Upgrade(_));
    let gone = |spec: &mut Spec| {
        if side == Side::Rx {
            spec.drain();
        }
        Next::End(if upgrade { End::Sent } else { End::GivenUp })
    };
    match step {
        0 => match spec.drop_half(side) {
            true => Next::Stage(Stage::Begun(1)),
            false => Next::End(End::Sent),
        },
        1 => match spec.close_begin(false) {
            true => Next::Stage(Stage::Begun(2)),
            false => gone(spec),
        },
        _ => match spec.close_step() {
            true => gone(spec),
            false => Next::Stage(Stage::Begun(step)),
        },
    }
}

struct Search<'h> {
    history: &'h [Event],
    /// When the clock's first step began, and when the token's cancellation began and was over.
    first_tick: usize,
    cancelled: (usize, usize),
    seen: HashSet<(Spec, Vec<Stage>)>,
}

impl Search<'_> {
    fn new(history: &[Event]) -> Search<'_> {
        let moments = |is: fn(&Call) -> bool, at: fn(&Event) -> usize| {
            history.iter().filter(|event| is(&event.call)).map(at).min().unwrap_or(usize::MAX)
        };
        let cancel: fn(&Call) -> bool = |call| matches!(call, Call::Cancel);
        Search {
            history,
            first_tick: moments(|call| matches!(call, Call::Advance), |event| event.begin),
            cancelled: (moments(cancel, |event| event.begin), moments(cancel, |event| event.over)),
            seen: HashSet::new(),
        }
    }

    fn explains(&mut self, spec: Spec, stages: Vec<Stage>) -> bool {
        if stages.iter().all(|&stage| stage == Stage::Ended) {
            return true;
        }
        // Values differ, so a state of the specification and the stages say all about the way here.
        if !self.seen.insert((spec.clone(), stages.clone())) {
            return false;
        }
        let open = self.history.iter().zip(&stages).filter(|(_, &stage)| stage != Stage::Ended);
        // By when each has taken its next step.
        let due =
            open.map(|(event, &stage)| if stage == Stage::Waiting { event.over.min(event.parked) } else { event.over });
        let first_over = due.min().unwrap_or(usize::MAX);
        (0..stages.len())
            .any(|op| self.step(op, first_over, &spec, &stages) || self.limit(op, first_over, &spec, &stages))
    }

    /// Lets `op` take its next step, and goes on from there.
    fn step(&mut self, op: usize, first_over: usize, spec: &Spec, stages: &[Stage]) -> bool {
        let event = self.history[op];
        let mut spec = spec.clone();
        let next = match stages[op] {
            Stage::Ended => return false,
            // Nothing begins after an operation was over, or parked, that has not ended, or begun, yet.
            Stage::Waiting if event.begin > first_over => return false,
            // G8: already cancelled wins at entry.
            Stage::Waiting if event.call.limit() == Limit::Token && self.cancelled.1 < event.begin => return false,
            Stage::Waiting => begin(&mut spec, op, event.call),
            stage => go_on(&mut spec, op, event.call, stage),
        };
        self.after(op, next, spec, stages)
    }

    /// Lets the limit of `op` end it, if that is how it ended.
    fn limit(&mut self, op: usize, first_over: usize, spec: &Spec, stages: &[Stage]) -> bool {
        let event = self.history[op];
        let fires = match event.call.limit() {
            Limit::Never => return false,
            Limit::Time => self.first_tick,
            Limit::Token => self.cancelled.0,
        };
        if fires > first_over {
            return false;
        }
        let mut spec = spec.clone();
        let end = match stages[op] {
            Stage::Waiting if event.call.limit() == Limit::Token && event.begin <= first_over => match event.call {
                Call::SendMany(_, all, _) => spec.end_batch(all, all, Why::GivenUp),
                _ => End::GivenUp,
            },
            Stage::Parked if spec.is_parked(op) => spec.give_up(op),
            _ => return false,
        };
        self.after(op, Next::End(end), spec, stages)
    }

    /// That step of `op` has come to `next`. Whoever has been ended by it has ended.
    fn after(&mut self, op: usize, next: Next, mut spec: Spec, stages: &[Stage]) -> bool {
        let mut stages = stages.to_vec();
        if !self.comes_to(op, next, &mut stages) {
            return false;
        }
        for (other, event) in self.history.iter().enumerate() {
            if stages[other] == Stage::Parked && !event.call.is_given_up() {
                let ended = spec.ended.remove(&other);
                if ended.is_some_and(|(end, _)| !self.comes_to(other, parked_end(event.call, end), &mut stages)) {
                    return false;
                }
            }
        }
        self.explains(spec, stages)
    }

    /// False: it was seen to come to something else.
    fn comes_to(&self, op: usize, next: Next, stages: &mut [Stage]) -> bool {
        let seen = self.history[op].end;
        stages[op] = match next {
            Next::End(end) if end == seen => Stage::Ended,
            Next::Stage(stage) if leads_to(stage, seen) => stage,
            _ => return false,
        };
        true
    }
}

/// Can an operation still come to this end? (No answer is wrong but a "no": it spares the search what goes nowhere.)
fn leads_to(stage: Stage, end: End) -> bool {
    match (stage, end) {
        (Stage::Sending(now), End::SentMany(sent, ..)) => now <= sent,
        (Stage::Taking(now), End::GotMany(values)) => {
            now.iter().zip(values).all(|(&now, value)| now == 0 || now == value)
        }
        (Stage::Leaving(_, now), end) => now == end,
        (Stage::Sending(_) | Stage::Taking(_), _) => false,
        _ => true,
    }
}

impl Setting {
    /// Is there an order of the steps that explains this history?
    pub fn explains(self, history: &[Event]) -> bool {
        Search::new(history).explains(self.spec(Fault::None), vec![Stage::Waiting; history.len()])
    }
}
