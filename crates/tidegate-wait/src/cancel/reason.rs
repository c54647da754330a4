//! Why a token was cancelled.

use alloc::sync::Arc;
use core::error::Error;
use core::fmt;

/// Why a token was cancelled: any error or text, shared by all who ask.
#[derive(Clone)]
pub struct Reason(Arc<dyn Error + Send + Sync>);

impl Reason {
    /// The reason as an error of type `E`, if it is one.
    #[must_use]
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

impl<E: Into<alloc::boxed::Box<dyn Error + Send + Sync>>> From<E> for Reason {
    fn from(reason: E) -> Reason {
        Reason(reason.into().into())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
