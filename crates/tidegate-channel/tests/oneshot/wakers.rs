//! Wakers that panic, and wakers that use the channel, in each of their functions.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use tidegate_channel::{oneshot, Operation};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;

use crate::support::{hooked, on_wake, panics, poll, quiet_panic, Counted, Hooks, Ledger, Look, Woken};

const MS: Duration = Duration::from_millis(1);
const FUNCTIONS: [&str; 3] = ["wake", "clone", "drop"];

fn in_one(function: &str, hook: impl Fn() + Send + Sync + 'static) -> Arc<Hooks> {
    let mut hooks = Hooks::default();
    match function {
        "wake" => hooks.wake = Some(Box::new(hook)),
        "clone" => hooks.clone = Some(Box::new(hook)),
        _ => hooks.drop = Some(Box::new(hook)),
    }
    hooks.activate(true);
    Arc::new(hooks)
}

type Value = Counted;

/// Everything that a channel does with a waker; each step may unwind out of the user's own call only.
fn every_use_of_a_waker(hooks: &Arc<Hooks>, ledger: &Ledger) {
    let step = |f: &mut dyn FnMut()| {
        let _may = panics(f);
    };
    let clock = ManualClock::new();
    clock.enter(|| {
        for way in 0..6 {
            let token = CancelToken::new();
            let (tx, rx) = oneshot::channel::<Value>();
            let (mut tx, mut receive) = (Some(tx), Box::pin(rx.into_recv().timeout(MS).cancel_on_owned(token.clone())));
            polls_thrice(receive.as_mut(), hooks);
            step(&mut || match way {
                0 => assert!(tx.take().unwrap().send(ledger.value(0)).is_ok()),
                1 => drop(tx.take()),
                2 => clock.advance(MS),
                3 => assert!(token.cancel()),
                _ => {}
            });
            step(&mut || drop(receive.look()));
            step(&mut || drop(tx.take()));
            drop(receive);

            let (tx, rx) = oneshot::channel::<Value>();
            let mut rx = Some(rx);
            let mut closed = Box::pin(tx.closed().timeout(MS).cancel_on_owned(token.child()));
            polls_thrice(closed.as_mut(), hooks);
            step(&mut || match way {
                0 => drop(rx.take()),
                1 => assert!(rx.as_mut().unwrap().close()),
                2 => clock.advance(MS),
                3 => drop(rx.take().unwrap().into_recv()),
                _ => {}
            });
            drop(closed);
        }
        assert_eq!(clock.armed(), 0);
    });
}

/// With the waker, with another, and with the waker again.
fn polls_thrice<F: Future>(mut operation: Pin<&mut F>, hooks: &Arc<Hooks>) {
    let _may = panics(|| {
        let waker = hooked(hooks);
        let _ = poll(operation.as_mut(), &waker);
        let _ = poll(operation.as_mut(), Waker::noop());
        let _ = poll(operation.as_mut(), &waker);
    });
}

/// G5, CASES 28, 30: a waker panics in its wake, clone or drop: whoever runs it goes on, no value is lost, no waker leaked
/// or dropped twice.
#[test]
fn a_panicking_waker_harms_nobody() {
    for function in FUNCTIONS {
        let ledger = Ledger::default();
        let hooks = in_one(function, quiet_panic);
        every_use_of_a_waker(&hooks, &ledger);
        ledger.settled();
        assert_eq!(hooks.alive(), 0, "{function}");
    }
}

/// G5: the send whose wake panics has succeeded; of many waits the first one's waker panics, and all others are told.
#[test]
fn a_panicking_wake_fails_nothing() {
    let hooks = in_one("wake", quiet_panic);
    let (tx, mut rx) = oneshot::channel();
    let mut receive = Box::pin(rx.recv());
    receive.parks_with(&hooked(&hooks));
    assert_eq!(tx.send(1), Ok(()));
    assert_eq!((receive.ends(), hooks.wakes(), hooks.alive()), (Ok(1), 1, 0));

    let (tx, rx) = oneshot::channel::<u8>();
    let mut waits: Vec<_> = (0..40).map(|_| Box::pin(tx.closed())).collect();
    waits.iter_mut().for_each(|wait| wait.parks_with(&hooked(&hooks)));
    let (woken, waker) = Woken::new();
    let mut last = Box::pin(tx.closed());
    last.parks_with(&waker);
    drop(rx);
    assert_eq!((woken.count(), hooks.wakes(), hooks.alive()), (1, 41, 0));
}

/// G5: a waker whose clone panics leaves its operation unparked; the next poll goes on.
#[test]
fn a_failed_clone_is_as_if_never_polled() {
    let hooks = in_one("clone", quiet_panic);
    let (tx, mut rx) = oneshot::channel();
    let mut receive = Box::pin(rx.recv());
    let waker = hooked(&hooks);
    assert!(panics(|| assert!(poll(receive.as_mut(), &waker).is_ready())));
    tx.send(1).unwrap();
    assert_eq!(receive.ends(), Ok(1));
}

/// G5, CASE 28: a waker that comes back into its channel, in each of its functions: it sends, drops and asks what it can
/// reach; nothing deadlocks.
#[test]
fn a_reentrant_waker_is_safe() {
    for function in FUNCTIONS {
        let shared: Arc<Mutex<Vec<oneshot::Sender<u8>>>> = Arc::default();
        let inside = shared.clone();
        let hooks = in_one(function, move || {
            let tx = inside.lock().unwrap().pop();
            if let Some(tx) = tx {
                let _ = (tx.is_closed(), format!("{tx:?}"));
                let mut closed = Box::pin(tx.closed());
                let _ = closed.look();
                drop(closed);
                let _sent = tx.send(9);
            }
        });
        // The sender goes, or sends, from inside its own receiver's waker: in a clone before the park, in the drop of a
        // waker that was exchanged, in the wake by a token.
        let (tx, mut rx) = oneshot::channel();
        shared.lock().unwrap().push(tx);
        let token = CancelToken::new();
        let mut receive = Box::pin(rx.recv().cancel_on(&token));
        let mut ends = vec![receive.look_with(&hooked(&hooks))];
        if function != "wake" {
            ends.push(receive.look());
        }
        token.cancel();
        ends.push(receive.look());
        drop(receive);
        drop(hooks);
        assert!(shared.lock().unwrap().is_empty(), "{function}: the hook did not run");
        let received = ends.contains(&Poll::Ready(Ok(9)));
        assert!(received ^ (rx.try_recv() == Ok(9)), "{function}: the value is in one place");
    }
}

/// A wake that drops the operation that it wakes for: the send is done with it.
#[test]
fn a_wake_drops_the_receiver() {
    let ledger = Ledger::default();
    let (tx, rx) = oneshot::channel();
    type Slot = Arc<Mutex<Option<Pin<Box<oneshot::OwnedReceiving<Value>>>>>>;
    let slot: Slot = Arc::default();
    let inside = slot.clone();
    let waker = on_wake(move || drop(inside.lock().unwrap().take()));
    let mut receive = Box::pin(rx.into_recv());
    receive.parks_with(&waker);
    drop(waker);
    *slot.lock().unwrap() = Some(receive);
    assert!(tx.send(ledger.value(1)).is_ok(), "it was there when the value was sent");
    assert!(slot.lock().unwrap().is_none());
    ledger.settled();
}

/// G5: a waker whose clone sends, or drops the sender, before the receive is parked: it ends at once.
#[test]
fn sent_by_the_clone_of_its_waker() {
    for sends in [true, false] {
        let (tx, mut rx) = oneshot::channel::<u8>();
        let tx = Mutex::new(Some(tx));
        let hooks = in_one("clone", move || {
            let tx = tx.lock().unwrap().take();
            if let (Some(tx), true) = (tx, sends) {
                tx.send(7).unwrap();
            }
        });
        let waker = hooked(&hooks);
        let end = Box::pin(rx.recv()).look_with(&waker);
        assert_eq!(end.map(Result::ok), Poll::Ready(sends.then_some(7)));
        drop(waker);
        assert_eq!(hooks.alive(), 0);
    }
}
