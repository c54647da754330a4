//! Tokens: the tree, reasons, callbacks, limits by token, and what user code may do from inside (G5, G8; CASES 31, 35).

mod support;

use std::error::Error;
use std::fmt;
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Poll;
use std::time::Duration;

use support::{hooked, poll, quiet_panic, Hooks, Ledger, Rng, Woken};
use tidegate_wait::cancel::{CancelToken, Reason, Registration};
use tidegate_wait::op::poll_once;
use tidegate_wait::timer::{sleep, ManualClock};
use tidegate_wait::wait_queue::{ParkError, WaitQueue};
use tidegate_wait::{Limit, Operation};

const SECOND: Duration = Duration::from_secs(1);

fn end<F: std::future::Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    poll_once(future.as_mut())
}

// ---- the tree --------------------------------------------------------------------------------------------------------

#[test]
fn a_cancellation_runs_downwards_only() {
    let root = CancelToken::new();
    let (left, right) = (root.child(), root.child());
    let (leaf, other) = (left.child(), right.child());
    assert!(left.cancel());
    assert!(left.is_cancelled() && leaf.is_cancelled());
    assert!(!root.is_cancelled() && !right.is_cancelled() && !other.is_cancelled());
    assert!(!left.cancel() && !leaf.cancel());
    assert!(root.cancel());
    assert!(right.is_cancelled() && other.is_cancelled());
    assert!(!root.cancel());
    assert!(root.same_token(&root.clone()) && !root.same_token(&left));
    assert_eq!(format!("{root:?}"), "CancelToken { cancelled: true, .. }");
}

#[test]
fn a_clone_is_the_same_token() {
    let token = CancelToken::default();
    let clone = token.clone();
    assert!(clone.cancel());
    assert!(token.is_cancelled());
}

#[test]
fn children_of_the_cancelled_are_born_cancelled() {
    let token = CancelToken::new();
    token.cancel_with("over");
    let child = token.child();
    let grandchild = child.child();
    assert!(grandchild.is_cancelled());
    assert_eq!(grandchild.reason().unwrap().to_string(), "over");
    assert!(!grandchild.cancel());
    grandchild.cancelled().wait();
    assert_eq!(grandchild.cancelled().timeout(Duration::ZERO).wait(), Ok(()));
    let ran = Arc::new(AtomicBool::new(false));
    let in_callback = ran.clone();
    drop(child.on_cancel(move || in_callback.store(true, Ordering::SeqCst)));
    assert!(ran.load(Ordering::SeqCst), "at once and here");
}

#[test]
fn dropping_tokens_cancels_nothing() {
    let root = CancelToken::new();
    let (middle, waits) = (root.child(), root.clone());
    let leaf = middle.child();
    drop(middle);
    drop(root);
    assert!(!leaf.is_cancelled());
    assert!(waits.cancel(), "a leaf is reached through a parent without handles");
    assert!(leaf.is_cancelled());
}

#[test]
fn long_chains_need_no_stack() {
    let n = if cfg!(miri) { 60 } else { 100_000 };
    let chain = |root: &CancelToken| {
        let mut tokens = vec![root.child()];
        for _ in 1..n {
            tokens.push(tokens.last().unwrap().child());
        }
        tokens
    };
    let root = CancelToken::new();
    // Dropped from the root down, so that the leaf's drop frees all.
    let mut tokens = chain(&root);
    let leaf = tokens.pop().unwrap();
    drop(tokens);
    drop(leaf);
    // Cancelled as a chain without handles.
    let mut tokens = chain(&root);
    let leaf = tokens.pop().unwrap();
    drop(tokens);
    let (woken, waker) = Woken::new();
    let mut wait = Box::pin(leaf.cancelled());
    assert!(poll(wait.as_mut(), &waker).is_pending());
    assert!(root.cancel());
    assert!(leaf.is_cancelled());
    assert_eq!(woken.count(), 1);
    assert!(end(&mut wait).is_ready());
    drop(wait);
    // Born cancelled.
    let mut tokens = chain(&leaf);
    assert!(tokens[n - 1].is_cancelled());
    tokens.reverse();
    drop(tokens);
}

#[test]
fn wide_trees() {
    let n = if cfg!(miri) { 60 } else { 100_000 };
    let root = CancelToken::new();
    let mut children: Vec<_> = (0..n).map(|_| root.child()).collect();
    let registered = Arc::new(AtomicUsize::new(0));
    let mut registrations: Vec<_> = children
        .iter()
        .map(|child| {
            let registered = registered.clone();
            child.on_cancel(move || {
                registered.fetch_add(1, Ordering::SeqCst);
            })
        })
        .collect();
    // A third leaves before, from anywhere.
    Rng(4).shuffle(&mut children);
    Rng(5).shuffle(&mut registrations);
    children.truncate(n - n / 3);
    registrations.truncate(n - n / 3);
    assert!(root.cancel_with("all"));
    assert!(children.iter().all(|child| child.is_cancelled() && child.reason().unwrap().to_string() == "all"));
    assert_eq!(registered.load(Ordering::SeqCst), n - n / 3);
}

#[test]
fn children_come_and_go_while_the_parent_cancels() {
    for seed in 0..if cfg!(miri) { 3 } else { 300 } {
        let root = CancelToken::new();
        let middle = root.child();
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let parent = if thread == 0 { root.clone() } else { middle.clone() };
                scope.spawn(move || {
                    let mut rng = Rng(seed);
                    let mut held = Vec::new();
                    for _ in 0..20 {
                        let child = parent.child();
                        let grandchild = child.child();
                        match rng.below(3) {
                            0 => drop(child),
                            1 => held.push(grandchild),
                            _ => held.push(child),
                        }
                    }
                    held
                });
            }
            let (root, middle) = (&root, &middle);
            scope.spawn(move || root.cancel());
            scope.spawn(move || middle.cancel());
        });
        assert!(root.is_cancelled() && middle.is_cancelled() && middle.child().is_cancelled());
    }
}

#[test]
fn all_descendants_are_marked_before_anybody_is_told() {
    // C3: each callback, waker of an operation and waker of a wait finds the whole tree cancelled.
    let root = CancelToken::new();
    let mut tokens = vec![root.clone()];
    for i in 0..30 {
        tokens.push(tokens[i / 2].child());
    }
    let (told, wrong) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let look: Arc<dyn Fn() + Send + Sync> = {
        let (tokens, told, wrong) = (tokens.clone(), told.clone(), wrong.clone());
        Arc::new(move || {
            told.fetch_add(1, Ordering::SeqCst);
            wrong.fetch_add(tokens.iter().filter(|token| !token.is_cancelled()).count(), Ordering::SeqCst);
        })
    };
    let hook = look.clone();
    let hooks = Arc::new(Hooks { wake: Some(Box::new(move || hook())), ..Hooks::default() });
    hooks.activate(true);
    let queue = WaitQueue::<u32>::new();
    let mut parks: Vec<_> = tokens.iter().map(|token| Box::pin(queue.park().cancel_on(token))).collect();
    let mut waits: Vec<_> = tokens.iter().map(|token| Box::pin(token.cancelled())).collect();
    parks.iter_mut().for_each(|park| assert!(poll(park.as_mut(), &hooked(&hooks)).is_pending()));
    waits.iter_mut().for_each(|wait| assert!(poll(wait.as_mut(), &hooked(&hooks)).is_pending()));
    let _registrations: Vec<_> = tokens
        .iter()
        .map(|token| {
            let look = look.clone();
            token.on_cancel(move || look())
        })
        .collect();
    root.cancel();
    assert_eq!((told.load(Ordering::SeqCst), wrong.load(Ordering::SeqCst)), (31 * 3, 0));
}

#[test]
fn cancellations_that_meet_mark_before_they_tell() {
    // C3 where another thread is on its way through a part of the tree: it must not be trusted to have marked the rest.
    for _ in 0..if cfg!(miri) { 5 } else { 2_000 } {
        let root = CancelToken::new();
        let child = root.child();
        let leaves: Vec<_> = (0..if cfg!(miri) { 3 } else { 20 }).map(|_| child.child().child()).collect();
        let unmarked = Arc::new(AtomicUsize::new(0));
        let (seen, all) = (unmarked.clone(), leaves.clone());
        let look = move || {
            seen.fetch_add(all.iter().filter(|leaf| !leaf.is_cancelled()).count(), Ordering::SeqCst);
        };
        let _registration = root.on_cancel(look);
        std::thread::scope(|scope| {
            scope.spawn(|| child.cancel());
            root.cancel();
        });
        assert_eq!(unmarked.load(Ordering::SeqCst), 0);
    }
}

// ---- reasons ---------------------------------------------------------------------------------------------------------

#[derive(Debug, PartialEq)]
struct Code(u32);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "code {}", self.0)
    }
}

impl Error for Code {}

#[test]
fn a_reason_is_shared_and_the_first_one_stays() {
    let root = CancelToken::new();
    let (child, alone) = (root.child(), root.child());
    assert!(root.reason().is_none());
    assert!(alone.cancel_with("alone"));
    assert!(root.cancel_with(Code(7)));
    assert!(!root.cancel_with("too late"));
    assert!(!child.cancel_with(Code(8)));
    for token in [&root, &child] {
        let reason = token.reason().unwrap();
        assert_eq!(reason.downcast_ref::<Code>(), Some(&Code(7)));
        assert!(reason.downcast_ref::<fmt::Error>().is_none());
        assert_eq!((reason.to_string(), format!("{reason:?}")), ("code 7".into(), "Code(7)".into()));
    }
    assert_eq!(alone.reason().unwrap().to_string(), "alone");
    let silent = CancelToken::new();
    silent.cancel();
    assert!(!silent.cancel_with("too late") && silent.reason().is_none());
    // One error for all: the same reason may be given on.
    let other = CancelToken::new();
    other.cancel_with(root.reason().unwrap());
    assert_eq!(other.reason().unwrap().downcast_ref::<Code>(), Some(&Code(7)));
    let boxed: Box<dyn Error + Send + Sync> = "boxed".into();
    assert_eq!(Reason::from(boxed).to_string(), "boxed");
}

struct Loud(Arc<AtomicUsize>, Option<CancelToken>);

impl fmt::Debug for Loud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Loud")
    }
}

impl fmt::Display for Loud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("loud")
    }
}

impl Error for Loud {}

impl Drop for Loud {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        if let Some(token) = &self.1 {
            // Outside all locks: the token may be used.
            token.cancel();
            drop(token.child());
            drop(token.reason());
        }
        quiet_panic();
    }
}

#[test]
fn a_reasons_destructor_is_code_of_the_user() {
    // G5: it panics and calls back; everything else goes on: nobody is left untold, no ancestor is leaked.
    let drops = Arc::new(AtomicUsize::new(0));
    let token = CancelToken::new();
    assert!(token.cancel_with("first"));
    assert!(!token.cancel_with(Loud(drops.clone(), Some(token.clone()))));
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    // The last reference goes while a parent without handles goes, too.
    let root = CancelToken::new();
    let (freed, on_free) = (Arc::new(()), Arc::new(()));
    let kept = (freed.clone(), on_free.clone());
    root.on_cancel(move || drop(kept)).keep();
    let middle = root.child();
    let leaf = middle.child();
    let other = CancelToken::new();
    assert!(leaf.cancel_with(Loud(drops.clone(), Some(other.clone()))));
    drop(root);
    drop(middle);
    drop(leaf);
    assert!(other.is_cancelled());
    assert_eq!(drops.load(Ordering::SeqCst), 2);
    assert_eq!(Arc::strong_count(&freed), 1, "the root went as well, with its callback");
    // While a cancellation gives tokens back that nobody else has.
    let root = CancelToken::new();
    let last = Arc::new(Mutex::new(vec![root.child(), root.child()]));
    let _registration = {
        let last = last.clone();
        root.on_cancel(move || last.lock().unwrap().clear())
    };
    let (woken, waker) = Woken::new();
    let mut wait = Box::pin(root.cancelled());
    assert!(poll(wait.as_mut(), &waker).is_pending());
    assert!(root.cancel_with(Loud(drops.clone(), None)));
    assert_eq!(woken.count(), 1);
    drop(wait);
    drop(_registration);
    drop(root);
    assert_eq!(drops.load(Ordering::SeqCst), 3);
}

// ---- guards ----------------------------------------------------------------------------------------------------------

#[test]
fn a_guard_cancels_unless_it_is_disarmed() {
    let token = CancelToken::new();
    let guard = token.clone().drop_guard();
    let same = guard.disarm();
    assert!(same.same_token(&token) && !token.is_cancelled());
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _guard = same.drop_guard();
        quiet_panic();
    }));
    std::mem::forget(unwound);
    assert!(token.is_cancelled());
    drop(token.drop_guard());
}

// ---- callbacks -------------------------------------------------------------------------------------------------------

#[test]
fn callbacks_run_once_in_order_past_panics() {
    // CASE 31.
    let (token, order) = (CancelToken::new(), Arc::new(Mutex::new(Vec::new())));
    let mut registrations: Vec<Registration> = (0..10)
        .map(|i| {
            let order = order.clone();
            token.on_cancel(move || {
                order.lock().unwrap().push(i);
                if i % 3 == 0 {
                    quiet_panic();
                }
            })
        })
        .collect();
    drop(registrations.remove(4));
    registrations.remove(0).keep();
    assert!(token.cancel());
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 5, 6, 7, 8, 9]);
    assert!(!token.cancel());
    drop(registrations);
    assert_eq!(order.lock().unwrap().len(), 9);
}

#[test]
fn an_unregistered_callback_is_dropped_unrun() {
    let (token, ledger) = (CancelToken::new(), Ledger::default());
    let register = |token: &CancelToken, id| {
        let value = ledger.value(id);
        token.on_cancel(move || {
            let value = value;
            panic!("{} runs", value.id)
        })
    };
    let registration = register(&token, 1);
    assert!(format!("{registration:?}").contains("CancelToken"));
    drop(registration);
    assert_eq!(ledger.dropped(), 1);
    // Kept: it goes with the token.
    register(&token, 2).keep();
    let child = token.child();
    register(&child, 3).keep();
    drop(token);
    assert_eq!(ledger.dropped(), 1, "the child holds its parent");
    drop(child);
    assert_eq!(ledger.dropped(), 3);
}

#[test]
fn destructors_of_callbacks_may_panic_and_call_back() {
    // G5; CASE 29: dropped by the unregistration, by the token's end, after the run.
    struct Captured(CancelToken, Arc<AtomicUsize>);
    impl Drop for Captured {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
            drop(self.0.child());
            drop(self.0.on_cancel(|| {}));
            self.0.cancel();
            quiet_panic();
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let token = CancelToken::new();
    let captured = Captured(token.clone(), drops.clone());
    drop(token.on_cancel(move || drop(captured)));
    assert!(token.is_cancelled());
    let (token, other) = (CancelToken::new(), CancelToken::new());
    for _ in 0..2 {
        let captured = Captured(other.clone(), drops.clone());
        token.on_cancel(move || drop(captured)).keep();
    }
    drop(token);
    assert!(other.is_cancelled());
    assert_eq!(drops.load(Ordering::SeqCst), 3);
}

#[test]
fn unregistration_is_flat() {
    // CASE 35, in shape: nothing is looked for. Oldest first, newest first, random.
    let n = if cfg!(miri) { 30 } else { 100_000 };
    let (token, ledger) = (CancelToken::new(), Ledger::default());
    for order in 0..3 {
        let mut registrations: Vec<_> = (0..n)
            .map(|i| {
                let value = ledger.value(i);
                Some(token.on_cancel(move || drop(value)))
            })
            .collect();
        match order {
            0 => {}
            1 => registrations.reverse(),
            _ => Rng(2).shuffle(&mut registrations),
        }
        registrations.iter_mut().for_each(|registration| *registration = None);
        assert_eq!(ledger.dropped(), (order + 1) * n);
    }
    token.cancel();
}

#[test]
fn unregistered_from_inside_a_callback() {
    // CASE 31, B2: itself, one that has run, one that would run next.
    let token = CancelToken::new();
    let slots: Arc<[Mutex<Option<Registration>>; 3]> = Arc::default();
    let order = Arc::new(Mutex::new(Vec::new()));
    for i in 0..3 {
        let (all, ran) = (slots.clone(), order.clone());
        let registration = token.on_cancel(move || {
            ran.lock().unwrap().push(i);
            if i == 1 {
                all.iter().for_each(|slot| drop(slot.lock().unwrap().take()));
            }
        });
        *slots[i].lock().unwrap() = Some(registration);
    }
    token.cancel();
    assert_eq!(*order.lock().unwrap(), [0, 1], "2 was unregistered before its turn");
}

#[test]
fn callbacks_may_do_anything_with_tokens() {
    let token = CancelToken::new();
    let other = CancelToken::new();
    let ran = Arc::new(AtomicUsize::new(0));
    let _registration = {
        let (token, other, ran) = (token.clone(), other.clone(), ran.clone());
        let inner = token.clone();
        inner.on_cancel(move || {
            let count = || ran.fetch_add(1, Ordering::SeqCst);
            let child = token.child();
            assert!(child.is_cancelled() && !token.cancel());
            let nested = ran.clone();
            drop(token.on_cancel(move || {
                nested.fetch_add(10, Ordering::SeqCst);
            }));
            let registration = other.on_cancel({
                let ran = ran.clone();
                move || {
                    ran.fetch_add(100, Ordering::SeqCst);
                }
            });
            assert!(other.cancel(), "a cancellation inside a callback");
            drop(registration);
            token.cancelled().wait();
            assert_eq!(sleep(SECOND).cancel_on(&token).wait(), Err(Limit::Cancelled));
            count();
        })
    };
    assert!(token.cancel());
    assert_eq!(ran.load(Ordering::SeqCst), 111);
}

#[test]
fn an_unregistration_waits_for_its_callback() {
    // B1: dropped here while the callback runs on another thread.
    let token = CancelToken::new();
    let (started, starts) = channel();
    let done = Arc::new(AtomicBool::new(false));
    let in_callback = done.clone();
    let registration = token.on_cancel(move || {
        started.send(()).unwrap();
        std::thread::sleep(Duration::from_millis(if cfg!(miri) { 1 } else { 30 }));
        in_callback.store(true, Ordering::SeqCst);
    });
    std::thread::scope(|scope| {
        scope.spawn(|| token.cancel());
        starts.recv().unwrap();
        drop(registration);
        assert!(done.load(Ordering::SeqCst), "still running after its unregistration returned");
    });
}

#[test]
fn an_unregistration_inside_a_callback_does_not_wait() {
    // B2: here inside a callback of another token, while the first runs on a thread of its own until we say so.
    let (first, second) = (CancelToken::new(), CancelToken::new());
    let ((started, starts), (go, goes)) = (channel(), channel());
    let registration = first.on_cancel(move || {
        started.send(()).unwrap();
        goes.recv().unwrap();
    });
    let _other = second.on_cancel(move || {
        drop(registration);
        go.send(()).unwrap();
    });
    std::thread::scope(|scope| {
        scope.spawn(|| first.cancel());
        starts.recv().unwrap();
        second.cancel();
    });
}

#[test]
fn mutual_unregistration_does_not_deadlock() {
    // CASE 31: each callback takes the other one back, on two threads, both running.
    for _ in 0..if cfg!(miri) { 3 } else { 300 } {
        let tokens = [CancelToken::new(), CancelToken::new()];
        let slots: Arc<[Mutex<Option<Registration>>; 2]> = Arc::default();
        for i in 0..2 {
            let others = slots.clone();
            let registration = tokens[i].on_cancel(move || {
                let other = others[1 - i].lock().unwrap().take();
                drop(other);
            });
            *slots[i].lock().unwrap() = Some(registration);
        }
        std::thread::scope(|scope| {
            tokens.iter().for_each(|token| drop(scope.spawn(|| token.cancel())));
        });
        slots.iter().for_each(|slot| drop(slot.lock().unwrap().take()));
    }
}

#[test]
fn none_runs_after_its_unregistration_returned() {
    // B1, raced.
    for _ in 0..if cfg!(miri) { 10 } else { 3_000 } {
        let token = CancelToken::new();
        let gone = Arc::new(AtomicBool::new(false));
        let seen = gone.clone();
        let wrong = Arc::new(AtomicBool::new(false));
        let report = wrong.clone();
        let registration = token.on_cancel(move || {
            std::hint::spin_loop();
            report.fetch_or(seen.load(Ordering::SeqCst), Ordering::SeqCst);
        });
        std::thread::scope(|scope| {
            scope.spawn(|| token.cancel());
            drop(registration);
            gone.store(true, Ordering::SeqCst);
        });
        assert!(!wrong.load(Ordering::SeqCst));
    }
}

// ---- operations under tokens -----------------------------------------------------------------------------------------

#[test]
fn already_cancelled_wins_at_entry() {
    // G8: before anything moves, also where a grant waits, a limit has passed or another token is alive.
    let clock = ManualClock::new();
    clock.enter(|| {
        let (dead, alive, queue) = (CancelToken::new(), CancelToken::new(), WaitQueue::<u32>::new());
        dead.cancel();
        let mut granted = Box::pin(queue.park());
        assert!(granted.as_mut().enter());
        queue.hand_over(1).unwrap();
        drop(granted);
        let cancelled = Err(ParkError::Cancelled);
        assert_eq!(queue.park().cancel_on(&dead).wait(), cancelled);
        assert_eq!(queue.park().cancel_on(&dead).cancel_on(&alive).wait(), cancelled);
        assert_eq!(queue.park().cancel_on(&alive).cancel_on(&dead).wait(), cancelled);
        assert_eq!(queue.park().timeout(Duration::ZERO).cancel_on(&dead).wait(), cancelled);
        assert_eq!(queue.park().cancel_on_owned(dead.clone()).timeout(Duration::ZERO).wait(), cancelled);
        assert_eq!(sleep(Duration::ZERO).cancel_on(&dead).wait(), Err(Limit::Cancelled));
        assert_eq!(alive.cancelled().cancel_on(&dead).wait(), Err(Limit::Cancelled));
        assert_eq!(queue.park().wait(), Ok(Some(1)), "the grant did not move");
        assert_eq!(clock.armed(), 0);
    });
}

#[test]
fn limits_in_any_combination() {
    // G6, G8: whichever comes first ends it; the others are taken out; the token is given back.
    let clock = ManualClock::new();
    clock.enter(|| {
        let queue = WaitQueue::<u32>::new();
        for first in if cfg!(miri) { 2..3 } else { 0..5 } {
            macro_rules! check {
                (|$park:ident, $a:ident, $b:ident| $limited:expr) => {{
                    let ($a, $b) = (CancelToken::new(), CancelToken::new());
                    let $park = queue.park();
                    let mut park = Box::pin($limited);
                    let (woken, waker) = Woken::new();
                    assert!(poll(park.as_mut(), &waker).is_pending());
                    assert!(poll(park.as_mut(), &waker).is_pending());
                    match first {
                        0 => drop($a.cancel()),
                        1 => drop($b.cancel()),
                        2 => clock.advance(SECOND),
                        3 => queue.hand_over(3).unwrap(),
                        _ => queue.close_probe(),
                    }
                    assert_eq!(woken.count(), usize::from(first != 4), "{} {first}", stringify!($limited));
                    // The rest comes too late.
                    $a.cancel();
                    $b.cancel();
                    clock.advance(SECOND * 3);
                    let expected = match first {
                        0 | 1 | 4 => Err(ParkError::Cancelled),
                        2 => Err(ParkError::TimedOut),
                        _ => Ok(Some(3)),
                    };
                    assert_eq!(end(&mut park), Poll::Ready(expected), "{} {first}", stringify!($limited));
                    assert_eq!((clock.armed(), queue.parked()), (0, 0));
                }};
            }
            check!(|park, a, b| park.cancel_on(&a).cancel_on(&b).timeout(SECOND));
            check!(|park, a, b| park.cancel_on(&a).timeout(SECOND).cancel_on(&b));
            check!(|park, a, b| park.timeout(SECOND).cancel_on(&a).cancel_on(&b));
            check!(|park, a, b| park.timeout(SECOND * 2).cancel_on_owned(a.clone()).timeout(SECOND).cancel_on(&b));
            check!(|park, a, b| park.cancel_on_owned(a.clone()).cancel_on_owned(b.clone()).timeout(SECOND));
            check!(|park, a, b| park
                .deadline(clock.now() + SECOND)
                .cancel_on(&b)
                .timeout(Duration::MAX)
                .cancel_on_owned(a.clone())
                .timeout(SECOND * 2)
                .cancel_on(&a));
        }
    });
}

trait Probe {
    fn close_probe(&self);
}

impl Probe for WaitQueue<u32> {
    /// Nothing: the first event is the cancellation that follows, after a look at the parked one.
    fn close_probe(&self) {
        assert_eq!(self.parked(), 1);
    }
}

#[test]
fn one_token_twice_on_one_operation() {
    let (queue, token) = (WaitQueue::<u32>::new(), CancelToken::new());
    let mut park = Box::pin(queue.park().cancel_on(&token).cancel_on(&token));
    assert!(park.as_mut().enter());
    token.cancel();
    assert_eq!(end(&mut park), Poll::Ready(Err(ParkError::Cancelled)));
    let token = CancelToken::new();
    let mut park = Box::pin(token.cancelled().cancel_on(&token).cancel_on_owned(token.clone()));
    assert!(end(&mut park).is_pending());
    token.cancel();
    assert_eq!(end(&mut park), Poll::Ready(Err(Limit::Cancelled)), "registrations end before waits");
}

#[test]
fn cancelled_with_limits() {
    let clock = ManualClock::new();
    clock.enter(|| {
        let (token, other) = (CancelToken::new(), CancelToken::new());
        let mut wait = Box::pin(token.cancelled().timeout(SECOND).cancel_on(&other));
        assert!(end(&mut wait).is_pending());
        clock.advance(SECOND);
        assert_eq!(end(&mut wait), Poll::Ready(Err(Limit::TimedOut)));
        assert_eq!(end(&mut wait), Poll::Ready(Err(Limit::TimedOut)), "P3");
        let mut wait = Box::pin(token.cancelled().timeout(SECOND).cancel_on(&other));
        assert!(end(&mut wait).is_pending());
        other.cancel();
        assert_eq!(end(&mut wait), Poll::Ready(Err(Limit::Cancelled)));
        let mut wait = Box::pin(token.cancelled().timeout(SECOND));
        assert!(end(&mut wait).is_pending());
        token.cancel();
        clock.advance(SECOND);
        assert_eq!(end(&mut wait), Poll::Ready(Ok(())));
        assert_eq!(end(&mut wait), Poll::Ready(Ok(())), "P3");
        assert_eq!(token.cancelled().timeout(Duration::ZERO).wait(), Ok(()));
        assert_eq!(CancelToken::new().cancelled().timeout(Duration::ZERO).wait(), Err(Limit::TimedOut));
        assert_eq!(clock.armed(), 0);
    });
}

#[test]
fn a_sleep_under_a_token_and_a_limit() {
    let clock = ManualClock::new();
    clock.enter(|| {
        for (cancel, step, expected) in
            [(true, 0, Err(Limit::Cancelled)), (false, 1, Err(Limit::TimedOut)), (false, 2, Err(Limit::TimedOut))]
        {
            let token = CancelToken::new();
            let mut nap = Box::pin(sleep(SECOND * 2).cancel_on(&token).timeout(SECOND));
            assert!(end(&mut nap).is_pending());
            assert_eq!(clock.armed(), 1, "one timer for both");
            if cancel {
                token.cancel();
                assert_eq!(clock.armed(), 0, "the cancellation takes it out");
            }
            clock.advance(SECOND * step);
            token.cancel();
            assert_eq!(end(&mut nap), Poll::Ready(expected));
        }
        let token = CancelToken::new();
        let mut nap = Box::pin(sleep(SECOND).cancel_on(&token).timeout(SECOND * 2));
        assert!(end(&mut nap).is_pending());
        clock.advance(SECOND);
        token.cancel();
        assert_eq!(end(&mut nap), Poll::Ready(Ok(())));
    });
}

#[test]
fn cancelled_operations_are_taken_out_of_their_tokens() {
    // CASE 33: expired, served and dropped ones leave nothing behind in a long-lived token.
    let clock = ManualClock::new();
    clock.enter(|| {
        let (queue, token) = (WaitQueue::<u32>::new(), CancelToken::new());
        let (woken, waker) = Woken::new();
        for i in 0..if cfg!(miri) { 12 } else { 100_000 } {
            let mut park = Box::pin(queue.park().cancel_on(&token).timeout(SECOND));
            assert!(poll(park.as_mut(), &waker).is_pending());
            match i % 3 {
                0 => clock.advance(SECOND),
                1 => queue.hand_over(i).unwrap(),
                _ => continue,
            }
            assert!(end(&mut park).is_ready());
        }
        let before = woken.count();
        token.cancel();
        assert_eq!((woken.count(), queue.parked(), clock.armed()), (before, 0, 0));
    });
}

#[test]
fn leaked_operations_of_a_token() {
    // G9, C5: leaked entries give their owners back when the token is cancelled or goes.
    for cancel in [true, false] {
        let (queue, token) = (WaitQueue::<u32>::new(), CancelToken::new());
        let handle = Box::into_raw(Box::new(token.clone()));
        // SAFETY: given back below, when nobody looks at the leaked operations any more.
        let static_token: &'static CancelToken = unsafe { &*handle };
        for _ in 0..3 {
            let mut leaked = Box::pin(queue.park().cancel_on(static_token));
            assert!(leaked.as_mut().enter());
            std::mem::forget(leaked);
        }
        drop(queue);
        if cancel {
            token.cancel();
        }
        // SAFETY: made by `Box::into_raw` above.
        drop(unsafe { Box::from_raw(handle) });
        drop(token);
    }
    // A wait for a token, limited by another.
    let (token, limit) = (CancelToken::new(), CancelToken::new());
    let mut leaked = Box::pin(token.cancelled().cancel_on(&limit));
    assert!(end(&mut leaked).is_pending());
    std::mem::forget(leaked);
    drop(token);
    drop(limit);
}

#[test]
fn entries_give_their_references_back() {
    // C5, O3: the wait's owner is a token with a kept callback, which goes exactly when its last reference does.
    let clock = ManualClock::new();
    clock.enter(|| {
        for way in 0..4 {
            let (ledger, limit, token) = (Ledger::default(), CancelToken::new(), CancelToken::new());
            let value = ledger.value(way);
            token
                .on_cancel(move || {
                    let _value = value;
                })
                .keep();
            let handle = Box::into_raw(Box::new(token.clone()));
            // SAFETY: given back below, when nobody looks at the wait any more.
            let waiting: &'static CancelToken = unsafe { &*handle };
            let mut wait = Box::pin(waiting.cancelled().cancel_on_owned(limit.clone()).timeout(SECOND));
            assert!(end(&mut wait).is_pending());
            match way {
                0 => {}
                1 => assert!(limit.cancel()),
                2 => clock.advance(SECOND),
                3 => std::mem::forget(std::mem::replace(
                    &mut wait,
                    Box::pin(waiting.cancelled().cancel_on_owned(limit.clone()).timeout(SECOND)),
                )),
                _ => unreachable!(),
            }
            assert_eq!(end(&mut wait).is_ready(), way == 1 || way == 2);
            drop(wait);
            // SAFETY: made by `Box::into_raw` above.
            drop(unsafe { Box::from_raw(handle) });
            drop(token);
            if way > 2 {
                assert_eq!(ledger.dropped(), 0, "held by a leaked wait's limits");
                clock.advance(SECOND);
                assert_eq!(ledger.dropped(), 0, "by the other one still");
                limit.cancel();
            }
            assert_eq!(ledger.dropped(), 1, "{way}");
        }
    });
}

#[test]
fn a_token_that_goes_lets_leaked_waits_go() {
    // C5: nobody cancelled it; its end gives back what the entries of leaked operations hold.
    let (ledger, limit, token) = (Ledger::default(), CancelToken::new(), CancelToken::new());
    let value = ledger.value(0);
    token
        .on_cancel(move || {
            let _value = value;
        })
        .keep();
    let handles = Box::into_raw(Box::new((token, limit)));
    // SAFETY: given back below, when nobody looks at the wait any more.
    let (waiting, limiting): &'static (CancelToken, CancelToken) = unsafe { &*handles };
    let mut wait = Box::pin(waiting.cancelled().cancel_on(limiting));
    assert!(end(&mut wait).is_pending());
    std::mem::forget(wait);
    assert_eq!(ledger.dropped(), 0);
    // SAFETY: made by `Box::into_raw` above.
    let (token, limit) = *unsafe { Box::from_raw(handles) };
    drop(token);
    assert_eq!(ledger.dropped(), 0, "held by the leaked wait's entry");
    drop(limit);
    assert_eq!(ledger.dropped(), 1);
}

#[test]
fn two_tokens_that_wait_for_each_other() {
    // C1: settling an operation under one token's lock takes the other's waiters' lock, a leaf.
    for round in 0..if cfg!(miri) { 4 } else { 500 } {
        let (a, b) = (CancelToken::new(), CancelToken::new());
        let mut waits_a = Box::pin(a.cancelled().cancel_on(&b).timeout(SECOND * 1000));
        let mut waits_b = Box::pin(b.cancelled().cancel_on(&a));
        assert!(end(&mut waits_a).is_pending() && end(&mut waits_b).is_pending());
        std::thread::scope(|scope| {
            scope.spawn(|| a.cancel());
            scope.spawn(|| b.cancel());
            if round % 2 == 0 {
                while !a.is_cancelled() {
                    std::thread::yield_now();
                }
                // Perhaps still waiting for its end; dropped in the middle.
                let _ = end(&mut waits_a);
                drop(waits_a);
            }
        });
        assert!(end(&mut waits_b).is_ready());
    }
}

#[test]
fn sleeps_and_waits_cancelled_from_other_threads() {
    // C1: token → wheel → owner, against the wheel's own thread and the tasks' disarming.
    let rounds = if cfg!(miri) { 3 } else { 300 };
    for round in 0..rounds {
        let (token, other, queue) = (CancelToken::new(), CancelToken::new(), WaitQueue::<u32>::new());
        let short = Duration::from_micros(round * 3);
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(sleep(SECOND * 100).cancel_on(&token).timeout(short).wait().is_err()));
            scope.spawn(|| {
                let _ = other.cancelled().cancel_on(&token).timeout(short).wait();
            });
            scope.spawn(|| {
                let _ = queue.park().timeout(short).cancel_on(&token).wait();
            });
            token.cancel();
        });
        assert_eq!(queue.parked(), 0);
    }
}

// ---- wakers ----------------------------------------------------------------------------------------------------------

#[test]
fn a_waker_that_panics_strands_nobody() {
    // G5; CASE 30: among 40 operations, 40 waits and callbacks, in one token and in its child.
    let root = CancelToken::new();
    let child = root.child();
    let hooks = Arc::new(Hooks { wake: Some(Box::new(quiet_panic)), ..Hooks::default() });
    let (woken, waker) = Woken::new();
    let queue = WaitQueue::<u32>::new();
    let mut parks: Vec<_> =
        (0..40).map(|i| Box::pin(queue.park().cancel_on(if i % 2 == 0 { &root } else { &child }))).collect();
    let mut waits: Vec<_> = (0..40).map(|i| Box::pin(if i % 2 == 0 { &root } else { &child }.cancelled())).collect();
    for i in 0..40 {
        let waker = if i % 10 == 0 { &hooked(&hooks) } else { &waker };
        assert!(poll(parks[i].as_mut(), waker).is_pending() && poll(waits[i].as_mut(), waker).is_pending());
    }
    let ran = Arc::new(AtomicUsize::new(0));
    let in_callback = ran.clone();
    let _registration = child.on_cancel(move || {
        in_callback.fetch_add(1, Ordering::SeqCst);
    });
    hooks.activate(true);
    assert!(root.cancel());
    assert_eq!((hooks.wakes(), woken.count(), ran.load(Ordering::SeqCst)), (8, 72, 1));
    assert!(parks.iter_mut().all(|park| end(park).is_ready()));
    assert!(waits.iter_mut().all(|wait| end(wait).is_ready()));
    assert_eq!(hooks.alive(), 0);
}

#[test]
fn wakers_may_use_the_tokens_that_wake_them() {
    // CASE 28: from wake, clone and drop.
    let token: Arc<OnceLock<CancelToken>> = Arc::default();
    let hook = || {
        let token = token.clone();
        Some(Box::new(move || {
            let token = token.get().unwrap();
            let child = token.child();
            drop(token.on_cancel(|| {}));
            let mut wait = Box::pin(child.cancelled().cancel_on(token));
            let _ = poll_once(wait.as_mut());
            drop(wait);
            drop(token.reason());
            child.cancel();
        }) as Box<dyn Fn() + Send + Sync>)
    };
    let make = || Arc::new(Hooks { wake: hook(), clone: hook(), drop: hook(), ..Hooks::default() });
    // Two of a kind: a waker is cloned and dropped again only for one of another task.
    let (hooks, others) = (make(), make());
    token.set(CancelToken::new()).unwrap();
    let token = token.get().unwrap();
    hooks.activate(true);
    others.activate(true);
    let queue = WaitQueue::<u32>::new();
    let mut park = Box::pin(queue.park().cancel_on(token));
    let mut wait = Box::pin(token.cancelled().cancel_on(token));
    let mut dropped = Box::pin(token.cancelled().cancel_on(token));
    for hooks in [&others, &hooks] {
        assert!(poll(park.as_mut(), &hooked(hooks)).is_pending());
        assert!(poll(wait.as_mut(), &hooked(hooks)).is_pending());
        assert!(poll(dropped.as_mut(), &hooked(hooks)).is_pending());
    }
    drop(dropped);
    token.cancel();
    assert!(end(&mut park).is_ready() && end(&mut wait).is_ready());
    drop((park, wait));
    hooks.activate(false);
    assert_eq!((hooks.alive(), others.alive()), (0, 0));
    let mut late = pin!(token.cancelled());
    assert!(poll(late.as_mut(), &hooked(&hooks)).is_ready());
}
