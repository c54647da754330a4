//! A cancel token on an operation: 24 bytes in front of it.

use core::marker::PhantomData;

use super::limits::{Arming, Limit, Limits};
use crate::cancel::{CancelToken, TokenEntry};
use crate::owner::OwnerHeader;

/// A token around other limits; made by [`Operation::cancel_on`](super::Operation::cancel_on).
#[derive(Debug)]
#[repr(C)]
pub struct Cancellable<'t, L> {
    entry: TokenEntry,
    inner: L,
    _token: PhantomData<&'t CancelToken>,
}

impl<'t, L> Cancellable<'t, L> {
    #[inline(always)]
    pub(crate) fn borrowed(token: &'t CancelToken, inner: L) -> Self {
        Cancellable { entry: TokenEntry::new(token.node(), false), inner, _token: PhantomData }
    }
}

impl<L> Cancellable<'static, L> {
    #[inline(always)]
    pub(crate) fn owned(token: CancelToken, inner: L) -> Self {
        Cancellable { entry: TokenEntry::new(token.into_raw(), true), inner, _token: PhantomData }
    }
}

// SAFETY: the entry moves between threads under the token's lock only; a token is `Send` and `Sync`.
unsafe impl<L: Send> Send for Cancellable<'_, L> {}
// SAFETY: a shared reference reads the token's flag.
unsafe impl<L: Sync> Sync for Cancellable<'_, L> {}

impl<L> Drop for Cancellable<'_, L> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.entry.is_owned() {
            // SAFETY: the reference that `owned` took over; the operation has disarmed the entry.
            drop(unsafe { CancelToken::from_raw(self.entry.token()) });
        }
    }
}

// SAFETY: one entry in front of those of `L`.
unsafe impl<L: Limits> Limits for Cancellable<'_, L> {
    const DEPTH: usize = {
        assert!(L::DEPTH < 6, "an operation takes at most six limits");
        L::DEPTH + 1
    };
    type Output<R> = Result<R, Limit>;

    #[inline]
    fn output<R>(result: Result<R, Limit>) -> Result<R, Limit> {
        result
    }

    #[inline(always)]
    fn is_cancelled(&self) -> bool {
        // SAFETY: borrowed or held, so alive.
        unsafe { (*self.entry.token()).is_cancelled() || self.inner.is_cancelled() }
    }

    #[inline]
    unsafe fn has_expired(&self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.inner.has_expired() }
    }

    #[inline]
    unsafe fn earliest(&self) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.inner.earliest() }
    }

    unsafe fn arm(this: *mut Self, arming: &Arming) -> bool {
        // SAFETY: the caller's promise; the raw pointers keep the provenance of the whole operation.
        unsafe {
            let depth = Self::DEPTH + arming.front;
            TokenEntry::arm(&raw mut (*this).entry, (*arming.head).owner(), depth)
                && L::arm(&raw mut (*this).inner, arming)
        }
    }

    #[inline]
    unsafe fn disarm(this: *mut Self, owner: *const OwnerHeader) {
        // SAFETY: the caller's promise.
        unsafe {
            TokenEntry::disarm(&raw mut (*this).entry, owner);
            L::disarm(&raw mut (*this).inner, owner);
        }
    }
}
