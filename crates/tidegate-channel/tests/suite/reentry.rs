//! Payloads whose destructors panic, or use the very channel they were in, on every way out of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_channel::{Operation, Parked, Receiver, Sender};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;

use crate::flavors::{each_flavor, Flavor};
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

struct Stage<'f> {
    flavor: &'f Flavor,
    tx: Sender<Loud>,
    rx: Receiver<Loud>,
    hook: Hook,
    drops: Arc<Mutex<usize>>,
    clock: ManualClock,
    token: CancelToken,
}

impl Stage<'_> {
    fn new(flavor: &Flavor) -> Stage<'_> {
        let (tx, rx) = flavor.make();
        let (hook, drops, clock) = (Hook::default(), Arc::default(), ManualClock::new());
        Stage { flavor, tx, rx, hook, drops, clock, token: CancelToken::new() }
    }

    /// What the next drop of a value does.
    fn on_drop(&self, hook: impl FnOnce() + Send + 'static) {
        self.hook.lock().unwrap().push(Box::new(hook));
    }

    fn value(&self) -> Loud {
        Loud { hook: self.hook.clone(), drops: self.drops.clone() }
    }

    fn fill(&self) {
        self.flavor.fill(&self.tx, |_| self.value());
    }

    fn drops(&self) -> usize {
        *self.drops.lock().unwrap()
    }
}

/// A way out on which the channel, or an operation, drops values; each with `n` values in it, which is returned.
type Exit = for<'s> fn(&'s Stage<'_>) -> Box<dyn FnOnce() + 's>;

fn parked<'s>(stage: &'s Stage<'_>, then: impl FnOnce(&'s Stage<'_>)) -> Box<dyn FnOnce() + 's> {
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
const EXITS: [(&str, Exit); 9] = [
    ("unpolled", |stage| {
        let send = stage.tx.clone().into_send(stage.value());
        Box::new(move || drop(send))
    }),
    ("parked", |stage| parked(stage, |_| ())),
    ("timed out", |stage| parked(stage, |stage| stage.clock.advance(Duration::from_millis(1)))),
    ("cancelled", |stage| parked(stage, |stage| assert!(stage.token.cancel()))),
    ("closed", |stage| parked(stage, |stage| assert!(stage.rx.close()))),
    ("built", |stage| {
        stage.fill();
        let mut send = Box::pin(stage.tx.send_with(|| stage.value()));
        send.parks();
        Box::new(move || drop(send))
    }),
    ("not admitted", |stage| {
        // Parked when an admission finds no receiver left.
        parked(stage, |stage| {
            stage.on_drop(|| ());
            assert!(stage.rx.close_with(Parked::GiveBack));
            drop(stage.value());
        })
    }),
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
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        for (name, exit) in EXITS {
            let stage = Stage::new(flavor);
            let leave = exit(&stage);
            let before = stage.drops();
            stage.on_drop(quiet_panic);
            assert!(panics(leave), "{name}");
            assert_eq!(stage.drops(), before + 1, "{name}");
            assert_eq!(stage.tx.sender_count(), 1, "{name}: the operation's half is gone");
            assert_eq!(stage.clock.armed(), 0, "{name}");
            while stage.rx.try_recv().is_ok() {}
            if !stage.rx.is_closed() {
                flavor.hold(&stage.tx, &stage.rx, stage.value());
                assert!(stage.rx.try_recv().is_ok());
            }
        }
    });
}

/// G5, CASE 29: the destructor uses its own channel: sends, receives, parks and drops operations, closes in either mode.
#[test]
fn a_destructor_uses_its_own_channel() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        for (name, exit) in EXITS {
            for close in [None, Some(Parked::GiveBack), Some(Parked::Admit)] {
                let stage = Stage::new(flavor);
                let leave = exit(&stage);
                let (tx, rx, value) = (stage.tx.clone(), stage.rx.clone(), stage.value());
                stage.on_drop(move || uses_its_channel(tx, rx, value, close));
                leave();
                assert_eq!((stage.tx.sender_count(), stage.tx.receiver_count()), (1, 1), "{name}");
                let Stage { tx, rx, drops, .. } = stage;
                drop((tx, rx));
                assert!(*drops.lock().unwrap() >= 1);
            }
        }
    });
}

fn uses_its_channel(tx: Sender<Loud>, rx: Receiver<Loud>, value: Loud, close: Option<Parked>) {
    drop(rx.try_recv());
    let (mut receive, mut closed) = (Box::pin(rx.recv()), Box::pin(rx.closed()));
    let _ = (receive.look(), closed.look());
    let _ = tx.try_send(value);
    let _ = (tx.len(), format!("{tx:?}"), tx.downgrade().upgrade());
    drop((receive, closed));
    if let Some(mode) = close {
        tx.close_with(mode);
    }
}

/// CASES 18, 29: with the last receiver all buffered values are dropped, past destructors that panic (each contained) and
/// such that send to, close or ask the channel: from the stash, the buffer, and what a close let in.
#[test]
fn the_last_receiver_drops_past_panics_and_reentry() {
    each_flavor(|flavor| {
        if flavor.capacity > 2 {
            return flavor.skip("the number of values is squared, and nothing that two slots do not show");
        }
        let values = flavor.capacity + 3;
        for (depth, admit) in (0..values).flat_map(|depth| [(depth, false), (depth, true)]) {
            let stage = Stage::new(flavor);
            let mut delivered = Box::pin(stage.rx.recv());
            delivered.parks();
            assert!(stage.tx.try_send(stage.value()).is_ok());
            stage.fill();
            let mut sends = [(); 2].map(|()| Box::pin(stage.tx.clone().into_send(stage.value())));
            sends.iter_mut().for_each(Look::parks);
            if admit {
                assert!(stage.tx.close_with(Parked::Admit));
                assert!(sends.iter_mut().all(|send| send.ends().is_ok()));
            }
            drop(delivered);
            let inside = values - if admit { 0 } else { 2 };
            assert_eq!(stage.tx.len(), inside);
            for at in 0..inside {
                let (tx, value) = (stage.tx.clone(), stage.value());
                stage.on_drop(move || {
                    assert!(tx.try_send(value).is_err(), "closed: and this value goes through another hook");
                    assert!(!tx.close_with(Parked::Admit) && tx.is_closed());
                    let _ = tx.len();
                    if at == depth {
                        quiet_panic();
                    }
                });
            }
            drop(stage.rx);
            // As many values of the channel's, and of the hooks'.
            assert_eq!((*stage.drops.lock().unwrap(), stage.tx.len()), (2 * inside, 0));
            assert!(stage.tx.try_send(Loud { hook: Hook::default(), drops: Arc::default() }).is_err());
        }
    });
}

/// CASE 29: a panicking destructor during the unwinding of a task that holds a receiver does not abort the process: what
/// the channel drops is contained.
#[test]
fn the_last_receiver_goes_by_unwinding() {
    each_flavor(|flavor| {
        let Stage { tx, rx, hook, drops, .. } = Stage::new(flavor);
        let value = || Loud { hook: hook.clone(), drops: drops.clone() };
        flavor.hold(&tx, &rx, value());
        (1..flavor.capacity).for_each(|_| assert!(tx.try_send(value()).is_ok()));
        let values = tx.len();
        (0..values).for_each(|_| hook.lock().unwrap().push(Box::new(quiet_panic)));
        assert!(panics(move || {
            let _last = rx;
            quiet_panic();
        }));
        assert_eq!((*drops.lock().unwrap(), tx.is_closed()), (values, true));
    });
}

/// G9: a value that owns the last halves of its own channel, both: dropping the last receiver outside is not the last
/// drop, and draining by hand frees everything.
#[test]
fn a_value_holds_both_halves() {
    struct Both(#[allow(dead_code)] Sender<Both>, #[allow(dead_code)] Receiver<Both>, #[allow(dead_code)] Loud);
    each_flavor(|flavor| {
        let stage = Stage::new(flavor);
        let (tx, rx) = flavor.make();
        flavor.hold(&tx, &rx, Both(tx.clone(), rx.clone(), stage.value()));
        drop(tx);
        let value = rx.try_recv().unwrap_or_else(|_| unreachable!());
        drop(rx);
        drop(value);
        assert_eq!(stage.drops(), 1);
    });
}
