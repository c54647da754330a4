//! One task: one allocation, a header of 88 bytes and the work, whose place the output takes when it ends.
//!
//! ```text
//! [table 8][state 8][next 8][home 8][registry links 16][spawned 8][wait 24][joiner 8] [work, then output]
//! ```
//! | field | who touches it |
//! | --- | --- |
//! | `table` | constant: what an owner can do, and what a task can do |
//! | `state` | everybody, by the transitions of [`state`] |
//! | `next` | who queued the task, until it is taken from the queue |
//! | `home` | constant: who polls it, and where wakes from other threads go |
//! | `links` | a local runtime's thread; in a pool, under the shard's lock |
//! | `wait` | a local runtime's thread; in a pool, who has RUNNING |
//! | `spawned` | constant |
//! | `joiner` | under the state's LOCK |
//! | the stage | S3 |
//!
//! The task is the [`Owner`] of its join: a timer or a token may end one, from any thread.

mod join;
mod join_error;
mod origin;
mod state;
mod waker;

use core::cell::{Cell, UnsafeCell};
use core::future::Future;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};
use std::panic::{catch_unwind, AssertUnwindSafe};

use tidegate_wait::debt::Debt;
use tidegate_wait::owner::{Owner, OwnerHeader, OwnerVTable};
use tidegate_wait::waiter::{Node, State as End, Ticket};
use tidegate_wait::wake_batch::{contain, wake, WakeBatch};

pub use join::{AbortHandle, Join, JoinHandle, OwnedJoin};
pub use join_error::{JoinError, Panic};
pub(crate) use origin::Origin;
#[cfg(all(test, loom))]
pub(crate) use state::Woken;
pub(crate) use state::{Start, State};
use waker::{with_pooled_waker, with_waker};

use crate::scheduler::{Home, Kind, Wait};

/// What every task begins with.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    owner: OwnerHeader,
    pub(crate) state: State,
    pub(crate) next: Cell<*const Header>,
    pub(crate) home: Home,
    pub(crate) links: Links,
    pub(crate) spawned: Origin,
    pub(crate) wait: Wait,
    joiner: Cell<*const Node>,
}

/// The place in the registry.
#[derive(Debug)]
pub(crate) struct Links {
    pub(crate) prev: Cell<*const Header>,
    pub(crate) next: Cell<*const Header>,
}

/// What can be done with a task of any type. The owner's part comes first: `Header::owner` points at the whole.
#[repr(C)]
struct TaskTable {
    owner: OwnerVTable,
    poll: unsafe fn(*const Header, &mut Context<'_>) -> bool,
    cancel: unsafe fn(*const Header, JoinError),
    take_output: unsafe fn(*const Header, *mut ()),
    drop_output: unsafe fn(*const Header),
    free: unsafe fn(*const Header),
}

/// What a task does: a future that may fail as a task.
pub(crate) trait Work {
    type Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Self::Output, JoinError>>;
}

/// Any future.
pub(crate) struct Plain<F>(pub(crate) F);

impl<F: Future> Work for Plain<F> {
    type Output = F::Output;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<F::Output, JoinError>> {
        // SAFETY: the future is pinned with what it is all of.
        unsafe { self.map_unchecked_mut(|plain| &mut plain.0) }.poll(cx).map(Ok)
    }
}

/// A task.
#[repr(C)]
struct Task<W: Work> {
    header: Header,
    stage: UnsafeCell<Stage<W>>,
}

/// The work until COMPLETE, then the output until somebody has taken or dropped it (S3).
union Stage<W: Work> {
    work: ManuallyDrop<W>,
    output: ManuallyDrop<Result<W::Output, JoinError>>,
}

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = {
    type Sending = tidegate_channel::OwnedSending<u64>;
    assert!(size_of::<Header>() == 88);
    assert!(
        size_of::<Task<Plain<Sending>>>() == 88 + 48,
        "a task blocked in a send: with the allocator's own words <= 160"
    );
};

impl<W: Work> Task<W> {
    const TABLE: &'static TaskTable = &TaskTable {
        owner: OwnerVTable::of::<Header>(),
        poll: Self::poll,
        cancel: Self::cancel,
        take_output: Self::take_output,
        drop_output: Self::drop_output,
        free: Self::free,
    };

    /// # Safety
    /// `header` begins a task of this type, on the runtime's thread, before COMPLETE.
    unsafe fn poll(header: *const Header, cx: &mut Context<'_>) -> bool {
        let stage = Self::stage(header);
        // SAFETY: until COMPLETE the stage is the runtime's thread's and holds the work, which never moves.
        let polled = catch_unwind(AssertUnwindSafe(|| unsafe {
            let work = Pin::new_unchecked(&mut *(*stage).work);
            work.poll(cx)
        }));
        let output = match polled {
            Ok(Poll::Pending) => return false,
            Ok(Poll::Ready(output)) => output,
            Err(payload) => Err(JoinError::panicked(payload)),
        };
        // SAFETY: as above.
        unsafe { Self::finish(stage, output) };
        true
    }

    /// Puts the output into the future's place.
    ///
    /// # Safety
    /// As for `poll`.
    unsafe fn finish(stage: *mut Stage<W>, output: Result<W::Output, JoinError>) {
        // SAFETY: the work is dropped once, in place, and not touched again; its destructor may panic.
        unsafe {
            contain(|| ManuallyDrop::drop(&mut (*stage).work));
            (&raw mut (*stage).output).write(ManuallyDrop::new(output));
        }
    }

    /// # Safety
    /// As for `poll`.
    unsafe fn cancel(header: *const Header, why: JoinError) {
        // SAFETY: the caller's promise.
        unsafe { Self::finish(Self::stage(header), Err(why)) };
    }

    /// # Safety
    /// After COMPLETE, once, by whom the output belongs to; `to` is a place for it.
    unsafe fn take_output(header: *const Header, to: *mut ()) {
        // SAFETY: the caller's promise.
        unsafe {
            let output = ManuallyDrop::take(&mut (*Self::stage(header)).output);
            to.cast::<Result<W::Output, JoinError>>().write(output);
        }
    }

    /// # Safety
    /// As for `take_output`.
    unsafe fn drop_output(header: *const Header) {
        // SAFETY: the caller's promise. A destructor of the user's may panic.
        contain(|| unsafe { ManuallyDrop::drop(&mut (*Self::stage(header)).output) });
    }

    /// # Safety
    /// The last reference is gone, and future and output with it.
    unsafe fn free(header: *const Header) {
        // SAFETY: made by `Box` in `Header::allocate`; the stage is a union, whose drop does nothing.
        drop(unsafe { Box::from_raw(header.cast_mut().cast::<Task<W>>()) });
    }

    fn stage(header: *const Header) -> *mut Stage<W> {
        let task = header.cast::<Task<W>>();
        // SAFETY: `header` begins a task of this type.
        UnsafeCell::raw_get(unsafe { &raw const (*task).stage })
    }
}

impl Header {
    /// A task with `references`, SCHEDULED, in no queue yet.
    pub(crate) fn allocate<W: Work>(work: W, home: Home, spawned: Origin, references: usize) -> NonNull<Header> {
        let none = || Cell::new(core::ptr::null());
        let table = NonNull::from(Task::<W>::TABLE).cast();
        let task = Box::new(Task {
            header: Header {
                // SAFETY: a table in static memory, whose first part was made for `Header`.
                owner: unsafe { OwnerHeader::with_table(table) },
                state: State::new(references),
                next: none(),
                home,
                links: Links { prev: none(), next: none() },
                spawned,
                wait: Wait::new(),
                joiner: Cell::new(core::ptr::null()),
            },
            stage: UnsafeCell::new(Stage { work: ManuallyDrop::new(work) }),
        });
        // SAFETY: a box is not null.
        unsafe { NonNull::new_unchecked(Box::into_raw(task).cast()) }
    }

    fn table(&self) -> &'static TaskTable {
        // SAFETY: every header is made by `allocate` with a whole table.
        unsafe { self.owner.table().cast::<TaskTable>().as_ref() }
    }

    /// Polls the task. True: it has ended, and [`Header::complete`] is next.
    ///
    /// # Safety
    /// Alive, on the runtime's thread, before COMPLETE; `this` points at the whole task.
    #[inline(always)]
    pub(crate) unsafe fn poll(this: *const Header) -> bool {
        // SAFETY: the caller's promise.
        unsafe { with_waker(this, |cx| ((*this).table().poll)(this, cx)) }
    }

    /// [`Header::poll`] of a pool's task.
    ///
    /// # Safety
    /// The caller has RUNNING, on a thread that may poll it; before COMPLETE.
    #[inline(always)]
    pub(crate) unsafe fn poll_pooled(this: *const Header) -> bool {
        // SAFETY: the caller's promise.
        unsafe { with_pooled_waker(this, |cx| ((*this).table().poll)(this, cx)) }
    }

    /// An entry of a pool's queue goes without being run (W2).
    ///
    /// # Safety
    /// It was taken from a queue, or kept from going into one.
    pub(crate) unsafe fn drop_entry(this: *const Header) {
        // SAFETY: W2: alive; complete, its reference is the entry's.
        unsafe {
            if (*this).state.unqueue() {
                Header::release(this);
            }
        }
    }

    /// Drops the future; [`Header::complete`] is next.
    ///
    /// # Safety
    /// As for `poll`.
    pub(crate) unsafe fn cancel(this: *const Header, why: JoinError) {
        // SAFETY: the caller's promise.
        unsafe { ((*this).table().cancel)(this, why) }
    }

    /// Hands the output to the handle, or drops it, and wakes whoever joins.
    ///
    /// # Safety
    /// As for `poll`, once; the caller has a reference.
    pub(crate) unsafe fn complete(this: *const Header) {
        // SAFETY: the caller's promise; the output is there.
        unsafe {
            let completed = (*this).state.complete();
            if !completed.has_handle {
                ((*this).table().drop_output)(this);
            }
            if completed.is_joined {
                if let Some(waker) = (*this).end_join() {
                    wake(waker);
                }
            }
        }
    }

    /// Ends the parked join, if there still is one. Its waker, to be woken now that the lock is given back.
    ///
    /// # Safety
    /// After COMPLETE.
    unsafe fn end_join(&self) -> Option<Waker> {
        self.state.lock();
        let joiner = self.joiner.replace(core::ptr::null());
        // SAFETY: a parked join takes itself out, under the lock, before it goes.
        let waker = unsafe {
            match joiner.is_null() {
                true => None,
                false => {
                    let waker = (*joiner).take_waker();
                    (*joiner).finish(End::Done(Ticket::new(0)));
                    waker
                }
            }
        };
        self.state.unlock();
        waker
    }

    /// Is a join of `by` parked here, by that task's own waker?
    pub(crate) fn is_joined_by(&self, by: &Header) -> bool {
        self.state.lock();
        let joiner = self.joiner.get();
        // SAFETY: under the lock a parked join is alive, and waiting. Only the waker's pointers are compared.
        let is_same = |cx: &mut Context<'_>| unsafe { (*joiner).same_waker(cx.waker()) } == Some(true);
        let is_joined = !joiner.is_null()
            && match by.home.kind() {
                // SAFETY: the caller's reference.
                Kind::Local => unsafe { with_waker(by, is_same) },
                // SAFETY: as above.
                _ => unsafe { with_pooled_waker(by, is_same) },
            };
        self.state.unlock();
        is_joined
    }

    /// Takes the output.
    ///
    /// # Safety
    /// After COMPLETE, once, by the handle, which has not given it up; `T` is the task's output.
    unsafe fn take_output<T>(this: *const Header) -> Result<T, JoinError> {
        let mut output = core::mem::MaybeUninit::<Result<T, JoinError>>::uninit();
        // SAFETY: the caller's promise.
        unsafe {
            ((*this).table().take_output)(this, output.as_mut_ptr().cast());
            output.assume_init()
        }
    }

    /// # Safety
    /// As for `take_output`.
    unsafe fn drop_output(this: *const Header) {
        // SAFETY: the caller's promise.
        unsafe { ((*this).table().drop_output)(this) }
    }

    /// Gives a reference back.
    ///
    /// # Safety
    /// It is the caller's, who does not touch the task again.
    #[inline(always)]
    pub(crate) unsafe fn release(this: *const Header) {
        // SAFETY: the caller's promise.
        unsafe {
            if (*this).state.release() {
                ((*this).table().free)(this);
            }
        }
    }

    /// Frees a task whose last reference is gone.
    ///
    /// # Safety
    /// As it says.
    unsafe fn free(this: *const Header) {
        // SAFETY: the caller's promise.
        unsafe { ((*this).table().free)(this) }
    }
}

// SAFETY: `owner` comes first; LOCK admits one holder; `state` counts references.
unsafe impl Owner for Header {
    type Hold<'a> = ();
    const NAME: &'static str = "task";

    fn lock(&self) {
        self.state.lock();
    }

    fn unlock(&self, (): ()) {
        self.state.unlock();
    }

    unsafe fn detach(&self, (): &mut (), node: *const Node, _: &mut WakeBatch) {
        // A join that was leaked while parked, and ends by its limit, must not take out the one that came after it.
        if self.joiner.get() == node {
            self.joiner.set(core::ptr::null());
        }
    }

    unsafe fn retain(&self) {
        self.state.retain();
    }

    unsafe fn release(this: *const Header) -> Option<NonNull<Debt>> {
        // SAFETY: the caller's promise.
        unsafe { Header::release(this) }
        None
    }
}
