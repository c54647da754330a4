//! One task's life: output, panic, abort, detachment, the end of its runtime. Every future, output and value ends once.

#[path = "support/make.rs"]
mod make;

use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use tidegate_channel::bounded;
use tidegate_runtime::{
    spawn, spawn_local, spawn_local_named, spawn_named, yield_now, BuildError, Handle, JoinError, JoinHandle,
    NoRuntime, RunError, Runtime,
};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::poll_once;
use tidegate_wait::timer::sleep;
use tidegate_wait::Operation;

use make::builder;

const MS: Duration = Duration::from_millis(1);

fn runtime() -> Runtime {
    builder().virtual_time(true).closed_world(true).build().unwrap()
}

/// Counts its drops.
#[derive(Clone)]
struct Counted(Rc<Cell<usize>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

fn counted() -> (Counted, Rc<Cell<usize>>) {
    let count = Rc::new(Cell::new(0));
    (Counted(count.clone()), count)
}

#[test]
fn an_output_reaches_the_join() {
    let rt = runtime();
    let (payload, drops) = counted();
    let back = rt.block_on(async { spawn_local(async move { payload }).await }).unwrap().unwrap();
    assert_eq!(drops.get(), 0);
    drop(back);
    assert_eq!(drops.get(), 1);
}

/// The future of a task is dropped when it ends, before anybody sees the end.
#[test]
fn a_future_is_dropped_at_its_end() {
    let rt = runtime();
    let (payload, drops) = counted();
    rt.block_on(async {
        let task = spawn_local(poll_fn(move |_| {
            let _payload = &payload;
            Poll::Ready(())
        }));
        task.await.unwrap();
        assert_eq!(drops.get(), 1);
    })
    .unwrap();
}

/// CASES 50: a dropped handle detaches; the output is dropped at the end, once.
#[test]
fn a_dropped_handle_detaches() {
    let rt = runtime();
    let (payload, drops) = counted();
    let ran = Rc::new(Cell::new(false));
    rt.block_on(async {
        let done = ran.clone();
        drop(spawn_local(async move {
            yield_now().await;
            done.set(true);
            payload
        }));
        yield_now().await;
        assert!(!ran.get());
        yield_now().await;
        yield_now().await;
        assert!(ran.get());
        assert_eq!(drops.get(), 1);
    })
    .unwrap();
}

/// An output that nobody joined is dropped with its handle.
#[test]
fn an_output_is_dropped_with_its_handle() {
    let rt = runtime();
    let (payload, drops) = counted();
    rt.block_on(async {
        let task = spawn_local(async move { payload });
        yield_now().await;
        assert!(task.is_finished());
        assert_eq!(drops.get(), 0);
        drop(task);
        assert_eq!(drops.get(), 1);
    })
    .unwrap();
}

#[test]
fn a_panic_is_a_value() {
    let rt = runtime();
    rt.block_on(async {
        let text = spawn(async { panic!("with {}", "text") as u8 }).await;
        match text {
            Err(JoinError::Panicked(panic)) => assert_eq!(panic.message(), "with text"),
            other => panic!("{other:?}"),
        }
        let payload = spawn(async { std::panic::panic_any(7_u32) }).await;
        match payload {
            Err(JoinError::Panicked(panic)) => {
                assert_eq!(panic.message(), "(a payload without text)");
                assert_eq!(*panic.into_payload().downcast::<u32>().unwrap(), 7);
            }
            other => panic!("{other:?}"),
        }
        // Nobody joins.
        drop(spawn(async { panic!("alone") }));
        yield_now().await;
    })
    .unwrap();
    // The future of `block_on` hands its panic on, and the runtime goes on.
    let panicked = catch_unwind(AssertUnwindSafe(|| rt.block_on(async { panic!("root") })));
    assert_eq!(*panicked.unwrap_err().downcast::<&str>().unwrap(), "root");
    assert_eq!(rt.block_on(async { 1 }).unwrap(), 1);
}

/// G5: destructors that panic end there: of a future, of an output, of a panic's payload.
#[test]
fn destructors_may_panic() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a destructor");
        }
    }
    let rt = runtime();
    rt.block_on(async {
        let bomb = Bomb;
        let task = spawn_local(poll_fn(move |_| {
            let _bomb = &bomb;
            Poll::Ready(3)
        }));
        assert_eq!(task.await.unwrap(), 3);
        let task = spawn_local(async { Bomb });
        yield_now().await;
        drop(task);
        drop(spawn_local(async { Bomb }));
        yield_now().await;
        let bomb = Bomb;
        let aborted = spawn_local(async move {
            let _bomb = bomb;
            pending::<()>().await;
        });
        yield_now().await;
        aborted.abort();
        assert!(aborted.await.unwrap_err().is_aborted());
    })
    .unwrap();
    let bomb = Bomb;
    drop(rt.spawn(async move {
        let _bomb = bomb;
        pending::<()>().await;
    }));
    drop(rt);
}

#[test]
fn an_abort_drops_the_future_before_its_next_poll() {
    let rt = runtime();
    let (payload, drops) = counted();
    let polls = Rc::new(Cell::new(0));
    rt.block_on(async {
        let seen = polls.clone();
        let task = spawn_local(async move {
            let _payload = payload;
            loop {
                seen.set(seen.get() + 1);
                yield_now().await;
            }
        });
        yield_now().await;
        yield_now().await;
        assert_eq!(polls.get(), 2);
        task.abort();
        task.abort();
        assert!(task.await.unwrap_err().is_aborted());
        assert_eq!((polls.get(), drops.get()), (2, 1));
        // One that has not begun, and one that has ended.
        let never = spawn_local(async { unreachable!() });
        never.abort();
        assert!(never.await.unwrap_err().is_aborted());
        let ended = spawn_local(async { 5 });
        yield_now().await;
        let handle = ended.abort_handle();
        handle.abort();
        handle.clone().abort();
        assert!(handle.is_finished());
        assert_eq!(ended.await.unwrap(), 5);
    })
    .unwrap();
}

/// A task that aborts itself goes on to its next suspension.
#[test]
fn a_task_may_abort_itself() {
    let rt = runtime();
    rt.block_on(async {
        let own: Rc<Cell<Option<tidegate_runtime::AbortHandle>>> = Rc::default();
        let mine = own.clone();
        let ran = Rc::new(Cell::new(0));
        let steps = ran.clone();
        let task = spawn_local(async move {
            yield_now().await;
            mine.take().unwrap().abort();
            steps.set(1);
            yield_now().await;
            steps.set(2);
        });
        own.set(Some(task.abort_handle()));
        assert!(task.await.unwrap_err().is_aborted());
        assert_eq!(ran.get(), 1);
    })
    .unwrap();
}

#[test]
fn a_join_has_limits() {
    let rt = runtime();
    rt.block_on(async {
        let mut task = spawn_local(async {
            sleep(100 * MS).await;
            9
        });
        assert!(task.join().timeout(MS).await.unwrap_err().is_timeout());
        let token = CancelToken::new();
        token.cancel();
        assert!(task.join().cancel_on(&token).await.unwrap_err().is_cancelled());
        assert_eq!(task.join().timeout(1000 * MS).await.unwrap(), 9);
        assert!(matches!(task.join().await, Err(JoinError::Taken)));
        assert!(task.is_finished());
        // The owned one detaches.
        let (payload, drops) = counted();
        let slow = spawn_local(async move {
            sleep(10 * MS).await;
            payload
        });
        assert!(slow.timeout(MS).await.is_err());
        assert_eq!(drops.get(), 0);
        sleep(20 * MS).await;
        assert_eq!(drops.get(), 1);
        // A token that is cancelled while the join is parked.
        let token = CancelToken::new();
        let stop = token.clone();
        drop(spawn_local(async move { stop.cancel() }));
        assert!(spawn_local(pending::<()>()).cancel_on(&token).await.unwrap_err().is_cancelled());
    })
    .unwrap();
}

/// G9: a join that is dropped while parked loses nothing, and polls after the end are harmless.
#[test]
fn joins_may_be_dropped_and_polled_again() {
    let rt = runtime();
    rt.block_on(async {
        let (tx, rx) = bounded::<u8>(1);
        let mut task = spawn_local(async move { rx.recv().await.unwrap() });
        for _ in 0..3 {
            let mut join = Box::pin(task.join());
            assert!(poll_once(join.as_mut()).is_pending());
        }
        yield_now().await;
        tx.send(4).await.unwrap();
        let mut join = pin!(task.join());
        assert!(poll_once(join.as_mut()).is_pending());
        yield_now().await;
        assert!(matches!(poll_once(join.as_mut()), Poll::Ready(Ok(4))));
        assert!(poll_once(join.as_mut()).is_pending());
    })
    .unwrap();
}

#[test]
fn a_task_cannot_join_itself() {
    let rt = runtime();
    rt.block_on(async {
        let own: Rc<Cell<Option<JoinHandle<()>>>> = Rc::default();
        let mine = own.clone();
        let seen = Rc::new(Cell::new(false));
        let noted = seen.clone();
        own.set(Some(spawn_local(async move {
            let mut handle = mine.take().unwrap();
            noted.set(matches!(handle.join().await, Err(JoinError::Itself)));
        })));
        yield_now().await;
        yield_now().await;
        assert!(seen.get());
    })
    .unwrap();
}

/// The end of a runtime drops every future once, in the order of the spawns, and joins say why.
#[test]
fn a_dropped_runtime_drops_its_tasks() {
    let (payload, drops) = counted();
    let rt = runtime();
    let handles: Vec<_> = (0..5)
        .map(|i| {
            let payload = payload.clone();
            rt.spawn(async move {
                let _payload = payload;
                if i % 2 == 0 {
                    sleep(MS).await;
                }
                pending::<()>().await;
            })
        })
        .collect();
    let waker = rt.block_on(poll_fn(|cx| Poll::Ready(cx.waker().clone()))).unwrap();
    // Never polled.
    let last = rt.spawn(async move {
        let _payload = payload;
    });
    assert_eq!(drops.get(), 0);
    drop(rt);
    assert_eq!(drops.get(), 6);
    for handle in handles {
        assert!(matches!(handle.wait(), Err(JoinError::Shutdown)));
    }
    assert!(matches!(last.wait(), Err(JoinError::Shutdown)));
    waker.wake_by_ref();
    waker.wake();
}

/// Destructors at the end of a runtime may wake, spawn and abort; what they spawn ends at once.
#[test]
fn destructors_may_call_back_into_a_dying_runtime() {
    struct Meddler(Option<Waker>, Rc<Cell<usize>>);
    impl Drop for Meddler {
        fn drop(&mut self) {
            self.0.take().unwrap().wake();
            let late = spawn_local(async { 1 });
            late.abort();
            assert!(matches!(late.wait(), Err(JoinError::Shutdown)));
            assert!(Handle::current().is_ok());
            self.1.set(self.1.get() + 1);
        }
    }
    let rt = runtime();
    let count = Rc::new(Cell::new(0));
    let wakers: Rc<Cell<Vec<Waker>>> = Rc::default();
    for _ in 0..4 {
        let (count, wakers) = (count.clone(), wakers.clone());
        drop(rt.spawn(async move {
            let own = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
            let mut all = wakers.take();
            all.push(own);
            // Each wakes the one before, or itself.
            let other = all[all.len().saturating_sub(2)].clone();
            wakers.set(all);
            let _meddler = Meddler(Some(other), count);
            pending::<()>().await;
        }));
    }
    rt.block_on(async {
        yield_now().await;
        yield_now().await;
    })
    .unwrap();
    drop(rt);
    assert_eq!(count.get(), 4);
}

#[test]
fn bad_input_is_a_clear_error() {
    assert_eq!(builder().threads(0).build().unwrap_err(), BuildError::NoThreads);
    assert_eq!(builder().blocking_threads(0).build().unwrap_err(), BuildError::NoBlockingThreads);
    assert_eq!(builder().threads(257).build().unwrap_err(), BuildError::TooManyThreads(257));
    assert_eq!(Handle::current().unwrap_err(), NoRuntime);
    let outside = catch_unwind(|| drop(spawn(async {})));
    assert!(outside.unwrap_err().downcast::<String>().unwrap().contains("not running a Tidegate runtime"));
    let rt = runtime();
    let other = runtime();
    rt.block_on(async {
        assert!(matches!(rt.block_on(async {}), Err(RunError::Nested)));
        assert!(matches!(other.block_on(async {}), Err(RunError::Nested)));
    })
    .unwrap();
    let handle = rt.handle();
    drop(rt);
    assert!(matches!(handle.spawn(async { 1 }).wait(), Err(JoinError::Shutdown)));
    assert!(matches!(handle.spawn_blocking(|| 1).wait(), Err(JoinError::Shutdown)));
}

/// A runtime inside of another's task: made, filled and dropped there.
#[test]
fn a_runtime_may_end_inside_of_another() {
    let rt = runtime();
    rt.block_on(async {
        let (payload, drops) = counted();
        let inner = runtime();
        let task = inner.spawn(async move {
            let _payload = payload;
            pending::<()>().await;
        });
        drop(inner);
        assert_eq!(drops.get(), 1);
        assert!(matches!(task.await, Err(JoinError::Shutdown)));
        spawn(async {}).await.unwrap();
    })
    .unwrap();
}

/// Names and places of spawns are kept for reports, and freed with the task.
#[test]
fn tasks_have_names() {
    let rt = runtime();
    rt.block_on(async {
        let named = spawn_named(String::from("counter"), async { 1 });
        assert!(format!("{named:?}").contains("\"counter\""));
        let local = spawn_local_named("local", pending::<()>());
        assert!(format!("{local:?}").contains("tests/tasks.rs"));
        yield_now().await;
        let dump = Handle::current().unwrap().dump();
        let names: Vec<_> = dump.tasks.iter().map(|task| task.name.as_deref()).collect();
        assert_eq!(names, [Some("block_on"), Some("local")]);
        assert_eq!(named.await.unwrap(), 1);
    })
    .unwrap();
}

/// Wakes of a task that runs, by itself and more than once, lead to one more poll.
#[test]
fn wakes_during_a_poll_are_one() {
    let rt = runtime();
    let polls = Arc::new(AtomicUsize::new(0));
    let seen = polls.clone();
    rt.block_on(async move {
        let task = spawn(poll_fn(move |cx| match seen.fetch_add(1, Ordering::Relaxed) {
            0 => {
                cx.waker().wake_by_ref();
                let by_value = cx.waker().clone();
                by_value.wake();
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }));
        task.await.unwrap();
        yield_now().await;
    })
    .unwrap();
    assert_eq!(polls.load(Ordering::Relaxed), 2);
}

/// The last poll of `block_on`'s future may use up its budget to the last unit.
#[test]
fn a_future_may_end_with_its_budget() {
    let rt = runtime();
    for n in 120..140 {
        rt.block_on(async {
            let (tx, _rx) = tidegate_channel::unbounded();
            for i in 0..n {
                tx.send(i).await.unwrap();
            }
        })
        .unwrap();
    }
}

/// Destructors have a budget of their own, whatever the poll before has used.
#[test]
fn a_destructor_has_a_budget() {
    struct Sends(tidegate_channel::Sender<u32>, Rc<Cell<bool>>);
    impl Drop for Sends {
        fn drop(&mut self) {
            self.1.set(poll_once(pin!(self.0.send(1))).is_ready());
        }
    }
    let rt = runtime();
    let sent = Rc::new(Cell::new(false));
    let seen = sent.clone();
    rt.block_on(async {
        let (tx, _rx) = tidegate_channel::unbounded();
        let sends = Sends(tx.clone(), seen);
        let task = spawn_local(async move {
            let _sends = sends;
            pending::<()>().await;
        });
        yield_now().await;
        task.abort();
        for i in 0..128 {
            tx.send(i).await.unwrap();
        }
        yield_now().await;
    })
    .unwrap();
    assert!(sent.get());
}

/// G9: a parked join that is leaked, and ends by its limit, takes nothing from the join that came after it.
#[test]
fn a_leaked_join_takes_no_turn() {
    let rt = runtime();
    rt.block_on(async {
        let mut task = spawn(async {
            sleep(30 * MS).await;
            5
        });
        let mut leaked = Box::pin(task.join().timeout(MS));
        assert!(poll_once(leaked.as_mut()).is_pending());
        std::mem::forget(leaked);
        assert_eq!(task.join().await.unwrap(), 5);
    })
    .unwrap();
}

/// `.wait()` on a thread that runs tasks: a timer of its own ends it, on the driver's thread.
#[test]
fn a_blocking_wait_in_a_task_has_time() {
    let rt = builder().build().unwrap();
    rt.block_on(async {
        let (_tx, rx) = bounded::<u8>(1);
        assert!(rx.recv().timeout(MS).wait().unwrap_err().is_timeout());
        sleep(MS).wait();
        sleep(MS).await;
    })
    .unwrap();
}
