//! Local statements, in order and without recursion over their number.

use super::matching::Split;
use super::term::Inferred;
use super::value::{Value, VarId, V};
use super::{Checked, Checker, Origin, Variable};
use crate::elaborated::{Binding, Term, TermId};
use crate::syntax::{Binder, Expr, ExprId, Local, PatternId, Quantity, Symbol};

/// What a block did to the scope, to be undone in reverse.
enum Opened {
    Variable(VarId),
    Split(Split),
}

/// The statements of a block, checked.
struct Statements {
    bindings: Vec<Binding>,
    opened: Vec<Opened>,
    scope_mark: usize,
}

impl Checker<'_> {
    pub(super) fn infer_block(&mut self, id: ExprId, operators: Option<Symbol>) -> Checked<Inferred> {
        let (mut statements, tail) = self.open_block(id)?;
        let (tail, ty) = self.infer(tail, operators)?;
        self.close_block(&mut statements)?;
        Ok((self.add(Term::Block(statements.bindings, tail)), ty))
    }

    pub(super) fn check_block(&mut self, id: ExprId, want: V, operators: Option<Symbol>) -> Checked<TermId> {
        let (mut statements, tail) = self.open_block(id)?;
        let tail = self.check(tail, want, operators)?;
        self.close_block(&mut statements)?;
        Ok(self.add(Term::Block(statements.bindings, tail)))
    }

    fn open_block(&mut self, id: ExprId) -> Checked<(Statements, ExprId)> {
        let Expr::Block(locals, tail) = self.tree().expr(id).clone() else {
            unreachable!("only blocks are opened as blocks")
        };
        let mut statements = Statements {
            bindings: Vec::with_capacity(locals.len()),
            opened: Vec::new(),
            scope_mark: self.scope.mark(),
        };
        for local in &locals {
            self.open_local(local, &mut statements)?;
        }
        Ok((statements, tail))
    }

    fn close_block(&mut self, statements: &mut Statements) -> Checked<()> {
        self.scope.truncate(statements.scope_mark);
        while let Some(opened) = statements.opened.pop() {
            match opened {
                Opened::Variable(id) => {
                    self.locals.pop();
                    self.close_parts(&[id])?;
                }
                Opened::Split(split) => self.undo_split(split)?,
            }
        }
        Ok(())
    }

    fn open_local(&mut self, local: &Local, statements: &mut Statements) -> Checked<()> {
        match local {
            Local::Let(binder, ty, value) => {
                let (term, ty) = self.local_value(*binder, *ty, *value)?;
                let known = self.eval_here(*value);
                let id = self.open_let(*binder, ty, statements);
                self.known.insert(id, known);
                if binder.quantity != Quantity::None {
                    statements.bindings.push(Binding::Let(id, term));
                }
            }
            Local::Write(binder, value) => {
                let (term, ty) = self.infer(*value, None)?;
                let id = self.open_let(*binder, ty, statements);
                statements.bindings.push(Binding::Let(id, term));
            }
            Local::Parallel(binders, values) => {
                let mut inferred = Vec::new();
                for (binder, &value) in binders.iter().zip(values) {
                    inferred.push(self.local_value(*binder, None, value)?);
                }
                let mut ids = Vec::new();
                for (binder, (_, ty)) in binders.iter().zip(&inferred) {
                    ids.push(self.open_let(*binder, *ty, statements));
                }
                let terms = inferred.into_iter().map(|(term, _)| term).collect();
                statements.bindings.push(Binding::Parallel(ids, terms));
            }
            Local::Destructure(pattern, value) => self.open_destructure(*pattern, *value, statements)?,
        }
        Ok(())
    }

    /// The value of `x = v` or `x : T = v`, and its type.
    fn local_value(&mut self, binder: Binder, ty: Option<ExprId>, value: ExprId) -> Checked<Inferred> {
        let infer = |checker: &mut Self| match ty {
            Some(ty) => {
                let ty = checker.check_type(ty)?;
                Ok((checker.check(value, ty, None)?, ty))
            }
            None => checker.infer(value, None),
        };
        let (term, ty) = match binder.quantity {
            Quantity::None => self.in_dead(infer)?,
            _ => infer(self)?,
        };
        if binder.quantity == Quantity::Many {
            let kind = self.kind_of(ty);
            self.require_data(kind, binder.name, binder.span)?;
        }
        Ok((term, ty))
    }

    fn open_let(&mut self, binder: Binder, ty: V, statements: &mut Statements) -> VarId {
        let id = self.open(Variable {
            name: binder.name,
            ty,
            quantity: binder.quantity,
            span: Some(binder.span),
            origin: Origin::Local,
        });
        statements.opened.push(Opened::Variable(id));
        id
    }

    /// `pattern = value`: one case, which must fit always.
    fn open_destructure(&mut self, pattern: PatternId, value: ExprId, statements: &mut Statements) -> Checked<()> {
        let (id, term) = match self.plain_variable(value) {
            Some(id) => {
                let span = self.span(value);
                self.use_scrutinee(id, span)?;
                (id, self.add(Term::Var(id)))
            }
            None => {
                let (term, ty) = self.infer(value, None)?;
                let id = self.open(Variable {
                    name: crate::syntax::keyword::WILDCARD,
                    ty,
                    quantity: Quantity::One,
                    span: None,
                    origin: Origin::Field,
                });
                statements.opened.push(Opened::Variable(id));
                (id, term)
            }
        };
        let ty = self.variable(id).ty;
        self.check_cover(self.tree().pattern_span(pattern), &[vec![pattern]], &[ty])?;
        let (checked, split) = self.split(id, pattern)?;
        statements.opened.extend(split.map(Opened::Split));
        statements.bindings.push(Binding::Destructure(id, checked, term));
        Ok(())
    }

    /// The variable that a term is, if it is one that no pattern has taken apart.
    fn plain_variable(&self, value: ExprId) -> Option<VarId> {
        let Expr::Name(name) = *self.tree().expr(value) else {
            return None;
        };
        let Value::Var(id) = *self.values.get(self.scope.get(name)?) else {
            return None;
        };
        let whole = !self.known.contains_key(&id) && self.variable(id).origin != Origin::Local;
        whole.then_some(id)
    }
}
