//! Taking what is buffered, and no more.

use core::iter::FusedIterator;

use crate::receiver::Receiver;

/// Takes at most as many values as were buffered when it was made, without waiting; made by [`Receiver::drain`].
///
/// A value that is not taken stays in the channel.
#[derive(Debug)]
#[must_use = "nothing is received before `next`"]
pub struct Drain<'a, T> {
    receiver: &'a Receiver<T>,
    left: usize,
}

impl<'a, T> Drain<'a, T> {
    pub(crate) fn new(receiver: &'a Receiver<T>) -> Self {
        Drain { receiver, left: receiver.len() }
    }
}

impl<T> Iterator for Drain<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        let value = self.receiver.try_recv().ok();
        if value.is_none() {
            // Another receiver was quicker.
            self.left = 0;
        }
        value
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

impl<T> FusedIterator for Drain<'_, T> {}
