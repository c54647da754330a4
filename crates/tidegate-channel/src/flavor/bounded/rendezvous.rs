//! Capacity 0: every value goes from hand to hand.
//!
//! **For:** a send that has succeeded has met its receive. **Not for:** throughput; use a buffer.
//!
//! The same words, lists, lock and invariants as any other capacity, without a ring: [`NO_SLOT`](super::words::NO_SLOT)
//! turns every fast path away, the ring counts as full for senders and as empty for receivers. What is left of the two
//! slow paths is a rendezvous:
//!
//! | arrives | finds | what happens |
//! | --- | --- | --- |
//! | send | RXW | the value goes into the first parked receive (`hand_over`, as always) |
//! | send | no receive | parks, TXW |
//! | receive | STASH | a returned delivery precedes everything, as always |
//! | receive | TXW | the value of the first parked send, out of it ([`Handle::meet`]) |
//! | receive | nobody | parks, RXW |
//!
//! TXW and RXW are never both set: whoever would set the second one meets the first instead.

use tidegate_wait::op::Place;
use tidegate_wait::owner::Owner;
use tidegate_wait::waiter::Head;

use super::core::wake;
use super::recv::spend;
use super::Handle;

impl<T> Handle<T> {
    /// Under the lock, with TXW: takes the value of the first parked send. `own`: the receiving operation, whose state is
    /// stored before the sender is woken (I8).
    ///
    /// # Safety
    /// As said; `to` is the caller's place.
    pub(super) unsafe fn meet(self, tail: u64, to: *const Place<T>, own: Option<*const Head>) {
        let core = self.core();
        debug_assert_eq!(core.ring.cap, 0, "with a ring, TXW means that it is full (I1)");
        // SAFETY: the lock is held; a parked send holds its value.
        unsafe {
            let Some(first) = core.tx().front() else { unreachable!("I1: TXW without a parked sender") };
            let offer = self.offer(first);
            (*offer.value).with(|from| (*to).with_mut(|to| core::ptr::copy_nonoverlapping(from, to, 1)));
            let waker = if offer.last { self.end_sender(first) } else { None };
            core.after_sender_left();
            spend(own);
            core.unlock(tail);
            wake(waker);
            if core.weighted {
                // A5: another is first now.
                self.let_in();
            }
        }
    }
}
