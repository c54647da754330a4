//! The driver thread, in real time: never early, not much too late, and nearly for free. CASES 36 and 39, G9.
//!
//! Bounds in time are loose: a loaded machine must not fail them, only a driver that forgets or spins.
#![cfg(not(miri))]

use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::block_on;
use tidegate_wait::timer::{interval, sleep, sleep_until, timeout, Sleep};
use tidegate_wait::wait_queue::{ParkError, WaitQueue};
use tidegate_wait::{Limit, Operation};

const MS: Duration = Duration::from_millis(1);
const LATE: Duration = Duration::from_secs(20);

/// Tests of time disturb one another least alone.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// G6: sleeps and limits in real time are never early, and come.
#[test]
fn g6_the_driver_fires() {
    let _alone = alone();
    let queue = WaitQueue::<u32>::new();
    for ms in [0, 1, 5, 20, 70] {
        let limit = ms * MS;
        let start = Instant::now();
        sleep(limit).wait();
        assert!((limit..LATE).contains(&start.elapsed()));
        let start = Instant::now();
        sleep_until(start + limit).wait();
        assert!((limit..LATE).contains(&start.elapsed()));
        let start = Instant::now();
        assert_eq!(queue.park().timeout(limit).wait(), Err(ParkError::TimedOut));
        assert!((limit..LATE).contains(&start.elapsed()));
        let start = Instant::now();
        assert_eq!(sleep(LATE).timeout(limit).wait(), Err(Limit::TimedOut));
        assert!((limit..LATE).contains(&start.elapsed()));
        let start = Instant::now();
        assert!(block_on(timeout(limit, std::future::pending::<()>())).is_err());
        assert!((limit..LATE).contains(&start.elapsed()));
    }
}

/// CASE 41: an earlier timer that is armed while the driver sleeps for a later one is not ignored.
#[test]
fn case_41_the_driver_sees_earlier_timers() {
    let _alone = alone();
    let start = Instant::now();
    let mut late = pin!(sleep(1_000 * LATE));
    assert!(tidegate_wait::op::poll_once(late.as_mut()).is_pending());
    std::thread::sleep(20 * MS);
    for ms in [50, 20, 5, 1] {
        sleep(ms * MS).wait();
    }
    std::thread::scope(|scope| {
        for n in 0..8_u32 {
            scope.spawn(move || {
                for ms in [9 - n, n + 1, 3] {
                    sleep(ms * MS).wait();
                }
            });
        }
    });
    assert!(start.elapsed() < LATE);
}

/// G9: cancelled and handed over from other threads while the driver may fire: each wait has one end.
#[test]
fn g1_one_end_in_real_time() {
    let _alone = alone();
    let queue = WaitQueue::<u32>::new();
    let taken = AtomicUsize::new(0);
    let given = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for n in 0..200_u32 {
                    match queue.park().timeout(Duration::from_micros(u64::from(n) * 7)).wait() {
                        Ok(_) => taken.fetch_add(1, Ordering::SeqCst),
                        Err(end) => {
                            assert_eq!(end, ParkError::TimedOut);
                            0
                        }
                    };
                    let token = CancelToken::new();
                    let canceller = token.clone();
                    let nap = sleep(Duration::from_micros(50)).cancel_on(&token);
                    let handle = (n % 20 == 0).then(|| std::thread::spawn(move || canceller.cancel()));
                    assert!(matches!(nap.wait(), Ok(()) | Err(Limit::Cancelled)));
                    handle.map(|handle| handle.join().expect("a canceller"));
                }
            });
        }
        let mut given = 0;
        for n in 0..2_000 {
            given += usize::from(queue.hand_over(n).is_ok());
            std::thread::yield_now();
        }
        given
    });
    assert_eq!(taken.load(Ordering::SeqCst), given);
    assert_eq!(queue.parked(), 0);
}

/// Wakes the polling thread when all have fired, and remembers how late each was.
struct Latest {
    due: Instant,
    left: AtomicUsize,
    latest: Mutex<Duration>,
    thread: std::thread::Thread,
}

impl Wake for Latest {
    fn wake(self: Arc<Self>) {
        let late = self.due.elapsed();
        let mut latest = self.latest.lock().expect("latest");
        *latest = late.max(*latest);
        drop(latest);
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.thread.unpark();
        }
    }
}

/// CASE 36: 32,768 timers that are due at once all fire soon after, none early; cancelling as many costs little. (On an
/// idle machine the last is less than a few milliseconds late; here only a wheel that rebuilds itself fails.)
#[test]
fn case_36_many_timers_at_once() {
    let _alone = alone();
    const COUNT: usize = 32_768;
    let due = Instant::now() + 400 * MS;
    let latest = Arc::new(Latest {
        due,
        left: AtomicUsize::new(COUNT),
        latest: Mutex::default(),
        thread: std::thread::current(),
    });
    let waker = Waker::from(latest.clone());
    let mut cx = Context::from_waker(&waker);
    let mut arm = || -> Vec<Pin<Box<Sleep>>> {
        let mut naps: Vec<_> = (0..COUNT).map(|_| Box::pin(sleep_until(due))).collect();
        // A machine so slow that they are due before they are armed shows nothing; then they are ready.
        let ready = naps.iter_mut().filter_map(|nap| nap.as_mut().poll(&mut cx).is_ready().then_some(())).count();
        latest.left.fetch_sub(ready, Ordering::SeqCst);
        naps
    };
    drop(arm());
    let early_ends = COUNT - latest.left.load(Ordering::SeqCst);
    latest.left.fetch_add(early_ends, Ordering::SeqCst);
    let mut naps = arm();
    while latest.left.load(Ordering::SeqCst) != 0 {
        std::thread::park_timeout(LATE);
        assert!(due.elapsed() < LATE, "{} timers did not fire", latest.left.load(Ordering::SeqCst));
    }
    assert!(Instant::now() >= due);
    assert!(naps.iter_mut().all(|nap| nap.as_mut().poll(&mut cx) == Poll::Ready(())));
    let latest = *latest.latest.lock().expect("latest");
    assert!(latest < Duration::from_secs(2), "the last was {latest:?} late");
}

/// The processor time of this thread and of the driver's, which lives as long as the process: in nanoseconds, from the
/// scheduler's statistics.
#[cfg(target_os = "linux")]
fn processor_time() -> Duration {
    let spent = |task: &std::path::Path| {
        let line = std::fs::read_to_string(task.join("schedstat")).ok()?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let name = |task: &std::path::Path| std::fs::read_to_string(task.join("comm")).unwrap_or_default();
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let driver = tasks.filter_map(|task| Some(task.ok()?.path())).find(|task| name(task).starts_with("tidegate-timer"));
    let driver = driver.expect("the driver runs");
    let own = std::path::Path::new("/proc/thread-self");
    Duration::from_nanos(spent(own).unwrap_or(0) + spent(&driver).unwrap_or(0))
}

/// CASE 39: a second of waiting, by sleep, by limit, by interval, with the driver beside, costs next to nothing.
#[test]
#[cfg(target_os = "linux")]
fn case_39_waiting_costs_no_processor() {
    let _alone = alone();
    sleep(MS).wait();
    let queue = WaitQueue::<()>::new();
    let mut beat = interval(50 * MS).expect("a period");
    let before = processor_time();
    if before.is_zero() {
        // A kernel without scheduler statistics.
        return;
    }
    let start = Instant::now();
    assert_eq!(queue.park().timeout(350 * MS).wait(), Err(ParkError::TimedOut));
    sleep(350 * MS).wait();
    for _ in 0..7 {
        let _at = block_on(beat.tick());
    }
    assert!(start.elapsed() >= Duration::from_secs(1));
    let used = processor_time() - before;
    assert!(used < 10 * MS, "a second of waiting used {used:?}");
}
