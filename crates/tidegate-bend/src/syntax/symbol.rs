//! Interned names, shared by all files of one check.

use std::collections::HashMap;

/// An interned name or string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(pub(crate) u32);

/// The reserved words, in the order of the constants of [`keyword`].
const RESERVED: [&str; 16] = [
    "def", "type", "law", "match", "case", "do", "return", "for", "exs", "where", "is", "import", "Type", "Data",
    "Kind", "Quant",
];

/// The symbols of the reserved words.
pub(crate) mod keyword {
    use super::Symbol;

    pub(crate) const DEF: Symbol = Symbol(0);
    pub(crate) const TYPE_DECL: Symbol = Symbol(1);
    pub(crate) const LAW: Symbol = Symbol(2);
    pub(crate) const MATCH: Symbol = Symbol(3);
    pub(crate) const CASE: Symbol = Symbol(4);
    pub(crate) const DO: Symbol = Symbol(5);
    pub(crate) const RETURN: Symbol = Symbol(6);
    pub(crate) const FOR: Symbol = Symbol(7);
    pub(crate) const EXS: Symbol = Symbol(8);
    pub(crate) const WHERE: Symbol = Symbol(9);
    pub(crate) const IS: Symbol = Symbol(10);
    pub(crate) const IMPORT: Symbol = Symbol(11);
    pub(crate) const TYPE: Symbol = Symbol(12);
    pub(crate) const DATA: Symbol = Symbol(13);
    pub(crate) const KIND: Symbol = Symbol(14);
    pub(crate) const QUANT: Symbol = Symbol(15);
    /// `_`, which binds nothing.
    pub(crate) const WILDCARD: Symbol = Symbol(16);
}

impl Symbol {
    /// Whether this is a reserved word, which no declaration or binder may take.
    #[must_use]
    pub fn is_reserved(self) -> bool {
        (self.0 as usize) < RESERVED.len()
    }
}

/// The table behind [`Symbol`].
#[derive(Debug)]
pub struct Interner {
    texts: Vec<Box<str>>,
    index: HashMap<Box<str>, Symbol>,
}

impl Default for Interner {
    fn default() -> Self {
        Self::new()
    }
}

impl Interner {
    /// A table that holds the reserved words only.
    #[must_use]
    pub fn new() -> Self {
        let mut table = Interner { texts: Vec::new(), index: HashMap::new() };
        for word in RESERVED {
            table.intern(word);
        }
        table.intern("_");
        table
    }

    /// The symbol of `text`, added if it is new.
    pub fn intern(&mut self, text: &str) -> Symbol {
        if let Some(&symbol) = self.index.get(text) {
            return symbol;
        }
        let symbol = Symbol(u32::try_from(self.texts.len()).expect("fewer than 2^32 names"));
        self.texts.push(text.into());
        self.index.insert(text.into(), symbol);
        symbol
    }

    /// The symbol of `text`, if some file mentions it.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<Symbol> {
        self.index.get(text).copied()
    }

    /// The text of `symbol`.
    #[must_use]
    pub fn text(&self, symbol: Symbol) -> &str {
        &self.texts[symbol.0 as usize]
    }
}
