//! Terms: finding a type, and checking against one.

use super::book::{ConstructorId, Global};
use super::value::{Value, V};
use super::{Checked, Checker, Notice, Origin, Variable};
use crate::diagnostic::Span;
use crate::elaborated::{Term, TermId};
use crate::syntax::{Binder, Expr, ExprId, FillLength, Operator, Quantity, Symbol};

/// A checked term and its type.
pub(super) type Inferred = (TermId, V);

impl Checker<'_> {
    /// The type of a term. `operators` names the type whose methods the term's operators call.
    pub(super) fn infer(&mut self, id: ExprId, operators: Option<Symbol>) -> Checked<Inferred> {
        match *self.tree().expr(id) {
            Expr::Name(name) => self.infer_name(id, name),
            Expr::Call { .. } => self.infer_call(id),
            Expr::Group(body, ty) => self.infer_group(body, ty, operators),
            Expr::Ascribe(term, ty) => self.infer_ascribed(term, ty),
            Expr::Binary(operator, left, right) => self.infer_operator(id, operator, left, right, operators),
            Expr::Do(_) => self.infer_do(id),
            Expr::Block(..) => self.infer_block(id, operators),
            Expr::Nat(_) | Expr::U32(_) | Expr::F32(_) | Expr::Char(_) | Expr::Text(_) => Ok(self.infer_literal(id)),
            Expr::Construct(..) | Expr::Tuple(_) | Expr::List(_) => self.infer_construct(id),
            Expr::Successor(count, rest) => self.infer_successor(count, rest),
            Expr::Fill { value, of, unit, length } => self.infer_fill(value, of, unit, length),
            Expr::Index(array, index) => self.infer_index(array, index, None),
            Expr::Write(array, index, value) => self.infer_index(array, index, Some(value)),
            Expr::Type
            | Expr::Data
            | Expr::Kind(_)
            | Expr::Quant
            | Expr::Quantity(_)
            | Expr::Family(..)
            | Expr::Plus(_)
            | Expr::Forall(..)
            | Expr::Exists(..)
            | Expr::Equal(..) => self.infer_type(id),
            Expr::Lambda(..) | Expr::Match(_) | Expr::Reflexivity | Expr::Rewrite { .. } | Expr::Hole(_) => {
                self.cannot_infer(id)
            }
        }
    }

    /// `(body : T)`: a type for the operators inside, and for a body without one of its own.
    fn infer_group(&mut self, body: ExprId, ty: Option<ExprId>, operators: Option<Symbol>) -> Checked<Inferred> {
        if let (Some(ty), true) = (ty, self.needs_type(body)) {
            return self.infer_ascribed(body, ty);
        }
        let operators = self.group_operators(ty, operators)?;
        self.infer(body, operators)
    }

    fn infer_ascribed(&mut self, term: ExprId, ty: ExprId) -> Checked<Inferred> {
        let ty = self.check_type(ty)?;
        Ok((self.check(term, ty, None)?, ty))
    }

    fn infer_successor(&mut self, count: u64, rest: ExprId) -> Checked<Inferred> {
        let nat = self.data_type(self.builtin.nat, &[]);
        let rest = self.check(rest, nat, None)?;
        Ok((self.add(Term::Successor(count, rest)), nat))
    }

    fn cannot_infer(&mut self, id: ExprId) -> Checked<Inferred> {
        if self.lenient {
            let any = self.values.any();
            return Ok((self.check(id, any, None)?, any));
        }
        let what = match self.tree().expr(id) {
            Expr::Lambda(..) => "a function without a type",
            Expr::Match(_) => "a match without a type",
            Expr::Hole(_) => "a hole without a type",
            Expr::Reflexivity | Expr::Rewrite { .. } => "a proof without a claim",
            _ => "a constructor whose type arguments its fields do not tell",
        };
        let error = self.mismatch("an annotated term", what, Some(self.span(id)));
        let error = error.with_note("write {x : T} to give a term x its type T.");
        Err(self.with_context(Box::new(error)))
    }

    /// Checks that a term has the type `want`.
    pub(super) fn check(&mut self, id: ExprId, want: V, operators: Option<Symbol>) -> Checked<TermId> {
        match self.tree().expr(id) {
            Expr::Lambda(binder, body) => {
                let (binder, body) = (*binder, *body);
                self.check_lambda(id, binder, body, want)
            }
            Expr::Group(body, ty) => {
                let (body, ty) = (*body, *ty);
                let operators = self.group_operators(ty, operators)?;
                self.check(body, want, operators)
            }
            Expr::Block(..) => self.check_block(id, want, operators),
            Expr::Match(_) => self.check_match(id, want),
            Expr::Construct(..) | Expr::Tuple(_) | Expr::List(_) | Expr::Binary(Operator::Cons, ..) => {
                self.check_construct(id, want)
            }
            Expr::Hole(name) => {
                let name = self.book.names.text(*name).to_owned();
                let expected = self.show(want);
                let error = self.mismatch(expected, format!("?{name}"), Some(self.span(id)));
                Err(self
                    .with_context(Box::new(error.with_note("a hole stands for a term that is still to be written."))))
            }
            Expr::Reflexivity => self.check_reflexivity(id, want),
            Expr::Rewrite { .. } => self.check_rewrite(id),
            _ => {
                let (term, found) = self.infer(id, operators)?;
                if self.lenient || self.may_stand(found, want) {
                    return Ok(term);
                }
                let (expected, observed) = (self.show(want), self.show(found));
                let error = self.mismatch(expected, observed, Some(self.span(id)));
                let error = self.maybe_note_missing_arguments(error, id);
                Err(self.with_context(error))
            }
        }
    }

    /// A function where its result was meant.
    pub(super) fn maybe_note_missing_arguments(
        &self,
        error: crate::diagnostic::Diagnostic,
        id: ExprId,
    ) -> Box<crate::diagnostic::Diagnostic> {
        let observed = error.observed.as_deref().unwrap_or("");
        let is_call = matches!(self.tree().expr(id), Expr::Call { .. } | Expr::Name(_));
        Box::new(if is_call && observed.contains(" -> ") && !error.expected.contains(" -> ") {
            error.with_note("the call leaves out arguments: what is observed is a function that waits for them.")
        } else {
            error
        })
    }

    /// The operators of `(body : T)` are those of `T`.
    fn group_operators(&mut self, ty: Option<ExprId>, outer: Option<Symbol>) -> Checked<Option<Symbol>> {
        let Some(ty) = ty else { return Ok(outer) };
        self.check_type(ty)?;
        Ok(self.operator_head(&self.scope, ty))
    }

    /// Whether a term has no type of its own, so that the one after the colon must be it.
    fn needs_type(&self, id: ExprId) -> bool {
        match self.tree().expr(id) {
            Expr::Group(inner, None) => self.needs_type(*inner),
            Expr::Lambda(..)
            | Expr::Match(_)
            | Expr::Construct(..)
            | Expr::List(_)
            | Expr::Binary(Operator::Cons, ..) => true,
            _ => false,
        }
    }

    fn infer_name(&mut self, id: ExprId, name: Symbol) -> Checked<Inferred> {
        if let Some(value) = self.scope.get(name) {
            let Value::Var(var) = *self.values.get(value) else {
                let any = self.values.any();
                return Ok((self.erased(), any));
            };
            self.use_variable(var, self.span(id))?;
            let ty = self.variable(var).ty;
            return Ok((self.add(Term::Var(var)), ty));
        }
        match self.book.global(self.scope.module, name) {
            Some(Global::Def(def)) => self.infer_def(id, def, &[]),
            Some(Global::Data(data)) => self.infer_bare_family(id, data),
            None => Err(self.unknown_name(name, self.span(id))),
        }
    }

    fn infer_bare_family(&mut self, id: ExprId, data: super::DataId) -> Checked<Inferred> {
        let declared = self.book.data(data);
        if declared.parameters > 0 {
            let name = self.book.shown(self.scope.module, declared.module, declared.name);
            let plural = if declared.parameters == 1 { "" } else { "s" };
            let expected = format!("{name}<..> with {} argument{plural}", declared.parameters);
            let error = self.mismatch(expected, name, Some(self.span(id)));
            return Err(self.with_context(Box::new(error)));
        }
        let ty = self.data_kind(data);
        Ok((self.erased(), ty))
    }

    pub(super) fn unknown_name(&mut self, name: Symbol, span: Span) -> Box<crate::diagnostic::Diagnostic> {
        let text = self.book.names.text(name).to_owned();
        let mut error = self.mismatch("a defined name", text.clone(), Some(span));
        if self.book.constructor_named(self.scope.module, name).is_some() {
            error = error
                .with_note(format!("{text} is a constructor: its fields are written in {{}}, even if it has none."));
        } else if let Some(advice) = self.advice_about(&text) {
            error = error.with_note(advice);
        }
        self.with_context(Box::new(error))
    }

    /// What the writer of an unknown name may have meant.
    fn advice_about(&self, text: &str) -> Option<String> {
        let in_base = self.book.base_global(text).is_some();
        if in_base && !self.book.base_visible {
            return Some(format!("{text} is in Base: start the file with 'import Base'."));
        }
        let close = self.book.closest_name(self.scope.module, text)?;
        Some(format!("did you mean {close}?"))
    }

    fn infer_literal(&mut self, id: ExprId) -> Inferred {
        let (term, ty) = match *self.tree().expr(id) {
            Expr::Nat(value) => (Term::Nat(value), self.data_type(self.builtin.nat, &[])),
            Expr::U32(value) => (Term::U32(value), self.values.add(Value::Def(self.builtin.u32))),
            Expr::F32(value) => (Term::F32(value), self.values.add(Value::Def(self.builtin.f32))),
            Expr::Char(value) => (Term::Char(value), self.data_type(self.builtin.char, &[])),
            Expr::Text(value) => (Term::Text(value), self.data_type(self.builtin.string, &[])),
            _ => (Term::Erased, self.values.any()),
        };
        (self.add(term), ty)
    }

    pub(super) fn data_type(&mut self, data: super::DataId, arguments: &[V]) -> V {
        self.values.add(Value::Data(data, arguments.into()))
    }

    fn check_lambda(&mut self, id: ExprId, binder: Binder, body: ExprId, want: V) -> Checked<TermId> {
        self.refuel();
        let want = self.head_of_type(want);
        let (quantity, domain, codomain) = match *self.values.get(want) {
            Value::Pi(quantity, _, domain, codomain) => (quantity, domain, codomain),
            Value::Any | Value::Opaque(_) => {
                self.note_undecided();
                (Quantity::One, want, want)
            }
            _ if self.lenient => {
                let any = self.values.any();
                (Quantity::One, any, any)
            }
            _ => {
                let expected = self.show(want);
                let error = self.mismatch(expected, "a function", Some(self.span(id)));
                return Err(self.with_context(Box::new(error)));
            }
        };
        let quantity = if binder.quantity == Quantity::Many && quantity == Quantity::One {
            let kind = self.kind_of(domain);
            self.require_data(kind, binder.name, binder.span)?;
            Quantity::Many
        } else {
            quantity
        };
        let (depth, mark) = (self.locals.len(), self.scope.mark());
        let var = self.open(Variable {
            name: binder.name,
            ty: domain,
            quantity,
            span: Some(binder.span),
            origin: Origin::Parameter,
        });
        let value = self.values.var(var);
        let codomain = self.values.instantiate(codomain, value);
        let body = self.check(body, codomain, None)?;
        self.close(depth, mark)?;
        Ok(if quantity == Quantity::None { body } else { self.add(Term::Lambda(var, body)) })
    }

    fn check_reflexivity(&mut self, id: ExprId, want: V) -> Checked<TermId> {
        self.refuel();
        let want = self.head_of_type(want);
        match self.values.get(want) {
            Value::Equal(..) | Value::Any | Value::Opaque(_) => self.skip_proof(),
            _ if self.lenient => {}
            _ => {
                let expected = self.show(want);
                let error = self.mismatch(expected, "{==}, the proof of an equation", Some(self.span(id)));
                return Err(self.with_context(Box::new(error)));
            }
        }
        Ok(self.erased())
    }

    fn skip_proof(&mut self) {
        if let Some(current) = &self.current {
            self.notices.push(Notice::InnerProofSkipped(current.def));
        }
    }

    /// The goal after a rewrite is not computed: what follows is read, not compared.
    fn check_rewrite(&mut self, id: ExprId) -> Checked<TermId> {
        let Expr::Rewrite { name, equation, motive, body } = self.tree().expr(id).clone() else {
            return Ok(self.erased());
        };
        self.skip_proof();
        let lenient = std::mem::replace(&mut self.lenient, true);
        let any = self.values.any();
        let result = self.in_dead(|checker| {
            checker.check(equation, any, None)?;
            let mark = checker.scope.mark();
            checker.scope.push_wildcard(any);
            if let Some(name) = name {
                checker.scope.push(name.name, any);
            }
            let result = checker.infer(motive, None);
            checker.scope.truncate(mark);
            result.map(|_| ())
        });
        self.lenient = lenient;
        result?;
        self.check(body, any, None)
    }

    /// `a[i]`, or `a[i] <- v`.
    fn infer_index(&mut self, array: ExprId, index: ExprId, value: Option<ExprId>) -> Checked<Inferred> {
        let u32_type = self.values.add(Value::Def(self.builtin.u32));
        let method = if value.is_some() { self.builtin.array_set } else { self.builtin.array_get };
        let ty = self.def_type(method);
        let ty = self.instantiate_with(ty, u32_type);
        let head = self.add(Term::Global(method));
        let operators = Some(self.book.names.intern("U32"));
        let mut arguments = vec![(array, None), (index, operators)];
        arguments.extend(value.map(|value| (value, None)));
        let mut ty = ty;
        let mut terms = Vec::new();
        for (argument, operators) in arguments {
            let Value::Pi(_, _, domain, codomain) = *self.values.get(ty) else { break };
            terms.push(self.check(argument, domain, operators)?);
            ty = codomain;
        }
        Ok((self.add(Term::Call(head, terms)), ty))
    }

    fn infer_fill(&mut self, value: ExprId, of: ExprId, unit: FillLength, length: ExprId) -> Checked<Inferred> {
        let operators = self.operator_head(&self.scope, of);
        let (of_value, kind) = self.type_of_type(of)?;
        let slot = self.book.names.intern("slot");
        self.require_data(kind, slot, self.span(of))?;
        let nat = self.data_type(self.builtin.nat, &[]);
        let depth = match unit {
            FillLength::Depth => self.check(length, nat, None)?,
            FillLength::Count => match *self.tree().expr(length) {
                Expr::Nat(count) if count.is_power_of_two() => self.add(Term::Nat(u64::from(count.trailing_zeros()))),
                _ => {
                    let message = "a power of two after * (as in 8n; ^ takes a depth instead)";
                    return Err(Box::new(self.message(message, Some(self.span(length)))));
                }
            },
        };
        let value = self.check(value, of_value, operators)?;
        let ty = self.def_type(self.builtin.array_new);
        let head = self.add(Term::Global(self.builtin.array_new));
        let mut result = self.instantiate_with(ty, of_value);
        while let Value::Pi(_, _, _, codomain) = *self.values.get(result) {
            result = codomain;
        }
        Ok((self.add(Term::Call(head, vec![depth, value])), result))
    }

    /// The codomain of a function type at an argument.
    pub(super) fn instantiate_with(&mut self, function: V, argument: V) -> V {
        match *self.values.get(function) {
            Value::Pi(_, _, _, codomain) => self.values.instantiate(codomain, argument),
            _ => self.values.any(),
        }
    }

    /// A constructor, a tuple, a list or a cons as constructor and fields.
    pub(super) fn as_construct(&mut self, id: ExprId, want: Option<V>) -> Checked<Option<(ConstructorId, Fields)>> {
        Ok(match self.tree().expr(id).clone() {
            Expr::Construct(name, fields) => {
                let constructor = self.resolve_constructor(name, want, self.span(id))?;
                Some((constructor, Fields::Each(fields)))
            }
            Expr::Binary(Operator::Cons, head, tail) => Some((self.builtin.con, Fields::Each(vec![head, tail]))),
            Expr::Tuple(parts) => Some((self.builtin.tuple, Fields::Chain(parts))),
            Expr::List(items) => Some((self.builtin.con, Fields::Chain(items))),
            _ => None,
        })
    }

    /// The constructor of that name: of the wanted type if it has one, else as the scope says.
    pub(super) fn resolve_constructor(&mut self, name: Symbol, want: Option<V>, span: Span) -> Checked<ConstructorId> {
        let named = self.book.constructor_named(self.scope.module, name);
        let wanted = want.and_then(|want| {
            let Value::Data(data, _) = *self.values.get(want) else { return None };
            if let Some(named) = named.filter(|&named| self.book.constructor(named).data == data) {
                return Some(named);
            }
            let constructors = &self.book.data(data).constructors;
            constructors.iter().copied().find(|&id| self.book.constructor(id).name == name)
        });
        if let Some(found) = wanted.or(named) {
            return Ok(found);
        }
        let text = self.book.names.text(name).to_owned();
        let declared = want.and_then(|want| match *self.values.get(want) {
            Value::Data(data, _) => Some(self.constructors_of(data)),
            _ => None,
        });
        let expected = match declared {
            Some(names) if !names.is_empty() => format!("a declared constructor ({names})"),
            _ => String::from("a declared constructor"),
        };
        let mut error = self.mismatch(expected, format!("{text}{{}}"), Some(span));
        if self.book.global(self.scope.module, name).is_some() {
            error = error.with_note(format!("{text} is not a constructor: its arguments are written in () or <>."));
        } else if self.book.base_constructor(&text).is_some() {
            error = error.with_note(format!("{text} is in Base: start the file with 'import Base'."));
        }
        Err(self.with_context(Box::new(error)))
    }

    fn constructors_of(&self, data: super::DataId) -> String {
        let names: Vec<String> =
            self.book.data(data).constructors.iter().map(|&id| self.constructor_name(id)).collect();
        names.join(", ")
    }
}

/// The fields of a construction.
pub(super) enum Fields {
    /// One term each.
    Each(Vec<ExprId>),
    /// The elements of a tuple or a list, which nest to the right.
    Chain(Vec<ExprId>),
}
