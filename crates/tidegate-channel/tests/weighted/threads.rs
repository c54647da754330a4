//! Threads that send by weight, under limits, and receive: every value once, in order, never more than the limit.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use tidegate_channel::{bounded_by, Operation, Receiver, WeightedSendError, WeightedSender};
use tidegate_wait::cancel::CancelToken;

use crate::support::{within, Counted, Ledger, Rng};

const LIMIT: u64 = 12;

type Message = (u64, usize, usize, Counted);

#[test]
fn g1_threads() {
    within(Duration::from_secs(120), "threads", || {
        let (senders, rounds) = if cfg!(miri) { (2, 30) } else { (4, 4_000) };
        let ledger = Ledger::default();
        let (tx, rx) = bounded_by(LIMIT, |message: &Message| message.0);
        let (sent, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let received: usize = thread::scope(|scope| {
            let (sent, over, ledger) = (&sent, &over, &ledger);
            let receivers: Vec<_> = (0..2)
                .map(|id| {
                    let rx = rx.clone();
                    scope.spawn(move || receive(&rx, id, senders))
                })
                .collect();
            let watch = tx.clone();
            scope.spawn(move || {
                while !over.load(SeqCst) {
                    assert!(watch.weight() <= LIMIT, "A1");
                    thread::yield_now();
                }
            });
            let threads: Vec<_> = (0..senders)
                .map(|id| {
                    let tx = tx.clone();
                    scope.spawn(move || send(&tx, id, rounds, sent, ledger))
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            over.store(true, SeqCst);
            // What is buffered drains; nobody is left in line.
            assert_eq!(tx.parked_senders(), 0);
            tx.close();
            receivers.into_iter().map(|receiver| receiver.join().unwrap()).sum()
        });
        assert_eq!(received, sent.load(SeqCst));
        assert_eq!(tx.weight(), 0);
        drop((tx, rx));
        ledger.settled();
    });
}

fn send(tx: &WeightedSender<Message>, id: usize, rounds: usize, sent: &AtomicUsize, ledger: &Ledger) {
    let mut rng = Rng(id as u64);
    for n in 0..rounds {
        let weight = if rng.below(8) == 0 { LIMIT } else { 1 + rng.below(5) as u64 };
        let message = (weight, id, n, ledger.value(n));
        let limit = Duration::from_micros(rng.below(60) as u64);
        let ended = match rng.below(6) {
            0 => tx.send(message).timeout(limit).wait(),
            1 => tx.try_send(message),
            2 => {
                let token = CancelToken::new();
                let other = token.clone();
                let cancels = (n % 50 == 0).then(|| thread::spawn(move || other.cancel()));
                let ended = tx.send(message).cancel_on(&token).timeout(50 * limit).wait();
                cancels.into_iter().for_each(|cancels| drop(cancels.join()));
                ended
            }
            3 => tx.clone().into_send(message).wait(),
            _ => tx.send(message).wait(),
        };
        match ended {
            Ok(()) => {
                sent.fetch_add(1, SeqCst);
            }
            Err(WeightedSendError::Closed(_) | WeightedSendError::TooHeavy { .. }) => unreachable!(),
            Err(_) => {}
        }
    }
}

/// Values of one sender come in order: to each receiver, if it gives none back.
fn receive(rx: &Receiver<Message>, id: usize, senders: usize) -> usize {
    let mut last = vec![None; senders];
    let mut rng = Rng(100 + id as u64);
    let mut count = 0;
    loop {
        let received = match rng.below(3) {
            0 => rx.recv().timeout(Duration::from_micros(20)).wait(),
            _ => rx.recv().wait(),
        };
        match received {
            Ok((_, sender, n, _)) => {
                assert!(last[sender] < Some(n), "G2");
                last[sender] = Some(n);
                count += 1;
            }
            Err(error) if error.is_closed() => return count,
            Err(_) => {}
        }
    }
}
