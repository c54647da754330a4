//! Bodies: matches, local statements, and the term they end in.

use super::{Parsed, Parser};
use crate::diagnostic::Span;
use crate::lexer::TokenKind;
use crate::syntax::{keyword, Binder, Case, Expr, ExprId, Local, Match, Quantity};

/// A body, and the `: T` that was read after its last term in search of a typed local.
pub(super) struct ParsedBody {
    pub(super) term: ExprId,
    pub(super) annotation: Option<(ExprId, Span)>,
}

/// What a statement turned out to be.
enum Step {
    Local(Local),
    Last(ParsedBody),
}

impl Parser<'_> {
    /// A body: of a definition, a law, a case, a lambda or a rewrite, or in parentheses.
    pub(super) fn body(&mut self) -> Parsed<ParsedBody> {
        self.nest(|parser| {
            let start = parser.here();
            let mut locals = Vec::new();
            let mut last = loop {
                if parser.is_word(keyword::MATCH) {
                    break parser.match_body()?;
                }
                match parser.statement()? {
                    Step::Local(local) => locals.push(local),
                    Step::Last(body) => break body,
                }
            };
            if !locals.is_empty() {
                last.term = parser.add(Expr::Block(locals, last.term), start)?;
            }
            Ok(last)
        })
    }

    /// A match. A `: T` after its last case is that of the parentheses around it, and ends it.
    fn match_body(&mut self) -> Parsed<ParsedBody> {
        let start = self.bump().start;
        let mut scrutinees = vec![self.term(0)?];
        self.skip_separator();
        while !self.take(":") {
            scrutinees.push(self.term(0)?);
            self.skip_separator();
        }
        let cases_column = self.token().column.max(self.enclosing_case + 1);
        let mut cases = Vec::new();
        let mut annotation = None;
        while annotation.is_none() && self.is_word(keyword::CASE) && self.token().column >= cases_column {
            let (case, after) = self.case(scrutinees.len())?;
            cases.push(case);
            annotation = after;
        }
        Ok(ParsedBody { term: self.add(Expr::Match(Match { scrutinees, cases }), start)?, annotation })
    }

    /// A case, and the `: T` after it.
    fn case(&mut self, width: usize) -> Parsed<(Case, Option<(ExprId, Span)>)> {
        let case = self.bump();
        let first = self.here();
        let mut patterns = vec![self.pattern()?];
        self.skip_separator();
        while !self.is(":") {
            patterns.push(self.pattern()?);
            self.skip_separator();
        }
        if patterns.len() != width {
            let span = self.span_from(first);
            let text = &self.text[span.start as usize..span.end as usize];
            let plural = if width == 1 { "" } else { "s" };
            return Err(Box::new(crate::diagnostic::Diagnostic::mismatch(
                format!("{width} pattern{plural} (one for each scrutinee)"),
                format!("'{text}'"),
                Some(span),
            )));
        }
        self.bump();
        let span = self.span_from(case.start);
        let outer = std::mem::replace(&mut self.enclosing_case, case.column);
        let body = self.body()?;
        self.enclosing_case = outer;
        Ok((Case { patterns, body: body.term, span }, body.annotation))
    }

    /// One local statement, or the last term.
    fn statement(&mut self) -> Parsed<Step> {
        let start = self.here();
        let column = self.token().column;
        if self.is("-") && !self.peek_at(1).spaced {
            self.bump();
            let (name, _) = self.name()?;
            let binder = Binder { quantity: Quantity::None, name, span: self.span_from(start) };
            return self.typed_local(binder);
        }
        let first = self.term_before_colon(0)?;
        if self.annotation.is_some() {
            let annotation = self.annotation.take();
            return Ok(Step::Last(ParsedBody { term: first, annotation }));
        }
        if self.starts_another_name() {
            return self.parallel(first);
        }
        if self.is(":") {
            return self.after_colon(first);
        }
        if self.take("=") {
            let value = self.term(0)?;
            let _ = self.take(";");
            return Ok(Step::Local(self.bind(first, value)?));
        }
        if let Some(local) = self.write_statement(first, column) {
            return Ok(Step::Local(local));
        }
        Ok(Step::Last(ParsedBody { term: first, annotation: None }))
    }

    /// On the same line, another name to bind.
    fn starts_another_name(&self) -> bool {
        let token = self.token();
        if token.first {
            return false;
        }
        match token.kind {
            TokenKind::Name(name) => !name.is_reserved(),
            TokenKind::Punct("+") => {
                let next = self.peek_at(1);
                !next.spaced && matches!(next.kind, TokenKind::Name(_))
            }
            _ => false,
        }
    }

    fn parallel(&mut self, first: ExprId) -> Parsed<Step> {
        let mut binders = vec![self.binder_of(first)?];
        while !self.is("=") {
            if !self.starts_another_name() {
                return self.fail("'=' and the values of the parallel let");
            }
            let next = self.term(0)?;
            binders.push(self.binder_of(next)?);
        }
        self.bump();
        let mut values = Vec::new();
        while values.len() < binders.len() {
            if self.token().first && !values.is_empty() {
                let count = binders.len();
                return self.fail(format!("{count} values on this line, one for each name"));
            }
            values.push(self.term(0)?);
            let _ = self.take(",");
        }
        let _ = self.take(";");
        Ok(Step::Local(Local::Parallel(binders, values)))
    }

    /// `x : T = v`, or the last term of a group `(x : T)`.
    fn after_colon(&mut self, first: ExprId) -> Parsed<Step> {
        let colon = self.bump();
        let ty = self.term(0)?;
        if !self.is("=") {
            return Ok(Step::Last(ParsedBody { term: first, annotation: Some((ty, self.span_of(colon))) }));
        }
        self.bump();
        let binder = self.binder_of(first)?;
        let value = self.term(0)?;
        let _ = self.take(";");
        Ok(Step::Local(Local::Let(binder, Some(ty), value)))
    }

    fn typed_local(&mut self, binder: Binder) -> Parsed<Step> {
        let ty = if self.take(":") { Some(self.term(0)?) } else { None };
        self.expect("=")?;
        let value = self.term(0)?;
        let _ = self.take(";");
        Ok(Step::Local(Local::Let(binder, ty, value)))
    }

    /// `first = value`: a name, or a pattern.
    fn bind(&mut self, first: ExprId, value: ExprId) -> Parsed<Local> {
        if let Some(binder) = self.as_binder(first) {
            return Ok(Local::Let(binder, None, value));
        }
        let pattern = self.pattern_of(first)?;
        Ok(Local::Destructure(pattern, value))
    }

    /// `a[i] <- v` with more to come binds `a` anew.
    fn write_statement(&mut self, first: ExprId, column: u32) -> Option<Local> {
        let Expr::Write(array, _, _) = *self.tree.expr(first) else {
            return None;
        };
        let binder = self.as_binder(array)?;
        let more =
            self.is(";") || (self.peek() != TokenKind::End && self.token().first && self.token().column == column);
        if !more {
            return None;
        }
        let _ = self.take(";");
        Some(Local::Write(binder, first))
    }

    /// The term as a binder: `x` or `+x`.
    pub(super) fn as_binder(&self, term: ExprId) -> Option<Binder> {
        let (quantity, name) = match *self.tree.expr(term) {
            Expr::Name(name) => (Quantity::One, name),
            Expr::Plus(inner) => match *self.tree.expr(inner) {
                Expr::Name(name) => (Quantity::Many, name),
                _ => return None,
            },
            _ => return None,
        };
        Some(Binder { quantity, name, span: self.tree.span(term) })
    }

    fn binder_of(&self, term: ExprId) -> Parsed<Binder> {
        match self.as_binder(term) {
            Some(binder) => Ok(binder),
            None => self.fail_at(
                "a name (a typed or parallel local binds names; take them apart in its body)",
                self.tree.span(term),
            ),
        }
    }
}
