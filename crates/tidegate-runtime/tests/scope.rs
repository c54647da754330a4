//! Scopes, `join_all`, `race`: children end before their parent goes on, failures cancel, values come back.

#[path = "support/make.rs"]
mod make;

use std::cell::{Cell, RefCell};
use std::future::{pending, Future};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;
use std::time::Duration;

use tidegate_channel::{bounded, RecvError, SendError};
use tidegate_runtime::{
    join_all, race, scope, scope_on, spawn_local, yield_now, Failure, Handle, JoinError, Scope, ScopeError,
};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::poll_once;
use tidegate_wait::timer::sleep;
use tidegate_wait::Operation;

use make::builder;

const MS: Duration = Duration::from_millis(1);

fn run<F: Future>(future: F) -> F::Output {
    let rt = builder().virtual_time(true).closed_world(true).build().unwrap();
    rt.block_on(future).unwrap()
}

fn live_tasks() -> usize {
    Handle::current().unwrap().dump().tasks.len()
}

/// CASES 50: a scope returns after its children, also those whose handles were dropped, and their children.
#[test]
fn a_scope_outlives_its_children() {
    run(async {
        let log = Rc::new(RefCell::new(Vec::new()));
        let seen = log.clone();
        let output = scope(|s| async move {
            for child in 0..3_u32 {
                let (log, inner) = (seen.clone(), s.clone());
                s.spawn_local(async move {
                    sleep((3 - child) * MS).await;
                    let deep = log.clone();
                    drop(inner.spawn_local(async move {
                        sleep(5 * MS).await;
                        deep.borrow_mut().push(10 + child);
                        Ok(())
                    }));
                    log.borrow_mut().push(child);
                    Ok(())
                })
                .detach();
            }
            Ok::<_, ()>("body")
        })
        .await;
        assert_eq!(output.unwrap(), "body");
        assert_eq!(*log.borrow(), [2, 1, 0, 12, 11, 10]);
        assert_eq!(live_tasks(), 1);
    });
}

/// The first failure cancels the token; whoever waits under it gets its value back, and the scope waits for all.
#[test]
fn a_failure_cancels_the_others() {
    run(async {
        let returned = Rc::new(Cell::new(0));
        let back = returned.clone();
        let (tx, _rx) = bounded::<u8>(1);
        tx.try_send(0).unwrap();
        let ended = scope(|s| async move {
            let waiting = s.spawn_local({
                let token = s.token().clone();
                async move {
                    match tx.send(7).cancel_on(&token).await {
                        Err(SendError::Cancelled(value)) => back.set(value),
                        other => panic!("{other:?}"),
                    }
                    sleep(50 * MS).await;
                    Err("second")
                }
            });
            let failing = s.spawn_local(async {
                sleep(MS).await;
                Err::<(), _>("first")
            });
            assert!(matches!(failing.await, Err(JoinError::Failed)));
            assert!(s.token().is_cancelled());
            assert!(matches!(waiting.await, Err::<(), _>(JoinError::Failed)));
            Ok(())
        })
        .await;
        assert_eq!(returned.get(), 7);
        let failures = ended.unwrap_err().into_failures();
        assert!(matches!(failures[..], [Failure::Error("first"), Failure::Error("second")]));
    });
}

#[test]
fn panics_are_failures() {
    run(async {
        let ended = scope(|s| async move {
            s.spawn_local(async { panic!("a child") as Result<(), &str> }).detach();
            s.token().cancelled().await;
            Err::<(), _>("the body")
        })
        .await;
        match ended.unwrap_err() {
            ScopeError::Failed { first: Failure::Panicked(panic), others } => {
                assert_eq!(panic.message(), "a child");
                assert!(matches!(others[..], [Failure::Error("the body")]));
            }
            other => panic!("{other:?}"),
        }
    });
    // A panic of the body is handed on after the children have ended.
    let ended = Rc::new(Cell::new(false));
    let seen = ended.clone();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        run(scope(|s| async move {
            s.spawn_local(async move {
                sleep(MS).await;
                seen.set(true);
                Ok(())
            })
            .detach();
            if true {
                panic!("the body");
            }
            Ok::<_, ()>(())
        }))
    }));
    assert_eq!(*panicked.unwrap_err().downcast::<&str>().unwrap(), "the body");
    assert!(ended.get());
}

#[test]
fn a_dropped_scope_aborts_its_children() {
    run(async {
        let alive = Rc::new(());
        let held = alive.clone();
        let mut scoped = Box::pin(scope(|s: Scope<()>| async move {
            for _ in 0..3 {
                let held = held.clone();
                s.spawn_local(async move {
                    let _held = held;
                    pending::<Result<(), ()>>().await
                })
                .detach();
            }
            pending::<Result<(), ()>>().await
        }));
        assert!(poll_once(scoped.as_mut()).is_pending());
        yield_now().await;
        assert_eq!(Rc::strong_count(&alive), 5);
        drop(scoped);
        yield_now().await;
        assert_eq!((Rc::strong_count(&alive), live_tasks()), (1, 1));
    });
}

#[test]
fn a_scope_stands_under_a_token() {
    run(async {
        let token = CancelToken::new();
        let stop = token.clone();
        let ended = scope_on(&token, None, |s| async move {
            let inner = s.token().clone();
            s.spawn_local(async move {
                inner.cancelled().await;
                Ok(())
            })
            .detach();
            spawn_local(async move { stop.cancel() }).detach();
            Ok::<_, ()>(5)
        })
        .await;
        assert_eq!(ended.unwrap(), 5);
        // Already cancelled: nothing runs.
        let ended = scope_on(&token, None, |_| async { unreachable!() as Result<(), ()> }).await;
        assert!(matches!(ended, Err(ScopeError::Cancelled)));
        // The scope's own cancellation does not go up.
        let parent = CancelToken::new();
        let ended = scope_on(&parent, None, |s| async move {
            s.cancel();
            Ok::<_, ()>(())
        });
        assert!(ended.await.is_ok() && !parent.is_cancelled());
    });
}

/// At most `limit` at once, in the order of the spawns; an aborted child's turn goes on.
#[test]
fn a_limit_on_concurrency() {
    run(async {
        let (running, most, log) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
        let (now, peak, order) = (running.clone(), most.clone(), log.clone());
        scope_on(&CancelToken::new(), Some(3), |s| async move {
            let handles: Vec<_> = (0..20)
                .map(|i| {
                    let (now, peak, order) = (now.clone(), peak.clone(), order.clone());
                    s.spawn_local(async move {
                        now.set(now.get() + 1);
                        peak.set(peak.get().max(now.get()));
                        order.borrow_mut().push(i);
                        sleep(MS).await;
                        now.set(now.get() - 1);
                        Ok(())
                    })
                })
                .collect();
            yield_now().await;
            // One that waits for its turn, and one that has it.
            handles[10].abort();
            Ok::<_, ()>(())
        })
        .await
        .unwrap();
        let expected: Vec<_> = (0..20).filter(|i| *i != 10).collect();
        assert_eq!((running.get(), most.get(), &*log.borrow()), (0, 3, &expected));
        // Those that had no turn yet do not begin in a cancelled scope.
        let begun = Rc::new(Cell::new(0));
        let seen = begun.clone();
        let ended = scope_on(&CancelToken::new(), Some(1), |s| async move {
            let handles: Vec<_> = (0..4)
                .map(|_| {
                    let seen = seen.clone();
                    s.spawn_local(async move {
                        seen.set(seen.get() + 1);
                        sleep(MS).await;
                        Err::<(), _>("failed")
                    })
                })
                .collect();
            let mut ends = Vec::new();
            for handle in handles {
                ends.push(handle.await.unwrap_err().to_string());
            }
            assert_eq!(ends[1..], ["the task was aborted"; 3]);
            Ok(())
        })
        .await;
        assert_eq!((begun.get(), ended.unwrap_err().into_failures().len()), (1, 1));
    });
}

#[test]
fn a_limit_of_zero_is_refused() {
    let refused = catch_unwind(|| run(scope_on(&CancelToken::new(), Some(0), |_| async { Ok::<_, ()>(()) })));
    assert!(refused.unwrap_err().downcast::<&str>().unwrap().contains("would wait for ever"));
}

/// A handle on a scope that is over: what is spawned there has ended before it began.
#[test]
fn a_scope_that_is_over_refuses() {
    run(async {
        let kept = Rc::new(RefCell::new(None));
        let keep = kept.clone();
        scope(|s: Scope<()>| async move {
            *keep.borrow_mut() = Some(s.clone());
            Ok(())
        })
        .await
        .unwrap();
        let over = kept.borrow_mut().take().unwrap();
        let late = over.spawn_local(async { unreachable!() as Result<(), ()> });
        assert!(late.is_finished());
        assert!(matches!(late.await, Err(JoinError::Shutdown)));
    });
}

#[test]
fn join_all_keeps_order_and_contains_panics() {
    run(async {
        let outputs = join_all((0..5_u32).map(|i| async move {
            sleep((5 - i) * MS).await;
            assert_ne!(i, 3, "three");
            i
        }))
        .await;
        let texts: Vec<_> = outputs.into_iter().map(|output| output.map_err(|e| e.is_panic())).collect();
        assert_eq!(texts, [Ok(0), Ok(1), Ok(2), Err(true), Ok(4)]);
        assert!(join_all(std::iter::empty::<std::future::Ready<()>>()).await.is_empty());
    });
}

/// A loser that has taken a value by the time it is cancelled gives it back in `others`: received or left, never lost.
#[test]
fn a_race_loses_no_value() {
    run(async {
        for round in 0..100_u32 {
            let channels: Vec<_> = (0..3).map(|_| bounded::<u32>(1)).collect();
            let receivers: Vec<_> = channels.iter().map(|(_, rx)| rx.clone()).collect();
            let senders: Vec<_> = channels.iter().map(|(tx, _)| tx.clone()).collect();
            spawn_local(async move {
                // Sometimes one sends, sometimes all, before the racers park or after.
                for _ in 0..round % 5 {
                    yield_now().await;
                }
                for tx in senders.into_iter().take(round as usize % 3 + 1) {
                    tx.try_send(round).unwrap();
                }
            })
            .detach();
            let racers = receivers
                .into_iter()
                .map(|rx| move |token: CancelToken| async move { rx.recv().cancel_on(&token).await });
            let raced = race(racers).await.unwrap();
            let mut received = u32::from(raced.output.unwrap().is_ok());
            for (_, loser) in raced.others {
                match loser.unwrap() {
                    Ok(value) => {
                        assert_eq!(value, round);
                        received += 1;
                    }
                    Err(end) => assert_eq!(end, RecvError::Cancelled),
                }
            }
            let left = channels.iter().filter(|(_, rx)| rx.try_recv().is_ok()).count() as u32;
            assert_eq!(received + left, round % 3 + 1);
            assert_eq!(channels.iter().map(|(_, rx)| rx.parked_receivers()).sum::<usize>(), 0);
        }
        assert!(race(Vec::<fn(CancelToken) -> std::future::Ready<()>>::new()).await.is_none());
    });
}

#[test]
fn racers_may_panic() {
    run(async {
        type Racer = Box<dyn FnOnce(CancelToken) -> std::pin::Pin<Box<dyn Future<Output = u8>>>>;
        let racers: Vec<Racer> = vec![
            Box::new(|_| Box::pin(async { panic!("one") })),
            Box::new(|_| {
                Box::pin(async {
                    sleep(MS).await;
                    3
                })
            }),
        ];
        let raced = race(racers).await.unwrap();
        assert_eq!((raced.winner, raced.output.unwrap()), (1, 3));
        assert!(raced.others[0].1.as_ref().unwrap_err().is_panic());
        let all: Vec<Racer> = vec![Box::new(|_| Box::pin(async { panic!("alone") }))];
        assert!(race(all).await.unwrap().output.unwrap_err().is_panic());
    });
}
