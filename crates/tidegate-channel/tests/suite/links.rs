//! Leaving the line from anywhere: first, middle, last, only one; on both sides; by each way to leave.

use std::time::Duration;

use tidegate_channel::{bounded, Operation, RecvError, SendError};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;

use crate::support::Look;

#[derive(Clone, Copy, Debug)]
enum Leave {
    Drop,
    Withdraw,
    TimeOut,
    Cancel,
}

const WAYS: [Leave; 4] = [Leave::Drop, Leave::Withdraw, Leave::TimeOut, Leave::Cancel];

/// Every subset of up to `n` places.
fn subsets(n: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..1 << n).map(move |bits: usize| (0..n).filter(|i| bits & (1 << i) != 0).collect())
}

/// G2, G3, G6: whoever leaves the line of senders leaves no gap; the others keep their order, one that parks later
/// stands behind them (also after a time-out), and an emptied line admits at once.
#[test]
fn senders_leave_from_anywhere() {
    let clock = ManualClock::new();
    clock.enter(|| {
        for (n, way) in (1..=if cfg!(miri) { 2 } else { 4 }).flat_map(|n| WAYS.map(|way| (n, way))) {
            for leaving in subsets(n) {
                let (tx, rx) = bounded(1);
                tx.try_send(100).unwrap();
                let token = CancelToken::new();
                let mut sends: Vec<_> = (0..n)
                    .map(|i| {
                        let (token, limit) = match leaving.contains(&i) {
                            true => (token.clone(), Duration::from_millis(1)),
                            false => (CancelToken::new(), Duration::MAX),
                        };
                        let mut send = Box::pin(tx.send(i).timeout(limit).cancel_on_owned(token));
                        send.parks();
                        Some(send)
                    })
                    .collect();
                match way {
                    Leave::Drop => leaving.iter().for_each(|&i| sends[i] = None),
                    Leave::Withdraw => leaving
                        .iter()
                        .for_each(|&i| assert_eq!(sends[i].as_mut().unwrap().as_mut().withdraw(), Some(i))),
                    Leave::TimeOut => clock.advance(Duration::from_millis(1)),
                    Leave::Cancel => assert!(token.cancel()),
                }
                let staying: Vec<_> = (0..n).filter(|i| !leaving.contains(i)).collect();
                let mut behind = Box::pin(tx.send(50));
                behind.parks();
                let expected = [100].into_iter().chain(staying.iter().copied()).chain([50]);
                expected.for_each(|value| assert_eq!(rx.try_recv(), Ok(value), "{way:?} {leaving:?} of {n}"));
                assert_eq!(rx.try_recv(), Err(RecvError::Empty));
                assert_eq!((behind.ends(), tx.try_send(60)), (Ok(()), Ok(())));
                for (i, send) in sends.iter_mut().enumerate() {
                    let Some(send) = send else { continue };
                    match (way, leaving.contains(&i)) {
                        (_, false) => assert_eq!(send.ends(), Ok(())),
                        (Leave::TimeOut, _) => assert_eq!(send.ends(), Err(SendError::TimedOut(i))),
                        (Leave::Cancel, _) => assert_eq!(send.ends(), Err(SendError::Cancelled(i))),
                        _ => assert!(send.look().is_pending()),
                    }
                }
                drop(sends);
                assert_eq!(clock.armed(), 0);
            }
        }
    });
}

/// The same for receivers.
#[test]
fn receivers_leave_from_anywhere() {
    let clock = ManualClock::new();
    clock.enter(|| {
        for (n, way) in (1..=if cfg!(miri) { 2 } else { 4 })
            .flat_map(|n| [Leave::Drop, Leave::TimeOut, Leave::Cancel].map(|way| (n, way)))
        {
            for leaving in subsets(n) {
                let (tx, rx) = bounded(8);
                let token = CancelToken::new();
                let mut receives: Vec<_> = (0..n)
                    .map(|i| {
                        let (token, limit) = match leaving.contains(&i) {
                            true => (token.clone(), Duration::from_millis(1)),
                            false => (CancelToken::new(), Duration::MAX),
                        };
                        let mut receive = Box::pin(rx.recv().cancel_on_owned(token).timeout(limit));
                        receive.parks();
                        Some(receive)
                    })
                    .collect();
                match way {
                    Leave::Drop | Leave::Withdraw => leaving.iter().for_each(|&i| receives[i] = None),
                    Leave::TimeOut => clock.advance(Duration::from_millis(1)),
                    Leave::Cancel => assert!(token.cancel()),
                }
                let staying: Vec<_> = (0..n).filter(|i| !leaving.contains(i)).collect();
                let mut behind = Box::pin(rx.recv());
                behind.parks();
                (0..=staying.len()).for_each(|value| tx.try_send(value).unwrap());
                assert_eq!(tx.len(), 0, "{way:?} {leaving:?} of {n}");
                tx.try_send(70).unwrap();
                assert_eq!((behind.ends(), tx.len()), (Ok(staying.len()), 1));
                for (i, receive) in receives.iter_mut().enumerate() {
                    let Some(receive) = receive else { continue };
                    match (way, staying.iter().position(|&stay| stay == i)) {
                        (_, Some(value)) => assert_eq!(receive.ends(), Ok(value)),
                        (Leave::TimeOut, _) => assert_eq!(receive.ends(), Err(RecvError::TimedOut)),
                        _ => assert_eq!(receive.ends(), Err(RecvError::Cancelled)),
                    }
                }
                assert_eq!(rx.try_recv(), Ok(70));
                drop(receives);
                assert_eq!(clock.armed(), 0);
            }
        }
    });
}
