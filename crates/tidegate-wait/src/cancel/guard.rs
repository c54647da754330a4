//! A guard that cancels when it goes out of scope.

use super::CancelToken;

/// Cancels its token when it is dropped; made by [`CancelToken::drop_guard`].
#[must_use = "a guard that is dropped at once cancels at once"]
#[derive(Debug)]
pub struct CancelGuard(Option<CancelToken>);

impl CancelGuard {
    pub(super) fn new(token: CancelToken) -> CancelGuard {
        CancelGuard(Some(token))
    }

    /// Gives the token back uncancelled.
    #[must_use = "use `drop(guard.disarm())` to let go of the token as well"]
    pub fn disarm(mut self) -> CancelToken {
        match self.0.take() {
            Some(token) => token,
            None => unreachable!("a guard gives its token away once"),
        }
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        if let Some(token) = &self.0 {
            token.cancel();
        }
    }
}
