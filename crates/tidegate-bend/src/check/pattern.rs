//! Patterns against types.

use super::book::ConstructorId;
use super::value::{Value, VarId, V};
use super::{Checked, Checker, Origin, Variable};
use crate::diagnostic::Span;
use crate::elaborated::{CheckedPattern, CheckedPatternId};
use crate::syntax::{keyword, Binder, Pattern, PatternId, Quantity};

/// A checked pattern, and the value of what it matches in terms of its variables.
type Matched = (CheckedPatternId, V);

impl Checker<'_> {
    /// Checks a pattern for values of type `ty` and brings its names into scope.
    pub(super) fn check_pattern(
        &mut self,
        id: PatternId,
        ty: V,
        quantity: Quantity,
        parts: &mut Vec<VarId>,
    ) -> Checked<Matched> {
        let pattern = self.tree().pattern(id).clone();
        let span = self.tree().pattern_span(id);
        match pattern {
            Pattern::Bind(binder) => self.bind_part(binder, ty, quantity, parts),
            Pattern::Construct(name, fields) => {
                self.refuel();
                let ty = self.whnf(ty);
                let constructor = self.resolve_constructor(name, Some(ty), span)?;
                self.check_constructor_pattern(span, constructor, &fields, ty, quantity, parts)
            }
            Pattern::Cons(head, tail) => {
                let constructor = self.builtin.con;
                self.check_constructor_pattern(span, constructor, &[head, tail], ty, quantity, parts)
            }
            Pattern::Tuple(items) => self.check_chain(span, &items, self.builtin.tuple, ty, quantity, parts),
            Pattern::List(items) => self.check_chain(span, &items, self.builtin.con, ty, quantity, parts),
            Pattern::Successor(count, rest) => {
                let nat = self.data_type(self.builtin.nat, &[]);
                self.require_pattern_type(span, nat, ty)?;
                let (rest, shape) = self.check_pattern(rest, nat, quantity, parts)?;
                let checked = self.elaborated.add_pattern(CheckedPattern::AtLeast(count, rest));
                Ok((checked, self.values.nat_plus(count, shape)))
            }
            _ => self.check_literal_pattern(&pattern, span, ty),
        }
    }

    fn bind_part(&mut self, binder: Binder, ty: V, quantity: Quantity, parts: &mut Vec<VarId>) -> Checked<Matched> {
        self.reject_constructor_name(binder)?;
        self.refuel();
        let ty = self.applied(ty);
        let quantity = match (binder.quantity, quantity) {
            (Quantity::Many, Quantity::One) => {
                let kind = self.kind_of(ty);
                self.require_data(kind, binder.name, binder.span)?;
                Quantity::Many
            }
            _ => quantity,
        };
        let id = self.new_variable(Variable {
            name: binder.name,
            ty,
            quantity,
            span: Some(binder.span),
            origin: Origin::Field,
        });
        parts.push(id);
        let value = self.values.var(id);
        self.scope.push(binder.name, value);
        let checked = if binder.name == keyword::WILDCARD || quantity == Quantity::None {
            CheckedPattern::Wildcard
        } else {
            CheckedPattern::Bind(id)
        };
        Ok((self.elaborated.add_pattern(checked), value))
    }

    /// `case None:` binds a name `None`, which nobody means.
    pub(super) fn reject_constructor_name(&mut self, binder: Binder) -> Checked<()> {
        let Some(constructor) = self.book.constructor_named(self.scope.module, binder.name) else {
            return Ok(());
        };
        let shape = self.constructor_shape(constructor);
        let name = self.book.names.text(binder.name).to_owned();
        let error = self.mismatch(shape, name.clone(), Some(binder.span));
        let note = format!("{name} is a constructor: its pattern takes braces, and a variable needs another name.");
        Err(self.with_context(Box::new(error.with_note(note))))
    }

    fn require_pattern_type(&mut self, span: Span, found: V, ty: V) -> Checked<()> {
        match self.require_fit(found, ty, span) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.with_context(error)),
        }
    }

    fn check_literal_pattern(&mut self, pattern: &Pattern, span: Span, ty: V) -> Checked<Matched> {
        let (checked, value, found) = match *pattern {
            Pattern::Nat(n) => {
                let nat = self.data_type(self.builtin.nat, &[]);
                (CheckedPattern::Nat(n), Value::Nat(n), nat)
            }
            Pattern::U32(n) => {
                let found = self.values.add(Value::Def(self.builtin.u32));
                (CheckedPattern::U32(n), Value::U32(n), found)
            }
            Pattern::F32(n) => {
                let found = self.values.add(Value::Def(self.builtin.f32));
                (CheckedPattern::F32(n), Value::F32(n), found)
            }
            Pattern::Char(c) => {
                let found = self.data_type(self.builtin.char, &[]);
                (CheckedPattern::Char(c), Value::Char(c), found)
            }
            Pattern::Text(text) => {
                let found = self.data_type(self.builtin.string, &[]);
                (CheckedPattern::Text(text), Value::Text(text), found)
            }
            _ => (CheckedPattern::Wildcard, Value::Any, ty),
        };
        self.require_pattern_type(span, found, ty)?;
        let checked = self.elaborated.add_pattern(checked);
        Ok((checked, self.values.add(value)))
    }

    fn check_constructor_pattern(
        &mut self,
        span: Span,
        constructor: ConstructorId,
        fields: &[PatternId],
        ty: V,
        quantity: Quantity,
        parts: &mut Vec<VarId>,
    ) -> Checked<Matched> {
        let declared = self.book.constructor(constructor).fields;
        if declared != fields.len() {
            let name = self.constructor_name(constructor);
            let plural = if declared == 1 { "" } else { "s" };
            let observed = self.source_text(span);
            let error = self.mismatch(format!("{name} with {declared} field{plural}"), observed, Some(span));
            return Err(self.with_context(Box::new(error)));
        }
        let mut field_type = self.pattern_telescope(span, constructor, ty)?;
        let mut checked = Vec::new();
        let mut values = Vec::new();
        for (at, &field) in fields.iter().enumerate() {
            let (own, domain, codomain) = match *self.values.get(field_type) {
                Value::Pi(own, _, domain, codomain) => (own, domain, codomain),
                _ => (Quantity::One, field_type, field_type),
            };
            let field_quantity = both(own, quantity);
            let (pattern, value) = self.check_pattern(field, domain, field_quantity, parts)?;
            if own != Quantity::None {
                checked.push(pattern);
            }
            values.push(value);
            if at + 1 < fields.len() {
                field_type = self.values.instantiate(codomain, value);
            }
        }
        let pattern = self.constructor_pattern(constructor, checked);
        Ok((pattern, self.construct(constructor, values)))
    }

    /// The pattern of a constructor; those of Nat in their one form.
    fn constructor_pattern(&mut self, constructor: ConstructorId, fields: Vec<CheckedPatternId>) -> CheckedPatternId {
        let pattern = if constructor == self.builtin.zero {
            CheckedPattern::Nat(0)
        } else if constructor == self.builtin.succ && fields.len() == 1 {
            CheckedPattern::AtLeast(1, fields[0])
        } else {
            CheckedPattern::Construct(constructor, fields)
        };
        self.elaborated.add_pattern(pattern)
    }

    /// The fields of a constructor at the type that is matched.
    fn pattern_telescope(&mut self, span: Span, constructor: ConstructorId, ty: V) -> Checked<V> {
        self.refuel();
        let ty = self.head_of_type(ty);
        let data = self.book.constructor(constructor).data;
        match self.values.get(ty).clone() {
            Value::Data(found, arguments) if found == data => {
                Ok(self.constructor_type(constructor, Some(arguments.into_vec())))
            }
            Value::Any | Value::Opaque(_) => {
                self.note_undecided();
                Ok(self.values.any())
            }
            _ if self.lenient => Ok(self.values.any()),
            _ => {
                let declared = self.book.data(data);
                let observed = self.book.shown(self.scope.module, declared.module, declared.name);
                let expected = self.show(ty);
                let error = self.mismatch(expected, observed, Some(span));
                Err(self.with_context(Box::new(error)))
            }
        }
    }

    /// A tuple or a list pattern, from its first element to its last.
    fn check_chain(
        &mut self,
        span: Span,
        items: &[PatternId],
        constructor: ConstructorId,
        ty: V,
        quantity: Quantity,
        parts: &mut Vec<VarId>,
    ) -> Checked<Matched> {
        let is_tuple = constructor == self.builtin.tuple;
        let mut links = Vec::new();
        let mut ty = ty;
        for (at, &item) in items.iter().enumerate() {
            if is_tuple && at + 1 == items.len() {
                break;
            }
            let telescope = self.pattern_telescope(span, constructor, ty)?;
            let (domain, codomain) = match *self.values.get(telescope) {
                Value::Pi(_, _, domain, codomain) => (domain, codomain),
                _ => (telescope, telescope),
            };
            let (pattern, value) = self.check_pattern(item, domain, quantity, parts)?;
            links.push((pattern, value));
            let rest = match *self.values.get(codomain) {
                Value::Pi(_, _, domain, _) => domain,
                _ => codomain,
            };
            ty = self.values.instantiate(rest, value);
        }
        let (mut pattern, mut value) = match items.last() {
            Some(&last) if is_tuple => self.check_pattern(last, ty, quantity, parts)?,
            _ => {
                self.pattern_telescope(span, self.builtin.nil, ty)?;
                let nil = self.builtin.nil;
                (self.constructor_pattern(nil, Vec::new()), self.construct(nil, Vec::new()))
            }
        };
        for (first, first_value) in links.into_iter().rev() {
            pattern = self.constructor_pattern(constructor, vec![first, pattern]);
            value = self.construct(constructor, vec![first_value, value]);
        }
        Ok((pattern, value))
    }

    /// A pattern with its names left out, as in `Some{_}`.
    pub(super) fn pattern_shape(&self, id: PatternId) -> String {
        let all = |ids: &[PatternId]| {
            let shapes: Vec<String> = ids.iter().map(|&id| self.pattern_shape(id)).collect();
            shapes.join(", ")
        };
        match self.tree().pattern(id) {
            Pattern::Bind(_) => String::from("_"),
            Pattern::Construct(name, fields) => format!("{}{{{}}}", self.book.names.text(*name), all(fields)),
            Pattern::Tuple(parts) => format!("({})", all(parts)),
            Pattern::List(parts) => format!("[{}]", all(parts)),
            Pattern::Cons(head, tail) => {
                format!("{} <> {}", self.pattern_shape(*head), self.pattern_shape(*tail))
            }
            Pattern::Successor(count, rest) => format!("{count}n+{}", self.pattern_shape(*rest)),
            Pattern::Nat(value) => format!("{value}n"),
            Pattern::U32(value) => value.to_string(),
            Pattern::F32(bits) => crate::syntax::show_f32(*bits),
            Pattern::Char(c) => format!("'{}'", crate::syntax::escape(*c, '\'')),
            Pattern::Text(text) => {
                let text = self.book.names.text(*text);
                format!("\"{}\"", text.chars().map(|c| crate::syntax::escape(c, '"')).collect::<String>())
            }
        }
    }
}

/// The quantity of a field of a value.
fn both(field: Quantity, value: Quantity) -> Quantity {
    match (field, value) {
        (Quantity::None, _) | (_, Quantity::None) => Quantity::None,
        (Quantity::Many, _) | (_, Quantity::Many) => Quantity::Many,
        _ => Quantity::One,
    }
}
