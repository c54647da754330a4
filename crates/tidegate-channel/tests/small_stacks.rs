//! G10: whoever ends a channel needs no stack for its payloads: the last half may go on a thread that never saw one.
#![cfg(all(not(loom), not(miri)))]

use std::pin::Pin;
use std::thread;

use tidegate_channel::{bounded, unbounded, Parked, Receiver, Sender};
use tidegate_wait::op::poll_once;

/// Half of a thread's usual stack.
const STACK: usize = 1 << 20;

type Huge = [u8; 4 << 20];

/// On a thread whose stack a single value does not fit on.
fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(STACK).spawn(f).unwrap().join().unwrap();
}

/// On one for many of them: unoptimized code copies a value several times.
fn on_a_large_stack<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    thread::Builder::new().stack_size(256 << 20).spawn(f).unwrap().join().unwrap()
}

/// A channel of that capacity with one value in it, if it has room.
fn channel(capacity: usize) -> (Sender<Huge>, Receiver<Huge>) {
    on_a_large_stack(move || {
        let (tx, rx) = bounded(capacity);
        let _sent = tx.try_send([1; 4 << 20]).is_ok();
        (tx, rx)
    })
}

#[test]
fn the_last_halves_go_on_a_small_stack() {
    for capacity in [0, 1, 2] {
        let (tx, rx) = channel(capacity);
        on_a_small_stack(move || {
            drop(rx);
            assert_eq!(tx.len(), 0);
        });
        let (tx, rx) = channel(capacity);
        on_a_small_stack(move || {
            drop(tx);
            drop(rx);
        });
    }
}

#[test]
fn a_weak_half_goes_last_on_a_small_stack() {
    let (tx, rx) = channel(1);
    let weak = tx.downgrade();
    drop((tx, rx));
    on_a_small_stack(move || drop(weak));
}

#[test]
fn a_close_admits_on_a_small_stack() {
    for capacity in [0, 1] {
        let (tx, rx) = channel(capacity);
        let sender = tx.clone();
        let send = on_a_large_stack(move || {
            let mut send = Box::pin(sender.into_send([2; 4 << 20]));
            assert!(poll_once(Pin::as_mut(&mut send)).is_pending());
            send
        });
        on_a_small_stack(move || {
            assert!(tx.close_with(Parked::Admit));
            assert_eq!(tx.len(), capacity + 1);
            drop(rx);
            assert_eq!(tx.len(), 0);
        });
        drop(send);
    }
}

#[test]
fn a_delivery_comes_back_on_a_small_stack() {
    let (tx, rx) = channel(0);
    let owner = rx.clone();
    let receive = on_a_large_stack(move || {
        let mut receive = Box::pin(owner.into_recv());
        assert!(poll_once(Pin::as_mut(&mut receive)).is_pending());
        let _sent = tx.try_send([3; 4 << 20]).is_ok();
        receive
    });
    on_a_small_stack(move || {
        drop(receive);
        assert_eq!(rx.len(), 1);
        drop(rx);
    });
}

#[test]
fn an_unbounded_channel_goes_on_a_small_stack() {
    let (tx, rx) = on_a_large_stack(|| {
        let (tx, rx) = unbounded::<Huge>();
        (0..3).for_each(|n| assert!(tx.try_send([n; 4 << 20]).is_ok()));
        (tx, rx)
    });
    on_a_small_stack(move || {
        drop(rx);
        assert_eq!(tx.len(), 0);
    });
}
