//! How an operation holds its half of the channel: by a borrow, or as its own.

use core::marker::PhantomData;

/// How an operation holds the channel; [`Borrowed`] or [`Owned`].
pub trait Hold: sealed::Sealed {
    /// Does the operation give a half back when it is dropped?
    #[doc(hidden)]
    const OWNED: bool;
}

/// The operation borrows its half: the usual case.
#[derive(Clone, Copy, Debug)]
pub struct Borrowed<'a>(PhantomData<&'a ()>);

/// The operation has a half of its own, so that it may be spawned, or outlive the place where it was made. The half
/// counts as any other until the operation is dropped; that of a reservation goes with the permits that it returns.
#[derive(Clone, Copy, Debug)]
pub struct Owned(());

impl Hold for Borrowed<'_> {
    const OWNED: bool = false;
}

impl Hold for Owned {
    const OWNED: bool = true;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Borrowed<'_> {}
    impl Sealed for super::Owned {}
}
