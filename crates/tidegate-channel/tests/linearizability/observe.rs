//! Histories of the channel itself: threads that call what a plan says, and note what they see.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Barrier;
use std::task::Poll;
use std::time::Duration;

use tidegate_channel::{
    bounded, unbounded, Operation, OwnedPermit, Parked, Receiver, RecvError, ReserveError, SendError, Sender, Unsent,
    WeakReceiver, WeakSender,
};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::block_on;
use tidegate_wait::timer::ManualClock;

use crate::history::{Call, Event, Limit, Script, Setting};
use crate::spec::{End, Side, Why, UNBOUNDED};
use crate::support::Look;

const STEP: Duration = Duration::from_millis(1);

fn sent(end: Result<(), SendError<u32>>) -> End {
    match end {
        Ok(()) => End::Sent,
        Err(SendError::Closed(_)) => End::Closed,
        Err(SendError::Full(_)) => End::Full,
        Err(_) => End::GivenUp,
    }
}

fn received(end: Result<u32, RecvError>) -> End {
    match end {
        Ok(value) => End::Got(value),
        Err(RecvError::Closed) => End::Closed,
        Err(RecvError::Empty) => End::Empty,
        Err(_) => End::GivenUp,
    }
}

/// A batch of `all` values from `first` on: what came back is its end, and in order.
fn sent_many(first: u32, all: u8, end: Result<usize, SendError<Unsent<u32>>>) -> End {
    let (why, unsent) = match end {
        Ok(sent) => (Why::Sent, Unsent { sent, rest: Vec::new() }),
        Err(error) => {
            let why = match error {
                SendError::Closed(_) => Why::Closed,
                SendError::Full(_) => Why::Full,
                _ => Why::GivenUp,
            };
            (why, error.into_inner())
        }
    };
    assert!(unsent.rest.iter().copied().eq(first + unsent.sent as u32..first + u32::from(all)), "{unsent:?} of {all}");
    End::SentMany(unsent.sent as u8, unsent.rest.len() as u8, why)
}

fn received_many(end: Result<usize, RecvError>, buffer: &[u32]) -> End {
    match end {
        Ok(many) => {
            assert_eq!(many, buffer.len());
            let mut values = [0; 3];
            values[..many].copy_from_slice(buffer);
            End::GotMany(values)
        }
        Err(error) => {
            assert!(buffer.is_empty(), "an error, and {buffer:?}");
            received(Err(error))
        }
    }
}

type Boxed<'a, R> = Pin<Box<dyn Future<Output = R> + 'a>>;

/// The operation under its limit, boxed: a type of its own for each.
macro_rules! limited {
    ($caller:expr, $operation:expr, $limit:expr) => {{
        let operation: Boxed<'_, _> = match $limit {
            Limit::Never => Box::pin($operation),
            Limit::Time => Box::pin($operation.timeout(STEP)),
            Limit::Token => Box::pin($operation.cancel_on($caller.token)),
        };
        operation
    }};
}

/// One thread of a history.
struct Caller<'c> {
    clock: &'c AtomicUsize,
    time: &'c ManualClock,
    token: &'c CancelToken,
    weak: (WeakSender<u32>, WeakReceiver<u32>),
    tx: Option<Sender<u32>>,
    rx: Option<Receiver<u32>>,
    permits: Vec<OwnedPermit<u32>>,
}

impl Caller<'_> {
    fn tx(&self) -> &Sender<u32> {
        self.tx.as_ref().unwrap()
    }

    fn rx(&self) -> &Receiver<u32> {
        self.rx.as_ref().unwrap()
    }

    /// Drives an operation to its end, or gives it up after one look; says when it was seen to be parked.
    fn drive<R>(&self, mut op: Boxed<'_, R>, give_up: bool) -> (Option<R>, usize) {
        match op.look() {
            Poll::Ready(output) => (Some(output), usize::MAX),
            Poll::Pending => {
                let parked = self.clock.fetch_add(1, SeqCst);
                ((!give_up).then(|| block_on(op)), parked)
            }
        }
    }

    fn perform(&mut self, call: Call) -> (End, usize) {
        let at_once = |end| (end, usize::MAX);
        let ended = |(end, parked): (Option<End>, usize)| (end.unwrap_or(End::GivenUp), parked);
        match call {
            Call::TrySend(value) => at_once(sent(self.tx().try_send(value))),
            Call::TryRecv => at_once(received(self.rx().try_recv())),
            Call::Close(admit) => {
                let parked = if admit { Parked::Admit } else { Parked::GiveBack };
                let closed = self.tx.as_ref().map(|tx| tx.close_with(parked));
                at_once([End::Empty, End::Closed][usize::from(closed.unwrap_or_else(|| self.rx().close_with(parked)))])
            }
            Call::Send(value, Limit::Never) if value % 2 == 0 => {
                let (end, parked) = self.drive(Box::pin(self.tx().send_with(move || value)), false);
                ended((end.map(sent), parked))
            }
            Call::Send(value, _) | Call::AbandonSend(value) => {
                let op = limited!(self, self.tx().send(value), call.limit());
                let (end, parked) = self.drive(op, call.is_given_up());
                ended((end.map(sent), parked))
            }
            Call::Recv(_) | Call::Abandon => {
                let (end, parked) = self.drive(limited!(self, self.rx().recv(), call.limit()), call.is_given_up());
                ended((end.map(received), parked))
            }
            Call::Closed => {
                let (end, parked) = self.drive(Box::pin(self.rx().closed()), false);
                ended((end.map(|()| End::Closed), parked))
            }
            Call::Withdraw(_) | Call::WithdrawMany(..) => self.withdraw(call),
            Call::SendMany(..) | Call::TrySendMany(..) | Call::RecvMany(..) | Call::TryRecvMany(_) => self.batch(call),
            Call::Reserve(_) | Call::TryReserve | Call::AbandonReserve => self.reserve(call),
            Call::SendPermit(value) => at_once(sent(self.permits.pop().unwrap().send(value))),
            _ => at_once(self.change(call)),
        }
    }

    /// Polls a send once, and withdraws it.
    fn withdraw(&self, call: Call) -> (End, usize) {
        let mut parked = usize::MAX;
        let mut park = || parked = self.clock.fetch_add(1, SeqCst);
        let end = match call {
            Call::Withdraw(value) => {
                let mut send = Box::pin(self.tx().send(value));
                match send.look() {
                    Poll::Ready(end) => sent(end),
                    Poll::Pending => {
                        park();
                        send.as_mut().withdraw().map_or(End::Sent, |_| End::GivenUp)
                    }
                }
            }
            Call::WithdrawMany(first, all) => {
                let mut send = Box::pin(self.tx().send_many(first..first + u32::from(all)));
                match send.look() {
                    Poll::Ready(end) => sent_many(first, all, end),
                    Poll::Pending => {
                        park();
                        let rest = send.as_mut().withdraw();
                        let sent = usize::from(all) - rest.len();
                        let nothing = rest.is_empty();
                        let unsent = SendError::TimedOut(Unsent { sent, rest });
                        sent_many(first, all, if nothing { Ok(sent) } else { Err(unsent) })
                    }
                }
            }
            _ => unreachable!(),
        };
        (end, parked)
    }

    fn batch(&self, call: Call) -> (End, usize) {
        let mut buffer = Vec::new();
        match call {
            Call::SendMany(first, all, limit) => {
                let op = limited!(self, self.tx().send_many(first..first + u32::from(all)), limit);
                let (end, parked) = self.drive(op, false);
                (sent_many(first, all, end.unwrap()), parked)
            }
            Call::TrySendMany(first, all) => {
                (sent_many(first, all, self.tx().try_send_many(first..first + u32::from(all))), usize::MAX)
            }
            Call::RecvMany(max, limit) => {
                let (end, parked) =
                    self.drive(limited!(self, self.rx().recv_many(&mut buffer, usize::from(max)), limit), false);
                (received_many(end.unwrap(), &buffer), parked)
            }
            Call::TryRecvMany(max) => {
                let end = self.rx().try_recv_many(&mut buffer, usize::from(max));
                (received_many(end, &buffer), usize::MAX)
            }
            _ => unreachable!(),
        }
    }

    /// Takes a permit with a half of its own, and keeps it.
    fn reserve(&mut self, call: Call) -> (End, usize) {
        let op = self.tx().clone().into_reserve();
        let (end, parked) = match call {
            Call::TryReserve => self.drive(Box::pin(op.timeout(Duration::ZERO)), false),
            _ => self.drive(limited!(self, op, call.limit()), call.is_given_up()),
        };
        let end = match end {
            Some(Ok(permit)) => {
                self.permits.push(permit);
                End::Permit
            }
            Some(Err(ReserveError::Closed)) => End::Closed,
            Some(Err(ReserveError::Rendezvous)) => End::Full,
            Some(Err(_)) if matches!(call, Call::TryReserve) => End::Full,
            _ => End::GivenUp,
        };
        (end, parked)
    }

    /// What concerns the halves, and what others wait for.
    fn change(&mut self, call: Call) -> End {
        match call {
            Call::Advance => self.time.advance(STEP),
            Call::Cancel => drop(self.token.cancel()),
            Call::DropPermit => drop(self.permits.pop()),
            Call::Drop(Side::Tx) => drop(self.tx.take()),
            Call::Drop(Side::Rx) => drop(self.rx.take()),
            Call::Upgrade(Side::Tx) => return self.weak.0.upgrade().map_or(End::GivenUp, |_| End::Sent),
            Call::Upgrade(Side::Rx) => return self.weak.1.upgrade().map_or(End::GivenUp, |_| End::Sent),
            _ => unreachable!(),
        }
        End::GivenUp
    }

    fn timed(&mut self, call: Call) -> Event {
        let begin = self.clock.fetch_add(1, SeqCst);
        let (end, parked) = self.perform(call);
        Event { call, begin, over: self.clock.fetch_add(1, SeqCst), parked, end }
    }

    fn calls(&mut self, calls: &[Call]) -> Vec<Event> {
        let mut script = Script::new(calls);
        let mut events = Vec::new();
        while let Some(call) = script.next(self.permits.len()) {
            events.push(self.timed(call));
        }
        events
    }
}

/// Runs a plan on threads; closes when they seem stuck, and drains.
pub fn observe(plan: &[Vec<Call>], setting: Setting) -> Vec<Event> {
    let (tx, rx) = if setting.cap == UNBOUNDED { unbounded() } else { bounded(setting.cap) };
    let (clock, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (time, token) = (ManualClock::new(), CancelToken::new());
    let start = Barrier::new(plan.len());
    let weak = (tx.downgrade(), rx.downgrade());
    let caller = |tx, rx| Caller {
        clock: &clock,
        time: &time,
        token: &token,
        weak: weak.clone(),
        tx: Some(tx),
        rx: Some(rx),
        permits: Vec::new(),
    };
    let callers: Vec<_> = plan.iter().map(|_| caller(tx.clone(), rx.clone())).collect();
    let mut main = caller(tx, rx);
    main.tx.take_if(|_| !setting.tx_stays);
    main.rx.take_if(|_| !setting.rx_stays);
    let mut history: Vec<Event> = std::thread::scope(|scope| {
        let (time, done, start) = (&time, &done, &start);
        let threads: Vec<_> = plan
            .iter()
            .zip(callers)
            .map(|(calls, mut caller)| {
                scope.spawn(move || {
                    let _leader = start.wait();
                    let events = time.enter(|| caller.calls(calls));
                    done.fetch_add(1, SeqCst);
                    // Its halves stay until the end: they are not in the history.
                    (events, caller)
                })
            })
            .collect();
        for _ in 0..200 {
            if done.load(SeqCst) == plan.len() {
                break;
            }
            std::thread::yield_now();
        }
        let close = main.timed(Call::Close(false));
        let (events, _callers): (Vec<_>, Vec<_>) = threads.into_iter().map(|thread| thread.join().unwrap()).unzip();
        let mut history: Vec<_> = events.into_iter().flatten().chain([close]).collect();
        while main.rx.is_some() {
            history.push(main.timed(Call::TryRecv));
            if history.last().is_some_and(|event| event.end == End::Closed) {
                break;
            }
        }
        history
    });
    history.sort_by_key(|event| event.begin);
    history
}
