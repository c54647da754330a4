//! Descent: a definition that calls itself passes something smaller.
//!
//! The arguments are read from left to right: each is its parameter unchanged, until one is a part
//! that a match took out of its parameter; those after it are free. Definitions that call each other
//! in a circle are refused, for their descent is not looked into.

use super::book::DefId;
use super::value::{Value, VarId, V};
use super::{Checked, Checker, DataId};
use crate::diagnostic::{Diagnostic, Span};
use crate::hash::NumberMap;
use crate::load::ModuleId;
use crate::syntax::{ExprId, Quantity};

/// The definition that is being checked.
pub(super) struct Current {
    pub(super) def: DefId,
    /// The type, if a type is being checked.
    pub(super) data: Option<DataId>,
    pub(super) shown: String,
    pub(super) is_unsafe: bool,
    /// Its parameters, in order.
    pub(super) parameters: Vec<VarId>,
}

/// Which definitions each one calls, and where first.
pub(super) type Calls = NumberMap<DefId, Vec<(DefId, Span)>>;

/// How an argument compares with a parameter.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Smaller,
    Same,
    Other,
}

impl Checker<'_> {
    /// Notes that the current definition calls `callee`.
    pub(super) fn note_call(&mut self, callee: DefId, span: Span) {
        let Some(current) = &self.current else { return };
        if self.dead == 0 && !self.lenient && callee != current.def {
            self.calls.entry(current.def).or_default().push((callee, span));
        }
    }

    /// A live mention of `def` at `arguments`: if it is the current definition, they must descend.
    pub(super) fn check_descent(&mut self, def: DefId, arguments: &[ExprId], span: Span) -> Checked<()> {
        let Some(current) = &self.current else { return Ok(()) };
        if current.def != def || current.is_unsafe {
            return Ok(());
        }
        let parameters = current.parameters.clone();
        for (&parameter, &argument) in parameters.iter().zip(arguments) {
            if self.variable(parameter).quantity == Quantity::None {
                continue;
            }
            let column = self.values.var(parameter);
            let argument = self.eval_here(argument);
            match self.order(argument, column, 0) {
                Order::Smaller => return Ok(()),
                Order::Same => {}
                Order::Other => break,
            }
        }
        let name = self.def_name(def);
        let expected =
            "a decreasing self-call (arguments are read left to right: each passed unchanged until one shrinks)";
        let error = self.mismatch(expected, name, Some(span));
        Err(self.with_context(Box::new(error)))
    }

    /// A variable that was matched, as what it was matched with.
    fn resolved(&self, v: V) -> V {
        let mut value = v;
        while let Value::Var(id) = self.values.get(value) {
            match self.known.get(id) {
                Some(&known) => value = known,
                None => break,
            }
        }
        value
    }

    fn order(&mut self, argument: V, column: V, depth: u32) -> Order {
        if depth > 1_000 {
            return Order::Other;
        }
        let (argument, column) = (self.resolved(argument), self.resolved(column));
        if argument == column {
            return Order::Same;
        }
        match self.values.get(column).clone() {
            Value::Nat(_) | Value::NatPlus(..) => self.order_numbers(argument, column, depth),
            Value::Construct(constructor, parts) => {
                let mut bad = None;
                if let Value::Construct(found, fields) = self.values.get(argument).clone() {
                    if found == constructor && fields.len() == parts.len() {
                        let mut order = Order::Same;
                        for (at, (&field, &part)) in fields.iter().zip(parts.iter()).enumerate() {
                            match self.order(field, part, depth + 1) {
                                Order::Same => {}
                                Order::Smaller => order = Order::Smaller,
                                Order::Other => {
                                    bad = Some(at);
                                    break;
                                }
                            }
                        }
                        if bad.is_none() {
                            return order;
                        }
                    }
                }
                let within = parts
                    .iter()
                    .enumerate()
                    .any(|(at, &part)| Some(at) != bad && self.order(argument, part, depth + 1) != Order::Other);
                if within {
                    Order::Smaller
                } else {
                    Order::Other
                }
            }
            _ => Order::Other,
        }
    }

    /// A Nat as a count above another value.
    fn counted(&self, v: V) -> (u64, Option<V>) {
        match *self.values.get(v) {
            Value::Nat(value) => (value, None),
            Value::NatPlus(count, rest) => {
                let (more, base) = match self.resolved(rest) {
                    resolved if resolved == rest => (0, Some(rest)),
                    resolved => self.counted(resolved),
                };
                (count.saturating_add(more), base)
            }
            _ => (0, Some(v)),
        }
    }

    fn order_numbers(&mut self, argument: V, column: V, depth: u32) -> Order {
        let (have, base) = self.counted(argument);
        let (limit, limit_base) = self.counted(column);
        if base == limit_base {
            return match have.cmp(&limit) {
                std::cmp::Ordering::Less => Order::Smaller,
                std::cmp::Ordering::Equal => Order::Same,
                std::cmp::Ordering::Greater => Order::Other,
            };
        }
        match limit_base {
            Some(inner) if limit > 0 && inner != column => match self.order(argument, inner, depth + 1) {
                Order::Other => Order::Other,
                _ => Order::Smaller,
            },
            _ => Order::Other,
        }
    }

    /// Definitions that call each other in a circle, none of them marked unsafe.
    pub(super) fn circles(&self) -> Vec<Diagnostic> {
        let mut errors = Vec::new();
        for component in components(&self.calls) {
            let safe = |id: &DefId| !self.book.def(*id).is_unsafe && self.book.def(*id).module != ModuleId::BASE;
            if component.len() < 2 || !component.iter().all(safe) {
                continue;
            }
            let mut members = component.clone();
            members.sort_unstable();
            let caller = members[0];
            let call = self.calls[&caller].iter().find(|(callee, _)| members.contains(callee));
            let Some(&(callee, span)) = call else { continue };
            let name = |id: DefId| self.book.names.text(self.book.def(id).name).to_owned();
            let mut error = Diagnostic::mismatch(
                "a decreasing self-call (definitions may not call each other in a circle)",
                name(callee),
                Some(span),
            );
            error.definition = Some(name(caller));
            errors.push(error.with_note(format!(
                "{} calls {} again: make them one definition, or mark one of them @unsafe.",
                name(callee),
                name(caller)
            )));
        }
        errors
    }
}

/// The strongly connected components of the calls (Tarjan's algorithm, without recursion).
fn components(calls: &Calls) -> Vec<Vec<DefId>> {
    #[derive(Default)]
    struct Search {
        order: NumberMap<DefId, usize>,
        low: NumberMap<DefId, usize>,
        stack: Vec<DefId>,
        on_stack: std::collections::HashSet<DefId>,
        found: Vec<Vec<DefId>>,
    }
    let mut search = Search::default();
    let mut roots: Vec<DefId> = calls.keys().copied().collect();
    roots.sort_unstable();
    for root in roots {
        if search.order.contains_key(&root) {
            continue;
        }
        let mut path = vec![(root, 0)];
        while let Some(&mut (node, ref mut next)) = path.last_mut() {
            if *next == 0 {
                let number = search.order.len();
                search.order.insert(node, number);
                search.low.insert(node, number);
                search.stack.push(node);
                search.on_stack.insert(node);
            }
            let edges = calls.get(&node).map_or(&[][..], |edges| edges);
            if let Some(&(target, _)) = edges.get(*next) {
                *next += 1;
                if !search.order.contains_key(&target) {
                    path.push((target, 0));
                } else if search.on_stack.contains(&target) {
                    let low = search.low[&node].min(search.order[&target]);
                    search.low.insert(node, low);
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                let low = search.low[&parent].min(search.low[&node]);
                search.low.insert(parent, low);
            }
            if search.low[&node] == search.order[&node] {
                let mut component = Vec::new();
                while let Some(member) = search.stack.pop() {
                    search.on_stack.remove(&member);
                    component.push(member);
                    if member == node {
                        break;
                    }
                }
                search.found.push(component);
            }
        }
    }
    search.found
}
