//! G10: what a wait costs in memory, by the public types.
#![cfg(target_pointer_width = "64")]

use std::mem::size_of_val;
use std::time::{Duration, Instant};

use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::{Cancellable, Timed, Unlimited};
use tidegate_wait::timer::{sleep, sleep_until, Interval, Sleep};
use tidegate_wait::wait_queue::{Park, WaitQueue};
use tidegate_wait::Operation;

const MS: Duration = Duration::from_millis(1);

/// G10: a sleep is at most 64 bytes; each limit adds 24, in any order.
#[test]
fn g10_sleeps() {
    let token = CancelToken::new();
    assert!(size_of::<Sleep>() <= 64);
    let bare = size_of::<Sleep>();
    assert_eq!(size_of_val(&sleep(MS)), bare);
    assert_eq!(size_of_val(&sleep_until(Instant::now())), bare);
    assert_eq!(size_of_val(&sleep(MS).timeout(MS)), bare + 24);
    assert_eq!(size_of_val(&sleep(MS).deadline(Instant::now())), bare + 24);
    assert_eq!(size_of_val(&sleep(MS).cancel_on(&token)), bare + 24);
    assert_eq!(size_of_val(&sleep(MS).cancel_on_owned(token.clone())), bare + 24);
    assert_eq!(size_of_val(&sleep(MS).cancel_on(&token).timeout(MS)), bare + 48);
    assert_eq!(size_of_val(&sleep(MS).timeout(MS).cancel_on(&token)), bare + 48);
    assert!(size_of::<Interval>() <= 32);
}

/// G10: a park is 16 + max(24, grant) bytes; each limit adds 24, whatever the grant's alignment.
#[test]
fn g10_parks() {
    let token = CancelToken::new();
    let queue = WaitQueue::<()>::new();
    assert_eq!(size_of_val(&queue.park()), 40);
    assert_eq!(size_of_val(&queue.park().timeout(MS)), 64);
    assert_eq!(size_of_val(&queue.park().cancel_on(&token)), 64);
    assert_eq!(size_of_val(&queue.park().timeout(MS).cancel_on(&token)), 88);
    assert_eq!(size_of_val(&token.cancelled()), 40);
    assert_eq!(size_of_val(&token.cancelled().timeout(MS)), 64);
    assert_eq!(size_of::<Park<'static, u8>>(), 40);
    assert_eq!(size_of::<Park<'static, [u64; 3]>>(), 40);
    assert_eq!(size_of::<Park<'static, [u64; 4]>>(), 48);
    assert_eq!(size_of::<Park<'static, [u8; 1 << 20]>>(), 16 + (1 << 20));
    assert_eq!(size_of::<WaitQueue<u64>>(), 8);
    assert_eq!(size_of::<CancelToken>(), 8);
}

/// G10: limits have no size of their own beyond their entries.
#[test]
fn g10_limits() {
    assert_eq!(size_of::<Unlimited>(), 0);
    assert_eq!(size_of::<Timed<Unlimited>>(), 24);
    assert_eq!(size_of::<Cancellable<'static, Unlimited>>(), 24);
    assert_eq!(size_of::<Timed<Cancellable<'static, Timed<Unlimited>>>>(), 72);
}
