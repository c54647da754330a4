//! What a send carries beside its value: nothing, or a weight.

use tidegate_wait::op::Word;

use crate::error::{SendError, WeightedSendError};

/// What a send carries beside its value; `()` or [`Weighed`].
pub trait Weight: sealed::Sealed {
    /// What the send returns instead of success.
    type Error<T>;

    #[doc(hidden)]
    const WEIGHED: bool;

    #[doc(hidden)]
    fn error<T>(error: SendError<T>) -> Self::Error<T>;

    #[doc(hidden)]
    fn too_heavy<T>(value: T, weight: u64, limit: u64) -> Self::Error<T>;

    /// # Safety
    /// While the operation does not wait.
    #[doc(hidden)]
    unsafe fn weight(&self) -> u64;
}

impl Weight for () {
    type Error<T> = SendError<T>;
    const WEIGHED: bool = false;

    #[inline(always)]
    fn error<T>(error: SendError<T>) -> SendError<T> {
        error
    }

    fn too_heavy<T>(_: T, _: u64, _: u64) -> SendError<T> {
        unreachable!("it has no weight")
    }

    #[inline(always)]
    unsafe fn weight(&self) -> u64 {
        0
    }
}

/// The weight of a value, 8 bytes of its send: whoever lets it in may not ask the weigher.
#[derive(Debug)]
#[repr(transparent)]
pub struct Weighed(Word);

impl Weighed {
    pub(crate) fn new(weight: u64) -> Weighed {
        Weighed(Word::new(weight))
    }
}

impl Weight for Weighed {
    type Error<T> = WeightedSendError<T>;
    const WEIGHED: bool = true;

    fn error<T>(error: SendError<T>) -> WeightedSendError<T> {
        error.into()
    }

    fn too_heavy<T>(value: T, weight: u64, limit: u64) -> WeightedSendError<T> {
        WeightedSendError::TooHeavy { value, weight, limit }
    }

    unsafe fn weight(&self) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.0.get() }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
    impl Sealed for super::Weighed {}
}
