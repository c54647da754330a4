//! Text to tokens.
//!
//! Every token knows its column, whether white space stands before it, and whether it is the first
//! of its line: the parser's layout rules need no more than that. `>` is always a token of its own,
//! so that `List<List<A>>` closes twice; the parser joins glued `>` into `>=` and `>>`.

use crate::diagnostic::{Diagnostic, Span};
use crate::syntax::{Interner, Symbol};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TokenKind {
    /// A name or a reserved word.
    Name(Symbol),
    /// `3n`
    Nat(u64),
    /// `42`
    U32(u32),
    /// `1.5`, as its bits.
    F32(u32),
    /// `'c'`
    Char(char),
    /// `"text"`
    Text(Symbol),
    /// `&0`, `&1` or `&2`
    Quantity(u8),
    /// An operator or a bracket.
    Punct(&'static str),
    /// The end of the file.
    End,
}

/// A token and its place.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// White space or a comment stands before it.
    pub spaced: bool,
    /// It is the first token of its line.
    pub first: bool,
}

/// The largest Nat that a literal may spell: 2^48 - 1.
pub const NAT_MAX: u64 = (1 << 48) - 1;

/// Longest first: the first that matches is taken.
const PUNCTUATION: [&str; 45] = [
    "<&>", ".|.", ".^.", ".&.", "->", "=>", "==", "!=", "<=", "<<", "<>", "<-", "++", "&&", "||", "(", ")", "[", "]",
    "{", "}", "<", ">", ",", ";", ":", "=", "+", "-", "*", "/", "%", "^", "&", "|", "@", "~", "?", "!", "\\", ".", "$",
    "`", "'", "\"",
];

struct Lexer<'a> {
    text: &'a str,
    file: u32,
    at: usize,
    line_start: usize,
    names: &'a mut Interner,
    tokens: Vec<Token>,
}

/// Splits `text[from..]` into tokens; the last one is [`TokenKind::End`].
///
/// # Errors
/// The first character that starts no token, a literal out of range or not closed.
pub fn lex(text: &str, from: usize, file: u32, names: &mut Interner) -> Result<Vec<Token>, Box<Diagnostic>> {
    let mut lexer = Lexer {
        text,
        file,
        at: from,
        line_start: text[..from].rfind('\n').map_or(0, |end| end + 1),
        names,
        tokens: Vec::with_capacity((text.len() - from) / 4),
    };
    lexer.run()?;
    Ok(lexer.tokens)
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn is_name_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl Lexer<'_> {
    fn run(&mut self) -> Result<(), Box<Diagnostic>> {
        loop {
            let before = self.at;
            let lines = self.skip_blank();
            let first = lines || self.tokens.is_empty();
            let spaced = first || self.at > before;
            let start = self.at;
            let column = (start - self.line_start) as u32 + 1;
            let kind = self.token()?;
            self.tokens.push(Token { kind, start: start as u32, end: self.at as u32, column, spaced, first });
            if kind == TokenKind::End {
                return Ok(());
            }
        }
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Skips white space and comments; tells whether a line ended.
    fn skip_blank(&mut self) -> bool {
        let mut lines = false;
        loop {
            match self.byte(0) {
                b'\n' => {
                    self.at += 1;
                    self.line_start = self.at;
                    lines = true;
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'#' => {
                    self.at = self.text[self.at..].find('\n').map_or(self.text.len(), |end| self.at + end);
                }
                _ => return lines,
            }
        }
    }

    fn token(&mut self) -> Result<TokenKind, Box<Diagnostic>> {
        if self.at >= self.text.len() {
            return Ok(TokenKind::End);
        }
        match self.byte(0) {
            byte if is_name_start(byte) => Ok(self.name()),
            b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b'\'' => self.character(),
            b'&' if matches!(self.byte(1), b'0'..=b'2') && !is_name_part(self.byte(2)) => {
                let quantity = self.byte(1) - b'0';
                self.at += 2;
                Ok(TokenKind::Quantity(quantity))
            }
            _ => self.punctuation(),
        }
    }

    fn name(&mut self) -> TokenKind {
        let start = self.at;
        loop {
            while is_name_part(self.byte(0)) {
                self.at += 1;
            }
            if self.byte(0) != b'.' || !is_name_start(self.byte(1)) {
                break;
            }
            self.at += 1;
        }
        TokenKind::Name(self.names.intern(&self.text[start..self.at]))
    }

    fn punctuation(&mut self) -> Result<TokenKind, Box<Diagnostic>> {
        let rest = &self.text[self.at..];
        if let Some(punct) = PUNCTUATION.iter().find(|punct| rest.starts_with(**punct)) {
            self.at += punct.len();
            return Ok(TokenKind::Punct(punct));
        }
        let start = self.at;
        let found = rest.chars().next().unwrap_or(' ');
        self.at += found.len_utf8();
        Err(self.error("a token of Bend", start))
    }

    fn digits(&mut self) {
        while self.byte(0).is_ascii_digit() {
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<TokenKind, Box<Diagnostic>> {
        let start = self.at;
        self.digits();
        let whole = self.at;
        if self.byte(0) == b'.' && self.byte(1).is_ascii_digit() {
            self.at += 1;
            self.digits();
            self.exponent();
            self.no_suffix(start, "a number (NUMBER.NUMBER is an F32)")?;
            let value: f32 = self.text[start..self.at].parse().unwrap_or(f32::INFINITY);
            if value.is_infinite() {
                return Err(self.error("an F32 literal of a finite value", start));
            }
            return Ok(TokenKind::F32(value.to_bits()));
        }
        let digits = &self.text[start..whole];
        if self.byte(0) == b'n' {
            self.at += 1;
            self.no_suffix(start, "a Nat literal (NUMBER n)")?;
            return match digits.parse::<u64>() {
                Ok(value) if value <= NAT_MAX => Ok(TokenKind::Nat(value)),
                _ => Err(self.error(&format!("a Nat literal up to {NAT_MAX}n"), start)),
            };
        }
        self.no_suffix(start, "a number (NUMBER is a U32, NUMBER n is a Nat)")?;
        match digits.parse::<u32>() {
            Ok(value) => Ok(TokenKind::U32(value)),
            Err(_) => Err(self.error(&format!("a U32 literal up to {}", u32::MAX), start)),
        }
    }

    fn exponent(&mut self) {
        let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
        if matches!(self.byte(0), b'e' | b'E') && self.byte(1 + sign).is_ascii_digit() {
            self.at += 1 + sign;
            self.digits();
        }
    }

    /// A number must not run into a name.
    fn no_suffix(&mut self, start: usize, expected: &str) -> Result<(), Box<Diagnostic>> {
        if !is_name_part(self.byte(0)) {
            return Ok(());
        }
        while is_name_part(self.byte(0)) {
            self.at += 1;
        }
        Err(self.error(expected, start))
    }

    fn string(&mut self) -> Result<TokenKind, Box<Diagnostic>> {
        let start = self.at;
        let column_of = self.line_start;
        self.at += 1;
        let mut value = String::new();
        loop {
            match self.byte(0) {
                b'"' => break,
                _ if self.at >= self.text.len() => {
                    self.at = start + 1;
                    self.line_start = column_of;
                    return Err(self.error("a string with a closing \"", start));
                }
                _ => value.push(self.scalar()?),
            }
        }
        self.at += 1;
        Ok(TokenKind::Text(self.names.intern(&value)))
    }

    fn character(&mut self) -> Result<TokenKind, Box<Diagnostic>> {
        let start = self.at;
        self.at += 1;
        if self.byte(0) == b'\'' || self.at >= self.text.len() {
            return Err(self.error("a character between '", start));
        }
        let value = self.scalar()?;
        if self.byte(0) != b'\'' {
            return Err(self.error("a character with a closing '", start));
        }
        self.at += 1;
        Ok(TokenKind::Char(value))
    }

    /// One character of a literal, an escape included.
    fn scalar(&mut self) -> Result<char, Box<Diagnostic>> {
        let start = self.at;
        let found = self.text[start..].chars().next().unwrap_or('\0');
        self.at += found.len_utf8();
        if found == '\n' {
            self.line_start = self.at;
        }
        if found != '\\' {
            return Ok(found);
        }
        let escape = self.byte(0);
        self.at += self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        match escape {
            b'n' => Ok('\n'),
            b't' => Ok('\t'),
            b'r' => Ok('\r'),
            b'0' => Ok('\0'),
            b'\\' => Ok('\\'),
            b'\'' => Ok('\''),
            b'"' => Ok('"'),
            b'u' => self.unicode(start),
            _ => Err(self.error(r#"an escape: \n \t \r \0 \\ \' \" or \u{..}"#, start)),
        }
    }

    fn unicode(&mut self, start: usize) -> Result<char, Box<Diagnostic>> {
        let digits = self.text[self.at..].strip_prefix('{').and_then(|rest| {
            let digits = rest.split_once('}')?.0;
            let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
            (hex && (1..=6).contains(&digits.len())).then_some(digits)
        });
        let value = digits.and_then(|digits| {
            self.at += digits.len() + 2;
            char::from_u32(u32::from_str_radix(digits, 16).ok()?)
        });
        value.ok_or_else(|| {
            self.error(r"an escape \u{..} of 1 to 6 hexadecimal digits that is a Unicode scalar value", start)
        })
    }

    fn error(&self, expected: &str, start: usize) -> Box<Diagnostic> {
        let end = self.at.max(start + 1).min(self.text.len());
        let observed = match self.text.get(start..end) {
            Some(text) if !text.is_empty() => format!("'{text}'"),
            _ => String::from("the end of the file"),
        };
        Box::new(Diagnostic::mismatch(
            expected,
            observed,
            Some(Span { file: self.file, start: start as u32, end: end as u32 }),
        ))
    }
}
