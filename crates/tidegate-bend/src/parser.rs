//! Tokens to a syntax tree, by recursive descent.
//!
//! Layout: a `match` takes the `case`s at or right of the column of its first one, which lies right
//! of the innermost `case` around it (anywhere, if there is none), wherever the word `match` stands:
//! a lambda or parentheses between the two change nothing. A `do` ends a step where a line starts at
//! the column of its first statement. Depth is counted in the tree itself, so a chain of operators is
//! bounded like a nest of parentheses, and everything after the parser may recurse over a tree
//! without fear.

mod body;
mod import;
mod item;
mod pattern;
mod term;

use crate::diagnostic::{Diagnostic, Span};
use crate::lexer::{lex, Token, TokenKind};
use crate::syntax::{Expr, ExprId, Interner, Pattern, PatternId, Symbol, Tree};

pub use import::split_imports;

/// The deepest tree the parser builds; deeper text is refused.
pub const MAX_DEPTH: u32 = 10_000;

/// Boxed: the error path is cold, and a small `Result` keeps the parser's frames small.
type Parsed<T> = Result<T, Box<Diagnostic>>;

struct Parser<'a> {
    text: &'a str,
    file: u32,
    names: &'a mut Interner,
    tokens: Vec<Token>,
    at: usize,
    tree: Tree,
    /// The depth of each term of `tree`.
    depths: Vec<u32>,
    /// The `: T` that the body at the end of the last term has read, for the parentheses around it.
    annotation: Option<(ExprId, Span)>,
    /// The column of the innermost `case` around this place, 0 if there is none.
    enclosing_case: u32,
    /// How deep the parser is in its own recursion.
    nesting: u32,
}

/// Parses one file.
///
/// # Errors
/// The first thing that is not Bend.
pub fn parse(text: &str, file: u32, names: &mut Interner) -> Result<Tree, Box<Diagnostic>> {
    let (imports, from) = split_imports(text, file, names)?;
    let tokens = lex(text, from, file, names)?;
    let mut tree = Tree::default();
    tree.imports = imports;
    let mut parser = Parser {
        text,
        file,
        names,
        tokens,
        at: 0,
        tree,
        depths: Vec::new(),
        annotation: None,
        enclosing_case: 0,
        nesting: 0,
    };
    while parser.peek() != TokenKind::End {
        let declaration = parser.declaration()?;
        parser.tree.declarations.push(declaration);
    }
    Ok(parser.tree)
}

impl Parser<'_> {
    fn token(&self) -> Token {
        self.tokens[self.at]
    }

    fn peek(&self) -> TokenKind {
        self.tokens[self.at].kind
    }

    fn peek_at(&self, ahead: usize) -> Token {
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    fn bump(&mut self) -> Token {
        let token = self.tokens[self.at];
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    fn is(&self, punct: &str) -> bool {
        matches!(self.peek(), TokenKind::Punct(found) if found == punct)
    }

    fn is_word(&self, word: Symbol) -> bool {
        self.peek() == TokenKind::Name(word)
    }

    fn take(&mut self, punct: &str) -> bool {
        let found = self.is(punct);
        if found {
            self.at += 1;
        }
        found
    }

    fn take_word(&mut self, word: Symbol) -> bool {
        let found = self.is_word(word);
        if found {
            self.at += 1;
        }
        found
    }

    fn expect(&mut self, punct: &str) -> Parsed<()> {
        if self.take(punct) {
            return Ok(());
        }
        self.fail(format!("'{punct}'"))
    }

    /// Steps over the optional separators of a list.
    fn skip_separator(&mut self) {
        let _ = self.take(",") || self.take(";");
    }

    /// A name that is not reserved.
    fn name(&mut self) -> Parsed<(Symbol, Span)> {
        match self.peek() {
            TokenKind::Name(name) if name.is_reserved() => {
                let word = self.names.text(name).to_owned();
                self.fail(format!("a name ('{word}' is reserved)"))
            }
            TokenKind::Name(name) => {
                let token = self.bump();
                Ok((name, self.span_of(token)))
            }
            _ => self.fail("a name"),
        }
    }

    fn span_of(&self, token: Token) -> Span {
        Span { file: self.file, start: token.start, end: token.end }
    }

    /// From byte `start` to the end of the last token taken.
    fn span_from(&self, start: u32) -> Span {
        let end = self.at.checked_sub(1).map_or(start, |last| self.tokens[last].end);
        Span { file: self.file, start, end: end.max(start) }
    }

    fn here(&self) -> u32 {
        self.token().start
    }

    /// The text of a token, for a message.
    fn observed(&self, token: Token) -> String {
        match token.kind {
            TokenKind::End => String::from("the end of the file"),
            _ => format!("'{}'", &self.text[token.start as usize..token.end as usize]),
        }
    }

    /// An error at the current token.
    fn fail<T>(&self, expected: impl Into<String>) -> Parsed<T> {
        let token = self.token();
        Err(Box::new(Diagnostic::mismatch(expected, self.observed(token), Some(self.span_of(token)))))
    }

    /// An error about text that was read already.
    fn fail_at<T>(&self, message: impl Into<String>, span: Span) -> Parsed<T> {
        Err(Box::new(Diagnostic::message(message, Some(span))))
    }

    fn too_deep<T>(&self, span: Span) -> Parsed<T> {
        let message = format!("a term nested at most {MAX_DEPTH} levels deep");
        Err(Box::new(
            Diagnostic::message(message, Some(span)).with_note("give the inner part a definition of its own."),
        ))
    }

    /// Runs one level of recursive descent.
    fn nest<T>(&mut self, level: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting >= MAX_DEPTH {
            let span = self.span_of(self.token());
            return self.too_deep(span);
        }
        self.nesting += 1;
        let result = level(self);
        self.nesting -= 1;
        result
    }

    fn add(&mut self, expr: Expr, start: u32) -> Parsed<ExprId> {
        let span = self.span_from(start);
        self.add_at(expr, span)
    }

    fn add_at(&mut self, expr: Expr, span: Span) -> Parsed<ExprId> {
        let mut depth = 0;
        expr.for_each_child(&mut |child| depth = depth.max(self.depths[child.0 as usize]));
        if depth >= MAX_DEPTH {
            return self.too_deep(span);
        }
        self.depths.push(depth + 1);
        Ok(self.tree.add_expr(expr, span))
    }

    fn add_pattern(&mut self, pattern: Pattern, start: u32) -> PatternId {
        let span = self.span_from(start);
        self.tree.add_pattern(pattern, span)
    }
}
