//! Patterns, read as patterns after `case` and made from terms before `=`.

use super::{Parsed, Parser};
use crate::lexer::TokenKind;
use crate::syntax::{Binder, Expr, ExprId, Operator, Pattern, PatternId, Quantity};

impl Parser<'_> {
    pub(super) fn pattern(&mut self) -> Parsed<PatternId> {
        self.nest(|parser| {
            let start = parser.here();
            let head = parser.pattern_atom()?;
            if !parser.take("<>") {
                return Ok(head);
            }
            let tail = parser.pattern()?;
            Ok(parser.add_pattern(Pattern::Cons(head, tail), start))
        })
    }

    fn pattern_atom(&mut self) -> Parsed<PatternId> {
        let start = self.here();
        let pattern = match self.peek() {
            TokenKind::Name(_) => return self.named_pattern(),
            TokenKind::Punct("+") if !self.peek_at(1).spaced => {
                self.bump();
                let (name, _) = self.name()?;
                let span = self.span_from(start);
                Pattern::Bind(Binder { quantity: Quantity::Many, name, span })
            }
            TokenKind::Punct("(") => return self.tuple_pattern(),
            TokenKind::Punct("[") => {
                self.bump();
                Pattern::List(self.patterns("]")?)
            }
            TokenKind::Nat(value) => {
                self.bump();
                if self.is("+") && !self.token().spaced {
                    self.bump();
                    let rest = self.nest(Parser::pattern_atom)?;
                    Pattern::Successor(value, rest)
                } else if self.is("++") && !self.token().spaced {
                    let mark = self.bump().start + 1;
                    let (name, _) = self.name()?;
                    let span = self.span_from(mark);
                    let binder = Binder { quantity: Quantity::Many, name, span };
                    let rest = self.add_pattern(Pattern::Bind(binder), mark);
                    Pattern::Successor(value, rest)
                } else {
                    Pattern::Nat(value)
                }
            }
            TokenKind::U32(value) => self.literal_pattern(Pattern::U32(value)),
            TokenKind::F32(value) => self.literal_pattern(Pattern::F32(value)),
            TokenKind::Char(value) => self.literal_pattern(Pattern::Char(value)),
            TokenKind::Text(value) => self.literal_pattern(Pattern::Text(value)),
            _ => return self.fail("a pattern"),
        };
        Ok(self.add_pattern(pattern, start))
    }

    fn literal_pattern(&mut self, pattern: Pattern) -> Pattern {
        self.bump();
        pattern
    }

    fn named_pattern(&mut self) -> Parsed<PatternId> {
        let start = self.here();
        let (name, span) = self.name()?;
        let pattern = if !self.token().spaced && self.take("{") {
            Pattern::Construct(name, self.patterns("}")?)
        } else {
            Pattern::Bind(Binder { quantity: Quantity::One, name, span })
        };
        Ok(self.add_pattern(pattern, start))
    }

    fn patterns(&mut self, close: &str) -> Parsed<Vec<PatternId>> {
        let mut patterns = Vec::new();
        while !self.take(close) {
            patterns.push(self.pattern()?);
            self.skip_separator();
        }
        Ok(patterns)
    }

    /// `(p)` is `p`; two or more are a tuple.
    fn tuple_pattern(&mut self) -> Parsed<PatternId> {
        let start = self.bump().start;
        let first = self.pattern()?;
        if self.take(")") {
            return Ok(first);
        }
        self.expect(",")?;
        let mut patterns = vec![first];
        patterns.extend(self.patterns(")")?);
        if patterns.len() == 1 {
            return Ok(first);
        }
        Ok(self.add_pattern(Pattern::Tuple(patterns), start))
    }

    /// The pattern that a term spells.
    pub(super) fn pattern_of(&mut self, term: ExprId) -> Parsed<PatternId> {
        if let Some(binder) = self.as_binder(term) {
            return Ok(self.tree.add_pattern(Pattern::Bind(binder), binder.span));
        }
        let span = self.tree.span(term);
        let pattern = match self.tree.expr(term).clone() {
            Expr::Construct(name, fields) => Pattern::Construct(name, self.patterns_of(&fields)?),
            Expr::Tuple(fields) => Pattern::Tuple(self.patterns_of(&fields)?),
            Expr::List(fields) => Pattern::List(self.patterns_of(&fields)?),
            Expr::Binary(Operator::Cons, head, tail) => Pattern::Cons(self.pattern_of(head)?, self.pattern_of(tail)?),
            Expr::Successor(count, rest) => Pattern::Successor(count, self.pattern_of(rest)?),
            Expr::Group(inner, None) => return self.pattern_of(inner),
            Expr::Nat(value) => Pattern::Nat(value),
            Expr::U32(value) => Pattern::U32(value),
            Expr::F32(value) => Pattern::F32(value),
            Expr::Char(value) => Pattern::Char(value),
            Expr::Text(value) => Pattern::Text(value),
            _ => return self.fail_at("a name or a pattern before '='", span),
        };
        Ok(self.tree.add_pattern(pattern, span))
    }

    fn patterns_of(&mut self, terms: &[ExprId]) -> Parsed<Vec<PatternId>> {
        terms.iter().map(|&term| self.pattern_of(term)).collect()
    }
}
