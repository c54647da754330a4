//! The receiving half.

use core::fmt;
use core::future::IntoFuture;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr::NonNull;

use tidegate_wait::waiter::{State, Ticket};

use super::receiving::{OwnedReceiving, Receiving};
use super::shared::{Channel, Handle, Taken, RX_CLOSED, TX_GONE};
use crate::error::RecvError;

/// The half that receives the value; made by [`channel`](super::channel). When it goes, a value that was sent and not
/// received is dropped at once, and a later send is refused.
///
/// `rx.await` is [`into_recv`](Receiver::into_recv), `(&mut rx).await` is [`recv`](Receiver::recv).
pub struct Receiver<T> {
    channel: NonNull<Channel<T>>,
    _value: PhantomData<T>,
}

// SAFETY: a half is a counted reference on a channel, through which a `T` moves from another thread.
unsafe impl<T: Send> Send for Receiver<T> {}
// SAFETY: a shared reference only asks.
unsafe impl<T: Send> Sync for Receiver<T> {}

// A half holds no value in place, and a panic leaves the channel whole: user code runs outside its lock only.
impl<T> Unpin for Receiver<T> {}
impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}

impl<T> Receiver<T> {
    /// # Safety
    /// The channel's count includes this half.
    pub(super) unsafe fn from_raw(channel: NonNull<Channel<T>>) -> Receiver<T> {
        Receiver { channel, _value: PhantomData }
    }

    fn channel(&self) -> Handle<T> {
        // SAFETY: the half keeps the channel alive.
        unsafe { Handle::new(self.channel) }
    }

    /// Receives the value; waits until it is sent.
    ///
    /// # Errors
    /// [`RecvError::Closed`]: no value will come, since the sender went without sending, the value has been received, or
    /// the receiver was closed before it was sent. With limits on the operation, [`RecvError::TimedOut`] and
    /// [`RecvError::Cancelled`]; the receiver is as good as before, and may try again.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped, at any moment: the value stays with the receiver.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tidegate_channel::{oneshot, Operation, RecvError};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (tx, mut rx) = oneshot::channel();
    /// let early = rx.recv().timeout(Duration::from_millis(1)).wait();
    /// assert_eq!(early, Err(RecvError::TimedOut));
    /// tx.send("late")?;
    /// assert_eq!(rx.recv().wait()?, "late");
    /// assert_eq!(rx.recv().wait(), Err(RecvError::Closed));
    /// # Ok(())
    /// # }
    /// ```
    pub fn recv(&mut self) -> Receiving<'_, T> {
        Receiving::new(self.channel)
    }

    /// A receive that has the receiver as its own: `'static` if `T` is.
    ///
    /// It is the receiver's last: when it ends without the value, by a time-out, say, the channel is closed, and from then
    /// on the reply is refused.
    ///
    /// # Errors
    /// As for [`Receiver::recv`].
    ///
    /// # Cancel safety
    /// Dropping it is dropping the receiver: a value that was sent is dropped, a later send is refused. To try again, use
    /// [`Receiver::recv`].
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tidegate_channel::{oneshot, Operation, RecvError};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (tx, rx) = oneshot::channel();
    /// let receiver = std::thread::spawn(move || rx.into_recv().wait());
    /// tx.send(1)?;
    /// assert_eq!(receiver.join().unwrap()?, 1);
    ///
    /// let (tx, rx) = oneshot::channel();
    /// let abandoned = rx.into_recv().timeout(Duration::from_millis(1)).wait();
    /// assert_eq!(abandoned, Err(RecvError::TimedOut));
    /// assert_eq!(tx.send(2).unwrap_err().into_inner(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_recv(self) -> OwnedReceiving<T> {
        Receiving::new(ManuallyDrop::new(self).channel)
    }

    /// Receives the value if it is there. Never waits.
    ///
    /// # Errors
    /// [`RecvError::Empty`]: not sent yet. [`RecvError::Closed`]: as for [`Receiver::recv`].
    ///
    /// # Examples
    /// ```
    /// use tidegate_channel::{oneshot, RecvError};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (tx, mut rx) = oneshot::channel();
    /// assert_eq!(rx.try_recv(), Err(RecvError::Empty));
    /// tx.send(1)?;
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// assert_eq!(rx.try_recv(), Err(RecvError::Closed));
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_recv(&mut self) -> Result<T, RecvError> {
        // SAFETY: the receiver is exclusively borrowed.
        match unsafe { self.channel().take() } {
            Taken::Value(value) => Ok(value),
            Taken::Closed => Err(RecvError::Closed),
            Taken::Empty => Err(RecvError::Empty),
        }
    }

    /// Closes the channel: a later send is refused with its value; what was sent before can still be received. False: it
    /// was closed already, or the sender is gone.
    ///
    /// # Examples
    /// ```
    /// use tidegate_channel::{oneshot, SendError};
    ///
    /// let (tx, mut rx) = oneshot::channel();
    /// assert!(rx.close());
    /// assert_eq!(tx.send(1), Err(SendError::Closed(1)));
    /// assert!(!rx.close());
    /// ```
    pub fn close(&mut self) -> bool {
        let before = self.channel().raise(RX_CLOSED, 0, State::Done(Ticket::new(0)));
        before & (TX_GONE | RX_CLOSED) == 0
    }

    /// Is the channel closed: will no value be accepted any more? True once the receiver was closed, or the sender has
    /// sent or gone. What was sent may still be there.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.channel().word() & (TX_GONE | RX_CLOSED) != 0
    }
}

/// [`Receiver::into_recv`].
impl<T> IntoFuture for Receiver<T> {
    type Output = Result<T, RecvError>;
    type IntoFuture = OwnedReceiving<T>;

    fn into_future(self) -> OwnedReceiving<T> {
        self.into_recv()
    }
}

/// [`Receiver::recv`].
impl<'a, T> IntoFuture for &'a mut Receiver<T> {
    type Output = Result<T, RecvError>;
    type IntoFuture = Receiving<'a, T>;

    fn into_future(self) -> Receiving<'a, T> {
        self.recv()
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        // SAFETY: the receiver is ours, and so is its reference; it is not used again.
        unsafe {
            self.channel().abandon();
            self.channel().release();
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.channel().debug("Receiver", f)
    }
}
