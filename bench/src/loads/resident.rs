//! Many futures that stay where they are, made, polled and dropped in place: without an allocation while one measures.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Places for futures.
pub(crate) struct Residents<F> {
    places: Vec<Pin<Box<Option<F>>>>,
}

/// In which order the futures are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Oldest,
    Newest,
    Random,
}

/// An allocator hands out first what was freed last. So the last place is freed first: the next run's places lie in order
/// again, whatever this run's order was, and no peer pays for how large its futures happen to be.
impl<F> Drop for Residents<F> {
    fn drop(&mut self) {
        self.places.sort_unstable_by_key(|place| core::ptr::from_ref(place.as_ref().get_ref()).addr());
        while self.places.pop().is_some() {}
    }
}

impl<F: Future> Residents<F> {
    pub(crate) fn new(places: usize) -> Residents<F> {
        Residents { places: (0..places).map(|_| Box::pin(None)).collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Makes all futures and polls each once; returns how many are pending.
    #[inline]
    pub(crate) fn park(&mut self, mut make: impl FnMut(usize) -> F) -> usize {
        let mut cx = Context::from_waker(Waker::noop());
        let mut pending = 0;
        for (number, place) in self.places.iter_mut().enumerate() {
            place.set(Some(make(number)));
            let polled = place.as_mut().as_pin_mut().map(|future| future.poll(&mut cx));
            pending += usize::from(matches!(polled, Some(Poll::Pending)));
        }
        pending
    }

    /// Polls all that are left, and drops those that end; `end` is told the place and the output. Returns how many are
    /// pending still.
    pub(crate) fn poll(&mut self, mut end: impl FnMut(usize, F::Output)) -> usize {
        let mut cx = Context::from_waker(Waker::noop());
        let mut pending = 0;
        for (number, place) in self.places.iter_mut().enumerate() {
            match place.as_mut().as_pin_mut().map(|future| future.poll(&mut cx)) {
                Some(Poll::Ready(output)) => {
                    place.set(None);
                    end(number, output);
                }
                Some(Poll::Pending) => pending += 1,
                None => {}
            }
        }
        pending
    }

    /// Polls one after the other until one ends: with peers that serve in order, the first.
    pub(crate) fn poll_until_one_ends(&mut self, end: impl FnOnce(F::Output)) {
        let mut cx = Context::from_waker(Waker::noop());
        for place in &mut self.places {
            if let Some(Poll::Ready(output)) = place.as_mut().as_pin_mut().map(|future| future.poll(&mut cx)) {
                place.set(None);
                return end(output);
            }
        }
    }

    /// Puts the places in the order in which [`cancel`](Residents::cancel) goes through them.
    pub(crate) fn arrange(&mut self, order: Order, seed: u64) {
        match order {
            Order::Oldest => {}
            Order::Newest => self.places.reverse(),
            Order::Random => fastrand::Rng::with_seed(seed).shuffle(&mut self.places),
        }
    }

    /// Drops all futures.
    #[inline]
    pub(crate) fn cancel(&mut self) {
        for place in &mut self.places {
            place.set(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;

    use super::*;

    #[test]
    fn what_has_ended_is_told_once() {
        let open = Cell::new(false);
        let mut residents = Residents::new(3);
        let gate = |number| {
            let open = &open;
            poll_fn(move |_| if open.get() || number == 1 { Poll::Ready(number) } else { Poll::Pending })
        };
        assert_eq!(residents.park(|number| gate(number + 2)), 3);
        open.set(true);
        let mut ended = Vec::new();
        assert_eq!(residents.poll(|place, number| ended.push((place, number))), 0);
        assert_eq!(residents.poll(|place, number| ended.push((place, number))), 0);
        assert_eq!(ended, [(0, 2), (1, 3), (2, 4)]);
    }
}
