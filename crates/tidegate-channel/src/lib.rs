//! Channels in which waiting is cheap.
//!
//! A blocked operation costs its payload plus a few words inside its own future, allocates nothing, ends in O(1)
//! however it ends, and never loses a value: it is received, or handed back. [`bounded`], [`rendezvous`],
//! [`unbounded`] and [`bounded_by`] (a limit in bytes, or any weight) make channels;
//! [`Sender::send`] and [`Receiver::recv`] are operations: futures that take limits ([`Operation::timeout`],
//! [`Operation::cancel_on`]) and can block a thread instead ([`Operation::wait`]). [`oneshot`] is for a single value.
//!
//! # Examples
//! ```
//! use std::time::Duration;
//! use tidegate_channel::{bounded, Operation};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (tx, rx) = bounded(2);
//! let sender = std::thread::spawn(move || (0..10).try_for_each(|n| tx.send(n).wait()));
//! let mut sum = 0;
//! while let Ok(n) = rx.recv().timeout(Duration::from_secs(10)).wait() {
//!     sum += n;
//! }
//! sender.join().unwrap()?;
//! assert_eq!(sum, 45);
//! # Ok(())
//! # }
//! ```
//!
//! # Leaked operations
//! An operation that is forgotten while it is parked (`mem::forget`) may swallow one turn: a value that is handed to a
//! forgotten receive is never seen; slots that a forgotten reservation collects stay with it until it is ended by a limit or a
//! close. Once it has all of them they are permits that nobody has: their slots are gone, and a closed channel does not end.
//! Memory stays safe.

#![cfg_attr(not(any(feature = "std", loom)), no_std)]

extern crate alloc;

mod drain;
mod error;
mod flavor;
mod hold;
#[cfg(feature = "std")]
mod iter;
pub mod oneshot;
mod permit;
mod permits;
mod receiver;
mod receiving;
mod receiving_many;
mod reserving;
mod reserving_many;
mod send_with;
mod sender;
mod sending;
mod sending_many;
#[cfg(feature = "sink")]
mod sink;
mod stream;
mod weak;
mod weight;
mod weighted_sender;

pub use drain::Drain;
pub use error::{CapacityError, RecvError, ReserveError, SendError, Unsent, WeightedSendError};
pub use flavor::bounded::{Closed, Parked};
pub use hold::{Borrowed, Hold, Owned};
#[cfg(feature = "std")]
pub use iter::{IntoIter, Iter, TryIter};
pub use permit::{OwnedPermit, Permit};
pub use permits::{OwnedPermits, Permits};
pub use receiver::Receiver;
pub use receiving::{OwnedReceiving, Receiving};
pub use receiving_many::ReceivingMany;
pub use reserving::{OwnedReserving, Reserving};
pub use reserving_many::{OwnedReservingMany, ReservingMany};
pub use send_with::SendingWith;
pub use sender::Sender;
pub use sending::{OwnedSending, Sending};
pub use sending_many::SendingMany;
#[cfg(feature = "sink")]
pub use sink::{OwnedSendSink, SendSink};
pub use stream::{OwnedRecvStream, RecvStream};
pub use tidegate_wait::Operation;
pub use weak::{WeakReceiver, WeakSender};
pub use weight::{Weighed, Weight};
pub use weighted_sender::{OwnedSendingWeighed, SendingWeighed, WeakWeightedSender, WeightedSender};

use core::panic::Location;
use core::ptr::NonNull;

use flavor::bounded::{Channel, Handle};
use tidegate_wait::origin::Origin;

/// A channel that buffers up to `capacity` values; with capacity 0 a [`rendezvous`].
///
/// Allocates once: the channel, its slots, and nothing ever after (but for values that come back from dropped receives, or
/// are admitted by [`Sender::close_with`]).
///
/// # Panics
/// When `capacity` is more than 2^48, or the ring is too large to allocate; [`try_bounded`] returns these as errors.
#[track_caller]
#[must_use]
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    match try_bounded(capacity) {
        Ok(halves) => halves,
        Err(error) => panic!("bounded({capacity}): {error}"),
    }
}

/// [`bounded`], with the failures as values.
///
/// # Errors
/// See [`CapacityError`].
#[track_caller]
pub fn try_bounded<T>(capacity: usize) -> Result<(Sender<T>, Receiver<T>), CapacityError> {
    Channel::create(capacity, 0).map(halves(Location::caller()))
}

/// A channel without a buffer: a send succeeds when a receive has its value.
///
/// # Panics
/// When there is no memory for the channel itself (some hundred bytes).
///
/// # Examples
/// ```
/// use tidegate_channel::{rendezvous, Operation, SendError};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (tx, rx) = rendezvous();
/// assert_eq!(tx.try_send(1), Err(SendError::Full(1)), "nobody receives");
/// let receiver = std::thread::spawn(move || rx.recv().wait());
/// tx.send(2).wait()?;
/// assert_eq!(receiver.join().unwrap()?, 2);
/// # Ok(())
/// # }
/// ```
#[track_caller]
#[must_use]
pub fn rendezvous<T>() -> (Sender<T>, Receiver<T>) {
    bounded(0)
}

/// A channel that buffers values up to a sum of weights: of bytes, of rows, of whatever `weigh` counts.
///
/// `weigh` is asked once for each send, when the operation is made, before anything happens to the channel. A weight of 0
/// counts as 1, so `limit` limits the number of values, too; a value that weighs more than `limit` is refused at once. The
/// sum of the weights of what is buffered is never more than `limit`. A value that goes from hand to hand, to a receive
/// that waits for it, is not buffered.
///
/// Parked sends are admitted in the order in which they parked: a heavy one that waits for room is not passed by lighter
/// ones. Every send and receive takes the channel's lock; where all messages weigh about the same, [`bounded`] is faster.
///
/// Values stand in blocks of up to 64, as in an [`unbounded`] channel.
///
/// # Panics
/// When `limit` is 0; [`try_bounded_by`] returns this as an error.
///
/// # Examples
/// ```
/// use tidegate_channel::{bounded_by, Operation, WeightedSendError};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (tx, rx) = bounded_by(1_000, |packet: &Vec<u8>| packet.len() as u64);
/// tx.send(vec![0; 600]).wait()?;
/// tx.send(vec![1; 400]).wait()?;
/// assert_eq!((tx.weight(), tx.len()), (1_000, 2));
/// assert!(tx.try_send(vec![2; 1]).unwrap_err().is_full());
/// assert_eq!(rx.recv().wait()?.len(), 600);
/// tx.send(vec![2; 1]).wait()?;
/// let refused = tx.send(vec![3; 1_001]).wait();
/// assert!(matches!(refused, Err(WeightedSendError::TooHeavy { weight: 1_001, limit: 1_000, .. })));
/// # Ok(())
/// # }
/// ```
#[track_caller]
#[must_use]
pub fn bounded_by<T>(
    limit: u64,
    weigh: impl Fn(&T) -> u64 + Send + Sync + 'static,
) -> (WeightedSender<T>, Receiver<T>) {
    match try_bounded_by(limit, weigh) {
        Ok(halves) => halves,
        Err(error) => panic!("bounded_by({limit}): {error}"),
    }
}

/// [`bounded_by`], with the failures as values.
///
/// # Errors
/// [`CapacityError::NoWeight`]; [`CapacityError::OutOfMemory`] for the channel itself. (The weigher and the account are small
/// allocations beside it, which end like any other when there is no memory.)
#[track_caller]
pub fn try_bounded_by<T>(
    limit: u64,
    weigh: impl Fn(&T) -> u64 + Send + Sync + 'static,
) -> Result<(WeightedSender<T>, Receiver<T>), CapacityError> {
    let (sender, receiver) = Channel::create_weighted(limit).map(halves(Location::caller()))?;
    Ok((WeightedSender::new(sender, alloc::sync::Arc::new(weigh)), receiver))
}

/// A channel without a limit: a send never waits.
///
/// Values stand in blocks: of 64, or if they are large, of as many as fit into 64 KiB, at least one. An idle channel has one
/// block. Another one is allocated when the last is full; one that has been received is kept for the next time, any
/// further one freed. So a steady flow allocates nothing, and after a burst the memory is given back, but for the current
/// block, a spare one, and a block for each receive that was under way when a block was last given back.
///
/// # Panics
/// When there is no memory for the channel and its first block. A send that finds no memory for the next block ends like
/// any other failed allocation (`handle_alloc_error`), with the channel as it was.
///
/// # Examples
/// ```
/// use tidegate_channel::{unbounded, Operation, RecvError};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (tx, rx) = unbounded();
/// for n in 0..1_000 {
///     tx.try_send(n)?;
/// }
/// drop(tx);
/// assert_eq!(rx.len(), 1_000);
/// for n in 0..1_000 {
///     assert_eq!(rx.recv().wait()?, n);
/// }
/// assert_eq!(rx.recv().wait(), Err(RecvError::Closed));
/// # Ok(())
/// # }
/// ```
#[track_caller]
#[must_use]
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    unbounded_from(0)
}

/// An unbounded channel whose positions begin at the block of `first`: for a test of what happens after decades.
#[doc(hidden)]
#[track_caller]
#[must_use]
pub fn unbounded_from<T>(first: u64) -> (Sender<T>, Receiver<T>) {
    match Channel::create_unbounded(first) {
        Ok(channel) => halves(Location::caller())(channel),
        Err(error) => panic!("unbounded(): {error}"),
    }
}

/// A channel whose positions begin in lap `first_lap`: for a test of what happens after decades.
#[doc(hidden)]
#[track_caller]
pub fn bounded_from_lap<T>(capacity: usize, first_lap: u64) -> Result<(Sender<T>, Receiver<T>), CapacityError> {
    Channel::create(capacity, first_lap).map(halves(Location::caller()))
}

/// The halves of a fresh channel that was made at `place`.
fn halves<T>(place: &'static Location<'static>) -> impl FnOnce(NonNull<Channel<T>>) -> (Sender<T>, Receiver<T>) {
    move |channel| {
        // SAFETY: a fresh channel counts one half of each side.
        unsafe {
            Handle::new(channel).core().origin.set(Origin::at(place));
            (Sender::from_raw(channel), Receiver::from_raw(channel))
        }
    }
}
