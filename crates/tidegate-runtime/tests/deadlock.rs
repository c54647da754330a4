//! Hangs that are found, and what is not one: DESIGN 6, CASES 49 in both directions.
#![cfg(not(loom))]

#[path = "support/make.rs"]
mod make;

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn, Future};
use std::pin::{pin, Pin};
use std::rc::Rc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use tidegate_channel::{bounded, unbounded};
use tidegate_runtime::{
    spawn_blocking, spawn_local, spawn_local_named, yield_now, Dump, Handle, JoinHandle, RunError, Runtime, TaskState,
};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::sleep;
use tidegate_wait::Operation;

use make::builder;

const MS: Duration = Duration::from_millis(1);

fn closed() -> Runtime {
    builder().closed_world(true).build().unwrap()
}

fn deadlock<T: std::fmt::Debug>(ended: Result<T, RunError>) -> Dump {
    match ended {
        Err(RunError::Deadlock(dump)) => *dump,
        other => panic!("no deadlock: {other:?}"),
    }
}

/// Two tasks that each wait for the other to send first.
#[test]
fn a_hang_names_its_tasks_and_what_they_wait_for() {
    let rt = closed();
    let (left, right) = (bounded::<u8>(1), unbounded::<u8>());
    let dump = deadlock(rt.block_on(async {
        let one = spawn_local_named("one", async move {
            let value = left.1.recv().await.unwrap();
            right.0.try_send(value).unwrap();
        });
        let two = spawn_local_named("two", async move {
            let value = right.1.recv().await.unwrap();
            left.0.send(value).await.unwrap();
        });
        one.await.unwrap();
        two.await.unwrap();
    }));
    let names: Vec<_> = dump.tasks.iter().map(|task| task.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["block_on", "one", "two"]);
    let objects: Vec<_> = dump
        .tasks
        .iter()
        .map(|task| match &task.state {
            TaskState::Waiting { object, .. } => (object.kind, object.operation, object.task),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(objects, [("task", "join", Some(1)), ("channel", "receive", None), ("channel", "receive", None)]);
    assert!(dump.circles.is_empty());
    let text = dump.to_string();
    assert!(text.contains("join on task \"one\" (spawned at crates/tidegate-runtime/tests/deadlock.rs:"), "{text}");
    assert!(text.contains("receive on channel "), "{text}");
}

/// What is waited for has a kind, a name if it was given one, and a place where it was made.
#[test]
fn objects_have_kinds_names_and_places() {
    let rt = closed();
    let (named, plain, weighted) = (bounded::<u8>(1), unbounded::<u8>(), tidegate_channel::bounded_by(1, |_: &u8| 1));
    named.1.set_name("orders");
    weighted.0.try_send(0).unwrap();
    let (_reply, answer) = tidegate_channel::oneshot::channel::<u8>();
    let token = CancelToken::new();
    let meeting = tidegate_channel::rendezvous::<u8>();
    let dump = deadlock(rt.block_on(async {
        let _tasks = (
            spawn_local(named.1.into_recv()),
            spawn_local(plain.1.into_recv()),
            spawn_local(weighted.0.into_send(1)),
            spawn_local(answer.into_recv()),
            spawn_local(async move { token.cancelled().await }),
            spawn_local(meeting.0.clone().into_send(1)),
            spawn_local({
                let many = bounded::<u8>(2);
                async move {
                    let _slot = many.0.reserve().await;
                    drop(many.0.reserve_many(2).await);
                }
            }),
        );
        pending::<()>().await;
    }));
    let here = "(made at crates/tidegate-runtime/tests/deadlock.rs:";
    let expected = [
        ("receive on channel \"orders\" ", here),
        ("receive on channel 0x", here),
        ("send on channel 0x", here),
        ("receive on oneshot channel 0x", here),
        ("wait on cancel token 0x", ""),
        ("send on channel 0x", here),
        ("reservation of many on channel 0x", here),
    ];
    for (task, (what, place)) in dump.tasks[1..].iter().zip(expected) {
        let text = task.state.to_string();
        assert!(text.starts_with(what) && text.contains(place), "{text}");
    }
    let json = dump.to_json();
    assert!(json.contains(r#""name":"orders","created":"crates/tidegate-runtime/tests/deadlock.rs:"#), "{json}");
}

/// The runtime is whole after it: what it listed is there still, and may be woken.
#[test]
fn a_runtime_goes_on_after_a_deadlock() {
    let rt = closed();
    let (tx, rx) = bounded::<u8>(1);
    let task = rt.spawn(async move { rx.recv().await.unwrap() });
    let dump = deadlock(rt.block_on(pending::<()>()));
    assert_eq!(dump.tasks.len(), 2);
    assert!(dump.tasks.iter().any(|task| matches!(task.state, TaskState::Elsewhere)));
    tx.try_send(4).unwrap();
    let ended = rt.block_on(async {
        let value = task.await.unwrap();
        (value, Handle::current().unwrap().dump().tasks.len())
    });
    // The future that hung is gone.
    assert_eq!(ended.unwrap(), (4, 1));
}

/// The future of `block_on` is dropped, inside of the runtime.
#[test]
fn a_deadlocked_future_is_dropped() {
    struct Probe(Rc<Cell<bool>>);
    impl Drop for Probe {
        fn drop(&mut self) {
            self.0.set(Handle::current().is_ok());
        }
    }
    let rt = closed();
    let dropped_inside = Rc::new(Cell::new(false));
    let probe = Probe(dropped_inside.clone());
    deadlock(rt.block_on(async move {
        let _probe = probe;
        pending::<()>().await;
    }));
    assert!(dropped_inside.get());
}

/// CASES 49: never a false alarm. A timer, a blocking job, a declared thread, each alone.
#[test]
fn what_may_still_wake_is_no_deadlock() {
    let rt = closed();
    rt.block_on(sleep(3 * MS)).unwrap();
    let (_tx, rx) = bounded::<u8>(1);
    assert!(rt.block_on(rx.recv().timeout(3 * MS)).unwrap().unwrap_err().is_timeout());
    let (tx, rx) = bounded::<u8>(1);
    rt.block_on(async {
        // Detached: it wakes nobody by its own end.
        spawn_blocking(move || {
            thread::sleep(5 * MS);
            tx.try_send(1).unwrap();
        })
        .detach();
        assert_eq!(rx.recv().await.unwrap(), 1);
    })
    .unwrap();
    let (tx, rx) = bounded::<u8>(1);
    let declared = rt.handle().outside();
    let thread = thread::spawn(move || {
        thread::sleep(5 * MS);
        tx.try_send(2).unwrap();
        drop(declared);
    });
    assert_eq!(rt.block_on(rx.recv()).unwrap().unwrap(), 2);
    thread.join().unwrap();
}

/// CASES 49: never blind. The same, after the job and the declaration have ended without a wake.
#[test]
fn what_wakes_nobody_does_not_hide_a_deadlock() {
    let rt = closed();
    let (_tx, rx) = bounded::<u8>(1);
    deadlock(rt.block_on(async {
        spawn_blocking(|| thread::sleep(5 * MS)).detach();
        rx.recv().await
    }));
    let declared = rt.handle().outside();
    let second = rt.handle().outside();
    let thread = thread::spawn(move || {
        thread::sleep(3 * MS);
        drop(declared);
        thread::sleep(3 * MS);
        drop(second);
    });
    deadlock(rt.block_on(rx.recv()));
    thread.join().unwrap();
    // A timer that fired, one that was dropped, one that is for ever.
    deadlock(rt.block_on(async {
        sleep(MS).await;
        {
            let mut nap = pin!(sleep(1000 * MS));
            assert!(tidegate_wait::op::poll_once(nap.as_mut()).is_pending());
        }
        sleep(Duration::MAX).await;
    }));
}

/// In virtual time a hang is found at once, after all timers have fired.
#[test]
fn virtual_time_finds_a_hang_at_once() {
    let rt = builder().virtual_time(true).closed_world(true).build().unwrap();
    let before = Instant::now();
    let (_tx, rx) = bounded::<u8>(1);
    let rx = Rc::new(rx);
    let again = rx.clone();
    deadlock(rt.block_on(async move {
        assert!(rx.recv().timeout(Duration::from_secs(3600)).await.unwrap_err().is_timeout());
        again.recv().await
    }));
    assert!(before.elapsed() < Duration::from_secs(600));
}

/// Long enough for the thread to be idle in between, under Miri too: circles are looked for then.
const NAP: Duration = Duration::from_millis(if cfg!(miri) { 500 } else { 5 });

/// Waits until there is no task but the caller's.
async fn others_have_ended() {
    while Handle::current().unwrap().dump().tasks.len() > 1 {
        sleep(5 * MS).await;
    }
}

type Slot = Rc<RefCell<Option<JoinHandle<()>>>>;

/// `n` tasks, each of which joins the next; the last joins the first.
fn spawn_circle(n: usize, join: impl Fn(JoinHandle<()>) -> Pin<Box<dyn Future<Output = ()>>> + 'static) {
    let slots: Vec<Slot> = (0..n).map(|_| Slot::default()).collect();
    let join = Rc::new(join);
    for i in 0..n {
        let (next, join) = (slots[(i + 1) % n].clone(), join.clone());
        let task = spawn_local_named(format!("circle {i}"), async move {
            let handle = next.borrow_mut().take().unwrap();
            join(handle).await;
        });
        *slots[i].borrow_mut() = Some(task);
    }
}

fn open_with_reports() -> (Runtime, Rc<RefCell<Vec<Dump>>>) {
    let reports = Rc::new(RefCell::new(Vec::new()));
    let seen = reports.clone();
    let rt = builder().on_deadlock(move |dump| seen.borrow_mut().push(dump.clone())).build().unwrap();
    (rt, reports)
}

/// Circles of joins are reported in an open world, beside armed timers, once each.
#[test]
fn circles_of_joins_are_found_in_any_world() {
    let (rt, reports) = open_with_reports();
    rt.block_on(async {
        let _timer = spawn_local(sleep(Duration::from_secs(3600)));
        spawn_circle(3, |handle| Box::pin(async move { handle.await.unwrap() }));
        while reports.borrow().is_empty() {
            sleep(NAP).await;
        }
        sleep(250 * MS).await;
        spawn_local(yield_now()).await.unwrap();
        sleep(250 * MS).await;
        assert_eq!(reports.borrow().len(), 1, "reported twice");
        spawn_circle(2, |handle| Box::pin(async move { handle.await.unwrap() }));
        while reports.borrow().len() == 1 {
            sleep(NAP).await;
        }
    })
    .unwrap();
    let reports = reports.borrow();
    assert_eq!(reports.len(), 2);
    assert_eq!(reports[0].circles.iter().map(Vec::len).collect::<Vec<_>>(), [3]);
    let mut lengths: Vec<_> = reports[1].circles.iter().map(Vec::len).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [2, 3]);
    let text = reports[0].to_string();
    assert!(text.contains("a circle: circle "), "{text}");
}

/// No false alarm: a limit on one of the joins, a second thing that is waited for, an abort handle somewhere.
#[test]
fn circles_that_may_break_are_not_reported() {
    let (rt, reports) = open_with_reports();
    rt.block_on(async {
        let token = CancelToken::new();
        let limit = token.clone();
        spawn_circle(2, move |handle| {
            let join = handle.cancel_on(&limit);
            Box::pin(async move { drop(join.await) })
        });
        spawn_circle(2, |handle| {
            Box::pin(async move {
                // Waits for two things, like a `select!`.
                let mut join = pin!(handle.into_join());
                let mut nap = pin!(sleep(400 * MS));
                poll_fn(|cx| match nap.as_mut().poll(cx).is_ready() {
                    true => Poll::Ready(()),
                    false => join.as_mut().poll(cx).map(drop),
                })
                .await;
            })
        });
        let handles = Rc::new(RefCell::new(Vec::new()));
        let keep = handles.clone();
        spawn_circle(2, move |handle| {
            keep.borrow_mut().push(handle.abort_handle());
            Box::pin(async move { drop(handle.await) })
        });
        sleep(300 * MS).await;
        assert_eq!(reports.borrow().len(), 0);
        handles.borrow().iter().for_each(tidegate_runtime::AbortHandle::abort);
        token.cancel();
        others_have_ended().await;
        assert_eq!(reports.borrow().len(), 0);
    })
    .unwrap();
}

/// What the report does is not slept over, and its panic ends there.
#[test]
fn a_report_may_wake_and_panic() {
    let (tx, supervisor) = unbounded::<usize>();
    let rt = builder()
        .on_deadlock(move |dump| {
            tx.try_send(dump.circles.len()).unwrap();
            panic!("in the report");
        })
        .build()
        .unwrap();
    let circles = rt.block_on(async {
        let mut circles = Vec::new();
        // The second comes when it is too early for another search: the thread wakes for it.
        for _ in 0..2 {
            spawn_circle(2, |handle| Box::pin(async move { handle.await.unwrap() }));
            circles.push(supervisor.recv().await.unwrap());
        }
        circles
    });
    assert_eq!(circles.unwrap(), [1, 2]);
}

/// No false alarm: what was joined once, or by another waker, is not what is waited for.
#[test]
fn a_note_is_no_proof() {
    let (rt, reports) = open_with_reports();
    rt.block_on(async {
        let (first, second): (Slot, Slot) = Default::default();
        for (own, other) in [(&first, &second), (&second, &first)] {
            let other = other.clone();
            let task = spawn_local(async move {
                let mut handle = other.borrow_mut().take().unwrap();
                // The join is dropped; what is waited for is a thread.
                assert!(tidegate_wait::op::poll_once(pin!(handle.join())).is_pending());
                let mut is_started = false;
                poll_fn(|cx| {
                    if std::mem::replace(&mut is_started, true) {
                        return Poll::Ready(());
                    }
                    let waker = cx.waker().clone();
                    thread::spawn(move || {
                        thread::sleep(250 * MS);
                        waker.wake();
                    });
                    Poll::Pending
                })
                .await;
            });
            *own.borrow_mut() = Some(task);
        }
        others_have_ended().await;
    })
    .unwrap();
    assert!(reports.borrow().is_empty());
}

/// A circle that could be broken by an abort handle is one as soon as that is dropped: found when the next join parks,
/// that of `block_on` too.
#[test]
fn a_dropped_abort_handle_leaves_a_circle() {
    let (rt, reports) = open_with_reports();
    rt.block_on(async {
        let aborts = Rc::new(RefCell::new(Vec::new()));
        let kept = aborts.clone();
        spawn_circle(2, move |handle| {
            kept.borrow_mut().push(handle.abort_handle());
            Box::pin(async move { handle.await.unwrap() })
        });
        spawn_local(sleep(150 * MS)).await.unwrap();
        assert!(reports.borrow().is_empty());
        aborts.take();
        let start = Instant::now();
        while reports.borrow().is_empty() {
            spawn_local(sleep(NAP)).await.unwrap();
            assert!(start.elapsed() < Duration::from_secs(60), "the circle is not found");
        }
    })
    .unwrap();
}

/// Circles are found in virtual time, too, without a throttle.
#[test]
fn circles_in_virtual_time() {
    let reports = Rc::new(Cell::new(0));
    let seen = reports.clone();
    let rt = builder().virtual_time(true).on_deadlock(move |_| seen.set(seen.get() + 1)).build().unwrap();
    rt.block_on(async {
        for _ in 0..3 {
            spawn_circle(2, |handle| Box::pin(async move { handle.await.unwrap() }));
            sleep(MS).await;
        }
    })
    .unwrap();
    assert_eq!(reports.get(), 3);
}

/// Never blind: among so many tasks a search takes longer than it is ever until the next timer, so it is put off; for a
/// second.
#[test]
fn circles_are_found_beside_timers() {
    if cfg!(miri) {
        return;
    }
    let (rt, reports) = open_with_reports();
    rt.block_on(async {
        for _ in 0..40_000 {
            spawn_local(sleep(Duration::from_secs(3600))).detach();
        }
        spawn_circle(2, |handle| Box::pin(async move { handle.await.unwrap() }));
        let start = Instant::now();
        while reports.borrow().is_empty() {
            sleep(MS).await;
            assert!(start.elapsed() < Duration::from_secs(60), "the circle is not found");
        }
    })
    .unwrap();
    assert_eq!(reports.borrow()[0].circles.len(), 1);
}

/// Never blind: a timer that was taken out again is not waited for.
#[test]
fn a_disarmed_timer_does_not_hide_a_deadlock() {
    let rt = closed();
    let before = Instant::now();
    deadlock(rt.block_on(async {
        let (tx, rx) = bounded::<u8>(1);
        let sender = spawn_local(async move {
            yield_now().await;
            tx.send(1).await.unwrap();
            tx
        });
        assert_eq!(rx.recv().timeout(Duration::from_secs(3600)).await.unwrap(), 1);
        let _tx = sender.await.unwrap();
        rx.recv().await
    }));
    assert!(before.elapsed() < Duration::from_secs(600));
}

/// A long chain of joins, walked in one search, is no circle.
#[test]
fn long_chains_are_no_circles() {
    let (rt, reports) = open_with_reports();
    rt.block_on(async {
        let n = if cfg!(miri) { 50 } else { 20_000 };
        let mut last = spawn_local(sleep(200 * MS));
        for _ in 0..n {
            let before = last;
            last = spawn_local(async move { before.await.unwrap() });
        }
        last.await.unwrap();
    })
    .unwrap();
    assert!(reports.borrow().is_empty());
}

/// `dump` from another thread, while the runtime sleeps, and one that nobody answers.
#[test]
fn a_dump_from_another_thread() {
    let rt = builder().build().unwrap();
    let handle = rt.handle();
    let asker = {
        let handle = handle.clone();
        thread::spawn(move || loop {
            let dump = handle.dump();
            let waiting = dump.tasks.iter().filter(|task| matches!(task.state, TaskState::Waiting { .. }));
            if (waiting.count(), dump.jobs.len()) == (3, 1) {
                return dump;
            }
        })
    };
    rt.block_on(async {
        let (_tx, rx) = bounded::<u8>(1);
        let _first = spawn_local_named("rx", async move { rx.recv().timeout(Duration::from_secs(50)).await });
        let _second = spawn_local_named("nap", sleep(Duration::from_secs(60)));
        let job = Handle::current().unwrap().spawn_blocking_named("asker", move || asker.join().unwrap());
        let dump = job.await.unwrap();
        assert!(dump.is_complete);
        let texts: Vec<_> = dump.tasks.iter().map(|task| task.state.to_string()).collect();
        assert!(texts[0].starts_with("join on blocking job \"asker\" (spawned at "), "{texts:?}");
        assert!(texts[1].contains("receive on channel") && texts[1].ends_with(", with a limit"), "{texts:?}");
        assert!(texts[2].starts_with("sleep, for"), "{texts:?}");
        assert_eq!(dump.jobs[0].name.as_deref(), Some("asker"));
        let json = dump.to_json();
        assert!(json.contains(r#""name":"rx""#) && json.contains(r#""kind":"sleep""#), "{json}");
    })
    .unwrap();
    drop(rt);
    let dump = handle.dump();
    assert!(!dump.is_complete && dump.tasks.is_empty());
    assert!(dump.to_string().contains("did not answer"));
}

/// A task that has waited on something of Tidegate's, and now does not, is not said to.
#[test]
fn a_note_ends_with_the_next_poll() {
    let rt = closed();
    let (tx, rx) = bounded::<u8>(1);
    let dump = deadlock(rt.block_on(async {
        let _task = spawn_local(async move {
            rx.recv().await.unwrap();
            pending::<()>().await;
        });
        yield_now().await;
        tx.send(1).await.unwrap();
        pending::<()>().await;
    }));
    assert!(dump.tasks.iter().all(|task| matches!(task.state, TaskState::Elsewhere)), "{dump}");
}

/// `since` counts from the last park on the object, not from the first.
#[test]
fn since_begins_anew_with_each_park() {
    let rt = builder().virtual_time(true).build().unwrap();
    rt.block_on(async {
        let (tx, rx) = bounded::<u8>(1);
        let _receiver = spawn_local(async move { while rx.recv().await.is_ok() {} });
        for _ in 0..5 {
            sleep(10 * MS).await;
            tx.send(1).await.unwrap();
        }
        sleep(3 * MS).await;
        let dump = Handle::current().unwrap().dump();
        match &dump.tasks[1].state {
            TaskState::Waiting { since, .. } => assert!(*since >= 2 * MS && *since < 4 * MS, "{since:?}"),
            other => panic!("{other:?}"),
        }
    })
    .unwrap();
}

/// `since` counts from the park, through polls that change nothing.
#[test]
fn since_counts_from_the_park() {
    let rt = builder().virtual_time(true).build().unwrap();
    rt.block_on(async {
        let (_tx, rx) = bounded::<u8>(1);
        let waker = Rc::new(RefCell::new(None));
        let own = waker.clone();
        let mut receive = Box::pin(rx.into_recv());
        let _task = spawn_local(poll_fn(move |cx| {
            *own.borrow_mut() = Some(cx.waker().clone());
            receive.as_mut().poll(cx).map(drop)
        }));
        sleep(10 * MS).await;
        waker.borrow().as_ref().unwrap().wake_by_ref();
        sleep(10 * MS).await;
        let dump = Handle::current().unwrap().dump();
        match &dump.tasks[1].state {
            TaskState::Waiting { since, .. } => assert!(*since >= 20 * MS && *since < 21 * MS, "{since:?}"),
            other => panic!("{other:?}"),
        }
    })
    .unwrap();
}
