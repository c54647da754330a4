//! Tokens under loom: each pair of cancel, register, unregister, wait, arm, child made and child dropped (C1 to C5, B1, B2).
#![cfg(loom)]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use tidegate_wait::cancel::{CancelToken, Registration};
use tidegate_wait::op::poll_once;
use tidegate_wait::wait_queue::{ParkError, WaitQueue};
use tidegate_wait::{Limit, Operation};

/// A waker that counts, outside loom's schedule.
struct Count(std::sync::atomic::AtomicUsize);

impl Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

fn counting() -> (std::sync::Arc<Count>, Waker) {
    let count = std::sync::Arc::new(Count(Default::default()));
    (count.clone(), count.into())
}

impl Count {
    fn get(&self) -> usize {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

fn cancels(token: &CancelToken) -> thread::JoinHandle<bool> {
    let token = token.clone();
    thread::spawn(move || token.cancel())
}

#[test]
fn one_of_two_cancellations_is_first() {
    loom::model(|| {
        let token = CancelToken::new();
        let other = {
            let token = token.clone();
            thread::spawn(move || token.cancel_with("other"))
        };
        let here = token.cancel_with("here");
        assert!(here != other.join().unwrap());
        assert_eq!(token.reason().unwrap().to_string(), if here { "here" } else { "other" });
    });
}

#[test]
fn register_and_cancel() {
    // C2: run by the cancellation, or at once: exactly once.
    loom::model(|| {
        let (token, ran) = (CancelToken::new(), Arc::new(AtomicUsize::new(0)));
        let other = cancels(&token);
        let counts = ran.clone();
        let registration = token.on_cancel(move || {
            counts.fetch_add(1, Ordering::Relaxed);
        });
        assert!(other.join().unwrap());
        assert_eq!(ran.load(Ordering::Relaxed), 1);
        drop(registration);
    });
}

#[test]
fn unregister_and_cancel() {
    // B1: when the unregistration has returned, the callback has run to its end, or never will.
    loom::model(|| {
        let (token, steps) = (CancelToken::new(), Arc::new(AtomicUsize::new(0)));
        let in_callback = steps.clone();
        let registration = token.on_cancel(move || {
            in_callback.fetch_add(1, Ordering::Relaxed);
            in_callback.fetch_add(1, Ordering::Relaxed);
        });
        let other = cancels(&token);
        drop(registration);
        let seen = steps.load(Ordering::Relaxed);
        assert!(seen == 0 || seen == 2, "in the middle of it");
        other.join().unwrap();
        assert_eq!(steps.load(Ordering::Relaxed), seen, "ran after its unregistration");
    });
}

#[test]
fn two_unregister_while_one_cancels() {
    loom::model(|| {
        let token = CancelToken::new();
        let (first, second) = (token.on_cancel(|| {}), token.on_cancel(|| {}));
        let other = cancels(&token);
        let third = thread::spawn(move || drop(second));
        drop(first);
        third.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn mutual_unregistration() {
    // B2; CASE 31: each callback takes the other one back. Loom reports a deadlock.
    loom::model(|| {
        let tokens = [CancelToken::new(), CancelToken::new()];
        let slots: Arc<[Mutex<Option<Registration>>; 2]> = Arc::new([Mutex::new(None), Mutex::new(None)]);
        for i in 0..2 {
            let all = slots.clone();
            let registration = tokens[i].on_cancel(move || {
                let other = all[1 - i].lock().unwrap().take();
                drop(other);
            });
            *slots[i].lock().unwrap() = Some(registration);
        }
        let other = cancels(&tokens[0]);
        tokens[1].cancel();
        other.join().unwrap();
        let left = (slots[0].lock().unwrap().take(), slots[1].lock().unwrap().take());
        drop(left);
    });
}

#[test]
fn inside_is_said_of_one_thread_only() {
    // B1 beside B2: that another thread is inside a callback does not excuse this one from waiting.
    loom::model(|| {
        let (token, busy) = (CancelToken::new(), CancelToken::new());
        let steps = Arc::new(AtomicUsize::new(0));
        let in_callback = steps.clone();
        let registration = token.on_cancel(move || {
            in_callback.fetch_add(1, Ordering::Relaxed);
            thread::yield_now();
            in_callback.fetch_add(1, Ordering::Relaxed);
        });
        let elsewhere = busy.on_cancel(thread::yield_now);
        let others = [cancels(&token), cancels(&busy)];
        drop(registration);
        assert_ne!(steps.load(Ordering::Relaxed), 1);
        others.into_iter().for_each(|other| assert!(other.join().unwrap()));
        drop(elsewhere);
    });
}

#[test]
fn wait_and_cancel() {
    // The wait ends, however the waker changes; who was told to wait is woken.
    loom::model(|| {
        let token = CancelToken::new();
        let other = cancels(&token);
        {
            let mut wait = pin!(token.cancelled());
            let mut last = None;
            for _ in 0..2 {
                let (count, waker) = counting();
                if wait.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                    last = None;
                    break;
                }
                last = Some(count);
            }
            other.join().unwrap();
            assert!(last.is_none_or(|last| last.get() == 1));
            assert!(poll_once(wait.as_mut()).is_ready());
        }
    });
}

#[test]
fn drop_a_wait_and_cancel() {
    loom::model(|| {
        let token = CancelToken::new();
        let mut wait = Box::pin(token.cancelled());
        assert!(poll_once(wait.as_mut()).is_pending());
        let other = cancels(&token);
        drop(wait);
        other.join().unwrap();
    });
}

#[test]
fn arm_and_cancel() {
    // C2, C5: the operation registers while the token is cancelled; it ends, once, and gives its references back.
    loom::model(|| {
        let (token, queue) = (CancelToken::new(), WaitQueue::<u32>::new());
        let other = cancels(&token);
        let (count, waker) = counting();
        let mut park = Box::pin(queue.park().cancel_on(&token));
        let first = park.as_mut().poll(&mut Context::from_waker(&waker));
        other.join().unwrap();
        if first.is_pending() {
            assert_eq!(count.get(), 1);
        }
        assert_eq!(poll_once(park.as_mut()), Poll::Ready(Err(ParkError::Cancelled)));
        drop(park);
        assert_eq!(queue.parked(), 0);
    });
}

#[test]
fn drop_an_operation_and_cancel() {
    // C5, and the owner's memory: the queue goes right after.
    loom::model(|| {
        let (token, queue) = (CancelToken::new(), WaitQueue::<u32>::new());
        let mut park = Box::pin(queue.park().cancel_on(&token));
        assert!(park.as_mut().enter());
        let other = cancels(&token);
        drop(park);
        drop(queue);
        other.join().unwrap();
    });
}

#[test]
fn make_a_child_and_cancel() {
    // C2: adopted and then found, or born cancelled; who waits for it is woken.
    loom::model(|| {
        let token = CancelToken::new();
        let other = cancels(&token);
        let child = token.child();
        let grandchild = child.child();
        let (count, waker) = counting();
        let mut wait = Box::pin(grandchild.cancelled());
        let first = wait.as_mut().poll(&mut Context::from_waker(&waker));
        other.join().unwrap();
        assert!(child.is_cancelled() && grandchild.is_cancelled());
        assert!(first.is_ready() || count.get() == 1);
        drop(wait);
    });
}

#[test]
fn drop_a_child_and_cancel() {
    // C4: the child is freed while the cancellation looks at it.
    loom::model(|| {
        let token = CancelToken::new();
        let child = token.child();
        let other = cancels(&token);
        drop(child);
        other.join().unwrap();
    });
}

#[test]
fn drop_two_siblings_and_their_parent() {
    loom::model(|| {
        let token = CancelToken::new();
        let (left, right) = (token.child(), token.child());
        let other = thread::spawn(move || drop(left));
        drop(token);
        drop(right);
        other.join().unwrap();
    });
}

#[test]
fn cancellations_that_meet() {
    // C3: the parent's callback finds the whole tree marked, though another thread cancels the child at that moment.
    loom::model(|| {
        let root = CancelToken::new();
        let child = root.child();
        let leaf = child.child();
        let marked = Arc::new(AtomicUsize::new(0));
        let (sees, looks_at) = (marked.clone(), leaf.clone());
        let registration = root.on_cancel(move || {
            sees.store(1 + usize::from(looks_at.is_cancelled()), Ordering::Relaxed);
        });
        let other = cancels(&child);
        assert!(root.cancel());
        assert_eq!(marked.load(Ordering::Relaxed), 2, "an unmarked descendant when the first callback runs");
        other.join().unwrap();
        drop(registration);
    });
}

#[test]
fn a_leaf_is_told_once_by_cancellations_that_meet() {
    loom::model(|| {
        let root = CancelToken::new();
        let leaf = root.child();
        let ran = Arc::new(AtomicUsize::new(0));
        let counts = ran.clone();
        let registration = leaf.on_cancel(move || {
            counts.fetch_add(1, Ordering::Relaxed);
        });
        let other = cancels(&leaf);
        root.cancel();
        other.join().unwrap();
        assert_eq!(ran.load(Ordering::Relaxed), 1);
        drop(registration);
    });
}

#[test]
fn two_tokens_that_wait_for_each_other() {
    // C1: the second lock under a token's is the other one's waiters', a leaf.
    loom::model(|| {
        let (a, b) = (CancelToken::new(), CancelToken::new());
        let mut waits_a = Box::pin(a.cancelled().cancel_on(&b));
        let mut waits_b = Box::pin(b.cancelled().cancel_on(&a));
        assert!(poll_once(waits_a.as_mut()).is_pending());
        assert!(poll_once(waits_b.as_mut()).is_pending());
        let other = cancels(&a);
        b.cancel();
        other.join().unwrap();
        assert!(poll_once(waits_a.as_mut()).is_ready());
        assert!(matches!(poll_once(waits_b.as_mut()), Poll::Ready(Ok(()) | Err(Limit::Cancelled))));
    });
}

#[test]
fn an_operation_under_two_tokens() {
    loom::model(|| {
        let (a, b, queue) = (CancelToken::new(), CancelToken::new(), WaitQueue::<u32>::new());
        let (count, waker) = counting();
        let mut park = Box::pin(queue.park().cancel_on(&a).cancel_on(&b));
        assert!(park.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let others = [cancels(&a), cancels(&b)];
        let second = poll_once(park.as_mut());
        others.into_iter().for_each(|other| assert!(other.join().unwrap()));
        assert!(count.get() <= 1 && (second.is_pending() || second == Poll::Ready(Err(ParkError::Cancelled))));
        assert_eq!(poll_once(park.as_mut()), Poll::Ready(Err(ParkError::Cancelled)));
    });
}
