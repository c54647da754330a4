//! Adaptive windows: a short look before an operation parks at a full or empty ring.
//!
//! If the other side is running on another processor right now, the index moves within tens of nanoseconds, and waiting
//! a little longer saves a park and a wake, which cost far more. So: look for about 50 ns whether it
//! moves; only if it does, wait for about 400 ns (the receiver half as long) and try again. If it does not move, the peer
//! is not running, and the cost was one look.
//!
//! Where both sides share a processor no look ever pays, so the channel keeps score: after [`VAIN`] windows in vain
//! only one in 17 is opened, until one pays. (An odd number: both sides, and tasks in turn, come to it.)

use tidegate_wait::shim::{spin_loop, unit, AtomicU32, Ordering};

/// Is there another processor for the other side to run on?
pub(super) fn pays() -> bool {
    #[cfg(all(feature = "std", not(loom), not(miri)))]
    let pays = !tidegate_wait::parker::one_processor();
    #[cfg(not(all(feature = "std", not(loom), not(miri))))]
    let pays = false;
    if pays {
        unit();
    }
    pays
}

/// How many windows in vain it takes to open fewer.
const VAIN: u32 = 16;

/// Whether windows have paid lately, on either side. A guess: two threads may count as one.
#[derive(Debug)]
pub(super) struct Luck(AtomicU32);

impl Luck {
    pub(super) fn new() -> Luck {
        Luck(AtomicU32::new(0))
    }

    /// Opens a window, unless too many were in vain. `look`: did it pay?
    #[inline(always)]
    pub(super) fn try_window(&self, look: impl FnOnce() -> bool) -> bool {
        // Ordering: Relaxed, as all here: nothing is read by what it says.
        let in_vain = self.0.load(Ordering::Relaxed);
        let paid = (in_vain < VAIN || in_vain % (VAIN + 1) == 0) && look();
        if !paid {
            self.0.store(in_vain.wrapping_add(1), Ordering::Relaxed);
        } else if in_vain != 0 {
            self.0.store(0, Ordering::Relaxed);
        }
        paid
    }
}

/// The looks that an operation may still take.
pub(super) struct Window {
    looks: u8,
    /// How long to wait once the index moves, in units of 50 ns.
    patience: u32,
}

impl Window {
    pub(super) fn sender() -> Window {
        Window { looks: 2, patience: 8 }
    }

    pub(super) fn receiver() -> Window {
        Window { looks: 2, patience: 4 }
    }

    /// Looks whether `moved` within the window. True: try again before parking.
    #[inline]
    pub(super) fn look(&mut self, moved: impl Fn() -> bool) -> bool {
        if self.looks == 0 {
            return false;
        }
        self.looks -= 1;
        let unit = unit();
        (0..unit).for_each(|_| spin_loop());
        if moved() {
            (0..unit * self.patience).for_each(|_| spin_loop());
        } else {
            self.looks = 0;
        }
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn windows_in_vain_become_rare_until_one_pays() {
        let luck = Luck::new();
        let opened = |pays: bool| {
            let mut opened = false;
            luck.try_window(|| {
                opened = true;
                pays
            });
            opened
        };
        assert!((0..VAIN).all(|_| opened(false)), "each, at first");
        let rare: Vec<bool> = (0..2 * (VAIN + 1)).map(|_| opened(false)).collect();
        assert_eq!(rare.iter().filter(|opened| **opened).count(), 2);
        while !opened(true) {}
        assert!((0..VAIN).all(|_| opened(false)), "each again");
    }
}
