//! Declarations: `type`, `law`, `def`.

use super::{Parsed, Parser};
use crate::diagnostic::Span;
use crate::lexer::TokenKind;
use crate::syntax::{keyword, Body, Clause, Constructor, Declaration, Item, Mode, Parameter, Quantity, Symbol};

impl Parser<'_> {
    pub(super) fn declaration(&mut self) -> Parsed<Declaration> {
        if self.is("@") {
            return self.unsafe_def();
        }
        if self.take_word(keyword::TYPE_DECL) {
            return self.type_declaration();
        }
        if self.take_word(keyword::LAW) {
            return self.law();
        }
        if self.take_word(keyword::DEF) {
            return self.def(false);
        }
        if self.is_word(keyword::CASE) {
            return self
                .fail("'def', 'type' or 'law' (no match takes this case: cases stand at or right of the first one)");
        }
        if self.is_word(keyword::IMPORT) {
            return self.fail("'def', 'type' or 'law' (imports stand at the head of the file)");
        }
        self.fail("'def', 'type' or 'law'")
    }

    fn unsafe_def(&mut self) -> Parsed<Declaration> {
        self.bump();
        match self.peek() {
            TokenKind::Name(word) if self.names.text(word) == "unsafe" => self.bump(),
            _ => return self.fail("'unsafe' (the one decorator)"),
        };
        if !self.take_word(keyword::DEF) {
            return self.fail("'def' (@unsafe marks the definition below it)");
        }
        self.def(true)
    }

    fn def(&mut self, is_unsafe: bool) -> Parsed<Declaration> {
        let (name, name_span) = self.name()?;
        let partial = self.take("?");
        self.expect("(")?;
        let parameters = self.parameters(")")?;
        let result = if self.take("->") { Some(self.term(0)?) } else { None };
        self.expect(":")?;
        let body = if self.is_word(keyword::IMPORT) {
            Body::Foreign(self.foreign_imports()?)
        } else {
            Body::Term(self.body_alone()?)
        };
        Ok(Declaration { name, name_span, item: Item::Def { is_unsafe, partial, parameters, result, body } })
    }

    fn foreign_imports(&mut self) -> Parsed<Vec<Symbol>> {
        let mut files = Vec::new();
        while self.take_word(keyword::IMPORT) {
            match self.peek() {
                TokenKind::Text(file) => files.push(file),
                _ => return self.fail("the file of a foreign body, in quotes"),
            }
            self.bump();
        }
        Ok(files)
    }

    fn type_declaration(&mut self) -> Parsed<Declaration> {
        let (name, name_span) = self.name()?;
        let parameters = self.type_parameters()?;
        if !self.take_word(keyword::IS) {
            return self.fail("'is' and the kind of the type (Data or Type)");
        }
        let kind = self.term(0)?;
        self.expect(":")?;
        let mut constructors = Vec::new();
        while matches!(self.peek(), TokenKind::Name(word)
            if ![keyword::DEF, keyword::TYPE_DECL, keyword::LAW, keyword::IMPORT].contains(&word))
        {
            let (name, span) = self.name()?;
            self.expect("{")?;
            let fields = self.parameters("}")?;
            constructors.push(Constructor { name, span, fields });
            self.skip_separator();
        }
        Ok(Declaration { name, name_span, item: Item::Type { parameters, kind, constructors } })
    }

    /// `<..>`; in `<-A: T>` the first two characters were read as one arrow.
    fn type_parameters(&mut self) -> Parsed<Vec<Parameter>> {
        if self.take("<") {
            return self.parameters(">");
        }
        if !self.take("<-") {
            return Ok(Vec::new());
        }
        let first = self.parameter(Mode::Plain(Quantity::None), ">")?;
        self.skip_separator();
        self.more_parameters(vec![first], ">")
    }

    fn law(&mut self) -> Parsed<Declaration> {
        let (name, name_span) = self.name()?;
        self.expect(":")?;
        let mut clauses = Vec::new();
        loop {
            let exists = self.is_word(keyword::EXS);
            if !exists && !self.is_word(keyword::FOR) {
                break;
            }
            self.bump();
            let mode = if exists { Mode::Plain(Quantity::One) } else { self.mode() };
            let (name, span) = self.name()?;
            self.expect(":")?;
            let ty = Some(self.term(0)?);
            let condition = if self.take_word(keyword::WHERE) { Some(self.term(0)?) } else { None };
            self.skip_separator();
            clauses.push(Clause { exists, parameter: Parameter { mode, name, span, ty }, condition });
        }
        let claim = self.body_alone()?;
        Ok(Declaration { name, name_span, item: Item::Law { clauses, claim } })
    }

    fn mode(&mut self) -> Mode {
        if self.take("~") {
            Mode::Template
        } else if self.take("-") {
            Mode::Plain(Quantity::None)
        } else if self.take("+") {
            Mode::Plain(Quantity::Many)
        } else {
            Mode::Plain(Quantity::One)
        }
    }

    /// Parameters or fields up to the closing bracket.
    fn parameters(&mut self, close: &str) -> Parsed<Vec<Parameter>> {
        self.more_parameters(Vec::new(), close)
    }

    fn more_parameters(&mut self, mut parameters: Vec<Parameter>, close: &str) -> Parsed<Vec<Parameter>> {
        while !self.take(close) {
            let mode = self.mode();
            let parameter = self.parameter(mode, close)?;
            self.reject_repeated(&parameters, &parameter)?;
            parameters.push(parameter);
            self.skip_separator();
        }
        Ok(parameters)
    }

    fn parameter(&mut self, mut mode: Mode, close: &str) -> Parsed<Parameter> {
        let (name, span) = self.name()?;
        if self.take(":") {
            let ty = Some(self.term(0)?);
            return Ok(Parameter { mode, name, span, ty });
        }
        if mode != Mode::Plain(Quantity::One) || close == "}" {
            return self.fail("':' and a type");
        }
        mode = Mode::Plain(Quantity::None);
        Ok(Parameter { mode, name, span, ty: None })
    }

    fn reject_repeated(&self, earlier: &[Parameter], new: &Parameter) -> Parsed<()> {
        let repeated = earlier.iter().any(|known| known.name == new.name);
        if repeated && new.name != keyword::WILDCARD {
            let name = self.names.text(new.name);
            return self.fail_at(format!("a fresh name ({name} is declared twice)"), new.span);
        }
        Ok(())
    }

    /// A body that no annotation follows.
    pub(super) fn body_alone(&mut self) -> Parsed<crate::syntax::ExprId> {
        let body = self.body()?;
        match body.annotation {
            None => Ok(body.term),
            Some((_, colon)) => self.stray_colon(colon),
        }
    }

    pub(super) fn stray_colon<T>(&self, colon: Span) -> Parsed<T> {
        Err(Box::new(crate::diagnostic::Diagnostic::mismatch(
            "a term without ':' (an annotation is written {x : T}, a typed local x : T = v)",
            "':'",
            Some(colon),
        )))
    }
}
