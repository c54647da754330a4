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
