//! Payloads of every shape: without size, over-aligned, large; under zero to three limits.

use std::fmt::Debug;
use std::time::Duration;

use tidegate_channel::{bounded, bounded_from_lap, Operation, RecvError, SendError};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::RawOperation;
use tidegate_wait::timer::ManualClock;

use crate::support::Look;

const MS: Duration = Duration::from_millis(1);

#[derive(Debug, PartialEq, Clone, Copy)]
struct Nothing;

#[derive(Debug, PartialEq, Clone, Copy)]
#[repr(align(64))]
struct Line(u8);

#[derive(Debug, PartialEq, Clone, Copy)]
#[repr(align(4096))]
struct Page([u8; 5000]);

#[derive(Debug, PartialEq, Clone, Copy)]
#[repr(align(4096))]
struct EmptyPage;

/// Bytes in every place, so that one copied wrongly shows (CASE 20).
fn bytes<const N: usize>(seed: u8) -> [u8; N] {
    core::array::from_fn(|i| (i as u8).wrapping_mul(31).wrapping_add(seed))
}

/// A way for a value and for each limit: through the ring, into a parked receive, out of a parked send, back after a
/// time-out, a cancel, a close, a withdrawal, and by way of the stash.
fn goes_every_way<T: PartialEq + Debug + Copy>(make: impl Fn(u8) -> T) {
    let clock = ManualClock::new();
    clock.enter(|| {
        let token = CancelToken::new();
        every_way(&clock, &make, |operation| operation, |operation| operation, false);
        every_way(&clock, &make, |operation| operation.timeout(MS), |operation| operation.timeout(MS), true);
        every_way(
            &clock,
            &make,
            |operation| operation.timeout(MS).cancel_on(&token),
            |operation| operation.cancel_on(&token).deadline(clock.now() + MS),
            true,
        );
        every_way(
            &clock,
            &make,
            |operation| operation.timeout(MS).cancel_on_owned(token.clone()).timeout(2 * MS),
            |operation| operation.timeout(2 * MS).timeout(3 * MS).cancel_on_owned(token.child()),
            true,
        );
        let (tx, rx) = bounded(1);
        tx.try_send(make(1)).unwrap();
        let mut send = Box::pin(tx.send(make(2)).cancel_on(&token).timeout(MS));
        send.parks();
        token.cancel();
        assert_eq!(send.ends(), Err(SendError::Cancelled(make(2))));
        assert_eq!(rx.recv().cancel_on(&token).wait(), Err(RecvError::Cancelled));
    });
}

fn every_way<T, S, R>(
    clock: &ManualClock,
    make: &impl Fn(u8) -> T,
    limit_send: impl Fn(tidegate_channel::OwnedSending<T>) -> S,
    limit_receive: impl Fn(tidegate_channel::OwnedReceiving<T>) -> R,
    limited: bool,
) where
    T: PartialEq + Debug + Copy,
    S: RawOperation<Output = Result<(), SendError<T>>>,
    R: RawOperation<Output = Result<T, RecvError>>,
{
    let (tx, rx) = bounded_from_lap(2, 5).unwrap();
    let send = |n| Box::pin(limit_send(tx.clone().into_send(make(n))));
    let receive = || Box::pin(limit_receive(rx.clone().into_recv()));
    // Through the ring.
    assert_eq!((send(1).ends(), send(2).ends()), (Ok(()), Ok(())));
    // Out of a parked send.
    let mut parked = send(3);
    parked.parks();
    (1..4).for_each(|n| assert_eq!(receive().ends(), Ok(make(n))));
    assert_eq!(parked.ends(), Ok(()));
    // Into a parked receive, then by way of the stash.
    let (mut one, mut two) = (receive(), receive());
    one.parks();
    two.parks();
    (4..8).for_each(|n| assert_eq!(send(n).ends(), Ok(())));
    drop(one);
    assert_eq!((two.ends(), receive().ends()), (Ok(make(5)), Ok(make(4))));
    // Back after a limit, a close, a drop.
    let mut back = send(8);
    back.parks();
    drop(send(9));
    clock.advance(5 * MS);
    if limited {
        assert_eq!(back.ends(), Err(SendError::TimedOut(make(8))));
    }
    tx.close();
    if !limited {
        assert_eq!(back.ends(), Err(SendError::Closed(make(8))));
    }
    assert_eq!(tx.try_send(make(10)), Err(SendError::Closed(make(10))));
    assert_eq!((receive().ends(), rx.try_recv(), receive().ends()), (Ok(make(6)), Ok(make(7)), Err(RecvError::Closed)));
}

/// Large payloads stand on the stack several times in a debug build.
fn on_a_large_stack(f: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(256 << 20).spawn(f).unwrap().join().unwrap();
}

/// G10, CASES 20, 44: zero-sized payloads.
#[test]
fn without_size() {
    goes_every_way(|_| ());
    goes_every_way(|_| Nothing);
    goes_every_way(|_| EmptyPage);
}

/// G10, CASE 44: payloads smaller than a word, with a niche, of odd size.
#[test]
fn small_and_odd() {
    goes_every_way(|n| n);
    goes_every_way(|n| n % 2 == 0);
    goes_every_way(|n| std::num::NonZeroU8::new(n + 1));
    goes_every_way(char::from);
    goes_every_way(bytes::<3>);
    goes_every_way(bytes::<25>);
    goes_every_way(|n| [u128::from(n) << 100; 2]);
}

/// G10, CASE 44: over-aligned payloads: the slots are aligned, and so is the place in a parked operation.
#[test]
fn over_aligned() {
    goes_every_way(Line);
    goes_every_way(|n| Page(bytes(n)));
}

/// G10, CASE 44: 1 MiB.
#[test]
#[cfg_attr(miri, ignore = "too slow there; the shorter arrays stand for it")]
fn large() {
    on_a_large_stack(|| goes_every_way(bytes::<{ 1 << 20 }>));
}

/// G10: a ring whose slots are larger than a page is still one allocation; its first slot lies behind the channel.
#[test]
fn rings_of_large_slots() {
    for cap in [1, 3] {
        let (tx, rx) = bounded(cap);
        for round in 0..3 {
            (0..cap as u8).for_each(|n| tx.try_send(Page(bytes(n + round))).unwrap());
            (0..cap as u8).for_each(|n| assert_eq!(rx.try_recv(), Ok(Page(bytes(n + round)))));
        }
    }
}

/// G10, CASE 44: the address of a parked value is stable and aligned until it is delivered, and a cancelled one was never
/// moved: the value that comes back is read from where it was put.
#[test]
fn values_with_destructors_keep_their_heap() {
    let (tx, rx) = bounded(1);
    let values = [vec![1_u8; 100], vec![2; 100], vec![3; 100]];
    let addresses = values.each_ref().map(|value| value.as_ptr());
    let [a, b, c] = values;
    tx.try_send(a).unwrap();
    let (mut send, mut back) = (Box::pin(tx.send(b)), Box::pin(tx.send(c)));
    send.parks();
    back.parks();
    let back = back.as_mut().withdraw().unwrap();
    let seen = [rx.try_recv().unwrap(), rx.try_recv().unwrap(), back];
    assert_eq!(seen.each_ref().map(|value| value.as_ptr()), addresses);
    assert_eq!(send.ends(), Ok(()));
}
