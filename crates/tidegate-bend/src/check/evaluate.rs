//! Terms of the syntax tree as values.
//!
//! Evaluation builds values and computes nothing but local definitions; `normal` computes. A match
//! is taken only if its scrutinees are known; otherwise the whole definition is stuck and stands for
//! itself.

use super::book::{ConstructorId, DefId, Global};
use super::scope::Scope;
use super::value::{Value, V};
use super::Checker;
use crate::syntax::{
    Argument, Binder, Expr, ExprId, FillLength, Local, Match, Operator, Pattern, PatternId, Quantity, Symbol, Tree,
};

/// A match whose scrutinee is not known.
pub(super) struct Stuck;

/// Terms within terms, those of unfolded definitions included; it bounds the stack.
const MAX_NESTED: u32 = 40_000;

pub(super) type Evaluated = Result<V, Stuck>;

/// How a pattern meets a value.
enum Meeting {
    Fits,
    Fails,
    Unknown,
}

impl Checker<'_> {
    /// The value of a term; an opaque one if it cannot be known.
    pub(super) fn eval(&mut self, scope: &mut Scope, id: ExprId) -> V {
        let mark = scope.mark();
        let result = self.evaluate(scope, id, None);
        scope.truncate(mark);
        result.unwrap_or_else(|Stuck| self.values.opaque())
    }

    pub(super) fn tree_of(&self, scope: &Scope) -> &Tree {
        &self.book.modules[scope.module.0 as usize].tree
    }

    /// `operators` is the head of the type whose methods the operators are.
    pub(super) fn evaluate(&mut self, scope: &mut Scope, id: ExprId, operators: Option<Symbol>) -> Evaluated {
        if self.evaluating > MAX_NESTED {
            return Err(Stuck);
        }
        self.evaluating += 1;
        let result = self.evaluate_expr(scope, id, operators);
        self.evaluating -= 1;
        result
    }

    fn evaluate_expr(&mut self, scope: &mut Scope, id: ExprId, operators: Option<Symbol>) -> Evaluated {
        let expr = self.tree_of(scope).expr(id).clone();
        match expr {
            Expr::Name(name) => Ok(self.eval_name(scope, name)),
            Expr::Call { function, arguments, .. } => self.eval_call(scope, function, &arguments),
            Expr::Group(body, ty) => {
                let operators = ty.and_then(|ty| self.operator_head(scope, ty)).or(operators);
                self.evaluate(scope, body, operators)
            }
            Expr::Ascribe(body, _) | Expr::Rewrite { body, .. } => self.evaluate(scope, body, None),
            Expr::Binary(operator, left, right) => {
                let left = self.evaluate(scope, left, operators)?;
                let right = self.evaluate(scope, right, operators)?;
                Ok(self.eval_operator(scope, operator, operators, left, right))
            }
            Expr::Lambda(binder, body) => {
                let body = self.eval_under(scope, binder, body)?;
                Ok(self.values.add(Value::Lambda(binder.name, body)))
            }
            Expr::Match(found) => self.eval_match(scope, &found),
            Expr::Block(locals, tail) => {
                for local in &locals {
                    self.eval_local(scope, local)?;
                }
                self.evaluate(scope, tail, operators)
            }
            Expr::Construct(..) | Expr::Tuple(_) | Expr::List(_) | Expr::Successor(..) | Expr::Fill { .. } => {
                self.eval_data(scope, expr)
            }
            Expr::Family(..) | Expr::Plus(_) | Expr::Forall(..) | Expr::Exists(..) | Expr::Equal(..) => {
                self.eval_type(scope, expr)
            }
            _ => self.eval_atom(scope, &expr),
        }
    }

    /// Literals and the constants among types; what is never computed with is opaque.
    fn eval_atom(&mut self, scope: &mut Scope, expr: &Expr) -> Evaluated {
        Ok(match *expr {
            Expr::Nat(value) => self.values.add(Value::Nat(value)),
            Expr::U32(value) => self.values.add(Value::U32(value)),
            Expr::F32(value) => self.values.add(Value::F32(value)),
            Expr::Char(value) => self.values.add(Value::Char(value)),
            Expr::Text(value) => self.values.add(Value::Text(value)),
            Expr::Type => self.values.kind(1),
            Expr::Data => self.values.kind(2),
            Expr::Kind(quantity) => {
                let quantity = self.evaluate(scope, quantity, None)?;
                self.values.add(Value::Kind(quantity))
            }
            Expr::Quant => self.values.add(Value::Quant),
            Expr::Quantity(value) => self.values.add(Value::Quantity(value)),
            Expr::Reflexivity => self.values.add(Value::Reflexivity),
            _ => self.values.opaque(),
        })
    }

    /// Constructions, and what is written like one.
    fn eval_data(&mut self, scope: &mut Scope, expr: Expr) -> Evaluated {
        Ok(match expr {
            Expr::Construct(name, fields) => {
                let Some(constructor) = self.book.constructor_named(scope.module, name) else {
                    return Ok(self.values.any());
                };
                let fields = self.eval_all(scope, &fields)?;
                self.construct(constructor, fields)
            }
            Expr::Tuple(parts) => {
                let parts = self.eval_all(scope, &parts)?;
                self.tuple(&parts)
            }
            Expr::List(items) => {
                let items = self.eval_all(scope, &items)?;
                let nil = self.construct(self.builtin.nil, Vec::new());
                items.into_iter().rev().fold(nil, |tail, head| self.construct(self.builtin.con, vec![head, tail]))
            }
            Expr::Successor(count, rest) => {
                let rest = self.evaluate(scope, rest, None)?;
                self.values.nat_plus(count, rest)
            }
            Expr::Fill { value, of, unit, length } => {
                let of = self.evaluate(scope, of, None)?;
                let value = self.evaluate(scope, value, None)?;
                let length = match unit {
                    FillLength::Depth => self.evaluate(scope, length, None)?,
                    FillLength::Count => self.fill_depth(scope, length),
                };
                self.apply_def(self.builtin.array_new, &[of, length, value])
            }
            _ => self.values.opaque(),
        })
    }

    /// Types made of types.
    fn eval_type(&mut self, scope: &mut Scope, expr: Expr) -> Evaluated {
        Ok(match expr {
            Expr::Family(head, arguments) => {
                let arguments = self.eval_all(scope, &arguments)?;
                self.eval_family(scope, head, arguments, 1)
            }
            Expr::Plus(inner) => self.eval_plus(scope, inner)?,
            Expr::Forall(binder, domain, codomain) => {
                let domain = self.evaluate(scope, domain, None)?;
                let codomain = self.eval_under(scope, binder, codomain)?;
                self.values.add(Value::Pi(binder.quantity, binder.name, domain, codomain))
            }
            Expr::Exists(binder, domain, codomain) => {
                let domain = self.evaluate(scope, domain, None)?;
                let codomain = self.eval_under(scope, binder, codomain)?;
                let family = self.values.add(Value::Lambda(binder.name, codomain));
                self.apply_def(self.builtin.exists, &[domain, family])
            }
            Expr::Equal(left, right, ty, unequal) => {
                let left = self.evaluate(scope, left, None)?;
                let right = self.evaluate(scope, right, None)?;
                let ty = self.evaluate(scope, ty, None)?;
                let equal = self.values.add(Value::Equal(left, right, ty));
                if !unequal {
                    return Ok(equal);
                }
                let empty = self.values.add(Value::Data(self.builtin.empty, Box::new([])));
                self.arrow(equal, empty)
            }
            _ => self.values.opaque(),
        })
    }

    fn eval_all(&mut self, scope: &mut Scope, ids: &[ExprId]) -> Result<Vec<V>, Stuck> {
        ids.iter().map(|&id| self.evaluate(scope, id, None)).collect()
    }

    fn eval_name(&mut self, scope: &Scope, name: Symbol) -> V {
        if let Some(value) = scope.get(name) {
            return value;
        }
        match self.book.global(scope.module, name) {
            Some(Global::Def(id)) => self.values.add(Value::Def(id)),
            Some(Global::Data(id)) => self.values.add(Value::Data(id, Box::new([]))),
            None => self.values.any(),
        }
    }

    fn eval_call(&mut self, scope: &mut Scope, function: ExprId, arguments: &[Argument]) -> Evaluated {
        let mut value = self.evaluate(scope, function, None)?;
        for argument in arguments {
            let argument = self.evaluate(scope, argument.value, None)?;
            value = match *self.values.get(value) {
                Value::Lambda(_, body) => self.values.instantiate(body, argument),
                _ => self.values.add(Value::Apply(value, argument)),
            };
        }
        Ok(value)
    }

    fn eval_under(&mut self, scope: &mut Scope, binder: Binder, body: ExprId) -> Evaluated {
        let id = self.fresh_var(binder.name);
        let var = self.values.var(id);
        let mark = scope.mark();
        scope.push(binder.name, var);
        let body = self.evaluate(scope, body, None);
        scope.truncate(mark);
        Ok(self.values.abstract_over(body?, id))
    }

    /// `T<arguments>`, with the quantities it leaves out.
    fn eval_family(&mut self, scope: &Scope, head: ExprId, mut arguments: Vec<V>, quantity: u8) -> V {
        let Expr::Name(name) = *self.tree_of(scope).expr(head) else {
            return self.values.any();
        };
        let Some(Global::Data(id)) = self.book.global(scope.module, name) else {
            return self.values.any();
        };
        let data = self.book.data(id);
        if arguments.len() + data.quantities == data.parameters {
            let fill = self.values.add(Value::Quantity(quantity));
            arguments.splice(0..0, std::iter::repeat_n(fill, data.quantities));
        }
        if arguments.len() != data.parameters {
            return self.values.any();
        }
        self.values.add(Value::Data(id, arguments.into()))
    }

    /// `+T<..>`: the leading quantities of `T` are `&2`.
    fn eval_plus(&mut self, scope: &mut Scope, inner: ExprId) -> Evaluated {
        let expr = self.tree_of(scope).expr(inner).clone();
        let (head, arguments) = match expr {
            Expr::Family(head, arguments) => (head, self.eval_all(scope, &arguments)?),
            _ => (inner, Vec::new()),
        };
        let family = self.eval_family(scope, head, arguments, 2);
        let Value::Data(id, arguments) = self.values.get(family).clone() else {
            return self.evaluate(scope, inner, None);
        };
        let many = self.values.add(Value::Quantity(2));
        let mut arguments = arguments.into_vec();
        let quantities = self.book.data(id).quantities.min(arguments.len());
        arguments[..quantities].fill(many);
        Ok(self.values.add(Value::Data(id, arguments.into())))
    }

    /// The name at the head of a type, whose methods the operators of a group call.
    pub(super) fn operator_head(&self, scope: &Scope, ty: ExprId) -> Option<Symbol> {
        match self.tree_of(scope).expr(ty) {
            Expr::Name(name) => Some(*name),
            Expr::Family(head, _) | Expr::Call { function: head, .. } | Expr::Plus(head) => {
                self.operator_head(scope, *head)
            }
            _ => None,
        }
    }

    /// The method that an operator calls on the type named `head`.
    pub(super) fn operator_method(&self, scope: &Scope, operator: Operator, head: Symbol) -> Option<DefId> {
        let name = format!("{}.{}", self.book.names.text(head), operator.method()?);
        let name = self.book.names.find(&name)?;
        match self.book.global(scope.module, name) {
            Some(Global::Def(id)) => Some(id),
            _ => None,
        }
    }

    fn eval_operator(&mut self, scope: &Scope, operator: Operator, operators: Option<Symbol>, left: V, right: V) -> V {
        match operator {
            Operator::Arrow => self.arrow(left, right),
            Operator::Pair => self.apply_def(self.builtin.pair, &[left, right]),
            Operator::Either => self.apply_def(self.builtin.or_type, &[left, right]),
            Operator::Cons => self.construct(self.builtin.con, vec![left, right]),
            Operator::Meet => self.values.add(Value::Meet(left, right)),
            Operator::Append => self.apply_def(self.builtin.append, &[left, right]),
            Operator::And => self.apply_def(self.builtin.and, &[left, right]),
            Operator::Or => self.apply_def(self.builtin.or, &[left, right]),
            _ => {
                let method = operators.and_then(|head| self.operator_method(scope, operator, head));
                match method {
                    Some(method) => self.apply_def(method, &[left, right]),
                    None => self.values.any(),
                }
            }
        }
    }

    fn eval_local(&mut self, scope: &mut Scope, local: &Local) -> Result<(), Stuck> {
        match local {
            Local::Let(binder, _, value) | Local::Write(binder, value) => {
                let value = self.evaluate(scope, *value, None)?;
                scope.push(binder.name, value);
            }
            Local::Parallel(binders, values) => {
                let values = self.eval_all(scope, values)?;
                for (binder, value) in binders.iter().zip(values) {
                    scope.push(binder.name, value);
                }
            }
            Local::Destructure(pattern, value) => {
                let value = self.evaluate(scope, *value, None)?;
                match self.meet(scope, *pattern, value) {
                    Meeting::Fits => {}
                    _ => return Err(Stuck),
                }
            }
        }
        Ok(())
    }

    fn eval_match(&mut self, scope: &mut Scope, found: &Match) -> Evaluated {
        let scrutinees = self.eval_all(scope, &found.scrutinees)?;
        for case in &found.cases {
            let mark = scope.mark();
            let mut verdict = Meeting::Fits;
            for (&pattern, &value) in case.patterns.iter().zip(&scrutinees) {
                match self.meet(scope, pattern, value) {
                    Meeting::Fits => {}
                    Meeting::Fails => {
                        verdict = Meeting::Fails;
                        break;
                    }
                    Meeting::Unknown => verdict = Meeting::Unknown,
                }
            }
            match verdict {
                Meeting::Fits => return self.evaluate(scope, case.body, None),
                Meeting::Fails => scope.truncate(mark),
                Meeting::Unknown => return Err(Stuck),
            }
        }
        Err(Stuck)
    }

    /// Binds the names of a pattern to the parts of a value.
    fn meet(&mut self, scope: &mut Scope, pattern: PatternId, value: V) -> Meeting {
        let pattern = self.tree_of(scope).pattern(pattern).clone();
        if let Pattern::Bind(binder) = pattern {
            scope.push(binder.name, value);
            return Meeting::Fits;
        }
        let known = self.whnf(value);
        match pattern {
            Pattern::Bind(_) => Meeting::Fits,
            Pattern::Successor(count, rest) => match *self.values.get(known) {
                Value::Nat(value) if value >= count => {
                    let rest_value = self.values.add(Value::Nat(value - count));
                    self.meet(scope, rest, rest_value)
                }
                Value::NatPlus(more, inner) if more >= count => {
                    let rest_value = self.values.nat_plus(more - count, inner);
                    self.meet(scope, rest, rest_value)
                }
                Value::Nat(_) => Meeting::Fails,
                _ => Meeting::Unknown,
            },
            Pattern::Nat(wanted) => match *self.values.get(known) {
                Value::Nat(value) if value == wanted => Meeting::Fits,
                Value::NatPlus(more, _) if more <= wanted => Meeting::Unknown,
                Value::Nat(_) | Value::NatPlus(..) => Meeting::Fails,
                _ => Meeting::Unknown,
            },
            Pattern::U32(wanted) => self.meet_literal(known, Value::U32(wanted)),
            Pattern::F32(wanted) => self.meet_literal(known, Value::F32(wanted)),
            Pattern::Char(wanted) => self.meet_literal(known, Value::Char(wanted)),
            Pattern::Text(wanted) => self.meet_literal(known, Value::Text(wanted)),
            Pattern::Construct(name, fields) => match self.book.constructor_named(scope.module, name) {
                Some(constructor) => self.meet_constructor(scope, constructor, &fields, known),
                None => Meeting::Unknown,
            },
            Pattern::Cons(head, tail) => self.meet_constructor(scope, self.builtin.con, &[head, tail], known),
            Pattern::Tuple(parts) => self.meet_sequence(scope, &parts, known, true),
            Pattern::List(parts) => self.meet_sequence(scope, &parts, known, false),
        }
    }

    fn meet_literal(&self, known: V, wanted: Value) -> Meeting {
        let found = self.values.get(known);
        if *found == wanted {
            Meeting::Fits
        } else if std::mem::discriminant(found) == std::mem::discriminant(&wanted) {
            Meeting::Fails
        } else {
            Meeting::Unknown
        }
    }

    fn meet_constructor(
        &mut self,
        scope: &mut Scope,
        constructor: ConstructorId,
        patterns: &[PatternId],
        known: V,
    ) -> Meeting {
        let Value::Construct(found, fields) = self.values.get(known).clone() else {
            return Meeting::Unknown;
        };
        if found != constructor {
            return Meeting::Fails;
        }
        let mut verdict = Meeting::Fits;
        for (&pattern, &field) in patterns.iter().zip(fields.iter()) {
            match self.meet(scope, pattern, field) {
                Meeting::Fits => {}
                Meeting::Fails => return Meeting::Fails,
                Meeting::Unknown => verdict = Meeting::Unknown,
            }
        }
        verdict
    }

    /// `(a, b, c)` is nested pairs, `[a, b]` ends in the empty list.
    fn meet_sequence(&mut self, scope: &mut Scope, parts: &[PatternId], known: V, pairs: bool) -> Meeting {
        let constructor = if pairs { self.builtin.tuple } else { self.builtin.con };
        let mut rest = known;
        for (at, &part) in parts.iter().enumerate() {
            if pairs && at + 1 == parts.len() {
                return self.meet(scope, part, rest);
            }
            let known = self.whnf(rest);
            let Value::Construct(found, fields) = self.values.get(known).clone() else {
                return Meeting::Unknown;
            };
            if found != constructor {
                return Meeting::Fails;
            }
            match self.meet(scope, part, fields[0]) {
                Meeting::Fits => rest = fields[1],
                other => return other,
            }
        }
        let known = self.whnf(rest);
        match self.values.get(known) {
            Value::Construct(found, _) if *found == self.builtin.nil => Meeting::Fits,
            Value::Construct(..) => Meeting::Fails,
            _ => Meeting::Unknown,
        }
    }

    /// The depth of an array of that many slots.
    fn fill_depth(&mut self, scope: &mut Scope, length: ExprId) -> V {
        let length = self.eval(scope, length);
        let length = self.whnf(length);
        match *self.values.get(length) {
            Value::Nat(count) if count.is_power_of_two() => {
                self.values.add(Value::Nat(u64::from(count.trailing_zeros())))
            }
            _ => self.values.opaque(),
        }
    }

    pub(super) fn construct(&mut self, constructor: ConstructorId, fields: Vec<V>) -> V {
        if constructor == self.builtin.zero {
            return self.values.add(Value::Nat(0));
        }
        if constructor == self.builtin.succ && fields.len() == 1 {
            return self.values.nat_plus(1, fields[0]);
        }
        self.values.add(Value::Construct(constructor, fields.into()))
    }

    fn tuple(&mut self, parts: &[V]) -> V {
        let (last, front) = match parts.split_last() {
            Some(split) => split,
            None => return self.values.any(),
        };
        front.iter().rev().fold(*last, |rest, &part| self.construct(self.builtin.tuple, vec![part, rest]))
    }

    pub(super) fn apply_def(&mut self, def: DefId, arguments: &[V]) -> V {
        let head = self.values.add(Value::Def(def));
        self.values.apply_all(head, arguments)
    }

    pub(super) fn arrow(&mut self, domain: V, codomain: V) -> V {
        let name = crate::syntax::keyword::WILDCARD;
        self.values.add(Value::Pi(Quantity::One, name, domain, codomain))
    }
}
