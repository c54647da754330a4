//! Many values at once: one claim for a run of slots, and batches that wait in line.
//!
//! - **R1** A run is claimed by one CAS on the index word, like a single slot: it validates that no flag is set and that
//!   nobody else moved the word; the stamps of all its slots were looked at before, and only the claimer of a position
//!   changes its slot's stamp from then on.
//! - **R2** A run is at most [`RUN`] long: so many copies stand between its claim and its last publication.
//! - **R3** A parked batch is one waiter; a word behind its head says how many values are left. Whoever makes room takes its next value, under the lock, and leaves it at the
//!   head of the line until its last value has gone: so it keeps its place, and its values stay in order.
//! - **R4** Memory for what is received is reserved before the claim, and values that are sent stand in a vector before
//!   the first claim: no code of the user runs in between.

use alloc::vec::Vec;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::task::Waker;

use tidegate_wait::op::{Outbox, Place, Unlimited, Word};
use tidegate_wait::owner::Owner;
use tidegate_wait::shim::{Ordering, UnsafeCell};
use tidegate_wait::waiter::{Head, Kind, Node};
use tidegate_wait::wake_batch::{contain, discard};

use super::core::head_of;
use super::grants::SLOTS;
use super::words::{CLOSED, RXW, TXW};
use super::{Handle, Received, Sent};

/// At most so many slots are claimed at once.
const RUN: usize = 64;

/// The values of a batch, as an operation holds them; how many of them are still to go is said by its word.
pub(crate) type Items<T> = Vec<Place<T>>;

/// A batch: the last `left` of its values have still to go.
pub(crate) struct Batch<T> {
    items: Items<T>,
    left: usize,
}

impl<T> Batch<T> {
    pub(crate) fn new(items: impl IntoIterator<Item = T>) -> Batch<T> {
        // Collected as values first: a place does not drop its own, should the iterator panic.
        let items: Vec<T> = items.into_iter().collect();
        assert!((items.len() as u64) < SLOTS, "a batch of 2^63 values and more");
        let place = |item| UnsafeCell::new(MaybeUninit::new(item));
        let items: Items<T> = items.into_iter().map(place).collect();
        Batch { left: items.len(), items }
    }

    /// For an operation: the values, and the word beside them.
    pub(crate) fn into_parts(self) -> (Items<T>, Word) {
        let mut this = ManuallyDrop::new(self);
        (core::mem::take(&mut this.items), Word::new(this.left as u64))
    }

    /// The batch of an operation again.
    ///
    /// # Safety
    /// The word belongs to these items, and the node does not wait.
    pub(crate) unsafe fn from_parts(items: Items<T>, word: &Word) -> Batch<T> {
        // SAFETY: the caller's promise.
        Batch { items, left: unsafe { word.get() } as usize }
    }

    /// How many have gone.
    pub(crate) fn sent(&self) -> usize {
        self.items.len() - self.left
    }

    fn left(&self) -> usize {
        self.left
    }

    /// The next value. There is one.
    fn peek(&self) -> *const Place<T> {
        &raw const self.items[self.sent()]
    }

    /// The next value, which counts as moved. Not after the last one.
    fn advance(&mut self) -> *const Place<T> {
        let item = self.peek();
        self.left -= 1;
        item
    }

    /// Takes the rest, in order.
    pub(crate) fn take_rest(&mut self) -> Vec<T> {
        let next = self.sent();
        self.left = 0;
        // SAFETY: from `next` on the values are there, and are read once.
        self.items[next..].iter().map(|item| item.with(|item| unsafe { (*item).assume_init_read() })).collect()
    }
}

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        // Not through `take_rest`: it allocates. One that panics must not keep the others.
        while self.left() != 0 {
            let item = self.advance();
            // SAFETY: the value is there, and counts as gone from now on.
            contain(|| unsafe { (*item).with_mut(|item| (*item).assume_init_drop()) });
        }
    }
}

/// What the first in line has to give.
pub(in crate::flavor) struct Offer<T> {
    pub(in crate::flavor) value: *const Place<T>,
    /// It was the last: the operation is to be ended.
    pub(super) last: bool,
}

impl<T> Handle<T> {
    /// The next value of a parked send (of whichever channel) or batch, which the caller moves (R3).
    ///
    /// # Safety
    /// Under the lock; `node` waits, with values ([`wants_slots`](super::Core::wants_slots)).
    #[inline(always)]
    pub(in crate::flavor) unsafe fn offer(self, node: *const Node) -> Offer<T> {
        // SAFETY: the caller's promise: the node belongs to an `Outbox` of one of the three kinds.
        unsafe {
            if (*node).kind() != Kind::Batch {
                return Offer { value: Self::value_of(node), last: true };
            }
            let op = head_of(node);
            if self.core.weighted {
                return Offer { value: Outbox::<T, Unlimited, Word>::value_of(op), last: true };
            }
            let (word, items) = (Word::of(op), Outbox::<Items<T>, Unlimited, Word>::value_of(op));
            (*items).with(|items| {
                let items = (*items).assume_init_ref();
                let left = word.get() as usize;
                word.set(left as u64 - 1);
                Offer { value: &raw const items[items.len() - left], last: left == 1 }
            })
        }
    }

    /// Claims the slots at the tail that are free, as many as the batch has values, by one CAS. False: none.
    ///
    /// # Safety
    /// The batch is the caller's.
    unsafe fn send_run(self, batch: &mut Batch<T>) -> bool {
        let ring = self.core.ring;
        if ring.is_unbounded() {
            // SAFETY: each value is there, and counts as moved once it is taken.
            return unsafe { self.send_run_to_block(batch.left().min(RUN), || batch.advance()) } != 0;
        }
        // Ordering: Relaxed; the stamps and the CAS decide.
        let tail = self.core.tail.0.load(Ordering::Relaxed);
        let (mut end, mut count) = (tail, 0);
        // Ordering: Acquire, as in `send_fast`. A flag in the word matches no stamp.
        while count < batch.left().min(RUN) && self.stamp(end).load(Ordering::Acquire) == ring.free(end) {
            end = ring.next(end);
            count += 1;
        }
        // Ordering: AcqRel, as in `send_fast` (R1).
        if count == 0 || self.core.tail.0.compare_exchange(tail, end, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        let mut at = tail;
        while at != end {
            // SAFETY: the position is claimed, and its slot is free.
            unsafe { self.fill(at, batch.advance()) };
            // Ordering: Release, as in `send_fast`.
            self.stamp(at).store(ring.full(at), Ordering::Release);
            at = ring.next(at);
        }
        true
    }

    /// Sends what there is room for; never parks. `Full`: some are left.
    ///
    /// # Safety
    /// The batch is the caller's.
    pub(crate) unsafe fn try_send_batch(self, batch: &mut Batch<T>) -> Sent {
        while batch.left() != 0 {
            // SAFETY: the caller's promise; a value counts as moved only if it was.
            unsafe {
                if self.send_run(batch) {
                    continue;
                }
                match self.try_send_slow(batch.peek()) {
                    Sent::Done => batch.left -= 1,
                    refused => return refused,
                }
            }
        }
        Sent::Done
    }

    /// Sends what there is room for, of a batch that an operation holds.
    ///
    /// # Safety
    /// `head` is that of the operation, in state Init.
    pub(crate) unsafe fn try_send_items(self, head: *const Head) -> Sent {
        // SAFETY: in state Init the batch is the operation's. The copy of its vector is not dropped.
        unsafe {
            let (word, items) = (Word::of(head), Outbox::<Items<T>, Unlimited, Word>::value_of(head));
            let items = (*items).with(|items| (*items).assume_init_read());
            let mut batch = ManuallyDrop::new(Batch::from_parts(items, word));
            let sent = self.try_send_batch(&mut batch);
            word.set(batch.left as u64);
            sent
        }
    }

    /// Sends all, or parks with the rest (`Full`).
    ///
    /// # Safety
    /// `head` is that of the operation that holds the batch, pinned, in state Init, and its task's waker is `waker`.
    pub(crate) unsafe fn send_batch_or_park(self, head: *const Head, waker: &Waker) -> Sent {
        let mut own: Option<Waker> = None;
        let ended = loop {
            // SAFETY: the caller's promise.
            let sent = unsafe { self.try_send_items(head) };
            if sent != Sent::Full {
                break sent;
            }
            // Cloned before the lock is taken (G5).
            own.get_or_insert_with(|| waker.clone());
            // SAFETY: the caller's promise.
            if let Some(ended) = unsafe { self.park_batch(head, &mut own) } {
                break ended;
            }
        };
        discard(own);
        ended
    }

    /// One hold: parks the batch if there is no room. `None`: there is, or a receive waits.
    unsafe fn park_batch(self, op: *const Head, waker: &mut Option<Waker>) -> Option<Sent> {
        let core = self.core();
        let tail = core.lock();
        // Ordering: Acquire; the holder's view of the head.
        let head = core.head.0.load(Ordering::Acquire);
        // SAFETY: the lock is held; the caller's promise about the node.
        let ended = unsafe {
            if tail & CLOSED != 0 {
                Some(Sent::Closed)
            } else if head & TXW == 0
                && (tail & RXW != 0
                    || !core.is_full(head, tail)
                    // Ordering: AcqRel, as in `send_locked`: if the head moved, there is room after all.
                    || core.head.0.compare_exchange(head, head | TXW, Ordering::AcqRel, Ordering::Relaxed).is_err())
            {
                None
            } else {
                if let Some(waker) = waker.take() {
                    core.park(&raw const (*op).node, Kind::Batch, waker);
                }
                Some(Sent::Full)
            }
        };
        core.unlock(tail);
        ended
    }

    /// Claims the values at the head that are published, at most `max`, by one CAS, and appends them. Returns how many.
    ///
    /// `out` has room for them (R4).
    fn receive_run(self, out: &mut Vec<T>, max: usize) -> usize {
        let ring = self.core.ring;
        let max = max.min(RUN).min(out.capacity() - out.len());
        if ring.is_unbounded() {
            return self.receive_run_from_block(max, |from| {
                // SAFETY: `out` has room; the value counts as moved.
                unsafe {
                    out.as_mut_ptr().add(out.len()).copy_from_nonoverlapping(from, 1);
                    out.set_len(out.len() + 1);
                }
            });
        }
        // Ordering: Relaxed; the stamps and the CAS decide.
        let head = self.core.head.0.load(Ordering::Relaxed);
        let (mut end, mut count) = (head, 0);
        // Ordering: Acquire, as in `receive_fast`. A flag in the word matches no stamp.
        while count < max && self.stamp(end).load(Ordering::Acquire) == ring.full(end) {
            end = ring.next(end);
            count += 1;
        }
        // Ordering: AcqRel, as in `receive_fast` (R1).
        if count == 0 || self.core.head.0.compare_exchange(head, end, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return 0;
        }
        let mut at = head;
        while at != end {
            // SAFETY: the position is claimed and published; `out` has room. The value counts as moved.
            unsafe {
                let to = out.as_mut_ptr().add(out.len());
                (*self.slot(at)).value.with(|from| core::ptr::copy_nonoverlapping((*from).as_ptr(), to, 1));
                out.set_len(out.len() + 1);
            }
            // Ordering: Release, as in `receive_fast`.
            self.stamp(at).store(ring.free(at) + ring.lap(), Ordering::Release);
            at = ring.next(at);
        }
        count
    }

    /// Appends what there is, at most `max` values; never parks. `Empty` and `Closed` only if there was nothing.
    pub(crate) fn try_receive_many(self, out: &mut Vec<T>, max: usize) -> Received {
        let mut left = max;
        while left != 0 {
            // R4. The length is asked for only when there is no room left: it may take the lock.
            if out.len() == out.capacity() {
                out.reserve(left.min(self.len().max(1)));
            }
            let run = self.receive_run(out, left);
            left -= run;
            if run != 0 {
                continue;
            }
            let value: Place<T> = UnsafeCell::new(MaybeUninit::uninit());
            match self.try_receive(&value) {
                Received::Value => {
                    // SAFETY: just received. There is room: nothing was appended since it was seen.
                    out.push(value.with(|value| unsafe { (*value).assume_init_read() }));
                    left -= 1;
                }
                nothing if left == max => return nothing,
                _ => break,
            }
        }
        Received::Value
    }
}
