//! Cancellation of sends and receives.

use std::task::Poll;

use tidegate_channel::{bounded, Operation, RecvError, SendError};
use tidegate_wait::cancel::CancelToken;

use crate::support::{Ledger, Look, Woken};

/// G8: already cancelled wins at entry: over room, over a value, over a parked partner, over the close; nothing moves.
#[test]
fn already_cancelled_wins_at_entry() {
    let token = CancelToken::new();
    token.cancel();
    let (tx, rx) = bounded(1);
    let mut parked = Box::pin(rx.recv());
    parked.parks();
    assert_eq!(tx.send(1).cancel_on(&token).wait(), Err(SendError::Cancelled(1)));
    assert!(parked.look().is_pending());
    drop(parked);
    tx.try_send(2).unwrap();
    assert_eq!(rx.recv().cancel_on(&token).wait(), Err(RecvError::Cancelled));
    let mut receive = Box::pin(rx.recv().cancel_on(&token));
    (0..2).for_each(|_| assert_eq!(receive.ends(), Err(RecvError::Cancelled)));
    assert_eq!(tx.len(), 1);
    tx.close();
    assert_eq!(tx.send(3).cancel_on(&token).wait(), Err(SendError::Cancelled(3)));
    assert_eq!(rx.recv().cancel_on(&token).wait(), Err(RecvError::Cancelled));
    assert_eq!(rx.try_recv(), Ok(2));
    assert_eq!(rx.recv().cancel_on(&token).wait(), Err(RecvError::Cancelled), "also once it is drained");
}

/// G8, CASE 12: a cancelled parked send gives its value back; order among the others is kept; nobody is woken for it but
/// its own task.
#[test]
fn a_parked_send_is_cancelled() {
    let (tx, rx) = bounded(1);
    tx.try_send(0).unwrap();
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
    (0..4).for_each(|n| assert_eq!(rx.try_recv(), Ok(n)));
}

/// G8: one token ends parked operations on many channels and on both sides; a cancelled receive's place goes to the next.
#[test]
fn one_token_ends_many() {
    let token = CancelToken::new();
    let channels: Vec<_> = (0..40).map(|_| bounded(1)).collect();
    let mut receives: Vec<_> = channels.iter().map(|(_, rx)| Box::pin(rx.recv().cancel_on(&token))).collect();
    receives.iter_mut().for_each(Look::parks);
    let mut others: Vec<_> = channels.iter().map(|(_, rx)| Box::pin(rx.recv())).collect();
    others.iter_mut().for_each(Look::parks);
    assert!(token.cancel());
    channels.iter().for_each(|(tx, _)| tx.try_send(7).unwrap());
    assert!(receives.iter_mut().all(|receive| receive.ends() == Err(RecvError::Cancelled)));
    assert!(others.iter_mut().all(|receive| receive.ends() == Ok(7)));
}

/// G8: the first event wins: delivered, then cancelled, is delivered; cancelled, then closed, is cancelled; and reverse.
#[test]
fn the_first_event_wins() {
    let (tx, rx) = bounded(1);
    let token = CancelToken::new();
    let mut receive = Box::pin(rx.recv().cancel_on(&token));
    receive.parks();
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    let mut cancelled = Box::pin(tx.send(3).cancel_on(&token));
    cancelled.parks();
    token.cancel();
    assert_eq!(receive.ends(), Ok(1));
    let other = CancelToken::new();
    let mut closed = Box::pin(tx.send(4).cancel_on(&other));
    closed.parks();
    tx.close();
    other.cancel();
    assert_eq!(cancelled.ends(), Err(SendError::Cancelled(3)));
    assert_eq!(closed.ends(), Err(SendError::Closed(4)));
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(2), Err(RecvError::Closed)));
}

/// G8, G1: dropped instead of polled, an operation that was cancelled, closed or delivered drops its value exactly once,
/// and leaves nothing in the token.
#[test]
fn dropped_instead_of_polled() {
    let ledger = Ledger::default();
    let token = CancelToken::new();
    let (tx, rx) = bounded(1);
    assert!(tx.try_send(ledger.value(0)).is_ok());
    let park = |id| {
        let mut send = Box::pin(tx.send(ledger.value(id)).cancel_on_owned(token.child()));
        send.parks();
        send
    };
    let (a, b) = (park(1), park(2));
    drop(park(3));
    assert!(rx.try_recv().unwrap() == 0);
    drop(a);
    assert_eq!(ledger.dropped(), 2, "delivered: its value is in the ring");
    token.cancel();
    drop(b);
    assert_eq!(ledger.dropped(), 3);
    assert!(rx.try_recv().unwrap() == 1);
    drop((tx, rx));
    ledger.settled();
}

/// CASE 31, where it reaches a channel: callbacks of a token run in the same cancellation that ends a parked receive; one
/// panics, one uses the channel; all run, the receive ends, the channel goes on.
#[test]
fn callbacks_beside_a_parked_receive() {
    let (tx, rx) = bounded(4);
    let token = CancelToken::new();
    let mut receive = Box::pin(rx.recv().cancel_on(&token));
    receive.parks();
    let inside = tx.clone();
    let _first = token.on_cancel(crate::support::quiet_panic);
    let _second = token.on_cancel(move || inside.try_send(1).unwrap());
    token.cancel();
    assert_eq!(receive.ends(), Err(RecvError::Cancelled));
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(tx.sender_count(), 1, "the callback is gone, and its half with it");
}

/// G8: a token is cancelled by the very waker that a delivery runs; the delivery stands.
#[test]
fn a_waker_that_cancels_comes_too_late() {
    use crate::support::{hooked, Hooks};
    let token = CancelToken::new();
    let inside = token.clone();
    let hooks =
        std::sync::Arc::new(Hooks { wake: Some(Box::new(move || assert!(inside.cancel()))), ..Hooks::default() });
    hooks.activate(true);
    let (tx, rx) = bounded(1);
    let mut receive = Box::pin(rx.recv().cancel_on(&token));
    receive.parks_with(&hooked(&hooks));
    let mut next = Box::pin(rx.recv().cancel_on(&token));
    next.parks();
    tx.try_send(1).unwrap();
    assert!(token.is_cancelled());
    assert_eq!((receive.look(), next.look()), (Poll::Ready(Ok(1)), Poll::Ready(Err(RecvError::Cancelled))));
}
