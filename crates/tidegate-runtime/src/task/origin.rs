//! Where something was made, and what its maker called it: one word.

use core::panic::Location;

/// A place in the source, with a name if one was given.
///
/// The lowest bit says which: clear, the word is a `&'static Location`; set, a box of [`Named`].
#[derive(Debug)]
pub(crate) struct Origin(*const ());

struct Named {
    name: String,
    place: &'static Location<'static>,
}

const NAMED: usize = 1;
const _: () = assert!(align_of::<Named>() > NAMED && align_of::<Location<'_>>() > NAMED);

impl Origin {
    pub(crate) fn new(place: &'static Location<'static>) -> Origin {
        Origin(core::ptr::from_ref(place).cast())
    }

    pub(crate) fn named(name: String, place: &'static Location<'static>) -> Origin {
        let named = Box::into_raw(Box::new(Named { name, place }));
        Origin(named.cast_const().cast::<()>().map_addr(|addr| addr | NAMED))
    }

    fn get(&self) -> Result<&Named, &'static Location<'static>> {
        // SAFETY: the bit says what the word is; the box lives as long as `self`.
        unsafe {
            match self.0.addr() & NAMED {
                0 => Err(&*self.0.cast()),
                _ => Ok(&*self.0.map_addr(|addr| addr & !NAMED).cast::<Named>()),
            }
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.get().ok().map(|named| named.name.as_str())
    }

    pub(crate) fn place(&self) -> &'static Location<'static> {
        self.get().map_or_else(|place| place, |named| named.place)
    }
}

impl Drop for Origin {
    #[inline]
    fn drop(&mut self) {
        if self.0.addr() & NAMED != 0 {
            // SAFETY: made by `Box::into_raw` in `named`.
            drop(unsafe { Box::from_raw(self.0.map_addr(|addr| addr & !NAMED).cast::<Named>().cast_mut()) });
        }
    }
}
