//! The peers on plain threads.

use super::Message;

/// A bounded channel whose operations block the thread.
pub(crate) trait BlockingPeer: 'static {
    /// As the filter and the tables name it.
    const NAME: &'static str;

    type Sender<T: Message>: Clone + Send + 'static;
    type Receiver<T: Message>: Send + 'static;

    fn bounded<T: Message>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>);
    /// A second receiving half; `None` if the peer has one receiver only.
    fn another<T: Message>(rx: &Self::Receiver<T>) -> Option<Self::Receiver<T>>;
    /// True: sent. False: closed.
    fn send<T: Message>(tx: &Self::Sender<T>, value: T) -> bool;
    /// `None`: closed.
    fn recv<T: Message>(rx: &mut Self::Receiver<T>) -> Option<T>;
}
