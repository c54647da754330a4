//! Values: each ends in one place, whatever it is made of.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tidegate_channel::{oneshot, Operation};

use crate::support::{panics, quiet_panic, Ledger, Look};

/// G1, CASE 1: a value that was delivered to a receive which is dropped unpolled stays with the receiver.
#[test]
fn a_dropped_delivery_stays_receivable() {
    let ledger = Ledger::default();
    for way in 0..3 {
        let (tx, mut rx) = oneshot::channel();
        let mut receive = Box::pin(rx.recv());
        receive.parks();
        assert!(tx.send(ledger.value(way)).is_ok());
        drop(receive);
        assert_eq!(ledger.dropped(), way);
        let value = match way {
            0 => rx.try_recv().unwrap(),
            1 => rx.recv().wait().unwrap(),
            _ => rx.into_recv().wait().unwrap(),
        };
        assert!(value == way);
    }
    ledger.settled();
}

/// G1, G7, CASE 18: if the receiver goes, the value goes at once, whether or not a receive was told of it.
#[test]
fn a_value_goes_with_its_receiver() {
    let ledger = Ledger::default();
    let (tx, rx) = oneshot::channel();
    assert!(tx.send(ledger.value(0)).is_ok());
    drop(rx);
    assert_eq!(ledger.dropped(), 1);

    let (tx, rx) = oneshot::channel();
    let mut receive = Box::pin(rx.into_recv());
    receive.parks();
    assert!(tx.send(ledger.value(1)).is_ok());
    drop(receive);
    assert_eq!(ledger.dropped(), 2);

    let (tx, rx) = oneshot::channel();
    assert!(tx.send(ledger.value(2)).is_ok());
    drop(rx.into_recv());
    assert_eq!(ledger.dropped(), 3);
    ledger.settled();
}

/// G1: a refused value is the sender's, alive; a received one is the receiver's.
#[test]
fn one_owner_at_a_time() {
    let ledger = Ledger::default();
    let (tx, rx) = oneshot::channel();
    drop(rx);
    let refused = tx.send(ledger.value(1)).unwrap_err();
    assert_eq!(ledger.dropped(), 0);
    assert!(refused.into_inner() == 1);
    assert_eq!(ledger.dropped(), 1);
    let (tx, mut rx) = oneshot::channel();
    assert!(tx.send(ledger.value(2)).is_ok());
    let received = rx.try_recv().unwrap();
    drop(rx);
    assert_eq!(ledger.dropped(), 1);
    drop(received);
    ledger.settled();
}

struct Loud(Option<Box<dyn FnOnce() + Send>>);

impl Drop for Loud {
    fn drop(&mut self) {
        if let Some(hook) = self.0.take() {
            hook();
        }
    }
}

/// G5, G7: a destructor that panics is contained where the channel drops the value; the channel is freed all the same.
#[test]
fn a_panicking_destructor_is_contained() {
    let dropped = Arc::new(Mutex::new(0));
    let loud = || {
        let dropped = dropped.clone();
        Loud(Some(Box::new(move || {
            *dropped.lock().unwrap() += 1;
            quiet_panic();
        })))
    };
    let (tx, rx) = oneshot::channel();
    assert!(tx.send(loud()).is_ok());
    drop(rx);
    assert_eq!(*dropped.lock().unwrap(), 1);

    let (tx, rx) = oneshot::channel();
    let mut receive = Box::pin(rx.into_recv());
    receive.parks();
    assert!(tx.send(loud()).is_ok());
    drop(receive);
    assert_eq!(*dropped.lock().unwrap(), 2);

    let (tx, rx) = oneshot::channel();
    drop(rx);
    let refused = tx.send(loud()).unwrap_err();
    assert!(panics(|| drop(refused)), "it is the caller's own");
    assert_eq!(*dropped.lock().unwrap(), 3);
}

/// G5, CASE 29: a destructor that uses channels, and one whose value has both halves of others in it, is run outside
/// every lock.
#[test]
fn a_destructor_uses_channels() {
    let (inner_tx, mut inner_rx) = oneshot::channel();
    let (tx, rx) = oneshot::channel();
    assert!(tx.send(Loud(Some(Box::new(move || inner_tx.send(5).unwrap())))).is_ok());
    let mut waiting = Box::pin(inner_rx.recv());
    waiting.parks();
    drop(rx);
    assert_eq!(waiting.ends(), Ok(5));

    // A reply channel inside a request that nobody took (CASE 18).
    let (request, requests) = oneshot::channel();
    let (reply, mut answer) = oneshot::channel::<u8>();
    request.send(reply).unwrap();
    let mut waiting = Box::pin(answer.recv());
    waiting.parks();
    drop(requests);
    assert!(waiting.ends().unwrap_err().is_closed());
}

/// For debug builds, which copy large values from place to place.
fn on_a_large_stack<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    std::thread::Builder::new().stack_size(64 << 20).spawn(f).unwrap()
}

fn round_trip<T: Clone + PartialEq + std::fmt::Debug + Send + 'static>(value: T) {
    let (tx, mut rx) = oneshot::channel();
    assert!(tx.send(value.clone()).is_ok());
    assert!(rx.try_recv().unwrap() == value);

    let (tx, mut rx) = oneshot::channel();
    let mut receive = Box::pin(rx.recv());
    receive.parks();
    assert!(tx.send(value.clone()).is_ok());
    assert!(receive.ends().unwrap() == value);

    let (tx, rx) = oneshot::channel();
    drop(rx);
    assert!(tx.send(value.clone()).unwrap_err().into_inner() == value);

    let (tx, rx) = oneshot::channel();
    assert!(tx.send(value.clone()).is_ok());
    drop(rx);

    let (tx, rx) = oneshot::channel();
    let sender = on_a_large_stack({
        let value = value.clone();
        move || tx.send(value).is_ok()
    });
    assert!(rx.into_recv().wait().unwrap() == value);
    assert!(sender.join().unwrap());
}

#[derive(Clone, Debug, PartialEq)]
#[repr(align(4096))]
struct Page(u8);

#[derive(Clone, Debug, PartialEq)]
#[repr(align(64))]
struct AlignedNothing;

/// G10, CASE 44: nothing, almost nothing, over-aligned, 1 MiB.
#[test]
fn payloads_of_every_shape() {
    round_trip(());
    round_trip(AlignedNothing);
    round_trip([7_u8; 3]);
    round_trip([7_u8; 13]);
    round_trip(String::from("text"));
    round_trip(Page(7));
    const LARGE: usize = if cfg!(miri) { 1 << 14 } else { 1 << 20 };
    on_a_large_stack(|| round_trip([7_u8; LARGE])).join().unwrap();
}

/// A channel may live as long as what its values borrow, and no longer: the value is gone with the receiver.
#[test]
fn borrowed_payloads() {
    let text = String::from("text");
    let (tx, rx) = oneshot::channel();
    tx.send(text.as_str()).unwrap();
    assert_eq!(rx.into_recv().wait(), Ok("text"));
}
