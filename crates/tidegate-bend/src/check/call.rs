//! Calls, definitions and constructions.

use super::book::{Code, ConstructorId, DefId, Global};
use super::term::{Fields, Inferred};
use super::value::{Value, V};
use super::{Checked, Checker, DataId};
use crate::diagnostic::Span;
use crate::elaborated::{Term, TermId};
use crate::syntax::{Argument, Expr, ExprId, Quantity, Symbol};

impl Checker<'_> {
    /// `f(a)(b)` as `f` and all its arguments.
    fn spine_of(&self, id: ExprId) -> (ExprId, Vec<Argument>) {
        let mut head = id;
        let mut groups = Vec::new();
        while let Expr::Call { function, arguments, .. } = self.tree().expr(head) {
            groups.push(arguments);
            head = *function;
        }
        let arguments = groups.into_iter().rev().flatten().copied().collect();
        (head, arguments)
    }

    pub(super) fn infer_call(&mut self, id: ExprId) -> Checked<Inferred> {
        let (head, arguments) = self.spine_of(id);
        let values: Vec<ExprId> = arguments.iter().map(|argument| argument.value).collect();
        let (function, ty) = match *self.tree().expr(head) {
            Expr::Name(name) if self.scope.get(name).is_none() => match self.book.global(self.scope.module, name) {
                Some(Global::Def(def)) => self.infer_def(head, def, &values)?,
                _ => self.infer(head, None)?,
            },
            _ => self.infer(head, None)?,
        };
        self.apply(id, function, ty, &arguments)
    }

    /// A function of that type at its arguments, from left to right.
    fn apply(&mut self, id: ExprId, function: TermId, ty: V, arguments: &[Argument]) -> Checked<Inferred> {
        let templates = self.templates_of(function);
        let mut ty = ty;
        let mut terms = Vec::new();
        for (at, argument) in arguments.iter().enumerate() {
            self.refuel();
            let function_type = self.head_of_type(ty);
            let (quantity, domain, codomain) = match *self.values.get(function_type) {
                Value::Pi(quantity, _, domain, codomain) => (quantity, domain, codomain),
                Value::Any | Value::Opaque(_) => {
                    self.note_undecided();
                    (Quantity::One, function_type, function_type)
                }
                _ if self.lenient => {
                    let any = self.values.any();
                    (Quantity::One, any, any)
                }
                _ => return Err(self.too_many_arguments(id, ty, at, arguments.len())),
            };
            let is_template = templates.get(at).copied().unwrap_or(false);
            if argument.template && !is_template {
                let message = "a plain argument (this parameter takes no ~)";
                return Err(Box::new(self.message(message, Some(self.span(argument.value)))));
            }
            let term = if is_template {
                self.check_template_argument(argument.value, quantity, domain)?
            } else {
                self.check_argument(argument.value, quantity, domain, None)?
            };
            terms.extend(term);
            ty = self.apply_type(codomain, argument.value);
        }
        if terms.is_empty() {
            return Ok((function, ty));
        }
        let span = self.span(id);
        Ok((self.elaborated.add_call(function, terms, span), ty))
    }

    /// The result type of a function at an argument.
    pub(super) fn apply_type(&mut self, codomain: V, argument: ExprId) -> V {
        if !self.values.is_open(codomain) {
            return codomain;
        }
        let value = self.eval_here(argument);
        self.values.instantiate(codomain, value)
    }

    fn too_many_arguments(
        &mut self,
        id: ExprId,
        ty: V,
        taken: usize,
        given: usize,
    ) -> Box<crate::diagnostic::Diagnostic> {
        let observed = self.show(ty);
        let error = self.mismatch("a function", observed, Some(self.span(id)));
        let plural = if given == 1 { "" } else { "s" };
        let note = format!("the call gives {given} argument{plural} where {taken} can be taken.");
        self.with_context(Box::new(error.with_note(note)))
    }

    /// An argument; nothing of an erased one is left.
    pub(super) fn check_argument(
        &mut self,
        argument: ExprId,
        quantity: Quantity,
        domain: V,
        operators: Option<Symbol>,
    ) -> Checked<Option<TermId>> {
        if quantity == Quantity::None {
            self.in_dead(|checker| checker.check(argument, domain, operators))?;
            return Ok(None);
        }
        self.check(argument, domain, operators).map(Some)
    }

    fn check_template_argument(&mut self, argument: ExprId, quantity: Quantity, domain: V) -> Checked<Option<TermId>> {
        let floor = super::VarId(self.variables.len() as u32);
        let outer = self.closed_from;
        self.closed_from = Some(outer.map_or(floor, |outer| outer.max(floor)));
        let result = self.check_argument(argument, quantity, domain, None);
        self.closed_from = outer;
        result
    }

    /// Which parameters of a global function take `~`.
    fn templates_of(&self, function: TermId) -> Vec<bool> {
        match *self.elaborated.term(function) {
            Term::Global(def) => self.book.def(def).templates.clone(),
            _ => Vec::new(),
        }
    }

    /// A mention of a definition, with the arguments it is applied to.
    pub(super) fn infer_def(&mut self, id: ExprId, def: DefId, arguments: &[ExprId]) -> Checked<Inferred> {
        let span = self.span(id);
        if self.dead == 0 && !self.lenient {
            self.reject_open_law(def, span)?;
            self.check_descent(def, arguments, span)?;
            self.note_call(def, span);
        }
        let ty = self.def_type(def);
        Ok((self.add(Term::Global(def)), ty))
    }

    /// What is claimed but not defined cannot run.
    fn reject_open_law(&mut self, def: DefId, span: Span) -> Checked<()> {
        let declared = self.book.def(def);
        let is_type = declared.is_type;
        if declared.code != Code::Open || is_type {
            return Ok(());
        }
        let name = self.def_name(def);
        let error = self.mismatch("a defined name", name.clone(), Some(span));
        let note = format!("{name} is a law that no definition fills, so it cannot run.");
        Err(self.with_context(Box::new(error.with_note(note))))
    }

    pub(super) fn def_type(&mut self, def: DefId) -> V {
        match self.book.def(def).ty {
            Some(ty) => ty,
            None => self.values.any(),
        }
    }

    /// The type of a family, from its parameters to its kind.
    pub(super) fn family_type(&mut self, data: DataId) -> V {
        match self.book.data(data).ty {
            Some(ty) => ty,
            None => self.values.any(),
        }
    }

    /// The kind of a family without parameters.
    pub(super) fn data_kind(&mut self, data: DataId) -> V {
        self.family_type(data)
    }

    /// The kind of a type, as a value `Kind(q)`; unknown if it cannot be told.
    pub(super) fn kind_of(&mut self, ty: V) -> V {
        self.refuel();
        self.kind_of_value(ty, 0)
    }

    fn kind_of_value(&mut self, ty: V, depth: u32) -> V {
        if depth > 100 {
            return self.values.any();
        }
        let ty = self.whnf(ty);
        match self.values.get(ty).clone() {
            Value::Data(data, arguments) => {
                let mut kind = self.family_type(data);
                for &argument in arguments.iter() {
                    kind = self.instantiate_with(kind, argument);
                }
                kind
            }
            Value::Equal(..) => self.values.kind(2),
            Value::Pi(..) | Value::Kind(_) | Value::Quant => self.values.kind(1),
            Value::Var(id) => {
                let kind = self.variable(id).ty;
                self.whnf(kind)
            }
            Value::Def(_) | Value::Apply(..) => {
                let (head, arguments) = self.values.spine(ty);
                let mut kind = match *self.values.get(head) {
                    Value::Def(def) => self.def_type(def),
                    Value::Var(id) => self.variable(id).ty,
                    _ => self.values.any(),
                };
                for argument in arguments {
                    kind = self.whnf(kind);
                    kind = self.instantiate_with(kind, argument);
                }
                self.whnf(kind)
            }
            _ => self.values.any(),
        }
    }

    /// A construction where a type is wanted.
    pub(super) fn check_construct(&mut self, id: ExprId, want: V) -> Checked<TermId> {
        self.refuel();
        let want = self.head_of_type(want);
        let Some((constructor, fields)) = self.as_construct(id, Some(want))? else {
            return Ok(self.erased());
        };
        match fields {
            Fields::Each(fields) => self.check_fields(id, constructor, &fields, want),
            Fields::Chain(parts) if constructor == self.builtin.tuple => self.check_tuple(id, &parts, want),
            Fields::Chain(items) => self.check_list(id, &items, want),
        }
    }

    /// The type arguments of `want`, which must be the constructor's type.
    fn arguments_of(&mut self, id: ExprId, constructor: ConstructorId, want: V) -> Checked<Option<Vec<V>>> {
        let data = self.book.constructor(constructor).data;
        match self.values.get(want).clone() {
            Value::Data(found, arguments) if found == data => Ok(Some(arguments.into_vec())),
            Value::Any | Value::Opaque(_) => {
                self.note_undecided();
                Ok(None)
            }
            _ if self.lenient => Ok(None),
            _ => {
                let declared = self.book.data(data);
                let observed = self.book.shown(self.scope.module, declared.module, declared.name);
                let expected = self.show(want);
                let error = self.mismatch(expected, observed, Some(self.span(id)));
                Err(self.with_context(Box::new(error)))
            }
        }
    }

    fn check_fields(&mut self, id: ExprId, constructor: ConstructorId, fields: &[ExprId], want: V) -> Checked<TermId> {
        self.check_field_count(id, constructor, fields.len())?;
        let arguments = self.arguments_of(id, constructor, want)?;
        let mut ty = self.constructor_type(constructor, arguments);
        let mut terms = Vec::new();
        for &field in fields {
            let (quantity, domain, codomain) = match *self.values.get(ty) {
                Value::Pi(quantity, _, domain, codomain) => (quantity, domain, codomain),
                _ => (Quantity::One, ty, ty),
            };
            terms.extend(self.check_argument(field, quantity, domain, None)?);
            ty = self.apply_type(codomain, field);
        }
        Ok(self.add_construct(constructor, terms))
    }

    fn add_construct(&mut self, constructor: ConstructorId, terms: Vec<TermId>) -> TermId {
        let term = if constructor == self.builtin.zero {
            Term::Nat(0)
        } else if constructor == self.builtin.succ && terms.len() == 1 {
            Term::Successor(1, terms[0])
        } else {
            Term::Construct(constructor, terms)
        };
        self.add(term)
    }

    pub(super) fn check_field_count(&mut self, id: ExprId, constructor: ConstructorId, given: usize) -> Checked<()> {
        let fields = self.book.constructor(constructor).fields;
        if fields == given {
            return Ok(());
        }
        let name = self.constructor_name(constructor);
        let plural = if fields == 1 { "" } else { "s" };
        let span = self.span(id);
        let observed = self.source_text(span);
        let error = self.mismatch(format!("{name} with {fields} field{plural}"), observed, Some(span));
        Err(self.with_context(Box::new(error)))
    }

    /// The type of a constructor at the arguments of its type: from its fields to that type.
    pub(super) fn constructor_type(&mut self, constructor: ConstructorId, arguments: Option<Vec<V>>) -> V {
        let (Some(mut ty), Some(arguments)) = (self.book.constructor(constructor).ty, arguments) else {
            return self.values.any();
        };
        let key = (constructor, arguments);
        if let Some(&known) = self.constructor_types.get(&key) {
            return known;
        }
        for &argument in &key.1 {
            ty = self.instantiate_with(ty, argument);
        }
        self.constructor_types.insert(key, ty);
        ty
    }

    /// `(a, b, c)` is `(a, (b, c))`; no recursion over its length.
    fn check_tuple(&mut self, id: ExprId, parts: &[ExprId], want: V) -> Checked<TermId> {
        let mut want = want;
        let mut terms = Vec::new();
        let (last, front) = parts.split_last().unwrap_or((&id, &[]));
        for &part in front {
            self.refuel();
            want = self.head_of_type(want);
            let arguments = self.arguments_of(id, self.builtin.tuple, want)?;
            let ty = self.constructor_type(self.builtin.tuple, arguments);
            let (domain, rest) = match *self.values.get(ty) {
                Value::Pi(_, _, domain, rest) => (domain, rest),
                _ => (ty, ty),
            };
            terms.push(self.check(part, domain, None)?);
            let second = self.apply_type(rest, part);
            want = match *self.values.get(second) {
                Value::Pi(_, _, domain, _) => domain,
                _ => second,
            };
        }
        let mut result = self.check(*last, want, None)?;
        for term in terms.into_iter().rev() {
            result = self.add(Term::Construct(self.builtin.tuple, vec![term, result]));
        }
        Ok(result)
    }

    fn check_list(&mut self, id: ExprId, items: &[ExprId], want: V) -> Checked<TermId> {
        let arguments = self.arguments_of(id, self.builtin.nil, want)?;
        let ty = self.constructor_type(self.builtin.con, arguments);
        let item_type = match *self.values.get(ty) {
            Value::Pi(_, _, domain, _) => domain,
            _ => ty,
        };
        let mut terms = Vec::new();
        for &item in items {
            terms.push(self.check(item, item_type, None)?);
        }
        let mut result = self.add(Term::Construct(self.builtin.nil, Vec::new()));
        for term in terms.into_iter().rev() {
            result = self.add(Term::Construct(self.builtin.con, vec![term, result]));
        }
        Ok(result)
    }

    /// A construction whose type its own fields tell.
    pub(super) fn infer_construct(&mut self, id: ExprId) -> Checked<Inferred> {
        let Some((constructor, fields)) = self.as_construct(id, None)? else {
            let any = self.values.any();
            return Ok((self.erased(), any));
        };
        let data = self.book.constructor(constructor).data;
        if let Fields::Each(fields) = &fields {
            self.check_field_count(id, constructor, fields.len())?;
        }
        if self.book.data(data).parameters == 0 {
            let want = self.data_type(data, &[]);
            return Ok((self.check(id, want, None)?, want));
        }
        if self.lenient {
            let any = self.values.any();
            return Ok((self.check(id, any, None)?, any));
        }
        if let (Fields::Chain(parts), true) = (&fields, constructor == self.builtin.tuple) {
            return self.infer_tuple(parts);
        }
        let error =
            self.mismatch("an annotated term", "a constructor whose type arguments are not told", Some(self.span(id)));
        let error = error.with_note("write {x : T} to give a term x its type T.");
        Err(self.with_context(Box::new(error)))
    }

    fn infer_tuple(&mut self, parts: &[ExprId]) -> Checked<Inferred> {
        let mut inferred = Vec::new();
        for &part in parts {
            inferred.push(self.infer(part, None)?);
        }
        let (mut term, mut ty) = inferred.pop().unwrap_or_else(|| {
            let any = self.values.any();
            (self.erased(), any)
        });
        for (first, first_type) in inferred.into_iter().rev() {
            term = self.add(Term::Construct(self.builtin.tuple, vec![first, term]));
            ty = self.apply_def(self.builtin.pair, &[first_type, ty]);
        }
        Ok((term, ty))
    }
}
