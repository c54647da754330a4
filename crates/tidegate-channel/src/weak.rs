//! Halves that do not keep a channel open.

use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use tidegate_wait::owner::{Owner, RefCount};

use crate::flavor::bounded::{Channel, Handle};
use crate::receiver::Receiver;
use crate::sender::Sender;

/// A reference on a channel's memory; neither side counts it.
struct Weak<T> {
    channel: NonNull<Channel<T>>,
    _values: PhantomData<T>,
}

// SAFETY: a counted reference on a `Channel<T>`, which is `Send` and `Sync` for `T: Send`.
unsafe impl<T: Send> Send for Weak<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Weak<T> {}

// As for the halves: no value in place, and user code outside locks only.
impl<T> Unpin for Weak<T> {}
impl<T> core::panic::UnwindSafe for Weak<T> {}
impl<T> core::panic::RefUnwindSafe for Weak<T> {}

impl<T> Weak<T> {
    /// # Safety
    /// The channel is alive, by a half or another reference of the caller's.
    unsafe fn new(channel: NonNull<Channel<T>>) -> Weak<T> {
        let weak = Weak { channel, _values: PhantomData };
        // SAFETY: the caller's promise.
        unsafe { weak.channel().core().retain() };
        weak
    }

    fn channel(&self) -> Handle<T> {
        // SAFETY: the reference keeps the memory alive.
        unsafe { Handle::new(self.channel) }
    }

    /// The channel, if `halves` counts at least one half, and then one more.
    fn upgrade(&self, halves: impl FnOnce(&Handle<T>) -> &RefCount) -> Option<NonNull<Channel<T>>> {
        halves(&self.channel()).add_unless_zero().then_some(self.channel)
    }
}

impl<T> Clone for Weak<T> {
    fn clone(&self) -> Self {
        // SAFETY: our own reference keeps it alive meanwhile.
        unsafe { Weak::new(self.channel) }
    }
}

impl<T> Drop for Weak<T> {
    fn drop(&mut self) {
        // SAFETY: the reference that `new` added.
        unsafe { self.channel().release() }
    }
}

/// A sending half that does not keep the channel open; made by [`Sender::downgrade`].
///
/// It keeps the channel's memory, not its values.
///
/// # Examples
/// ```
/// use tidegate_channel::bounded;
///
/// let (tx, rx) = bounded(1);
/// let weak = tx.downgrade();
/// weak.upgrade().unwrap().try_send(1).unwrap();
/// drop(tx);
/// assert!(weak.upgrade().is_none() && rx.is_closed());
/// ```
pub struct WeakSender<T>(Weak<T>);

/// A receiving half that does not keep the channel open; made by [`Receiver::downgrade`].
///
/// It keeps the channel's memory, not its values.
pub struct WeakReceiver<T>(Weak<T>);

impl<T> WeakSender<T> {
    pub(crate) fn new(sender: &Sender<T>) -> WeakSender<T> {
        // SAFETY: the half keeps the channel alive.
        WeakSender(unsafe { Weak::new(sender.channel().as_ptr()) })
    }

    /// A half, if there is still another one. `None` for ever once the last one has gone.
    #[must_use]
    pub fn upgrade(&self) -> Option<Sender<T>> {
        // SAFETY: the half has just been counted.
        self.0.upgrade(|channel| channel.core().senders()).map(|channel| unsafe { Sender::from_raw(channel) })
    }
}

impl<T> WeakReceiver<T> {
    pub(crate) fn new(receiver: &Receiver<T>) -> WeakReceiver<T> {
        // SAFETY: the half keeps the channel alive.
        WeakReceiver(unsafe { Weak::new(receiver.channel().as_ptr()) })
    }

    /// A half, if there is still another one. `None` for ever once the last one has gone.
    #[must_use]
    pub fn upgrade(&self) -> Option<Receiver<T>> {
        // SAFETY: the half has just been counted.
        self.0.upgrade(|channel| channel.core().receivers()).map(|channel| unsafe { Receiver::from_raw(channel) })
    }
}

// The derived ones would ask for `T: Clone`.
impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        WeakSender(self.0.clone())
    }
}

impl<T> Clone for WeakReceiver<T> {
    fn clone(&self) -> Self {
        WeakReceiver(self.0.clone())
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.channel().debug("WeakSender", f)
    }
}

impl<T> fmt::Debug for WeakReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.channel().debug("WeakReceiver", f)
    }
}
