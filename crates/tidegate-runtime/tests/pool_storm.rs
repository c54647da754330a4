//! Tasks that are spawned, woken, stolen and aborted from everywhere at once: each future and each output ends once, and
//! every join is told. For the sanitizers, and for Miri with many seeds.
#![cfg(not(loom))]

use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_channel::{bounded, rendezvous};
use tidegate_runtime::{spawn, spawn_local, yield_now, Handle, JoinError, Runtime};
use tidegate_wait::timer::sleep;

const SCALE: usize = if cfg!(miri) { 1 } else { 40 };

/// What is alive.
#[derive(Clone, Default)]
struct Ledger(Arc<AtomicUsize>);

struct Counted(Ledger);

impl Ledger {
    fn value(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }

    fn alive(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        assert!(self.0 .0.fetch_sub(1, Ordering::Relaxed) > 0, "dropped twice");
    }
}

/// A small generator: the tests are the same each time, but for the threads' order.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

fn pool(threads: usize) -> Runtime {
    Runtime::builder().threads(threads).build().unwrap()
}

/// One task of the storm.
fn storm(
    seed: u64,
    depth: usize,
    ledger: Ledger,
    wakers: Arc<Mutex<Vec<Waker>>>,
) -> Pin<Box<dyn Future<Output = usize> + Send>> {
    Box::pin(life(seed, depth, ledger, wakers))
}

/// Does a bit of everything, and has children.
async fn life(seed: u64, depth: usize, ledger: Ledger, wakers: Arc<Mutex<Vec<Waker>>>) -> usize {
    let _value = ledger.value();
    let mut random = Random(seed | 1);
    let mut children = Vec::new();
    let mut sum = 1;
    for step in 0..6 {
        match random.next(7) {
            0 => yield_now().await,
            1 => sleep(Duration::from_micros(random.next(300) as u64)).await,
            // Woken from elsewhere while it runs, stands in a queue, or has long ended.
            2 => {
                let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
                wakers.lock().unwrap().push(waker);
            }
            3 => {
                let woken = wakers.lock().unwrap().pop();
                if let Some(waker) = woken {
                    waker.wake();
                }
            }
            _ if depth > 0 => {
                let future = storm(random.next(1 << 30) as u64 + step, depth - 1, ledger.clone(), wakers.clone());
                children.push(spawn(future));
            }
            _ => {}
        }
    }
    for (number, child) in children.into_iter().enumerate() {
        match number % 4 {
            0 => child.abort(),
            1 => {
                child.detach();
                continue;
            }
            _ => {}
        }
        let output = Box::pin(child.into_join()).await;
        match output {
            Ok(below) => sum += below,
            // Refused: the runtime ends.
            Err(JoinError::Aborted | JoinError::Shutdown) => {}
            Err(error) => panic!("{error}"),
        }
    }
    sum
}

#[test]
fn everything_at_once() {
    for threads in [2, 4] {
        let ledger = Ledger::default();
        let rt = pool(threads);
        let wakers = Arc::new(Mutex::new(Vec::<Waker>::new()));
        let stop = Arc::new(AtomicUsize::new(0));
        // A thread that wakes whatever it can get, and asks for reports.
        let (foreign, handle) = (wakers.clone(), rt.handle());
        let stopped = stop.clone();
        let outside = thread::spawn(move || {
            while stopped.load(Ordering::Relaxed) == 0 {
                let waker = foreign.lock().unwrap().pop();
                if let Some(waker) = waker {
                    waker.wake_by_ref();
                    waker.wake();
                }
                assert!(handle.dump().is_complete);
                thread::yield_now();
            }
        });
        let sum = rt
            .block_on(async {
                let mut sum = 0;
                for round in 0..2 * SCALE {
                    let (ledger, wakers) = (ledger.clone(), wakers.clone());
                    let shared = spawn(storm(round as u64 * 77 + 5, 3, ledger.clone(), wakers.clone()));
                    let pinned = spawn_local(storm(round as u64 * 99 + 7, 2, ledger, wakers));
                    sum += shared.await.unwrap() + pinned.await.unwrap();
                }
                sum
            })
            .unwrap();
        assert!(sum >= 4 * SCALE);
        stop.store(1, Ordering::Relaxed);
        outside.join().unwrap();
        rt.shutdown(Duration::MAX).unwrap();
        wakers.lock().unwrap().clear();
        assert_eq!(ledger.alive(), 0);
    }
}

/// Values through channels between tasks that move between threads: each arrives once, in the order of its sender.
#[test]
fn values_arrive_once_and_in_order() {
    let rt = pool(3);
    let rounds = if cfg!(miri) { 15 } else { 3_000 };
    rt.block_on(async {
        let mut joins = Vec::new();
        for capacity in [0, 1, 2, 64] {
            let (tx, rx) = if capacity == 0 { rendezvous() } else { bounded(capacity) };
            for sender in 0..3_usize {
                let tx = tx.clone();
                joins.push(spawn(async move {
                    for n in 0..rounds {
                        tx.send((sender, n)).await.unwrap();
                        if n % 7 == sender {
                            yield_now().await;
                        }
                    }
                    0
                }));
            }
            drop(tx);
            joins.push(spawn(async move {
                let mut next = [0; 3];
                while let Ok((sender, n)) = rx.recv().await {
                    assert_eq!(n, next[sender]);
                    next[sender] += 1;
                }
                next.iter().sum()
            }));
        }
        let mut received = 0;
        for join in joins {
            received += join.await.unwrap();
        }
        assert_eq!(received, 4 * 3 * rounds);
    })
    .unwrap();
}

/// Runtimes that end at any moment, while others spawn into them and wake their tasks: nothing is left, nothing twice.
#[test]
fn pools_end_under_fire() {
    let ledger = Ledger::default();
    for round in 0..if cfg!(miri) { 3 } else { 150 } {
        let rt = pool(2 + round % 3);
        let wakers = Arc::new(Mutex::new(Vec::<Waker>::new()));
        let (handle, fire, fired) = (rt.handle(), wakers.clone(), ledger.clone());
        let outside = thread::spawn(move || outside(&handle, &fire, &fired));
        rt.block_on(async {
            for seed in 0..4 {
                spawn(storm(seed * 31 + round as u64, 2, ledger.clone(), wakers.clone())).detach();
            }
            for _ in 0..round % 5 {
                yield_now().await;
            }
        })
        .unwrap();
        drop(rt);
        outside.join().unwrap();
        wakers.lock().unwrap().drain(..).for_each(Waker::wake);
        // A worker that was in the middle of a poll, on a slow machine, may be the last to leave.
        let begin = Instant::now();
        while ledger.alive() != 0 {
            assert!(begin.elapsed() < Duration::from_secs(60), "round {round}: {} are left", ledger.alive());
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn outside(handle: &Handle, wakers: &Arc<Mutex<Vec<Waker>>>, ledger: &Ledger) {
    for seed in 0..if cfg!(miri) { 3 } else { 40 } {
        let task = handle.spawn(storm(seed, 1, ledger.clone(), wakers.clone()));
        let waker = wakers.lock().unwrap().pop();
        match seed % 3 {
            0 => task.abort(),
            1 => drop(task),
            // The runtime may be gone.
            _ => match task.wait() {
                Ok(_) | Err(JoinError::Shutdown) => {}
                Err(error) => panic!("{error}"),
            },
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Workers come and go while tasks run.
#[test]
fn sizes_change_under_load() {
    let ledger = Ledger::default();
    let rt = pool(2);
    let handle = rt.handle();
    let resizer = thread::spawn(move || {
        for round in 0..if cfg!(miri) { 6 } else { 400 } {
            handle.resize(1 + (round * 7) % 6).unwrap();
            thread::yield_now();
        }
        handle.resize(2).unwrap();
    });
    rt.block_on(async {
        let wakers = Arc::new(Mutex::new(Vec::<Waker>::new()));
        for round in 0..3 * SCALE as u64 {
            let tasks: Vec<_> =
                (0..4).map(|seed| spawn(storm(seed + 9 * round, 2, ledger.clone(), wakers.clone()))).collect();
            for task in tasks {
                task.await.unwrap();
            }
        }
    })
    .unwrap();
    resizer.join().unwrap();
    rt.shutdown(Duration::MAX).unwrap();
    assert_eq!(ledger.alive(), 0);
}
