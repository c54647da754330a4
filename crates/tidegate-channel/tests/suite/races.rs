//! Two things at once, over many rounds: every pair of events around a parked operation, and the ends of a channel.
//!
//! The oracle is the same everywhere: what was reported as sent is what was received, and every value is dropped once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_channel::{Operation, Parked, Receiver, RecvError, SendError, Sender};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;

use crate::flavors::{each_flavor, each_manner, until_armed, with_shared_clock, Flavor, Manner, Waiting};
use crate::support::{until, Counted, Ledger, Look, Rng, Tasks};

/// What happens to a channel with a parked operation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Send,
    Receive,
    Cancel,
    Expire,
    Close,
    Admit,
    Drop,
    SendersGo,
    ReceiversGo,
}

const EVENTS: [Event; 9] = [
    Event::Send,
    Event::Receive,
    Event::Cancel,
    Event::Expire,
    Event::Close,
    Event::Admit,
    Event::Drop,
    Event::SendersGo,
    Event::ReceiversGo,
];

/// The number of the parked send's value; the others come after it.
const PARKED: usize = 1000;
const MS: Duration = Duration::from_millis(1);

enum Operated {
    Send(Waiting<Result<(), SendError<Counted>>>),
    Receive(Waiting<Result<Counted, RecvError>>),
}

struct Stage {
    tx: Mutex<Option<Sender<Counted>>>,
    rx: Mutex<Option<Receiver<Counted>>>,
    operation: Mutex<Option<Operated>>,
    token: CancelToken,
    clock: Arc<ManualClock>,
    ledger: Ledger,
    next: AtomicUsize,
    sent: Mutex<Vec<usize>>,
    got: Mutex<Vec<usize>>,
}

impl Stage {
    fn new(flavor: &Flavor, manner: Manner, clock: &Arc<ManualClock>, sends: bool) -> Stage {
        let (ledger, token, clock) = (Ledger::default(), CancelToken::new(), clock.clone());
        let (tx, rx) = flavor.make();
        let operation = if sends {
            flavor.fill(&tx, |n| ledger.value(n));
            let send = tx.clone().into_send(ledger.value(PARKED)).timeout(MS).cancel_on_owned(token.clone());
            Operated::Send(manner.park_send(&tx, send))
        } else {
            let receive = rx.clone().into_recv().cancel_on_owned(token.clone()).timeout(MS);
            Operated::Receive(manner.park_recv(&rx, receive))
        };
        until_armed(&clock, 1);
        let sent = (0..tx.len()).collect();
        Stage {
            tx: Mutex::new(Some(tx)),
            rx: Mutex::new(Some(rx)),
            operation: Mutex::new(Some(operation)),
            token,
            clock,
            ledger,
            next: AtomicUsize::new(PARKED + 1),
            sent: Mutex::new(sent),
            got: Mutex::default(),
        }
    }

    fn happen(&self, event: Event) {
        let tx = || self.tx.lock().unwrap().clone();
        let rx = || self.rx.lock().unwrap().clone();
        match event {
            Event::Send => {
                let id = self.next.fetch_add(1, Ordering::Relaxed);
                if tx().is_some_and(|tx| tx.try_send(self.ledger.value(id)).is_ok()) {
                    self.sent.lock().unwrap().push(id);
                }
            }
            Event::Receive => {
                if let Some(value) = rx().and_then(|rx| rx.try_recv().ok()) {
                    self.got.lock().unwrap().push(value.id);
                }
            }
            Event::Cancel => drop(self.token.cancel()),
            Event::Expire => self.clock.advance(2 * MS),
            Event::Close => drop(tx().map(|tx| tx.close())),
            Event::Admit => drop(rx().map(|rx| rx.close_with(Parked::Admit))),
            Event::Drop => {
                let dropped = self.operation.lock().unwrap().take();
                drop(dropped);
            }
            Event::SendersGo => {
                let gone = self.tx.lock().unwrap().take();
                drop(gone);
            }
            Event::ReceiversGo => {
                let gone = self.rx.lock().unwrap().take();
                drop(gone);
            }
        }
    }

    /// Ends what has not ended, and checks the oracle.
    fn settle(self, pair: [Event; 2]) {
        (0..PARKED).take_while(|_| self.got_one()).count();
        self.token.cancel();
        match self.operation.lock().unwrap().take() {
            Some(Operated::Send(send)) => match send.ends() {
                Ok(()) => self.sent.lock().unwrap().push(PARKED),
                Err(error) => assert!(error.into_inner() == PARKED, "another value came back"),
            },
            Some(Operated::Receive(receive)) => {
                if let Ok(value) = receive.ends() {
                    self.got.lock().unwrap().push(value.id);
                }
            }
            None => {}
        }
        while self.got_one() {}
        let (mut sent, mut got) = (self.sent.into_inner().unwrap(), self.got.into_inner().unwrap());
        if pair.contains(&Event::Drop) {
            // Nobody can say whether the dropped send was delivered.
            got.retain(|&id| id != PARKED);
        }
        sent.sort_unstable();
        got.sort_unstable();
        if pair.contains(&Event::ReceiversGo) {
            assert!(got.iter().all(|id| sent.binary_search(id).is_ok()), "{pair:?}: {got:?} of {sent:?}");
        } else {
            assert_eq!(got, sent, "{pair:?}: received, sent");
        }
        drop((self.tx, self.rx));
        self.ledger.settled();
    }

    fn got_one(&self) -> bool {
        let before = self.got.lock().unwrap().len();
        self.happen(Event::Receive);
        self.got.lock().unwrap().len() > before
    }
}

/// Both at the same moment, or a little beside it.
fn at_once(rng: &mut Rng, left: impl FnOnce() + Send, right: impl FnOnce()) {
    let (ready, late) = (AtomicUsize::new(0), [rng.below(60), rng.below(60)]);
    let start = |late: usize| {
        ready.fetch_add(1, Ordering::SeqCst);
        until(|| ready.load(Ordering::SeqCst) == 2);
        (0..late).for_each(|_| std::hint::spin_loop());
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            start(late[0]);
            left();
        });
        start(late[1]);
        right();
    });
}

/// G1, G8, CASES 5, 11, 13, ELIO (cancel against refill, against close, against a send to a parked receive, against a
/// rendezvous try_send; close against cancel on receive; cancel against the drain of a closed buffer): every pair of
/// events, the same one twice too, around a parked send and around a parked receive.
#[test]
fn every_pair_of_events() {
    let rounds = if cfg!(miri) { 1 } else { 12 };
    each_manner(|flavor, manner| {
        if cfg!(miri) && flavor.capacity > 1 {
            return flavor.skip("many threads, and nothing that one slot does not show, too slow under Miri");
        }
        let mut rng = Rng(5);
        with_shared_clock(|clock| {
            for (i, left) in EVENTS.into_iter().enumerate() {
                for right in EVENTS.into_iter().skip(i) {
                    // A thread that blocks does not drop its operation.
                    if manner == Manner::Blocking && (left == Event::Drop || right == Event::Drop) {
                        continue;
                    }
                    for round in 0..2 * rounds {
                        // Without a limit no send is parked.
                        let sends = round % 2 == 0 && flavor.has_limit();
                        let stage = Stage::new(flavor, manner, clock, sends);
                        at_once(&mut rng, || stage.happen(left), || stage.happen(right));
                        stage.settle([left, right]);
                    }
                }
            }
        });
    });
}

/// CASES 6, 16: a send, then the last sender's drop, beside a receive that looks: the value, then the end.
#[test]
fn the_last_value_then_the_end() {
    let rounds = if cfg!(miri) { 5 } else { 150 };
    each_manner(|flavor, manner| {
        let mut rng = Rng(6);
        for round in 0..rounds {
            let (tx, rx) = flavor.make();
            at_once(
                &mut rng,
                move || tx.send(round).wait().unwrap(),
                || {
                    let received = std::cell::RefCell::new(Vec::new());
                    if manner == Manner::Blocking {
                        received.borrow_mut().extend(rx.iter());
                    } else {
                        let mut tasks = Tasks::default();
                        tasks.spawn(async {
                            while let Ok(value) = rx.recv().await {
                                received.borrow_mut().push(value);
                            }
                        });
                        tasks.run();
                    }
                    assert_eq!(received.into_inner(), [round]);
                },
            );
        }
    });
}

/// CASES 18, 19: the last receiver goes beside the first sends: what was sent is dropped, what was refused comes back,
/// each value once.
#[test]
fn the_last_receiver_goes_beside_sends() {
    let rounds = if cfg!(miri) { 5 } else { 150 };
    each_flavor(|flavor| {
        let mut rng = Rng(19);
        for _ in 0..rounds {
            let ledger = Ledger::default();
            let (tx, rx) = flavor.make();
            let taken = rng.below(3);
            let sends = || {
                let mut parked = Box::pin(tx.clone().into_send(ledger.value(0)));
                let _ = parked.look();
                (0..5).for_each(|n| drop(tx.try_send(ledger.value(n))));
                drop(tx.send(ledger.value(9)).timeout(Duration::ZERO).wait());
                until(|| tx.is_closed());
                assert!(tx.try_send(ledger.value(10)).is_err());
            };
            at_once(
                &mut rng,
                move || {
                    (0..taken).for_each(|_| drop(rx.try_recv()));
                    drop(rx);
                },
                sends,
            );
            assert_eq!((ledger.made() - ledger.dropped(), tx.len()), (0, 0), "while a sender lives");
        }
    });
}

/// G7: both ways to close at once, from both sides: one of them is the first, and the parked fare as it says.
#[test]
fn two_closes_at_once() {
    let rounds = if cfg!(miri) { 5 } else { 100 };
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let mut rng = Rng(7);
        for _ in 0..rounds {
            let ledger = Ledger::default();
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, |n| ledger.value(n));
            let mut sends: Vec<_> = (0..40).map(|n| Box::pin(tx.clone().into_send(ledger.value(n)))).collect();
            sends.iter_mut().for_each(Look::parks);
            let first = Mutex::new(Vec::new());
            let close = |mode: Parked| {
                if tx.close_with(mode) {
                    first.lock().unwrap().push(mode);
                }
            };
            at_once(&mut rng, || close(Parked::Admit), || close(Parked::GiveBack));
            let first = first.into_inner().unwrap();
            assert_eq!(first.len(), 1);
            let admitted = sends.iter_mut().filter_map(|send| send.ends().ok()).count();
            assert_eq!(admitted, if first == [Parked::Admit] { 40 } else { 0 });
            assert_eq!(rx.try_iter().count(), flavor.capacity + admitted);
            drop(sends);
            ledger.settled();
        }
    });
}

/// G1, G8: sends leave, by tokens and by drops on another thread, while an admission of a hundred of them runs: each is
/// received, or comes back, or is dropped.
#[test]
fn leaving_beside_an_admission() {
    let rounds = if cfg!(miri) { 2 } else { 50 };
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let mut rng = Rng(21);
        for _ in 0..rounds {
            let (ledger, token) = (Ledger::default(), CancelToken::new());
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, |n| ledger.value(1000 + n));
            let mut sends: Vec<_> = (0..100)
                .map(|n| {
                    let token = if n % 3 == 1 { token.clone() } else { CancelToken::new() };
                    Box::pin(tx.clone().into_send(ledger.value(n)).cancel_on_owned(token))
                })
                .collect();
            sends.iter_mut().for_each(Look::parks);
            let mut slots: Vec<_> = sends.into_iter().map(Some).collect();
            let leaving = slots.iter_mut().skip(20).step_by(3).map(Option::take).collect::<Vec<_>>();
            at_once(
                &mut rng,
                || assert!(rx.close_with(Parked::Admit)),
                || {
                    token.cancel();
                    drop(leaving);
                },
            );
            let got: Vec<_> = rx.try_iter().map(|value| value.id).skip(flavor.capacity).collect();
            assert!(got.is_sorted(), "in order");
            for (n, send) in slots.iter_mut().enumerate() {
                match send.as_mut().map(Look::ends) {
                    Some(Ok(())) => assert!(got.contains(&n)),
                    Some(Err(error)) => assert!(error.into_inner() == n && !got.contains(&n)),
                    None => {}
                }
            }
            assert_eq!(rx.try_recv().err(), Some(RecvError::Closed));
            drop(slots);
            ledger.settled();
        }
    });
}
