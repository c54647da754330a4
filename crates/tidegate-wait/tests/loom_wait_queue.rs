//! The wait queue under loom: each pair of park, poll, hand-over, wake, close, drop and cancellation, with spurious polls
//! and changed wakers. Every grant ends in one place: refused, received, or kept (G1, Q1).
#![cfg(loom)]

use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::Arc;
use loom::thread;
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::{poll_once, Limits};
use tidegate_wait::wait_queue::{Park, ParkError, WaitQueue};
use tidegate_wait::Operation;

/// A waker that counts: a wait that ended after it was told to wait must have been woken.
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

/// What another thread does; returns the grants that it handed over.
type Act = fn(&WaitQueue<usize>, &CancelToken) -> Vec<usize>;

type Ended = Result<Option<usize>, ParkError>;

/// Polls as an executor may: `polls` times whether woken or not, each time with another waker; then only if the last one
/// was woken. What is still pending then is dropped, as the loser of a select is.
fn wait_or_leave<L: Limits>(park: &mut Pin<Box<Park<'_, usize, L>>>, polls: usize) -> Option<Ended> {
    let mut last = None;
    for _ in 0..polls {
        let (count, waker) = counting();
        if let Poll::Ready(ended) = std::future::Future::poll(park.as_mut(), &mut Context::from_waker(&waker)) {
            return Some(ended);
        }
        last = Some(count);
        thread::yield_now();
    }
    if last?.0.load(std::sync::atomic::Ordering::SeqCst) == 0 {
        return None;
    }
    match poll_once(park.as_mut()) {
        Poll::Ready(ended) => Some(ended),
        Poll::Pending => panic!("woken for nothing"),
    }
}

/// What was kept in the queue at the end.
fn kept(queue: &WaitQueue<usize>) -> Vec<usize> {
    std::iter::from_fn(|| match poll_once(Box::pin(queue.park()).as_mut()) {
        Poll::Ready(Ok(Some(grant))) => Some(grant),
        _ => None,
    })
    .collect()
}

/// Parks here; `acts` run on threads of their own; returns what each did with its grant, how the wait ended, what is kept.
fn race(polls: usize, acts: &'static [Act], check: fn(Outcome)) {
    loom::model(move || {
        let queue = Arc::new(WaitQueue::<usize>::new());
        let token = CancelToken::new();
        let threads: Vec<_> = acts
            .iter()
            .map(|act| {
                let (queue, token) = (queue.clone(), token.clone());
                thread::spawn(move || act(&queue, &token))
            })
            .collect();
        let mut park = Box::pin(queue.park().cancel_on(&token));
        let ended = wait_or_leave(&mut park, polls);
        drop(park);
        let handed: Vec<usize> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        let mut found = kept(&queue);
        let received = ended.and_then(|ended| ended.ok().flatten());
        found.extend(received);
        found.sort();
        let mut expected = handed.clone();
        expected.sort();
        assert_eq!(found, expected, "handed over = received + kept");
        assert_eq!(queue.parked(), 0);
        check(Outcome { ended, handed });
    });
}

struct Outcome {
    ended: Option<Ended>,
    handed: Vec<usize>,
}

fn hand_1(queue: &WaitQueue<usize>, _: &CancelToken) -> Vec<usize> {
    queue.hand_over(1).map_or(vec![], |()| vec![1])
}

fn hand_2(queue: &WaitQueue<usize>, _: &CancelToken) -> Vec<usize> {
    queue.hand_over(2).map_or(vec![], |()| vec![2])
}

fn wake_all(queue: &WaitQueue<usize>, _: &CancelToken) -> Vec<usize> {
    queue.wake_all();
    vec![]
}

fn close(queue: &WaitQueue<usize>, _: &CancelToken) -> Vec<usize> {
    queue.close();
    vec![]
}

fn cancel(_: &WaitQueue<usize>, token: &CancelToken) -> Vec<usize> {
    assert!(token.cancel());
    vec![]
}

/// Another operation that is polled once and dropped: granted or not.
fn passer_by(queue: &WaitQueue<usize>, _: &CancelToken) -> Vec<usize> {
    let mut park = Box::pin(queue.park());
    match poll_once(park.as_mut()) {
        // Its own find: it stands for a receive that completed. Give it on, so that the sum holds.
        Poll::Ready(Ok(Some(_))) => unreachable!("nothing is kept while this runs beside the other park"),
        _ => vec![],
    }
}

/// A second park that is dropped without being polled again.
fn park_and_drop(queue: &WaitQueue<usize>, _: &CancelToken) -> Vec<usize> {
    let mut park = Box::pin(queue.park());
    let _parked = park.as_mut().enter();
    thread::yield_now();
    drop(park);
    vec![]
}

#[test]
fn hand_over_and_drop() {
    race(1, &[hand_1], |outcome| assert_eq!(outcome.ended.is_some(), outcome.ended == Some(Ok(Some(1)))));
}

#[test]
fn hand_over_and_changed_wakers() {
    race(3, &[hand_1], |_| {});
}

#[test]
fn two_hand_overs() {
    race(2, &[hand_1, hand_2], |outcome| assert!(outcome.handed.len() <= 1, "one park, one grant"));
}

#[test]
fn hand_over_and_wake_all() {
    race(2, &[hand_1, wake_all], |_| {});
}

#[test]
fn wake_all_twice() {
    race(2, &[wake_all, wake_all], |outcome| assert!(matches!(outcome.ended, None | Some(Ok(None)))));
}

#[test]
fn hand_over_and_cancel() {
    race(2, &[hand_1, cancel], |outcome| {
        if outcome.ended == Some(Err(ParkError::Cancelled)) {
            assert!(outcome.handed.is_empty(), "the first event wins");
        }
    });
}

#[test]
fn wake_all_and_cancel() {
    race(2, &[wake_all, cancel], |outcome| {
        assert!(matches!(outcome.ended, None | Some(Ok(None) | Err(ParkError::Cancelled))));
    });
}

#[test]
fn close_and_cancel() {
    race(2, &[close, cancel], |outcome| {
        assert!(matches!(outcome.ended, None | Some(Err(ParkError::Closed | ParkError::Cancelled))));
    });
}

#[test]
fn close_and_wake_all() {
    race(2, &[close, wake_all], |outcome| {
        assert!(matches!(outcome.ended, None | Some(Ok(None) | Err(ParkError::Closed))));
    });
}

#[test]
fn close_and_drop() {
    race(1, &[close], |outcome| assert!(matches!(outcome.ended, None | Some(Err(ParkError::Closed)))));
}

/// After a close nothing can be found in the queue, so a grant is looked for where it went.
#[test]
fn hand_over_and_close() {
    loom::model(|| {
        let queue = Arc::new(WaitQueue::<Grant>::new());
        let drops = Arc::new(AtomicUsize::new(0));
        let hands = {
            let (queue, drops) = (queue.clone(), drops.clone());
            thread::spawn(move || drop(queue.hand_over(Grant(drops))))
        };
        let closes = {
            let queue = queue.clone();
            thread::spawn(move || queue.close())
        };
        let mut park = Box::pin(queue.park());
        let _ = poll_once(park.as_mut());
        let ended = poll_once(park.as_mut());
        drop(ended);
        drop(park);
        hands.join().unwrap();
        closes.join().unwrap();
        drop(queue);
        assert_eq!(drops.load(Ordering::Relaxed), 1, "once, wherever it was");
    });
}

struct Grant(Arc<AtomicUsize>);

impl Drop for Grant {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_granted_park_is_dropped_while_another_one_parks() {
    // Q1: the returned grant is kept, or goes to the one that parks; never kept beside somebody parked.
    for enters in [true, false] {
        loom::model(move || {
            let queue = Arc::new(WaitQueue::<usize>::new());
            let mut granted = Box::pin(queue.park());
            assert!(granted.as_mut().enter());
            queue.hand_over(1).unwrap();
            let other = {
                let queue = queue.clone();
                thread::spawn(move || {
                    let mut park = Box::pin(queue.park());
                    let (count, waker) = counting();
                    if enters {
                        park.as_mut().enter();
                    }
                    let mut ended = std::future::Future::poll(park.as_mut(), &mut Context::from_waker(&waker));
                    while ended.is_pending() {
                        thread::yield_now();
                        if count.0.load(std::sync::atomic::Ordering::SeqCst) != 0 {
                            ended = poll_once(park.as_mut());
                            assert!(ended.is_ready());
                        }
                    }
                    ended
                })
            };
            drop(granted);
            assert_eq!(other.join().unwrap(), Poll::Ready(Ok(Some(1))));
            assert_eq!(queue.parked(), 0);
        });
    }
}

#[test]
fn two_granted_parks_are_dropped_at_once() {
    // Kept in hand-off order, whoever is first.
    loom::model(|| {
        let queue = Arc::new(WaitQueue::<usize>::new());
        let (mut first, mut second) = (Box::pin(queue.park()), Box::pin(queue.park()));
        assert!(first.as_mut().enter() && second.as_mut().enter());
        queue.hand_over(1).unwrap();
        queue.hand_over(2).unwrap();
        // SAFETY: joined before the queue goes; only the borrow's lifetime is widened.
        let second: Pin<Box<Park<'static, usize>>> = unsafe { std::mem::transmute(second) };
        let other = thread::spawn(move || drop(second));
        drop(first);
        other.join().unwrap();
        assert_eq!(kept(&queue), [1, 2]);
    });
}

#[test]
fn fifo_of_two_parks_and_two_hand_overs() {
    // G2: the first to park gets the first grant, or leaves it to the second.
    loom::model(|| {
        let queue = Arc::new(WaitQueue::<usize>::new());
        let (mut first, mut second) = (Box::pin(queue.park()), Box::pin(queue.park()));
        assert!(first.as_mut().enter() && second.as_mut().enter());
        let other = {
            let queue = queue.clone();
            thread::spawn(move || {
                queue.hand_over(1).unwrap();
                queue.hand_over(2)
            })
        };
        drop(first);
        let refused = other.join().unwrap();
        let ended = poll_once(second.as_mut());
        drop(second);
        match refused {
            // `first` left before the first grant, or passed it on before the second.
            Err(grant) => assert_eq!((grant, ended), (2, Poll::Ready(Ok(Some(1))))),
            Ok(()) => {
                let kept = kept(&queue);
                assert!(matches!(ended, Poll::Ready(Ok(Some(_)))));
                assert_eq!(kept.len(), 1);
            }
        }
    });
}

#[test]
fn a_passer_by_beside_a_hand_over() {
    race(1, &[hand_1, park_and_drop], |_| {});
}

#[test]
fn wake_all_beside_another_park() {
    race(1, &[wake_all, passer_by], |outcome| assert!(matches!(outcome.ended, None | Some(Ok(None)))));
}

#[test]
fn two_closes() {
    race(2, &[close, close], |outcome| assert!(matches!(outcome.ended, None | Some(Err(ParkError::Closed)))));
}

#[test]
fn the_queue_goes_while_a_leaked_park_is_cancelled() {
    // O3: the token's entry holds the queue's memory.
    loom::model(|| {
        let queue = WaitQueue::<usize>::new();
        let token = CancelToken::new();
        let mut park = Box::pin(queue.park().cancel_on_owned(token.clone()));
        assert!(park.as_mut().enter());
        std::mem::forget(park);
        let other = thread::spawn(move || token.cancel());
        drop(queue);
        other.join().unwrap();
    });
}
