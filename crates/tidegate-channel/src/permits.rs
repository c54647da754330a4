//! Many reserved slots.

use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use tidegate_wait::shim::UnsafeCell;

use crate::error::SendError;
use crate::flavor::bounded::{Channel, Handle};
use crate::hold::{Borrowed, Hold, Owned};
use crate::permit::Permit;
use crate::sender::Sender;

/// Reserved slots with a half of their own; made by [`Sender::into_reserve_many`].
pub type OwnedPermits<T> = Permits<'static, T, Owned>;

/// Reserved slots; made by [`Sender::reserve_many`]. Dropped, they give what is left of them to the next in line.
///
/// An iterator, too: it gives the slots away as single [`Permit`]s. They stay valid after a close: receivers see the end
/// when the last permit is gone.
///
/// # Examples
/// ```
/// use tidegate_channel::{bounded, Operation, SendError};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (tx, rx) = bounded(4);
/// let mut permits = tx.reserve_many(3).wait()?;
/// permits.send("first")?;
/// let single = permits.next().ok_or("two were left")?;
/// assert_eq!(permits.len(), 1);
/// drop(permits);
/// assert!(tx.try_send("two slots are free").is_ok() && tx.try_send("now one").is_ok());
/// assert_eq!(tx.try_send("the last is promised"), Err(SendError::Full("the last is promised")));
/// single.send("last")?;
/// assert_eq!(rx.len(), 4);
/// # Ok(())
/// # }
/// ```
#[must_use = "permits that are dropped give their slots back"]
pub struct Permits<'a, T, H: Hold = Borrowed<'a>> {
    channel: NonNull<Channel<T>>,
    left: usize,
    _half: PhantomData<(&'a (), Sender<T>, H)>,
}

// SAFETY: a counted share of a `Channel<T>`, which is `Send` and `Sync` for `T: Send`.
unsafe impl<T: Send, H: Hold> Send for Permits<'_, T, H> {}
// SAFETY: as above.
unsafe impl<T: Send, H: Hold> Sync for Permits<'_, T, H> {}

impl<T, H: Hold> Permits<'_, T, H> {
    /// # Safety
    /// The channel counts so many more permits; with an owned hold, the half is theirs.
    pub(crate) unsafe fn from_raw(channel: NonNull<Channel<T>>, left: usize) -> Self {
        Permits { channel, left, _half: PhantomData }
    }

    fn channel(&self) -> Handle<T> {
        // SAFETY: the permits borrow or have a half, which keeps the channel alive.
        unsafe { Handle::new(self.channel) }
    }

    /// How many are left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.left
    }

    /// Is none left?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Sends `value` into one of the slots; never waits, except for a copy in progress.
    ///
    /// # Errors
    /// [`SendError::Full`] if no permit is left; [`SendError::Closed`] if no receiver is. (A channel that is only closed
    /// takes the value.) The value comes back in each.
    pub fn send(&mut self, value: T) -> Result<(), SendError<T>> {
        let Some(left) = self.left.checked_sub(1) else { return Err(SendError::Full(value)) };
        self.left = left;
        let value = UnsafeCell::new(MaybeUninit::new(value));
        // SAFETY: one of the permits ends here; the value is taken back unless it has been moved.
        unsafe {
            match self.channel().send_permit(&value) {
                true => Ok(()),
                false => Err(SendError::Closed(value.with(|value| (*value).assume_init_read()))),
            }
        }
    }
}

impl<'a, T, H: Hold> Iterator for Permits<'a, T, H> {
    type Item = Permit<'a, T, H>;

    fn next(&mut self) -> Option<Permit<'a, T, H>> {
        self.left = self.left.checked_sub(1)?;
        if H::OWNED {
            // The single one has a half of its own.
            self.channel().core().senders().add();
        }
        // SAFETY: it was one of ours.
        Some(unsafe { Permit::from_raw(self.channel) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T, H: Hold> ExactSizeIterator for Permits<'_, T, H> {}
impl<T, H: Hold> FusedIterator for Permits<'_, T, H> {}

impl<T, H: Hold> Drop for Permits<'_, T, H> {
    fn drop(&mut self) {
        // SAFETY: the half that `into_reserve_many` took over, given back once, at last.
        let _half = H::OWNED.then(|| unsafe { Sender::from_raw(self.channel) });
        if self.left != 0 {
            // SAFETY: what is left is ours and ends here.
            unsafe { self.channel().drop_permits(self.left as u64) }
        }
    }
}

impl<T, H: Hold> fmt::Debug for Permits<'_, T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permits").field("left", &self.left).finish_non_exhaustive()
    }
}
