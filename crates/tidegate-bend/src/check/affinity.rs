//! How often each variable is used on the way to here.
//!
//! A value is used at most once on each path unless its binder is marked `+`. Uses are counted in one
//! table; a branch is counted apart and undone through a trail, then the branches join by maximum, so
//! the cost is that of the uses, not of the variables in scope. A variable that was matched is used
//! through the variables of its pattern.

use super::value::VarId;
use super::{Checked, Checker, Origin};
use crate::diagnostic::Span;
use crate::hash::NumberMap;
use crate::syntax::Quantity;

/// The table of uses.
#[derive(Debug, Default)]
pub(super) struct Affinity {
    /// 0, 1, or 2 for more.
    uses: NumberMap<VarId, u8>,
    trail: Vec<(VarId, u8)>,
    /// The variables of the pattern that a variable was matched with.
    matched: NumberMap<VarId, Vec<VarId>>,
}

impl Affinity {
    fn count(&self, id: VarId) -> u8 {
        self.uses.get(&id).copied().unwrap_or(0)
    }

    fn set(&mut self, id: VarId, count: u8) {
        let old = self.uses.insert(id, count).unwrap_or(0);
        self.trail.push((id, old));
    }

    pub(super) fn mark(&self) -> usize {
        self.trail.len()
    }

    /// Undoes the counts since `mark` and gives what they were.
    pub(super) fn take_branch(&mut self, mark: usize) -> NumberMap<VarId, u8> {
        let mut branch = NumberMap::default();
        while self.trail.len() > mark {
            let Some((id, old)) = self.trail.pop() else { break };
            let now = self.uses.insert(id, old).unwrap_or(0);
            branch.entry(id).or_insert(now);
        }
        branch
    }

    /// Counts the branches as one path: each variable as often as in the branch that uses it most.
    pub(super) fn join(&mut self, branches: Vec<NumberMap<VarId, u8>>) {
        let mut most: NumberMap<VarId, u8> = NumberMap::default();
        for (id, count) in branches.into_iter().flatten() {
            let entry = most.entry(id).or_default();
            *entry = count.max(*entry);
        }
        for (id, count) in most {
            self.set(id, count);
        }
    }

    /// From here on `id` is used through `parts`.
    pub(super) fn split(&mut self, id: VarId, parts: Vec<VarId>) {
        self.matched.insert(id, parts);
    }

    /// `id` is whole again.
    pub(super) fn unsplit(&mut self, id: VarId) {
        self.matched.remove(&id);
    }
}

impl Checker<'_> {
    /// Counts a use of a variable.
    pub(super) fn use_variable(&mut self, id: VarId, span: Span) -> Checked<()> {
        self.reject_open(id, span)?;
        if self.dead > 0 || self.lenient {
            return Ok(());
        }
        let mut pending = vec![id];
        while let Some(next) = pending.pop() {
            if let Some(parts) = self.affinity.matched.get(&next) {
                pending.extend(parts);
                continue;
            }
            match self.variable(next).quantity {
                Quantity::Many => {}
                Quantity::One => {
                    let count = self.affinity.count(next);
                    self.affinity.set(next, (count + 1).min(2));
                }
                Quantity::None => {
                    let name = self.book.names.text(self.variable(next).name).to_owned();
                    let error = self.mismatch(format!("-{name}"), name, Some(span));
                    return Err(self.with_context(Box::new(error.with_note(
                        "an erased name has no value at run time; use it in types and erased arguments only.",
                    ))));
                }
            }
        }
        Ok(())
    }

    /// A `~` argument may not mention the variables around it.
    fn reject_open(&self, id: VarId, span: Span) -> Checked<()> {
        let Some(floor) = self.closed_from else {
            return Ok(());
        };
        if id >= floor || self.variable(id).origin == Origin::Template {
            return Ok(());
        }
        let name = self.book.names.text(self.variable(id).name);
        let message = format!("a closed ~ argument ({name} is a variable here; pass it as a plain argument)");
        Err(Box::new(self.message(message, Some(span))))
    }

    /// A match takes the variable apart: that is one use, even if no part is used.
    pub(super) fn use_whole(&mut self, id: VarId) {
        if self.dead == 0 && self.affinity.count(id) > 0 && self.variable(id).quantity == Quantity::One {
            self.affinity.set(id, 2);
        }
    }

    /// Takes the variables opened since there were `depth` out of scope, and checks their uses.
    pub(super) fn close(&mut self, depth: usize, scope_mark: usize) -> Checked<()> {
        self.scope.truncate(scope_mark);
        while self.locals.len() > depth {
            let Some(id) = self.locals.pop() else { break };
            self.close_parts(&[id])?;
        }
        Ok(())
    }

    /// Checks the uses of variables that a pattern bound.
    pub(super) fn close_parts(&mut self, parts: &[VarId]) -> Checked<()> {
        let twice =
            parts.iter().find(|&&id| self.affinity.count(id) > 1 && self.variable(id).quantity == Quantity::One);
        match twice {
            None => Ok(()),
            Some(&id) => Err(self.consumed_twice(id)),
        }
    }

    fn consumed_twice(&mut self, id: VarId) -> Box<crate::diagnostic::Diagnostic> {
        let variable = *self.variable(id);
        let name = self.book.names.text(variable.name).to_owned();
        let observed = format!("{name} (consumed more than once)");
        let error = self.mismatch(name, observed, variable.span);
        self.with_context(Box::new(error))
    }
}
