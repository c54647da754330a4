//! One channel, every kind of waiting at once (G9): a plain thread, tokio, smol, an executor that knows nothing of us.
#![cfg(not(miri))]

use std::future::Future;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use tidegate_channel::{Operation, Receiver, RecvError, Sender};
use tidegate_wait::cancel::CancelToken;

use crate::flavors::each_flavor;
use crate::support::{Counted, Ledger, Tasks};

const EACH: usize = 300;

/// A sender's numbers are its own thousand.
async fn sends(tx: Sender<Counted>, ledger: Ledger, thousand: usize) {
    let token = CancelToken::new();
    for n in 0..EACH {
        let value = ledger.value(1000 * thousand + n);
        let sent = match n % 4 {
            0 => tx.send(value).await,
            1 => tx.send(value).timeout(Duration::from_secs(3600)).await,
            2 => tx.send(value).cancel_on(&token).await,
            _ => tx.send_with(|| value).await,
        };
        assert!(sent.is_ok());
    }
}

/// Gives every other receive up once before it takes its value.
async fn receives(rx: Receiver<Counted>, seen: &Seen) {
    let mut own = Vec::new();
    loop {
        if own.len() % 2 == 0 {
            let mut given_up = Box::pin(rx.recv());
            // Delivered or not, it loses nothing.
            let ready = std::future::poll_fn(|cx| std::task::Poll::Ready(given_up.as_mut().poll(cx))).await;
            match ready {
                std::task::Poll::Ready(Ok(value)) => {
                    own.push(value.id);
                    continue;
                }
                std::task::Poll::Ready(Err(end)) => break assert_eq!(end, RecvError::Closed),
                std::task::Poll::Pending => drop(given_up),
            }
        }
        match rx.recv().await {
            Ok(value) => own.push(value.id),
            Err(end) => break assert_eq!(end, RecvError::Closed),
        }
    }
    seen.lock().unwrap().push(own);
}

/// What each receiver has seen.
type Seen = Mutex<Vec<Vec<usize>>>;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
}

/// G1, G9: every value is received exactly once, whoever waits for it and how. (Not in order: a delivery that is given up
/// may come back after a later value was handed to another receive, G2.)
#[test]
fn all_at_once_on_one_channel() {
    each_flavor(|flavor| {
        let (ledger, seen): (_, &'static Seen) = (Ledger::default(), Box::leak(Box::default()));
        let (tx, rx) = flavor.make();
        let tokio = runtime();
        let spawned = [tokio.spawn(sends(tx.clone(), ledger.clone(), 0)), tokio.spawn(receives(rx.clone(), seen))];
        thread::scope(|scope| {
            let halves = || (tx.clone(), rx.clone(), ledger.clone());
            let (tx_1, rx_1, ledger_1) = halves();
            scope.spawn(move || {
                let executor = smol::LocalExecutor::new();
                let tasks = [executor.spawn(sends(tx_1, ledger_1, 1)), executor.spawn(receives(rx_1, seen))];
                smol::block_on(executor.run(async {
                    for task in tasks {
                        task.await;
                    }
                }));
            });
            let (tx_2, rx_2, ledger_2) = halves();
            scope.spawn(move || {
                let mut tasks = Tasks::default();
                tasks.spawn(sends(tx_2, ledger_2, 2));
                tasks.spawn(receives(rx_2, seen));
                tasks.run();
            });
            let (tx_3, rx_3, ledger_3) = halves();
            scope.spawn(move || (0..EACH).for_each(|n| assert!(tx_3.send(ledger_3.value(3000 + n)).wait().is_ok())));
            scope.spawn(move || seen.lock().unwrap().push(rx_3.iter().map(|value| value.id).collect()));
            drop((tx, rx));
        });
        spawned.into_iter().for_each(|task| tokio.block_on(task).unwrap());
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(seen.len(), 4);
        let mut all: Vec<_> = seen.into_iter().flatten().collect();
        all.sort_unstable();
        assert_eq!(all, (0..4).flat_map(|sender| (0..EACH).map(move |n| 1000 * sender + n)).collect::<Vec<_>>());
        ledger.settled();
    });
}

/// CASE 9: a send from a thread outside wakes the task, and does not run it: it goes on in its own runtime, where its next
/// sleep returns.
#[test]
fn a_task_goes_on_in_its_runtime() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        let (back, returned) = flavor.make();
        let tokio = runtime();
        let task = tokio.spawn(async move {
            let value: thread::ThreadId = rx.recv().await.unwrap();
            assert_ne!(thread::current().id(), value);
            tokio::time::sleep(Duration::from_millis(1)).await;
            back.send(tokio::runtime::Handle::try_current().is_ok()).await.unwrap();
        });
        tx.send(thread::current().id()).wait().unwrap();
        assert_eq!(returned.recv().wait(), Ok(true));
        tokio.block_on(task).unwrap();
    });
}

/// CASES 10, 11: another library's time-outs and selects around a receive: what they give up is not lost.
#[test]
fn foreign_limits_lose_nothing() {
    const TOTAL: usize = 400;
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        let sender = thread::spawn(move || (0..TOTAL).for_each(|n| tx.send(n).wait().unwrap()));
        let received = runtime().block_on(async {
            let mut received = Vec::new();
            for round in 0_u64.. {
                let limit = Duration::from_micros(round % 3);
                let got = match tokio::time::timeout(limit, rx.recv()).await {
                    Ok(got) => got,
                    Err(_) => {
                        smol::future::or(
                            async {
                                tokio::time::sleep(limit).await;
                                Err(RecvError::TimedOut)
                            },
                            rx.recv(),
                        )
                        .await
                    }
                };
                match got {
                    Ok(value) => received.push(value),
                    Err(RecvError::Closed) => break,
                    Err(_) => {}
                }
            }
            received
        });
        sender.join().unwrap();
        assert_eq!(received, (0..TOTAL).collect::<Vec<_>>());
    });
}
