//! A channel of capacity 1 that holds one value, 0: where sends wait.

use crate::harness::Failure;
use crate::peers::Peer;

pub(crate) type Channel<P> = (<P as Peer>::Sender<u64>, <P as Peer>::Receiver<u64>);

pub(crate) fn full<P: Peer>() -> Result<Channel<P>, Failure> {
    let (tx, rx) = P::bounded::<u64>(1);
    match P::try_send(&tx, 0) {
        true => Ok((tx, rx)),
        false => Err(Failure::new("an empty channel refused a value")),
    }
}

/// Takes the value it was filled with.
pub(crate) fn take_first<P: Peer>(rx: &mut P::Receiver<u64>) -> Result<(), Failure> {
    Failure::unless_equal("the value in the channel", P::try_recv(rx).unwrap_or(u64::MAX), 0)
}

/// The same, and nothing must come after it.
pub(crate) fn take_only<P: Peer>(rx: &mut P::Receiver<u64>) -> Result<(), Failure> {
    take_first::<P>(rx)?;
    match P::try_recv(rx) {
        None => Ok(()),
        Some(value) => Err(Failure::new(format!("the value {value} of a send that was given up was received"))),
    }
}
