//! Payloads of every shape: without size, over-aligned, large; under zero to three limits.

use std::fmt::Debug;
use std::time::Duration;

use tidegate_channel::{Operation, OwnedReceiving, OwnedSending, Parked, RecvError, SendError};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::RawOperation;
use tidegate_wait::timer::ManualClock;

use crate::flavors::{drain, each_flavor, each_manner, with_clock, Flavor};
use crate::support::{Counted, Ledger, Look, Tasks};

const MS: Duration = Duration::from_millis(1);

#[derive(Debug, PartialEq, Clone, Copy)]
struct Nothing;

#[derive(Debug, PartialEq, Clone, Copy)]
#[repr(align(64))]
struct Line(u8);

#[derive(Debug, PartialEq, Clone, Copy)]
#[repr(align(4096))]
struct Page([u8; if cfg!(miri) { 50 } else { 5000 }]);

#[derive(Debug, PartialEq, Clone, Copy)]
#[repr(align(4096))]
struct EmptyPage;

/// Bytes in every place, so that one copied wrongly shows (CASE 20).
fn bytes<const N: usize>(seed: u8) -> [u8; N] {
    core::array::from_fn(|i| (i as u8).wrapping_mul(31).wrapping_add(seed))
}

/// A way for a value and for each limit: through the ring, into a parked receive, out of a parked send, back after a
/// time-out, a cancel, a close, a withdrawal, by way of the stash, built in place, and beyond the capacity.
fn goes_every_way<T: PartialEq + Debug + Copy>(flavor: &Flavor, make: impl Fn(u8) -> T) {
    with_clock(|clock| {
        let token = CancelToken::new();
        let (flavor, make) = (flavor, &make);
        every_way(flavor, clock, make, |operation| operation, |operation| operation, false);
        every_way(flavor, clock, make, |operation| operation.timeout(MS), |operation| operation.timeout(MS), true);
        every_way(
            flavor,
            clock,
            make,
            |operation| operation.timeout(MS).cancel_on(&token),
            |operation| operation.cancel_on(&token).deadline(clock.now() + MS),
            true,
        );
        every_way(
            flavor,
            clock,
            make,
            |operation| operation.timeout(MS).cancel_on_owned(token.clone()).timeout(2 * MS),
            |operation| operation.timeout(2 * MS).timeout(3 * MS).cancel_on_owned(token.child()),
            true,
        );
        built_and_admitted(flavor, make);
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |_| make(1));
        let mut send = Box::pin(tx.send(make(2)).cancel_on(&token).timeout(MS));
        if flavor.has_limit() {
            send.parks();
        }
        token.cancel();
        assert_eq!(send.ends(), Err(SendError::Cancelled(make(2))));
        assert_eq!(rx.recv().cancel_on(&token).wait(), Err(RecvError::Cancelled));
    });
}

fn every_way<T, S, R>(
    flavor: &Flavor,
    clock: &ManualClock,
    make: &impl Fn(u8) -> T,
    limit_send: impl Fn(OwnedSending<T>) -> S,
    limit_receive: impl Fn(OwnedReceiving<T>) -> R,
    limited: bool,
) where
    T: PartialEq + Debug + Copy,
    S: RawOperation<Output = Result<(), SendError<T>>>,
    R: RawOperation<Output = Result<T, RecvError>>,
{
    let cap = flavor.capacity.min(4) as u8;
    let (tx, rx) = flavor.make();
    let send = |n| Box::pin(limit_send(tx.clone().into_send(make(n))));
    let receive = || Box::pin(limit_receive(rx.clone().into_recv()));
    // Through the ring.
    (0..cap).for_each(|n| assert_eq!(send(n).ends(), Ok(())));
    (0..cap).for_each(|n| assert_eq!(receive().ends(), Ok(make(n))));
    // Out of a parked send.
    flavor.fill(&tx, |n| make(n as u8));
    let mut parked = send(90);
    assert_eq!(parked.look().is_pending(), flavor.has_limit());
    let mut last = None;
    (0..=flavor.capacity).for_each(|_| last = Some(receive().ends()));
    assert_eq!((parked.look().is_ready(), last), (flavor.has_limit(), Some(Ok(make(90)))));
    // Into a parked receive, then by way of the stash.
    let (mut one, mut two) = (receive(), receive());
    one.parks();
    two.parks();
    (4..6).for_each(|n| assert_eq!(send(n).ends(), Ok(())));
    flavor.fill(&tx, |n| make(n as u8));
    drop(one);
    assert_eq!((two.ends(), receive().ends()), (Ok(make(5)), Ok(make(4))));
    // Back after a limit, a close, a drop.
    let mut back = flavor.has_limit().then(|| send(8));
    back.iter_mut().for_each(Look::parks);
    drop(send(9));
    clock.advance(5 * MS);
    tx.close();
    let expected = if limited { SendError::TimedOut } else { SendError::Closed };
    back.iter_mut().for_each(|back| assert_eq!(back.ends(), Err(expected(make(8)))));
    assert_eq!(tx.try_send(make(10)), Err(SendError::Closed(make(10))));
    (0..flavor.capacity).for_each(|n| assert_eq!(receive().ends(), Ok(make(n as u8))));
    assert_eq!(receive().ends(), Err(RecvError::Closed));
}

/// Built in its place, and let in beyond the capacity by a close.
fn built_and_admitted<T: PartialEq + Debug + Copy>(flavor: &Flavor, make: impl Fn(u8) -> T) {
    let (tx, rx) = flavor.make();
    let mut receive = Box::pin(rx.recv());
    receive.parks();
    assert_eq!(Box::pin(tx.send_with(|| make(1))).ends(), Ok(()));
    assert_eq!(receive.ends(), Ok(make(1)));
    drop(receive);
    flavor.fill(&tx, |n| make(n as u8));
    if !flavor.has_limit() {
        return;
    }
    let mut back = Box::pin(tx.send_with(|| make(99)));
    back.parks();
    assert_eq!(back.as_mut().withdraw(), Some(make(99)));
    let make = &make;
    let mut sends: Vec<_> = (100..103).map(|n| Box::pin(tx.send_with(move || make(n)))).collect();
    sends.iter_mut().for_each(Look::parks);
    assert!(tx.close_with(Parked::Admit));
    sends.iter_mut().for_each(|send| assert_eq!(send.ends(), Ok(())));
    assert_eq!(rx.len(), flavor.capacity + 3);
    for n in (0..flavor.capacity as u8).chain(100..102) {
        assert_eq!(rx.try_recv(), Ok(make(n)));
    }
    drop(rx);
    assert_eq!(tx.len(), 0);
}

/// Large payloads stand on the stack several times in a debug build.
fn on_a_large_stack(f: impl FnOnce() + Send + 'static) {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    std::thread::Builder::new().name(name).stack_size(256 << 20).spawn(f).unwrap().join().unwrap();
}

/// G10, CASES 20, 44: zero-sized payloads.
#[test]
fn without_size() {
    each_flavor(|flavor| {
        goes_every_way(flavor, |_| ());
        goes_every_way(flavor, |_| Nothing);
        goes_every_way(flavor, |_| EmptyPage);
    });
}

/// G10, CASE 44: payloads smaller than a word, with a niche, of odd size.
#[test]
fn small_and_odd() {
    each_flavor(|flavor| {
        goes_every_way(flavor, |n| n);
        goes_every_way(flavor, |n| n % 2 == 0);
        goes_every_way(flavor, |n| std::num::NonZeroU8::new(n + 1));
        goes_every_way(flavor, char::from);
        goes_every_way(flavor, bytes::<3>);
        goes_every_way(flavor, bytes::<25>);
        goes_every_way(flavor, |n| [u128::from(n) << 100; 2]);
    });
}

/// G10, CASE 44: over-aligned payloads: the slots are aligned, and so is the place in a parked operation.
#[test]
fn over_aligned() {
    each_flavor(|flavor| {
        goes_every_way(flavor, Line);
        goes_every_way(flavor, |n| Page(bytes(n)));
    });
}

/// G10, CASE 44: 1 MiB.
#[test]
#[cfg_attr(miri, ignore = "too slow there; the shorter arrays stand for it")]
fn large() {
    on_a_large_stack(|| {
        each_flavor(|flavor| {
            if flavor.capacity > 2 {
                return flavor.skip("64 MiB at a time, and nothing that two slots do not show");
            }
            // Written as a whole: a debug build takes its time for each byte.
            goes_every_way(flavor, |n| [n; 1 << 20]);
        });
    });
}

/// CASE 20, ELIO (a slot logically free while its consumer is still moving out: the sender waits, then completes; takes
/// published out of order; a late third sender too): large payloads, several senders and receivers on few slots, so that
/// a copy is often in progress when the other side looks. Every byte of every value is as it was sent, once.
#[test]
fn copies_in_progress_are_waited_for() {
    const BYTES: usize = if cfg!(miri) { 300 } else { 40_000 };
    let rounds = if cfg!(miri) { 6 } else { 80 };
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make::<[u8; BYTES]>();
        let seen = std::sync::Mutex::new(vec![0_u8; 3 * rounds]);
        std::thread::scope(|scope| {
            for sender in 0..3 {
                let tx = tx.clone();
                scope.spawn(move || {
                    for n in 0..rounds {
                        let mut value = [(n % 251) as u8; BYTES];
                        value[..8].copy_from_slice(&((sender * rounds + n) as u64).to_ne_bytes());
                        // One in two has a limit that it does not need.
                        let sent = match n % 2 {
                            0 => tx.send(value).wait(),
                            _ => tx.send(value).cancel_on(&CancelToken::new()).timeout(3_600_000 * MS).wait(),
                        };
                        assert!(sent.is_ok());
                    }
                });
            }
            drop(tx);
            let check = |value: [u8; BYTES]| {
                let id = u64::from_ne_bytes(value[..8].try_into().unwrap()) as usize;
                let fill = (id % rounds % 251) as u8;
                assert!(value[8..].iter().all(|&byte| byte == fill), "torn");
                seen.lock().unwrap()[id] += 1;
            };
            for _ in 0..2 {
                let rx = rx.clone();
                scope.spawn(move || {
                    if manner == crate::flavors::Manner::Blocking {
                        return rx.iter().for_each(check);
                    }
                    let mut tasks = Tasks::default();
                    tasks.spawn(async {
                        while let Ok(value) = rx.recv().await {
                            check(value);
                        }
                    });
                    tasks.run();
                });
            }
        });
        assert_eq!(drain(&rx).0.len(), 0);
        assert!(seen.into_inner().unwrap().iter().all(|&times| times == 1));
    });
}

/// G1, ELIO (cancel then close during that window: cancelled, no value; close then cancel: success or closed, once): while
/// large values are being copied out, parked sends are cancelled and the channel is closed, in both orders.
#[test]
fn cancelled_and_closed_beside_a_copy() {
    struct Large(Counted, #[allow(dead_code)] [u8; if cfg!(miri) { 300 } else { 40_000 }]);
    let rounds = if cfg!(miri) { 4 } else { 60 };
    each_flavor(|flavor| {
        if flavor.capacity > 2 {
            return flavor.skip("a long ring only puts the parked sends further from the copies");
        }
        for round in 0..rounds {
            let (ledger, token) = (Ledger::default(), CancelToken::new());
            let value = |id| Large(ledger.value(id), [id as u8; if cfg!(miri) { 300 } else { 40_000 }]);
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, value);
            let mut sends: Vec<_> =
                (0..6).map(|n| Box::pin(tx.clone().into_send(value(10 + n)).cancel_on_owned(token.clone()))).collect();
            sends.iter_mut().for_each(Look::parks);
            let mut got = std::thread::scope(|scope| {
                let receivers = [(); 2].map(|()| scope.spawn(|| rx.try_iter().map(|v| v.0.id).collect::<Vec<_>>()));
                (0..round % 4).for_each(|_| std::thread::yield_now());
                if round % 2 == 0 {
                    token.cancel();
                    tx.close();
                } else {
                    tx.close();
                    token.cancel();
                }
                receivers.into_iter().flat_map(|receiver| receiver.join().unwrap()).collect::<Vec<_>>()
            });
            got.extend(rx.try_iter().map(|value| value.0.id));
            for (n, send) in sends.iter_mut().enumerate() {
                match send.ends() {
                    Ok(()) => assert!(got.contains(&(10 + n))),
                    Err(error) => {
                        assert_eq!(error.is_cancelled(), round % 2 == 0);
                        assert!(error.into_inner().0 == 10 + n && !got.contains(&(10 + n)));
                    }
                }
            }
            drop(sends);
            ledger.settled();
        }
    });
}

/// W2: whoever takes a value out of a parked send ends the send after that: its task, on another processor, goes on at once
/// and uses the place for something else.
#[test]
fn a_send_ends_after_its_value_has_been_taken() {
    // So large that its copy takes longer than a processor is left to a thread.
    const WORDS: usize = if cfg!(miri) { 50 } else { 1 << 19 };
    let rounds = if cfg!(miri) { 3 } else { 10 };
    on_a_large_stack(move || {
        each_flavor(|flavor| {
            if !flavor.sends_wait() {
                return;
            }
            if flavor.capacity > 1 {
                return flavor.skip("what is buffered only puts the parked send further from the receive");
            }
            let (tx, rx) = flavor.make::<[usize; WORDS]>();
            std::thread::scope(|scope| {
                let sender = || {
                    for n in 0..rounds {
                        let mut send = Box::pin(tx.send_with(move || [n; WORDS]));
                        if n >= flavor.capacity {
                            send.parks();
                            // Not by polls: they take the lock, and so wait until whoever ends the send is done with it.
                            while format!("{send:?}").contains("Waiting") {
                                std::thread::yield_now();
                            }
                        }
                        send.ends().unwrap();
                        let words = size_of_val(&*send) / size_of::<usize>();
                        drop(send);
                        // The same memory, or its neighbour; from the end, which is copied last.
                        let mut again = Vec::<usize>::with_capacity(words);
                        again
                            .spare_capacity_mut()
                            .iter_mut()
                            .rev()
                            .for_each(|word| *word = std::mem::MaybeUninit::new(usize::MAX));
                        std::hint::black_box(again);
                    }
                };
                std::thread::Builder::new().stack_size(1 << 30).spawn_scoped(scope, sender).unwrap();
                for n in 0..rounds {
                    // Else the receive would park first, and the value go straight to it.
                    while n + flavor.capacity < rounds && rx.parked_senders() == 0 {
                        std::thread::yield_now();
                    }
                    assert!(rx.recv().wait().is_ok_and(|value| value.iter().all(|&word| word == n)), "torn");
                }
            });
        })
    });
}

/// G10, CASE 44, ELIO (a parked payload is copied once, on delivery; a cancelled one never moves): what a value owns stays
/// where it is: through a parked send, a delivery, an admission beyond the capacity, and a withdrawal.
#[test]
fn values_keep_what_they_own() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        let values = [vec![1_u8; 100], vec![2; 100], vec![3; 100], vec![4; 100]];
        let addresses = values.each_ref().map(|value| value.as_ptr());
        let [a, b, c, d] = values;
        flavor.hold(&tx, &rx, a);
        (1..flavor.capacity).for_each(|_| tx.try_send(Vec::new()).unwrap());
        let (mut send, mut back, mut late) = (Box::pin(tx.send(b)), Box::pin(tx.send(c)), Box::pin(tx.send(d)));
        send.parks();
        back.parks();
        late.parks();
        let back = back.as_mut().withdraw().unwrap();
        let first = rx.try_recv().unwrap();
        assert!(tx.close_with(Parked::Admit));
        assert_eq!((send.ends(), late.ends()), (Ok(()), Ok(())));
        let [b, d] = drain(&rx).0.into_iter().filter(|value| !value.is_empty()).collect::<Vec<_>>().try_into().unwrap();
        assert_eq!([first, b, back, d].each_ref().map(|value| value.as_ptr()), addresses);
    });
}
