//! The sending half.

use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr::NonNull;

use tidegate_wait::shim::UnsafeCell;

use crate::error::{ReserveError, SendError, Unsent};
use crate::flavor::bounded::{Batch, Channel, Closed, Handle, Parked, Reserved, Sent};
use crate::permit::Permit;
use crate::permits::Permits;
use crate::reserving::{OwnedReserving, Reserving};
use crate::reserving_many::{take, OwnedReservingMany, ReservingMany};
use crate::send_with::SendingWith;
use crate::sending::{OwnedSending, Sending};
use crate::sending_many::SendingMany;
use crate::weak::WeakSender;

/// The sending half of a channel. Clones are halves of the same channel; when the last one goes, the channel closes.
pub struct Sender<T> {
    channel: NonNull<Channel<T>>,
    _values: PhantomData<T>,
}

// SAFETY: a half is a counted reference on a `Channel<T>`, which is `Send` and `Sync` for `T: Send`.
unsafe impl<T: Send> Send for Sender<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Sender<T> {}

// A half holds no value in place, and a panic leaves the channel whole: user code runs outside its locks only.
impl<T> Unpin for Sender<T> {}
impl<T> UnwindSafe for Sender<T> {}
impl<T> RefUnwindSafe for Sender<T> {}

impl<T> Sender<T> {
    /// # Safety
    /// The channel's count of senders includes this half.
    pub(crate) unsafe fn from_raw(channel: NonNull<Channel<T>>) -> Sender<T> {
        Sender { channel, _values: PhantomData }
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

    /// Sends `value`; waits while the channel is full. (An unbounded one never is.)
    ///
    /// Parked sends are admitted in the order in which they parked; nobody passes them.
    ///
    /// # Errors
    /// The value comes back in each: [`SendError::Closed`]; with limits on the operation, [`SendError::TimedOut`] and
    /// [`SendError::Cancelled`].
    ///
    /// # Cancel safety
    /// A send that is dropped drops its value, unless it was delivered before; it loses its place.
    /// [`Sending::withdraw`], a time-out and a token give the value back. Retrying is a new send, at the end of the line.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tidegate_channel::{bounded, Operation, SendError};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (tx, rx) = bounded(1);
    /// tx.send("first").wait()?;
    /// let late = tx.send("second").timeout(Duration::from_millis(1)).wait();
    /// assert_eq!(late, Err(SendError::TimedOut("second")));
    /// assert_eq!(rx.recv().wait()?, "first");
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn send(&self, value: T) -> Sending<'_, T> {
        Sending::new(self.channel, value)
    }

    /// A send that has this half as its own: `'static` if `T` is. Clone the half first to keep one.
    ///
    /// The half goes with the operation, so the channel stays open until the operation is dropped.
    #[inline]
    pub fn into_send(self, value: T) -> OwnedSending<T> {
        Sending::new(self.into_raw(), value)
    }

    /// Sends `value` if there is room or a receive waits; never waits, except for a copy in progress.
    ///
    /// # Errors
    /// The value comes back: [`SendError::Full`], [`SendError::Closed`].
    // Left to the compiler, one caller more made a call of it, 20 instructions longer. But a debug build would keep room for
    // the value in each caller.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn try_send(&self, value: T) -> Result<(), SendError<T>> {
        let value = UnsafeCell::new(MaybeUninit::new(value));
        let channel = self.channel();
        // SAFETY: the value is taken back unless it has been moved.
        unsafe {
            if channel.send_fast(&value) {
                return Ok(());
            }
            let back = || value.with(|value| (*value).assume_init_read());
            match channel.try_send_slow(&value) {
                Sent::Done => Ok(()),
                Sent::Full => Err(SendError::Full(back())),
                Sent::Closed => Err(SendError::Closed(back())),
            }
        }
    }

    /// A send whose value `build` makes when the operation is first polled, in the operation's own place: a large value is
    /// not moved before it is sent.
    ///
    /// `build` runs exactly once, before anything else, so every error has a value to give back; it does not run if the
    /// operation is dropped unpolled. If it panics, nothing has happened to the channel.
    ///
    /// # Errors
    /// As for [`Sender::send`].
    ///
    /// # Cancel safety
    /// As for [`Sender::send`].
    ///
    /// # Examples
    /// ```
    /// use tidegate_channel::{bounded, Operation};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (tx, rx) = bounded(1);
    /// tx.send_with(|| [7_u8; 4096]).wait()?;
    /// assert_eq!(rx.recv().wait()?, [7; 4096]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn send_with<F: FnOnce() -> T>(&self, build: F) -> SendingWith<'_, T, F> {
        SendingWith::new(self.channel, build)
    }

    /// Sends all of `items`, in order; waits while the channel is full.
    ///
    /// The items are put into a vector first, by this call. Where there is room for several, one step claims it; a batch
    /// that has to wait keeps its place in line until its last value has gone. Values of others may come in between.
    ///
    /// # Errors
    /// The unsent values come back in each, with how many were sent: [`SendError::Closed`]; with limits on the operation,
    /// [`SendError::TimedOut`] and [`SendError::Cancelled`].
    ///
    /// # Panics
    /// As the iterator does; with 2^63 values and more, which only those without a size can be. Nothing has been sent then.
    ///
    /// # Cancel safety
    /// A batch that is dropped drops its unsent values, and loses its place. [`SendingMany::withdraw`], a time-out and a
    /// token give them back.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tidegate_channel::{bounded, Operation, SendError};
    ///
    /// let (tx, rx) = bounded(3);
    /// let late = tx.send_many(0..5).timeout(Duration::from_millis(1)).wait();
    /// let Err(SendError::TimedOut(unsent)) = late else { panic!("there was no room for five") };
    /// assert_eq!((unsent.sent, unsent.rest), (3, vec![3, 4]));
    /// assert_eq!(rx.try_iter().collect::<Vec<_>>(), [0, 1, 2]);
    /// ```
    pub fn send_many(&self, items: impl IntoIterator<Item = T>) -> SendingMany<'_, T> {
        SendingMany::new(self.channel, items)
    }

    /// Sends of `items`, in order, what there is room for now.
    ///
    /// # Errors
    /// The unsent values come back, with how many were sent: [`SendError::Full`], [`SendError::Closed`].
    pub fn try_send_many(&self, items: impl IntoIterator<Item = T>) -> Result<usize, SendError<Unsent<T>>> {
        let mut batch = Batch::new(items);
        // SAFETY: the batch is ours.
        let sent = unsafe { self.channel().try_send_batch(&mut batch) };
        let unsent = Unsent { sent: batch.sent(), rest: batch.take_rest() };
        match sent {
            Sent::Done => Ok(unsent.sent),
            Sent::Full => Err(SendError::Full(unsent)),
            Sent::Closed => Err(SendError::Closed(unsent)),
        }
    }

    /// Reserves a slot, for a value that comes later; waits while the channel is full. In an unbounded channel a permit
    /// is a promise only: receivers see the end of a closed channel after the last one.
    ///
    /// Reservations stand in line with sends. The order of values is that of [`Permit::send`], not of the reservations.
    /// While permits are out, every send takes the channel's lock: hold them for as long as it takes to make a value.
    ///
    /// # Errors
    /// [`ReserveError::Closed`]; [`ReserveError::Rendezvous`] at once, if the capacity is 0; with limits on the operation,
    /// [`ReserveError::TimedOut`] and [`ReserveError::Cancelled`].
    ///
    /// # Cancel safety
    /// A reservation that is dropped loses its place; a permit that it had been given goes to the next in line. Retrying
    /// is a new reservation, at the end of the line.
    ///
    /// # Examples
    /// ```
    /// use tidegate_channel::{bounded, Operation, SendError};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (tx, rx) = bounded(1);
    /// let permit = tx.reserve().wait()?;
    /// assert_eq!(tx.try_send("no room"), Err(SendError::Full("no room")));
    /// permit.send("the slot was kept")?;
    /// assert_eq!(rx.recv().wait()?, "the slot was kept");
    /// # Ok(())
    /// # }
    /// ```
    pub fn reserve(&self) -> Reserving<'_, T> {
        Reserving::new(self.channel)
    }

    /// A reservation that has this half as its own; so has the permit that it returns.
    pub fn into_reserve(self) -> OwnedReserving<T> {
        Reserving::new(self.into_raw())
    }

    /// Reserves a slot if there is room now.
    ///
    /// # Errors
    /// [`ReserveError::Full`], [`ReserveError::Closed`], [`ReserveError::Rendezvous`].
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, ReserveError> {
        match self.channel().try_reserve(1) {
            // SAFETY: the permit has just been taken.
            Reserved::Done => Ok(unsafe { Permit::from_raw(self.channel) }),
            Reserved::Closed => Err(ReserveError::Closed),
            Reserved::Full if self.capacity() == 0 => Err(ReserveError::Rendezvous),
            Reserved::Full => Err(ReserveError::Full),
        }
    }

    /// Reserves `slots` slots at once, for values that come later; waits until it has all of them.
    ///
    /// Reservations stand in line with sends, and nobody passes them: the first in line collects the slots that become
    /// free until it has as many as it wants. With `slots` 0: no permits, at once, whatever the state of the channel is.
    /// Otherwise as for [`reserve`](Sender::reserve).
    ///
    /// # Errors
    /// As for [`reserve`](Sender::reserve), and [`ReserveError::TooMany`] at once, if the channel has not so many slots.
    /// (An unbounded one counts 2^48.)
    ///
    /// # Cancel safety
    /// A reservation that is dropped, timed out or cancelled loses its place; the slots that it had collected go to the
    /// next in line at once, and so do permits that it had been given. Retrying is a new reservation, at the end of the
    /// line.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tidegate_channel::{bounded, Operation, ReserveError};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (tx, rx) = bounded(4);
    /// tx.try_send(0)?;
    /// let late = tx.reserve_many(4).timeout(Duration::from_millis(1)).wait();
    /// assert_eq!(late.unwrap_err(), ReserveError::TimedOut);
    /// let mut permits = tx.reserve_many(3).wait()?;
    /// for n in 1..=3 {
    ///     permits.send(n)?;
    /// }
    /// assert_eq!(rx.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    /// let refused = tx.reserve_many(5).wait().unwrap_err();
    /// assert_eq!(refused, ReserveError::TooMany { wanted: 5, capacity: 4 });
    /// # Ok(())
    /// # }
    /// ```
    pub fn reserve_many(&self, slots: usize) -> ReservingMany<'_, T> {
        ReservingMany::new(self.channel, slots)
    }

    /// A reservation of many slots that has this half as its own; so have the permits that it returns.
    pub fn into_reserve_many(self, slots: usize) -> OwnedReservingMany<T> {
        ReservingMany::new(self.into_raw(), slots)
    }

    /// Reserves so many slots if there is room for all of them now.
    ///
    /// # Errors
    /// [`ReserveError::Full`], [`ReserveError::Closed`], [`ReserveError::Rendezvous`], [`ReserveError::TooMany`].
    pub fn try_reserve_many(&self, slots: usize) -> Result<Permits<'_, T>, ReserveError> {
        take(self.channel(), slots as u64)?;
        // SAFETY: the permits have just been taken.
        Ok(unsafe { Permits::from_raw(self.channel, slots) })
    }

    /// Closes the channel for both sides: parked sends get their values back, in order; what is buffered can still be
    /// received; then receivers see the end. False: it was closed already.
    ///
    /// # Examples
    /// ```
    /// use tidegate_channel::{bounded, RecvError, SendError};
    ///
    /// let (tx, rx) = bounded(4);
    /// tx.try_send("buffered").unwrap();
    /// assert!(tx.close());
    /// assert_eq!(tx.try_send("late"), Err(SendError::Closed("late")));
    /// assert_eq!(rx.try_recv(), Ok("buffered"));
    /// assert_eq!(rx.try_recv(), Err(RecvError::Closed));
    /// ```
    pub fn close(&self) -> bool {
        self.channel().close(Parked::GiveBack)
    }

    /// [`close`](Sender::close), with a choice of what becomes of parked sends.
    ///
    /// With [`Parked::Admit`] they succeed, in order, beyond the capacity; receivers get their values after the buffered
    /// ones. Each costs an allocation, unless a receive is parked. If no receiver is left, they get their values back.
    ///
    /// Receivers see the end when all of them are in. So a waker that this call runs must not block on a receive: what
    /// it waits for would be let in by the thread that it blocks.
    ///
    /// # Examples
    /// ```
    /// use std::pin::pin;
    /// use tidegate_channel::{bounded, Operation, Parked, RecvError};
    /// use tidegate_wait::op::poll_once;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (tx, rx) = bounded(1);
    /// tx.try_send(1)?;
    /// let mut parked = pin!(tx.send(2));
    /// assert!(poll_once(parked.as_mut()).is_pending());
    /// tx.close_with(Parked::Admit);
    /// assert!(poll_once(parked).is_ready());
    /// assert_eq!((rx.recv().wait()?, rx.recv().wait()?), (1, 2));
    /// assert_eq!(rx.recv().wait(), Err(RecvError::Closed));
    /// # Ok(())
    /// # }
    /// ```
    pub fn close_with(&self, parked: Parked) -> bool {
        self.channel().close(parked)
    }

    /// Waits until the channel is closed, by either side.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tidegate_channel::{bounded, Operation};
    ///
    /// let (tx, rx) = bounded::<u8>(1);
    /// assert!(tx.closed().timeout(Duration::from_millis(1)).wait().is_err());
    /// drop(rx);
    /// tx.closed().wait();
    /// ```
    pub fn closed(&self) -> Closed<'_> {
        Closed::new(self.channel())
    }

    /// Is the channel closed?
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

    /// Is there no room? A channel of capacity 0 is always full, an unbounded one never.
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

    /// How many values the channel holds at most; `usize::MAX` if it is unbounded.
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
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender::new(self)
    }

    /// Are these halves of one channel?
    #[must_use]
    pub fn same_channel(&self, other: &Sender<T>) -> bool {
        self.channel == other.channel
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.channel().core().senders().add();
        Sender { channel: self.channel, _values: PhantomData }
    }
}

impl<T> Drop for Sender<T> {
    #[inline]
    fn drop(&mut self) {
        if self.channel().core().senders().sub() {
            self.channel().close(Parked::GiveBack);
            // SAFETY: all senders together have one reference on the memory, and this was the last of them.
            unsafe { self.channel().release() }
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.channel().debug("Sender", f)
    }
}
