//! The checker: names, arity, cases, affinity, simple types and descent.
//!
//! It is bidirectional: `infer` finds the type of a term, `check` compares a term with a type it must
//! have. Types are values (see `value`), computed as far as a comparison needs (`normal`), so a type
//! may mention terms and a match refines the types that mention its scrutinee. What is *not* done
//! here is to check proofs: a definition whose type is an equation is read for its names, its arity
//! and its constructors, and skipped (`Notice::ProofSkipped`); a comparison that hangs on values the
//! checker does not compute is let pass.
//!
//! Checking a term also erases it: every function here answers with the checked term
//! (`elaborated`) next to what it found out.

mod affinity;
mod body;
mod book;
mod call;
mod cover;
mod declare;
mod do_block;
mod evaluate;
mod matching;
mod normal;
mod operator;
mod pattern;
mod program;
mod recursion;
mod scope;
mod show;
mod term;
mod value;

pub(crate) use book::{Book, Code, Constructor};
pub use book::{ConstructorId, DataId, DefId};
pub(crate) use program::{check, Findings, Notice};
pub(crate) use value::VarId;

use std::rc::Rc;

use crate::diagnostic::{Diagnostic, Severity, Span};
use crate::elaborated::{Elaborated, Term, TermId};
use crate::hash::NumberMap;
use crate::load::ModuleId;
use crate::syntax::{ExprId, Quantity, Symbol, Tree};
use normal::Fit;
use scope::Scope;
use value::{Value, Values, V};

/// Boxed: an error is rare and large.
type Checked<T> = Result<T, Box<Diagnostic>>;

/// What the literals, the operators and the sugar of the language stand for in Base.
#[derive(Debug)]
struct Builtin {
    nat: DataId,
    string: DataId,
    char: DataId,
    unit: DataId,
    empty: DataId,
    sigma: DataId,
    u32: DefId,
    f32: DefId,
    io: DefId,
    io_bind: DefId,
    zero: ConstructorId,
    succ: ConstructorId,
    nil: ConstructorId,
    con: ConstructorId,
    tuple: ConstructorId,
    chr: ConstructorId,
    snil: ConstructorId,
    scon: ConstructorId,
    pair: DefId,
    or_type: DefId,
    exists: DefId,
    append: DefId,
    and: DefId,
    or: DefId,
    array_new: DefId,
    array_get: DefId,
    array_set: DefId,
}

/// What bound a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A parameter of a definition or a lambda.
    Parameter,
    /// A pattern.
    Field,
    /// A local statement or a `do`.
    Local,
    /// A `~` parameter.
    Template,
}

/// A variable that a term binds.
#[derive(Clone, Copy, Debug)]
struct Variable {
    name: Symbol,
    ty: V,
    quantity: Quantity,
    span: Option<Span>,
    origin: Origin,
}

/// The state of a check.
struct Checker<'b> {
    book: &'b mut Book,
    builtin: Builtin,
    values: Values,
    elaborated: Elaborated,
    variables: Vec<Variable>,
    /// What is known of a variable: its value, or the pattern it was matched with.
    known: NumberMap<VarId, V>,
    scope: Scope,
    /// The variables in scope, outermost first.
    locals: Vec<VarId>,
    affinity: affinity::Affinity,
    /// Above 0: nothing is used at run time (types, erased arguments).
    dead: u32,
    /// Types are not compared: a proof is being read.
    lenient: bool,
    /// In a `~` argument: variables below this one are out of reach.
    closed_from: Option<VarId>,
    current: Option<recursion::Current>,
    calls: recursion::Calls,
    notices: Vec<Notice>,
    /// The definitions that are proofs, in order.
    proofs: Vec<DefId>,
    fuel: u32,
    computing: u32,
    evaluating: u32,
    /// The types of constructors at the arguments of their types, which a long body asks for again and again.
    constructor_types: NumberMap<(ConstructorId, Vec<V>), V>,
    /// The types of their fields, in terms of variables of their own.
    field_types: NumberMap<(ConstructorId, Vec<V>), Rc<[V]>>,
    /// The types that closed values compute to.
    reduced: NumberMap<V, V>,
    /// What the comparison under way has found out.
    compared: NumberMap<(V, V, bool), Fit>,
}

impl Checker<'_> {
    fn tree(&self) -> &Tree {
        &self.book.modules[self.scope.module.0 as usize].tree
    }

    fn span(&self, id: ExprId) -> Span {
        self.tree().span(id)
    }

    fn add(&mut self, term: Term) -> TermId {
        self.elaborated.add(term)
    }

    fn erased(&mut self) -> TermId {
        self.elaborated.add(Term::Erased)
    }

    /// A variable that only computations see.
    fn fresh_var(&mut self, name: Symbol) -> VarId {
        let ty = self.values.any();
        self.new_variable(Variable { name, ty, quantity: Quantity::Many, span: None, origin: Origin::Local })
    }

    fn new_variable(&mut self, variable: Variable) -> VarId {
        self.variables.push(variable);
        VarId(self.variables.len() as u32 - 1)
    }

    fn variable(&self, id: VarId) -> &Variable {
        &self.variables[id.0 as usize]
    }

    /// Brings a variable into scope; `close` takes it out again.
    fn open(&mut self, variable: Variable) -> VarId {
        let name = variable.name;
        let id = self.new_variable(variable);
        let value = self.values.var(id);
        self.scope.push(name, value);
        self.locals.push(id);
        id
    }

    /// Reads `check` as a thing that does not run.
    fn in_dead<T>(&mut self, check: impl FnOnce(&mut Self) -> Checked<T>) -> Checked<T> {
        self.dead += 1;
        let result = check(self);
        self.dead -= 1;
        result
    }

    /// The kind of a type expression. Its value is not made: at every level of a deep type that
    /// would cost the square of its depth.
    fn check_is_type(&mut self, id: ExprId) -> Checked<V> {
        let (_, kind) = self.in_dead(|checker| checker.infer(id, None))?;
        self.refuel();
        let kind = self.whnf(kind);
        if !matches!(self.values.get(kind), Value::Kind(_) | Value::Any | Value::Opaque(_) | Value::Apply(..)) {
            let observed = self.show(kind);
            let error = self.mismatch("a type", observed, Some(self.span(id)));
            return Err(self.maybe_note_missing_arguments(error, id));
        }
        if !matches!(self.values.get(kind), Value::Kind(_)) {
            self.note_undecided();
        }
        Ok(kind)
    }

    /// The value of a type expression, and its kind.
    fn type_of_type(&mut self, id: ExprId) -> Checked<(V, V)> {
        let kind = self.check_is_type(id)?;
        Ok((self.eval_here(id), kind))
    }

    /// A type expression of any kind, as a value.
    fn check_type(&mut self, id: ExprId) -> Checked<V> {
        self.type_of_type(id).map(|(value, _)| value)
    }

    /// A type expression for a binder of that quantity.
    fn check_binder_type(&mut self, id: ExprId, quantity: Quantity, name: Symbol) -> Checked<V> {
        let (value, kind) = self.type_of_type(id)?;
        if quantity == Quantity::Many {
            self.require_data(kind, name, self.span(id))?;
        }
        Ok(value)
    }

    /// A reusable binder needs a Data type.
    fn require_data(&mut self, kind: V, name: Symbol, span: Span) -> Checked<()> {
        let is_unsafe = self.current.as_ref().is_some_and(|current| current.is_unsafe);
        let data = self.values.kind(2);
        if is_unsafe || self.lenient || self.may_stand(kind, data) {
            return Ok(());
        }
        let observed = self.show(kind);
        let name = self.book.names.text(name).to_owned();
        let error = self.mismatch("Data", observed, Some(span));
        Err(Box::new(error.with_note(format!("+{name} can be used many times, so its type must be Data."))))
    }

    fn eval_here(&mut self, id: ExprId) -> V {
        let mut scope = std::mem::replace(&mut self.scope, Scope::new(ModuleId::ENTRY));
        let value = self.eval(&mut scope, id);
        self.scope = scope;
        value
    }

    /// Whether a value of type `found` may stand where `wanted` is asked for. What cannot be decided may,
    /// and the report says so.
    fn may_stand(&mut self, found: V, wanted: V) -> bool {
        match self.fits(found, wanted) {
            Fit::Yes => true,
            Fit::No => false,
            Fit::Undecided => {
                self.note_undecided();
                true
            }
        }
    }

    /// A type that is not computed stands where one is asked for: nothing more is compared.
    fn note_undecided(&mut self) {
        if self.lenient {
            return;
        }
        let Some(current) = &self.current else { return };
        let notice = current.data.map_or(Notice::Undecided(current.def), Notice::UndecidedData);
        if self.notices.last() != Some(&notice) {
            self.notices.push(notice);
        }
    }

    /// Fails unless a value of type `found` may stand where `wanted` is asked for.
    fn require_fit(&mut self, found: V, wanted: V, span: Span) -> Checked<()> {
        if self.lenient || self.may_stand(found, wanted) {
            return Ok(());
        }
        let (expected, observed) = (self.show(wanted), self.show(found));
        Err(Box::new(self.mismatch(expected, observed, Some(span))))
    }

    fn mismatch(&self, expected: impl Into<String>, observed: impl Into<String>, span: Option<Span>) -> Diagnostic {
        self.in_context(Diagnostic::mismatch(expected, observed, span))
    }

    fn message(&self, message: impl Into<String>, span: Option<Span>) -> Diagnostic {
        self.in_context(Diagnostic::message(message, span))
    }

    /// Adds where the checker stands: the definition, and the names in scope.
    fn in_context(&self, mut error: Diagnostic) -> Diagnostic {
        error.severity = Severity::Error;
        error.definition = self.current.as_ref().map(|current| current.shown.clone());
        error
    }

    /// Adds the names in scope; showing them may compute.
    fn with_context(&mut self, mut error: Box<Diagnostic>) -> Box<Diagnostic> {
        let mut context = Vec::new();
        for id in self.locals.clone() {
            let Variable { name, ty, span, .. } = *self.variable(id);
            if span.is_some() && name != crate::syntax::keyword::WILDCARD {
                context.push((self.book.names.text(name).to_owned(), self.show(ty)));
            }
        }
        error.context = context;
        error
    }
}
