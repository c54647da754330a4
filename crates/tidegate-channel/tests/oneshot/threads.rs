//! Many channels between threads, with every operation at once: each value ends in exactly one place.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tidegate_channel::{bounded, oneshot, Operation, RecvError};
use tidegate_wait::cancel::CancelToken;

use crate::support::{within, Counted, Ledger, Look, Rng, Tasks};

const ROUNDS: usize = if cfg!(miri) { 24 } else { 30_000 };
const LIMIT: Duration = Duration::from_secs(120);

type Pair = (oneshot::Sender<Counted>, oneshot::Receiver<Counted>);

/// The sender's part, by chance.
fn send(tx: oneshot::Sender<Counted>, value: Counted, rng: &mut Rng) -> (usize, usize) {
    match rng.below(8) {
        0 => {
            drop(tx);
            drop(value);
            (0, 1)
        }
        1 => {
            let _over = tx.closed().timeout(Duration::from_micros(rng.next() % 20)).wait();
            settle(tx.send(value))
        }
        2 => {
            if tx.is_closed() {
                assert!(tx.send(value).is_err(), "closed for good");
                return (0, 1);
            }
            settle(tx.send(value))
        }
        _ => settle(tx.send(value)),
    }
}

/// Sent, returned.
fn settle(sent: Result<(), tidegate_channel::SendError<Counted>>) -> (usize, usize) {
    match sent {
        Ok(()) => (1, 0),
        Err(error) => {
            assert!(error.is_closed());
            drop(error.into_inner());
            (0, 1)
        }
    }
}

/// The receiver's part, by chance; returns how many values it got, and whether it went without looking.
fn receive(mut rx: oneshot::Receiver<Counted>, rng: &mut Rng) -> (usize, bool) {
    let soon = Duration::from_micros(rng.next() % 20);
    match rng.below(8) {
        0 => (0, true),
        1 => {
            rx.close();
            (usize::from(rx.try_recv().is_ok()), false)
        }
        2 => (usize::from(rx.into_recv().timeout(soon).wait().is_ok()), true),
        3 => {
            let mut receive = Box::pin(rx.recv());
            let early = receive.look();
            drop(receive);
            match early {
                std::task::Poll::Ready(end) => (usize::from(end.is_ok()), false),
                std::task::Poll::Pending => (usize::from(rx.recv().wait().is_ok()), false),
            }
        }
        4 => {
            let token = CancelToken::new();
            let mut tries = 0;
            let end = loop {
                match rx.recv().timeout(soon).cancel_on(&token).wait() {
                    Err(RecvError::TimedOut) if tries > 3 => assert!(token.cancel()),
                    Err(RecvError::TimedOut) => tries += 1,
                    end => break end,
                }
            };
            let again = rx.into_recv().wait();
            assert!(end.is_err() || again.is_err());
            (usize::from(end.is_ok() || again.is_ok()), false)
        }
        5 => loop {
            match rx.try_recv() {
                Err(RecvError::Empty) => thread::yield_now(),
                end => return (usize::from(end.is_ok()), false),
            }
        },
        _ => (usize::from(rx.into_recv().wait().is_ok()), false),
    }
}

/// G1: sent = received + dropped with a receiver that was abandoned; made = sent + returned; and nothing is left.
#[test]
fn each_value_ends_once() {
    within(LIMIT, "storm", || {
        let ledger = Ledger::default();
        let (to_sender, senders) = bounded(16);
        let (to_receiver, receivers) = bounded(16);
        let (received, abandoned) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (sent, returned) = thread::scope(|scope| {
            let made = ledger.clone();
            let sender = scope.spawn(move || {
                let (mut rng, mut sum) = (Rng(1), (0, 0));
                while let Ok((id, tx)) = senders.recv().wait() {
                    let (sent, returned) = send(tx, made.value(id), &mut rng);
                    sum = (sum.0 + sent, sum.1 + returned);
                }
                sum
            });
            let (received, abandoned) = (&received, &abandoned);
            scope.spawn(move || {
                let mut rng = Rng(2);
                while let Ok(rx) = receivers.recv().wait() {
                    let (got, gone) = receive(rx, &mut rng);
                    received.fetch_add(got, Ordering::Relaxed);
                    abandoned.fetch_add(usize::from(gone && got == 0), Ordering::Relaxed);
                }
            });
            let mut rng = Rng(3);
            for id in 0..ROUNDS {
                let (tx, rx): Pair = oneshot::channel();
                if rng.below(2) == 0 {
                    to_sender.send((id, tx)).wait().unwrap();
                    to_receiver.send(rx).wait().unwrap();
                } else {
                    to_receiver.send(rx).wait().unwrap();
                    to_sender.send((id, tx)).wait().unwrap();
                }
            }
            drop((to_sender, to_receiver));
            sender.join().unwrap()
        });
        let (received, abandoned) = (received.into_inner(), abandoned.into_inner());
        assert_eq!(sent + returned, ROUNDS);
        assert!(received <= sent && sent <= received + abandoned, "{received} {sent} {abandoned}");
        ledger.settled();
    });
}

/// Requests and replies between tasks on two threads: every reply reaches its request.
#[test]
fn requests_and_replies() {
    within(LIMIT, "replies", || {
        let (requests, inbox) = bounded::<(usize, oneshot::Sender<usize>)>(8);
        let server = thread::spawn(move || {
            while let Ok((n, reply)) = inbox.recv().wait() {
                let _abandoned = reply.send(2 * n);
            }
        });
        let mut tasks = Tasks::default();
        for task in 0..8 {
            let requests = requests.clone();
            tasks.spawn(async move {
                for n in (task..ROUNDS / 4).step_by(8) {
                    let (reply, mut answer) = oneshot::channel();
                    requests.send((n, reply)).await.unwrap();
                    if n % 3 == 0 {
                        let early = answer.recv().timeout(Duration::from_micros(5)).await;
                        match early {
                            Err(RecvError::TimedOut) => assert_eq!(answer.await, Ok(2 * n)),
                            end => assert_eq!(end, Ok(2 * n)),
                        }
                    } else {
                        assert_eq!(answer.await, Ok(2 * n));
                    }
                }
            });
        }
        drop(requests);
        tasks.run();
        server.join().unwrap();
    });
}
