//! A wheel that somebody turns by hand, as a runtime's worker does: what each turn says and does, and when the turner is
//! told. Real time, lower bounds only.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use support::{poll, Woken};
use tidegate_wait::context::{enter, Hooks, WaitInfo};
use tidegate_wait::op::poll_once;
use tidegate_wait::timer::{sleep, sleep_until, Next, Turner, Wheel};

#[derive(Default)]
struct Told(AtomicUsize);

impl Turner for Told {
    fn earlier(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

struct NoHooks;

impl Hooks for NoHooks {
    fn parked(&self, _: WaitInfo) {}
}

fn wheel() -> (Arc<Told>, Wheel) {
    let told = Arc::new(Told::default());
    let wheel = Wheel::register(told.clone()).expect("a number is free");
    (told, wheel)
}

/// G3: the turner is told of a timer that is due before it planned to look, and of no other.
#[test]
fn g3_the_turner_is_told_of_earlier_timers_only() {
    let (told, wheel) = wheel();
    enter(&wheel, &NoHooks, || {
        let told = || told.0.swap(0, Ordering::SeqCst);
        let in_secs = |secs| Box::pin(sleep(Duration::from_secs(secs)));
        assert_eq!(wheel.turn(), Next::Idle);
        let mut first = in_secs(10_000);
        assert!(poll_once(first.as_mut()).is_pending());
        assert_eq!(told(), 1);
        for secs in [10_100, 20_000, 30_000] {
            assert!(poll_once(in_secs(secs).as_mut()).is_pending());
            assert_eq!(told(), 0, "{secs}");
        }
        let mut earlier = in_secs(100);
        assert!(poll_once(earlier.as_mut()).is_pending());
        assert_eq!(told(), 1);
        assert!(poll_once(in_secs(9_000).as_mut()).is_pending());
        assert!(poll_once(sleep_long().as_mut()).is_pending());
        assert!(poll_once(Box::pin(sleep(Duration::ZERO)).as_mut()).is_ready());
        assert_eq!(told(), 0);
        // After a turn the plan is known again, and not later than the first deadline.
        let Next::At(at) = wheel.turn() else { panic!("two timers are armed") };
        let now = wheel.now_ns();
        assert!(at > now && at <= now + 100_000_000_000);
        drop(earlier);
        drop(first);
        assert_eq!((wheel.armed(), wheel.turn()), (0, Next::Idle));
    });
}

fn sleep_long() -> std::pin::Pin<Box<tidegate_wait::timer::Sleep>> {
    Box::pin(sleep(Duration::MAX))
}

/// G3: one turn is one batch; what is left says More. G9, T5: a wheel that dies between two turns rouses what was due and
/// not yet fired as well as what was not.
#[test]
fn t5_a_wheel_dies_between_two_turns() {
    let (_, wheel) = wheel();
    let (woken, waker) = Woken::new();
    let mut naps = Vec::new();
    enter(&wheel, &NoHooks, || {
        let due = Instant::now() + Duration::from_millis(if cfg!(miri) { 2_000 } else { 20 });
        for _ in 0..50 {
            let mut nap = Box::pin(sleep_until(due));
            if poll(nap.as_mut(), &waker).is_pending() {
                naps.push(nap);
            }
        }
        let mut far = Box::pin(sleep(Duration::from_secs(10_000)));
        assert!(poll(far.as_mut(), &waker).is_pending());
        naps.push(far);
        while Instant::now() <= due {
            std::thread::yield_now();
        }
    });
    let armed = naps.len();
    if armed < 51 {
        // A machine so slow that they were due before they were armed shows nothing.
        return;
    }
    assert_eq!((wheel.turn(), woken.count(), wheel.armed()), (Next::More, 32, 19));
    drop(wheel);
    assert_eq!(woken.count(), 51);
    let (_, other) = self::wheel();
    let ready = enter(&other, &NoHooks, || {
        naps.iter_mut().filter_map(|nap| poll_once(nap.as_mut()).is_ready().then_some(())).count()
    });
    // Those that fired; the others may have ended on the way in to the other wheel, or at its first turn.
    assert!(ready >= 32);
    while other.turn() == Next::More {}
    assert_eq!(other.armed(), 1);
    let ended = naps.iter_mut().filter_map(|nap| poll_once(nap.as_mut()).is_ready().then_some(())).count();
    assert_eq!(ended, 50);
}
