//! Computing with values, and comparing them.

use super::book::{Code, DefId};
use super::evaluate::Stuck;
use super::scope::Scope;
use super::value::{Value, V};
use super::Checker;
use crate::base::Primitive;
use crate::load::ModuleId;
use crate::syntax::{Body, Item};

/// Whether one value fits where another is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Yes,
    No,
    /// It hangs on a value that the checker does not compute.
    Undecided,
}

impl Fit {
    fn and(self, other: Fit) -> Fit {
        match (self, other) {
            (Fit::No, _) | (_, Fit::No) => Fit::No,
            (Fit::Undecided, _) | (_, Fit::Undecided) => Fit::Undecided,
            _ => Fit::Yes,
        }
    }
}

/// Unfoldings within one comparison or one reduction; beyond it the answer is undecided.
const FUEL: u32 = 20_000;

/// Computations within computations; it bounds the stack.
const MAX_NESTED: u32 = 12_000;

impl Checker<'_> {
    /// The value computed until its head is known.
    pub(super) fn whnf(&mut self, v: V) -> V {
        if let Some(&known) = self.reduced.get(&v) {
            return known;
        }
        let mut value = v;
        while let Some(next) = self.step(value) {
            if self.fuel == 0 || self.computing > MAX_NESTED {
                return value;
            }
            self.fuel -= 1;
            value = next;
        }
        // What is known of variables comes and goes; without any, a type that was reached stays.
        let is_type = matches!(self.values.get(value), Value::Data(..) | Value::Pi(..) | Value::Kind(_));
        if value != v && is_type && self.values.is_closed(v) {
            self.reduced.insert(v, value);
        }
        value
    }

    /// The head of a type that is asked for: [`whnf`](Self::whnf), or a type of which nothing is known, if the computation
    /// took too long to tell.
    pub(super) fn head_of_type(&mut self, ty: V) -> V {
        let head = self.whnf(ty);
        if self.fuel == 0 {
            return self.values.any();
        }
        head
    }

    /// The value without a function applied at its head, as the type of a second component is written.
    /// Types that name types of earlier locals would grow with every local otherwise.
    pub(super) fn applied(&mut self, v: V) -> V {
        let mut value = v;
        while let Value::Apply(function, argument) = *self.values.get(value) {
            let Value::Lambda(_, body) = *self.values.get(function) else { break };
            if self.fuel == 0 {
                break;
            }
            self.fuel -= 1;
            value = self.values.instantiate(body, argument);
        }
        value
    }

    /// Gives the next computation its fuel.
    pub(super) fn refuel(&mut self) {
        self.fuel = FUEL;
    }

    fn step(&mut self, v: V) -> Option<V> {
        match *self.values.get(v) {
            Value::Var(id) => self.known.get(&id).copied(),
            Value::Def(id) if self.book.def(id).arity == 0 => self.unfold(id, &[]),
            Value::Apply(..) => self.step_apply(v),
            Value::NatPlus(count, rest) => {
                let reduced = self.computed(rest)?;
                let next = self.values.nat_plus(count, reduced);
                (next != v).then_some(next)
            }
            Value::Meet(a, b) => self.step_meet(a, b),
            _ => None,
        }
    }

    /// `whnf`, one level deeper in the computation.
    fn computed(&mut self, v: V) -> Option<V> {
        self.computing += 1;
        let result = self.whnf(v);
        self.computing -= 1;
        Some(result)
    }

    fn step_meet(&mut self, a: V, b: V) -> Option<V> {
        let left = self.computed(a)?;
        let right = self.computed(b)?;
        let literal = |value: &Value| match value {
            Value::Quantity(q) => Some(*q),
            _ => None,
        };
        match (literal(self.values.get(left)), literal(self.values.get(right))) {
            (Some(2), _) => Some(right),
            (_, Some(2)) => Some(left),
            (Some(0), _) => Some(left),
            (_, Some(0)) => Some(right),
            (Some(_), Some(_)) => Some(left),
            _ => None,
        }
    }

    fn step_apply(&mut self, v: V) -> Option<V> {
        let (head, arguments) = self.values.spine(v);
        let computed = self.computed(head)?;
        match *self.values.get(computed) {
            Value::Lambda(..) => {
                let mut value = computed;
                for (at, &argument) in arguments.iter().enumerate() {
                    let Value::Lambda(_, body) = *self.values.get(value) else {
                        return Some(self.values.apply_all(value, &arguments[at..]));
                    };
                    value = self.values.instantiate(body, argument);
                }
                Some(value)
            }
            Value::Def(id) => {
                let arity = self.book.def(id).arity;
                if arguments.len() < arity {
                    return None;
                }
                let result = self.unfold(id, &arguments[..arity])?;
                Some(self.values.apply_all(result, &arguments[arity..]))
            }
            _ if computed != head => Some(self.values.apply_all(computed, &arguments)),
            _ => None,
        }
    }

    /// The code of a definition at its arguments, unless it is stuck.
    fn unfold(&mut self, id: DefId, arguments: &[V]) -> Option<V> {
        if self.fuel == 0 {
            return None;
        }
        let body = match self.book.def(id).code {
            Code::Term(body) => body,
            Code::Primitive(primitive) => return self.unfold_primitive(primitive, arguments),
            Code::Open | Code::Foreign => return None,
        };
        let module = self.book.code_module(id);
        let mut scope = Scope::new(module);
        let at = self.book.def(id).coded_by?;
        let Item::Def { parameters, body: Body::Term(_), .. } =
            &self.book.modules[module.0 as usize].tree.declarations[at].item
        else {
            return None;
        };
        for (parameter, &argument) in parameters.iter().zip(arguments) {
            scope.push(parameter.name, argument);
        }
        self.computing += 1;
        let result = if self.computing > MAX_NESTED { Err(Stuck) } else { self.evaluate(&mut scope, body, None) };
        self.computing -= 1;
        result.ok()
    }

    /// The few primitives that types compute with.
    fn unfold_primitive(&mut self, primitive: Primitive, arguments: &[V]) -> Option<V> {
        let mut numbers = Vec::new();
        for &argument in arguments {
            let argument = self.computed(argument)?;
            numbers.push((argument, self.values.get(argument).clone()));
        }
        match (primitive, &numbers[..]) {
            (Primitive::NatAdd, [(_, Value::Nat(a)), (b, _)]) => Some(self.values.nat_plus(*a, *b)),
            (Primitive::NatAdd, [(_, Value::NatPlus(a, rest)), (b, _)]) => {
                let sum = self.apply_def_named("Nat.add", &[*rest, *b])?;
                Some(self.values.nat_plus(*a, sum))
            }
            (_, [(_, Value::Nat(a)), (_, Value::Nat(b))]) => {
                let value = match primitive {
                    Primitive::NatSub => a.saturating_sub(*b),
                    Primitive::NatMul => a.saturating_mul(*b),
                    Primitive::NatDiv => a.checked_div(*b).unwrap_or(0),
                    Primitive::NatMod => a.checked_rem(*b).unwrap_or(*a),
                    _ => return None,
                };
                Some(self.values.add(Value::Nat(value)))
            }
            _ => None,
        }
    }

    fn apply_def_named(&mut self, name: &str, arguments: &[V]) -> Option<V> {
        match self.book.base_global(name)? {
            super::book::Global::Def(id) => Some(self.apply_def(id, arguments)),
            super::book::Global::Data(_) => None,
        }
    }

    /// Whether a value of type `found` may stand where `wanted` is asked for.
    pub(super) fn fits(&mut self, found: V, wanted: V) -> Fit {
        self.refuel();
        self.compared.clear();
        self.compare(found, wanted, true)
    }

    fn compare(&mut self, a: V, b: V, ordered: bool) -> Fit {
        if a == b {
            return Fit::Yes;
        }
        if let Some(&known) = self.compared.get(&(a, b, ordered)) {
            return known;
        }
        if self.computing > MAX_NESTED || self.fuel == 0 {
            return Fit::Undecided;
        }
        self.computing += 1;
        let fit = self.compare_heads(a, b, ordered);
        self.computing -= 1;
        self.compared.insert((a, b, ordered), fit);
        fit
    }

    fn compare_heads(&mut self, a: V, b: V, ordered: bool) -> Fit {
        if let Some(fit) = self.compare_spines(a, b) {
            return fit;
        }
        let (a, b) = (self.whnf(a), self.whnf(b));
        if a == b {
            return Fit::Yes;
        }
        if self.fuel == 0 || self.computing > MAX_NESTED {
            // Neither side need be computed to its head.
            return Fit::Undecided;
        }
        match (self.values.get(a).clone(), self.values.get(b).clone()) {
            (Value::Any | Value::Opaque(_), _) | (_, Value::Any | Value::Opaque(_)) => Fit::Undecided,
            (Value::Data(x, xs), Value::Data(y, ys)) if x == y => self.compare_all(&xs, &ys),
            (Value::Construct(x, xs), Value::Construct(y, ys)) if x == y => self.compare_all(&xs, &ys),
            (Value::Pi(p, _, x, xs), Value::Pi(q, _, y, ys)) => {
                if p != q {
                    return Fit::No;
                }
                let domains = self.compare(y, x, ordered);
                domains.and(self.compare_under(xs, ys, ordered))
            }
            (Value::Lambda(_, x), Value::Lambda(_, y)) => self.compare_under(x, y, false),
            (Value::Lambda(_, x), _) => self.compare_eta(x, b),
            (_, Value::Lambda(_, y)) => self.compare_eta(y, a),
            (Value::Kind(x), Value::Kind(y)) if ordered => self.compare_kinds(x, y),
            (Value::Kind(x), Value::Kind(y)) => self.compare(x, y, false),
            (Value::Equal(x, y, t), Value::Equal(z, w, u)) => {
                let ends = self.compare(x, z, false).and(self.compare(y, w, false));
                // A proof is not checked, so that its equation must match is not either.
                match ends.and(self.compare(t, u, false)) {
                    Fit::Yes => Fit::Yes,
                    _ => Fit::Undecided,
                }
            }
            (Value::NatPlus(x, m), Value::NatPlus(y, n)) => {
                let common = x.min(y);
                let (m, n) = (self.values.nat_plus(x - common, m), self.values.nat_plus(y - common, n));
                self.compare(m, n, false)
            }
            (Value::NatPlus(x, m), Value::Nat(n)) | (Value::Nat(n), Value::NatPlus(x, m)) => {
                if n < x {
                    return Fit::No;
                }
                let n = self.values.add(Value::Nat(n - x));
                self.compare(m, n, false)
            }
            (Value::Meet(x, y), Value::Meet(z, w)) => self.compare(x, z, false).and(self.compare(y, w, false)),
            (Value::Apply(..), _) | (_, Value::Apply(..)) => self.compare_stuck(a, b),
            (Value::Def(_), _) | (_, Value::Def(_)) => self.compare_stuck(a, b),
            (Value::Meet(..), _) | (_, Value::Meet(..)) => Fit::Undecided,
            _ => Fit::No,
        }
    }

    /// Two calls of one definition with equal arguments are equal, computed or not.
    fn compare_spines(&mut self, a: V, b: V) -> Option<Fit> {
        let (Value::Apply(..), Value::Apply(..)) = (self.values.get(a), self.values.get(b)) else {
            return None;
        };
        let ((f, xs), (g, ys)) = (self.values.spine(a), self.values.spine(b));
        let same = f == g && xs.len() == ys.len() && matches!(self.values.get(f), Value::Def(_));
        if !same {
            return None;
        }
        let fit = self.compare_all(&xs, &ys);
        let injective = match *self.values.get(f) {
            Value::Def(id) => self.is_abstract(id),
            _ => false,
        };
        (fit == Fit::Yes || injective).then_some(fit)
    }

    /// An abstract type of Base, or an open law: its applications are equal only if their parts are.
    fn is_abstract(&self, id: DefId) -> bool {
        self.book.def(id).code == Code::Open
    }

    fn compare_all(&mut self, xs: &[V], ys: &[V]) -> Fit {
        xs.iter().zip(ys).fold(Fit::Yes, |fit, (&x, &y)| match fit {
            Fit::No => Fit::No,
            fit => fit.and(self.compare(x, y, false)),
        })
    }

    fn compare_under(&mut self, x: V, y: V, ordered: bool) -> Fit {
        let id = self.fresh_var(crate::syntax::keyword::WILDCARD);
        let var = self.values.var(id);
        let (x, y) = (self.values.instantiate(x, var), self.values.instantiate(y, var));
        self.compare(x, y, ordered)
    }

    fn compare_eta(&mut self, body: V, function: V) -> Fit {
        let id = self.fresh_var(crate::syntax::keyword::WILDCARD);
        let var = self.values.var(id);
        let x = self.values.instantiate(body, var);
        let y = self.values.add(Value::Apply(function, var));
        self.compare(x, y, false)
    }

    /// `Kind(x)` where `Kind(y)` is wanted: at least as many uses.
    fn compare_kinds(&mut self, x: V, y: V) -> Fit {
        let (x, y) = (self.whnf(x), self.whnf(y));
        match (self.values.get(x).clone(), self.values.get(y).clone()) {
            (Value::Quantity(2), _) | (_, Value::Quantity(0 | 1)) => Fit::Yes,
            (Value::Meet(a, b), _) => self.compare_kinds(a, y).and(self.compare_kinds(b, y)),
            (_, Value::Meet(a, b)) => match (self.compare_kinds(x, a), self.compare_kinds(x, b)) {
                (Fit::Yes, _) | (_, Fit::Yes) => Fit::Yes,
                (left, right) => left.and(right),
            },
            _ => self.compare(x, y, false),
        }
    }

    /// At least one side is a call that does not compute.
    fn compare_stuck(&mut self, a: V, b: V) -> Fit {
        let ((f, xs), (g, ys)) = (self.values.spine(a), self.values.spine(b));
        let abstract_head = |checker: &Self, v: V| match *checker.values.get(v) {
            Value::Def(id) => checker.is_abstract(id),
            Value::Var(_) => true,
            _ => false,
        };
        let rigid = |checker: &Self, v: V| {
            abstract_head(checker, v)
                || !matches!(checker.values.get(v), Value::Def(_) | Value::Apply(..) | Value::Any | Value::Opaque(_))
        };
        if f == g && xs.len() == ys.len() {
            let fit = self.compare_all(&xs, &ys);
            return if fit == Fit::Yes || abstract_head(self, f) { fit } else { Fit::Undecided };
        }
        if rigid(self, f) && rigid(self, g) {
            return Fit::No;
        }
        Fit::Undecided
    }

    /// Whether the type says or carries an equation.
    pub(super) fn is_proposition(&mut self, ty: V) -> bool {
        self.refuel();
        let mut pending = vec![(ty, 0)];
        while let Some((next, depth)) = pending.pop() {
            let next = self.whnf(next);
            match self.values.get(next).clone() {
                Value::Equal(..) => return true,
                // A refutation: it answers nothing that runs.
                Value::Data(id, _) if id == self.builtin.empty => return true,
                Value::Pi(_, _, _, codomain) if depth < 1_000 => {
                    let id = self.fresh_var(crate::syntax::keyword::WILDCARD);
                    let var = self.values.var(id);
                    let codomain = self.values.instantiate(codomain, var);
                    pending.push((codomain, depth + 1));
                }
                Value::Data(id, arguments) if id == self.builtin.sigma && depth < 1_000 => {
                    let Some(&family) = arguments.get(3) else { continue };
                    if let Value::Lambda(_, body) = *self.values.get(family) {
                        let id = self.fresh_var(crate::syntax::keyword::WILDCARD);
                        let var = self.values.var(id);
                        let body = self.values.instantiate(body, var);
                        pending.push((body, depth + 1));
                    }
                }
                _ => {}
            }
        }
        false
    }

    /// The module whose names a definition's messages use.
    pub(super) fn module_of(&self, id: DefId) -> ModuleId {
        self.book.code_module(id)
    }
}
