//! What an unbounded channel keeps: a block a block's worth of values, nothing in a steady state, and little after a burst.
#![cfg(all(not(loom), not(miri), target_pointer_width = "64"))]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use support::{within, Look};
use tidegate_channel::{unbounded, RecvError};

/// Counts blocks, of the whole process, and everything, by thread.
struct Counting;

/// A block of 64 words: link and position, then a stamp and a value a slot. Nothing else here has this size.
const BLOCK_BYTES: usize = 16 + 64 * 16;
/// Slots of a block.
const BLOCK: usize = 64;

static MADE: AtomicUsize = AtomicUsize::new(0);
static ALIVE: AtomicIsize = AtomicIsize::new(0);

std::thread_local! {
    static ALL: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALL.try_with(|all| all.set(all.get() + 1));
        if layout.size() == BLOCK_BYTES {
            MADE.fetch_add(1, Ordering::SeqCst);
            ALIVE.fetch_add(1, Ordering::SeqCst);
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if layout.size() == BLOCK_BYTES {
            ALIVE.fetch_sub(1, Ordering::SeqCst);
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Tests run one at a time: blocks are counted for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> impl Drop {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Blocks that `f` allocates, and how many more there are afterwards.
fn blocks(f: impl FnOnce()) -> (usize, isize) {
    let before = (MADE.load(Ordering::SeqCst), ALIVE.load(Ordering::SeqCst));
    f();
    (MADE.load(Ordering::SeqCst) - before.0, ALIVE.load(Ordering::SeqCst) - before.1)
}

/// All allocations of `f` on this thread.
fn allocations(f: impl FnOnce()) -> usize {
    let before = ALL.get();
    f();
    ALL.get() - before
}

/// G4: a channel and its first block; nothing is left of them.
#[test]
fn a_channel_is_two_allocations() {
    let _alone = alone();
    // The first one asks how many processors there are.
    drop(unbounded::<u64>());
    assert_eq!(allocations(|| drop(unbounded::<u64>())), 2);
    assert_eq!(blocks(|| drop(unbounded::<u64>())), (1, 0));
}

/// G4: in a steady state nothing is allocated: the block that is left is the one that is entered.
#[test]
fn a_steady_flow_allocates_nothing() {
    let _alone = alone();
    for fill in [0, 1, BLOCK - 1, BLOCK] {
        let (tx, rx) = unbounded::<usize>();
        (0..fill).for_each(|n| tx.try_send(n).unwrap());
        let flow = || {
            for n in 0..100 * BLOCK {
                tx.try_send(n).unwrap();
                rx.try_recv().unwrap();
            }
        };
        flow();
        assert_eq!(allocations(flow), 0, "at a fill of {fill}");
    }
}

/// G4: at most one allocation a block while the channel grows; and after it has been drained the memory is back.
#[test]
fn a_burst_gives_its_memory_back() {
    let _alone = alone();
    let burst = 1_000_000;
    let (tx, rx) = unbounded::<usize>();
    for round in 0..2 {
        let grow = || (0..burst).for_each(|n| tx.try_send(n).unwrap());
        let grown = blocks(|| assert!(allocations(grow) <= burst / BLOCK));
        assert!(grown.0 <= burst / BLOCK && grown.1 >= (burst / BLOCK) as isize - 1, "{grown:?}");
        let (_, left) = blocks(|| (0..burst).for_each(|n| assert_eq!(rx.try_recv(), Ok(n))));
        // The current block was there before; the spare one is new in the first round.
        assert_eq!(left + grown.1, if round == 0 { 1 } else { 0 });
    }
}

/// After a burst that several receivers drain: a block more for each of them, at most; and they go, too.
#[test]
fn a_burst_drained_by_many_gives_its_memory_back() {
    let _alone = alone();
    let (tx, rx) = unbounded::<usize>();
    let (burst, receivers) = (1_000_000, 4);
    let before = ALIVE.load(Ordering::SeqCst);
    let left = || ALIVE.load(Ordering::SeqCst) - before;
    within(Duration::from_secs(60), "a burst", || {
        (0..burst).for_each(|n| tx.try_send(n).unwrap());
        thread::scope(|scope| {
            for _ in 0..receivers {
                let rx = rx.clone();
                scope.spawn(move || while rx.try_recv() != Err(RecvError::Empty) {});
            }
        });
    });
    assert!(left() <= 1 + receivers, "{} blocks are left", left());
    // Whoever crosses next takes what was left behind.
    for n in 0..3 * BLOCK {
        tx.try_send(n).unwrap();
        rx.try_recv().unwrap();
    }
    assert!(left() <= 1, "{} blocks are left", left());
}

/// What receivers have left behind goes with the channel, too.
#[test]
fn a_channel_drained_by_many_leaves_nothing() {
    let _alone = alone();
    within(Duration::from_secs(60), "bursts", || {
        let (_, left) = blocks(|| {
            for _ in 0..50 {
                let (tx, rx) = unbounded::<usize>();
                (0..10_000).for_each(|n| tx.try_send(n).unwrap());
                thread::scope(|scope| {
                    for _ in 0..4 {
                        scope.spawn(|| while rx.try_recv() != Err(RecvError::Empty) {});
                    }
                });
            }
        });
        assert_eq!(left, 0);
    });
}

/// Growing by several senders: those who meet at a border may each bring a block, and take it back.
#[test]
fn a_burst_of_many_senders_gives_its_memory_back() {
    let _alone = alone();
    let (tx, rx) = unbounded::<usize>();
    let each = 200_000;
    let (_, left) = blocks(|| {
        thread::scope(|scope| {
            for _ in 0..4 {
                let tx = tx.clone();
                scope.spawn(move || (0..each).for_each(|n| tx.try_send(n).unwrap()));
            }
        });
        (0..4 * each).for_each(|_| assert!(rx.try_recv().is_ok()));
    });
    assert!(left <= 1, "{left} blocks are left");
}

/// Memory goes with the channel, values or not, in whichever block the words stand.
#[test]
fn a_dropped_channel_leaves_nothing() {
    let _alone = alone();
    for (sent, received) in
        [(0, 0), (1, 1), (BLOCK, BLOCK), (BLOCK + 1, BLOCK - 1), (10 * BLOCK, 5 * BLOCK), (1_000, 0)]
    {
        let (_, left) = blocks(|| {
            let (tx, rx) = unbounded::<usize>();
            (0..sent).for_each(|n| tx.try_send(n).unwrap());
            (0..received).for_each(|n| assert_eq!(rx.try_recv(), Ok(n)));
        });
        assert_eq!(left, 0);
    }
}

/// G4: parked receives and hand-offs allocate nothing.
#[test]
fn hand_offs_allocate_nothing() {
    let _alone = alone();
    let (tx, rx) = unbounded::<usize>();
    let mut receives: Vec<_> = (0..200).map(|_| Box::pin(rx.recv())).collect();
    let made = allocations(|| {
        for (n, receive) in receives.iter_mut().enumerate() {
            receive.parks();
            tx.try_send(n).unwrap();
            assert_eq!(receive.ends(), Ok(n));
        }
    });
    assert_eq!(made, 0);
}
