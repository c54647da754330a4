//! Where something that is waited for was made, and what its maker called it: one word, by value, for reports.

use core::panic::Location;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A place in the source, perhaps with a name. It says nothing about what was made there, and keeps nothing alive.
///
/// The lowest bit says what the word is: clear, a `&'static Location`, or null; set, the address of a pair of name and place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Origin(*const ());

// SAFETY: both kinds of pointers are to memory that is never written nor freed.
unsafe impl Send for Origin {}
// SAFETY: as above.
unsafe impl Sync for Origin {}

struct Named {
    name: &'static str,
    place: &'static Location<'static>,
}

const NAMED: usize = 1;
const _: () = assert!(align_of::<Named>() > NAMED && align_of::<Location<'_>>() > NAMED);

impl Origin {
    /// Nothing is known.
    pub const UNKNOWN: Origin = Origin(core::ptr::null());

    /// A place without a name.
    #[inline(always)]
    pub const fn at(place: &'static Location<'static>) -> Origin {
        Origin(core::ptr::from_ref(place).cast())
    }

    /// The same place with a name. Name and place are kept for the life of the process, once for each pair.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn named(self, name: &'static str) -> Origin {
        use std::collections::BTreeMap;
        use std::sync::Mutex;
        /// Name, file, line, column.
        type Key = (&'static str, &'static str, u32, u32);
        static KNOWN: Mutex<BTreeMap<Key, &'static Named>> = Mutex::new(BTreeMap::new());
        let Some(place) = self.place() else { return self };
        let mut known = KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let key = (name, place.file(), place.line(), place.column());
        let named: *const Named = *known.entry(key).or_insert_with(|| Box::leak(Box::new(Named { name, place })));
        Origin(named.cast::<()>().map_addr(|addr| addr | NAMED))
    }

    fn as_named(self) -> Option<&'static Named> {
        // SAFETY: the bit says that the word is a `&'static Named`.
        (self.0.addr() & NAMED != 0).then(|| unsafe { &*self.0.map_addr(|addr| addr & !NAMED).cast() })
    }

    /// The name.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.as_named().map(|named| named.name)
    }

    /// The place.
    #[must_use]
    pub fn place(self) -> Option<&'static Location<'static>> {
        match self.as_named() {
            Some(named) => Some(named.place),
            // SAFETY: without the bit the word is null or a `&'static Location`.
            None => unsafe { self.0.cast::<Location<'static>>().as_ref() },
        }
    }
}

/// An [`Origin`] that may be named later. Not a shim's atomic: it decides nothing.
#[derive(Debug)]
pub struct OriginCell(AtomicPtr<()>);

impl OriginCell {
    /// Holds `origin`.
    pub const fn new(origin: Origin) -> OriginCell {
        OriginCell(AtomicPtr::new(origin.0.cast_mut()))
    }

    /// What it holds.
    pub fn get(&self) -> Origin {
        // Ordering: Acquire pairs with Release in `set`; makes a `Named` visible.
        Origin(self.0.load(Ordering::Acquire))
    }

    /// Replaces it.
    pub fn set(&self, origin: Origin) {
        // Ordering: Release pairs with Acquire in `get`.
        self.0.store(origin.0.cast_mut(), Ordering::Release);
    }
}

impl core::fmt::Debug for Origin {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let place = self.place().map(|place| (place.file(), place.line()));
        f.debug_struct("Origin").field("name", &self.name()).field("place", &place).finish()
    }
}
