//! The parker under loom: every interleaving of park and wakes (K1).
#![cfg(loom)]

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::Arc;
use loom::thread;
use tidegate_wait::op::block_on;
use tidegate_wait::parker::Parker;
use tidegate_wait::wait_queue::WaitQueue;

#[test]
fn a_token_is_not_lost() {
    loom::model(|| {
        let parker = Parker::new();
        let waker = parker.waker().clone();
        let other = thread::spawn(move || waker.wake());
        parker.park();
        other.join().unwrap();
    });
}

#[test]
fn the_woken_thread_sees_what_each_waker_did_before() {
    // Two wakers; whichever token the park takes, what was done before a wake that was merged into it is seen, or another
    // token is there.
    loom::model(|| {
        let parker = Parker::new();
        let done = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let others: Vec<_> = (0..2)
            .map(|i| {
                let (waker, done) = (parker.waker().clone(), done.clone());
                thread::spawn(move || {
                    done[i].store(1, Ordering::Relaxed);
                    waker.wake();
                })
            })
            .collect();
        while done.iter().map(|done| done.load(Ordering::Relaxed)).sum::<usize>() != 2 {
            parker.park();
        }
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn park_again_after_a_token() {
    loom::model(|| {
        let parker = Parker::new();
        let turn = Arc::new(AtomicUsize::new(0));
        parker.waker().wake_by_ref();
        let (waker, set) = (parker.waker().clone(), turn.clone());
        let other = thread::spawn(move || {
            set.store(1, Ordering::Relaxed);
            waker.wake();
        });
        parker.park();
        while turn.load(Ordering::Relaxed) == 0 {
            parker.park();
        }
        other.join().unwrap();
    });
}

#[test]
fn a_blocking_wait_is_woken() {
    loom::model(|| {
        let queue = Arc::new(WaitQueue::<usize>::new());
        let other = {
            let queue = queue.clone();
            thread::spawn(move || {
                let handed = queue.hand_over(1).is_ok();
                queue.close();
                handed
            })
        };
        let got = block_on(queue.park());
        assert_eq!(got.is_ok(), other.join().unwrap());
    });
}
