//! The reservation of many slots as one operation.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};

use futures_core::FusedFuture;
use tidegate_wait::op::{self, Limits, Outbox, RawOperation, Unlimited, Word};
use tidegate_wait::waiter::{Head, Kind, State};

use crate::error::ReserveError;
use crate::flavor::bounded::{wants, Channel, Core, Handle, Reserved};
use crate::hold::{Borrowed, Hold, Owned};
use crate::permits::Permits;
use crate::sender::Sender;

/// A reservation of many slots with a half of its own; made by [`Sender::into_reserve_many`].
pub type OwnedReservingMany<T, L = Unlimited> = ReservingMany<'static, T, L, Owned>;

/// A reservation of many slots; made by [`Sender::reserve_many`]. 56 bytes, and 24 for each limit.
#[must_use = "a reservation does nothing unless it is awaited or waited for"]
pub struct ReservingMany<'a, T, L: Limits = Unlimited, H: Hold = Borrowed<'a>> {
    /// How many slots it wants in all; [`REFUSED`].
    outbox: Outbox<u64, L, Word>,
    _half: PhantomData<(&'a (), Sender<T>, H)>,
}

/// In the place of the number of slots: no permits were returned, so the half is still here. No channel has so many.
const REFUSED: u64 = u64::MAX;

// SAFETY: the node moves between threads under the channel's lock only; the permits are `Send` for `T: Send`.
unsafe impl<T: Send, L: Limits + Send, H: Hold> Send for ReservingMany<'_, T, L, H> {}
// SAFETY: a shared reference reads the state word only.
unsafe impl<T: Send, L: Limits + Sync, H: Hold> Sync for ReservingMany<'_, T, L, H> {}

/// Takes so many permits now, or says why not.
pub(crate) fn take<T>(channel: Handle<T>, slots: u64) -> Result<(), ReserveError> {
    let most = channel.most_permits();
    let too_many = ReserveError::TooMany { wanted: slots as usize, capacity: most as usize };
    match slots {
        // As a batch without values: nothing is asked of the channel.
        0 => return Ok(()),
        _ if most == 0 => return Err(ReserveError::Rendezvous),
        _ if slots > most => return Err(too_many),
        _ => {}
    }
    match channel.try_reserve(slots) {
        Reserved::Done => Ok(()),
        Reserved::Closed => Err(ReserveError::Closed),
        // So many permits were leaked that they can't be counted.
        Reserved::Full if channel.core().is_unbounded() => Err(too_many),
        Reserved::Full => Err(ReserveError::Full),
    }
}

impl<T, H: Hold> ReservingMany<'_, T, Unlimited, H> {
    pub(crate) fn new(channel: NonNull<Channel<T>>, slots: usize) -> Self {
        let head = Head::new(channel.as_ptr().cast_const().cast());
        let slots = slots as u64;
        ReservingMany {
            outbox: Outbox::with_word(head, Unlimited, wants(slots), MaybeUninit::new(slots)),
            _half: PhantomData,
        }
    }
}

type Outcome<'a, T, H> = Result<Permits<'a, T, H>, ReserveError>;

impl<'a, T, L: Limits, H: Hold> ReservingMany<'a, T, L, H> {
    /// # Safety
    /// `this` is alive.
    unsafe fn channel(this: *mut Self) -> Handle<T> {
        // SAFETY: the operation borrows or has a half, and began with the half's pointer.
        unsafe { Handle::new(NonNull::new_unchecked((*Self::head(this)).owner().cast_mut().cast())) }
    }

    /// How many slots it wants in all.
    ///
    /// # Safety
    /// `this` is alive.
    unsafe fn slots(this: *mut Self) -> u64 {
        // SAFETY: written by the task only, before the park or after the end.
        unsafe { (*Outbox::value(&raw mut (*this).outbox)).with(|slots| (*slots).assume_init()) }
    }

    /// # Safety
    /// The operation was given its permits, which it hands on together with its half; nobody else knows the node.
    unsafe fn permits(this: *mut Self) -> Outcome<'a, T, H> {
        // SAFETY: the caller's promise.
        unsafe {
            (*Self::head(this)).node.set_quiet(State::Spent);
            Ok(Permits::from_raw(Self::channel(this).as_ptr(), Self::slots(this) as usize))
        }
    }

    /// # Safety
    /// Nobody else knows the node.
    unsafe fn fail(this: *mut Self, end: State, error: ReserveError) -> Outcome<'a, T, H> {
        // SAFETY: the caller's promise. What it had been granted, if a limit ended it, is passed on by now or here.
        unsafe {
            Self::channel(this).pass_on();
            (*Self::head(this)).node.set_quiet(end);
            if end == State::Spent {
                (*Outbox::value(&raw mut (*this).outbox)).with_mut(|slots| (*slots).write(REFUSED));
            }
        }
        Err(error)
    }
}

// SAFETY: an `Outbox` is laid out as the trait says; the half keeps the channel alive.
unsafe impl<'a, T, L: Limits, H: Hold> RawOperation for ReservingMany<'a, T, L, H> {
    type Limits = L;
    type Owner = Core;
    type With<M: Limits> = ReservingMany<'a, T, M, H>;
    const KIND: Kind = Kind::Batch;
    const OPERATION: &'static str = "reservation of many";

    unsafe fn head(this: *mut Self) -> *mut Head {
        // SAFETY: the caller's promise.
        unsafe { Outbox::head(&raw mut (*this).outbox) }
    }

    unsafe fn limits(this: *mut Self) -> *mut L {
        // SAFETY: the caller's promise.
        unsafe { Outbox::limits(&raw mut (*this).outbox) }
    }

    fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> ReservingMany<'a, T, M, H> {
        let this = ManuallyDrop::new(self);
        // SAFETY: read once, and `this` is not dropped.
        let outbox = unsafe { core::ptr::read(&this.outbox) };
        ReservingMany { outbox: outbox.map_limits(f), _half: PhantomData }
    }

    unsafe fn attempt(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: pinned, in state Init.
        unsafe {
            match take(Self::channel(this), Self::slots(this)) {
                Ok(()) => Some(Self::permits(this)),
                Err(ReserveError::Full) => None,
                Err(ReserveError::Closed) => Some(Self::fail(this, State::Closed, ReserveError::Closed)),
                Err(refusal) => Some(Self::fail(this, State::Spent, refusal)),
            }
        }
    }

    unsafe fn try_once(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: as above.
        unsafe { Self::attempt(this) }
    }

    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output> {
        // SAFETY: as above; the channel is bounded, and has so many slots.
        unsafe {
            match Self::channel(this).reserve_or_park(Self::slots(this), Self::head(this), Kind::Batch, waker) {
                Reserved::Done => Some(Self::permits(this)),
                Reserved::Closed => Some(Self::fail(this, State::Closed, ReserveError::Closed)),
                Reserved::Full => None,
            }
        }
    }

    unsafe fn conclude(this: *mut Self, end: State) -> Poll<Self::Output> {
        // SAFETY: the node has left Waiting, or never was there: it is the task's.
        unsafe {
            Poll::Ready(match end {
                State::Done(_) => Self::permits(this),
                State::Closed => Self::fail(this, end, ReserveError::Closed),
                State::TimedOut => Self::fail(this, end, ReserveError::TimedOut),
                State::Cancelled => Self::fail(this, end, ReserveError::Cancelled),
                State::Init | State::Waiting | State::Spent => return Poll::Pending,
            })
        }
    }
}

impl<'a, T, L: Limits, H: Hold> Future for ReservingMany<'a, T, L, H> {
    type Output = Outcome<'a, T, H>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: pinned; nothing is moved out of it but permits that were given to it.
        unsafe { op::poll(core::ptr::from_mut(self.get_unchecked_mut()), cx) }
    }
}

impl<T, L: Limits, H: Hold> FusedFuture for ReservingMany<'_, T, L, H> {
    fn is_terminated(&self) -> bool {
        self.outbox.state() == State::Spent
    }
}

impl<T, L: Limits, H: Hold> Drop for ReservingMany<'_, T, L, H> {
    fn drop(&mut self) {
        let this = core::ptr::from_mut(self);
        // SAFETY: pinned if it was ever polled, and gone afterwards. Permits that nobody took are given back, and so is
        // what it was granted of them. The half went with the permits if they were returned: only then is the state
        // Spent, or the reservation refused.
        unsafe {
            let end = op::withdraw(this);
            let channel = Self::channel(this);
            match end {
                State::Done(_) => channel.drop_permits(Self::slots(this)),
                // The half has gone with the permits, and perhaps the channel with it: nothing of it is looked at.
                State::Spent => {}
                _ => channel.pass_on(),
            }
            let gone = end == State::Spent && Self::slots(this) != REFUSED;
            if H::OWNED && !gone {
                drop(Sender::from_raw(channel.as_ptr()));
            }
        }
    }
}

impl<T, L: Limits, H: Hold> fmt::Debug for ReservingMany<'_, T, L, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReservingMany").field("state", &self.outbox.state()).finish_non_exhaustive()
    }
}
