//! Streams and sinks: `Unpin`, fused, one box each.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_core::{FusedStream, Stream};
#[cfg(feature = "sink")]
use tidegate_channel::SendError;

use crate::flavors::each_flavor;
use crate::support::{Ledger, Woken};

fn next<S: Stream + Unpin>(stream: &mut S) -> Poll<Option<S::Item>> {
    next_with(stream, Waker::noop())
}

fn next_with<S: Stream + Unpin>(stream: &mut S, waker: &Waker) -> Poll<Option<S::Item>> {
    Pin::new(stream).poll_next(&mut Context::from_waker(waker))
}

/// G7, CASE 23: values, then the end, again and again.
#[test]
fn case_23_a_stream_ends_and_stays_ended() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        let mut stream = rx.into_stream();
        let (woken, waker) = Woken::new();
        for n in 0..5 {
            assert!(next_with(&mut stream, &waker).is_pending());
            tx.try_send(n).unwrap();
            assert_eq!((woken.count(), next(&mut stream)), (n + 1, Poll::Ready(Some(n))));
        }
        assert!(next(&mut stream).is_pending() && !stream.is_terminated());
        drop(tx);
        assert_eq!((next(&mut stream), next(&mut stream)), (Poll::Ready(None), Poll::Ready(None)));
        assert!(stream.is_terminated());
    });
}

/// G1: a value that was handed to a stream which is dropped goes to the next receive.
#[test]
fn g1_a_dropped_stream_gives_its_delivery_back() {
    each_flavor(|flavor| {
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make();
        let mut stream = rx.stream();
        assert!(next(&mut stream).is_pending());
        assert!(tx.try_send(ledger.value(3)).is_ok());
        drop(stream);
        assert!(rx.try_recv().unwrap() == 3);
        drop((tx, rx));
        ledger.settled();
    });
}

/// The sink keeps one item beyond the buffer; a flush sends it, a refused item comes back.
#[cfg(feature = "sink")]
#[test]
fn a_sink_buffers_one_item() {
    use futures_sink::Sink;

    each_flavor(|flavor| {
        let cx = &mut Context::from_waker(Waker::noop());
        let (tx, rx) = flavor.make();
        let mut sink = tx.clone().into_sink();
        let mut sent = 0;
        while sent <= flavor.capacity && Pin::new(&mut sink).poll_ready(cx).is_ready() {
            assert_eq!(Pin::new(&mut sink).start_send(sent), Ok(()));
            assert_eq!(Pin::new(&mut sink).start_send(999), Err(SendError::Full(999)));
            sent += 1;
        }
        assert_eq!((sent, rx.len()), (flavor.capacity + 1, flavor.capacity));
        assert_eq!(Pin::new(&mut sink).poll_ready(cx).is_pending(), flavor.has_limit());
        (0..sent).for_each(|n| assert_eq!(rx.try_recv(), Ok(n)));
        assert_eq!(Pin::new(&mut sink).poll_close(cx), Poll::Ready(Ok(())));
        assert_eq!(tx.sender_count(), 1, "the sink's half has gone");
        assert_eq!(Pin::new(&mut sink).start_send(5), Err(SendError::Closed(5)));
        let mut sink = tx.sink();
        assert_eq!(Pin::new(&mut sink).start_send(6), Ok(()));
        drop(rx);
        assert_eq!(Pin::new(&mut sink).poll_flush(cx), Poll::Ready(Err(SendError::Closed(6))));
        assert_eq!(Pin::new(&mut sink).poll_flush(cx), Poll::Ready(Ok(())));
    });
}

/// G1: a sink that is dropped drops its item, once.
#[cfg(feature = "sink")]
#[test]
fn g1_a_dropped_sink_drops_its_item() {
    use futures_sink::Sink;

    each_flavor(|flavor| {
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make();
        for polled in [false, true] {
            let mut sink = tx.sink();
            assert!(Pin::new(&mut sink).start_send(ledger.value(0)).is_ok());
            if polled {
                let _sent_or_parked = Pin::new(&mut sink).poll_flush(&mut Context::from_waker(Waker::noop()));
            }
        }
        drop((tx, rx));
        ledger.settled();
    });
}
