//! A channel for one value: a result, a reply.
//!
//! [`channel`] allocates once; sending, receiving and waiting allocate nothing. A send never waits. A receive is an
//! operation like all others: `.await`, [`.wait()`](crate::Operation::wait), [`.timeout(d)`](crate::Operation::timeout),
//! [`.cancel_on(&token)`](crate::Operation::cancel_on), in any combination.
//!
//! A request that was abandoned is told so: when the receiver is gone, the reply is refused with its value
//! ([`Sender::send`]), and who is still working on it may ask or wait for that ([`Sender::is_closed`],
//! [`Sender::closed`]).
//!
//! # Examples
//! ```
//! use std::time::Duration;
//! use tidegate_channel::{oneshot, Operation};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (reply, mut answer) = oneshot::channel();
//! let server = std::thread::spawn(move || reply.send(6 * 7));
//! assert_eq!(answer.recv().timeout(Duration::from_secs(10)).wait()?, 42);
//! server.join().unwrap()?;
//!
//! let (reply, answer) = oneshot::channel();
//! drop(answer);
//! assert_eq!(reply.send("too late").unwrap_err().into_inner(), "too late");
//! # Ok(())
//! # }
//! ```

mod closed;
mod receiver;
mod receiving;
mod sender;
mod shared;

pub use closed::Closed;
pub use receiver::Receiver;
pub use receiving::{OwnedReceiving, Receiving};
pub use sender::Sender;

use core::panic::Location;

use tidegate_wait::origin::Origin;

/// A channel for one value.
///
/// One allocation: the value and 56 bytes. It is freed with the later of the two halves (or a little later: a timer or a
/// token that knows of a forgotten receive keeps it until it lets go).
///
/// # Examples
/// ```
/// use tidegate_channel::oneshot;
/// use tidegate_wait::op::block_on;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (tx, rx) = oneshot::channel();
/// tx.send(1)?;
/// assert_eq!(block_on(async { rx.await })?, 1);
/// # Ok(())
/// # }
/// ```
#[track_caller]
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let channel = shared::Channel::create(Origin::at(Location::caller()));
    // SAFETY: a fresh channel counts one half of each side.
    unsafe { (Sender::from_raw(channel), Receiver::from_raw(channel)) }
}
