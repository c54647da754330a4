//! Which reads of a slot are its last: those move the value, the others copy it.
//!
//! A walk over a unit against the order in which it runs, with the set of slots that are still read later. The order is
//! the compiler's: of a call's arguments, those that need code of their own run first, and those that are slots are read
//! by the call itself, from left to right.

use super::compile::Mode;
use crate::base::Primitive;
use crate::core::{Action, Bind, CorePattern, CorePatternId, Definition, Node, NodeId, Program, Slot};
use crate::hash::NumberMap;

/// A set of slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots(Vec<u64>);

impl Slots {
    fn contains(&self, slot: Slot) -> bool {
        self.0.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    /// False: it was there.
    fn insert(&mut self, slot: Slot) -> bool {
        let at = slot as usize / 64;
        if at >= self.0.len() {
            self.0.resize(at + 1, 0);
        }
        let is_new = !self.contains(slot);
        self.0[at] |= 1 << (slot % 64);
        is_new
    }

    fn add(&mut self, slot: Slot) {
        let _was_new = self.insert(slot);
    }

    fn remove(&mut self, slot: Slot) {
        if let Some(word) = self.0.get_mut(slot as usize / 64) {
            *word &= !(1 << (slot % 64));
        }
    }

    fn add_all(&mut self, other: &Slots) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }
}

/// A slot, and whether this is its last read.
pub(super) type Read = (Slot, bool);

/// What is known of one unit.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// The slot nodes that are last reads.
    last: NumberMap<u32, bool>,
    /// What closures, actions and sides capture.
    reads: NumberMap<u32, Vec<Read>>,
    /// For each row of a match, which of the slots nobody reads after it was taken apart.
    consumed: NumberMap<u32, Vec<Vec<bool>>>,
    /// The same for the value of a destructuring statement.
    destructured: NumberMap<u32, bool>,
}

impl Flow {
    pub(super) fn of(program: &Program, root: NodeId, mode: Mode) -> Flow {
        let mut walk = Walk { program, flow: Flow::default() };
        walk.node(root, mode, &mut Slots::default());
        walk.flow
    }

    pub(super) fn is_last(&self, node: NodeId) -> bool {
        self.last.get(&node.0).copied().unwrap_or(false)
    }

    pub(super) fn reads(&self, node: NodeId) -> &[Read] {
        self.reads.get(&node.0).map_or(&[], Vec::as_slice)
    }

    pub(super) fn is_consumed(&self, node: NodeId, row: usize, column: usize) -> bool {
        self.consumed.get(&node.0).is_some_and(|rows| rows[row][column])
    }

    pub(super) fn is_destructured(&self, value: NodeId) -> bool {
        self.destructured.get(&value.0).copied().unwrap_or(false)
    }
}

/// A side of a parallel let that is a call whose arguments need no code: it runs without a unit of its own.
pub(super) fn is_direct(program: &Program, node: NodeId) -> bool {
    let Node::CallGlobal(def, arguments) = program.node(node) else { return false };
    let is_plain = |&argument: &NodeId| !needs_code(program.node(argument));
    matches!(program.definitions[def.index()], Definition::Function(_)) && arguments.iter().all(is_plain)
}

/// Is it more than a slot or a constant?
fn needs_code(node: &Node) -> bool {
    !matches!(
        node,
        Node::Slot(_)
            | Node::Erased
            | Node::Global(_)
            | Node::Nat(_)
            | Node::U32(_)
            | Node::F32(_)
            | Node::Char(_)
            | Node::Text(_)
    )
}

/// The slots that a part of a unit reads and does not bind.
pub(super) fn free(program: &Program, root: NodeId) -> Vec<Slot> {
    let (mut used, mut bound) = (Slots::default(), Slots::default());
    let mut order = Vec::new();
    let mut todo = vec![root];
    while let Some(id) = todo.pop() {
        let mut read = |slot: Slot| {
            if used.insert(slot) {
                order.push(slot);
            }
        };
        match program.node(id) {
            Node::Slot(slot) => read(*slot),
            Node::Construct(_, nodes) | Node::CallGlobal(_, nodes) => todo.extend(nodes),
            Node::Apply(function, arguments) => {
                todo.push(*function);
                todo.extend(arguments);
            }
            Node::Successor(_, rest) => todo.push(*rest),
            Node::Closure(_, slots) => slots.iter().for_each(|&slot| read(slot)),
            Node::Block(binds, tail) => {
                todo.push(*tail);
                for bind in binds {
                    match bind {
                        Bind::Let(slot, value) => {
                            bound.add(*slot);
                            todo.push(*value);
                        }
                        Bind::Parallel(slots, values) => {
                            slots.iter().for_each(|&slot| bound.add(slot));
                            todo.extend(values);
                        }
                        Bind::Destructure(slot, pattern, value) => {
                            bound.add(*slot);
                            for_each_bound(program, *pattern, &mut |slot| bound.add(slot));
                            todo.push(*value);
                        }
                    }
                }
            }
            Node::Match(slots, rows) => {
                slots.iter().for_each(|&slot| read(slot));
                for row in rows {
                    for &pattern in &row.patterns {
                        for_each_bound(program, pattern, &mut |slot| bound.add(slot));
                    }
                    todo.push(row.body);
                }
            }
            Node::Sequence(actions, last) => {
                todo.push(*last);
                for action in actions {
                    let (Action::Run(slot, node) | Action::Let(slot, node)) = action;
                    bound.add(*slot);
                    todo.push(*node);
                }
            }
            _ => {}
        }
    }
    order.retain(|&slot| !bound.contains(slot));
    order.sort_unstable();
    order
}

/// The slots that a pattern binds.
fn for_each_bound(program: &Program, pattern: CorePatternId, f: &mut impl FnMut(Slot)) {
    match program.pattern(pattern) {
        CorePattern::Bind(slot) => f(*slot),
        CorePattern::Construct(_, fields) => fields.iter().for_each(|&field| for_each_bound(program, field, f)),
        CorePattern::AtLeast(_, rest) => for_each_bound(program, *rest, f),
        _ => {}
    }
}

struct Walk<'p> {
    program: &'p Program,
    flow: Flow,
}

impl Walk<'_> {
    fn node(&mut self, id: NodeId, mode: Mode, live: &mut Slots) {
        let program = self.program;
        match program.node(id) {
            Node::Slot(slot) => {
                let is_last = live.insert(*slot);
                self.flow.last.insert(id.0, is_last);
            }
            Node::Construct(_, arguments) => self.arguments(arguments, live),
            Node::CallGlobal(def, arguments) => match (&program.definitions[def.index()], mode) {
                (Definition::Primitive(Primitive::IoBind, 2), Mode::Run) if arguments.len() == 2 => {
                    self.node(arguments[1], Mode::Value, live);
                    self.node(arguments[0], Mode::Run, live);
                }
                _ => self.arguments(arguments, live),
            },
            Node::Apply(function, arguments) => {
                let all: Vec<NodeId> = std::iter::once(*function).chain(arguments.iter().copied()).collect();
                self.arguments(&all, live);
            }
            Node::Successor(_, rest) => self.node(*rest, Mode::Value, live),
            Node::Closure(_, slots) => self.capture(id, slots, live),
            Node::Block(binds, tail) => {
                self.node(*tail, mode, live);
                for bind in binds.iter().rev() {
                    self.bind(bind, live);
                }
            }
            Node::Match(slots, _) => {
                self.rows(id, mode, live);
                slots.iter().for_each(|&slot| live.add(slot));
            }
            Node::Sequence(actions, last) => match mode {
                Mode::Value => self.capture(id, &free(program, id), live),
                Mode::Run => self.steps(actions, *last, live),
            },
            _ => {}
        }
    }

    fn arguments(&mut self, arguments: &[NodeId], live: &mut Slots) {
        let program = self.program;
        for pass in [false, true] {
            for &argument in arguments.iter().rev() {
                if needs_code(program.node(argument)) == pass {
                    self.node(argument, Mode::Value, live);
                }
            }
        }
    }

    fn capture(&mut self, id: NodeId, slots: &[Slot], live: &mut Slots) {
        let mut reads: Vec<Read> = slots.iter().rev().map(|&slot| (slot, live.insert(slot))).collect();
        reads.reverse();
        self.flow.reads.insert(id.0, reads);
    }

    fn bind(&mut self, bind: &Bind, live: &mut Slots) {
        match bind {
            Bind::Let(slot, value) => {
                live.remove(*slot);
                self.node(*value, Mode::Value, live);
            }
            Bind::Parallel(slots, values) => {
                slots.iter().for_each(|&slot| live.remove(slot));
                for &value in values.iter().rev() {
                    match is_direct(self.program, value) {
                        true => self.node(value, Mode::Value, live),
                        false => self.capture(value, &free(self.program, value), live),
                    }
                }
            }
            Bind::Destructure(slot, pattern, value) => {
                for_each_bound(self.program, *pattern, &mut |slot| live.remove(slot));
                self.flow.destructured.insert(value.0, !live.contains(*slot));
                live.remove(*slot);
                self.node(*value, Mode::Value, live);
            }
        }
    }

    fn rows(&mut self, id: NodeId, mode: Mode, live: &mut Slots) {
        let program = self.program;
        let Node::Match(slots, rows) = program.node(id) else { return };
        let mut before = Slots::default();
        let mut consumed = Vec::new();
        for row in rows {
            let mut after = live.clone();
            self.node(row.body, mode, &mut after);
            for &pattern in &row.patterns {
                for_each_bound(program, pattern, &mut |slot| after.remove(slot));
            }
            let is_free = |(at, slot): (usize, &Slot)| !after.contains(*slot) && !slots[at + 1..].contains(slot);
            consumed.push(slots.iter().enumerate().map(is_free).collect());
            before.add_all(&after);
        }
        if !rows.is_empty() {
            *live = before;
        }
        self.flow.consumed.insert(id.0, consumed);
    }

    fn steps(&mut self, actions: &[Action], last: NodeId, live: &mut Slots) {
        self.node(last, Mode::Run, live);
        for action in actions.iter().rev() {
            match action {
                Action::Run(slot, node) => {
                    live.remove(*slot);
                    self.node(*node, Mode::Run, live);
                }
                Action::Let(slot, node) => {
                    live.remove(*slot);
                    self.node(*node, Mode::Value, live);
                }
            }
        }
    }
}
