//! Cancellation: a tree of tokens.
//!
//! A token is cancelled once, with an optional [`Reason`], and all its descendants with it. Operations register in O(1)
//! ([`Operation::cancel_on`](crate::Operation::cancel_on)), so do callbacks ([`CancelToken::on_cancel`]); both leave in
//! O(1), from anywhere.
//!
//! ```
//! use tidegate_wait::cancel::CancelToken;
//!
//! let service = CancelToken::new();
//! let request = service.child();
//! service.cancel_with("shutting down");
//! assert!(request.is_cancelled());
//! assert_eq!(request.reason().unwrap().to_string(), "shutting down");
//! ```

#[cfg(feature = "std")]
mod callback;
mod guard;
mod reason;
mod token;
mod tree;

#[cfg(feature = "std")]
pub use callback::Registration;
pub use guard::CancelGuard;
pub use reason::Reason;
pub use token::{CancelToken, Cancelled};

pub(crate) use tree::TokenEntry;
