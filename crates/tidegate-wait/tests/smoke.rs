use std::time::{Duration, Instant};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::{sleep, ManualClock};
use tidegate_wait::wait_queue::{ParkError, WaitQueue};
use tidegate_wait::{Limit, Operation};

#[test]
fn sleeps() {
    let start = Instant::now();
    sleep(Duration::from_millis(20)).wait();
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(20), "{took:?}");
    assert_eq!(sleep(Duration::from_secs(100)).timeout(Duration::from_millis(5)).wait(), Err(Limit::TimedOut));
    assert_eq!(sleep(Duration::from_millis(1)).timeout(Duration::from_secs(5)).wait(), Ok(()));
    let t = CancelToken::new();
    let c = t.clone();
    let h = std::thread::spawn(move || {
        sleep(Duration::from_millis(20)).wait();
        c.cancel()
    });
    assert_eq!(
        sleep(Duration::from_secs(100)).cancel_on(&t).timeout(Duration::from_secs(50)).wait(),
        Err(Limit::Cancelled)
    );
    assert!(h.join().unwrap());
}

#[test]
fn queue() {
    let q = WaitQueue::<u64>::new();
    std::thread::scope(|s| {
        s.spawn(|| assert_eq!(q.park().timeout(Duration::from_secs(10)).wait(), Ok(Some(5))));
        while q.hand_over(5).is_err() {
            std::thread::yield_now();
        }
    });
    let clock = ManualClock::new();
    clock.enter(|| {
        let mut p = Box::pin(q.park().timeout(Duration::from_millis(10)));
        assert!(p.as_mut().enter());
        assert_eq!(clock.armed(), 1);
        std::mem::forget(p);
        clock.advance(Duration::from_millis(9));
        assert_eq!(clock.armed(), 1);
        clock.advance(Duration::from_millis(1));
        assert_eq!(clock.armed(), 0);
        let mut p = Box::pin(q.park().timeout(Duration::from_millis(10)));
        assert!(p.as_mut().enter());
        clock.advance(Duration::from_millis(10));
        assert_eq!(tidegate_wait::op::poll_once(p.as_mut()), std::task::Poll::Ready(Err(ParkError::TimedOut)));
    });
}
