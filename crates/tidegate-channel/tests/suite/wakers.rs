//! Wakers that panic, and wakers that use the channel, in each of their functions.

use std::sync::Arc;
use std::time::Duration;

use tidegate_channel::{bounded, Operation, Receiver, Sender};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;

use crate::support::{hooked, panics, poll, quiet_panic, Counted, Hooks, Ledger, Look, Woken};

const FUNCTIONS: [&str; 3] = ["wake", "clone", "drop"];

/// A waker that runs `hook` in one of its functions (`wake` stands for `wake_by_ref`, too).
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

/// Everything that a channel and its limits do with a waker. Each step may unwind out of the user's own call only.
fn every_use_of_a_waker(tx: &Sender<Counted>, rx: &Receiver<Counted>, hooks: &Arc<Hooks>, value: &dyn Fn() -> Counted) {
    let step = |f: &mut dyn FnMut()| {
        let _may = panics(f);
    };
    let clock = ManualClock::new();
    clock.enter(|| {
        for way in 0..8 {
            let token = CancelToken::new();
            // A receive and a send that park, see another waker, and end by `way`.
            let (mut receive, mut send) = (None, None);
            step(&mut || {
                let waker = hooked(hooks);
                while rx.try_recv().is_ok() {}
                let limited = rx.clone().into_recv().timeout(Duration::from_millis(1)).cancel_on_owned(token.clone());
                let operation = receive.insert(Box::pin(limited));
                let _ = poll(operation.as_mut(), &waker);
                let _ = poll(operation.as_mut(), std::task::Waker::noop());
                let _ = poll(operation.as_mut(), &waker);
            });
            step(&mut || match way {
                0 => drop(receive.take()),
                1 => drop(tx.try_send(value())),
                2 => clock.advance(Duration::from_millis(1)),
                3 => assert!(token.cancel()),
                _ => {}
            });
            step(&mut || {
                let waker = hooked(hooks);
                while tx.try_send(value()).is_ok() {}
                let limited = tx.clone().into_send(value()).timeout(Duration::from_millis(1));
                let operation = send.insert(Box::pin(limited.cancel_on_owned(token.clone())));
                let _ = poll(operation.as_mut(), &waker);
                let _ = poll(operation.as_mut(), std::task::Waker::noop());
                let _ = poll(operation.as_mut(), &waker);
            });
            step(&mut || match way {
                4 => drop(send.take()),
                5 => drop(rx.try_recv()),
                6 => clock.advance(Duration::from_millis(1)),
                7 => assert!(token.cancel()),
                _ => {}
            });
            step(&mut || drop(receive.take()));
            step(&mut || drop(send.take()));
        }
        assert_eq!(clock.armed(), 0);
    });
}

fn closes_with(tx: Sender<Counted>, rx: Receiver<Counted>, hooks: &Arc<Hooks>, value: &dyn Fn() -> Counted) {
    while tx.try_send(value()).is_ok() {}
    let mut sends: Vec<_> = (0..3).map(|_| Box::pin(tx.clone().into_send(value()))).collect();
    let (woken, last) = Woken::new();
    for send in &mut sends {
        let _may = panics(|| drop(send.look_with(&hooked(hooks))));
    }
    let mut behind = Box::pin(tx.clone().into_send(value()));
    let parked = behind.look_with(&last).is_pending();
    rx.close();
    assert_eq!(woken.count(), usize::from(parked), "the last is told, whatever the others' wakers do");
    drop((behind, sends, tx, rx));
}

/// G5, CASES 28, 30: a waker panics in its wake, clone or drop: the operation of whoever runs it completes normally, every
/// other task is woken, no value is lost, no waker leaked or dropped twice.
#[test]
fn a_panicking_waker_harms_nobody() {
    for function in FUNCTIONS {
        let ledger = Ledger::default();
        let hooks = in_one(function, quiet_panic);
        let (tx, rx) = bounded(2);
        every_use_of_a_waker(&tx, &rx, &hooks, &|| ledger.value(0));
        assert!(!rx.is_closed());
        closes_with(tx, rx, &hooks, &|| ledger.value(0));
        ledger.settled();
        assert_eq!(hooks.alive(), 0, "{function}: wakers are counted before the hook panics");
    }
}

/// G1, G5, CASE 30: of many parked operations the first one's waker panics; each send that woke one has succeeded.
#[test]
fn a_panicking_wake_does_not_fail_the_send() {
    let hooks = in_one("wake", quiet_panic);
    let (tx, rx) = bounded(1);
    let (mut first, mut second) = (Box::pin(rx.recv()), Box::pin(rx.recv()));
    first.parks_with(&hooked(&hooks));
    second.parks_with(&hooked(&hooks));
    let mut send = Box::pin(tx.send(1));
    assert_eq!(send.ends(), Ok(()));
    assert_eq!(tx.try_send(2), Ok(()));
    assert_eq!((first.ends(), second.ends()), (Ok(1), Ok(2)));
    tx.try_send(3).unwrap();
    let mut parked = Box::pin(tx.send(4));
    parked.parks_with(&hooked(&hooks));
    assert_eq!((rx.try_recv(), rx.recv().wait()), (Ok(3), Ok(4)));
    assert_eq!((parked.ends(), hooks.wakes(), hooks.alive()), (Ok(()), 3, 0));
}

/// G5: a waker whose clone panics leaves its operation unparked, with its value; the next poll goes on.
#[test]
fn a_failed_clone_is_as_if_never_polled() {
    let hooks = in_one("clone", quiet_panic);
    let (tx, rx) = bounded(1);
    let mut receive = Box::pin(rx.recv());
    let waker = hooked(&hooks);
    assert!(panics(|| assert!(poll(receive.as_mut(), &waker).is_ready())));
    tx.try_send(1).unwrap();
    assert_eq!(tx.len(), 1, "it had not parked");
    let mut send = Box::pin(tx.send(2));
    assert!(panics(|| assert!(poll(send.as_mut(), &waker).is_ready())));
    assert_eq!(receive.ends(), Ok(1));
    assert_eq!(send.ends(), Ok(()));
    assert_eq!(rx.try_recv(), Ok(2));
}

/// G5, CASE 28: a waker uses the channel in its wake, clone or drop: sends, receives, parks and drops an operation, asks,
/// and at last closes. Nothing deadlocks, nothing is lost.
#[test]
fn a_reentrant_waker_is_safe() {
    for function in FUNCTIONS {
        for closing in [false, true] {
            let ledger = Ledger::default();
            let (tx, rx) = bounded(2);
            let (inner_tx, inner_rx, inner_ledger) = (tx.clone(), rx.clone(), ledger.clone());
            let hooks = in_one(function, move || {
                let mut receive = Box::pin(inner_rx.recv());
                let received = receive.look();
                let _ = inner_tx.try_send(inner_ledger.value(1));
                let mut send = Box::pin(inner_tx.send(inner_ledger.value(2)));
                let _ = send.look();
                let _ = (inner_tx.len(), inner_rx.is_empty(), format!("{inner_rx:?}"));
                drop((receive, received, send, inner_rx.try_recv()));
                if closing {
                    inner_tx.close();
                }
            });
            every_use_of_a_waker(&tx, &rx, &hooks, &|| ledger.value(0));
            closes_with(tx, rx, &hooks, &|| ledger.value(0));
            assert_eq!(hooks.alive(), 0, "{function}");
            // The hook's own halves.
            drop(hooks);
            ledger.settled();
        }
    }
}
