//! Small histories of real threads against the sequential specification, searched as Wing and Gong do (1993): is there an
//! order of the operations, within what real time allows, in which each one does what it was seen to do?
//!
//! A blocking operation takes effect in up to two steps: it parks, and another operation ends it. The search must also
//! reject histories of faulty channels ([`Fault`]), or it would prove nothing (G1, G2, G7).
#![cfg(not(loom))]

#[path = "support/spec.rs"]
mod spec;
mod support;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;

use spec::{End, Fault, Spec};
use support::{Look, Rng};
use tidegate_channel::{bounded, Receiver, RecvError, SendError, Sender};
use tidegate_wait::op::block_on;

#[derive(Clone, Copy, Debug)]
enum Call {
    TrySend(u32),
    TryRecv,
    Close,
    Send(u32),
    Recv,
    /// A receive that is polled once and dropped.
    Abandon,
}

/// One operation as it was seen: between these two moments, with this end.
#[derive(Clone, Copy, Debug)]
struct Event {
    call: Call,
    begin: usize,
    over: usize,
    /// It was seen to be parked at this moment.
    parked: usize,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Waiting,
    Parked,
    Ended,
}

struct Search<'h> {
    history: &'h [Event],
    seen: HashSet<(Spec, Vec<Stage>)>,
}

impl Search<'_> {
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
        (0..stages.len()).any(|op| self.step(op, first_over, &spec, &stages))
    }

    /// Lets `op` take its next step, and goes on from there.
    fn step(&mut self, op: usize, first_over: usize, spec: &Spec, stages: &[Stage]) -> bool {
        let event = self.history[op];
        let (mut spec, mut stages) = (spec.clone(), stages.to_vec());
        match (stages[op], event.call) {
            (Stage::Ended, _) => return false,
            // Nothing begins after an operation was over, or parked, that has not ended, or begun, yet.
            (Stage::Waiting, _) if event.begin > first_over => return false,
            (Stage::Parked, Call::Abandon) => {
                spec.leave(op);
                stages[op] = Stage::Ended;
            }
            // Another one's step ends it.
            (Stage::Parked, _) => return false,
            (Stage::Waiting, call) => {
                let end = match call {
                    Call::TrySend(value) => spec.send(None, value),
                    Call::TryRecv => spec.recv(None),
                    Call::Send(value) => spec.send(Some(op), value),
                    Call::Recv | Call::Abandon => spec.recv(Some(op)),
                    Call::Close => Some(if spec.close() { End::Closed } else { End::Empty }),
                };
                match end {
                    Some(end) if end != event.end => return false,
                    Some(_) => stages[op] = Stage::Ended,
                    None => stages[op] = Stage::Parked,
                }
            }
        }
        for (other, event) in self.history.iter().enumerate() {
            if stages[other] == Stage::Parked && !matches!(event.call, Call::Abandon) {
                if let Some((end, _)) = spec.ended.remove(&other) {
                    if end != event.end {
                        return false;
                    }
                    stages[other] = Stage::Ended;
                }
            }
        }
        self.explains(spec, stages)
    }
}

fn is_explained(history: &[Event], cap: usize) -> bool {
    let mut search = Search { history, seen: HashSet::new() };
    search.explains(Spec::new(cap, Fault::None), vec![Stage::Waiting; history.len()])
}

fn plan(rng: &mut Rng, threads: usize, each: usize) -> Vec<Vec<Call>> {
    let mut value = 0;
    (0..threads)
        .map(|_| {
            let one = |_| {
                value += 1;
                match rng.below(12) {
                    0..=2 => Call::TrySend(value),
                    3 | 4 => Call::TryRecv,
                    5 | 6 => Call::Send(value),
                    7 | 8 => Call::Recv,
                    9 | 10 => Call::Abandon,
                    _ => Call::Close,
                }
            };
            (0..each).map(one).collect()
        })
        .collect()
}

fn sent(end: Result<(), SendError<u32>>) -> End {
    match end {
        Ok(()) => End::Sent,
        Err(SendError::Closed(_)) => End::Closed,
        Err(_) => End::Full,
    }
}

fn received(end: Result<u32, RecvError>) -> End {
    match end {
        Ok(value) => End::Got(value),
        Err(RecvError::Closed) => End::Closed,
        Err(_) => End::Empty,
    }
}

/// Performs a call, and says when it was seen to be parked.
fn perform(clock: &AtomicUsize, call: Call, tx: &Sender<u32>, rx: &Receiver<u32>) -> (End, usize) {
    let at_once = |end| (end, usize::MAX);
    match call {
        Call::TrySend(value) => at_once(sent(tx.try_send(value))),
        Call::TryRecv => at_once(received(rx.try_recv())),
        Call::Close => at_once([End::Empty, End::Closed][usize::from(tx.close())]),
        Call::Send(value) => {
            let mut send = Box::pin(tx.send(value));
            match send.look() {
                Poll::Ready(end) => at_once(sent(end)),
                Poll::Pending => {
                    let parked = clock.fetch_add(1, SeqCst);
                    (sent(block_on(send)), parked)
                }
            }
        }
        Call::Recv | Call::Abandon => {
            let mut receive = Box::pin(rx.recv());
            match receive.look() {
                Poll::Ready(end) => at_once(received(end)),
                Poll::Pending => {
                    let parked = clock.fetch_add(1, SeqCst);
                    (if matches!(call, Call::Recv) { received(block_on(receive)) } else { End::GivenUp }, parked)
                }
            }
        }
    }
}

fn timed(clock: &AtomicUsize, call: Call, tx: &Sender<u32>, rx: &Receiver<u32>) -> Event {
    let begin = clock.fetch_add(1, SeqCst);
    let (end, parked) = perform(clock, call, tx, rx);
    Event { call, begin, over: clock.fetch_add(1, SeqCst), parked, end }
}

/// Runs a plan on threads; closes when they seem stuck, and drains.
fn observe(plan: &[Vec<Call>], cap: usize) -> Vec<Event> {
    let (tx, rx) = bounded(cap);
    let (clock, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut history: Vec<Event> = std::thread::scope(|scope| {
        let threads: Vec<_> = plan
            .iter()
            .map(|calls| {
                scope.spawn(|| {
                    let events: Vec<_> = calls.iter().map(|&call| timed(&clock, call, &tx, &rx)).collect();
                    done.fetch_add(1, SeqCst);
                    events
                })
            })
            .collect();
        for _ in 0..200 {
            if done.load(SeqCst) == plan.len() {
                break;
            }
            std::thread::yield_now();
        }
        let close = timed(&clock, Call::Close, &tx, &rx);
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).chain([close]).collect()
    });
    loop {
        let event = timed(&clock, Call::TryRecv, &tx, &rx);
        history.push(event);
        if event.end == End::Closed {
            return history;
        }
    }
}

/// G1, G2, G7: what threads see of the channel has an explanation.
#[test]
fn histories_have_an_order() {
    let rounds = if cfg!(miri) { 6 } else { 1_500 };
    let mut rng = Rng(1993);
    for _ in 0..rounds {
        let cap = 1 + rng.below(2);
        let (threads, each) = [(2, 3), (3, 2), (2, 4)][rng.below(3)];
        let history = observe(&plan(&mut rng, threads, each), cap);
        assert!(is_explained(&history, cap), "capacity {cap}: no order explains {history:#?}");
    }
}

/// Plays a plan on a specification with a fault, interleaved at random; an operation that is parked keeps its thread.
fn play(plan: &[Vec<Call>], cap: usize, fault: Fault, rng: &mut Rng) -> Vec<Event> {
    let mut spec = Spec::new(cap, fault);
    let mut history: Vec<Event> = Vec::new();
    let mut next = vec![0; plan.len()];
    let mut blocked: Vec<Option<usize>> = vec![None; plan.len()];
    let mut now = 0;
    let mut clock = || {
        now += 1;
        now
    };
    loop {
        for block in &mut blocked {
            if let Some((op, (end, _))) = block.and_then(|op| Some((op, spec.ended.remove(&op)?))) {
                (history[op].over, history[op].end) = (clock(), end);
                *block = None;
            }
        }
        let free: Vec<_> = (0..plan.len()).filter(|&i| blocked[i].is_none() && next[i] < plan[i].len()).collect();
        let (thread, call) = match free.len() {
            0 if spec.closed && blocked.iter().all(Option::is_none) => (None, Call::TryRecv),
            // What a faulty channel never ends.
            0 if spec.closed => return history,
            0 => (None, Call::Close),
            n => {
                let thread = free[rng.below(n)];
                next[thread] += 1;
                (Some(thread), plan[thread][next[thread] - 1])
            }
        };
        let (op, begin) = (history.len(), clock());
        let end = match call {
            Call::TrySend(value) => spec.send(None, value),
            Call::TryRecv => spec.recv(None),
            Call::Send(value) => spec.send(Some(op), value),
            Call::Recv => spec.recv(Some(op)),
            Call::Close => Some(if spec.close() { End::Closed } else { End::Empty }),
            Call::Abandon => spec.recv(Some(op)),
        };
        let parked = if end.is_none() { clock() } else { usize::MAX };
        history.push(Event { call, begin, over: clock(), parked, end: end.unwrap_or(End::GivenUp) });
        match (end, call, thread) {
            // It stays for a while: until its thread's next turn.
            (None, Call::Abandon, _) => {
                if let Some(thread) = thread {
                    if next[thread] < plan[thread].len() && rng.below(2) == 0 {
                        let value = 1000 + op as u32;
                        let _sent = spec.send(None, value).map(|end| {
                            let begin = clock();
                            history.push(Event {
                                call: Call::TrySend(value),
                                begin,
                                over: clock(),
                                parked: usize::MAX,
                                end,
                            });
                        });
                    }
                }
                spec.leave(op);
                history[op].over = clock();
            }
            (None, _, Some(thread)) => {
                history[op].over = usize::MAX;
                blocked[thread] = Some(op);
            }
            (Some(End::Closed), Call::TryRecv, None) => return history,
            _ => {}
        }
    }
}

fn rejected(fault: Fault) -> usize {
    let mut rng = Rng(7);
    let rounds = if cfg!(miri) { 40 } else { 500 };
    let mut count = 0;
    for _ in 0..rounds {
        let cap = 1 + rng.below(2);
        let plan = plan(&mut rng, 3, 3);
        count += usize::from(!is_explained(&play(&plan, cap, fault, &mut rng), cap));
    }
    count
}

/// The search accepts every history of the specification itself, and rejects some of each faulty one.
#[test]
fn planted_faults_are_rejected() {
    assert_eq!(rejected(Fault::None), 0);
    for fault in [Fault::LostHandOff, Fault::Barging, Fault::LastInFirst, Fault::CloseDrops] {
        let count = rejected(fault);
        assert!(count > 0, "{fault:?} passes");
    }
}

/// A reordered stash needs two deliveries that are both returned: a history by hand.
#[test]
fn a_reordered_stash_is_rejected() {
    let event = |call, begin, over, end| Event {
        call,
        begin,
        over,
        parked: if begin < 4 { begin + 1 } else { usize::MAX },
        end,
    };
    let history = |first, second| {
        [
            event(Call::Abandon, 0, 10, End::GivenUp),
            event(Call::Abandon, 2, 11, End::GivenUp),
            event(Call::TrySend(1), 4, 5, End::Sent),
            event(Call::TrySend(2), 6, 7, End::Sent),
            event(Call::TrySend(3), 8, 9, End::Sent),
            event(Call::TryRecv, 12, 13, End::Got(first)),
            event(Call::TryRecv, 14, 15, End::Got(second)),
            event(Call::TryRecv, 16, 17, End::Got(3)),
        ]
    };
    assert!(is_explained(&history(1, 2), 1), "in a ring of one, two of the three were handed over");
    assert!(!is_explained(&history(2, 1), 1));
}
