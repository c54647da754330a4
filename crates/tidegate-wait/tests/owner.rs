//! An owner written here: what limits may do with a waiter of any owner (O1 to O3), what an end costs (G3), and where an
//! [`Outbox`] finds its value (G10).
#![cfg(not(loom))]

mod support;

use std::future::Future;
use std::marker::PhantomData;
use std::mem::{offset_of, ManuallyDrop, MaybeUninit};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use support::{Counted, Ledger, Rng};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::debt::Debt;
use tidegate_wait::list::List;
use tidegate_wait::op::{self, poll_once, Limits, Outbox, RawOperation, Unlimited};
use tidegate_wait::owner::{Owner, OwnerHeader};
use tidegate_wait::timer::ManualClock;
use tidegate_wait::waiter::{Head, Kind, Node, State, Ticket};
use tidegate_wait::wake_batch::WakeBatch;
use tidegate_wait::Operation;

/// Takes values from parked operations, and counts what is done to it.
#[repr(C)]
struct Desk<T> {
    header: OwnerHeader,
    parked: List,
    lock: Mutex<()>,
    locks: AtomicUsize,
    detached: AtomicUsize,
    references: AtomicUsize,
    _values: PhantomData<T>,
}

// SAFETY: the header comes first; the lock is a mutex; the memory outlives every test's operations.
unsafe impl<T> Owner for Desk<T> {
    type Hold<'a>
        = MutexGuard<'a, ()>
    where
        T: 'a;
    const NAME: &'static str = "desk";

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.locks.fetch_add(1, Ordering::SeqCst);
        self.lock.lock().unwrap()
    }

    fn unlock(&self, hold: MutexGuard<'_, ()>) {
        drop(hold);
    }

    unsafe fn detach(&self, _: &mut MutexGuard<'_, ()>, node: *const Node, _: &mut WakeBatch) {
        self.detached.fetch_add(1, Ordering::SeqCst);
        // SAFETY: waiting nodes are linked.
        unsafe { List::unlink(node) }
    }

    unsafe fn retain(&self) {
        self.references.fetch_add(1, Ordering::SeqCst);
    }

    unsafe fn release(this: *const Self) -> Option<NonNull<Debt>> {
        // SAFETY: alive, see above.
        unsafe { (*this).references.fetch_sub(1, Ordering::SeqCst) };
        None
    }
}

impl<T> Desk<T> {
    fn new() -> Box<Desk<T>> {
        let desk = Box::new(Desk {
            header: OwnerHeader::of::<Self>(),
            parked: List::new(),
            lock: Mutex::new(()),
            locks: AtomicUsize::new(0),
            detached: AtomicUsize::new(0),
            references: AtomicUsize::new(0),
            _values: PhantomData,
        });
        // SAFETY: at its place; nobody else knows it.
        unsafe { desk.parked.init() };
        desk
    }

    fn put(&self, value: T) -> Put<'_, T> {
        let head = Head::new(std::ptr::from_ref(self).cast());
        Put { outbox: Outbox::new(head, Unlimited, MaybeUninit::new(value)), _desk: PhantomData }
    }

    /// Takes the value of the first in line.
    fn take(&self) -> Option<T> {
        let _hold = self.lock.lock().unwrap();
        // SAFETY: the lock is held; parked nodes belong to `Put<T, _>`; the value is read once.
        unsafe {
            let node = self.parked.pop_front()?;
            let waker = (*node).take_waker();
            let head = node.byte_sub(offset_of!(Head, node)).cast::<Head>();
            let value = (*Outbox::<T, Unlimited>::value_of(head)).with(|place| (*place).assume_init_read());
            (*node).finish(State::Done(Ticket::new(1)));
            drop(waker);
            Some(value)
        }
    }

    fn counts(&self) -> (usize, usize, usize) {
        let count = |counter: &AtomicUsize| counter.swap(0, Ordering::SeqCst);
        (count(&self.locks), count(&self.detached), self.references.load(Ordering::SeqCst))
    }
}

#[repr(C)]
struct Put<'d, T, L: Limits = Unlimited> {
    outbox: Outbox<T, L>,
    _desk: PhantomData<&'d Desk<T>>,
}

impl<T, L: Limits> Put<'_, T, L> {
    /// # Safety
    /// The value is still here; it is gone afterwards.
    unsafe fn take_back(this: *mut Self) -> T {
        // SAFETY: the caller's promise.
        unsafe { (*Outbox::value(&raw mut (*this).outbox)).with(|place| (*place).assume_init_read()) }
    }
}

// SAFETY: an `Outbox` is laid out as operations are; the desk is borrowed.
unsafe impl<'d, T, L: Limits> RawOperation for Put<'d, T, L> {
    type Limits = L;
    type Owner = Desk<T>;
    type With<M: Limits> = Put<'d, T, M>;
    const KIND: Kind = Kind::Send;

    unsafe fn head(this: *mut Self) -> *mut Head {
        // SAFETY: the caller's promise.
        unsafe { Outbox::head(&raw mut (*this).outbox) }
    }

    unsafe fn limits(this: *mut Self) -> *mut L {
        // SAFETY: the caller's promise.
        unsafe { Outbox::limits(&raw mut (*this).outbox) }
    }

    fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> Put<'d, T, M> {
        let this = ManuallyDrop::new(self);
        // SAFETY: read once, and `this` is not dropped.
        let outbox = unsafe { std::ptr::read(&this.outbox) };
        Put { outbox: outbox.map_limits(f), _desk: PhantomData }
    }

    unsafe fn attempt(_: *mut Self) -> Option<Self::Output> {
        None
    }

    unsafe fn try_once(_: *mut Self) -> Option<Self::Output> {
        None
    }

    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output> {
        // SAFETY: pinned, in state Init; the lock is held around the list.
        unsafe {
            let head = Self::head(this);
            let desk = &*(*head).owner().cast::<Desk<T>>();
            let _hold = desk.lock.lock().unwrap();
            desk.parked.push_back(&raw const (*head).node, Kind::Send, waker.clone());
            None
        }
    }

    unsafe fn conclude(this: *mut Self, end: State) -> Poll<Self::Output> {
        // SAFETY: the node has left Waiting, or never was there.
        unsafe {
            (*Self::head(this)).node.set_quiet(State::Spent);
            match end {
                State::Done(_) => Poll::Ready(Ok(())),
                State::Closed | State::TimedOut | State::Cancelled => Poll::Ready(Err((end, Self::take_back(this)))),
                State::Init | State::Waiting | State::Spent => Poll::Pending,
            }
        }
    }
}

impl<T, L: Limits> Future for Put<'_, T, L> {
    type Output = Result<(), (State, T)>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: pinned; nothing is moved out of it.
        unsafe { op::poll(std::ptr::from_mut(self.get_unchecked_mut()), cx) }
    }
}

impl<T, L: Limits> Drop for Put<'_, T, L> {
    fn drop(&mut self) {
        let this = std::ptr::from_mut(self);
        // SAFETY: pinned if it was ever polled; the value is still here unless it was delivered or returned.
        unsafe {
            match op::withdraw(this) {
                State::Done(_) | State::Spent => {}
                _ => drop(Self::take_back(this)),
            }
        }
    }
}

fn end<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    poll_once(future.as_mut())
}

#[test]
fn an_end_costs_the_same_whatever_else_is_parked() {
    // G3; CASE 32, counted: locks taken and nodes detached, in any order, however many are parked.
    let sizes = if cfg!(miri) { [3, 12] } else { [1_000, 100_000] };
    let clock = ManualClock::new();
    clock.enter(|| {
        let token = CancelToken::new();
        for n in sizes {
            for order in 0..3 {
                let desk = Desk::<u64>::new();
                let mut puts: Vec<_> = (0..n)
                    .map(|i| Some(Box::pin(desk.put(i as u64).timeout(Duration::from_secs(9)).cancel_on(&token))))
                    .collect();
                puts.iter_mut().flatten().for_each(|put| assert!(end(put).is_pending()));
                assert_eq!(desk.counts(), (0, 0, 2 * n), "one reference each limit (O3)");
                let mut indices: Vec<usize> = (0..n).collect();
                match order {
                    0 => {}
                    1 => indices.reverse(),
                    _ => Rng(8).shuffle(&mut indices),
                }
                for (gone, i) in indices.into_iter().enumerate() {
                    drop(puts[i].take());
                    assert_eq!(desk.counts(), (1, 1, 2 * (n - gone - 1)));
                }
                assert_eq!(clock.armed(), 0);
            }
        }
    });
}

#[test]
fn an_event_that_comes_late_changes_nothing() {
    // O1: one event detaches, the others find that it has ended; every reference is given back (O3).
    let clock = ManualClock::new();
    clock.enter(|| {
        for first in 0..3 {
            let (desk, token) = (Desk::<u64>::new(), CancelToken::new());
            let mut put = Box::pin(desk.put(7).cancel_on(&token).timeout(Duration::from_secs(1)));
            assert!(end(&mut put).is_pending());
            let cancel = || assert!(token.cancel());
            let fire = || clock.advance(Duration::from_secs(1));
            let expected = match first {
                0 => {
                    cancel();
                    fire();
                    assert_eq!(desk.take(), None);
                    Err((State::Cancelled, 7))
                }
                1 => {
                    fire();
                    cancel();
                    assert_eq!(desk.take(), None);
                    Err((State::TimedOut, 7))
                }
                _ => {
                    assert_eq!(desk.take(), Some(7));
                    cancel();
                    fire();
                    Ok(())
                }
            };
            assert_eq!(desk.counts(), (2, usize::from(first != 2), 0));
            assert_eq!(end(&mut put), Poll::Ready(expected));
            assert!(end(&mut put).is_pending());
        }
    });
}

/// Values under no, one, two, three limits are where the taker looks for them, and come back when nobody takes them.
fn carries<T: Send>(make: impl Fn(u8) -> T, is: impl Fn(&T, u8) -> bool) {
    let clock = ManualClock::new();
    clock.enter(|| {
        let (desk, token) = (Desk::<T>::new(), CancelToken::new());
        let limit = Duration::from_secs(1);
        macro_rules! check {
            (|$put:ident| $limited:expr, $tag:expr) => {{
                let put = |tag| {
                    let $put = desk.put(make(tag));
                    let mut put = Box::pin($limited);
                    assert!(end(&mut put).is_pending());
                    put
                };
                let (mut taken, dropped) = (put($tag), put($tag + 1));
                assert!(desk.take().is_some_and(|value| is(&value, $tag)));
                assert!(matches!(end(&mut taken), Poll::Ready(Ok(()))));
                drop(dropped);
                assert!(desk.take().is_none());
            }};
        }
        check!(|put| put, 10);
        check!(|put| put.timeout(limit), 20);
        check!(|put| put.cancel_on(&token), 30);
        check!(|put| put.timeout(limit).cancel_on_owned(token.clone()), 40);
        check!(|put| put.cancel_on(&token).timeout(limit).cancel_on(&token), 50);
        let mut late = Box::pin(desk.put(make(60)).timeout(limit).cancel_on(&token));
        assert!(end(&mut late).is_pending());
        clock.advance(limit);
        assert!(matches!(end(&mut late), Poll::Ready(Err((State::TimedOut, value))) if is(&value, 60)));
        assert_eq!((clock.armed(), desk.counts().2), (0, 0));
    });
}

#[test]
fn values_of_any_size_and_alignment() {
    // G10; CASE 44.
    #[repr(align(4096))]
    struct Page(u8);
    #[repr(align(4096))]
    struct EmptyPage;
    #[repr(align(16))]
    struct Sixteen([u8; 3]);
    carries(|_| (), |(), _| true);
    carries(|tag| tag, |value, tag| *value == tag);
    carries(|tag| [tag; 33], |value, tag| *value == [tag; 33]);
    carries(u128::from, |value, tag| *value == u128::from(tag));
    carries(|tag| Sixteen([tag; 3]), |value, tag| value.0 == [tag; 3]);
    carries(Page, |value, tag| value.0 == tag);
    carries(|_| EmptyPage, |_, _| true);
    carries(Box::new, |value, tag| **value == tag);
}

#[test]
fn values_are_dropped_exactly_once() {
    // G1: taken, returned, dropped unpolled, parked, delivered or cancelled.
    let (ledger, token) = (Ledger::default(), CancelToken::new());
    let desk = Desk::<Counted>::new();
    drop(desk.put(ledger.value(0)));
    drop(desk.put(ledger.value(1)).cancel_on(&token));
    let put = |id| {
        let mut put = Box::pin(desk.put(ledger.value(id)).cancel_on(&token));
        assert!(end(&mut put).is_pending());
        put
    };
    let (delivered, parked, mut returned) = (put(2), put(3), put(4));
    assert!(desk.take().is_some_and(|value| value == 2));
    drop(delivered);
    assert_eq!(ledger.dropped(), 3);
    drop(parked);
    assert_eq!(ledger.dropped(), 4);
    token.cancel();
    assert!(matches!(end(&mut returned), Poll::Ready(Err((State::Cancelled, value))) if value == 4));
    drop(returned);
    assert_eq!((ledger.made(), ledger.dropped()), (5, 5));
}
