//! Matches: the tests of a row, in order, then the parts that it binds, then its body.
//!
//! Tests look at values where they stand. Only when a row fits is anything taken apart: what nobody reads afterwards is
//! moved out of its constructor. The last row is not tested: the checker has seen that one of them fits.

use super::{Compiler, Mode};
use crate::base::Primitive;
use crate::core::{CorePattern, CorePatternId, CoreRow, NodeId, Slot};
use crate::run::code::{Op, Operand, Step, Test, Wanted, NOWHERE};

impl Compiler<'_> {
    pub(super) fn cases(&mut self, id: NodeId, slots: &[Slot], rows: &[CoreRow], mode: Mode, to: Option<Slot>) {
        let mut ends = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let is_last = at + 1 == rows.len();
            let mut tests = Vec::new();
            if !is_last {
                for (&slot, &pattern) in slots.iter().zip(&row.patterns) {
                    self.test(slot, &mut Vec::new(), pattern, &mut tests);
                }
            }
            let mark = self.next;
            for (column, (&slot, &pattern)) in slots.iter().zip(&row.patterns).enumerate() {
                let is_moved = self.flow.is_consumed(id, at, column);
                self.take_apart(slot, is_moved, pattern);
            }
            self.term(row.body, mode, to);
            self.next = mark;
            if to.is_some() && !is_last {
                ends.push(self.emit(Op::Jump { to: 0 }));
            }
            let here = self.code.ops.len() as u32;
            tests.into_iter().for_each(|test| self.aim(test, here));
        }
        if rows.is_empty() {
            self.emit(Op::NoCase);
        }
        let here = self.code.ops.len() as u32;
        ends.into_iter().for_each(|end| self.aim(end, here));
    }

    /// Sets where an operation jumps to.
    fn aim(&mut self, op: usize, target: u32) {
        match &mut self.code.ops[op] {
            Op::Jump { to } => *to = target,
            Op::IfConstructor { otherwise, .. } | Op::IfNat { otherwise, .. } | Op::IfTest { otherwise, .. } => {
                *otherwise = target;
            }
            other => unreachable!("{other:?} does not jump"),
        }
    }

    /// The tests of a pattern on what lies at a path below a slot.
    fn test(&mut self, slot: Slot, path: &mut Vec<Step>, pattern: CorePatternId, tests: &mut Vec<usize>) {
        let program = self.program;
        let wanted = match program.pattern(pattern) {
            CorePattern::Wildcard | CorePattern::Bind(_) => return,
            CorePattern::Construct(tag, _) => Wanted::Constructor(tag.constructor),
            CorePattern::Nat(value) => Wanted::Nat(*value),
            CorePattern::AtLeast(least, _) => Wanted::AtLeast(*least),
            CorePattern::U32(value) => Wanted::U32(*value),
            CorePattern::F32(bits) => Wanted::F32(*bits),
            CorePattern::Char(value) => Wanted::Char(u32::from(*value)),
            CorePattern::Text(number) => Wanted::Text(program.texts[*number as usize].as_bytes().to_vec()),
        };
        tests.push(self.emit_test(slot, path, wanted));
        match program.pattern(pattern) {
            CorePattern::Construct(_, fields) => {
                for (at, &field) in fields.iter().enumerate() {
                    path.push(Step::Field(at as u32));
                    self.test(slot, path, field, tests);
                    path.pop();
                }
            }
            CorePattern::AtLeast(least, rest) => {
                path.push(Step::Above(*least));
                self.test(slot, path, *rest, tests);
                path.pop();
            }
            _ => {}
        }
    }

    fn emit_test(&mut self, slot: Slot, path: &[Step], wanted: Wanted) -> usize {
        let otherwise = 0;
        let is_here = path.is_empty();
        let op = match wanted {
            Wanted::Constructor(constructor) if is_here && !self.code.has_form(constructor) => {
                Op::IfConstructor { slot, constructor, otherwise }
            }
            Wanted::Nat(value) if is_here && value <= u64::from(u32::MAX) => {
                Op::IfNat { slot, least: value as u32, exactly: true, otherwise }
            }
            Wanted::AtLeast(value) if is_here && value <= u64::from(u32::MAX) => {
                Op::IfNat { slot, least: value as u32, exactly: false, otherwise }
            }
            wanted => {
                self.code.tests.push(Test { path: path.to_vec(), wanted });
                Op::IfTest { slot, test: self.code.tests.len() as u32 - 1, otherwise }
            }
        };
        self.emit(op)
    }

    /// Binds the parts of a value that fits.
    pub(super) fn take_apart(&mut self, slot: Slot, is_moved: bool, pattern: CorePatternId) {
        let program = self.program;
        let from = if is_moved { Operand::take(slot) } else { Operand::copy(slot) };
        match program.pattern(pattern) {
            CorePattern::Bind(to) => {
                self.emit(Op::Load { to: *to, from });
            }
            CorePattern::Construct(_, fields) if fields.iter().any(|&field| self.binds(field)) => {
                let places: Vec<Slot> = fields.iter().map(|&field| self.place_of(field)).collect();
                let list = self.code.add_list(places.iter().copied());
                self.emit(match is_moved {
                    true => Op::TakeMoved { slot, fields: list },
                    false => Op::TakeCopied { slot, fields: list },
                });
                for (&place, &field) in places.iter().zip(fields) {
                    if place != NOWHERE && !matches!(program.pattern(field), CorePattern::Bind(_)) {
                        self.take_apart(place, true, field);
                    }
                }
            }
            CorePattern::AtLeast(least, rest) if self.binds(*rest) => {
                let to = self.place_of(*rest);
                match u32::try_from(*least) {
                    Ok(count) => self.emit(Op::TakeAbove { to, from, count }),
                    Err(_) => {
                        let right = self.number(*least);
                        self.emit(Op::Binary { to, primitive: Primitive::NatSub, left: from, right })
                    }
                };
                if !matches!(program.pattern(*rest), CorePattern::Bind(_)) {
                    self.take_apart(to, true, *rest);
                }
            }
            _ => {}
        }
    }

    /// Where a part goes: to its own slot, to one in which it is taken apart further, or nowhere.
    fn place_of(&mut self, pattern: CorePatternId) -> Slot {
        match self.program.pattern(pattern) {
            CorePattern::Bind(slot) => *slot,
            _ if self.binds(pattern) => self.temporary(),
            _ => NOWHERE,
        }
    }

    fn binds(&self, pattern: CorePatternId) -> bool {
        match self.program.pattern(pattern) {
            CorePattern::Bind(_) => true,
            CorePattern::Construct(_, fields) => fields.iter().any(|&field| self.binds(field)),
            CorePattern::AtLeast(_, rest) => self.binds(*rest),
            _ => false,
        }
    }
}
