//! Receiving as an iterator, blocking or not.
//!
//! None of them is fused: after the end a delivery may come back that somebody else did not take.

use tidegate_wait::Operation;

use crate::receiver::Receiver;

/// Receives until the channel is closed and drained, blocking the thread; made by [`Receiver::iter`].
#[derive(Debug)]
#[must_use = "nothing is received before `next`"]
pub struct Iter<'a, T>(&'a Receiver<T>);

/// Receives what is there, without waiting; made by [`Receiver::try_iter`].
#[derive(Debug)]
#[must_use = "nothing is received before `next`"]
pub struct TryIter<'a, T>(&'a Receiver<T>);

/// [`Iter`] with a half of its own.
#[derive(Debug)]
#[must_use = "nothing is received before `next`"]
pub struct IntoIter<T>(Receiver<T>);

impl<T> Receiver<T> {
    /// Receives until the channel is closed and drained; each step blocks the thread while there is nothing.
    ///
    /// # Examples
    /// ```
    /// use tidegate_channel::bounded;
    ///
    /// let (tx, rx) = bounded(2);
    /// let sender = std::thread::spawn(move || (0..5).for_each(|n| tx.send(n).wait().unwrap()));
    /// # use tidegate_channel::Operation;
    /// assert_eq!(rx.iter().sum::<i32>(), 10);
    /// sender.join().unwrap();
    /// ```
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self)
    }

    /// Receives what is there, and ends at the first moment at which there is nothing.
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter(self)
    }
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().wait().ok()
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().wait().ok()
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}
