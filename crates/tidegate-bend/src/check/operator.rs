//! Operators and type expressions.

use super::book::{DefId, Global};
use super::term::Inferred;
use super::value::{Value, V};
use super::{Checked, Checker, Origin, Variable};
use crate::elaborated::Term;
use crate::syntax::{Expr, ExprId, Operator, Quantity, Symbol};

impl Checker<'_> {
    pub(super) fn infer_operator(
        &mut self,
        id: ExprId,
        operator: Operator,
        left: ExprId,
        right: ExprId,
        operators: Option<Symbol>,
    ) -> Checked<Inferred> {
        let method = match operator {
            Operator::Arrow | Operator::Pair | Operator::Either => return self.infer_type(id),
            Operator::Meet => {
                let quant = self.values.add(Value::Quant);
                self.check(left, quant, None)?;
                self.check(right, quant, None)?;
                return Ok((self.erased(), quant));
            }
            Operator::Cons => return self.infer_construct(id),
            Operator::Append => self.builtin.append,
            Operator::And => self.builtin.and,
            Operator::Or => self.builtin.or,
            _ => self.method_of(id, operator, operators)?,
        };
        let head = self.add(Term::Global(method));
        self.note_call(method, self.span(id));
        let mut ty = self.def_type(method);
        let mut terms = Vec::new();
        for operand in [left, right] {
            self.refuel();
            ty = self.whnf(ty);
            let Value::Pi(quantity, _, domain, codomain) = *self.values.get(ty) else {
                let name = self.def_name(method);
                let message = format!("{name} as a function of two operands");
                return Err(Box::new(self.message(message, Some(self.span(id)))));
            };
            let term = self.check_argument(operand, quantity, domain, operators)?;
            terms.extend(term);
            ty = self.apply_type(codomain, operand);
        }
        Ok((self.add(Term::Call(head, terms)), ty))
    }

    /// The method of the surrounding `( .. : T)` that an operator calls.
    fn method_of(&mut self, id: ExprId, operator: Operator, operators: Option<Symbol>) -> Checked<DefId> {
        let text = operator.text();
        let Some(head) = operators else {
            let message = format!("a type for {text}: write the operation as (a {text} b : T)");
            let error = self.message(message, Some(self.span(id)));
            return Err(self.with_context(Box::new(error)));
        };
        if let Some(method) = self.operator_method(&self.scope, operator, head) {
            return Ok(method);
        }
        let name = self.book.names.text(head).to_owned();
        let method = operator.method().unwrap_or_default();
        let observed = format!("{name}.{method}");
        let error = self.mismatch("a defined name", observed, Some(self.span(id)));
        let note = format!("{text} on {name} is the function {name}.{method}, which is not defined.");
        Err(self.with_context(Box::new(error.with_note(note))))
    }

    /// A term that can only be a type, a kind or a quantity: its own type is a kind.
    pub(super) fn infer_type(&mut self, id: ExprId) -> Checked<Inferred> {
        let kind = self.in_dead(|checker| checker.infer_kind(id))?;
        Ok((self.erased(), kind))
    }

    fn infer_kind(&mut self, id: ExprId) -> Checked<V> {
        let data = |checker: &mut Self| checker.values.kind(2);
        match self.tree().expr(id).clone() {
            Expr::Quantity(_) => Ok(self.values.add(Value::Quant)),
            Expr::Kind(quantity) => {
                let quant = self.values.add(Value::Quant);
                self.check(quantity, quant, None)?;
                Ok(self.values.kind(1))
            }
            Expr::Family(head, arguments) => self.infer_family(id, head, &arguments),
            Expr::Plus(inner) => self.infer_plus(id, inner),
            Expr::Forall(binder, domain, codomain) => {
                let domain = self.check_binder_type(domain, binder.quantity, binder.name)?;
                self.check_under(binder.name, binder.quantity, domain, codomain)?;
                Ok(self.values.kind(1))
            }
            Expr::Exists(binder, domain, codomain) => {
                let domain = self.check_type(domain)?;
                self.check_under(binder.name, Quantity::One, domain, codomain)?;
                Ok(self.values.kind(1))
            }
            Expr::Binary(_, left, right) => {
                self.check_is_type(left)?;
                self.check_is_type(right)?;
                Ok(self.values.kind(1))
            }
            Expr::Equal(left, right, ty, _) => {
                let ty = self.check_type(ty)?;
                let operators = None;
                self.note_undecided();
                let lenient = std::mem::replace(&mut self.lenient, true);
                let result = self.check(left, ty, operators).and_then(|_| self.check(right, ty, operators));
                self.lenient = lenient;
                result?;
                Ok(data(self))
            }
            _ => Ok(self.values.kind(1)),
        }
    }

    fn check_under(&mut self, name: Symbol, quantity: Quantity, domain: V, body: ExprId) -> Checked<()> {
        let (depth, mark) = (self.locals.len(), self.scope.mark());
        self.open(Variable { name, ty: domain, quantity, span: Some(self.span(body)), origin: Origin::Parameter });
        self.check_is_type(body)?;
        self.close(depth, mark)
    }

    /// `T<..>`: the arguments against the parameters of `T`.
    fn infer_family(&mut self, id: ExprId, head: ExprId, arguments: &[ExprId]) -> Checked<V> {
        let Expr::Name(name) = *self.tree().expr(head) else {
            return Ok(self.values.any());
        };
        let data = match self.book.global(self.scope.module, name) {
            Some(Global::Data(data)) if self.scope.get(name).is_none() => data,
            None if self.scope.get(name).is_none() => return Err(self.unknown_name(name, self.span(head))),
            _ => {
                let observed = self.book.names.text(name).to_owned();
                let error = self.mismatch("a datatype before <..>", observed.clone(), Some(self.span(head)));
                let note = format!("{observed} takes its arguments in parentheses: {observed}(..).");
                return Err(self.with_context(Box::new(error.with_note(note))));
            }
        };
        let declared = self.book.data(data);
        let (parameters, quantities) = (declared.parameters, declared.quantities);
        let left_out = if arguments.len() + quantities == parameters { quantities } else { 0 };
        if arguments.len() + left_out != parameters {
            let shown = self.book.shown(self.scope.module, declared.module, declared.name);
            let plural = if parameters == 1 { "" } else { "s" };
            let expected = format!("{shown} with {parameters} argument{plural}");
            let span = self.span(id);
            let observed = self.source_text(span);
            let error = self.mismatch(expected, observed, Some(span));
            return Err(self.with_context(Box::new(error)));
        }
        let mut kind = self.family_type(data);
        let one = self.values.add(Value::Quantity(1));
        for _ in 0..left_out {
            kind = self.instantiate_with(kind, one);
        }
        for &argument in arguments {
            let Value::Pi(_, _, domain, codomain) = *self.values.get(kind) else { break };
            self.check(argument, domain, None)?;
            kind = self.apply_type(codomain, argument);
        }
        Ok(kind)
    }

    /// `+T` and `+T<..>`: the quantities of `T` are `&2`.
    fn infer_plus(&mut self, id: ExprId, inner: ExprId) -> Checked<V> {
        let head = match *self.tree().expr(inner) {
            Expr::Family(head, _) => head,
            _ => inner,
        };
        let quantities = match *self.tree().expr(head) {
            Expr::Name(name) => match self.book.global(self.scope.module, name) {
                Some(Global::Data(data)) => self.book.data(data).quantities,
                None => return Err(self.unknown_name(name, self.span(head))),
                Some(Global::Def(_)) => 0,
            },
            _ => 0,
        };
        if quantities == 0 {
            let observed = self.source_text(self.span(id));
            let expected = "a datatype with quantities after + (+T<..> makes them &2)";
            let error = self.mismatch(expected, observed, Some(self.span(id)));
            return Err(self.with_context(Box::new(error)));
        }
        if let Expr::Family(head, arguments) = self.tree().expr(inner).clone() {
            self.check_plus_arguments(inner, head, &arguments)?;
        }
        let value = self.eval_here(id);
        Ok(self.kind_of(value))
    }

    /// As `infer_family`, with `&2` for what is left out.
    fn check_plus_arguments(&mut self, id: ExprId, head: ExprId, arguments: &[ExprId]) -> Checked<()> {
        let Expr::Name(name) = *self.tree().expr(head) else { return Ok(()) };
        let Some(Global::Data(data)) = self.book.global(self.scope.module, name) else {
            return Ok(());
        };
        let declared = self.book.data(data);
        if arguments.len() + declared.quantities != declared.parameters {
            return self.infer_family(id, head, arguments).map(|_| ());
        }
        let mut kind = self.family_type(data);
        let many = self.values.add(Value::Quantity(2));
        for _ in 0..self.book.data(data).quantities {
            kind = self.instantiate_with(kind, many);
        }
        for &argument in arguments {
            let Value::Pi(_, _, domain, codomain) = *self.values.get(kind) else { break };
            self.check(argument, domain, None)?;
            kind = self.apply_type(codomain, argument);
        }
        Ok(())
    }

    /// The text of a span, for a message; on one line.
    pub(super) fn source_text(&self, span: crate::diagnostic::Span) -> String {
        let text = self.book.texts[span.file as usize].get(span.start as usize..span.end as usize).unwrap_or("");
        let line = text.lines().next().unwrap_or("");
        match line.char_indices().nth(60) {
            Some((cut, _)) => format!("{}…", &line[..cut]),
            None => line.to_owned(),
        }
    }
}
