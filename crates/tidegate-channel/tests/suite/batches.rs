//! Many values as one operation (R1–R4).

use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures_core::FusedFuture;
use tidegate_channel::{Operation, Parked, RecvError, SendError};
use tidegate_wait::cancel::CancelToken;

use crate::flavors::{drain, each_flavor, each_manner, with_clock};
use crate::support::{hooked, panics, quiet_panic, Hooks, Ledger, Look};

/// More than any run, any hold and any flavor's buffer.
const MANY: usize = 200;

/// R3, G2: a batch keeps its place until its last value has gone, and its values their order; what parked later follows.
#[test]
fn r3_a_batch_keeps_its_place() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        let mut batch = Box::pin(tx.send_many(0..MANY));
        batch.parks();
        assert_eq!((tx.len(), tx.parked_senders()), (flavor.capacity, 1));
        let mut later = Box::pin(tx.send(MANY));
        later.parks();
        for n in 0..MANY - flavor.capacity {
            assert!(batch.look().is_pending() && later.look().is_pending(), "{n}");
            assert_eq!(rx.try_recv(), Ok(n));
        }
        assert_eq!(batch.ends(), Ok(MANY));
        assert_eq!(drain(&rx).0, (MANY - flavor.capacity..=MANY).collect::<Vec<_>>());
        assert_eq!(later.ends(), Ok(()));
    });
}

/// A batch that is received by parked receives, one by one, and by batches.
#[test]
fn batches_meet_parked_receives() {
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make();
        let receives: Vec<_> = (0..5).map(|_| manner.park_recv(&rx, rx.clone().into_recv())).collect();
        let mut batch = Box::pin(tx.send_many(0..MANY));
        assert_eq!(batch.look(), if flavor.has_limit() { Poll::Pending } else { Poll::Ready(Ok(MANY)) });
        for (n, receive) in receives.into_iter().enumerate() {
            assert_eq!(receive.ends(), Ok(n));
        }
        let mut seen = Vec::new();
        while seen.len() < MANY - 5 {
            let before = seen.len();
            let taken = manner.run(rx.recv_many(&mut seen, 7)).unwrap();
            assert!((1..=7).contains(&taken) && seen.len() == before + taken);
        }
        assert_eq!(seen, (5..MANY).collect::<Vec<_>>());
        assert_eq!(batch.look(), if flavor.has_limit() { Poll::Ready(Ok(MANY)) } else { Poll::Pending });
    });
}

/// G1: whatever ends a batch early, the rest comes back in order, with the count of what was sent.
#[test]
fn g1_the_rest_comes_back() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        with_clock(|clock| {
            let cap = flavor.capacity;
            let (tx, rx) = flavor.make();
            let token = CancelToken::new();
            let mut timed = Box::pin(tx.send_many(0..MANY).timeout(Duration::from_millis(3)));
            timed.parks();
            let mut cancelled = Box::pin(tx.send_many(0..2).cancel_on(&token));
            cancelled.parks();
            let mut withdrawn = Box::pin(tx.send_many(5..9));
            withdrawn.parks();
            assert_eq!(rx.try_recv(), Ok(0));
            clock.advance(Duration::from_millis(3));
            let Err(SendError::TimedOut(unsent)) = timed.ends() else { panic!("it did not time out") };
            assert_eq!((unsent.sent, unsent.rest), (cap + 1, (cap + 1..MANY).collect()));
            token.cancel();
            let Err(SendError::Cancelled(unsent)) = cancelled.ends() else { panic!("it was not cancelled") };
            assert_eq!((unsent.sent, unsent.rest), (0, vec![0, 1]));
            assert_eq!(withdrawn.as_mut().withdraw(), [5, 6, 7, 8]);
            assert!(withdrawn.as_mut().withdraw().is_empty());
            assert_eq!(tx.parked_senders(), 0);
            let Err(SendError::Full(unsent)) = tx.try_send_many(0..MANY) else { panic!("there was room") };
            assert_eq!((unsent.sent, unsent.rest.len()), (0, MANY));
            drain(&rx);
            tx.close();
            let Err(SendError::Closed(unsent)) = tx.send_many(0..3).wait() else { panic!("it was open") };
            assert_eq!((unsent.sent, unsent.rest), (0, vec![0, 1, 2]));
        });
    });
}

/// G7: a batch in line when the channel closes, in both ways.
#[test]
fn g7_a_close_ends_a_batch() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        for parked in [Parked::GiveBack, Parked::Admit] {
            let (tx, rx) = flavor.make();
            let mut batch = Box::pin(tx.send_many(0..MANY));
            batch.parks();
            let mut later = Box::pin(tx.send(MANY));
            later.parks();
            tx.close_with(parked);
            if parked == Parked::Admit {
                assert_eq!((batch.ends(), later.ends()), (Ok(MANY), Ok(())));
                assert_eq!(drain(&rx), ((0..=MANY).collect(), RecvError::Closed));
                continue;
            }
            let Err(SendError::Closed(unsent)) = batch.ends() else { panic!("it was not refused") };
            assert_eq!((unsent.sent, unsent.rest.len()), (flavor.capacity, MANY - flavor.capacity));
            assert_eq!(later.ends(), Err(SendError::Closed(MANY)));
            assert_eq!(drain(&rx), ((0..flavor.capacity).collect(), RecvError::Closed));
        }
    });
}

/// G1: every value of a batch ends in one place, however the batch does: unpolled, parked, halfway, with the channel.
#[test]
fn g1_each_value_ends_once() {
    each_flavor(|flavor| {
        let ledger = Ledger::default();
        let values = || (0..MANY).map(|n| ledger.value(n)).collect::<Vec<_>>();
        let (tx, rx) = flavor.make();
        drop(tx.send_many(values()));
        if !flavor.sends_wait() {
            return;
        }
        let mut batch = Box::pin(tx.send_many(values()));
        batch.parks();
        let mut some = Vec::new();
        rx.try_recv_many(&mut some, 3).unwrap();
        drop(batch);
        let mut last = Box::pin(tx.send_many(values()));
        last.parks();
        drop(rx);
        drop(last.ends());
        drop(last);
        drop((tx, some));
        ledger.settled();
    });
}

/// R4, bad input: no items, `max` 0, an iterator that panics: nothing is half-claimed.
#[test]
fn r4_bad_input_claims_nothing() {
    each_flavor(|flavor| {
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make();
        assert_eq!(tx.send_many(None).wait().ok(), Some(0), "nothing to send is done at once, even without room");
        assert_eq!(tx.try_send_many(None).ok(), Some(0));
        let mut none = Vec::new();
        assert_eq!(rx.recv_many(&mut none, 0).wait(), Ok(0));
        assert_eq!(rx.try_recv_many(&mut none, 0), Ok(0));
        assert_eq!(rx.try_recv_many(&mut none, 1), Err(RecvError::Empty));
        let broken = (0..3).map(|n| if n == 2 { quiet_panic_value(&ledger) } else { ledger.value(n) });
        assert!(panics(|| drop(tx.send_many(broken))));
        assert_eq!((tx.len(), tx.parked_senders(), none.len()), (0, 0, 0));
        drop((tx, rx));
        ledger.settled();
    });
}

fn quiet_panic_value(ledger: &Ledger) -> crate::support::Counted {
    quiet_panic();
    ledger.value(0)
}

/// G1, CASE 1: a batch receive that is dropped after a delivery loses nothing.
#[test]
fn case_1_a_dropped_batch_receive_gives_its_delivery_back() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        let mut buffer = Vec::new();
        let mut receive = Box::pin(rx.recv_many(&mut buffer, 8));
        receive.parks();
        tx.try_send(1).unwrap();
        drop(receive);
        assert_eq!((buffer.len(), rx.try_recv()), (0, Ok(1)));
    });
}

/// G6, G7 for a batch receive: limits, and the end.
#[test]
fn batch_receives_end_like_others() {
    each_flavor(|flavor| {
        with_clock(|clock| {
            let (tx, rx) = flavor.make::<usize>();
            let mut buffer = Vec::new();
            let mut timed = Box::pin(rx.recv_many(&mut buffer, 8).timeout(Duration::from_millis(2)));
            timed.parks();
            clock.advance(Duration::from_millis(2));
            assert_eq!(timed.ends(), Err(RecvError::TimedOut));
            drop(timed);
            let mut parked = Box::pin(rx.recv_many(&mut buffer, 8));
            parked.parks();
            drop(tx);
            let late = rx.recv_many(&mut Vec::new(), 8).timeout(Duration::ZERO).wait();
            assert_eq!(late, Err(RecvError::Closed), "what is there goes before a limit");
            assert_eq!((parked.ends(), parked.ends()), (Err(RecvError::Closed), Err(RecvError::Closed)));
            drop(parked);
            let mut at_once = Box::pin(rx.recv_many(&mut buffer, 8));
            assert_eq!((at_once.ends(), at_once.ends()), (Err(RecvError::Closed), Err(RecvError::Closed)));
        });
    });
}

/// I3: a receive parks between a batch's last try and its park, while the waker is cloned; every slot is promised, if there
/// are any. The batch goes across.
#[test]
fn a_receive_parks_before_a_batch_does() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        let permits: Vec<_> = (0..flavor.capacity).map(|_| tx.try_reserve().unwrap()).collect();
        let parked = Arc::new(Mutex::new(None));
        let place = parked.clone();
        let hook = move || {
            place.lock().unwrap().get_or_insert_with(|| {
                let mut receive = Box::pin(rx.clone().into_recv());
                receive.parks();
                receive
            });
        };
        let hooks = Arc::new(Hooks { clone: Some(Box::new(hook)), ..Hooks::default() });
        hooks.activate(true);
        let mut batch = Box::pin(tx.send_many(7..8));
        assert_eq!(batch.look_with(&hooked(&hooks)), Poll::Ready(Ok(1)));
        let mut receive = parked.lock().unwrap().take().unwrap();
        assert_eq!(receive.ends(), Ok(7));
        drop(permits);
    });
}

/// R4: memory is made for what is there, however much is asked for.
#[test]
fn r4_as_much_as_there_is() {
    each_manner(|flavor, manner| {
        if flavor.capacity == 0 {
            return flavor.skip("nothing is buffered");
        }
        let (tx, rx) = flavor.make();
        let mut seen = Vec::new();
        flavor.fill(&tx, |n| n);
        assert_eq!(rx.try_recv_many(&mut seen, usize::MAX), Ok(flavor.capacity));
        flavor.fill(&tx, |n| flavor.capacity + n);
        assert_eq!(manner.run(rx.recv_many(&mut seen, usize::MAX)), Ok(flavor.capacity));
        assert!(seen.into_iter().eq(0..2 * flavor.capacity));
    });
}

/// CASE 18: batches that are polled after their end, found at once or parked for, stay pending and touch nothing.
#[test]
fn case_18_polled_after_the_end() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        let mut seen = Vec::new();
        for parks in [false, true] {
            let mut receive = Box::pin(rx.recv_many(&mut seen, 8));
            if parks || flavor.capacity == 0 {
                receive.parks();
            }
            tx.try_send(1).unwrap();
            assert!(!receive.is_terminated());
            assert_eq!(receive.ends(), Ok(1));
            assert!(receive.is_terminated() && receive.look().is_pending());
        }
        assert_eq!(seen, [1, 1]);
        for parks in [false, true] {
            let mut receive = Box::pin(rx.recv());
            if flavor.capacity == 0 {
                receive.parks();
            }
            let mut send = Box::pin(tx.send_many(2..3));
            if parks && flavor.has_limit() {
                drop(receive);
                flavor.fill(&tx, |n| n);
                send.parks();
                assert_eq!(drain(&rx).0.pop(), Some(2));
                receive = Box::pin(rx.recv());
            }
            assert!(!send.is_terminated());
            assert_eq!(send.ends(), Ok(1));
            assert!(send.is_terminated() && send.look().is_pending());
            assert!(send.as_mut().withdraw().is_empty());
            drop(send);
            drop(receive);
            drain(&rx);
        }
    });
}

/// CASE 22: a drain ends, whatever is sent meanwhile.
#[test]
fn case_22_a_drain_ends() {
    each_flavor(|flavor| {
        if flavor.capacity == 0 {
            return flavor.skip("nothing is buffered");
        }
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let mut drained = 0;
        for n in rx.drain() {
            assert_eq!(n, drained);
            drained += 1;
            tx.try_send(flavor.capacity + n).unwrap();
        }
        assert_eq!((drained, rx.len()), (flavor.capacity, flavor.capacity));
    });
}

/// A batch so long that its count would read as a reservation's is refused, before anything happens.
#[test]
#[cfg(all(target_pointer_width = "64", not(debug_assertions)))]
fn a_batch_beyond_all_counts_is_refused() {
    let (tx, _rx) = tidegate_channel::bounded::<()>(4);
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(tx.send_many(vec![(); usize::MAX]))));
    assert!(refused.is_err() && tx.is_empty());
}
