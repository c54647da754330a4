//! A reserved slot.

use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr::NonNull;

use tidegate_wait::shim::UnsafeCell;

use crate::error::SendError;
use crate::flavor::bounded::{Channel, Handle};
use crate::hold::{Borrowed, Hold, Owned};
use crate::sender::Sender;

/// A reserved slot with a half of its own; made by [`Sender::into_reserve`].
pub type OwnedPermit<T> = Permit<'static, T, Owned>;

/// A reserved slot; made by [`Sender::reserve`]. Dropped, it gives the slot to the next in line.
///
/// It stays valid after a close: receivers see the end when the last permit is gone. A leaked permit keeps its slot, and
/// a closed channel from ending.
#[must_use = "a permit that is dropped gives its slot back"]
pub struct Permit<'a, T, H: Hold = Borrowed<'a>> {
    channel: NonNull<Channel<T>>,
    _half: PhantomData<(&'a (), Sender<T>, H)>,
}

// SAFETY: a counted share of a `Channel<T>`, which is `Send` and `Sync` for `T: Send`.
unsafe impl<T: Send, H: Hold> Send for Permit<'_, T, H> {}
// SAFETY: as above.
unsafe impl<T: Send, H: Hold> Sync for Permit<'_, T, H> {}

// As for the halves: no value in place, and user code outside locks only.
impl<T, H: Hold> UnwindSafe for Permit<'_, T, H> {}
impl<T, H: Hold> RefUnwindSafe for Permit<'_, T, H> {}

impl<T, H: Hold> Permit<'_, T, H> {
    /// # Safety
    /// The channel counts one more permit; with an owned hold, the half is the permit's.
    pub(crate) unsafe fn from_raw(channel: NonNull<Channel<T>>) -> Self {
        Permit { channel, _half: PhantomData }
    }

    fn channel(&self) -> Handle<T> {
        // SAFETY: the permit borrows or has a half, which keeps the channel alive.
        unsafe { Handle::new(self.channel) }
    }

    /// The half that an owned permit has, to be dropped.
    fn half(&self) -> Option<Sender<T>> {
        // SAFETY: the half that `into_reserve` took over, given back once.
        H::OWNED.then(|| unsafe { Sender::from_raw(self.channel) })
    }

    /// Sends `value` into the slot; never waits, except for a copy in progress.
    ///
    /// # Errors
    /// [`SendError::Closed`] if no receiver is left. (A channel that is only closed takes it.)
    pub fn send(self, value: T) -> Result<(), SendError<T>> {
        let this = ManuallyDrop::new(self);
        let _half = this.half();
        let value = UnsafeCell::new(MaybeUninit::new(value));
        // SAFETY: the permit is ours and ends here; the value is taken back unless it has been moved.
        unsafe {
            match this.channel().send_permit(&value) {
                true => Ok(()),
                false => Err(SendError::Closed(value.with(|value| (*value).assume_init_read()))),
            }
        }
    }
}

impl<T, H: Hold> Drop for Permit<'_, T, H> {
    fn drop(&mut self) {
        let _half = self.half();
        // SAFETY: the permit is ours and ends here.
        unsafe { self.channel().drop_permits(1) }
    }
}

impl<T, H: Hold> fmt::Debug for Permit<'_, T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.channel().debug("Permit", f)
    }
}
