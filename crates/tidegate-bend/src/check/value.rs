//! Types, and the terms that stand in them, as shared and interned values.
//!
//! A value is a number into [`Values`]; equal numbers are equal values. Bound variables are counted
//! from the inside (`Bound`), free ones carry a number of their own (`Var`), so that no substitution
//! can capture. Nothing here computes: see `normal`.

use std::collections::HashMap;

use super::book::{ConstructorId, DataId, DefId};
use crate::syntax::{Quantity, Symbol};

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct V(u32);

/// The number of a variable; later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct VarId(pub(crate) u32);

/// What a value is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    /// Not known, or not checked: fits everything.
    Any,
    /// A term that is not computed with; equal to itself only.
    Opaque(u32),
    Var(VarId),
    /// The variable bound by the n-th binder outward.
    Bound(u32),
    Def(DefId),
    Data(DataId, Box<[V]>),
    Construct(ConstructorId, Box<[V]>),
    Apply(V, V),
    /// `@q name: domain -> codomain`; the codomain is under the binder.
    Pi(Quantity, Symbol, V, V),
    Lambda(Symbol, V),
    Kind(V),
    Quant,
    Quantity(u8),
    Meet(V, V),
    Equal(V, V, V),
    Reflexivity,
    Nat(u64),
    /// `k + n`, with `k` at least 1.
    NatPlus(u64, V),
    U32(u32),
    F32(u32),
    Char(char),
    Text(Symbol),
}

/// The table of values.
#[derive(Debug, Default)]
pub(crate) struct Values {
    values: Vec<Value>,
    /// How many binders around each value its bound variables reach.
    reach: Vec<u32>,
    index: HashMap<Value, V>,
    opaque: u32,
}

impl Values {
    pub(crate) fn add(&mut self, value: Value) -> V {
        if let Some(&known) = self.index.get(&value) {
            return known;
        }
        let reach = self.reach_of(&value);
        let id = V(self.values.len() as u32);
        self.values.push(value.clone());
        self.reach.push(reach);
        self.index.insert(value, id);
        id
    }

    pub(crate) fn get(&self, v: V) -> &Value {
        &self.values[v.0 as usize]
    }

    fn reach_of(&self, value: &Value) -> u32 {
        let mut reach = match value {
            Value::Bound(index) => index + 1,
            _ => 0,
        };
        for_each_part(value, &mut |part, binders| {
            reach = reach.max(self.reach[part.0 as usize].saturating_sub(binders));
        });
        reach
    }

    /// Whether the value under one binder uses it (or an outer one).
    pub(crate) fn is_open(&self, v: V) -> bool {
        self.reach[v.0 as usize] > 0
    }

    pub(crate) fn opaque(&mut self) -> V {
        self.opaque += 1;
        let number = self.opaque;
        self.add(Value::Opaque(number))
    }

    pub(crate) fn any(&mut self) -> V {
        self.add(Value::Any)
    }

    pub(crate) fn var(&mut self, id: VarId) -> V {
        self.add(Value::Var(id))
    }

    /// `Kind(&n)`.
    pub(crate) fn kind(&mut self, quantity: u8) -> V {
        let quantity = self.add(Value::Quantity(quantity));
        self.add(Value::Kind(quantity))
    }

    /// `k + n`, in its one form.
    pub(crate) fn nat_plus(&mut self, count: u64, rest: V) -> V {
        if count == 0 {
            return rest;
        }
        match *self.get(rest) {
            Value::Nat(value) => self.add(Value::Nat(value.saturating_add(count))),
            Value::NatPlus(more, inner) => self.add(Value::NatPlus(count.saturating_add(more), inner)),
            _ => self.add(Value::NatPlus(count, rest)),
        }
    }

    pub(crate) fn apply_all(&mut self, head: V, arguments: &[V]) -> V {
        arguments
            .iter()
            .fold(head, |function, &argument| self.add(Value::Apply(function, argument)))
    }

    /// The head of a spine of applications, and its arguments.
    pub(crate) fn spine(&self, v: V) -> (V, Vec<V>) {
        let mut head = v;
        let mut arguments = Vec::new();
        while let Value::Apply(function, argument) = *self.get(head) {
            arguments.push(argument);
            head = function;
        }
        arguments.reverse();
        (head, arguments)
    }

    /// `body` with its outermost bound variable replaced by `argument`.
    pub(crate) fn instantiate(&mut self, body: V, argument: V) -> V {
        if !self.is_open(body) {
            return body;
        }
        self.rewrite(body, 0, &mut HashMap::new(), &|values, v, depth| {
            if values.reach[v.0 as usize] <= depth {
                return Some(v);
            }
            match values.get(v) {
                Value::Bound(index) if *index == depth => Some(argument),
                _ => None,
            }
        })
    }

    /// `v` as the body of a binder in place of the free variable `id`.
    pub(crate) fn abstract_over(&mut self, v: V, id: VarId) -> V {
        self.rewrite(v, 0, &mut HashMap::new(), &|values, v, depth| {
            match values.get(v) {
                Value::Var(found) if *found == id => Some(values.bound(depth)),
                _ => None,
            }
        })
    }

    fn bound(&mut self, index: u32) -> V {
        self.add(Value::Bound(index))
    }

    /// Rebuilds `v`, replacing what `replace` answers for.
    fn rewrite(
        &mut self,
        v: V,
        depth: u32,
        memo: &mut HashMap<(V, u32), V>,
        replace: &dyn Fn(&mut Values, V, u32) -> Option<V>,
    ) -> V {
        if let Some(&known) = memo.get(&(v, depth)) {
            return known;
        }
        if let Some(replaced) = replace(self, v, depth) {
            return replaced;
        }
        let mut value = self.get(v).clone();
        let mut parts = 0;
        for_each_part_mut(&mut value, &mut |part, binders| {
            parts += 1;
            *part = self.rewrite(*part, depth + binders, memo, replace);
        });
        if parts == 0 {
            return v;
        }
        let result = match value {
            Value::NatPlus(count, rest) => self.nat_plus(count, rest),
            other => self.add(other),
        };
        memo.insert((v, depth), result);
        result
    }

    /// Calls `visit` on every free variable of `v`, each value once.
    pub(crate) fn for_each_var(&self, v: V, visit: &mut dyn FnMut(VarId)) {
        let mut seen = std::collections::HashSet::new();
        let mut pending = vec![v];
        while let Some(next) = pending.pop() {
            if !seen.insert(next) {
                continue;
            }
            if let Value::Var(id) = self.get(next) {
                visit(*id);
            }
            for_each_part(self.get(next), &mut |part, _| pending.push(part));
        }
    }
}

/// Calls `visit` on the parts of a value, with the number of binders crossed.
fn for_each_part(value: &Value, visit: &mut dyn FnMut(V, u32)) {
    let mut copy = value.clone();
    for_each_part_mut(&mut copy, &mut |part, binders| visit(*part, binders));
}

fn for_each_part_mut(value: &mut Value, visit: &mut dyn FnMut(&mut V, u32)) {
    match value {
        Value::Any
        | Value::Opaque(_)
        | Value::Var(_)
        | Value::Bound(_)
        | Value::Def(_)
        | Value::Quant
        | Value::Quantity(_)
        | Value::Reflexivity
        | Value::Nat(_)
        | Value::U32(_)
        | Value::F32(_)
        | Value::Char(_)
        | Value::Text(_) => {}
        Value::Data(_, parts) | Value::Construct(_, parts) => {
            parts.iter_mut().for_each(|part| visit(part, 0));
        }
        Value::Apply(a, b) | Value::Meet(a, b) => {
            visit(a, 0);
            visit(b, 0);
        }
        Value::Pi(_, _, domain, codomain) => {
            visit(domain, 0);
            visit(codomain, 1);
        }
        Value::Lambda(_, body) => visit(body, 1),
        Value::Kind(part) | Value::NatPlus(_, part) => visit(part, 0),
        Value::Equal(a, b, c) => {
            visit(a, 0);
            visit(b, 0);
            visit(c, 0);
        }
    }
}
