//! Cancellation of sends and receives.

use tidegate_channel::{Operation, RecvError, SendError};
use tidegate_wait::cancel::CancelToken;

use crate::flavors::{drain, each_flavor, each_manner};
use crate::support::{on_wake, Ledger, Look, Woken};

/// G8, ELIO (pre-cancelled operations leave data alone, even on a closed channel): already cancelled wins at entry: over
/// room, over a value, over a parked partner, over the close; nothing moves.
#[test]
fn already_cancelled_wins_at_entry() {
    each_manner(|flavor, manner| {
        let token = CancelToken::new();
        token.cancel();
        let (tx, rx) = flavor.make();
        let mut parked = Box::pin(rx.recv());
        parked.parks();
        assert_eq!(manner.run(tx.send(1).cancel_on(&token)), Err(SendError::Cancelled(1)));
        assert!(parked.look().is_pending());
        drop(parked);
        flavor.hold(&tx, &rx, 2);
        assert_eq!(manner.run(rx.recv().cancel_on(&token)), Err(RecvError::Cancelled));
        let mut receive = Box::pin(rx.recv().cancel_on(&token));
        (0..2).for_each(|_| assert_eq!(receive.ends(), Err(RecvError::Cancelled)));
        assert_eq!(tx.len(), 1);
        let mut parked = Box::pin(tx.send(3));
        let room = parked.look().is_ready();
        assert_eq!(manner.run(rx.recv().cancel_on_owned(token.child())), Err(RecvError::Cancelled));
        assert!(room || parked.look().is_pending());
        tx.close();
        assert_eq!(manner.run(tx.send(4).cancel_on(&token)), Err(SendError::Cancelled(4)));
        assert_eq!(manner.run(rx.recv().cancel_on(&token)), Err(RecvError::Cancelled));
        assert_eq!(rx.try_recv(), Ok(2));
        drain(&rx);
        assert_eq!(manner.run(rx.recv().cancel_on(&token)), Err(RecvError::Cancelled), "also once it is drained");
    });
}

/// G8, CASE 12, ELIO (a parked cancel moves nothing): a cancelled parked send gives its value back; order among the others
/// is kept; nobody is woken for it but its own task.
#[test]
fn a_parked_send_is_cancelled() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| 100 + n);
        let token = CancelToken::new();
        let ((own, own_waker), (other, other_waker)) = (Woken::new(), Woken::new());
        let mut sends: Vec<_> = (1..4).map(|n| Box::pin(tx.send(n))).collect();
        sends[0].parks_with(&other_waker);
        let mut middle = Box::pin(tx.send(9).cancel_on(&token));
        middle.parks_with(&own_waker);
        sends[1..].iter_mut().for_each(|send| send.parks_with(&other_waker));
        token.cancel();
        assert_eq!((own.count(), other.count()), (1, 0));
        assert_eq!(middle.ends(), Err(SendError::Cancelled(9)));
        assert_eq!(drain(&rx).0, (100..100 + flavor.capacity).chain(1..4).collect::<Vec<_>>());
    });
}

/// G8: a parked operation of either side is cancelled, by hand and on a thread; the value comes back, and the next one in
/// the line is served.
#[test]
fn the_parked_are_cancelled() {
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make();
        let token = CancelToken::new();
        let cancelled = manner.park_recv(&rx, rx.clone().into_recv().cancel_on_owned(token.child()));
        let next = manner.park_recv(&rx, rx.clone().into_recv());
        assert!(token.cancel() && !token.cancel());
        assert_eq!((cancelled.ends(), tx.try_send(7), next.ends()), (Err(RecvError::Cancelled), Ok(()), Ok(7)));
        if !flavor.sends_wait() {
            return;
        }
        flavor.fill(&tx, |n| n);
        let token = CancelToken::new();
        let cancelled = manner.park_send(&tx, tx.clone().into_send(100).cancel_on_owned(token.clone()));
        let next = manner.park_send(&tx, tx.clone().into_send(101));
        assert!(token.cancel_with("enough"));
        assert_eq!(cancelled.ends(), Err(SendError::Cancelled(100)));
        assert_eq!(drain(&rx).0, (0..flavor.capacity).chain([101]).collect::<Vec<_>>());
        assert_eq!(next.ends(), Ok(()));
    });
}

/// G8: one token ends parked operations on many channels and on both sides; a cancelled receive's place goes to the next.
#[test]
fn one_token_ends_many() {
    each_flavor(|flavor| {
        let token = CancelToken::new();
        let channels: Vec<_> = (0..40).map(|_| flavor.make()).collect();
        let mut receives: Vec<_> = channels.iter().map(|(_, rx)| Box::pin(rx.recv().cancel_on(&token))).collect();
        receives.iter_mut().for_each(Look::parks);
        let mut others: Vec<_> = channels.iter().map(|(_, rx)| Box::pin(rx.recv())).collect();
        others.iter_mut().for_each(Look::parks);
        let full: Vec<_> = (0..if flavor.has_limit() { 40 } else { 0 }).map(|_| flavor.make()).collect();
        full.iter().for_each(|(tx, _)| flavor.fill(tx, |n| n));
        let mut sends: Vec<_> = full.iter().map(|(tx, _)| Box::pin(tx.send(9).cancel_on(&token))).collect();
        sends.iter_mut().for_each(Look::parks);
        assert!(token.cancel());
        channels.iter().for_each(|(tx, _)| tx.try_send(7).unwrap());
        assert!(receives.iter_mut().all(|receive| receive.ends() == Err(RecvError::Cancelled)));
        assert!(others.iter_mut().all(|receive| receive.ends() == Ok(7)));
        assert!(sends.iter_mut().all(|send| send.ends() == Err(SendError::Cancelled(9))));
    });
}

/// G8, ELIO (notified, then cancelled: still gets its value; cancel then close: cancelled; close then cancel: closed,
/// once): the first event wins.
#[test]
fn the_first_event_wins() {
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make();
        let token = CancelToken::new();
        let receive = manner.park_recv(&rx, rx.clone().into_recv().cancel_on_owned(token.clone()));
        tx.try_send(1).unwrap();
        flavor.fill(&tx, |n| 10 + n);
        if !flavor.sends_wait() {
            token.cancel();
            return assert_eq!(receive.ends(), Ok(1));
        }
        let admitted = manner.park_send(&tx, tx.clone().into_send(2).cancel_on_owned(token.clone()));
        assert!(rx.try_recv().is_ok());
        let cancelled = manner.park_send(&tx, tx.clone().into_send(3).cancel_on_owned(token.clone()));
        token.cancel();
        assert_eq!((receive.ends(), admitted.ends()), (Ok(1), Ok(())));
        let other = CancelToken::new();
        let closed = manner.park_send(&tx, tx.clone().into_send(4).cancel_on_owned(other.clone()));
        tx.close();
        other.cancel();
        assert_eq!(cancelled.ends(), Err(SendError::Cancelled(3)));
        assert_eq!(closed.ends(), Err(SendError::Closed(4)));
        let (left, end) = drain(&rx);
        assert_eq!((left.last().copied(), end), ((flavor.capacity != 0).then_some(2), RecvError::Closed));
    });
}

/// G8, G1, ELIO (dropping a parked sender or receiver, then sending or closing, is safe): dropped instead of polled, an
/// operation that was cancelled, closed or delivered drops its value exactly once, and leaves nothing in the token.
#[test]
fn dropped_instead_of_polled() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let ledger = Ledger::default();
        let token = CancelToken::new();
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| ledger.value(n));
        let cap = flavor.capacity;
        let park = |id| {
            let mut send = Box::pin(tx.send(ledger.value(id)).cancel_on_owned(token.child()));
            send.parks();
            send
        };
        let (a, b) = (park(cap), park(cap + 1));
        drop(park(cap + 2));
        assert_eq!(ledger.dropped(), 1);
        assert!(rx.try_recv().unwrap() == 0);
        drop(a);
        assert_eq!(ledger.dropped(), 2, "delivered: its value is in the ring, or received");
        token.cancel();
        drop(b);
        assert_eq!(ledger.dropped(), 3);
        assert_eq!(rx.try_iter().map(|value| value.id).collect::<Vec<_>>(), (1..cap + 1).collect::<Vec<_>>());
        let mut receive = Box::pin(rx.recv());
        receive.parks();
        drop(receive);
        assert_eq!(tx.try_send(ledger.value(0)).is_ok(), cap != 0);
        tx.close();
        drop((tx, rx));
        ledger.settled();
    });
}

/// CASE 31, where it reaches a channel: callbacks of a token run in the same cancellation that ends a parked receive; one
/// panics, one sends and closes; all run, the receive ends, the channel goes on.
#[test]
fn callbacks_beside_a_parked_receive() {
    each_manner(|flavor, manner| {
        let ((tx, rx), (other_tx, other_rx)) = (flavor.make::<u8>(), flavor.make());
        let token = CancelToken::new();
        let cancelled = manner.park_recv(&rx, rx.clone().into_recv().cancel_on_owned(token.clone()));
        let served = manner.park_recv(&other_rx, other_rx.clone().into_recv());
        let (inside, inside_other) = (tx.clone(), other_tx.clone());
        let _first = token.on_cancel(crate::support::quiet_panic);
        let _second = token.on_cancel(move || {
            inside_other.try_send(1).unwrap();
            assert!(inside_other.close() && !inside.is_closed());
        });
        token.cancel();
        assert_eq!((cancelled.ends(), served.ends()), (Err(RecvError::Cancelled), Ok(1)));
        assert_eq!((tx.sender_count(), other_tx.sender_count()), (1, 1), "the callbacks are gone, and their halves");
    });
}

/// G8: a token is cancelled by the very waker that a delivery runs; the delivery stands.
#[test]
fn a_waker_that_cancels_comes_too_late() {
    each_flavor(|flavor| {
        let token = CancelToken::new();
        let inside = token.clone();
        let waker = on_wake(move || assert!(inside.cancel()));
        let (tx, rx) = flavor.make();
        let mut receive = Box::pin(rx.recv().cancel_on(&token));
        receive.parks_with(&waker);
        let mut next = Box::pin(rx.recv().cancel_on(&token));
        next.parks();
        tx.try_send(1).unwrap();
        assert!(token.is_cancelled());
        assert_eq!((receive.ends(), next.ends()), (Ok(1), Err(RecvError::Cancelled)));
        let token = CancelToken::new();
        let inside = token.clone();
        let waker = on_wake(move || assert!(inside.cancel()));
        if !flavor.sends_wait() {
            return;
        }
        flavor.fill(&tx, |n| n);
        let mut send = Box::pin(tx.send(100).cancel_on(&token));
        send.parks_with(&waker);
        let mut next = Box::pin(tx.send(101).cancel_on(&token));
        next.parks();
        assert!(rx.try_recv().is_ok());
        assert_eq!((send.ends(), next.ends()), (Ok(()), Err(SendError::Cancelled(101))));
    });
}
