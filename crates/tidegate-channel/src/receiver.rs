//! The receiving half.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr::NonNull;

use tidegate_wait::op::Place;
use tidegate_wait::shim::UnsafeCell;

use crate::drain::Drain;
use crate::error::RecvError;
use crate::flavor::bounded::{Channel, Closed, Handle, Parked, Received};
use crate::receiving::{OwnedReceiving, Receiving};
use crate::receiving_many::ReceivingMany;
use crate::weak::WeakReceiver;

/// The receiving half of a channel. Clones are halves of the same channel and share its values; when the last one goes,
/// the channel closes and what is buffered is dropped at once.
pub struct Receiver<T> {
    channel: NonNull<Channel<T>>,
    _values: PhantomData<T>,
}

// SAFETY: a half is a counted reference on a `Channel<T>`, which is `Send` and `Sync` for `T: Send`.
unsafe impl<T: Send> Send for Receiver<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Receiver<T> {}

// A half holds no value in place, and a panic leaves the channel whole: user code runs outside its locks only.
impl<T> Unpin for Receiver<T> {}
impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}

impl<T> Receiver<T> {
    /// # Safety
    /// The channel's count of receivers includes this half.
    pub(crate) unsafe fn from_raw(channel: NonNull<Channel<T>>) -> Receiver<T> {
        Receiver { channel, _values: PhantomData }
    }

    /// Gives the half away, uncounted.
    pub(crate) fn into_raw(self) -> NonNull<Channel<T>> {
        ManuallyDrop::new(self).channel
    }

    #[inline(always)]
    pub(crate) fn channel(&self) -> Handle<T> {
        // SAFETY: the half keeps the channel alive.
        unsafe { Handle::new(self.channel) }
    }

    /// Receives the next value; waits while there is none.
    ///
    /// Parked receives are served in the order in which they parked.
    ///
    /// # Errors
    /// [`RecvError::Closed`]: no value will come. With limits on the operation, [`RecvError::TimedOut`] and
    /// [`RecvError::Cancelled`].
    ///
    /// # Cancel safety
    /// No value is lost: one that was handed to a receive which is then dropped goes to the next receive, ahead of
    /// everything undelivered. A dropped receive loses its place. Retrying is a new receive, at the end of the line.
    ///
    /// # Examples
    /// ```
    /// use tidegate_channel::{bounded, Operation, RecvError};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (tx, rx) = bounded(4);
    /// tx.try_send(1)?;
    /// drop(tx);
    /// assert_eq!(rx.recv().wait()?, 1);
    /// assert_eq!(rx.recv().wait(), Err(RecvError::Closed));
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn recv(&self) -> Receiving<'_, T> {
        Receiving::new(self.channel)
    }

    /// A receive that has this half as its own: `'static` if `T` is. Clone the half first to keep one.
    #[inline]
    pub fn into_recv(self) -> OwnedReceiving<T> {
        Receiving::new(self.into_raw())
    }

    /// Receives a value if there is one; never waits, except for a copy in progress: after a completed send it does not
    /// say "empty".
    ///
    /// # Errors
    /// [`RecvError::Empty`], [`RecvError::Closed`].
    // Left to the compiler, one caller more made a call of it, 20 instructions longer. But a debug build would keep room for
    // the value in each caller.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn try_recv(&self) -> Result<T, RecvError> {
        let value: Place<T> = UnsafeCell::new(MaybeUninit::uninit());
        match self.channel().try_receive(&value) {
            // SAFETY: the value has just been moved there.
            Received::Value => Ok(value.with(|value| unsafe { (*value).assume_init_read() })),
            Received::Closed => Err(RecvError::Closed),
            Received::Empty => Err(RecvError::Empty),
        }
    }

    /// Receives at least one value and at most `max`, and appends them to `buffer`; waits while there is none. Returns how
    /// many. With `max` 0: none, at once.
    ///
    /// Where there are several, one step claims them; `buffer` grows first.
    ///
    /// # Errors
    /// As for [`Receiver::recv`].
    ///
    /// # Cancel safety
    /// As for [`Receiver::recv`]: no value is lost. What is in the buffer has been received.
    ///
    /// # Examples
    /// ```
    /// use tidegate_channel::{bounded, Operation};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (tx, rx) = bounded(8);
    /// tx.try_send_many(0..5).unwrap();
    /// let mut buffer = Vec::new();
    /// assert_eq!(rx.recv_many(&mut buffer, 3).wait()?, 3);
    /// assert_eq!(rx.recv_many(&mut buffer, 100).wait()?, 2);
    /// assert_eq!(buffer, [0, 1, 2, 3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn recv_many<'b>(&self, buffer: &'b mut Vec<T>, max: usize) -> ReceivingMany<'_, 'b, T> {
        ReceivingMany::new(self.channel, buffer, max)
    }

    /// Receives what is there, at most `max` values, and appends them to `buffer`. Returns how many.
    ///
    /// # Errors
    /// If there was nothing: [`RecvError::Empty`], [`RecvError::Closed`].
    pub fn try_recv_many(&self, buffer: &mut Vec<T>, max: usize) -> Result<usize, RecvError> {
        let before = buffer.len();
        match self.channel().try_receive_many(buffer, max) {
            Received::Value => Ok(buffer.len() - before),
            Received::Closed => Err(RecvError::Closed),
            Received::Empty => Err(RecvError::Empty),
        }
    }

    /// Takes what is buffered at the time of the call, and no more: it ends, however fast values come.
    pub fn drain(&self) -> Drain<'_, T> {
        Drain::new(self)
    }

    /// Closes the channel for both sides; see [`Sender::close`](crate::Sender::close).
    pub fn close(&self) -> bool {
        self.channel().close(Parked::GiveBack)
    }

    /// Closes the channel; see [`Sender::close_with`](crate::Sender::close_with).
    pub fn close_with(&self, parked: Parked) -> bool {
        self.channel().close(parked)
    }

    /// Waits until the channel is closed, by either side; values may still be buffered. See
    /// [`Sender::closed`](crate::Sender::closed).
    pub fn closed(&self) -> Closed<'_> {
        Closed::new(self.channel())
    }

    /// Is the channel closed? Values may still be buffered.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.channel().is_closed()
    }

    /// How many values are buffered, at some moment during the call: at most the capacity, beside deliveries that nobody
    /// took and parked sends that a close has admitted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.channel().len()
    }

    /// Is nothing buffered?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Is there no room? A channel of capacity 0 is always full, an unbounded one never, one that is bounded by weight also
    /// while somebody stands in line.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.channel().is_full()
    }

    /// Names the channel for the reports of Tidegate's runtime: what a task waits for, in a dump or a deadlock. Name and
    /// place of making are kept for the life of the process, once for each pair.
    #[cfg(feature = "std")]
    pub fn set_name(&self, name: &'static str) {
        let channel = self.channel();
        let origin = &channel.core().origin;
        origin.set(origin.get().named(name));
    }

    /// How many values the channel holds at most; `usize::MAX` if it is unbounded, or bounded by weight.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.channel().capacity()
    }

    /// How many sending halves there are.
    #[must_use]
    pub fn sender_count(&self) -> usize {
        self.channel().core().senders().get()
    }

    /// How many receiving halves there are.
    #[must_use]
    pub fn receiver_count(&self) -> usize {
        self.channel().core().receivers().get()
    }

    /// How many sends are parked.
    #[must_use]
    pub fn parked_senders(&self) -> usize {
        self.channel().parked_senders()
    }

    /// How many receives are parked.
    #[must_use]
    pub fn parked_receivers(&self) -> usize {
        self.channel().parked_receivers()
    }

    /// A half that does not keep the channel open.
    #[must_use]
    pub fn downgrade(&self) -> WeakReceiver<T> {
        WeakReceiver::new(self)
    }

    /// Are these halves of one channel?
    #[must_use]
    pub fn same_channel(&self, other: &Receiver<T>) -> bool {
        self.channel == other.channel
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.channel().core().receivers().add();
        Receiver { channel: self.channel, _values: PhantomData }
    }
}

impl<T> Drop for Receiver<T> {
    #[inline]
    fn drop(&mut self) {
        if self.channel().core().receivers().sub() {
            self.channel().close(Parked::GiveBack);
            self.channel().drain();
            // SAFETY: all receivers together have one reference on the memory, and this was the last of them.
            unsafe { self.channel().release() }
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.channel().debug("Receiver", f)
    }
}
