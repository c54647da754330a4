//! Wakers that panic, and wakers that use the channel, in each of their functions.

use std::sync::Arc;
use std::time::Duration;

use tidegate_channel::{Operation, Parked, Receiver, Sender};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;

use crate::flavors::{each_flavor, Flavor};
use crate::support::{hooked, panics, poll, quiet_panic, Counted, Hooks, Ledger, Look, Woken};

/// More values than a ring has slots; without a limit as good as any number.
const MORE: usize = if cfg!(miri) { 3 } else { 66 };

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
                (0..MORE).for_each(|_| drop(tx.try_send(value())));
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

/// Closes over parked operations of every kind, some of whose wakers are `hooks`.
fn closes(tx: Sender<Counted>, rx: Receiver<Counted>, mode: Parked, hooks: &Arc<Hooks>, value: &dyn Fn() -> Counted) {
    (0..MORE).for_each(|_| drop(tx.try_send(value())));
    let parked = if cfg!(miri) { 3 } else { 35 };
    let mut sends: Vec<_> = (0..parked).map(|_| Box::pin(tx.clone().into_send(value()))).collect();
    let (woken, last) = Woken::new();
    for send in &mut sends {
        let _may = panics(|| drop(send.look_with(&hooked(hooks))));
    }
    let mut closed = Box::pin(tx.closed());
    let _may = panics(|| assert!(closed.look_with(&hooked(hooks)).is_pending()));
    let (mut behind, mut told) = (Box::pin(tx.clone().into_send(value())), Box::pin(rx.closed()));
    let waiting = usize::from(behind.look_with(&last).is_pending()) + usize::from(told.look_with(&last).is_pending());
    rx.close_with(mode);
    assert_eq!(woken.count(), waiting, "the last are told, whatever the others' wakers do");
    drop((behind, sends, told, closed));
    drop((tx, rx));
}

fn each_mode(flavor: &Flavor, test: impl Fn(&Flavor, Parked)) {
    [Parked::GiveBack, Parked::Admit].into_iter().for_each(|mode| test(flavor, mode));
}

/// G5, CASES 28, 30: a waker panics in its wake, clone or drop: the operation of whoever runs it completes normally, every
/// other task is woken, no value is lost, no waker leaked or dropped twice.
#[test]
fn a_panicking_waker_harms_nobody() {
    each_flavor(|flavor| {
        each_mode(flavor, |flavor, mode| {
            for function in FUNCTIONS {
                let ledger = Ledger::default();
                let hooks = in_one(function, quiet_panic);
                let (tx, rx) = flavor.make();
                every_use_of_a_waker(&tx, &rx, &hooks, &|| ledger.value(0));
                assert!(!rx.is_closed());
                closes(tx, rx, mode, &hooks, &|| ledger.value(0));
                ledger.settled();
                assert_eq!(hooks.alive(), 0, "{function}: wakers are counted before the hook panics");
            }
        });
    });
}

/// G1, G5, CASE 30: of many parked operations the first one's waker panics; each send that woke one has succeeded.
#[test]
fn a_panicking_wake_does_not_fail_the_send() {
    each_flavor(|flavor| {
        let hooks = in_one("wake", quiet_panic);
        let (tx, rx) = flavor.make();
        let (mut first, mut second) = (Box::pin(rx.recv()), Box::pin(rx.recv()));
        first.parks_with(&hooked(&hooks));
        second.parks_with(&hooked(&hooks));
        let mut send = Box::pin(tx.send(1));
        assert_eq!(send.ends(), Ok(()));
        assert_eq!(tx.try_send(2), Ok(()));
        assert_eq!((first.ends(), second.ends()), (Ok(1), Ok(2)));
        if !flavor.sends_wait() {
            return;
        }
        flavor.fill(&tx, |n| n);
        let (mut parked, mut other) = (Box::pin(tx.send(100)), Box::pin(tx.send(101)));
        parked.parks_with(&hooked(&hooks));
        other.parks_with(&hooked(&hooks));
        assert!(rx.try_recv().is_ok() && rx.recv().wait().is_ok());
        assert_eq!((parked.ends(), other.ends(), hooks.wakes(), hooks.alive()), (Ok(()), Ok(()), 4, 0));
    });
}

/// G5: a waker whose clone panics leaves its operation unparked, with its value; the next poll goes on.
#[test]
fn a_failed_clone_is_as_if_never_polled() {
    each_flavor(|flavor| {
        let hooks = in_one("clone", quiet_panic);
        let (tx, rx) = flavor.make();
        let mut receive = Box::pin(rx.recv());
        let waker = hooked(&hooks);
        assert!(panics(|| assert!(poll(receive.as_mut(), &waker).is_ready())));
        assert_eq!(rx.parked_receivers(), 0);
        flavor.hold(&tx, &rx, 0);
        (1..flavor.capacity).for_each(|n| tx.try_send(n).unwrap());
        if !flavor.sends_wait() {
            return;
        }
        let mut send = Box::pin(tx.send(100));
        assert!(panics(|| assert!(poll(send.as_mut(), &waker).is_ready())));
        assert_eq!(tx.parked_senders(), 0);
        let mut closed = Box::pin(tx.closed());
        assert!(panics(|| assert!(poll(closed.as_mut(), &waker).is_ready())));
        assert_eq!(receive.ends(), Ok(0));
        let mut receive = Box::pin(rx.recv());
        if flavor.capacity == 0 {
            receive.parks();
        }
        assert_eq!(send.ends(), Ok(()));
        assert!(receive.ends().is_ok());
        tx.close();
        closed.ends();
    });
}

/// G5, CASE 28: a waker uses the channel in its wake, clone or drop: sends, receives, parks and drops an operation, asks,
/// and at last closes, in either mode. Nothing deadlocks, nothing is lost.
#[test]
fn a_reentrant_waker_is_safe() {
    each_flavor(|flavor| {
        if cfg!(miri) && flavor.capacity > 1 {
            return flavor.skip("too slow under Miri, and nothing that one slot does not show");
        }
        each_mode(flavor, |flavor, mode| {
            if cfg!(miri) && mode == Parked::GiveBack {
                return;
            }
            for (function, closing) in FUNCTIONS.into_iter().flat_map(|function| [(function, false), (function, true)])
            {
                let ledger = Ledger::default();
                let (tx, rx) = flavor.make();
                let (inner_tx, inner_rx, inner_ledger) = (tx.clone(), rx.clone(), ledger.clone());
                let hooks = in_one(function, move || {
                    uses_everything(&inner_tx, &inner_rx, &inner_ledger);
                    if closing {
                        inner_tx.close_with(mode);
                    }
                });
                every_use_of_a_waker(&tx, &rx, &hooks, &|| ledger.value(0));
                closes(tx, rx, mode, &hooks, &|| ledger.value(0));
                assert_eq!(hooks.alive(), 0, "{function}");
                // The hook's own halves.
                drop(hooks);
                ledger.settled();
            }
        });
    });
}

fn uses_everything(tx: &Sender<Counted>, rx: &Receiver<Counted>, ledger: &Ledger) {
    let mut receive = Box::pin(rx.recv());
    let received = receive.look();
    let _ = tx.try_send(ledger.value(1));
    let (mut send, mut built) = (Box::pin(tx.send(ledger.value(2))), Box::pin(tx.send_with(|| ledger.value(3))));
    let (mut closed, halves) = (Box::pin(tx.closed()), (tx.clone(), rx.clone()));
    let _ = (send.look(), built.look(), closed.look());
    let _ = (tx.len(), rx.is_empty(), tx.parked_senders(), format!("{rx:?}"));
    let (weak, weak_rx) = (tx.downgrade(), rx.downgrade());
    drop((receive, received, send, built, closed, rx.try_recv(), halves, weak.upgrade(), weak_rx.upgrade()));
}

/// G5: a waker drops the last half of either side, in its wake: the channel closes under the operation that woke it, and
/// that operation has its result all the same.
#[test]
fn a_waker_drops_the_last_half() {
    use std::sync::Mutex;
    each_flavor(|flavor| {
        // A send wakes a receive whose waker drops the last receiver. The receive that is parked borrows a clone.
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make();
        let mut receive = Box::pin(rx.clone().into_recv());
        let last = Mutex::new(Some(rx));
        receive.parks_with(&crate::support::on_wake(move || drop(last.lock().unwrap().take())));
        assert!(tx.try_send(ledger.value(1)).is_ok());
        assert_eq!(tx.receiver_count(), 1, "the operation's own");
        assert!(receive.ends().unwrap() == 1);
        drop(receive);
        assert!(tx.is_closed());
        if !flavor.sends_wait() {
            return;
        }
        // A receive wakes a send whose waker drops the last other sender.
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| ledger.value(n));
        let mut send = Box::pin(tx.clone().into_send(ledger.value(100)));
        let last = Mutex::new(Some(tx));
        send.parks_with(&crate::support::on_wake(move || drop(last.lock().unwrap().take())));
        assert!(rx.try_recv().is_ok() && !rx.is_closed() && send.ends().is_ok());
        drop(send);
        assert!(rx.is_closed());
        assert_eq!(rx.iter().count(), flavor.capacity);
        ledger.settled();
    });
}
