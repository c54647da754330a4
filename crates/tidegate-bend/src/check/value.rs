//! Types, and the terms that stand in them, as shared and interned values.
//!
//! A value is a number into [`Values`]; equal numbers are equal values. Bound variables are counted
//! from the inside (`Bound`), free ones carry a number of their own (`Var`), so that no substitution
//! can capture. Nothing here computes: see `normal`.

use crate::hash::NumberMap;

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
    /// One more than the greatest free variable in each value; 0 if it has none.
    newest: Vec<u32>,
    index: NumberMap<Value, V>,
    opaque: u32,
}

impl Values {
    pub(crate) fn add(&mut self, value: Value) -> V {
        if let Some(&known) = self.index.get(&value) {
            return known;
        }
        let reach = self.reach_of(&value);
        let newest = self.newest_of(&value);
        let id = V(self.values.len() as u32);
        self.values.push(value.clone());
        self.reach.push(reach);
        self.newest.push(newest);
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

    fn newest_of(&self, value: &Value) -> u32 {
        let mut newest = match value {
            Value::Var(id) => id.0 + 1,
            _ => 0,
        };
        for_each_part(value, &mut |part, _| newest = newest.max(self.newest[part.0 as usize]));
        newest
    }

    /// Whether the value under one binder uses it (or an outer one).
    pub(crate) fn is_open(&self, v: V) -> bool {
        self.reach[v.0 as usize] > 0
    }

    /// Whether the value has no variables, bound elsewhere or free.
    pub(crate) fn is_closed(&self, v: V) -> bool {
        !self.is_open(v) && self.newest[v.0 as usize] == 0
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
        arguments.iter().fold(head, |function, &argument| self.add(Value::Apply(function, argument)))
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
        self.rewrite(body, 0, &mut NumberMap::default(), &|values, v, depth| {
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
        self.rewrite(v, 0, &mut NumberMap::default(), &|values, v, depth| {
            if values.newest[v.0 as usize] <= id.0 {
                return Some(v);
            }
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
        memo: &mut NumberMap<(V, u32), V>,
        replace: &dyn Fn(&mut Values, V, u32) -> Option<V>,
    ) -> V {
        if let Some(&known) = memo.get(&(v, depth)) {
            return known;
        }
        if let Some(replaced) = replace(self, v, depth) {
            return replaced;
        }
        let value = self.get(v).clone();
        let Some(value) = with_parts(&value, &mut |part, binders| self.rewrite(part, depth + binders, memo, replace))
        else {
            return v;
        };
        let result = match value {
            Value::NatPlus(count, rest) => self.nat_plus(count, rest),
            other => self.add(other),
        };
        memo.insert((v, depth), result);
        result
    }
}

/// Calls `visit` on the parts of a value, with the number of binders crossed.
fn for_each_part(value: &Value, visit: &mut dyn FnMut(V, u32)) {
    match value {
        Value::Data(_, parts) | Value::Construct(_, parts) => {
            parts.iter().for_each(|&part| visit(part, 0));
        }
        Value::Apply(a, b) | Value::Meet(a, b) => [*a, *b].into_iter().for_each(|part| visit(part, 0)),
        Value::Pi(_, _, domain, codomain) => {
            visit(*domain, 0);
            visit(*codomain, 1);
        }
        Value::Lambda(_, body) => visit(*body, 1),
        Value::Kind(part) | Value::NatPlus(_, part) => visit(*part, 0),
        Value::Equal(a, b, c) => [*a, *b, *c].into_iter().for_each(|part| visit(part, 0)),
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
    }
}

/// The same value with each part replaced by what `change` makes of it; nothing if it has no parts.
fn with_parts(value: &Value, change: &mut dyn FnMut(V, u32) -> V) -> Option<Value> {
    Some(match value {
        Value::Data(id, parts) => Value::Data(*id, parts.iter().map(|&part| change(part, 0)).collect()),
        Value::Construct(id, parts) => Value::Construct(*id, parts.iter().map(|&part| change(part, 0)).collect()),
        Value::Apply(a, b) => Value::Apply(change(*a, 0), change(*b, 0)),
        Value::Meet(a, b) => Value::Meet(change(*a, 0), change(*b, 0)),
        Value::Pi(quantity, name, domain, codomain) => {
            Value::Pi(*quantity, *name, change(*domain, 0), change(*codomain, 1))
        }
        Value::Lambda(name, body) => Value::Lambda(*name, change(*body, 1)),
        Value::Kind(part) => Value::Kind(change(*part, 0)),
        Value::NatPlus(count, part) => Value::NatPlus(*count, change(*part, 0)),
        Value::Equal(a, b, c) => Value::Equal(change(*a, 0), change(*b, 0), change(*c, 0)),
        _ => return None,
    })
}
