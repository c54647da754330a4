//! What an operation and a channel cost in bytes (G10; DESIGN's table).
#![cfg(all(not(loom), target_pointer_width = "64"))]

use std::time::Duration;

use tidegate_channel::{bounded, Operation, OwnedReceiving, OwnedSending, Receiving, Sending};
use tidegate_wait::cancel::CancelToken;

fn sizes<const N: usize>() {
    let token = CancelToken::new();
    let (tx, rx) = bounded::<[u8; N]>(1);
    let limit = Duration::MAX;
    let value = [0; N];
    assert_eq!(size_of_val(&tx.send(value)), N + 40);
    assert_eq!(size_of_val(&tx.send(value).timeout(limit)), N + 64);
    assert_eq!(size_of_val(&tx.send(value).cancel_on(&token)), N + 64);
    assert_eq!(size_of_val(&tx.send(value).timeout(limit).cancel_on(&token)), N + 88);
    assert_eq!(size_of_val(&tx.send(value).cancel_on_owned(token.clone()).timeout(limit)), N + 88);
    let place = 16 + N.max(24);
    assert_eq!(size_of_val(&rx.recv()), place);
    assert_eq!(size_of_val(&rx.recv().timeout(limit)), place + 24);
    assert_eq!(size_of_val(&rx.recv().cancel_on(&token)), place + 24);
    assert_eq!(size_of_val(&rx.recv().cancel_on(&token).timeout(limit)), place + 48);
    assert_eq!(size_of::<OwnedSending<[u8; N]>>(), size_of::<Sending<'_, [u8; N]>>());
    assert_eq!(size_of::<OwnedReceiving<[u8; N]>>(), size_of::<Receiving<'_, [u8; N]>>());
    let owned = tx.clone().into_send(value).timeout(limit).cancel_on_owned(token.clone());
    assert_eq!(size_of_val(&owned), N + 88);
    assert_eq!(size_of_val(&rx.clone().into_recv().timeout(limit).cancel_on(&token)), place + 48);
}

/// G10: T + 40 bytes a send, 16 + max(24, T) a receive, 24 more for each limit, owned or borrowed.
#[test]
fn operations_cost_their_payload_and_a_constant() {
    sizes::<8>();
    sizes::<64>();
    sizes::<256>();
    sizes::<1024>();
}

/// G10: an `async fn` around an operation stores it once.
#[test]
fn an_async_block_adds_a_word_or_two() {
    let (tx, _rx) = bounded::<[u8; 1024]>(1);
    let task = async move { tx.into_send([0; 1024]).await };
    assert!(size_of_val(&task) <= 2 * 1024 + 40 + 32, "{}", size_of_val(&task));
}

/// G10: the wait for the close and a built send cost no more.
#[test]
fn further_operations_cost_their_parts() {
    let (tx, rx) = bounded::<[u8; 64]>(1);
    assert_eq!((size_of_val(&tx.closed()), size_of_val(&rx.closed().timeout(Duration::MAX))), (40, 64));
    assert_eq!(size_of_val(&tx.send_with(|| [0; 64])), 64 + 40 + 8, "and a flag: built yet?");
}

/// G10: operations on many: a vector or a number of slots, and a word that says how much is left.
#[test]
fn operations_on_many_cost_two_words_or_four() {
    let (tx, rx) = bounded::<[u8; 64]>(1);
    let limit = Duration::MAX;
    assert_eq!((size_of_val(&tx.reserve()), size_of_val(&tx.reserve().timeout(limit))), (40, 64));
    assert_eq!((size_of_val(&tx.reserve_many(1)), size_of_val(&tx.reserve_many(1).timeout(limit))), (56, 80));
    assert_eq!(size_of_val(&tx.clone().into_reserve_many(1)), 56);
    assert_eq!((size_of_val(&tx.send_many([])), size_of_val(&tx.send_many([]).timeout(limit))), (72, 96));
    assert_eq!(size_of_val(&rx.recv_many(&mut Vec::new(), 1)), 16 + 64 + 16);
    assert_eq!(size_of_val(&tx.try_reserve_many(0).unwrap()), 16);
}

/// A half is a pointer.
#[test]
fn halves_are_pointers() {
    let (tx, rx) = bounded::<u8>(1);
    assert_eq!((size_of_val(&tx), size_of_val(&Some(rx))), (8, 8));
}
