//! Adaptive windows: a short look before an operation parks at a full or empty ring.
//!
//! If the other side is running on another processor right now, the index moves within tens of nanoseconds, and waiting
//! a little longer saves a park and a wake, which cost far more. So: look for about 50 ns whether it
//! moves; only if it does, wait for about 400 ns (the receiver half as long) and try again. If it does not move, the peer
//! is not running, and the cost was one look.

use tidegate_wait::shim::spin_loop;

#[cfg(all(feature = "std", not(loom), not(miri)))]
use tidegate_wait::parker::unit;

#[cfg(not(all(feature = "std", not(loom), not(miri))))]
fn unit() -> u32 {
    1
}

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
