//! Whether each peer is what its traits say.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

struct Check;

impl BoundedVisitor for Check {
    fn visit<P: Bounded>(&mut self) {
        for capacity in [1, 2, 3, 64, 100] {
            holds_its_capacity::<P>(capacity);
        }
        ends_when_a_side_goes::<P>(|| P::bounded(1));
    }
}

/// No more and no less, in order: none rounds it.
fn holds_its_capacity<P: Bounded>(capacity: usize) {
    let (mut tx, mut rx) = P::bounded::<u64>(capacity);
    assert_eq!(P::try_recv(&mut rx), None, "{} is empty at first", P::NAME);
    for number in 0..capacity as u64 {
        assert!(P::try_send(&mut tx, number), "{}, {number} of {capacity}", P::NAME);
    }
    assert!(!P::try_send(&mut tx, 0), "{} holds more than {capacity}", P::NAME);
    for number in 0..capacity as u64 {
        assert_eq!(P::try_recv(&mut rx), Some(number), "{}, {number} of {capacity}", P::NAME);
    }
    assert_eq!(P::try_recv(&mut rx), None, "{} is empty at last", P::NAME);
}

fn ends_when_a_side_goes<P: TryLine>(make: impl Fn() -> (P::Sender<u64>, P::Receiver<u64>)) {
    let (mut tx, mut rx) = make();
    assert!(poll_once(P::send(&mut tx, 7)).map(Sent::outcome) == Poll::Ready(Outcome::Sent), "{}", P::NAME);
    drop(tx);
    assert_eq!(poll_once(P::recv(&mut rx)).map(Received::value), Poll::Ready(Some(7)), "{} keeps its values", P::NAME);
    assert_eq!(poll_once(P::recv(&mut rx)).map(Received::value), Poll::Ready(None), "{} is closed", P::NAME);
    let (mut tx, rx) = make();
    drop(rx);
    let end = poll_once(P::send(&mut tx, 7)).map(Sent::outcome);
    assert!(
        matches!(end, Poll::Ready(Outcome::Returned(7) | Outcome::Lost)),
        "{} without a receiver: {end:?}",
        P::NAME
    );
    assert!(!P::try_send(&mut tx, 7), "{} without a receiver", P::NAME);
}

#[test]
fn bounded_channels_hold_their_capacity_and_end() {
    each_bounded(&mut Check);
}

impl RendezvousVisitor for Check {
    fn visit<P: Rendezvous>(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        let (mut tx, mut rx) = P::rendezvous::<u64>();
        let mut send = Box::pin(P::send(&mut tx, 1));
        assert!(send.as_mut().poll(&mut cx).is_pending(), "{} holds a value", P::NAME);
        assert_eq!(poll_once(P::recv(&mut rx)).map(Received::value), Poll::Ready(Some(1)), "{}", P::NAME);
        assert_eq!(send.as_mut().poll(&mut cx).map(Sent::outcome), Poll::Ready(Outcome::Sent), "{}", P::NAME);
        drop(send);
        let mut receive = Box::pin(P::recv(&mut rx));
        assert!(receive.as_mut().poll(&mut cx).is_pending(), "{}", P::NAME);
        // The send may end now or when the receive has its value.
        let mut send = Box::pin(P::send(&mut tx, 2));
        let sent = send.as_mut().poll(&mut cx).map(Sent::outcome);
        assert_eq!(receive.as_mut().poll(&mut cx).map(Received::value), Poll::Ready(Some(2)), "{}", P::NAME);
        if sent.is_pending() {
            assert_eq!(send.as_mut().poll(&mut cx).map(Sent::outcome), Poll::Ready(Outcome::Sent), "{}", P::NAME);
        }
    }
}

#[test]
fn a_rendezvous_needs_both_sides() {
    each_rendezvous(&mut Check);
}

impl UnboundedVisitor for Check {
    fn visit<P: Unbounded>(&mut self) {
        let (mut tx, mut rx) = P::unbounded::<u64>();
        assert_eq!(P::try_recv(&mut rx), None, "{} is empty at first", P::NAME);
        // More than any block that a queue is made of, and again once it is empty.
        for round in 0..2 {
            for number in 0..1_000 {
                assert!(P::try_send(&mut tx, number), "{}, {number} of round {round}", P::NAME);
                let sent = poll_once(P::send(&mut tx, number)).map(Sent::outcome);
                assert_eq!(sent, Poll::Ready(Outcome::Sent), "{}, {number} of round {round}", P::NAME);
            }
            for number in 0..1_000 {
                assert_eq!(P::try_recv(&mut rx), Some(number), "{}, round {round}", P::NAME);
                let received = poll_once(P::recv(&mut rx)).map(Received::value);
                assert_eq!(received, Poll::Ready(Some(number)), "{}, round {round}", P::NAME);
            }
            assert_eq!(P::try_recv(&mut rx), None, "{} is empty at last", P::NAME);
        }
        ends_when_a_side_goes::<P>(P::unbounded);
        a_second_half_is_of_the_same_channel::<P>();
    }
}

/// And a receive that waits gets what comes.
fn a_second_half_is_of_the_same_channel<P: Unbounded>() {
    let mut cx = Context::from_waker(Waker::noop());
    let (tx, rx) = P::unbounded::<u64>();
    let mut tx = P::another_sender(&tx).unwrap_or(tx);
    let mut rx = P::another(&rx).unwrap_or(rx);
    let mut receive = Box::pin(P::recv(&mut rx));
    assert!(receive.as_mut().poll(&mut cx).is_pending(), "{}", P::NAME);
    assert_eq!(poll_once(P::send(&mut tx, 1)).map(Sent::outcome), Poll::Ready(Outcome::Sent), "{}", P::NAME);
    assert_eq!(receive.as_mut().poll(&mut cx).map(Received::value), Poll::Ready(Some(1)), "{}", P::NAME);
}

#[test]
fn unbounded_channels_take_all_in_order_and_end() {
    each_unbounded(&mut Check);
}

impl BlockingUnboundedVisitor for Check {
    fn visit<P: BlockingUnbounded>(&mut self) {
        let (mut tx, mut rx) = P::unbounded::<u64>();
        let sender = std::thread::spawn(move || (0..1_000).all(|number| P::send(&mut tx, number)));
        for number in 0..1_000 {
            assert_eq!(P::recv(&mut rx), Some(number), "{}", P::NAME);
        }
        assert!(sender.join().unwrap(), "{}", P::NAME);
        assert_eq!(P::recv(&mut rx), None, "{} is closed", P::NAME);
        let (mut tx, rx) = P::unbounded::<u64>();
        drop(rx);
        assert!(!P::send(&mut tx, 0), "{} without a receiver", P::NAME);
    }
}

#[test]
fn threads_get_everything_in_order_without_a_bound() {
    each_blocking_unbounded(&mut Check);
}

impl BlockingVisitor for Check {
    fn visit<P: BlockingPeer>(&mut self) {
        for capacity in [0, 1, 64] {
            if capacity == 0 && !P::HAS_RENDEZVOUS {
                continue;
            }
            let (mut tx, mut rx) = P::bounded::<u64>(capacity);
            let sender = std::thread::spawn(move || (0..200).all(|number| P::send(&mut tx, number)));
            for number in 0..200 {
                assert_eq!(P::recv(&mut rx), Some(number), "{}, capacity {capacity}", P::NAME);
            }
            assert!(sender.join().unwrap(), "{}, capacity {capacity}", P::NAME);
            assert_eq!(P::recv(&mut rx), None, "{} is closed", P::NAME);
        }
    }
}

#[test]
fn threads_get_everything_in_order() {
    each_blocking(&mut Check);
}

impl Visitor for Check {
    fn visit<P: Peer>(&mut self) {
        let (tx, mut rx) = <P as Peer>::bounded::<u64>(1);
        assert!(<P as Peer>::try_send(&tx, 0));
        let runtime = ::tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let limit = Duration::from_millis(1);
        let token = <P as Peer>::Token::new();
        runtime.block_on(async {
            let timed = <P as Peer>::send_within(&tx, 1, limit).await.outcome();
            assert!(matches!(timed, Outcome::Returned(1) | Outcome::Lost), "{}: {timed:?}", <P as Peer>::NAME);
            token.cancel();
            let cancelled = <P as Peer>::send_until(&tx, 2, &token).await.outcome();
            assert!(matches!(cancelled, Outcome::Returned(2) | Outcome::Lost), "{}: {cancelled:?}", <P as Peer>::NAME);
        });
        assert_eq!(<P as Peer>::try_recv(&mut rx), Some(0), "{}", <P as Peer>::NAME);
        assert_eq!(<P as Peer>::try_recv(&mut rx), None, "{}", <P as Peer>::NAME);
    }
}

#[test]
fn a_limited_send_on_a_full_channel_ends_without_being_sent() {
    each(&mut Check);
    each_own_timeout(&mut Check);
    each_reserving(&mut Check);
}
