//! A timer of a runtime takes the first out of a line, and many behind it may go on: whatever the runtime does then (O4).
#![cfg(not(loom))]

#[path = "support/make.rs"]
mod make;

use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_channel::{bounded, bounded_by, Operation, Receiver, RecvError, WeightedSender};
use tidegate_runtime::{spawn, OutsideGuard};

use make::builder;

const MS: Duration = Duration::from_millis(1);
const LINE: usize = 500;
/// What the first wants: all that the channel may have.
const ALL: u64 = 1_000;

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Woken {
    #[track_caller]
    fn reaches(&self, n: usize) {
        let begin = Instant::now();
        while self.0.load(Ordering::SeqCst) < n {
            thread::sleep(MS);
            assert!(begin.elapsed() < Duration::from_secs(60), "{} of {n} were let in", self.0.load(Ordering::SeqCst));
        }
    }
}

fn parks<F: Future + ?Sized>(operation: Pin<&mut F>, waker: &Waker) {
    assert!(operation.poll(&mut Context::from_waker(waker)).is_pending());
}

/// A channel with something in it.
fn channel() -> (WeightedSender<u64>, Receiver<u64>) {
    let (tx, rx) = bounded_by(ALL, |&n: &u64| n);
    tx.try_send(1).unwrap();
    (tx, rx)
}

/// `block_on` returns as soon as the first knows its end, or its task goes on computing: the others are let in.
#[test]
fn a_line_does_not_wait_for_the_runtime() {
    for returns in [true, false] {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let (tx, _rx) = channel();
        let mut line: Vec<_> = (0..LINE).map(|_| Box::pin(tx.send(1))).collect();
        let rt = builder().build().unwrap();
        rt.block_on(async {
            let mut heavy = pin!(tx.send(ALL).timeout(5 * MS));
            parks(heavy.as_mut(), Waker::noop());
            line.iter_mut().for_each(|send| parks(send.as_mut(), &waker));
            assert!(heavy.await.is_err());
            if !returns {
                woken.reaches(LINE);
            }
        })
        .unwrap();
        woken.reaches(LINE);
    }
}

/// The slots of a reservation that expired are nobody's then: those behind it have gone, and a closed channel ends (E3).
#[test]
fn slots_do_not_wait_for_the_runtime() {
    let (tx, rx) = bounded(LINE + 1);
    (0..=LINE).for_each(|n| tx.try_send(n).unwrap());
    let mut line: Vec<_> = (0..LINE).map(|n| Box::pin(tx.send(n))).collect();
    builder()
        .build()
        .unwrap()
        .block_on(async {
            let mut many = pin!(tx.reserve_many(LINE + 1).timeout(5 * MS));
            parks(many.as_mut(), Waker::noop());
            line.iter_mut().for_each(|send| parks(send.as_mut(), Waker::noop()));
            (0..LINE).for_each(|n| assert_eq!(rx.try_recv(), Ok(n)));
            assert!(many.await.is_err());
        })
        .unwrap();
    drop(line);
    assert!(rx.close());
    let begin = Instant::now();
    while rx.try_recv() != Err(RecvError::Closed) {
        assert!(begin.elapsed() < Duration::from_secs(60), "permits are left");
    }
}

/// A line of tasks in a closed world, behind a send of another runtime that `then` does something when it has expired.
fn closed_world_beside(then: impl FnOnce(OutsideGuard) + Send + 'static) {
    let (tx, _rx) = channel();
    let closed = builder().closed_world(true).build().unwrap();
    let (guard, heavy) = (closed.handle().outside(), tx.clone());
    let (says_parked, parked) = mpsc::channel();
    // Its runtime stays alive meanwhile.
    let (over, is_over) = mpsc::channel::<()>();
    let other = thread::spawn(move || {
        let rt = builder().build().unwrap();
        rt.block_on(async {
            let mut heavy = pin!(heavy.send(ALL).timeout(200 * MS));
            parks(heavy.as_mut(), Waker::noop());
            says_parked.send(()).unwrap();
            assert!(heavy.await.is_err());
            then(guard);
        })
        .unwrap();
        is_over.recv().unwrap_err();
    });
    parked.recv().unwrap();
    let ended = closed.block_on(async {
        let send = |tx: WeightedSender<u64>| spawn(async move { tx.send(1).await.is_ok() });
        let line: Vec<_> = (0..LINE).map(|_| send(tx.clone())).collect();
        for task in line {
            assert!(task.await.unwrap());
        }
    });
    assert!(ended.is_ok(), "{:?}", ended.map_err(|error| error.to_string()));
    drop(over);
    other.join().unwrap();
}

/// Never a false alarm: whoever was outside has gone, but the line is still being let in.
#[test]
fn no_deadlock_is_declared_meanwhile() {
    closed_world_beside(drop);
    closed_world_beside(|guard| {
        drop(guard);
        thread::sleep(50 * MS);
    });
}
