//! Histories of the specification, with a fault in it or without.

use crate::history::{Call, Event, Limit, Script, Setting};
use crate::search::{begin, go_on, parked_end, Next, Stage};
use crate::spec::{End, Fault, Side, Spec, Why};
use crate::support::Rng;

/// Where a thread of a played history stands.
#[derive(Clone, Copy, PartialEq)]
enum Turn {
    Free,
    /// Until another one's step ends this operation.
    Blocked(usize),
    /// This operation takes its next step whenever the thread has its turn.
    Has(usize, Stage),
}

/// Plays a plan, interleaved at random; the last thread is the main one, which comes when nobody else can go on.
struct Play {
    spec: Spec,
    history: Vec<Event>,
    turns: Vec<Turn>,
    /// How many each thread has.
    permits: Vec<usize>,
    now: usize,
    cancelled: bool,
}

impl Play {
    fn clock(&mut self) -> usize {
        self.now += 1;
        self.now
    }

    fn note(&mut self, thread: usize, op: usize, next: Next) {
        match next {
            Next::End(end) => {
                (self.history[op].end, self.history[op].over) = (end, self.clock());
                self.turns[thread] = Turn::Free;
                self.permits[thread] += usize::from(end == End::Permit);
                self.permits[thread] -= usize::from(self.history[op].call.needs_permit());
            }
            Next::Stage(Stage::Parked) => {
                self.history[op].parked = self.clock();
                let given_up = self.history[op].call.is_given_up() || matches!(self.history[op].call, Call::Closed);
                self.turns[thread] = if given_up { Turn::Has(op, Stage::Parked) } else { Turn::Blocked(op) };
            }
            Next::Stage(stage) => self.turns[thread] = Turn::Has(op, stage),
            Next::Not => {}
        }
    }

    fn call(&mut self, thread: usize, call: Call) {
        let (op, begin_at) = (self.history.len(), self.clock());
        self.history.push(Event { call, begin: begin_at, over: usize::MAX, parked: usize::MAX, end: End::GivenUp });
        let next = match (call.limit(), call) {
            (Limit::Token, Call::SendMany(_, all, _)) if self.cancelled => {
                Next::End(self.spec.end_batch(all, all, Why::GivenUp))
            }
            (Limit::Token, _) if self.cancelled => Next::End(End::GivenUp),
            _ => begin(&mut self.spec, op, call),
        };
        self.cancelled |= matches!(call, Call::Cancel);
        let fires = match call {
            Call::Advance => Limit::Time,
            Call::Cancel => Limit::Token,
            _ => Limit::Never,
        };
        for turn in self.turns.clone() {
            let Turn::Blocked(other) = turn else { continue };
            let ends = fires != Limit::Never && self.history[other].call.limit() == fires;
            if ends && self.spec.is_parked(other) {
                let end = self.spec.give_up(other);
                self.spec.ended.insert(other, (end, 0));
            }
        }
        self.note(thread, op, next);
    }

    fn wake(&mut self) {
        for thread in 0..self.turns.len() {
            if let Turn::Blocked(op) = self.turns[thread] {
                if let Some((end, _)) = self.spec.ended.remove(&op) {
                    self.note(thread, op, parked_end(self.history[op].call, end));
                }
            }
        }
    }

    fn can_go_on(&self, thread: usize, scripts: &[Script<'_>]) -> bool {
        match self.turns[thread] {
            Turn::Free => scripts.get(thread).is_some_and(|script| script.has_next(self.permits[thread])),
            Turn::Blocked(_) => false,
            Turn::Has(op, _) => self.spec.closed || !matches!(self.history[op].call, Call::Closed),
        }
    }
}

pub fn play(plan: &[Vec<Call>], setting: Setting, fault: Fault, rng: &mut Rng) -> Vec<Event> {
    let main = plan.len();
    let mut scripts: Vec<_> = plan.iter().map(|calls| Script::new(calls)).collect();
    let mut play = Play {
        spec: setting.spec(fault),
        history: Vec::new(),
        turns: vec![Turn::Free; main + 1],
        permits: vec![0; main + 1],
        now: 0,
        cancelled: false,
    };
    let (mut closed, mut drained) = (false, !setting.rx_stays);
    loop {
        play.wake();
        let free: Vec<_> = (0..=main).filter(|&thread| play.can_go_on(thread, &scripts)).collect();
        if free.is_empty() {
            match (closed, drained) {
                (false, _) => play.call(main, Call::Close(false)),
                (true, false) => play.call(main, Call::TryRecv),
                (true, true) => return play.history,
            }
            let last = play.history.last().map(|event| event.end);
            // "Empty" is what a faulty channel may say for ever.
            drained |= closed && matches!(last, Some(End::Closed | End::Empty));
            closed = true;
            continue;
        }
        let thread = free[rng.below(free.len())];
        match play.turns[thread] {
            Turn::Has(op, stage) => {
                let step = go_on(&mut play.spec, op, play.history[op].call, stage);
                play.note(thread, op, step);
            }
            _ => {
                let call = scripts[thread].next(play.permits[thread]);
                play.call(thread, call.unwrap());
            }
        }
    }
}

/// For a fault that needs several operations on one side: a plan in which it can show.
fn apt_plan(fault: Fault, cap: usize) -> Option<Vec<Vec<Call>>> {
    let send = |value| Call::Send(value, Limit::Never);
    let reserve = Call::Reserve(Limit::Never);
    let batch = Call::SendMany(1, 3, Limit::Never);
    match fault {
        Fault::ReorderedStash => Some(vec![
            vec![Call::Abandon, Call::TryRecv],
            vec![Call::Abandon, Call::TryRecv],
            vec![Call::TrySend(1), Call::TrySend(2), Call::TryRecv],
        ]),
        Fault::AdmitReversed | Fault::ClosedTooSoon => Some(vec![
            vec![Call::TrySend(1), send(2)],
            vec![send(3), Call::TryRecv],
            vec![send(4), Call::TryRecv],
            vec![Call::TryRecv, Call::Close(true), Call::TryRecv],
        ]),
        Fault::PermitBarging => Some(vec![
            [reserve].repeat(cap.min(3)).into_iter().chain([Call::DropPermit; 3]).collect(),
            vec![send(1), Call::TryRecv],
            vec![send(2), Call::TryRecv],
        ]),
        Fault::PermitForgotten => Some(vec![
            vec![Call::TryReserve, Call::SendPermit(1)],
            vec![Call::Close(false), Call::TryRecv, Call::TryRecv],
        ]),
        Fault::BatchLosesPlace | Fault::BatchReordered => Some(vec![
            vec![batch],
            vec![Call::TrySend(4), send(5)],
            vec![Call::TryRecv, Call::TryRecv, Call::TryRecv, Call::Drop(Side::Tx)],
        ]),
        Fault::LostRest => Some(vec![vec![batch], vec![Call::TryRecv, Call::Close(false)]]),
        _ => None,
    }
}

/// How many histories with this fault in them are found out.
pub fn rejected(cap: usize, fault: Fault) -> usize {
    let mut rng = Rng(7 ^ cap as u64);
    let rounds = if cfg!(miri) { 40 } else { 400 };
    let mut count = 0;
    for _ in 0..rounds {
        let apt = apt_plan(fault, cap);
        let mut setting = Setting::random(cap, &mut rng);
        setting = Setting { threads: apt.as_ref().map_or(3, Vec::len), each: 3, ..setting };
        setting.rx_stays |= apt.is_some();
        let plan = apt.unwrap_or_else(|| setting.plan(&mut rng));
        count += usize::from(!setting.explains(&play(&plan, setting, fault, &mut rng)));
    }
    count
}
