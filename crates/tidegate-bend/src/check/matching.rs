//! Matches: what may be matched, its rows, and the names a row binds.

use super::value::{Value, VarId, V};
use super::{Checked, Checker, Origin};
use crate::diagnostic::Span;
use crate::elaborated::{CheckedPattern, CheckedPatternId, Row, Term, TermId};
use crate::syntax::{Case, Expr, ExprId, Pattern, PatternId, Quantity, Symbol};

/// A variable taken apart by a pattern, until its row ends.
pub(super) struct Split {
    variable: VarId,
    /// The variables of the pattern.
    parts: Vec<VarId>,
    /// Where it stood among the locals, if it did.
    place: Option<usize>,
    /// Its quantity before a `+` in the pattern.
    quantity: Quantity,
    known: bool,
}

impl Checker<'_> {
    pub(super) fn check_match(&mut self, id: ExprId, want: V) -> Checked<TermId> {
        let Expr::Match(found) = self.tree().expr(id).clone() else {
            unreachable!("only matches are checked as matches")
        };
        let mut variables = Vec::new();
        for &scrutinee in &found.scrutinees {
            variables.push(self.scrutinee(scrutinee)?);
        }
        self.reject_repeated_scrutinee(&variables, &found.scrutinees)?;
        for (&variable, &scrutinee) in variables.iter().zip(&found.scrutinees) {
            let span = self.span(scrutinee);
            self.use_scrutinee(variable, span)?;
        }
        self.reject_repeated_cases(&found.cases)?;
        let mut rows = Vec::new();
        let mut branches = Vec::new();
        for case in &found.cases {
            let mark = self.affinity.mark();
            rows.push(self.check_row(&variables, case, want)?);
            branches.push(self.affinity.take_branch(mark));
        }
        self.affinity.join(branches);
        let types: Vec<V> = variables.iter().map(|&id| self.variable(id).ty).collect();
        let patterns: Vec<Vec<PatternId>> = found.cases.iter().map(|case| case.patterns.clone()).collect();
        let span = self.match_span(id, &found.scrutinees);
        self.check_cover(span, &patterns, &types)?;
        Ok(self.add(Term::Match(variables, rows)))
    }

    /// `match` and its scrutinees, without the cases.
    fn match_span(&self, id: ExprId, scrutinees: &[ExprId]) -> Span {
        let span = self.span(id);
        let end = scrutinees.last().map_or(span.end, |&last| self.span(last).end);
        Span { end, ..span }
    }

    fn check_row(&mut self, variables: &[VarId], case: &Case, want: V) -> Checked<Row> {
        let scope_mark = self.scope.mark();
        let mut splits = Vec::new();
        let mut patterns = Vec::new();
        for (&variable, &pattern) in variables.iter().zip(&case.patterns) {
            let (checked, split) = self.split(variable, pattern)?;
            patterns.push(checked);
            splits.extend(split);
        }
        let body = self.check(case.body, want, None)?;
        self.scope.truncate(scope_mark);
        while let Some(split) = splits.pop() {
            self.undo_split(split)?;
        }
        Ok(Row { patterns, body })
    }

    /// The variable that a scrutinee names; nothing else may be matched.
    fn scrutinee(&mut self, id: ExprId) -> Checked<VarId> {
        let inner = match self.tree().expr(id) {
            Expr::Group(inner, None) => *inner,
            _ => id,
        };
        if let Expr::Name(name) = *self.tree().expr(inner) {
            if let Some(value) = self.scope.get(name) {
                if let Value::Var(variable) = *self.values.get(value) {
                    return self.matchable(variable, name, self.span(inner));
                }
            } else if self.book.global(self.scope.module, name).is_none() {
                return Err(self.unknown_name(name, self.span(inner)));
            }
        }
        let span = self.span(id);
        let observed = self.source_text(span);
        Err(self.bad_scrutinee(
            observed,
            span,
            "give the value to a definition of its own, which matches on its parameter.",
        ))
    }

    fn matchable(&mut self, variable: VarId, name: Symbol, span: Span) -> Checked<VarId> {
        let text = self.book.names.text(name).to_owned();
        if self.variable(variable).origin == Origin::Local {
            let note =
                "a local is no scrutinee: give its value to a definition of its own, which matches on its parameter.";
            return Err(self.bad_scrutinee(text, span, note));
        }
        if self.known.contains_key(&variable) && !self.lenient {
            let note = "it was taken apart already: match on the names its pattern bound.";
            return Err(self.bad_scrutinee(format!("{text} (matched before)"), span, note));
        }
        Ok(variable)
    }

    fn bad_scrutinee(&mut self, observed: String, span: Span, note: &str) -> Box<crate::diagnostic::Diagnostic> {
        let error = self.mismatch("a parameter or a field to match on", observed, Some(span));
        self.with_context(Box::new(error.with_note(note)))
    }

    fn reject_repeated_scrutinee(&mut self, variables: &[VarId], scrutinees: &[ExprId]) -> Checked<()> {
        for (at, variable) in variables.iter().enumerate() {
            if variables[..at].contains(variable) {
                let span = self.span(scrutinees[at]);
                let observed = self.source_text(span);
                return Err(self.bad_scrutinee(observed, span, "it is matched on twice here."));
            }
        }
        Ok(())
    }

    pub(super) fn use_scrutinee(&mut self, variable: VarId, span: Span) -> Checked<()> {
        if self.variable(variable).quantity == Quantity::None && self.dead == 0 && !self.lenient {
            let name = self.book.names.text(self.variable(variable).name).to_owned();
            let error = self.mismatch(name.clone(), format!("-{name}"), Some(span));
            let note = "an erased name has no value at run time, so it can't be matched on.";
            return Err(self.with_context(Box::new(error.with_note(note))));
        }
        if self.closed_from.is_some() {
            self.use_variable(variable, span)?;
        }
        self.use_whole(variable);
        Ok(())
    }

    /// Binds the names of a pattern to a variable and its parts.
    pub(super) fn split(&mut self, variable: VarId, pattern: PatternId) -> Checked<(CheckedPatternId, Option<Split>)> {
        let quantity = self.variable(variable).quantity;
        if let Pattern::Bind(binder) = *self.tree().pattern(pattern) {
            self.reject_constructor_name(binder)?;
            let value = self.values.var(variable);
            self.scope.push(binder.name, value);
            let checked = self.elaborated.add_pattern(CheckedPattern::Wildcard);
            if binder.quantity != Quantity::Many || quantity != Quantity::One {
                return Ok((checked, None));
            }
            let kind = self.kind_of(self.variable(variable).ty);
            self.require_data(kind, binder.name, binder.span)?;
            self.variables[variable.0 as usize].quantity = Quantity::Many;
            let split = Split { variable, parts: Vec::new(), place: None, quantity, known: false };
            return Ok((checked, Some(split)));
        }
        let ty = self.variable(variable).ty;
        let mut parts = Vec::new();
        let (checked, shape) = self.check_pattern(pattern, ty, quantity, &mut parts)?;
        self.known.insert(variable, shape);
        self.affinity.split(variable, parts.clone());
        let place = self.locals.iter().rposition(|&local| local == variable);
        if let Some(place) = place {
            self.locals.splice(place..=place, parts.iter().copied());
        }
        Ok((checked, Some(Split { variable, parts, place, quantity, known: true })))
    }

    /// Ends what `split` began, and checks how the parts were used.
    pub(super) fn undo_split(&mut self, split: Split) -> Checked<()> {
        self.variables[split.variable.0 as usize].quantity = split.quantity;
        if split.known {
            self.known.remove(&split.variable);
            self.affinity.unsplit(split.variable);
        }
        if let Some(place) = split.place {
            self.locals.splice(place..place + split.parts.len(), [split.variable]);
        }
        self.close_parts(&split.parts)
    }

    /// Two cases with the same patterns: the second is never reached.
    fn reject_repeated_cases(&mut self, cases: &[Case]) -> Checked<()> {
        let mut seen = std::collections::HashSet::new();
        for case in cases {
            let shape: Vec<String> = case.patterns.iter().map(|&pattern| self.pattern_shape(pattern)).collect();
            let shape = shape.join(" ");
            if !seen.insert(shape.clone()) {
                let error = self.mismatch(
                    "a case that an earlier one does not cover",
                    format!("case {shape} (repeated)"),
                    Some(case.span),
                );
                return Err(self.with_context(Box::new(error)));
            }
        }
        Ok(())
    }
}
