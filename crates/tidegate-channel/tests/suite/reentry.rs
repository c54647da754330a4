//! Payloads whose destructors panic, or use the very channel they were in, on every way out of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_channel::{bounded, Operation, Receiver, Sender};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;

use crate::support::{panics, quiet_panic, Look};

type Hook = Arc<Mutex<Vec<Box<dyn FnOnce() + Send>>>>;

/// Its drop runs the next hook, if there is one, and counts.
struct Loud {
    hook: Hook,
    drops: Arc<Mutex<usize>>,
}

impl Drop for Loud {
    fn drop(&mut self) {
        *self.drops.lock().unwrap() += 1;
        let hook = self.hook.lock().unwrap().pop();
        if let Some(hook) = hook {
            hook();
        }
    }
}

struct Stage {
    tx: Sender<Loud>,
    rx: Receiver<Loud>,
    hook: Hook,
    drops: Arc<Mutex<usize>>,
    clock: ManualClock,
    token: CancelToken,
}

impl Stage {
    fn new(cap: usize) -> Stage {
        let (tx, rx) = bounded(cap);
        let (hook, drops, clock) = (Hook::default(), Arc::default(), ManualClock::new());
        Stage { tx, rx, hook, drops, clock, token: CancelToken::new() }
    }

    fn value(&self) -> Loud {
        Loud { hook: self.hook.clone(), drops: self.drops.clone() }
    }

    fn fill(&self) {
        while !self.tx.is_full() {
            self.tx.try_send(self.value()).unwrap_or_else(|_| unreachable!());
        }
    }

    fn drops(&self) -> usize {
        *self.drops.lock().unwrap()
    }
}

/// A way out on which the channel, or an operation, drops values; each with `n` values in it, which is returned.
type Exit = fn(&Stage) -> Box<dyn FnOnce() + '_>;

fn parked<'s>(stage: &'s Stage, then: impl FnOnce(&'s Stage)) -> Box<dyn FnOnce() + 's> {
    stage.fill();
    stage.clock.enter(|| {
        let send = stage.tx.clone().into_send(stage.value());
        let mut send = Box::pin(send.timeout(Duration::from_millis(1)).cancel_on_owned(stage.token.clone()));
        send.parks();
        then(stage);
        Box::new(move || drop(send))
    })
}

/// The exits of a single value, by the drop of a send in each of its states, and of a delivery that is withdrawn for good.
const EXITS: [(&str, Exit); 7] = [
    ("unpolled", |stage| {
        let send = stage.tx.clone().into_send(stage.value());
        Box::new(move || drop(send))
    }),
    ("parked", |stage| parked(stage, |_| ())),
    ("timed out", |stage| parked(stage, |stage| stage.clock.advance(Duration::from_millis(1)))),
    ("cancelled", |stage| parked(stage, |stage| assert!(stage.token.cancel()))),
    ("closed", |stage| parked(stage, |stage| assert!(stage.rx.close()))),
    ("in a poll", |stage| {
        // The error with the value inside is dropped by whoever polls.
        stage.rx.close();
        let mut send = Box::pin(stage.tx.clone().into_send(stage.value()));
        Box::new(move || drop(send.ends()))
    }),
    ("refused", |stage| {
        stage.fill();
        Box::new(move || drop(stage.tx.try_send(stage.value())))
    }),
];

/// G1, G5, CASE 29: the destructor of an abandoned value panics: the panic goes to whoever dropped it, the value is
/// dropped once, the operation's half goes all the same, and the channel lives on.
#[test]
fn a_panicking_destructor_costs_nothing_else() {
    for (name, exit) in EXITS {
        let stage = Stage::new(1);
        let leave = exit(&stage);
        stage.hook.lock().unwrap().push(Box::new(quiet_panic));
        assert!(panics(leave), "{name}");
        assert_eq!(stage.drops(), 1, "{name}");
        assert_eq!(stage.tx.sender_count(), 1, "{name}: the operation's half is gone");
        assert_eq!(stage.clock.armed(), 0, "{name}");
        while stage.rx.try_recv().is_ok() {}
        if !stage.rx.is_closed() {
            assert!(stage.tx.try_send(stage.value()).is_ok(), "{name}");
            assert!(stage.rx.try_recv().is_ok());
        }
    }
}

/// G5, CASE 29: the destructor uses its own channel: sends, receives, parks and drops operations, closes.
#[test]
fn a_destructor_uses_its_own_channel() {
    for (name, exit) in EXITS {
        for close in [false, true] {
            let stage = Stage::new(2);
            let leave = exit(&stage);
            let (tx, rx, value) = (stage.tx.clone(), stage.rx.clone(), stage.value());
            stage.hook.lock().unwrap().push(Box::new(move || {
                drop(rx.try_recv());
                let mut receive = Box::pin(rx.recv());
                let _ = receive.look();
                let _ = tx.try_send(value);
                let _ = (tx.len(), format!("{tx:?}"));
                drop(receive);
                if close {
                    tx.close();
                }
            }));
            leave();
            assert_eq!((stage.tx.sender_count(), stage.tx.receiver_count()), (1, 1), "{name}");
            drop((stage.tx, stage.rx));
            assert!(*stage.drops.lock().unwrap() >= 1);
        }
    }
}

/// CASE 18, CASE 29: with the last receiver all buffered values are dropped, past destructors that panic (each contained)
/// and such that send to, close or ask the channel, from the ring and from the stash.
#[test]
fn the_last_receiver_drops_past_panics_and_reentry() {
    for depth in 0..5 {
        let stage = Stage::new(4);
        let mut delivered = Box::pin(stage.rx.recv());
        delivered.parks();
        assert!(stage.tx.try_send(stage.value()).is_ok());
        stage.fill();
        drop(delivered);
        assert_eq!(stage.tx.len(), 5);
        for at in 0..5 {
            let (tx, value) = (stage.tx.clone(), stage.value());
            stage.hook.lock().unwrap().push(Box::new(move || {
                assert!(tx.try_send(value).is_err(), "closed: and this value goes through another hook");
                assert!(!tx.close() && tx.is_closed());
                let _ = tx.len();
                if at == depth {
                    quiet_panic();
                }
            }));
        }
        drop(stage.rx);
        // Five values of the channel's, and five of the hooks'.
        assert_eq!((*stage.drops.lock().unwrap(), stage.tx.len()), (10, 0));
        assert!(stage.tx.try_send(Loud { hook: Hook::default(), drops: Arc::default() }).is_err());
    }
}

/// CASE 29: a panicking destructor during the unwinding of a task that holds a receiver does not abort the process: what
/// the channel drops is contained.
#[test]
fn the_last_receiver_goes_by_unwinding() {
    let stage = Stage::new(3);
    stage.fill();
    (0..3).for_each(|_| stage.hook.lock().unwrap().push(Box::new(quiet_panic)));
    let (tx, rx) = (stage.tx, stage.rx);
    assert!(panics(move || {
        let _last = rx;
        quiet_panic();
    }));
    assert_eq!((*stage.drops.lock().unwrap(), tx.is_closed()), (3, true));
}

/// G9: a value that owns the last halves of its own channel, both: dropping the last receiver outside is not the last
/// drop, and draining by hand frees everything.
#[test]
fn a_value_holds_both_halves() {
    struct Both(#[allow(dead_code)] Sender<Both>, #[allow(dead_code)] Receiver<Both>, #[allow(dead_code)] Loud);
    let stage = Stage::new(1);
    let (tx, rx) = bounded(1);
    assert!(tx.try_send(Both(tx.clone(), rx.clone(), stage.value())).is_ok());
    drop(tx);
    let value = rx.try_recv().unwrap_or_else(|_| unreachable!());
    drop(rx);
    drop(value);
    assert_eq!(stage.drops(), 1);
}
