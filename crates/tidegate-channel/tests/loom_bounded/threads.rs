//! Whole threads that block: the operation, the parker and the channel together.

use std::sync::{Arc, Mutex};

use loom::thread;
use tidegate_channel::{bounded, Operation, RecvError};

use crate::model::on_a_large_stack;
use crate::support::{hooked, Hooks, Look};

fn check(f: impl Fn() + Send + Sync + Copy + 'static) {
    let bound = loom::model::Builder::new().preemption_bound.unwrap_or(2);
    check_within(bound, f);
}

fn check_within(bound: usize, f: impl Fn() + Send + Sync + Copy + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound);
    builder.max_branches = 20_000;
    builder.check(move || on_a_large_stack(f).join().unwrap());
}

/// CASE 6, G7: send, then the last sender goes, between the receiver's two looks: always the value, then the end.
#[test]
fn a_value_then_the_end() {
    check(|| {
        let (tx, rx) = bounded(1);
        let sender = thread::spawn(move || tx.send(1).wait().unwrap());
        assert_eq!(rx.recv().wait(), Ok(1));
        assert_eq!(rx.recv().wait(), Err(RecvError::Closed));
        sender.join().unwrap();
    });
}

/// G1, G2: a blocked sender and a blocked receiver take turns at capacity 1.
#[test]
fn both_sides_block() {
    check(|| {
        let (tx, rx) = bounded(1);
        let sender = thread::spawn(move || (0..3).for_each(|n| tx.send(n).wait().unwrap()));
        (0..3).for_each(|n| assert_eq!(rx.recv().wait(), Ok(n)));
        sender.join().unwrap();
    });
}

/// CASE 8, G2: never "empty" after a completed send, nor "full" after a completed receive.
#[test]
fn try_twins_see_what_was_completed() {
    check(|| {
        let (tx, rx) = bounded(1);
        let (tx2, rx2) = (tx.clone(), rx.clone());
        let other = thread::spawn(move || {
            tx2.try_send(1).unwrap();
            rx2.try_recv().map(|value| assert_eq!(value, 1)).is_ok()
        });
        let here = rx.try_recv().is_ok();
        let there = other.join().unwrap();
        assert!(here ^ there, "exactly one of them took it");
        assert_eq!((tx.try_send(2), rx.try_recv()), (Ok(()), Ok(2)));
    });
}

/// G7, I4: a send that stands in the private list of a close under way (the 33rd: one hold settles 32) is dropped beside
/// a fast receive: it must not touch the head, which is not frozen any more.
#[test]
fn a_spliced_send_leaves_beside_a_fast_receive() {
    // Minutes at 2.
    check_within(1, || {
        let (tx, rx) = bounded(1);
        tx.try_send(0).unwrap();
        let last = Arc::new(Mutex::new(None));
        let inside = last.clone();
        // Runs between the first hold of the close and the second.
        let drop_last = Box::new(move || drop(inside.lock().unwrap().take()));
        let hooks = Arc::new(Hooks { wake: Some(drop_last), ..Hooks::default() });
        hooks.activate(true);
        let mut parked: Vec<_> = (1..33).map(|n| Box::pin(tx.clone().into_send(n))).collect();
        parked[0].parks_with(&hooked(&hooks));
        parked[1..].iter_mut().for_each(Look::parks);
        let mut spliced = Box::pin(tx.clone().into_send(33));
        spliced.parks();
        *last.lock().unwrap() = Some(spliced);
        let receiver = rx.clone();
        let other = thread::spawn(move || receiver.try_recv());
        assert!(rx.close());
        assert!(last.lock().unwrap().is_none());
        assert_eq!(other.join().unwrap(), Ok(0));
        // If the receive was first, it let the first send in.
        let sent = usize::from(rx.try_recv() == Ok(1));
        assert_eq!(rx.try_recv(), Err(RecvError::Closed));
        assert_eq!(parked.iter_mut().filter_map(|send| send.ends().ok()).count(), sent);
    });
}

/// I7: head never passes tail, as `len` sees it, while a slow send publishes (the ring was full at its first look).
#[test]
fn head_never_passes_tail() {
    check(|| {
        let (tx, rx) = bounded(1);
        tx.try_send(0).unwrap();
        let receiver = rx.clone();
        let other = thread::spawn(move || {
            assert_eq!(receiver.try_recv(), Ok(0));
            let second = receiver.try_recv();
            assert!(receiver.len() <= 1);
            second.is_ok()
        });
        let mut send = Box::pin(tx.send(1));
        let sent = send.look();
        let taken = other.join().unwrap();
        assert!(sent.is_ready() || send.look().is_ready());
        assert_eq!(rx.try_recv().is_ok(), !taken);
    });
}
