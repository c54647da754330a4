//! Where a task belongs, for its whole life: one word.

use super::pool::Post;
use super::Mailbox;

/// A local runtime's mailbox, or a worker's place in a pool; never freed (X3, P4).
///
/// The two lowest bits are the [`Kind`], the others the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home(*const ());

/// Who may poll a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The one thread of a local runtime.
    Local = 0,
    /// One thread of a pool: the task need not be `Send`.
    Pinned = 1,
    /// Any thread of a pool.
    Shared = 2,
}

const KIND: usize = 3;
const _: () = assert!(align_of::<Mailbox>() > KIND && align_of::<Post>() > KIND);

impl Home {
    pub(crate) fn of_mailbox(mailbox: &'static Mailbox) -> Home {
        Home(core::ptr::from_ref(mailbox).cast())
    }

    /// `kind` is not Local.
    pub(crate) fn of_post(post: &'static Post, kind: Kind) -> Home {
        Home(core::ptr::from_ref(post).cast::<()>().map_addr(|addr| addr | kind as usize))
    }

    #[inline(always)]
    pub(crate) fn kind(self) -> Kind {
        match self.0.addr() & KIND {
            0 => Kind::Local,
            1 => Kind::Pinned,
            _ => Kind::Shared,
        }
    }

    /// The place in the pool; not of a local runtime.
    #[inline(always)]
    pub(crate) fn post(self) -> &'static Post {
        debug_assert!(self.kind() != Kind::Local);
        // SAFETY: made from such a reference in `of_post`.
        unsafe { &*self.0.map_addr(|addr| addr & !KIND).cast() }
    }

    /// The local runtime's mailbox; not of a pool.
    #[inline(always)]
    pub(crate) fn local_mailbox(self) -> &'static Mailbox {
        debug_assert!(self.kind() == Kind::Local);
        // SAFETY: made from such a reference in `of_mailbox`.
        unsafe { &*self.0.cast() }
    }
}
