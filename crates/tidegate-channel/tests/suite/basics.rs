//! Sending, receiving, counting.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_channel::{Operation, RecvError, SendError};
use tidegate_wait::op::block_on;

use crate::flavors::{drain, each_flavor, each_manner, Manner};
use crate::support::{Ledger, Look, Tasks};

/// G1, CASE 15, ELIO (try_send on a rendezvous without a receiver fails; try_recv on closed and empty says closed): full,
/// empty and closed are told apart, and a refused value comes back intact.
#[test]
fn try_twins_say_why() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        assert_eq!(rx.try_recv(), Err(RecvError::Empty));
        flavor.fill(&tx, |n| n.to_string());
        if !flavor.sends_wait() {
            rx.close();
            assert_eq!(tx.try_send(String::from("late")), Err(SendError::Closed(String::from("late"))));
            assert_eq!(drain(&rx), ((0..flavor.capacity).map(|n| n.to_string()).collect(), RecvError::Closed));
            return;
        }
        let refused = tx.try_send(String::from("too many")).unwrap_err();
        assert!(refused.is_full() && !refused.is_closed());
        assert_eq!(refused.into_inner(), "too many");
        let mut send = Box::pin(tx.send(String::from("parked")));
        send.parks();
        assert_eq!(tx.try_send(String::from("behind")), Err(SendError::Full(String::from("behind"))));
        let first = if flavor.capacity == 0 { "parked" } else { "0" };
        assert_eq!(rx.try_recv().unwrap(), first);
        assert_eq!(send.ends(), Ok(()));
        rx.close();
        assert_eq!(tx.try_send(String::from("late")), Err(SendError::Closed(String::from("late"))));
        assert_eq!(drain(&rx).0.len(), flavor.capacity);
        assert_eq!(rx.try_recv(), Err(RecvError::Closed));
    });
}

/// G1, ELIO (fill, full, FIFO, size; size and emptiness count down after close).
#[test]
fn fill_and_count_down() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        for close in [false, true] {
            flavor.fill(&tx, |n| n);
            if close {
                assert!(tx.close());
            }
            for n in 0..flavor.capacity {
                assert_eq!((tx.len(), rx.len(), rx.is_empty()), (flavor.capacity - n, flavor.capacity - n, false));
                assert_eq!(rx.try_recv(), Ok(n));
                assert!(!rx.is_full());
            }
            assert_eq!((tx.len(), tx.is_empty(), rx.is_empty()), (0, true, true));
        }
    });
}

/// G1, G2, ELIO (sum through producer and consumer until close): values of one sender arrive in order and whole, through
/// a task or a thread a side, until the last sender goes.
#[test]
fn a_producer_and_a_consumer() {
    let total = if cfg!(miri) { 30 } else { 2_000 };
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make();
        let received = RefCell::new(Vec::new());
        if manner == Manner::Async {
            let mut tasks = Tasks::default();
            tasks.spawn(async move {
                for n in 0..total {
                    tx.send(n).await.unwrap();
                }
            });
            tasks.spawn(async {
                while let Ok(n) = rx.recv().await {
                    received.borrow_mut().push(n);
                }
            });
            tasks.run();
        } else {
            std::thread::scope(|scope| {
                scope.spawn(move || (0..total).for_each(|n| tx.send(n).wait().unwrap()));
                while let Ok(n) = rx.recv().wait() {
                    received.borrow_mut().push(n);
                }
            });
        }
        assert!(rx.is_closed());
        assert_eq!(received.into_inner(), (0..total).collect::<Vec<_>>());
    });
}

/// G2: an operation does nothing before its first poll.
#[test]
fn nothing_happens_before_the_first_poll() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        let (send, receive, closed) = (tx.send(1), rx.recv(), rx.closed());
        assert_eq!((tx.len(), tx.parked_senders(), tx.parked_receivers()), (0, 0, 0));
        drop(send);
        flavor.hold(&tx, &rx, 2);
        drop((receive, closed));
        assert_eq!(rx.try_recv(), Ok(2));
        let owned = tx.clone().into_send(1);
        assert_eq!((tx.sender_count(), tx.receiver_count()), (2, 1));
        drop((owned, rx.clone().into_recv()));
        assert_eq!((tx.sender_count(), tx.receiver_count()), (1, 1));
    });
}

/// G2, CASE 26: capacity belongs to the channel: clones add none.
#[test]
fn clones_add_no_capacity() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        let clones: Vec<_> = (0..100).map(|_| tx.clone()).collect();
        assert_eq!(clones.iter().filter(|tx| tx.try_send(()).is_ok()).count(), flavor.capacity);
        assert_eq!((tx.sender_count(), rx.sender_count()), (101, 101));
    });
}

/// Counts and reports of both halves; a full ring beside a returned delivery is not "full" by the sum.
#[test]
fn halves_report() {
    each_flavor(|flavor| {
        let (cap, limit) = (flavor.capacity, flavor.limit());
        let (tx, rx) = flavor.make();
        assert!(tx.is_empty() && rx.is_empty());
        assert_eq!((tx.capacity(), rx.capacity(), tx.is_full(), rx.is_full()), (limit, limit, cap == 0, cap == 0));
        let mut receive = Box::pin(rx.recv());
        receive.parks();
        tx.try_send(0).unwrap();
        drop(receive);
        (1..cap).for_each(|n| tx.try_send(n).unwrap());
        assert_eq!((tx.len(), rx.len()), (cap.max(1), cap.max(1)));
        assert_eq!(tx.is_full(), cap == 0, "one is not in the ring: there is room");
        if cap != 0 {
            tx.try_send(cap).unwrap();
        }
        assert_eq!((tx.is_full(), rx.is_full()), (cap == limit, cap == limit));
        assert_eq!(tx.len(), cap + 1);
        assert!(tx.same_channel(&tx.clone()) && rx.same_channel(&rx.clone()));
        let (other_tx, other_rx) = flavor.make();
        assert!(!tx.same_channel(&other_tx) && !rx.same_channel(&other_rx));
        let fields =
            format!("len: {}, capacity: {limit}, closed: false, parked_senders: 0, parked_receivers: 0, ..", cap + 1);
        assert_eq!(format!("{tx:?}"), format!("Sender {{ {fields} }}"));
        assert_eq!(format!("{rx:?}"), format!("Receiver {{ {fields} }}"));
        assert_eq!(format!("{:?} {:?}", tx.downgrade(), rx.downgrade()), {
            format!("WeakSender {{ {fields} }} WeakReceiver {{ {fields} }}")
        });
        assert_eq!(
            format!("{:?} {:?} {:?}", tx.send(1), rx.recv(), rx.closed()),
            "Sending { state: Init, .. } Receiving { state: Init, .. } Closed { state: Init, .. }"
        );
    });
}

/// G7: the parked are counted from the park to whatever ends them; a wait for the close is not one of them.
#[test]
fn the_parked_are_counted() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        let counts = || (tx.parked_senders(), rx.parked_senders(), tx.parked_receivers(), rx.parked_receivers());
        let mut closed = Box::pin(tx.closed());
        closed.parks();
        let (mut one, mut two) = (Box::pin(rx.recv()), Box::pin(rx.recv()));
        one.parks();
        assert_eq!(counts(), (0, 0, 1, 1));
        two.parks();
        one.parks();
        assert_eq!(counts(), (0, 0, 2, 2));
        tx.try_send(0).unwrap();
        assert_eq!(counts(), (0, 0, 1, 1), "delivered is not parked");
        drop(two);
        assert_eq!((counts(), one.ends()), ((0, 0, 0, 0), Ok(0)));
        flavor.fill(&tx, |n| n);
        if !flavor.sends_wait() {
            return;
        }
        let mut sends: Vec<_> = (0..4).map(|n| Box::pin(tx.send(100 + n))).collect();
        sends.iter_mut().for_each(Look::parks);
        assert_eq!(counts(), (4, 4, 0, 0));
        assert!(rx.try_recv().is_ok());
        assert_eq!(sends[1].as_mut().withdraw(), Some(101));
        assert_eq!(counts(), (2, 2, 0, 0));
        tx.close();
        assert_eq!(counts(), (0, 0, 0, 0));
    });
}

/// CASES 14, 27 (G7): sampled under load from both halves, `len` stays within 0..=capacity and never contradicts itself.
#[test]
fn len_stays_within_the_capacity_under_load() {
    let rounds = if cfg!(miri) { 40 } else { 3_000 };
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (tx, rx) = (tx.clone(), rx.clone());
                // In the async manner one future goes through all rounds.
                scope.spawn(move || match manner {
                    Manner::Blocking => (0..rounds).for_each(|n| tx.send(n).wait().unwrap()),
                    Manner::Async => block_on(async {
                        for n in 0..rounds {
                            tx.send(n).await.unwrap();
                        }
                    }),
                });
                scope.spawn(move || (0..rounds).for_each(|_| assert!(rx.recv().wait().is_ok())));
            }
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    assert!(tx.len() <= flavor.limit().min(2 * rounds));
                    assert!(rx.len() <= flavor.limit().min(2 * rounds));
                    std::thread::yield_now();
                }
            });
            while tx.sender_count() + rx.receiver_count() != 2 {
                std::thread::yield_now();
            }
            over.store(true, Ordering::Relaxed);
        });
        assert!(tx.is_empty());
    });
}

/// CASE 8: after a completed send, `try_recv` never says "empty": one value at a time, between threads.
#[test]
fn a_completed_send_is_never_empty() {
    let rounds = if cfg!(miri) { 30 } else { 3_000 };
    each_flavor(|flavor| {
        if flavor.capacity == 0 {
            return flavor.skip("a send completes only by its receive");
        }
        let (tx, rx) = flavor.make();
        let sent = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..rounds {
                    tx.try_send(n).unwrap();
                    sent.store(true, Ordering::Release);
                    crate::support::until(|| !sent.load(Ordering::Acquire));
                }
            });
            for n in 0..rounds {
                crate::support::until(|| sent.load(Ordering::Acquire));
                assert_eq!(rx.try_recv(), Ok(n));
                sent.store(false, Ordering::Release);
            }
        });
    });
}

/// Owned operations work for borrowed payloads, too: they are `'static` only if the payload is.
#[test]
fn owned_operations_carry_borrowed_payloads() {
    each_flavor(|flavor| {
        let text = String::from("borrowed");
        let (tx, rx) = flavor.make();
        std::thread::scope(|scope| {
            scope.spawn(|| tx.into_send(text.as_str()).wait().unwrap());
            assert_eq!(rx.into_recv().wait(), Ok("borrowed"));
        });
    });
}

/// ELIO (move-only payloads): values that can't be copied, compared, or sent between threads, with a destructor.
#[test]
fn values_need_no_traits() {
    struct Alone(#[allow(dead_code)] crate::support::Counted, Rc<u8>);
    each_manner(|flavor, manner| {
        let (ledger, shared) = (Ledger::default(), Rc::new(7));
        let (tx, rx) = flavor.make();
        let value = |id| Alone(ledger.value(id), shared.clone());
        flavor.hold(&tx, &rx, value(0));
        assert_eq!(*manner.run(rx.recv()).unwrap_or_else(|_| unreachable!()).1, 7);
        if !flavor.sends_wait() {
            return;
        }
        flavor.fill(&tx, value);
        let mut send = Box::pin(tx.send(value(100)));
        send.parks();
        assert!(manner.run(rx.recv()).is_ok() && send.ends().is_ok());
        drop(send);
        drop((tx, rx));
        ledger.settled();
        assert_eq!(Rc::strong_count(&shared), 1);
    });
}
