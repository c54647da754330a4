//! Leaving the line from anywhere: first, middle, last, only one; on both sides; by each way to leave.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tidegate_channel::{Operation, Parked, RecvError, SendError};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::Limit;
use tidegate_wait::timer::ManualClock;

use crate::flavors::{drain, each_flavor, each_manner, until_armed, with_clock, Flavor};
use crate::support::{Look, WakeLog};

const MS: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Leave {
    Drop,
    Withdraw,
    TimeOut,
    Cancel,
}

const WAYS: [Leave; 4] = [Leave::Drop, Leave::Withdraw, Leave::TimeOut, Leave::Cancel];

/// Who of a line leaves it, how, and under which limits it waits.
struct Leaving {
    way: Leave,
    who: Vec<usize>,
    n: usize,
    token: CancelToken,
}

impl Leaving {
    /// Every subset of up to some places, by each way.
    fn all() -> impl Iterator<Item = Leaving> {
        (1..=if cfg!(miri) { 2 } else { 4 }).flat_map(|n| WAYS.map(|way| (n, way))).flat_map(|(n, way)| {
            (0..1 << n).map(move |bits: usize| {
                let who = (0..n).filter(|i| bits & (1 << i) != 0).collect();
                Leaving { way, who, n, token: CancelToken::new() }
            })
        })
    }

    /// Under which limits the one at this place waits.
    fn limits(&self, place: usize) -> (Duration, CancelToken) {
        match self.who.contains(&place) {
            true => (MS, self.token.clone()),
            false => (Duration::MAX, CancelToken::new()),
        }
    }

    fn staying(&self) -> Vec<usize> {
        (0..self.n).filter(|place| !self.who.contains(place)).collect()
    }

    /// Lets them leave. `withdraw` takes one out that is still to be polled.
    fn leave<F>(&self, clock: &ManualClock, line: &mut [Option<Pin<Box<F>>>], withdraw: impl Fn(usize, Pin<&mut F>)) {
        match self.way {
            Leave::Drop => self.who.iter().for_each(|&place| line[place] = None),
            Leave::Withdraw => {
                self.who.iter().for_each(|&place| withdraw(place, line[place].as_mut().unwrap().as_mut()));
            }
            Leave::TimeOut => clock.advance(MS),
            Leave::Cancel => assert!(self.token.cancel()),
        }
    }

    fn name(&self) -> String {
        format!("{:?} {:?} of {}", self.way, self.who, self.n)
    }
}

fn line<F: Future>(n: usize, operation: impl Fn(usize) -> F) -> Vec<Option<Pin<Box<F>>>> {
    let park = |place| {
        let mut operation = Box::pin(operation(place));
        operation.parks();
        Some(operation)
    };
    (0..n).map(park).collect()
}

/// G2, G3, G6, CASE 12, ELIO (a cancelled head is skipped; a cancelled middle is skipped and order kept): whoever leaves
/// the line of senders leaves no gap; the others keep their order, one that parks later stands behind them (also after a
/// time-out), and an emptied line admits at once.
#[test]
fn senders_leave_from_anywhere() {
    each_flavor(|flavor| {
        if flavor.sends_wait() {
            with_clock(|clock| Leaving::all().for_each(|leaving| senders_leave(flavor, clock, &leaving)));
        }
    });
}

fn senders_leave(flavor: &Flavor, clock: &ManualClock, leaving: &Leaving) {
    let (tx, rx) = flavor.make();
    flavor.fill(&tx, |n| 100 + n);
    let mut sends = line(leaving.n, |place| {
        let (limit, token) = leaving.limits(place);
        tx.send(place).timeout(limit).cancel_on_owned(token)
    });
    leaving.leave(clock, &mut sends, |place, send| assert_eq!(send.withdraw(), Some(place)));
    assert_eq!(tx.parked_senders(), leaving.staying().len());
    let mut behind = Box::pin(tx.send(50));
    behind.parks();
    let buffered = (0..flavor.capacity).map(|n| 100 + n);
    let expected: Vec<_> = buffered.chain(leaving.staying()).chain([50]).collect();
    assert_eq!(drain(&rx), (expected, RecvError::Empty), "{}", leaving.name());
    assert_eq!((behind.ends(), tx.parked_senders()), (Ok(()), 0));
    flavor.hold(&tx, &rx, 60);
    for (place, send) in sends.iter_mut().enumerate() {
        let Some(send) = send else { continue };
        match (leaving.way, leaving.who.contains(&place)) {
            (_, false) => assert_eq!(send.ends(), Ok(())),
            (Leave::TimeOut, _) => assert_eq!(send.ends(), Err(SendError::TimedOut(place))),
            (Leave::Cancel, _) => assert_eq!(send.ends(), Err(SendError::Cancelled(place))),
            _ => assert!(send.look().is_pending()),
        }
    }
    drop(sends);
    assert_eq!(clock.armed(), 0);
}

/// G2, G3, G6: the same for receivers.
#[test]
fn receivers_leave_from_anywhere() {
    each_flavor(|flavor| {
        with_clock(|clock| {
            let ways = Leaving::all().filter(|leaving| leaving.way != Leave::Withdraw);
            ways.for_each(|leaving| receivers_leave(flavor, clock, &leaving));
        });
    });
}

fn receivers_leave(flavor: &Flavor, clock: &ManualClock, leaving: &Leaving) {
    let (tx, rx) = flavor.make();
    let mut receives = line(leaving.n, |place| {
        let (limit, token) = leaving.limits(place);
        rx.recv().cancel_on_owned(token).timeout(limit)
    });
    leaving.leave(clock, &mut receives, |_, _| unreachable!());
    let staying = leaving.staying();
    let mut behind = Box::pin(rx.recv());
    behind.parks();
    (0..=staying.len()).for_each(|value| tx.try_send(value).unwrap());
    assert_eq!((tx.len(), rx.parked_receivers()), (0, 0), "{}", leaving.name());
    assert_eq!(behind.ends(), Ok(staying.len()));
    for (place, receive) in receives.iter_mut().enumerate() {
        let Some(receive) = receive else { continue };
        match (leaving.way, staying.iter().position(|&stay| stay == place)) {
            (_, Some(value)) => assert_eq!(receive.ends(), Ok(value)),
            (Leave::TimeOut, _) => assert_eq!(receive.ends(), Err(RecvError::TimedOut)),
            _ => assert_eq!(receive.ends(), Err(RecvError::Cancelled)),
        }
    }
    flavor.hold(&tx, &rx, 70);
    assert_eq!(rx.try_recv(), Ok(70));
    drop(receives);
    assert_eq!(clock.armed(), 0);
}

/// G2, G3, G6: the same for waits for the close.
#[test]
fn waits_for_the_close_leave_from_anywhere() {
    each_flavor(|flavor| {
        with_clock(|clock| {
            let ways = Leaving::all().filter(|leaving| leaving.way != Leave::Withdraw);
            ways.for_each(|leaving| waits_leave(flavor, clock, &leaving));
        });
    });
}

fn waits_leave(flavor: &Flavor, clock: &ManualClock, leaving: &Leaving) {
    let (tx, rx) = flavor.make::<u8>();
    let log = WakeLog::default();
    let mut waits = line(leaving.n, |place| {
        let (limit, token) = leaving.limits(place);
        let wait = if place % 2 == 0 { tx.closed() } else { rx.closed() };
        wait.timeout(limit).cancel_on_owned(token)
    });
    leaving.leave(clock, &mut waits, |_, _| unreachable!());
    for &place in &leaving.staying() {
        waits[place].as_mut().unwrap().parks_with(&log.waker(place));
    }
    let mut behind = Box::pin(rx.closed());
    behind.parks_with(&log.waker(50));
    assert!(tx.close());
    let expected: Vec<_> = leaving.staying().into_iter().chain([50]).collect();
    assert_eq!(log.woken(), expected, "{}", leaving.name());
    behind.ends();
    for (place, wait) in waits.iter_mut().enumerate() {
        let Some(wait) = wait else { continue };
        match (leaving.way, leaving.who.contains(&place)) {
            (_, false) => assert_eq!(wait.ends(), Ok(())),
            (Leave::TimeOut, _) => assert_eq!(wait.ends(), Err(Limit::TimedOut)),
            _ => assert_eq!(wait.ends(), Err(Limit::Cancelled)),
        }
    }
    assert_eq!(clock.armed(), 0);
}

/// G7: whoever leaves, those that stay are ended by a close, in order, in either mode; on both sides.
#[test]
fn who_stays_is_ended_by_the_close() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        with_clock(|clock| {
            for mode in [Parked::GiveBack, Parked::Admit] {
                Leaving::all().for_each(|leaving| close_after(flavor, clock, &leaving, mode));
            }
        });
    });
}

fn close_after(flavor: &Flavor, clock: &ManualClock, leaving: &Leaving, mode: Parked) {
    let (tx, rx) = flavor.make();
    flavor.fill(&tx, |n| 100 + n);
    let (empty_tx, empty) = flavor.make::<u8>();
    let log = WakeLog::default();
    let limits = |place| leaving.limits(place);
    let mut sends = line(leaving.n, |place| tx.send(place).timeout(limits(place).0).cancel_on_owned(limits(place).1));
    let mut receives = line(leaving.n, |place| empty.recv().timeout(limits(place).0).cancel_on_owned(limits(place).1));
    match leaving.way {
        // A receive has nothing to withdraw: it is dropped.
        Leave::Drop | Leave::Withdraw => leaving.who.iter().for_each(|&place| receives[place] = None),
        _ => {}
    }
    leaving.leave(clock, &mut sends, |place, send| assert_eq!(send.withdraw(), Some(place)));
    for &place in &leaving.staying() {
        sends[place].as_mut().unwrap().parks_with(&log.waker(place));
        receives[place].as_mut().unwrap().parks_with(&log.waker(100 + place));
    }
    assert!(rx.close_with(mode) && empty_tx.close_with(mode));
    let staying = leaving.staying();
    let expected: Vec<_> = staying.iter().copied().chain(staying.iter().map(|place| 100 + place)).collect();
    assert_eq!(log.woken(), expected, "{} {mode:?}", leaving.name());
    let admitted = mode == Parked::Admit;
    for &place in &staying {
        let expected = if admitted { Ok(()) } else { Err(SendError::Closed(place)) };
        assert_eq!(sends[place].as_mut().unwrap().ends(), expected);
        assert_eq!(receives[place].as_mut().unwrap().ends(), Err(RecvError::Closed));
    }
    let left = drain(&rx).0.split_off(flavor.capacity);
    assert_eq!(left, if admitted { staying } else { Vec::new() });
    drop((sends, receives));
    assert_eq!(clock.armed(), 0);
}

/// G2, G6: a time-out beside blocked neighbours, by hand and on threads: head, middle and tail leave, the others are served
/// in the order in which they parked, and one that parks afterwards stands behind them.
#[test]
fn a_time_out_leaves_no_gap() {
    each_manner(|flavor, manner| {
        if !flavor.sends_wait() {
            return;
        }
        with_clock(|clock| {
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, |n| 100 + n);
            let mut sends: Vec<_> = (0..5)
                .map(|n| {
                    let limit = if n % 2 == 0 { MS } else { 10 * MS };
                    let send = manner.park_send(&tx, tx.clone().into_send(n).timeout(limit));
                    until_armed(clock, n + 1);
                    send
                })
                .collect();
            clock.advance(MS);
            assert_eq!(tx.parked_senders(), 2);
            sends.push(manner.park_send(&tx, tx.clone().into_send(5).timeout(10 * MS)));
            until_armed(clock, 3);
            let buffered = (0..flavor.capacity).map(|n| 100 + n);
            assert_eq!(drain(&rx), (buffered.chain([1, 3, 5]).collect(), RecvError::Empty));
            clock.advance(10 * MS);
            for (n, send) in sends.into_iter().enumerate() {
                let expected = if [0, 2, 4].contains(&n) { Err(SendError::TimedOut(n)) } else { Ok(()) };
                assert_eq!(send.ends(), expected, "woken before its time-out");
            }
            assert_eq!(clock.armed(), 0);
        });
    });
}

/// The same for receives.
#[test]
fn a_time_out_takes_no_value() {
    each_manner(|flavor, manner| {
        with_clock(|clock| {
            let (tx, rx) = flavor.make();
            let receives: Vec<_> = (0..5)
                .map(|n| {
                    let limit = if n % 2 == 0 { MS } else { 10 * MS };
                    let receive = manner.park_recv(&rx, rx.clone().into_recv().timeout(limit));
                    until_armed(clock, n + 1);
                    receive
                })
                .collect();
            clock.advance(MS);
            assert_eq!(tx.parked_receivers(), 2);
            tx.try_send(1).unwrap();
            tx.try_send(3).unwrap();
            clock.advance(10 * MS);
            for (n, receive) in receives.into_iter().enumerate() {
                let expected = if n % 2 == 0 { Err(RecvError::TimedOut) } else { Ok(n) };
                assert_eq!(receive.ends(), expected, "woken before its time-out");
            }
            assert_eq!((clock.armed(), tx.len()), (0, 0));
        });
    });
}

/// G2: a line that was emptied by each way to leave is used again, many times over, on both sides in turn.
#[test]
fn an_emptied_line_is_used_again() {
    each_flavor(|flavor| {
        with_clock(|clock| {
            let (tx, rx) = flavor.make();
            for way in WAYS.into_iter().cycle().take(if cfg!(miri) { 8 } else { 40 }) {
                let leaving = Leaving { way, who: vec![0, 1, 2], n: 3, token: CancelToken::new() };
                let mut receives = line(3, |place| {
                    let (limit, token) = leaving.limits(place);
                    rx.recv().cancel_on_owned(token).timeout(limit)
                });
                if way == Leave::Withdraw {
                    (0..3).for_each(|n| tx.try_send(n).unwrap());
                    (0..3).for_each(|n| assert_eq!(receives[n].as_mut().unwrap().ends(), Ok(n)));
                } else {
                    leaving.leave(clock, &mut receives, |_, _| unreachable!());
                }
                assert_eq!(tx.parked_receivers(), 0);
                drop(receives);
                if !flavor.sends_wait() {
                    continue;
                }
                flavor.fill(&tx, |n| n);
                let leaving = Leaving { token: CancelToken::new(), ..leaving };
                let mut sends = line(3, |place| {
                    let (limit, token) = leaving.limits(place);
                    tx.send(place).timeout(limit).cancel_on_owned(token)
                });
                leaving.leave(clock, &mut sends, |place, send| assert_eq!(send.withdraw(), Some(place)));
                drop(sends);
                assert_eq!(drain(&rx).0, (0..flavor.capacity).collect::<Vec<_>>());
                assert_eq!((tx.parked_senders(), clock.armed()), (0, 0));
            }
        });
    });
}

/// G3, CASE 32: leaving costs the same whatever else is parked: oldest first, newest first, in random order. (A walk along
/// the line would cost 100 µs in the long one; a busy machine and its caches cost less than the limit.)
#[test]
#[cfg_attr(miri, ignore = "a measurement")]
fn leaving_costs_the_same_in_a_long_line() {
    let (short, long) = (1_000, 30_000);
    let per_leave = |flavor: &Flavor, n: usize, order: usize| {
        let (tx, _rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let mut sends = line(n, |place| tx.send(place));
        let mut places: Vec<_> = (0..n).collect();
        match order {
            0 => {}
            1 => places.reverse(),
            _ => crate::support::Rng(32).shuffle(&mut places),
        }
        let start = std::time::Instant::now();
        // Not dropped: that would measure the allocator.
        places.iter().for_each(|&place| assert!(sends[place].as_mut().unwrap().as_mut().withdraw().is_some()));
        start.elapsed().as_nanos() as f64 / n as f64
    };
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        for order in 0..3 {
            // The best of a few: an interruption only makes one longer.
            let best = |n| (0..3).map(|_| per_leave(flavor, n, order)).fold(f64::MAX, f64::min);
            let (few, many) = (best(short), best(long));
            assert!(many < 12.0 * few + 10_000.0, "{few} ns among {short}, {many} ns among {long}");
        }
    });
}
