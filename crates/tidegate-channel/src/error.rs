//! What an operation on a channel may return instead of success: one type a side, the value inside.

use alloc::vec::Vec;
use core::error::Error;
use core::fmt;

/// A send that did not happen. The value is inside, unmoved in meaning: [`SendError::into_inner`] takes it back.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SendError<T> {
    /// The channel was closed, or all its receivers are gone.
    Closed(T),
    /// The time limit of the operation ran out.
    TimedOut(T),
    /// The token of the operation was cancelled.
    Cancelled(T),
    /// There is no room now. Only a `try_send` says so, and permits of which none is left.
    Full(T),
}

impl<T> SendError<T> {
    /// The value that was not sent.
    #[must_use]
    pub fn into_inner(self) -> T {
        match self {
            SendError::Closed(value)
            | SendError::TimedOut(value)
            | SendError::Cancelled(value)
            | SendError::Full(value) => value,
        }
    }

    /// Was the channel closed?
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, SendError::Closed(_))
    }

    /// Did time run out?
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, SendError::TimedOut(_))
    }

    /// Was a token cancelled?
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self, SendError::Cancelled(_))
    }

    /// Was there no room?
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, SendError::Full(_))
    }

    fn name(&self) -> &'static str {
        match self {
            SendError::Closed(_) => "Closed",
            SendError::TimedOut(_) => "TimedOut",
            SendError::Cancelled(_) => "Cancelled",
            SendError::Full(_) => "Full",
        }
    }
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.name()).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendError::Closed(_) => "the value was not sent: the channel is closed",
            SendError::TimedOut(_) => "the value was not sent: the time limit ran out while the channel was full",
            SendError::Cancelled(_) => "the value was not sent: the token of the send was cancelled",
            SendError::Full(_) => "the value was not sent: the channel is full",
        })
    }
}

impl<T> Error for SendError<T> {}

/// A send into a weighted channel that did not happen. The value is inside.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WeightedSendError<T> {
    /// The channel was closed, or all its receivers are gone.
    Closed(T),
    /// The time limit of the operation ran out.
    TimedOut(T),
    /// The token of the operation was cancelled.
    Cancelled(T),
    /// There is no room for its weight now, or others stand in line. Only a `try_send` says so.
    Full(T),
    /// It weighs more than the channel may hold: there will never be room for it.
    TooHeavy {
        /// The value.
        value: T,
        /// What it weighs.
        weight: u64,
        /// The limit of the channel.
        limit: u64,
    },
}

impl<T> WeightedSendError<T> {
    /// The value that was not sent.
    #[must_use]
    pub fn into_inner(self) -> T {
        match self {
            WeightedSendError::Closed(value)
            | WeightedSendError::TimedOut(value)
            | WeightedSendError::Cancelled(value)
            | WeightedSendError::Full(value)
            | WeightedSendError::TooHeavy { value, .. } => value,
        }
    }

    /// Was the channel closed?
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, WeightedSendError::Closed(_))
    }

    /// Did time run out?
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, WeightedSendError::TimedOut(_))
    }

    /// Was a token cancelled?
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self, WeightedSendError::Cancelled(_))
    }

    /// Was there no room?
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, WeightedSendError::Full(_))
    }

    /// Will there never be room?
    #[must_use]
    pub fn is_too_heavy(&self) -> bool {
        matches!(self, WeightedSendError::TooHeavy { .. })
    }

    /// The same without the value, for what a send into any channel says; `None`: too heavy.
    fn plain(&self) -> Option<SendError<()>> {
        Some(match self {
            WeightedSendError::Closed(_) => SendError::Closed(()),
            WeightedSendError::TimedOut(_) => SendError::TimedOut(()),
            WeightedSendError::Cancelled(_) => SendError::Cancelled(()),
            WeightedSendError::Full(_) => SendError::Full(()),
            WeightedSendError::TooHeavy { .. } => return None,
        })
    }
}

impl<T> From<SendError<T>> for WeightedSendError<T> {
    fn from(error: SendError<T>) -> Self {
        match error {
            SendError::Closed(value) => WeightedSendError::Closed(value),
            SendError::TimedOut(value) => WeightedSendError::TimedOut(value),
            SendError::Cancelled(value) => WeightedSendError::Cancelled(value),
            SendError::Full(value) => WeightedSendError::Full(value),
        }
    }
}

impl<T> fmt::Debug for WeightedSendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.plain()) {
            (WeightedSendError::TooHeavy { weight, limit, .. }, _) => {
                f.debug_struct("TooHeavy").field("weight", weight).field("limit", limit).finish_non_exhaustive()
            }
            (_, plain) => plain.map_or(Ok(()), |plain| fmt::Debug::fmt(&plain, f)),
        }
    }
}

impl<T> fmt::Display for WeightedSendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.plain()) {
            (WeightedSendError::TooHeavy { weight, limit, .. }, _) => {
                write!(f, "the value was not sent: it weighs {weight}, and the limit of the channel is {limit}")
            }
            (_, plain) => plain.map_or(Ok(()), |plain| fmt::Display::fmt(&plain, f)),
        }
    }
}

impl<T> Error for WeightedSendError<T> {}

/// What a batch left unsent; in a [`SendError`], the value of a `send_many`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Unsent<T> {
    /// How many values were sent: the first ones.
    pub sent: usize,
    /// The others, in order.
    pub rest: Vec<T>,
}

impl<T> fmt::Debug for Unsent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unsent").field("sent", &self.sent).field("rest", &self.rest.len()).finish()
    }
}

/// A reservation that got no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReserveError {
    /// The channel was closed, or all its receivers are gone.
    Closed,
    /// The time limit of the operation ran out.
    TimedOut,
    /// The token of the operation was cancelled.
    Cancelled,
    /// There is no room now. Only a `try_reserve` says so.
    Full,
    /// The channel has no slots that could be reserved: its capacity is 0.
    Rendezvous,
    /// More slots than the channel has: so many will never be free. Only a reservation of many says so.
    TooMany {
        /// How many were to be reserved.
        wanted: usize,
        /// How many there are at most.
        capacity: usize,
    },
}

impl ReserveError {
    /// Was the channel closed?
    #[must_use]
    pub fn is_closed(self) -> bool {
        self == ReserveError::Closed
    }

    /// Did time run out?
    #[must_use]
    pub fn is_timeout(self) -> bool {
        self == ReserveError::TimedOut
    }

    /// Was a token cancelled?
    #[must_use]
    pub fn is_cancelled(self) -> bool {
        self == ReserveError::Cancelled
    }

    /// Was there no room?
    #[must_use]
    pub fn is_full(self) -> bool {
        self == ReserveError::Full
    }
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReserveError::TooMany { wanted, capacity } => {
                return write!(f, "no slot was reserved: the channel has {capacity}, and {wanted} were wanted")
            }
            ReserveError::Closed => "no slot was reserved: the channel is closed",
            ReserveError::TimedOut => "no slot was reserved: the time limit ran out while the channel was full",
            ReserveError::Cancelled => "no slot was reserved: the token of the reservation was cancelled",
            ReserveError::Full => "no slot was reserved: the channel is full",
            ReserveError::Rendezvous => "no slot was reserved: a channel of capacity 0 has none",
        })
    }
}

impl Error for ReserveError {}

/// A receive that got nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecvError {
    /// The channel is closed and drained: no value will come.
    Closed,
    /// The time limit of the operation ran out.
    TimedOut,
    /// The token of the operation was cancelled.
    Cancelled,
    /// There is nothing now. Only a `try_recv` says so.
    Empty,
}

impl RecvError {
    /// Is the channel closed and drained?
    #[must_use]
    pub fn is_closed(self) -> bool {
        self == RecvError::Closed
    }

    /// Did time run out?
    #[must_use]
    pub fn is_timeout(self) -> bool {
        self == RecvError::TimedOut
    }

    /// Was a token cancelled?
    #[must_use]
    pub fn is_cancelled(self) -> bool {
        self == RecvError::Cancelled
    }

    /// Was there nothing?
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == RecvError::Empty
    }
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecvError::Closed => "the channel is closed and drained",
            RecvError::TimedOut => "no value came before the time limit ran out",
            RecvError::Cancelled => "the token of the receive was cancelled",
            RecvError::Empty => "the channel is empty",
        })
    }
}

impl Error for RecvError {}

/// A channel that can't be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CapacityError {
    /// More than 2^48 values.
    TooMany,
    /// The ring would be larger than an allocation may be.
    Layout,
    /// The allocator has no memory for the ring.
    OutOfMemory,
    /// The limit of a weighted channel is 0: no value fits.
    NoWeight,
}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CapacityError::TooMany => "the capacity of a bounded channel is at most 2^48 (281,474,976,710,656) values",
            CapacityError::Layout => "a ring of this capacity and payload is larger than an allocation may be",
            CapacityError::NoWeight => "the limit of a weighted channel is at least 1: every value weighs as much",
            CapacityError::OutOfMemory => "there is no memory for a ring of this capacity",
        })
    }
}

impl Error for CapacityError {}
