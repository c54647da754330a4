//! Terms and operators.

use super::{Parsed, Parser};
use crate::lexer::TokenKind;
use crate::syntax::{
    keyword, Argument, Binder, DoBlock, Expr, ExprId, FillLength, Operator, Quantity, Statement, Symbol,
};

/// Binds tighter than every operator: an atom and its calls.
const ATOM: u8 = 12;

impl Parser<'_> {
    /// A term of operators that bind at least as tightly as `level`.
    pub(super) fn term(&mut self, level: u8) -> Parsed<ExprId> {
        let term = self.term_before_colon(level)?;
        match self.annotation.take() {
            None => Ok(term),
            Some((_, colon)) => self.stray_colon(colon),
        }
    }

    /// A term in the last place of a body: the `: T` after it, if it ends in a body of its own that
    /// has read it, is left in `annotation`.
    pub(super) fn term_before_colon(&mut self, level: u8) -> Parsed<ExprId> {
        self.nest(|parser| {
            let start = parser.here();
            let atom = parser.atom()?;
            parser.continue_term(atom, start, level)
        })
    }

    fn atom(&mut self) -> Parsed<ExprId> {
        let start = self.here();
        let expr = match self.peek() {
            TokenKind::Name(name) => return self.named(name),
            TokenKind::Nat(value) => return self.nat(value),
            TokenKind::U32(value) => Expr::U32(value),
            TokenKind::F32(value) => Expr::F32(value),
            TokenKind::Char(value) => Expr::Char(value),
            TokenKind::Text(value) => Expr::Text(value),
            TokenKind::Quantity(value) => Expr::Quantity(value),
            TokenKind::Punct("(") => return self.parenthesized(),
            TokenKind::Punct("[") => return self.bracketed(),
            TokenKind::Punct("{") => return self.braced(),
            TokenKind::Punct("@") => return self.quantified(false),
            TokenKind::Punct("&") => return self.quantified(true),
            TokenKind::Punct("%") => return self.rewrite(),
            TokenKind::Punct("?") => return self.hole(),
            TokenKind::Punct("+") if !self.peek_at(1).spaced => {
                self.bump();
                let inner = self.term(ATOM)?;
                return self.add(Expr::Plus(inner), start);
            }
            TokenKind::Punct("-") if self.lambda_mark() => {
                self.bump();
                let (name, _) = self.name()?;
                let span = self.span_from(start);
                return self.lambda(Binder { quantity: Quantity::None, name, span });
            }
            _ => return self.fail("a term"),
        };
        self.bump();
        self.add(expr, start)
    }

    /// `-x =>`
    fn lambda_mark(&self) -> bool {
        !self.peek_at(1).spaced
            && matches!(self.peek_at(1).kind, TokenKind::Name(_))
            && self.peek_at(2).kind == TokenKind::Punct("=>")
    }

    fn named(&mut self, name: Symbol) -> Parsed<ExprId> {
        let start = self.here();
        match name {
            keyword::TYPE | keyword::DATA | keyword::QUANT => {
                self.bump();
                let expr = match name {
                    keyword::TYPE => Expr::Type,
                    keyword::DATA => Expr::Data,
                    _ => Expr::Quant,
                };
                self.add(expr, start)
            }
            keyword::KIND => {
                self.bump();
                self.expect("(")?;
                let quantity = self.term(0)?;
                self.expect(")")?;
                self.add(Expr::Kind(quantity), start)
            }
            keyword::DO => self.do_block(),
            keyword::MATCH => self.fail("a term (a match stands at the head of a body)"),
            keyword::CASE => self.fail("a term (no match takes this case: see its column)"),
            keyword::RETURN => self.fail("a term (return stands in a do block)"),
            _ => {
                let (name, _) = self.name()?;
                if !self.token().spaced && self.take("{") {
                    let fields = self.terms("}")?;
                    return self.add(Expr::Construct(name, fields), start);
                }
                self.add(Expr::Name(name), start)
            }
        }
    }

    fn nat(&mut self, value: u64) -> Parsed<ExprId> {
        let start = self.bump().start;
        if self.is("+") && !self.token().spaced {
            self.bump();
            let rest = self.term(Operator::Multiply.level())?;
            return self.add(Expr::Successor(value, rest), start);
        }
        self.add(Expr::Nat(value), start)
    }

    fn hole(&mut self) -> Parsed<ExprId> {
        let start = self.bump().start;
        let (name, _) = self.name()?;
        self.add(Expr::Hole(name), start)
    }

    fn terms(&mut self, close: &str) -> Parsed<Vec<ExprId>> {
        let mut terms = Vec::new();
        while !self.take(close) {
            terms.push(self.term(0)?);
            self.skip_separator();
        }
        Ok(terms)
    }

    fn parenthesized(&mut self) -> Parsed<ExprId> {
        let start = self.bump().start;
        let first = self.body()?;
        if let Some((ty, _)) = first.annotation {
            self.expect(")")?;
            return self.add(Expr::Group(first.term, Some(ty)), start);
        }
        if !self.take(",") {
            self.expect(")")?;
            return self.add(Expr::Group(first.term, None), start);
        }
        let mut parts = vec![first.term];
        loop {
            parts.push(self.body_alone()?);
            if !self.take(",") {
                break;
            }
        }
        self.expect(")")?;
        self.add(Expr::Tuple(parts), start)
    }

    fn bracketed(&mut self) -> Parsed<ExprId> {
        let start = self.bump().start;
        if self.take("]") {
            return self.add(Expr::List(Vec::new()), start);
        }
        let first = self.term(0)?;
        if self.take(":") {
            let of = self.term(ATOM)?;
            let unit = if self.take("*") {
                FillLength::Count
            } else if self.take("^") {
                FillLength::Depth
            } else {
                return self.fail("'*' and a count, or '^' and a depth");
            };
            let length = self.term(0)?;
            self.expect("]")?;
            let fill = Expr::Fill { value: first, of, unit, length };
            return self.add(fill, start);
        }
        self.skip_separator();
        let mut items = vec![first];
        items.extend(self.terms("]")?);
        self.add(Expr::List(items), start)
    }

    fn braced(&mut self) -> Parsed<ExprId> {
        let start = self.bump().start;
        if self.take("==") {
            self.expect("}")?;
            return self.add(Expr::Reflexivity, start);
        }
        let left = self.term(0)?;
        let unequal = self.is("!=");
        let expr = if self.take("==") || self.take("!=") {
            let right = self.term(0)?;
            self.expect(":")?;
            Expr::Equal(left, right, self.term(0)?, unequal)
        } else {
            if !self.is(":") {
                return self.fail("':', '==' or '!='");
            }
            self.bump();
            Expr::Ascribe(left, self.term(0)?)
        };
        self.expect("}")?;
        self.add(expr, start)
    }

    /// `@x: A -> B`, or `&x: A -> B`.
    fn quantified(&mut self, exists: bool) -> Parsed<ExprId> {
        let start = self.bump().start;
        let mark = self.here();
        let quantity = match self.peek() {
            TokenKind::Punct("-") if !exists => Quantity::None,
            TokenKind::Punct("+") if !exists => Quantity::Many,
            _ => Quantity::One,
        };
        if quantity != Quantity::One {
            self.bump();
        }
        let (name, _) = self.name()?;
        let span = self.span_from(mark);
        let binder = Binder { quantity, name, span };
        self.expect(":")?;
        let domain = self.term(1)?;
        self.expect("->")?;
        let codomain = self.term(0)?;
        let expr = if exists { Expr::Exists(binder, domain, codomain) } else { Expr::Forall(binder, domain, codomain) };
        self.add(expr, start)
    }

    fn rewrite(&mut self) -> Parsed<ExprId> {
        let start = self.bump().start;
        let mut equation = self.term(0)?;
        let mut name = None;
        if self.take("@") {
            name = self.as_binder(equation);
            if name.is_none() {
                let span = self.tree.span(equation);
                return self.fail_at("a name before @ (as in %e @ proof : P)", span);
            }
            equation = self.term(0)?;
        }
        self.expect(":")?;
        let motive = self.term(0)?;
        let _ = self.take(";");
        let body = self.body()?;
        self.annotation = body.annotation;
        let body = body.term;
        self.add(Expr::Rewrite { name, equation, motive, body }, start)
    }

    fn lambda(&mut self, binder: Binder) -> Parsed<ExprId> {
        self.expect("=>")?;
        let body = self.body()?;
        self.annotation = body.annotation;
        self.add(Expr::Lambda(binder, body.term), binder.span.start)
    }

    /// Calls, indexes and operators after a term.
    fn continue_term(&mut self, first: ExprId, start: u32, level: u8) -> Parsed<ExprId> {
        let mut term = first;
        loop {
            if self.token().first && (self.is("(") || self.is("[")) {
                return Ok(term);
            }
            if self.is("(") || (self.is("!") && self.peek_at(1).kind == TokenKind::Punct("(")) {
                term = self.call(term, start)?;
            } else if self.is("[") {
                term = self.index(term, start)?;
            } else if level == 0 && self.is("=>") {
                let Some(binder) = self.as_binder(term) else {
                    let span = self.tree.span(term);
                    return self.fail_at("one name before =>", span);
                };
                term = self.lambda(binder)?;
            } else {
                match self.operator(term, start, level)? {
                    Some(longer) => term = longer,
                    None => return Ok(term),
                }
            }
        }
    }

    fn call(&mut self, function: ExprId, start: u32) -> Parsed<ExprId> {
        let bang = self.take("!");
        self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.take(")") {
            let template = self.take("~");
            let value = self.term(0)?;
            arguments.push(Argument { template, value });
            self.skip_separator();
        }
        let call = Expr::Call { function, bang, arguments };
        self.add(call, start)
    }

    fn index(&mut self, array: ExprId, start: u32) -> Parsed<ExprId> {
        self.bump();
        let index = self.term(0)?;
        self.expect("]")?;
        if self.is("<-") && !self.token().first {
            self.bump();
            let value = self.term(Operator::Or.level())?;
            return self.add(Expr::Write(array, index, value), start);
        }
        self.add(Expr::Index(array, index), start)
    }

    /// The operator at this token and how many tokens spell it.
    fn peek_operator(&self) -> Option<(Operator, usize)> {
        let TokenKind::Punct(punct) = self.peek() else {
            return None;
        };
        if punct != ">" {
            let operator = Operator::ALL.into_iter().find(|op| op.text() == punct)?;
            return Some((operator, 1));
        }
        let next = self.peek_at(1);
        match next.kind {
            TokenKind::Punct(">") if !next.spaced => Some((Operator::ShiftRight, 2)),
            TokenKind::Punct("=") if !next.spaced => Some((Operator::GreaterEqual, 2)),
            _ => Some((Operator::Greater, 1)),
        }
    }

    /// One operator and its right side, if it may stand here.
    fn operator(&mut self, left: ExprId, start: u32, level: u8) -> Parsed<Option<ExprId>> {
        let Some((operator, width)) = self.peek_operator() else {
            return Ok(None);
        };
        let token = self.token();
        let glued = !token.spaced;
        let next = self.peek_at(width);
        let glued_family = operator == Operator::Less && glued;
        let is_binder_mark = matches!(operator, Operator::Add | Operator::Subtract)
            && !next.spaced
            && matches!(next.kind, TokenKind::Name(_));
        let closes = glued && matches!(operator, Operator::Greater | Operator::GreaterEqual | Operator::ShiftRight);
        let is_rewrite = operator == Operator::Remainder && !next.spaced;
        if (operator.level() < level && !glued_family) || is_binder_mark || closes || is_rewrite {
            return Ok(None);
        }
        for _ in 0..width {
            self.bump();
        }
        let tighter = operator.level() + u8::from(!operator.is_right());
        let first = self.here();
        let mut right = self.term(tighter)?;
        if glued_family && ["->", "&", "|"].iter().any(|looser| self.is(looser)) {
            right = self.continue_term(right, first, 0)?;
        }
        // Before a comma, only a glued `<` opens a list: the `a < b` of `f(a < b, c)` is an argument.
        if operator == Operator::Less && (self.is(">") || (glued && self.is(","))) {
            return self.family(left, right, start).map(Some);
        }
        if glued_family && operator.level() < level {
            return self.fail("'>' or ',' after a type argument");
        }
        self.add(Expr::Binary(operator, left, right), start).map(Some)
    }

    /// `T<first, ..>` after its first argument.
    fn family(&mut self, head: ExprId, first: ExprId, start: u32) -> Parsed<ExprId> {
        if !matches!(self.tree.expr(head), Expr::Name(_)) {
            let span = self.tree.span(head);
            return self.fail_at("the name of a type before <..>", span);
        }
        self.skip_separator();
        let mut arguments = vec![first];
        arguments.extend(self.terms(">")?);
        self.add(Expr::Family(head, arguments), start)
    }

    fn do_block(&mut self) -> Parsed<ExprId> {
        let start = self.bump().start;
        let (monad, monad_span) = self.name()?;
        let arguments = if self.take("<>") {
            Vec::new()
        } else {
            self.expect("<")?;
            self.terms(">")?
        };
        self.expect(":")?;
        let column = self.token().column;
        let mut statements = Vec::new();
        let returns = loop {
            if self.take_word(keyword::RETURN) {
                break true;
            }
            match self.statement_of_do(column)? {
                Ok(statement) => statements.push(statement),
                Err(result) => {
                    let block = DoBlock { monad, monad_span, arguments, statements, result, returns: false };
                    return self.add(Expr::Do(block), start);
                }
            }
        };
        let result = self.term(0)?;
        let block = DoBlock { monad, monad_span, arguments, statements, result, returns };
        self.add(Expr::Do(block), start)
    }

    /// A statement, or the block's value.
    fn statement_of_do(&mut self, column: u32) -> Parsed<Result<Statement, ExprId>> {
        let term = self.term(0)?;
        let binder = self.as_binder(term);
        let statement = match binder {
            Some(binder) if self.take(":") => {
                let ty = self.term(0)?;
                if self.take("=") {
                    Statement::Let(binder, ty, self.term(0)?)
                } else {
                    self.expect("<-")?;
                    Statement::Bind(binder, ty, self.term(0)?)
                }
            }
            _ if self.is("<-") => {
                self.bump();
                Statement::Run(term, self.term(0)?)
            }
            _ => {
                let token = self.token();
                let ends = [keyword::CASE, keyword::DEF, keyword::LAW, keyword::TYPE_DECL]
                    .map(TokenKind::Name)
                    .contains(&token.kind)
                    || token.kind == TokenKind::End;
                let at_column = token.first && token.column == column && !ends;
                if !self.is(";") && !at_column {
                    return Ok(Err(term));
                }
                Statement::Step(term)
            }
        };
        let _ = self.take(";");
        Ok(Ok(statement))
    }
}
