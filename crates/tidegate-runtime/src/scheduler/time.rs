//! The scheduler's clock and wheel: the system's, or a virtual one that jumps while nothing is runnable.

use std::sync::Arc;

use tidegate_wait::timer::{ManualClock, Turner, Wheel};

use super::{local_of, Mailbox};

/// See the module.
#[derive(Debug)]
pub(crate) enum Time {
    System(Wheel),
    Virtual(ManualClock),
}

/// Whom a wheel tells that a timer was armed which is due before the next look.
struct Notice(&'static Mailbox);

impl Turner for Notice {
    #[inline]
    fn earlier(&self) {
        match local_of(self.0) {
            Some(local) => local.look_soon(),
            None => self.0.notice_timer(),
        }
    }
}

impl Time {
    /// The system's clock with a wheel for the runtime of `mailbox`. `None`: too many wheels are alive.
    pub(crate) fn system(mailbox: &'static Mailbox) -> Option<Time> {
        Wheel::register(Arc::new(Notice(mailbox))).map(Time::System)
    }

    #[inline(always)]
    pub(crate) fn wheel(&self) -> &Wheel {
        match self {
            Time::System(wheel) => wheel,
            Time::Virtual(clock) => clock.wheel(),
        }
    }
}
