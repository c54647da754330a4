//! Operations and what they wait for, by number: a task's note has one byte for them.

use core::cell::RefCell;

use tidegate_wait::context::WaitInfo;
use tidegate_wait::shim::Lock;

use crate::deadlock::TASK;

/// An operation and what it waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub(crate) operation: &'static str,
    pub(crate) owner: &'static str,
    is_join: bool,
}

/// The numbers that a thread knows. Those of a pool's threads agree: new ones are given out by the pool.
#[derive(Debug)]
pub(crate) struct Names {
    known: RefCell<Vec<Name>>,
    common: Option<&'static Lock<Vec<Name>>>,
}

impl Names {
    pub(crate) fn new(common: Option<&'static Lock<Vec<Name>>>) -> Names {
        Names { known: RefCell::new(Vec::new()), common }
    }

    /// What a number stands for.
    pub(crate) fn get(&self, number: u8) -> (&'static str, &'static str) {
        match self.common {
            Some(common) => text_of(&common.lock(), number),
            None => text_of(&self.known.borrow(), number),
        }
    }

    /// The number for a task's note, and whether it is that of a join. By the texts' addresses: a text that stands in two
    /// places has two numbers.
    #[inline]
    pub(crate) fn number_of(&self, wait: &WaitInfo) -> (u8, bool) {
        let known = self.known.borrow();
        if let Some(number) = find(&known, wait) {
            return (number as u8, known[number].is_join);
        }
        drop(known);
        self.number_anew(wait)
    }

    #[cold]
    fn number_anew(&self, wait: &WaitInfo) -> (u8, bool) {
        let mut known = self.known.borrow_mut();
        let number = match self.common {
            None => add(&mut known, wait),
            Some(common) => {
                let mut common = common.lock();
                let number = add(&mut common, wait);
                known.clone_from(&common);
                number
            }
        };
        (number, wait.owner == TASK)
    }
}

/// What a number stands for in `names`.
pub(crate) fn text_of(names: &[Name], number: u8) -> (&'static str, &'static str) {
    names.get(usize::from(number)).map_or(("wait", "something"), |name| (name.operation, name.owner))
}

fn find(names: &[Name], wait: &WaitInfo) -> Option<usize> {
    let wanted = (wait.operation.as_ptr(), wait.owner.as_ptr());
    names.iter().position(|name| (name.operation.as_ptr(), name.owner.as_ptr()) == wanted)
}

fn add(names: &mut Vec<Name>, wait: &WaitInfo) -> u8 {
    if let Some(number) = find(names, wait) {
        return number as u8;
    }
    // There are not so many kinds; the last number would stand for all that are left.
    if names.len() == usize::from(u8::MAX) {
        return u8::MAX;
    }
    names.push(Name { operation: wait.operation, owner: wait.owner, is_join: wait.owner == TASK });
    (names.len() - 1) as u8
}
