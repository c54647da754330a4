//! The sending half of a weighted channel.

use alloc::sync::Arc;
use core::fmt;
use core::mem::MaybeUninit;
use core::panic::{RefUnwindSafe, UnwindSafe};

use tidegate_wait::op::Unlimited;
use tidegate_wait::shim::UnsafeCell;

use crate::error::WeightedSendError;
use crate::flavor::bounded::{Closed, Parked, Sent};
use crate::hold::{Borrowed, Owned};
use crate::sender::Sender;
use crate::sending::Sending;
use crate::weak::WeakSender;
use crate::weight::Weighed;

/// A send into a weighted channel; made by [`WeightedSender::send`]. `T` + 48 bytes, and 24 for each limit.
pub type SendingWeighed<'a, T, L = Unlimited> = Sending<'a, T, L, Borrowed<'a>, Weighed>;

/// A send into a weighted channel with a half of its own; made by [`WeightedSender::into_send`].
pub type OwnedSendingWeighed<T, L = Unlimited> = Sending<'static, T, L, Owned, Weighed>;

type Weigh<T> = Arc<dyn Fn(&T) -> u64 + Send + Sync>;

/// The sending half of a channel whose limit is a sum of weights; made by [`bounded_by`](crate::bounded_by). Clones are
/// halves of the same channel; when the last one goes, the channel closes.
pub struct WeightedSender<T> {
    // First: what the last half does to the channel comes before the weigher's destructor.
    sender: Sender<T>,
    weigh: Weigh<T>,
}

// As for other halves; the weigher runs before anything else does, and a panic of it is a panic of the caller's.
impl<T> UnwindSafe for WeightedSender<T> {}
impl<T> RefUnwindSafe for WeightedSender<T> {}

impl<T> WeightedSender<T> {
    pub(crate) fn new(sender: Sender<T>, weigh: Weigh<T>) -> WeightedSender<T> {
        WeightedSender { sender, weigh }
    }

    /// The weight that the channel counts: at least 1, or values of no weight would take memory without a limit.
    fn weight_of(&self, value: &T) -> u64 {
        (self.weigh)(value).max(1)
    }

    /// Sends `value`; waits while there is no room for its weight.
    ///
    /// The weigher runs now, once; a weight of 0 counts as 1. Parked sends are admitted in the order in which they parked;
    /// nobody passes them, however little it weighs.
    ///
    /// # Errors
    /// The value comes back in each: [`WeightedSendError::TooHeavy`] at once, if it weighs more than the limit;
    /// [`WeightedSendError::Closed`]; with limits on the operation, [`WeightedSendError::TimedOut`] and
    /// [`WeightedSendError::Cancelled`].
    ///
    /// # Panics
    /// If the weigher does; nothing has happened to the channel.
    ///
    /// # Cancel safety
    /// A send that is dropped drops its value, unless it was delivered before; it loses its place. [`Sending::withdraw`], a
    /// time-out and a token give the value back. Whoever stood behind it goes on at once, if there is room for it.
    /// Retrying is a new send, at the end of the line.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tidegate_channel::{bounded_by, Operation, WeightedSendError};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (tx, rx) = bounded_by(8, |message: &String| message.len() as u64);
    /// tx.send("five!".to_owned()).wait()?;
    /// let late = tx.send("four".to_owned()).timeout(Duration::from_millis(1)).wait();
    /// assert_eq!(late, Err(WeightedSendError::TimedOut("four".to_owned())));
    /// let never = tx.send("much too long".to_owned()).wait().unwrap_err();
    /// assert_eq!(never.to_string(), "the value was not sent: it weighs 13, and the limit of the channel is 8");
    /// assert_eq!(rx.recv().wait()?, "five!");
    /// # Ok(())
    /// # }
    /// ```
    pub fn send(&self, value: T) -> SendingWeighed<'_, T> {
        let weight = self.weight_of(&value);
        Sending::weighed(self.sender.channel().as_ptr(), value, weight)
    }

    /// A send that has this half as its own: `'static` if `T` is. Clone the half first to keep one.
    ///
    /// The half goes with the operation, so the channel stays open until the operation is dropped.
    ///
    /// # Panics
    /// If the weigher does; the half is gone then, as if it had been dropped.
    pub fn into_send(self, value: T) -> OwnedSendingWeighed<T> {
        let weight = self.weight_of(&value);
        Sending::weighed(self.sender.into_raw(), value, weight)
    }

    /// Sends `value` if there is room for its weight and nobody stands in line, or a receive waits; never waits, except for
    /// a copy in progress.
    ///
    /// # Errors
    /// The value comes back: [`WeightedSendError::Full`], [`WeightedSendError::Closed`], [`WeightedSendError::TooHeavy`].
    ///
    /// # Panics
    /// If the weigher does; nothing has happened to the channel.
    pub fn try_send(&self, value: T) -> Result<(), WeightedSendError<T>> {
        let (weight, limit) = (self.weight_of(&value), self.limit());
        if weight > limit {
            return Err(WeightedSendError::TooHeavy { value, weight, limit });
        }
        let value = UnsafeCell::new(MaybeUninit::new(value));
        // SAFETY: the channel is weighted, and the weight allowed; the value is taken back unless it has been moved.
        unsafe {
            let back = || value.with(|value| (*value).assume_init_read());
            match self.sender.channel().try_send_weighed(&value, weight) {
                Sent::Done => Ok(()),
                Sent::Full => Err(WeightedSendError::Full(back())),
                Sent::Closed => Err(WeightedSendError::Closed(back())),
            }
        }
    }

    /// The largest sum of weights that the channel buffers.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.sender.channel().limit()
    }

    /// The sum of the weights of what is buffered, at some moment during the call: never more than the limit. A delivery
    /// that nobody took, and a parked send that a close has admitted, weigh nothing.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.sender.channel().used()
    }

    /// Closes the channel for both sides; see [`Sender::close`].
    pub fn close(&self) -> bool {
        self.sender.close()
    }

    /// Closes the channel, with a choice of what becomes of parked sends; see [`Sender::close_with`]. Those that it admits
    /// are admitted beyond the limit.
    pub fn close_with(&self, parked: Parked) -> bool {
        self.sender.close_with(parked)
    }

    /// Waits until the channel is closed, by either side; see [`Sender::closed`].
    pub fn closed(&self) -> Closed<'_> {
        self.sender.closed()
    }

    /// Is the channel closed?
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// How many values are buffered, at some moment during the call.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sender.len()
    }

    /// Is nothing buffered?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sender.is_empty()
    }

    /// Is there no room, not even for the lightest value? Also while somebody stands in line: nobody passes.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.sender.is_full()
    }

    /// How many sending halves there are.
    #[must_use]
    pub fn sender_count(&self) -> usize {
        self.sender.sender_count()
    }

    /// How many receiving halves there are.
    #[must_use]
    pub fn receiver_count(&self) -> usize {
        self.sender.receiver_count()
    }

    /// How many sends are parked.
    #[must_use]
    pub fn parked_senders(&self) -> usize {
        self.sender.parked_senders()
    }

    /// How many receives are parked.
    #[must_use]
    pub fn parked_receivers(&self) -> usize {
        self.sender.parked_receivers()
    }

    /// A half that does not keep the channel open. (It keeps the weigher.)
    #[must_use]
    pub fn downgrade(&self) -> WeakWeightedSender<T> {
        WeakWeightedSender { sender: self.sender.downgrade(), weigh: self.weigh.clone() }
    }

    /// Are these halves of one channel?
    #[must_use]
    pub fn same_channel(&self, other: &WeightedSender<T>) -> bool {
        self.sender.same_channel(&other.sender)
    }
}

impl<T> Clone for WeightedSender<T> {
    fn clone(&self) -> Self {
        WeightedSender { sender: self.sender.clone(), weigh: self.weigh.clone() }
    }
}

impl<T> fmt::Debug for WeightedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (weight, limit) = (self.weight(), self.limit());
        f.debug_struct("WeightedSender")
            .field("weight", &weight)
            .field("limit", &limit)
            .field("sender", &self.sender)
            .finish_non_exhaustive()
    }
}

/// A sending half of a weighted channel that does not keep it open; made by [`WeightedSender::downgrade`].
pub struct WeakWeightedSender<T> {
    sender: WeakSender<T>,
    weigh: Weigh<T>,
}

impl<T> UnwindSafe for WeakWeightedSender<T> {}
impl<T> RefUnwindSafe for WeakWeightedSender<T> {}

impl<T> WeakWeightedSender<T> {
    /// A half, if there is still another one. `None` for ever once the last one has gone.
    #[must_use]
    pub fn upgrade(&self) -> Option<WeightedSender<T>> {
        Some(WeightedSender { sender: self.sender.upgrade()?, weigh: self.weigh.clone() })
    }
}

impl<T> Clone for WeakWeightedSender<T> {
    fn clone(&self) -> Self {
        WeakWeightedSender { sender: self.sender.clone(), weigh: self.weigh.clone() }
    }
}

impl<T> fmt::Debug for WeakWeightedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakWeightedSender").field("sender", &self.sender).finish_non_exhaustive()
    }
}
