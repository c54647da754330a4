//! The cells of all wheels, by number: an armed entry names its wheel in nine bits.
//!
//! Numbers and cells are reused, lowest first; a cell's memory stays (T5).

use std::sync::atomic::AtomicPtr;
use std::sync::Mutex;

use super::entry::MAX_WHEELS;
use super::wheel::WheelCore;
use super::WheelCell;
use crate::owner::OwnerHeader;
use crate::shim::{Lock, Ordering};

/// Entry `id - 1` is the cell of wheel `id`. Written under `FREE`, read without it.
static CELLS: [AtomicPtr<WheelCell>; MAX_WHEELS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_WHEELS];

/// Bit `id - 1` of the map: the number is taken.
static TAKEN: Mutex<[u64; MAX_WHEELS.div_ceil(64)]> = Mutex::new([0; MAX_WHEELS.div_ceil(64)]);

fn taken() -> std::sync::MutexGuard<'static, [u64; MAX_WHEELS.div_ceil(64)]> {
    TAKEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A cell for a new wheel whose clock shows `now`.
pub(super) fn take(now: u64) -> Option<&'static WheelCell> {
    let mut taken = taken();
    let index = (0..MAX_WHEELS).find(|index| taken[index / 64] >> (index % 64) & 1 == 0)?;
    // Ordering: Relaxed; the mutex orders the cells' making.
    let known = CELLS[index].load(Ordering::Relaxed);
    let cell = if known.is_null() {
        let cell = Box::into_raw(Box::new(WheelCell {
            header: OwnerHeader::of::<WheelCell>(),
            id: index as u16 + 1,
            core: Lock::new(WheelCore::new(now)),
        }));
        // Ordering: Release pairs with Acquire in `cell`.
        CELLS[index].store(cell, Ordering::Release);
        cell
    } else {
        known
    };
    // SAFETY: a cell is never freed (under loom: not before its wheel is given back).
    let cell: &'static WheelCell = unsafe { &*cell };
    taken[index / 64] |= 1 << (index % 64);
    drop(taken);
    cell.core.lock().start(now);
    Some(cell)
}

/// Takes back the cell of a wheel in which nothing is armed any more.
pub(super) fn give_back(cell: &'static WheelCell) {
    let index = cell.id as usize - 1;
    let mut taken = taken();
    taken[index / 64] &= !(1 << (index % 64));
    // Loom's objects must not outlive the execution that made them.
    #[cfg(loom)]
    {
        let cell = CELLS[index].swap(core::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: made by `Box::into_raw` in `take`; in a loom test no operation outlives its wheel.
        drop(unsafe { Box::from_raw(cell) });
    }
}

/// The cell of a wheel's number.
#[inline]
pub(super) fn cell(id: u16) -> &'static WheelCell {
    // Ordering: Acquire pairs with Release in `take`.
    // SAFETY: an armed entry's number was given by `take`, and cells stay.
    unsafe { &*CELLS[id as usize - 1].load(Ordering::Acquire) }
}
