//! A Bend channel: both halves of one of ours.
//!
//! `room` is the capacity. Up to [`RING`] values the channel is a ring, which is allocated at once; above, a channel that
//! is bounded by weight, each value weighing 1: the same order and the same limit, with blocks that come as they are
//! filled. A program may ask for room for 2^32-1 values and use ten.

use tidegate_channel::{
    bounded, bounded_by, Receiver, RecvError, SendError, Sender, WeightedSendError, WeightedSender,
};

use super::value::{bury_ends, Value};

/// The largest ring: 24 bytes a slot, of which the system gives those that are used.
const RING: u32 = 1 << 18;

/// A channel. Every handle of the program keeps it.
#[derive(Debug)]
pub(crate) struct Channel {
    /// There until the drop.
    ends: Option<Ends>,
    pub(super) room: u32,
    /// Where it was made.
    pub(super) site: u32,
}

/// Both halves.
#[derive(Debug)]
pub(crate) enum Ends {
    Ring(Sender<Value>, Receiver<Value>),
    Blocks(WeightedSender<Value>, Receiver<Value>),
}

/// What became of a send.
#[derive(Debug)]
pub(super) enum Sent {
    Done,
    Closed(Value),
    /// There was no room, now or in time.
    Waits(Value),
}

/// What became of a receive.
#[derive(Debug)]
pub(super) enum Received {
    Value(Value),
    Closed,
    Waits,
}

impl Drop for Channel {
    fn drop(&mut self) {
        if let Some(ends) = self.ends.take() {
            bury_ends(ends);
        }
    }
}

impl From<Result<(), SendError<Value>>> for Sent {
    fn from(result: Result<(), SendError<Value>>) -> Sent {
        match result {
            Ok(()) => Sent::Done,
            Err(SendError::Closed(value)) => Sent::Closed(value),
            Err(error) => Sent::Waits(error.into_inner()),
        }
    }
}

impl From<Result<(), WeightedSendError<Value>>> for Sent {
    fn from(result: Result<(), WeightedSendError<Value>>) -> Sent {
        match result {
            Ok(()) => Sent::Done,
            Err(WeightedSendError::Closed(value)) => Sent::Closed(value),
            Err(error) => Sent::Waits(error.into_inner()),
        }
    }
}

impl From<Result<Value, RecvError>> for Received {
    fn from(result: Result<Value, RecvError>) -> Received {
        match result {
            Ok(value) => Received::Value(value),
            Err(RecvError::Closed) => Received::Closed,
            Err(_) => Received::Waits,
        }
    }
}

impl Channel {
    pub(super) fn new(room: u32, site: u32) -> Channel {
        let ends = if room <= RING {
            let (sender, receiver) = bounded(room as usize);
            Ends::Ring(sender, receiver)
        } else {
            let (sender, receiver) = bounded_by(u64::from(room), |_: &Value| 1);
            Ends::Blocks(sender, receiver)
        };
        Channel { ends: Some(ends), room, site }
    }

    pub(super) fn ends(&self) -> &Ends {
        match &self.ends {
            Some(ends) => ends,
            None => unreachable!("the halves go with the channel"),
        }
    }

    pub(super) fn receiver(&self) -> &Receiver<Value> {
        match self.ends() {
            Ends::Ring(_, receiver) | Ends::Blocks(_, receiver) => receiver,
        }
    }

    pub(super) fn close(&self) {
        // Whether it was open says nothing to a program.
        let _was_open = self.receiver().close();
    }

    /// A send that does not wait.
    #[inline]
    pub(super) fn try_send(&self, value: Value) -> Sent {
        match self.ends() {
            Ends::Ring(sender, _) => sender.try_send(value).into(),
            Ends::Blocks(sender, _) => sender.try_send(value).into(),
        }
    }

    /// A receive that does not wait.
    #[inline]
    pub(super) fn try_recv(&self) -> Received {
        self.receiver().try_recv().into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_chain_of_channels_is_dropped_without_recursion() {
        let mut inner = Value::Nat(0);
        for _ in 0..100_000 {
            let channel = Channel::new(1, 0);
            assert!(matches!(channel.try_send(inner), Sent::Done));
            inner = Value::Channel(Arc::new(channel));
        }
        drop(inner);
    }

    #[test]
    fn great_room_costs_nothing_until_it_is_used() {
        let channel = Channel::new(u32::MAX, 0);
        for n in 0..1000 {
            assert!(matches!(channel.try_send(Value::Nat(n)), Sent::Done));
        }
        channel.close();
        assert!(matches!(channel.try_send(Value::Nat(0)), Sent::Closed(Value::Nat(0))));
        for n in 0..1000 {
            assert!(matches!(channel.try_recv(), Received::Value(Value::Nat(value)) if value == n));
        }
        assert!(matches!(channel.try_recv(), Received::Closed));
    }

    #[test]
    fn great_room_is_limited_all_the_same() {
        let channel = Channel::new(RING + 1, 0);
        for n in 0..=u64::from(RING) {
            assert!(matches!(channel.try_send(Value::Nat(n)), Sent::Done));
        }
        assert!(matches!(channel.try_send(Value::Nat(7)), Sent::Waits(Value::Nat(7))));
    }
}
