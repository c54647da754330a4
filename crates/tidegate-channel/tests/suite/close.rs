//! Close from either side, the last drops, and what becomes of the values.

use std::task::Poll;

use tidegate_channel::{bounded, Operation, RecvError, SendError};

use crate::support::{Ledger, Look, Woken};

/// G7, CASE 21: close, from either side, once: parked sends get their values back, woken in the order in which they
/// parked, more of them than one hold of the lock settles.
#[test]
fn close_gives_parked_values_back_in_order() {
    use std::sync::{Arc, Mutex};
    use std::task::{Wake, Waker};
    struct Order(usize, Arc<Mutex<Vec<usize>>>);
    impl Wake for Order {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }
    for by_sender in [true, false] {
        let (tx, rx) = bounded(1);
        tx.try_send(1000).unwrap();
        let order = Arc::default();
        let mut sends: Vec<_> = (0..70).map(|n| Box::pin(tx.send(n))).collect();
        for (n, send) in sends.iter_mut().enumerate() {
            send.parks_with(&Waker::from(Arc::new(Order(n, Arc::clone(&order)))));
        }
        assert!(if by_sender { tx.close() } else { rx.close() });
        assert!(!tx.close() && !rx.close(), "the second is told that it was not the first");
        assert!(tx.is_closed() && rx.is_closed());
        assert_eq!(*order.lock().unwrap(), (0..70).collect::<Vec<_>>());
        for (n, send) in sends.iter_mut().enumerate() {
            assert_eq!(send.ends(), Err(SendError::Closed(n)));
        }
        assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1000), Err(RecvError::Closed)));
    }
}

/// G7: close wakes every parked receive, and each says so again when polled again.
#[test]
fn close_ends_parked_receives() {
    let (tx, rx) = bounded::<u8>(1);
    let (woken, waker) = Woken::new();
    let mut receives: Vec<_> = (0..70).map(|_| Box::pin(rx.recv())).collect();
    receives.iter_mut().for_each(|receive| receive.parks_with(&waker));
    tx.close();
    assert_eq!(woken.count(), 70);
    for receive in &mut receives {
        (0..2).for_each(|_| assert_eq!(receive.ends(), Err(RecvError::Closed)));
    }
}

/// G7: after the close no send is admitted, by any way, also where there is room.
#[test]
fn nothing_is_sent_after_the_close() {
    let (tx, rx) = bounded(4);
    rx.close();
    assert_eq!(tx.try_send(1), Err(SendError::Closed(1)));
    assert_eq!(tx.send(2).wait(), Err(SendError::Closed(2)));
    assert_eq!(tx.clone().into_send(3).wait(), Err(SendError::Closed(3)));
    assert_eq!(rx.try_recv(), Err(RecvError::Closed));
}

/// G7, CASES 16, 22: what is buffered drains, then the end comes, for good, by every way to ask.
#[test]
fn buffered_values_drain_before_the_end() {
    let (tx, rx) = bounded(3);
    (0..3).for_each(|n| tx.try_send(n).unwrap());
    drop(tx);
    assert!(rx.is_closed());
    assert_eq!(rx.recv().wait(), Ok(0));
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(rx.clone().into_recv().wait(), Ok(2));
    (0..3)
        .for_each(|_| assert_eq!((rx.try_recv(), rx.recv().wait()), (Err(RecvError::Closed), Err(RecvError::Closed))));
}

/// G7: the last sender's drop closes, a clone's does not; an operation with a half of its own counts until it is dropped,
/// even when it has long ended.
#[test]
fn the_last_sender_closes() {
    let (tx, rx) = bounded(2);
    let clone = tx.clone();
    drop(tx);
    let mut owned = Box::pin(clone.into_send(1));
    assert!(!rx.is_closed());
    let mut receive = Box::pin(rx.recv());
    receive.parks();
    assert_eq!(owned.ends(), Ok(()));
    assert_eq!(receive.ends(), Ok(1));
    let mut receive = Box::pin(rx.recv());
    receive.parks();
    assert_eq!((rx.sender_count(), rx.is_closed()), (1, false));
    drop(owned);
    assert_eq!(receive.ends(), Err(RecvError::Closed));
}

/// CASE 18 (G7): with the last receiver everything buffered is dropped at once, returned deliveries too, while senders
/// still live; parked sends get their values back.
#[test]
fn the_last_receiver_drops_what_is_buffered() {
    let ledger = Ledger::default();
    let (tx, rx) = bounded(2);
    let mut delivered = Box::pin(rx.clone().into_recv());
    delivered.parks();
    (0..3).for_each(|n| tx.try_send(ledger.value(n)).unwrap());
    let mut send = Box::pin(tx.send(ledger.value(3)));
    send.parks();
    drop(rx);
    assert_eq!(ledger.dropped(), 0, "the receive has a half of its own");
    assert!(!tx.is_closed());
    drop(delivered);
    assert!(tx.is_closed());
    assert_eq!(ledger.dropped(), 3);
    assert!(matches!(send.ends(), Err(SendError::Closed(value)) if value == 3));
    assert!(matches!(tx.try_send(ledger.value(4)), Err(SendError::Closed(value)) if value == 4));
    drop(send);
    ledger.settled();
}

/// G1: an owned send that is parked when the receivers go gets its value back; dropped, it drops it.
#[test]
fn owned_sends_end_with_the_receivers() {
    let ledger = Ledger::default();
    let (tx, rx) = bounded(1);
    let mut kept = Box::pin(tx.clone().into_send(ledger.value(0)));
    assert!(matches!(kept.ends(), Ok(())));
    let mut back = Box::pin(tx.clone().into_send(ledger.value(1)));
    let mut dropped = Box::pin(tx.into_send(ledger.value(2)));
    back.parks();
    dropped.parks();
    drop(rx);
    assert!(matches!(back.ends(), Err(SendError::Closed(value)) if value == 1));
    drop((kept, back, dropped));
    ledger.settled();
}

/// CASE 18: a reply channel inside a buffered request is closed when the server goes, so nobody hangs on it.
#[test]
fn a_reply_channel_inside_a_value_closes() {
    let (requests, server) = bounded(1);
    let (reply, replies) = bounded::<u8>(1);
    requests.try_send(reply).unwrap();
    let mut receive = Box::pin(replies.recv());
    receive.parks();
    drop(server);
    assert_eq!(receive.ends(), Err(RecvError::Closed));
}

/// G7: a channel inside its own ring is freed with it: the last receiver empties the ring, and with the ring goes the last
/// sender; also the other way round, by a receiver in the ring of the last sender's channel.
#[test]
fn a_channel_inside_itself_ends() {
    struct Inside(
        #[allow(dead_code)] Option<tidegate_channel::Sender<Inside>>,
        #[allow(dead_code)] crate::support::Counted,
    );
    let ledger = Ledger::default();
    let (tx, rx) = bounded(1);
    tx.try_send(Inside(Some(tx.clone()), ledger.value(0))).unwrap_or_else(|_| unreachable!());
    drop(tx);
    assert!(!rx.is_closed());
    drop(rx);
    ledger.settled();
}

/// G7, G8: a send that `close` has not reached yet, or has, is withdrawn in a waker that the same close runs; the others
/// still end. (Nodes leave the private list of a close under way.)
#[test]
fn parked_operations_may_leave_during_a_close() {
    use crate::support::{hooked, Hooks};
    use std::sync::{Arc, Mutex};
    type Parked = Arc<Mutex<Vec<Poll<std::pin::Pin<Box<tidegate_channel::OwnedSending<usize>>>>>>>;
    let (tx, rx) = bounded(1);
    tx.try_send(1000).unwrap();
    let parked: Parked = Arc::default();
    let inside = parked.clone();
    // The first to be woken drops all even ones, of which 32 have been settled and the rest have not.
    let hooks = Arc::new(Hooks {
        wake: Some(Box::new(move || {
            let taken: Vec<_> =
                inside.lock().unwrap().iter_mut().step_by(2).map(|p| std::mem::replace(p, Poll::Pending)).collect();
            drop(taken);
        })),
        ..Hooks::default()
    });
    hooks.activate(true);
    let waker = hooked(&hooks);
    let mut first = Box::pin(tx.clone().into_send(999));
    first.parks_with(&waker);
    for n in 0..100 {
        let mut send = Box::pin(tx.clone().into_send(n));
        send.parks();
        parked.lock().unwrap().push(Poll::Ready(send));
    }
    rx.close();
    assert_eq!(first.ends(), Err(SendError::Closed(999)));
    let mut ended = 0;
    for (n, send) in parked.lock().unwrap().iter_mut().enumerate() {
        if let Poll::Ready(send) = send {
            assert_eq!(send.ends(), Err(SendError::Closed(n)));
            ended += 1;
        }
    }
    assert_eq!(ended, 50);
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1000), Err(RecvError::Closed)));
}
