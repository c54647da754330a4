//! The sending half.

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr::NonNull;

use tidegate_wait::waiter::State;

use super::closed::Closed;
use super::shared::{Channel, Handle, RX_CLOSED, TX_GONE};
use crate::error::SendError;

/// The half that sends one value; made by [`channel`](super::channel). Dropped unsent, it closes the channel.
pub struct Sender<T> {
    channel: NonNull<Channel<T>>,
    _value: PhantomData<T>,
}

// SAFETY: a half is a counted reference on a channel, through which a `T` moves to another thread.
unsafe impl<T: Send> Send for Sender<T> {}
// SAFETY: a shared reference asks and waits for the close, under the channel's lock.
unsafe impl<T: Send> Sync for Sender<T> {}

// A half holds no value in place, and a panic leaves the channel whole: user code runs outside its lock only.
impl<T> Unpin for Sender<T> {}
impl<T> UnwindSafe for Sender<T> {}
impl<T> RefUnwindSafe for Sender<T> {}

impl<T> Sender<T> {
    /// # Safety
    /// The channel's count includes this half.
    pub(super) unsafe fn from_raw(channel: NonNull<Channel<T>>) -> Sender<T> {
        Sender { channel, _value: PhantomData }
    }

    fn channel(&self) -> Handle<T> {
        // SAFETY: the half keeps the channel alive.
        unsafe { Handle::new(self.channel) }
    }

    /// Sends the value. Never waits.
    ///
    /// `Ok` says that the receiver was there and can take the value; if it goes without, the value is dropped with it.
    ///
    /// # Errors
    /// [`SendError::Closed`], with the value: the receiver was closed or dropped.
    ///
    /// # Examples
    /// ```
    /// use tidegate_channel::{oneshot, SendError};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (tx, mut rx) = oneshot::channel();
    /// tx.send(1)?;
    /// assert_eq!(rx.try_recv()?, 1);
    ///
    /// let (tx, rx) = oneshot::channel();
    /// drop(rx);
    /// assert_eq!(tx.send(2), Err(SendError::Closed(2)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn send(self, value: T) -> Result<(), SendError<T>> {
        let channel = ManuallyDrop::new(self).channel();
        // SAFETY: the half is gone from here on: it sends once, and gives its reference back once.
        unsafe {
            let sent = channel.send(value);
            channel.release();
            sent.map_err(SendError::Closed)
        }
    }

    /// Has the receiver been closed or dropped? Then a send would be refused.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.channel().word() & RX_CLOSED != 0
    }

    /// Waits until the receiver is closed or dropped: for who works on a reply that may not be wanted any more.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped; a new one does as well.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tidegate_channel::{oneshot, Operation};
    ///
    /// let (tx, rx) = oneshot::channel::<u8>();
    /// assert!(tx.closed().timeout(Duration::from_millis(1)).wait().is_err());
    /// drop(rx);
    /// tx.closed().wait();
    /// ```
    pub fn closed(&self) -> Closed<'_> {
        Closed::new(self.channel())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.channel().raise(TX_GONE, 0, State::Closed);
        // SAFETY: the half's reference; it is not used again.
        unsafe { self.channel().release() }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.channel().debug("Sender", f)
    }
}
