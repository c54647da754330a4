//! The local names of a term, and what each stands for.

use super::value::V;
use crate::hash::NumberMap;
use crate::load::ModuleId;
use crate::syntax::{keyword, Symbol};

/// Local names, innermost last.
#[derive(Debug)]
pub(crate) struct Scope {
    /// Whose global names are meant.
    pub(crate) module: ModuleId,
    names: NumberMap<Symbol, Vec<V>>,
    order: Vec<Symbol>,
}

impl Scope {
    pub(crate) fn new(module: ModuleId) -> Self {
        Scope { module, names: NumberMap::default(), order: Vec::new() }
    }

    pub(crate) fn push(&mut self, name: Symbol, value: V) {
        self.order.push(name);
        if name != keyword::WILDCARD {
            self.names.entry(name).or_default().push(value);
        }
    }

    /// `_` in the motive of a rewrite is a name.
    pub(crate) fn push_wildcard(&mut self, value: V) {
        self.order.push(keyword::WILDCARD);
        self.names.entry(keyword::WILDCARD).or_default().push(value);
    }

    pub(crate) fn get(&self, name: Symbol) -> Option<V> {
        self.names.get(&name)?.last().copied()
    }

    pub(crate) fn mark(&self) -> usize {
        self.order.len()
    }

    /// Forgets the names pushed since `mark`.
    pub(crate) fn truncate(&mut self, mark: usize) {
        while self.order.len() > mark {
            let name = self.order.pop().unwrap_or(keyword::WILDCARD);
            if let Some(values) = self.names.get_mut(&name) {
                values.pop();
            }
        }
    }
}
