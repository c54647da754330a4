//! How a channel can go, without limits: sent, unsent, closed, in both orders and in every manner of receiving.

use std::future::IntoFuture;
use std::pin::pin;
use std::task::Poll;

use tidegate_channel::{oneshot, Operation, RecvError, SendError};
use tidegate_wait::op::block_on;

use crate::support::{Look, Woken};

/// Sent first, in every manner of receiving.
#[test]
fn sent_then_received() {
    let sent = || {
        let (tx, rx) = oneshot::channel();
        assert_eq!(tx.send(7), Ok(()));
        rx
    };
    assert_eq!(sent().try_recv(), Ok(7));
    assert_eq!(sent().recv().wait(), Ok(7));
    assert_eq!(sent().into_recv().wait(), Ok(7));
    assert_eq!(block_on(async { sent().await }), Ok(7));
    assert_eq!(block_on(async { (&mut sent()).await }), Ok(7));
    assert_eq!(block_on(async { sent().into_future().cancel_on(&Default::default()).await }), Ok(7));
}

/// Parked first: woken once, by the send, and only then ready; owned and borrowed.
#[test]
fn parked_then_sent() {
    let (woken, waker) = Woken::new();
    let (tx, mut rx) = oneshot::channel();
    let mut receive = Box::pin(rx.recv());
    receive.parks_with(&waker);
    receive.parks_with(&waker);
    assert_eq!((tx.send(1), woken.count()), (Ok(()), 1));
    assert_eq!(receive.ends(), Ok(1));
    drop(receive);
    assert_eq!(rx.recv().wait(), Err(RecvError::Closed), "there was one value");

    let (tx, rx) = oneshot::channel();
    let mut receive = Box::pin(rx.into_recv());
    receive.parks_with(&waker);
    assert_eq!((tx.send(2), woken.count()), (Ok(()), 2));
    assert_eq!(receive.ends(), Ok(2));
}

/// CASE 6, G7: a sender that goes unsent ends the receive, parked or not, again and again.
#[test]
fn dropped_unsent() {
    let (woken, waker) = Woken::new();
    let (tx, mut rx) = oneshot::channel::<u8>();
    let mut receive = Box::pin(rx.recv());
    receive.parks_with(&waker);
    drop(tx);
    assert_eq!(woken.count(), 1);
    (0..3).for_each(|_| assert_eq!(receive.ends(), Err(RecvError::Closed)));
    drop(receive);
    assert!(rx.is_closed());
    assert_eq!(rx.try_recv(), Err(RecvError::Closed));
    assert_eq!(rx.recv().wait(), Err(RecvError::Closed));
    assert_eq!(rx.into_recv().wait(), Err(RecvError::Closed));
}

/// A reply to an abandoned request is refused, with its value: dropped, closed, and dropped with an owned receive that was
/// unpolled, parked, or over.
#[test]
fn refused_with_its_value() {
    let (tx, rx) = oneshot::channel();
    assert!(!tx.is_closed());
    drop(rx);
    assert!(tx.is_closed());
    assert_eq!(tx.send(1), Err(SendError::Closed(1)));

    let (tx, mut rx) = oneshot::channel();
    assert!(rx.close());
    assert!(tx.is_closed() && rx.is_closed() && !rx.close());
    assert_eq!(tx.send(2), Err(SendError::Closed(2)));
    assert_eq!((rx.try_recv(), rx.recv().wait()), (Err(RecvError::Closed), Err(RecvError::Closed)));

    let (tx, rx) = oneshot::channel();
    drop(rx.into_recv());
    assert_eq!(tx.send(3), Err(SendError::Closed(3)));

    let (tx, rx) = oneshot::channel();
    let mut receive = Box::pin(rx.into_recv());
    receive.parks();
    drop(receive);
    assert_eq!(tx.send(4), Err(SendError::Closed(4)));
}

/// A borrowed receive that is dropped, unpolled or parked, is no reason to refuse.
#[test]
fn a_dropped_borrow_abandons_nothing() {
    let (tx, mut rx) = oneshot::channel();
    drop(rx.recv());
    let mut receive = Box::pin(rx.recv());
    receive.parks();
    drop(receive);
    assert_eq!((tx.is_closed(), tx.send(1)), (false, Ok(())));
    assert_eq!(rx.try_recv(), Ok(1));
}

/// CASES 1, 16: what was sent before the close can still be taken; once.
#[test]
fn closed_after_the_send() {
    let (tx, mut rx) = oneshot::channel();
    tx.send(1).unwrap();
    assert!(!rx.close(), "the sender is gone");
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(rx.try_recv(), Err(RecvError::Closed));

    let (tx, mut rx) = oneshot::channel();
    tx.send(2).unwrap();
    rx.close();
    assert_eq!(rx.into_recv().wait(), Ok(2));
}

/// `is_closed` of the receiver: nothing will be accepted any more. Of the sender: a send would be refused.
#[test]
fn is_closed_says_what_it_says() {
    let (tx, mut rx) = oneshot::channel();
    assert!(!tx.is_closed() && !rx.is_closed());
    assert_eq!(rx.try_recv(), Err(RecvError::Empty));
    tx.send(1).unwrap();
    assert!(rx.is_closed());
    let (tx, rx) = oneshot::channel::<u8>();
    drop(tx);
    assert!(rx.is_closed());
}

/// `closed()`: ready at once after the end of the receiver, woken by it before, all of them if there are several; and
/// again and again.
#[test]
fn the_wait_for_the_close() {
    type End = fn(oneshot::Receiver<u8>) -> Option<oneshot::Receiver<u8>>;
    let ends: [End; 3] = [
        |rx| {
            drop(rx);
            None
        },
        |mut rx| {
            assert!(rx.close());
            Some(rx)
        },
        |rx| {
            drop(rx.into_recv());
            None
        },
    ];
    for end in ends {
        let (tx, rx) = oneshot::channel::<u8>();
        let mut closed: Vec<_> = (0..40).map(|_| (Woken::new(), Box::pin(tx.closed()))).collect();
        closed.iter_mut().for_each(|((_, waker), closed)| closed.parks_with(waker));
        let mut left = pin!(tx.closed());
        assert!(tidegate_wait::op::poll_once(left.as_mut()).is_pending());
        let rx = end(rx);
        for ((woken, _), closed) in &mut closed {
            assert_eq!(woken.count(), 1);
            closed.ends();
            closed.ends();
        }
        tx.closed().wait();
        assert!(tx.is_closed());
        drop(rx);
    }
}

/// A dropped wait for the close leaves nothing behind, and the others are told.
#[test]
fn a_dropped_wait_for_the_close() {
    let (tx, rx) = oneshot::channel::<u8>();
    let mut waits: Vec<_> = (0..3).map(|_| Box::pin(tx.closed())).collect();
    waits.iter_mut().for_each(Look::parks);
    drop(waits.remove(1));
    drop(rx);
    waits.iter_mut().for_each(|wait| wait.ends());
}

/// The receive and the wait for the close stand in one list; each gets what it waits for.
#[test]
fn both_sides_wait() {
    let (tx, mut rx) = oneshot::channel();
    let mut receive = Box::pin(rx.recv());
    let mut closed = Box::pin(tx.closed());
    receive.parks();
    closed.parks();
    drop(closed);
    tx.send(1).unwrap();
    assert_eq!(receive.ends(), Ok(1));

    let (tx, rx) = oneshot::channel::<u8>();
    let mut receive = Box::pin(rx.into_recv());
    let mut closed = Box::pin(tx.closed());
    closed.parks();
    receive.parks();
    drop(receive);
    closed.ends();
}

/// P3, CASE 23: after its value a receive stays pending, after an error it says so again.
#[test]
fn polls_after_the_end() {
    use futures_core::FusedFuture;
    let (tx, mut rx) = oneshot::channel();
    tx.send(1).unwrap();
    let mut receive = Box::pin(rx.recv());
    assert!(!receive.is_terminated());
    assert_eq!(receive.look(), Poll::Ready(Ok(1)));
    assert!(receive.is_terminated());
    assert!(receive.look().is_pending() && receive.look().is_pending());
    drop(receive);
    let mut receive = Box::pin(rx.into_recv());
    (0..3).for_each(|_| assert_eq!(receive.ends(), Err(RecvError::Closed)));
    assert!(!receive.is_terminated());
}

/// CASE 4: the waker that counts is the last one.
#[test]
fn the_waker_changes() {
    let ((first, a), (last, b)) = (Woken::new(), Woken::new());
    let (tx, mut rx) = oneshot::channel();
    let mut receive = Box::pin(rx.recv());
    receive.parks_with(&a);
    receive.parks_with(&b);
    tx.send(1).unwrap();
    assert_eq!((first.count(), last.count(), receive.ends()), (0, 1, Ok(1)));
}
