//! What a half reports is true of one moment: values that move from one place to another are counted once.
#![cfg(loom)]

use std::future::Future;
use std::task::{Context, Waker};

use tidegate_channel::{bounded, RecvError};

fn model(f: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(f);
}

fn parks<F: Future>(future: &mut std::pin::Pin<Box<F>>) {
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

/// G7: one value is returned, a second is sent, the first is received: at no moment is nothing buffered.
#[test]
fn never_empty_is_not_seen_empty() {
    model(|| {
        let (tx, rx) = bounded::<u8>(2);
        let mut receive = Box::pin(rx.recv());
        parks(&mut receive);
        tx.try_send(1).unwrap();
        drop(receive);
        let (other_tx, other_rx) = (tx.clone(), rx.clone());
        let other = loom::thread::spawn(move || {
            other_tx.try_send(2).unwrap();
            assert_eq!(other_rx.try_recv(), Ok(1));
        });
        assert!(!rx.is_empty());
        other.join().unwrap();
    });
}

/// G7: one value is received before another comes back: never are there two.
#[test]
fn len_is_of_one_moment() {
    model(|| {
        let (tx, rx) = bounded::<u8>(2);
        let mut receive = Box::pin(rx.clone().into_recv());
        parks(&mut receive);
        tx.try_send(1).unwrap();
        tx.try_send(2).unwrap();
        tx.close();
        let other_rx = rx.clone();
        let other = loom::thread::spawn(move || {
            assert_eq!(other_rx.try_recv(), Ok(2));
            drop(receive);
        });
        assert!(rx.len() <= 1);
        other.join().unwrap();
    });
}

/// G7, capacity 0: beside a close, a parked send is received or refused; there is no moment at which nothing is there and
/// the channel is open.
#[test]
fn a_close_beside_a_parked_send_is_never_empty() {
    model(|| {
        let (tx, rx) = bounded(0);
        let mut send = Box::pin(tx.clone().into_send(1));
        parks(&mut send);
        let other = loom::thread::spawn(move || tx.close());
        assert_ne!(rx.try_recv(), Err(RecvError::Empty));
        other.join().unwrap();
        drop(send);
    });
}
