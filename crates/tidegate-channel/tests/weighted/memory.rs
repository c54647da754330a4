//! What a weighted channel costs: bytes of operations, blocks (G4, G10).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;

use tidegate_channel::{bounded_by, Operation, OwnedSendingWeighed, SendingWeighed};
use tidegate_wait::timer::ManualClock;

use crate::by_itself;
use crate::support::Look;

struct Counting;

std::thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static ALIVE: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: everything is the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        let _ = ALIVE.try_with(|alive| alive.set(alive.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let _ = ALIVE.try_with(|alive| alive.set(alive.get() - 1));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of `f` on this thread.
fn allocations(f: impl FnOnce()) -> usize {
    let before = COUNT.get();
    f();
    COUNT.get() - before
}

/// G4: in a steady flow nothing is allocated, parked, timed out, dropped or admitted, across the borders of blocks.
#[test]
fn g4_operations_allocate_nothing() {
    let clock = ManualClock::new();
    let ms = Duration::from_millis(1);
    let (tx, rx) = by_itself(100);
    let round = || {
        tx.try_send(60).unwrap();
        tx.try_send(30).unwrap();
        let mut late = pin!(tx.send(50).timeout(ms));
        let mut send = pin!(tx.send(10));
        let mut parked = pin!(tx.send(90));
        assert!(tidegate_wait::op::poll_once(late.as_mut()).is_pending());
        assert!(tidegate_wait::op::poll_once(send.as_mut()).is_pending());
        assert!(tidegate_wait::op::poll_once(parked.as_mut()).is_pending());
        {
            let mut dropped = pin!(tx.send(1));
            assert!(tidegate_wait::op::poll_once(dropped.as_mut()).is_pending());
        }
        clock.advance(ms);
        assert!(tidegate_wait::op::poll_once(send.as_mut()).is_ready());
        assert_eq!((rx.try_recv(), rx.try_recv(), rx.try_recv()), (Ok(60), Ok(30), Ok(10)));
        assert_eq!(rx.try_recv(), Ok(90));
        assert!(tidegate_wait::op::poll_once(parked).is_ready());
        let mut receive = pin!(rx.recv().timeout(ms));
        assert!(tidegate_wait::op::poll_once(receive.as_mut()).is_pending());
        tx.try_send(1).unwrap();
        assert!(tidegate_wait::op::poll_once(receive.as_mut()).is_ready());
    };
    clock.enter(|| {
        // A whole lap of a block, and the spare one.
        (0..100).for_each(|_| tx.try_send(1).unwrap());
        (0..100).for_each(|_| assert_eq!(rx.try_recv(), Ok(1)));
        round();
        let rounds = if cfg!(miri) { 20 } else { 200 };
        assert_eq!(allocations(|| (0..rounds).for_each(|_| round())), 0);
        // Never empty: blocks go round.
        (0..90).for_each(|_| tx.try_send(1).unwrap());
        (0..200).for_each(|_| {
            tx.try_send(1).unwrap();
            rx.try_recv().unwrap();
        });
        let flow = || {
            (0..1_000).for_each(|_| {
                tx.try_send(1).unwrap();
                rx.try_recv().unwrap();
            });
        };
        assert_eq!(allocations(flow), 0);
    });
}

/// After a burst the memory is given back, but for the current block and a spare one; all of it with the channel.
#[test]
fn g4_a_burst_gives_its_memory_back() {
    let many = if cfg!(miri) { 1_000 } else { 100_000 };
    let before = ALIVE.get();
    let (tx, rx) = by_itself(many);
    (0..many).for_each(|_| tx.try_send(1).unwrap());
    assert!(ALIVE.get() - before > many as isize / 64);
    (0..many).for_each(|_| assert_eq!(rx.try_recv(), Ok(1)));
    // The channel, its account, the weigher; two blocks.
    assert!(ALIVE.get() - before <= 5, "{}", ALIVE.get() - before);
    (0..500).for_each(|_| tx.try_send(1).unwrap());
    drop((tx, rx));
    assert_eq!(ALIVE.get(), before);
}

/// G10: a weighed send is a send and a word.
#[test]
#[cfg(target_pointer_width = "64")]
fn g10_sizes() {
    assert_eq!(size_of::<SendingWeighed<'_, [u8; 64]>>(), 64 + 48);
    assert_eq!(size_of::<OwnedSendingWeighed<u64>>(), 56);
    let (tx, _rx) = bounded_by(1, |_: &[u8; 64]| 1);
    assert_eq!(size_of_val(&tx.send([0; 64]).timeout(Duration::MAX)), 64 + 72);
    assert_eq!(size_of_val(&tx), 24);
}

/// G10: payloads of no size, of much, and of an alignment of their own, parked and buffered.
#[test]
fn g10_payloads() {
    #[derive(Clone, Copy, PartialEq, Debug)]
    #[repr(align(4096))]
    struct Aligned(u8);
    fn passes<T: Clone + PartialEq + std::fmt::Debug>(value: &T) {
        let (tx, rx) = bounded_by(70, |_: &T| 1);
        (0..70).for_each(|_| tx.try_send(value.clone()).unwrap());
        let mut line: Vec<_> = (0..3).map(|_| Box::pin(tx.send(value.clone()))).collect();
        line.iter_mut().for_each(Look::parks);
        for n in 0..73 {
            assert_eq!(rx.try_recv().as_ref(), Ok(value), "{n}");
        }
        assert!(line.iter_mut().all(|send| send.ends().is_ok()));
    }
    passes(&());
    passes(&Aligned(7));
    passes(&[9_u8; 13]);
    passes(&vec![1, 2, 3]);
    if !cfg!(miri) {
        passes(&Box::new([5_u8; 1 << 16]));
        passes(&[5_u8; 40_000]);
    }
}

/// Blocks of one slot: values larger than a block.
#[test]
fn g10_a_value_larger_than_a_block() {
    let (tx, rx) = bounded_by(3, |_: &[u8; 100_000]| 1);
    for n in 0..3 {
        tx.try_send([n; 100_000]).unwrap();
    }
    for n in 0..3 {
        assert!(rx.try_recv().unwrap() == [n; 100_000]);
    }
}
