//! Checked terms: names resolved, types and proofs erased, locals still by number.
//!
//! The checker writes them, `lower` turns them into the core. They lie flat, like the syntax tree.

use crate::check::{ConstructorId, DefId, VarId};
use crate::diagnostic::Span;
use crate::hash::NumberMap;
use crate::syntax::Symbol;

/// The number of a checked term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TermId(pub(crate) u32);

/// The number of a checked pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckedPatternId(pub(crate) u32);

/// A checked term.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Term {
    /// A type, a proof, or another thing without meaning at run time.
    Erased,
    Var(VarId),
    Global(DefId),
    Nat(u64),
    U32(u32),
    F32(u32),
    Char(char),
    Text(Symbol),
    Construct(ConstructorId, Vec<TermId>),
    Successor(u64, TermId),
    Call(TermId, Vec<TermId>),
    Lambda(VarId, TermId),
    Block(Vec<Binding>, TermId),
    Match(Vec<VarId>, Vec<Row>),
    /// Actions in sequence, each answer bound, and the action that answers for all.
    Sequence(Vec<Step>, TermId),
}

/// A step of a sequence of actions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    /// Runs an action and binds its answer.
    Run(VarId, TermId),
    /// Binds a value.
    Let(VarId, TermId),
}

/// A local definition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Binding {
    Let(VarId, TermId),
    Parallel(Vec<VarId>, Vec<TermId>),
    /// The value, a variable for all of it, and its one pattern.
    Destructure(VarId, CheckedPatternId, TermId),
}

/// A case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) patterns: Vec<CheckedPatternId>,
    pub(crate) body: TermId,
}

/// A checked pattern.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CheckedPattern {
    Wildcard,
    Bind(VarId),
    Construct(ConstructorId, Vec<CheckedPatternId>),
    Nat(u64),
    /// A Nat of at least that much; the rest is matched on.
    AtLeast(u64, CheckedPatternId),
    U32(u32),
    F32(u32),
    Char(char),
    /// All of a string.
    Text(Symbol),
}

/// The tables.
#[derive(Debug, Default)]
pub(crate) struct Elaborated {
    terms: Vec<Term>,
    patterns: Vec<CheckedPattern>,
    /// Where the calls stand, for what a run says of them.
    places: NumberMap<u32, Span>,
}

impl Elaborated {
    pub(crate) fn add(&mut self, term: Term) -> TermId {
        self.terms.push(term);
        TermId(self.terms.len() as u32 - 1)
    }

    /// A call that stands there.
    pub(crate) fn add_call(&mut self, function: TermId, arguments: Vec<TermId>, span: Span) -> TermId {
        let id = self.add(Term::Call(function, arguments));
        self.places.insert(id.0, span);
        id
    }

    /// Where a call stands.
    pub(crate) fn place(&self, id: TermId) -> Option<Span> {
        self.places.get(&id.0).copied()
    }

    pub(crate) fn term(&self, id: TermId) -> &Term {
        &self.terms[id.0 as usize]
    }

    pub(crate) fn add_pattern(&mut self, pattern: CheckedPattern) -> CheckedPatternId {
        self.patterns.push(pattern);
        CheckedPatternId(self.patterns.len() as u32 - 1)
    }

    pub(crate) fn pattern(&self, id: CheckedPatternId) -> &CheckedPattern {
        &self.patterns[id.0 as usize]
    }
}
