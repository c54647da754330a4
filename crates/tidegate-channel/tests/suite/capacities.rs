//! What can't be made, and rings of every shape. For the bounded flavor alone.

use tidegate_channel::{
    bounded, bounded_from_lap, rendezvous, try_bounded, CapacityError, Parked, RecvError, SendError,
};

use crate::support::Look;

/// G2: what one sender sends arrives in order, through many laps of rings of every shape. Also from positions that a
/// channel reaches after decades (60 bits; the last laps before they would run into the flags).
#[test]
fn values_arrive_in_order_in_every_lap() {
    let caps: &[usize] = if cfg!(miri) { &[1, 2, 5] } else { &[1, 2, 3, 4, 5, 7, 8, 9, 64] };
    for &cap in caps {
        let lap = (cap as u64 + 1).next_power_of_two();
        for first in [0, 1, (1 << 59) / lap - 2, (1 << 60) / lap - 40] {
            let (tx, rx) = bounded_from_lap(cap, first).unwrap();
            let mut next = 0;
            for fill in (1..=cap).chain([cap; 4]) {
                (0..fill).for_each(|n| tx.try_send(next + n).unwrap());
                assert_eq!(tx.len(), fill);
                (0..fill).for_each(|n| assert_eq!(rx.try_recv(), Ok(next + n)));
                next += fill;
            }
            assert_eq!(rx.try_recv(), Err(RecvError::Empty));
        }
    }
}

/// G2, G7 near the end of the positions: parking, admission, hand-off and both ways to close, on both sides.
#[test]
fn late_positions_park_and_close_as_early_ones() {
    for (cap, mode) in [(1_usize, Parked::GiveBack), (3, Parked::GiveBack), (1, Parked::Admit), (3, Parked::Admit)] {
        let lap = (cap as u64 + 1).next_power_of_two();
        let (tx, rx) = bounded_from_lap(cap, (1 << 60) / lap - 30).unwrap();
        for round in 0..12 {
            let mut receive = Box::pin(rx.recv());
            receive.parks();
            tx.try_send(round).unwrap();
            assert_eq!(receive.ends(), Ok(round));
            (0..cap).for_each(|n| tx.try_send(n).unwrap());
            let mut send = Box::pin(tx.send(99));
            send.parks();
            assert_eq!(rx.try_recv(), Ok(0));
            assert_eq!(send.ends(), Ok(()));
            (1..cap).for_each(|n| assert_eq!(rx.try_recv(), Ok(n)));
            assert_eq!(rx.try_recv(), Ok(99));
        }
        (0..cap).for_each(|n| tx.try_send(n).unwrap());
        let mut send = Box::pin(tx.send(cap));
        send.parks();
        assert!(rx.close_with(mode));
        (0..cap).for_each(|n| assert_eq!(rx.try_recv(), Ok(n)));
        match mode {
            Parked::Admit => assert_eq!((send.ends(), rx.try_recv()), (Ok(()), Ok(cap))),
            _ => assert_eq!(send.ends(), Err(SendError::Closed(cap))),
        }
        assert_eq!(rx.try_recv(), Err(RecvError::Closed));
    }
}

/// G10, CASE 43: impossible capacities are errors at once.
#[test]
fn impossible_capacities_are_errors() {
    #[cfg(target_pointer_width = "64")]
    {
        assert_eq!(try_bounded::<u8>((1 << 48) + 1).err(), Some(CapacityError::TooMany));
        assert_eq!(try_bounded::<u8>(1 << 63).err(), Some(CapacityError::TooMany));
        assert_eq!(try_bounded::<u8>((1 << 63) + 1).err(), Some(CapacityError::TooMany));
        assert_eq!(try_bounded::<()>(usize::MAX).err(), Some(CapacityError::TooMany));
        assert_eq!(try_bounded::<[u64; 1 << 20]>(1 << 48).err(), Some(CapacityError::Layout));
        if !cfg!(miri) {
            // 2^51 bytes are a layout, but nobody's memory.
            assert_eq!(try_bounded::<()>(1 << 48).err(), Some(CapacityError::OutOfMemory));
        }
        let panic = std::panic::catch_unwind(|| bounded::<u8>(1 << 63)).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert_eq!(
            text,
            "bounded(9223372036854775808): the capacity of a bounded channel is at most 2^48 (281,474,976,710,656) values"
        );
    }
    assert_eq!(bounded_from_lap::<u8>(1, u64::MAX).err(), Some(CapacityError::TooMany));
    assert_eq!(bounded_from_lap::<u8>(1, (1 << 60) / 2).err(), Some(CapacityError::TooMany));
}

/// G10: capacity 0 is a rendezvous, by whichever name.
#[test]
fn nothing_is_a_capacity() {
    for (tx, rx) in [rendezvous(), bounded(0), try_bounded(0).unwrap()] {
        assert_eq!((tx.capacity(), tx.is_full(), rx.is_full(), rx.is_empty()), (0, true, true, true));
        assert_eq!(tx.try_send(1), Err(SendError::Full(1)));
        let mut receive = Box::pin(rx.recv());
        receive.parks();
        assert_eq!((tx.try_send(2), receive.ends(), tx.is_full()), (Ok(()), Ok(2), true));
    }
}

/// G10: a ring whose slots are larger than a page is still one allocation; its first slot lies behind the channel.
#[test]
fn rings_of_large_slots() {
    #[derive(Debug, PartialEq, Clone, Copy)]
    #[repr(align(4096))]
    struct Page([u8; 5000]);
    for cap in [1, 3] {
        let (tx, rx) = bounded(cap);
        for round in 0..3 {
            (0..cap as u8).for_each(|n| tx.try_send(Page([n + round; 5000])).unwrap());
            (0..cap as u8).for_each(|n| assert_eq!(rx.try_recv(), Ok(Page([n + round; 5000]))));
        }
    }
}
