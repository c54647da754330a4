//! What wakers do between the slices of an admission: the first parked send's runs when a slice of 32 has been let in and
//! the rest has not.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_channel::{Operation, OwnedReceiving, OwnedSending, Parked, Receiver, RecvError, SendError, Sender};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::{Cancellable, Timed, Unlimited};

use crate::flavors::{drain, each_flavor, each_manner, with_shared_clock, Flavor, Waiting};
use crate::support::{on_first_wake, Counted, Ledger, Look};

const MS: Duration = Duration::from_millis(1);
/// How many sends one hold of the lock lets in.
const SLICE: usize = 32;
const SENDS: usize = 70;

type Shared<T> = Arc<Mutex<Vec<T>>>;
type Limited<T> = Pin<Box<OwnedSending<T, Timed<Cancellable<'static, Unlimited>>>>>;

/// Fills the channel, parks `SENDS` sends with the values that follow, and closes; `between` runs after the first slice.
/// Returns the sends, which have ended.
fn admit<T>(
    flavor: &Flavor,
    tx: &Sender<T>,
    value: impl Fn(usize) -> T,
    between: impl FnOnce() + Send + 'static,
) -> Vec<Result<(), SendError<T>>> {
    flavor.fill(tx, &value);
    let mut sends: Vec<_> = (0..SENDS).map(|n| Box::pin(tx.send(value(flavor.capacity + n)))).collect();
    sends[0].parks_with(&on_first_wake(between));
    sends[1..].iter_mut().for_each(Look::parks);
    assert!(tx.close_with(Parked::Admit));
    sends.iter_mut().map(Look::ends).collect()
}

/// G7: between two slices the channel is closed but its end has not come: `close` says false, `try_recv` goes on and says
/// "empty" when there is nothing, `len` and the counts are right, nothing is sent any more.
#[test]
fn the_channel_between_two_slices() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        let (cap, inside_tx, inside) = (flavor.capacity, tx.clone(), rx.clone());
        let ends = admit(
            flavor,
            &tx,
            |n| n,
            move || {
                assert!(!inside_tx.close() && !inside.close_with(Parked::Admit) && inside.is_closed());
                assert_eq!((inside.len(), inside_tx.parked_senders()), (cap + SLICE, SENDS - SLICE));
                assert_eq!(inside_tx.try_send(999), Err(SendError::Closed(999)));
                assert_eq!(inside_tx.send(999).wait(), Err(SendError::Closed(999)));
                assert!(format!("{inside:?}").contains("closed: true"));
                inside.closed().wait();
                inside_tx.closed().timeout(Duration::ZERO).wait().unwrap();
                assert!(inside_tx.downgrade().upgrade().is_some() && inside.downgrade().upgrade().is_some());
                assert_eq!(drain(&inside), ((0..cap + SLICE).collect(), RecvError::Empty));
                assert_eq!(inside.recv().timeout(Duration::ZERO).wait(), Err(RecvError::TimedOut));
                assert_eq!((inside.len(), inside.is_empty()), (0, true));
            },
        );
        assert!(ends.into_iter().all(|end| end == Ok(())));
        assert_eq!(drain(&rx), ((cap + SLICE..cap + SENDS).collect(), RecvError::Closed));
    });
}

/// G7, E3: with the last slice the end has come: its wakers find what was let in, and then the end.
#[test]
fn the_end_in_a_waker_of_the_last_slice() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let (cap, inside) = (flavor.capacity, rx.clone());
        let mut send = Box::pin(tx.send(cap));
        send.parks_with(&on_first_wake(move || {
            assert_eq!(drain(&inside), ((0..=cap).collect(), RecvError::Closed));
        }));
        assert!(tx.close_with(Parked::Admit));
        assert_eq!((send.ends(), drain(&rx)), (Ok(()), (vec![], RecvError::Closed)));
    });
}

/// G2, G7: receives that park while an admission runs get the next values, in order, whether they are tasks' or threads';
/// those for whom none is left see the end with the admission's.
#[test]
fn receives_that_park_during_an_admission() {
    each_manner(|flavor, manner| {
        if !flavor.sends_wait() {
            return;
        }
        for extra in if cfg!(miri) { [1, 2] } else { [1, SENDS - SLICE + 3] } {
            let (tx, rx) = flavor.make();
            let first = flavor.capacity + SLICE;
            let receives: Shared<Waiting<Result<usize, RecvError>>> = Shared::default();
            let (inside, line) = (rx.clone(), receives.clone());
            let ends = admit(
                flavor,
                &tx,
                |n| n,
                move || {
                    assert_eq!(drain(&inside), ((0..first).collect(), RecvError::Empty));
                    let park = |_| manner.park_recv(&inside, inside.clone().into_recv());
                    line.lock().unwrap().extend((0..extra).map(park));
                    assert_eq!(inside.parked_receivers(), extra);
                },
            );
            assert!(ends.into_iter().all(|end| end == Ok(())));
            for (n, receive) in receives.lock().unwrap().drain(..).enumerate() {
                let expected = if n < SENDS - SLICE { Ok(first + n) } else { Err(RecvError::Closed) };
                assert_eq!(receive.ends(), expected);
            }
            let left = (first + extra).min(flavor.capacity + SENDS)..flavor.capacity + SENDS;
            assert_eq!(drain(&rx), (left.collect(), RecvError::Closed));
        }
    });
}

/// G1, G2: a receive that an admission has served is dropped unpolled, during it or after it: its value goes to the next
/// receive, ahead of everything else that was admitted.
#[test]
fn a_delivery_of_an_admission_is_dropped() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        let first = flavor.capacity + SLICE;
        let receives: Shared<Pin<Box<OwnedReceiving<usize>>>> = Shared::default();
        let (inside, line) = (rx.clone(), receives.clone());
        admit(
            flavor,
            &tx,
            |n| n,
            move || {
                drain(&inside);
                let mut dropped = Box::pin(inside.clone().into_recv());
                let dropper = line.clone();
                dropped.parks_with(&on_first_wake(move || drop(dropper.lock().unwrap().remove(0))));
                let mut kept = Box::pin(inside.clone().into_recv());
                kept.parks();
                line.lock().unwrap().extend([dropped, kept]);
            },
        );
        // The first was served and dropped by its own waker; the second still holds its delivery.
        assert_eq!(rx.try_recv(), Ok(first));
        drop(receives.lock().unwrap().pop());
        assert_eq!(drain(&rx), ((first + 1..flavor.capacity + SENDS).collect(), RecvError::Closed));
    });
}

/// Limited sends whose waker the test may use to get at all of them; `between` runs after the first slice.
fn park_limited(
    tx: &Sender<Counted>,
    value: impl Fn(usize) -> Counted,
    token: &CancelToken,
    between: impl FnOnce(&Shared<Option<Limited<Counted>>>) + Send + 'static,
) -> Shared<Option<Limited<Counted>>> {
    let line = Shared::default();
    let inside = Arc::clone(&line);
    let mut between = Some(on_first_wake(move || between(&inside)));
    for n in 0..SENDS {
        let limit = if n % 5 == 2 { MS } else { 10 * MS };
        let token = if n % 5 == 1 { token.clone() } else { CancelToken::new() };
        let mut send = Box::pin(tx.clone().into_send(value(n)).cancel_on_owned(token).timeout(limit));
        match between.take() {
            Some(waker) => send.parks_with(&waker),
            None => send.parks(),
        }
        line.lock().unwrap().push(Some(send));
    }
    line
}

/// G1, G2, G8: between two slices sends leave the line by a drop, a token, a timer, a withdrawal: those that were let in
/// have succeeded, those that were not give their value back or drop it, the others are let in, in order.
#[test]
fn sends_leave_during_an_admission() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        with_shared_clock(|clock| {
            let (ledger, token) = (Ledger::default(), CancelToken::new());
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, |n| ledger.value(1000 + n));
            let (inside_clock, inside_token) = (clock.clone(), token.clone());
            let line = park_limited(
                &tx,
                |n| ledger.value(n),
                &token,
                move |line| {
                    let dropped: Vec<_> =
                        line.lock().unwrap().iter_mut().step_by(5).skip(1).map(Option::take).collect();
                    drop(dropped);
                    assert!(inside_token.cancel());
                    inside_clock.advance(MS);
                    for (n, send) in line.lock().unwrap().iter_mut().enumerate().filter(|(n, _)| n % 5 == 3) {
                        let back = send.as_mut().unwrap().as_mut().withdraw();
                        assert_eq!(back.is_some(), n >= SLICE);
                    }
                },
            );
            assert!(rx.close_with(Parked::Admit));
            for (n, send) in line.lock().unwrap().iter_mut().enumerate() {
                let Some(send) = send else { continue };
                match n % 5 {
                    1 if n >= SLICE => assert!(matches!(send.ends(), Err(SendError::Cancelled(v)) if v == n)),
                    2 if n >= SLICE => assert!(matches!(send.ends(), Err(SendError::TimedOut(v)) if v == n)),
                    3 => assert!(send.look().is_pending()),
                    _ => assert!(send.ends().is_ok()),
                }
            }
            let admitted = (0..SENDS).filter(|n| *n < SLICE || n % 5 == 4);
            let ids: Vec<_> = drain(&rx).0.iter().map(|value| value.id).skip(flavor.capacity).collect();
            assert_eq!(ids, admitted.collect::<Vec<_>>());
            line.lock().unwrap().clear();
            assert_eq!((clock.armed(), tx.sender_count()), (0, 1));
            ledger.settled();
        });
    });
}

/// G1, G7: all sends that are still parked leave between two slices: the admission ends, and with it the channel.
#[test]
fn all_leave_during_an_admission() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        with_shared_clock(|clock| {
            let (ledger, token) = (Ledger::default(), CancelToken::new());
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, |n| ledger.value(1000 + n));
            let line = park_limited(
                &tx,
                |n| ledger.value(n),
                &token,
                move |line| {
                    let all: Vec<_> = line.lock().unwrap().iter_mut().skip(1).map(Option::take).collect();
                    drop(all);
                },
            );
            assert!(rx.close_with(Parked::Admit));
            assert!(line.lock().unwrap()[0].as_mut().unwrap().ends().is_ok());
            let (values, end) = drain(&rx);
            assert_eq!((values.len(), end), (flavor.capacity + SLICE, RecvError::Closed));
            line.lock().unwrap().clear();
            drop(values);
            ledger.settled();
            assert_eq!(clock.armed(), 0);
        });
    });
}

/// G1, G7: the last receiver goes between two slices: what was let in is dropped there and then, each value once; the
/// sends that were not let in get theirs back.
#[test]
fn the_last_receiver_goes_during_an_admission() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        for received in [0, 3] {
            let ledger = Ledger::default();
            let (tx, rx) = flavor.make();
            let (inside, in_channel) = (ledger.clone(), flavor.capacity + SLICE);
            let ends = admit(
                flavor,
                &tx,
                |n| ledger.value(n),
                move || {
                    (0..received).for_each(|n| assert!(rx.try_recv().unwrap() == n));
                    drop(rx);
                    assert_eq!(inside.dropped(), in_channel);
                },
            );
            assert_eq!((tx.len(), tx.receiver_count()), (0, 0));
            for (n, end) in ends.iter().enumerate() {
                match end {
                    Ok(()) => assert!(n < SLICE),
                    Err(SendError::Closed(value)) => assert!(n >= SLICE && *value == flavor.capacity + n),
                    Err(error) => panic!("{error:?}"),
                }
            }
            drop(ends);
            ledger.settled();
        }
    });
}

/// G1, G7: the last receiver is a receive's own, parked between two slices: served by the next one, it is dropped with its
/// value, in a waker of that slice or after the close.
#[test]
fn the_last_receive_goes_during_an_admission() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        for in_waker in [true, false] {
            let ledger = Ledger::default();
            let (tx, rx) = flavor.make();
            let last: Shared<Pin<Box<OwnedReceiving<Counted>>>> = Shared::default();
            let inside = last.clone();
            let ends = admit(
                flavor,
                &tx,
                |n| ledger.value(n),
                move || {
                    drop(drain(&rx));
                    let mut receive = Box::pin(rx.into_recv());
                    let dropper = inside.clone();
                    receive.parks_with(&on_first_wake(move || {
                        let dropped = in_waker.then(|| dropper.lock().unwrap().pop());
                        drop(dropped);
                    }));
                    inside.lock().unwrap().push(receive);
                },
            );
            assert_eq!(tx.receiver_count(), usize::from(!in_waker));
            let admitted = ends.iter().filter(|end| end.is_ok()).count();
            // The second slice has the receive's waker to run, too.
            assert_eq!(admitted, if in_waker { 2 * SLICE - 1 } else { SENDS });
            drop(ends);
            drop(last.lock().unwrap().pop());
            assert_eq!(tx.len(), 0);
            ledger.settled();
        }
    });
}

/// G7: the other halves, and at last the channel, go between two slices and in the wakers after it.
#[test]
fn halves_go_during_an_admission() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| ledger.value(n));
        let mut sends: Vec<_> = (0..SENDS).map(|n| Box::pin(tx.clone().into_send(ledger.value(n)))).collect();
        let others: (Sender<Counted>, Receiver<Counted>) = (tx.clone(), rx.clone());
        sends[0].parks_with(&on_first_wake(move || drop(others)));
        sends[1..].iter_mut().for_each(Look::parks);
        drop(tx);
        assert!(rx.close_with(Parked::Admit));
        drop(sends);
        assert_eq!((rx.sender_count(), rx.len()), (0, flavor.capacity + SENDS));
        drop(rx);
        ledger.settled();
    });
}
