//! `do M<..>:` blocks, as calls of `M.bind` and `M.pure`.
//!
//! A block may have very many statements, so they are walked, not recursed into. Blocks of IO become
//! one sequence; those of other monads nest, as their functions demand, and are bounded in length.

use super::book::{DefId, Global};
use super::term::Inferred;
use super::value::{Value, V};
use super::{Checked, Checker, Origin, VarId, Variable};
use crate::diagnostic::Span;
use crate::elaborated::{Binding, Step, Term, TermId};
use crate::parser::MAX_DEPTH;
use crate::syntax::{keyword, Binder, DoBlock, Expr, ExprId, Quantity, Statement};

/// The monad of a block.
struct Monad {
    bind: DefId,
    pure: DefId,
    /// The type arguments before the last.
    leading: Vec<V>,
    /// The last: the type of the block's answer.
    answer: Option<V>,
    is_io: bool,
}

/// A statement, checked.
enum Link {
    /// `M.bind(before.., action, variable => ..)`
    Bind(Vec<TermId>, TermId, VarId),
    Let(VarId, TermId),
}

impl Checker<'_> {
    pub(super) fn infer_do(&mut self, id: ExprId) -> Checked<Inferred> {
        let Expr::Do(block) = self.tree().expr(id).clone() else {
            unreachable!("only do blocks are inferred as do blocks")
        };
        let (monad, ty) = self.monad(&block)?;
        if !monad.is_io && block.statements.len() > MAX_DEPTH as usize / 4 {
            let message = format!("a do block of at most {} statements (only IO has longer ones)", MAX_DEPTH / 4);
            return Err(Box::new(self.message(message, Some(self.span(id)))));
        }
        let (depth, mark) = (self.locals.len(), self.scope.mark());
        let mut links = Vec::new();
        let mut want = ty;
        for statement in &block.statements {
            self.statement(&monad, statement, &mut want, &mut links)?;
        }
        let result = if block.returns {
            self.check_return(&monad, block.result, want)?
        } else {
            self.check(block.result, want, None)?
        };
        self.close(depth, mark)?;
        let term = if monad.is_io { self.sequence(links, result) } else { self.nest(&monad, links, result) };
        Ok((term, ty))
    }

    /// The functions of a block's monad, and the type of the block.
    fn monad(&mut self, block: &DoBlock) -> Checked<(Monad, V)> {
        let (mut ty, head, missing) = match self.book.global(self.scope.module, block.monad) {
            Some(Global::Data(data)) => {
                let declared = self.book.data(data);
                let left_out = block.arguments.len() + declared.quantities == declared.parameters;
                let missing = if left_out { declared.quantities } else { 0 };
                (self.family_type(data), Global::Data(data), missing)
            }
            Some(Global::Def(def)) => (self.def_type(def), Global::Def(def), 0),
            None => return Err(self.unknown_name(block.monad, block.monad_span)),
        };
        let one = self.values.add(Value::Quantity(1));
        let mut arguments = vec![one; missing];
        for _ in 0..missing {
            ty = self.instantiate_with(ty, one);
        }
        for &argument in &block.arguments {
            self.refuel();
            ty = self.whnf(ty);
            let Value::Pi(_, _, domain, _) = *self.values.get(ty) else {
                let name = self.book.names.text(block.monad).to_owned();
                let error = self.message(format!("{name} with fewer arguments"), Some(self.span(argument)));
                return Err(self.with_context(Box::new(error)));
            };
            self.in_dead(|checker| checker.check(argument, domain, None))?;
            let value = self.eval_here(argument);
            arguments.push(value);
            ty = self.instantiate_with(ty, value);
        }
        self.refuel();
        let rest = self.whnf(ty);
        if matches!(self.values.get(rest), Value::Pi(..)) && !block.arguments.is_empty() {
            let name = self.book.names.text(block.monad).to_owned();
            let error = self.message(format!("{name} with more arguments"), Some(block.monad_span));
            return Err(self.with_context(Box::new(error)));
        }
        let bind = self.monad_function(block, "bind")?;
        let pure = self.monad_function(block, "pure")?;
        let block_type = match head {
            Global::Data(data) => self.data_type(data, &arguments),
            Global::Def(def) => self.apply_def(def, &arguments),
        };
        let answer = arguments.pop();
        let is_io = bind == self.builtin.io_bind;
        Ok((Monad { bind, pure, leading: arguments, answer, is_io }, block_type))
    }

    fn monad_function(&mut self, block: &DoBlock, method: &str) -> Checked<DefId> {
        let text = format!("{}.{method}", self.book.names.text(block.monad));
        let found = self.book.names.find(&text).and_then(|name| self.book.global(self.scope.module, name));
        if let Some(Global::Def(def)) = found {
            self.note_call(def, block.monad_span);
            return Ok(def);
        }
        let monad = self.book.names.text(block.monad).to_owned();
        let error = self.mismatch("a defined name", text, Some(block.monad_span));
        let note = format!("a do block of {monad} calls {monad}.bind and {monad}.pure.");
        Err(self.with_context(Box::new(error.with_note(note))))
    }

    /// A function at type arguments that are values already; those not erased are passed on.
    fn at_types(&mut self, def: DefId, arguments: &[V]) -> (V, Vec<TermId>) {
        let mut ty = self.def_type(def);
        let mut terms = Vec::new();
        for &argument in arguments {
            self.refuel();
            ty = self.whnf(ty);
            if let Value::Pi(quantity, ..) = *self.values.get(ty) {
                if quantity != Quantity::None {
                    terms.push(self.erased());
                }
            }
            ty = self.instantiate_with(ty, argument);
        }
        self.refuel();
        (self.whnf(ty), terms)
    }

    fn statement(&mut self, monad: &Monad, statement: &Statement, want: &mut V, links: &mut Vec<Link>) -> Checked<()> {
        let nothing = |span: Span| Binder { quantity: Quantity::One, name: keyword::WILDCARD, span };
        match *statement {
            Statement::Let(binder, ty, value) => {
                let ty = self.check_binder_type(ty, binder.quantity, binder.name)?;
                let term = self.check(value, ty, None)?;
                let id = self.open_statement(binder, ty, binder.quantity);
                links.push(Link::Let(id, term));
                Ok(())
            }
            Statement::Bind(binder, ty, action) => {
                let ty = self.check_binder_type(ty, binder.quantity, binder.name)?;
                self.bind(monad, binder, ty, action, want, links)
            }
            Statement::Run(ty, action) => {
                let ty = self.check_type(ty)?;
                self.bind(monad, nothing(self.span(action)), ty, action, want, links)
            }
            Statement::Step(action) => {
                let unit = self.data_type(self.builtin.unit, &[]);
                self.bind(monad, nothing(self.span(action)), unit, action, want, links)
            }
        }
    }

    /// `binder : ty <- action`.
    fn bind(
        &mut self,
        monad: &Monad,
        binder: Binder,
        ty: V,
        action: ExprId,
        want: &mut V,
        links: &mut Vec<Link>,
    ) -> Checked<()> {
        let mut arguments = monad.leading.clone();
        arguments.push(ty);
        arguments.extend(monad.answer);
        let (function, before) = self.at_types(monad.bind, &arguments);
        let Value::Pi(_, _, domain, rest) = *self.values.get(function) else {
            return Err(self.not_a_bind(monad.bind, binder.span));
        };
        let action_term = self.check(action, domain, None)?;
        let continuation = self.apply_type(rest, action);
        let continuation = self.whnf(continuation);
        let Value::Pi(_, _, function_type, _) = *self.values.get(continuation) else {
            return Err(self.not_a_bind(monad.bind, binder.span));
        };
        let function_type = self.whnf(function_type);
        let Value::Pi(quantity, _, _, next) = *self.values.get(function_type) else {
            return Err(self.not_a_bind(monad.bind, binder.span));
        };
        let quantity = if binder.quantity == Quantity::Many { Quantity::Many } else { quantity };
        let id = self.open_statement(binder, ty, quantity);
        let value = self.values.var(id);
        *want = self.values.instantiate(next, value);
        links.push(Link::Bind(before, action_term, id));
        Ok(())
    }

    fn not_a_bind(&mut self, bind: DefId, span: Span) -> Box<crate::diagnostic::Diagnostic> {
        let ty = self.def_type(bind);
        let observed = self.show(ty);
        let name = self.def_name(bind);
        let expected = format!("{name} as a function of types, an action, and a function of its answer");
        let error = self.mismatch(expected, observed, Some(span));
        self.with_context(Box::new(error))
    }

    fn open_statement(&mut self, binder: Binder, ty: V, quantity: Quantity) -> VarId {
        let hidden = binder.name == keyword::WILDCARD;
        self.open(Variable {
            name: binder.name,
            ty,
            quantity,
            span: (!hidden).then_some(binder.span),
            origin: Origin::Local,
        })
    }

    /// `return e`.
    fn check_return(&mut self, monad: &Monad, value: ExprId, want: V) -> Checked<TermId> {
        let mut arguments = monad.leading.clone();
        arguments.extend(monad.answer);
        let (function, mut terms) = self.at_types(monad.pure, &arguments);
        let span = self.span(value);
        let Value::Pi(_, _, domain, result) = *self.values.get(function) else {
            return Err(self.not_a_bind(monad.pure, span));
        };
        terms.push(self.check(value, domain, None)?);
        let result = self.apply_type(result, value);
        if let Err(error) = self.require_fit(result, want, span) {
            return Err(self.with_context(error));
        }
        let head = self.add(Term::Global(monad.pure));
        Ok(self.add(Term::Call(head, terms)))
    }

    fn sequence(&mut self, links: Vec<Link>, result: TermId) -> TermId {
        if links.is_empty() {
            return result;
        }
        let steps = links
            .into_iter()
            .map(|link| match link {
                Link::Bind(_, action, id) => Step::Run(id, action),
                Link::Let(id, value) => Step::Let(id, value),
            })
            .collect();
        self.add(Term::Sequence(steps, result))
    }

    fn nest(&mut self, monad: &Monad, links: Vec<Link>, result: TermId) -> TermId {
        let mut term = result;
        for link in links.into_iter().rev() {
            term = match link {
                Link::Let(id, value) => self.add(Term::Block(vec![Binding::Let(id, value)], term)),
                Link::Bind(mut arguments, action, id) => {
                    let rest = self.add(Term::Lambda(id, term));
                    arguments.extend([action, rest]);
                    let head = self.add(Term::Global(monad.bind));
                    self.add(Term::Call(head, arguments))
                }
            };
        }
        term
    }
}
