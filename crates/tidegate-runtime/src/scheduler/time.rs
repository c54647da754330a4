//! The scheduler's clock and wheel: the system's, or a virtual one that jumps while nothing is runnable.

use std::sync::Arc;

use tidegate_wait::timer::{ManualClock, Turner, Wheel};

use super::pool::Post;
use super::{current, local_of, Mailbox};

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

/// The same, for a place in a pool.
struct PostNotice(&'static Post);

impl Turner for PostNotice {
    #[inline]
    fn earlier(&self) {
        let post = self.0;
        // P5: the watcher, and whoever looks around, may turn the wheel as well.
        post.lower_due(0);
        post.pool.be_watched(0);
        match current().filter(|local| local.home() == post.pinned()) {
            Some(local) => local.look_soon(),
            None => post.mailbox.notice_timer(),
        }
    }
}

impl Time {
    /// The system's clock with a wheel for a place in a pool. `None`: too many wheels are alive.
    pub(crate) fn of_post(post: &'static Post) -> Option<Time> {
        Wheel::register(Arc::new(PostNotice(post))).map(Time::System)
    }

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
