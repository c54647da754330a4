//! Whether the rows of a match leave a value out.
//!
//! The usual algorithm over a matrix of patterns: split the first column by the constructors of its
//! type, and look for a value in each part. It answers with an example of what is left out. Numbers
//! split at the values that the rows name; a string is read character by character.

use std::collections::HashMap;
use std::rc::Rc;

use super::book::ConstructorId;
use super::value::{Value, V};
use super::{Checked, Checker};
use crate::diagnostic::Span;
use crate::hash::NumberMap;
use crate::syntax::{Pattern, PatternId};

/// A pattern of the matrix: of the source, or a part of one.
#[derive(Clone)]
enum Cell {
    Any,
    Source(PatternId),
    U32(u32),
    /// The rest of a string.
    Text(Rc<[char]>, usize),
    /// The rest of a tuple (`true`) or a list.
    Chain(Rc<[PatternId]>, usize, bool),
}

/// How a pattern starts.
enum Head {
    Any,
    Construct(ConstructorId, Vec<Cell>),
    /// A literal of a type without constructors.
    Literal(String),
    Nat(u64),
    AtLeast(u64),
}

type Row = Vec<Cell>;

/// More work than this and the match is refused as too intricate.
const BUDGET: u64 = 5_000_000;

/// The longest string, in bytes, that is taken apart.
const MAX_TEXT: usize = 4_096;

/// The work is beyond [`BUDGET`].
struct TooMuch;

type Search = Result<Option<Vec<String>>, TooMuch>;

impl Checker<'_> {
    /// Fails if some values of `types` meet no row.
    pub(super) fn check_cover(&mut self, span: Span, rows: &[Vec<PatternId>], types: &[V]) -> Checked<()> {
        if self.lenient || self.is_plain_pair(rows, types) {
            return Ok(());
        }
        let matrix: Vec<Row> =
            rows.iter().map(|row| row.iter().map(|&pattern| Cell::Source(pattern)).collect()).collect();
        let mut budget = BUDGET;
        match self.uncovered(matrix, types.to_vec(), &mut budget) {
            Ok(None) => Ok(()),
            Ok(Some(example)) => {
                let shapes: Vec<String> = rows
                    .iter()
                    .take(20)
                    .map(|row| {
                        let shapes: Vec<String> = row.iter().map(|&pattern| self.pattern_shape(pattern)).collect();
                        shapes.join(" ")
                    })
                    .collect();
                let observed = match shapes.is_empty() {
                    true => String::from("no case"),
                    false => format!("cases for {}", shapes.join(", ")),
                };
                let error = self.mismatch(format!("cases for {}", example.join(" ")), observed, Some(span));
                Err(self.with_context(Box::new(error)))
            }
            Err(TooMuch) => {
                let message = "a match that can be checked (this one splits into too many cases; match in steps)";
                Err(Box::new(self.message(message, Some(span))))
            }
        }
    }

    /// `(a, b)` for a pair, the pattern of most lets: there is nothing to search for.
    fn is_plain_pair(&mut self, rows: &[Vec<PatternId>], types: &[V]) -> bool {
        let ([row], [ty]) = (rows, types) else { return false };
        let Pattern::Tuple(items) = self.tree().pattern(row[0]) else { return false };
        let is_name = |&item: &PatternId| matches!(self.tree().pattern(item), Pattern::Bind(_));
        if items.len() != 2 || !items.iter().all(is_name) {
            return false;
        }
        self.refuel();
        let ty = self.whnf(*ty);
        matches!(*self.values.get(ty), Value::Data(data, _) if data == self.builtin.sigma)
    }

    /// An example that no row fits, one text for each column.
    fn uncovered(&mut self, mut rows: Vec<Row>, mut types: Vec<V>, budget: &mut u64) -> Search {
        let mut skipped = 0;
        loop {
            let work = (1 + rows.len() * types.len()) as u64;
            *budget = budget.checked_sub(work).ok_or(TooMuch)?;
            if types.is_empty() {
                return Ok(rows.is_empty().then(|| vec![String::from("_"); skipped]));
            }
            let irrefutable = |row: &Row| row.iter().all(|cell| self.is_any(cell));
            if rows.first().is_some_and(irrefutable) {
                return Ok(None);
            }
            if rows.iter().any(|row| !self.is_any(&row[0])) || self.is_empty_type(types[0]) {
                break;
            }
            for row in &mut rows {
                row.remove(0);
            }
            types.remove(0);
            skipped += 1;
        }
        let found = self.split_column(&rows, &types, budget)?;
        Ok(found.map(|mut example| {
            example.splice(0..0, vec![String::from("_"); skipped]);
            example
        }))
    }

    fn is_any(&self, cell: &Cell) -> bool {
        match cell {
            Cell::Any => true,
            Cell::Source(id) => matches!(self.tree().pattern(*id), Pattern::Bind(_)),
            Cell::Chain(items, at, true) if at + 1 == items.len() => self.is_any(&Cell::Source(items[*at])),
            _ => false,
        }
    }

    fn is_empty_type(&mut self, ty: V) -> bool {
        self.refuel();
        let ty = self.whnf(ty);
        match *self.values.get(ty) {
            Value::Data(data, _) => self.book.data(data).constructors.is_empty(),
            _ => false,
        }
    }

    fn split_column(&mut self, rows: &[Row], types: &[V], budget: &mut u64) -> Search {
        self.refuel();
        let ty = self.whnf(types[0]);
        if rows.iter().any(|row| self.is_long_text(&row[0])) {
            return Err(TooMuch);
        }
        let heads: Vec<Head> = rows.iter().map(|row| self.head(&row[0])).collect();
        let numbers = heads.iter().any(|head| matches!(head, Head::Nat(_) | Head::AtLeast(_)));
        if !rows.is_empty() && rows.iter().all(|row| self.is_whole_literal(&row[0])) {
            let literals: Vec<Head> = rows.iter().map(|row| self.literal_head(&row[0])).collect();
            return self.split_literals(rows, &literals, types, budget);
        }
        match self.values.get(ty).clone() {
            Value::Data(data, arguments) if data != self.builtin.nat => {
                self.split_by_constructor(rows, heads, data, arguments.into_vec(), types, budget)
            }
            Value::Data(..) => self.split_numbers(rows, &heads, types, budget),
            _ if numbers => self.split_numbers(rows, &heads, types, budget),
            _ => self.split_literals(rows, &heads, types, budget),
        }
    }

    /// A string or a character that need not be taken apart: no row of the column does.
    fn is_whole_literal(&self, cell: &Cell) -> bool {
        let literal = |id: PatternId| matches!(self.tree().pattern(id), Pattern::Text(_) | Pattern::Char(_));
        self.is_any(cell) || matches!(cell, Cell::Source(id) if literal(*id))
    }

    /// A string that would be taken apart character by character, one level of recursion each.
    fn is_long_text(&self, cell: &Cell) -> bool {
        match cell {
            Cell::Source(id) => match self.tree().pattern(*id) {
                Pattern::Text(text) => self.book.names.text(*text).len() > MAX_TEXT,
                _ => false,
            },
            _ => false,
        }
    }

    fn literal_head(&self, cell: &Cell) -> Head {
        match cell {
            Cell::Source(id) if !self.is_any(cell) => Head::Literal(self.pattern_shape(*id)),
            _ => Head::Any,
        }
    }

    fn head(&self, cell: &Cell) -> Head {
        if self.is_any(cell) {
            return Head::Any;
        }
        match cell {
            Cell::Any => Head::Any,
            Cell::U32(value) => Head::Literal(value.to_string()),
            Cell::Text(chars, at) => match chars.get(*at) {
                None => Head::Construct(self.builtin.snil, Vec::new()),
                Some(&c) => {
                    Head::Construct(self.builtin.scon, vec![self.char_cell(c), Cell::Text(chars.clone(), at + 1)])
                }
            },
            Cell::Chain(items, at, is_tuple) => self.chain_head(items, *at, *is_tuple),
            Cell::Source(id) => self.source_head(*id),
        }
    }

    /// A character is its constructor around its code; written as a literal it is its code alone.
    fn char_cell(&self, c: char) -> Cell {
        Cell::U32(c as u32)
    }

    fn chain_head(&self, items: &Rc<[PatternId]>, at: usize, is_tuple: bool) -> Head {
        if is_tuple && at + 1 == items.len() {
            return self.head(&Cell::Source(items[at]));
        }
        match items.get(at) {
            None => Head::Construct(self.builtin.nil, Vec::new()),
            Some(&item) => {
                let constructor = if is_tuple { self.builtin.tuple } else { self.builtin.con };
                let rest = Cell::Chain(items.clone(), at + 1, is_tuple);
                Head::Construct(constructor, vec![Cell::Source(item), rest])
            }
        }
    }

    fn source_head(&self, id: PatternId) -> Head {
        match self.tree().pattern(id) {
            Pattern::Bind(_) => Head::Any,
            Pattern::Construct(name, fields) => self.construct_head(*name, fields),
            Pattern::Tuple(items) => self.chain_head(&items.clone().into(), 0, true),
            Pattern::List(items) => self.chain_head(&items.clone().into(), 0, false),
            Pattern::Cons(head, tail) => {
                Head::Construct(self.builtin.con, vec![Cell::Source(*head), Cell::Source(*tail)])
            }
            Pattern::Nat(value) => Head::Nat(*value),
            Pattern::Successor(count, rest) => self.successor_head(*count, *rest),
            Pattern::U32(value) => Head::Literal(value.to_string()),
            Pattern::F32(bits) => Head::Literal(crate::syntax::show_f32(*bits)),
            Pattern::Char(c) => Head::Construct(self.builtin.chr, vec![Cell::U32(*c as u32)]),
            Pattern::Text(text) => {
                let chars: Rc<[char]> = self.book.names.text(*text).chars().collect();
                self.head(&Cell::Text(chars, 0))
            }
        }
    }

    fn construct_head(&self, name: crate::syntax::Symbol, fields: &[PatternId]) -> Head {
        match self.book.constructor_named(self.scope.module, name) {
            Some(found) if found == self.builtin.zero => Head::Nat(0),
            Some(found) if found == self.builtin.succ && fields.len() == 1 => self.successor_head(1, fields[0]),
            Some(found) => Head::Construct(found, fields.iter().map(|&field| Cell::Source(field)).collect()),
            None => Head::Any,
        }
    }

    /// `2n+3n` is `5n`, and `2n+1n+p` is `3n+p`.
    fn successor_head(&self, count: u64, rest: PatternId) -> Head {
        match self.source_head(rest) {
            Head::Nat(value) => Head::Nat(value.saturating_add(count)),
            Head::AtLeast(more) => Head::AtLeast(count.saturating_add(more)),
            _ => Head::AtLeast(count),
        }
    }

    fn split_by_constructor(
        &mut self,
        rows: &[Row],
        heads: Vec<Head>,
        data: super::DataId,
        arguments: Vec<V>,
        types: &[V],
        budget: &mut u64,
    ) -> Search {
        let (groups, any) = self.group_by_constructor(&heads, data);
        for constructor in self.book.data(data).constructors.clone() {
            let count = self.book.constructor(constructor).fields;
            let mut meeting = groups.get(&constructor).cloned().unwrap_or_default();
            meeting.extend(&any);
            meeting.sort_unstable();
            let part = meeting
                .into_iter()
                .filter_map(|at| {
                    let fields = self.fields_of(&heads[at], count)?;
                    Some(fields.into_iter().chain(rows[at][1..].iter().cloned()).collect())
                })
                .collect();
            let mut part_types = self.field_types(constructor, arguments.clone(), count).to_vec();
            part_types.extend(&types[1..]);
            if let Some(mut example) = self.uncovered(part, part_types, budget)? {
                let fields: Vec<String> = example.drain(..count).collect();
                let shape = format!("{}{{{}}}", self.constructor_name(constructor), fields.join(", "));
                example.insert(0, shape);
                return Ok(Some(example));
            }
        }
        Ok(None)
    }

    /// The rows of each constructor of a type, and those that meet all.
    fn group_by_constructor(
        &self,
        heads: &[Head],
        data: super::DataId,
    ) -> (NumberMap<ConstructorId, Vec<usize>>, Vec<usize>) {
        let mut groups: NumberMap<ConstructorId, Vec<usize>> = NumberMap::default();
        let mut any = Vec::new();
        for (at, head) in heads.iter().enumerate() {
            match head {
                Head::Construct(found, _) => {
                    let own = self.own_constructor(*found, data);
                    groups.entry(own).or_default().push(at);
                }
                Head::Any => any.push(at),
                _ => groups.entry(self.builtin.chr).or_default().push(at),
            }
        }
        (groups, any)
    }

    /// A name may mean another type's constructor in general and this type's here.
    fn own_constructor(&self, found: ConstructorId, data: super::DataId) -> ConstructorId {
        if self.book.constructor(found).data == data {
            return found;
        }
        let name = self.book.constructor(found).name;
        let mut own = self.book.data(data).constructors.iter().copied();
        own.find(|&id| self.book.constructor(id).name == name).unwrap_or(found)
    }

    /// The fields of a pattern whose constructor has `count`.
    fn fields_of(&self, head: &Head, count: usize) -> Option<Vec<Cell>> {
        match head {
            Head::Any => Some(vec![Cell::Any; count]),
            Head::Construct(_, fields) => (fields.len() == count).then(|| fields.clone()),
            Head::Literal(code) => Some(vec![Cell::U32(code.parse().unwrap_or(0))]),
            Head::Nat(_) | Head::AtLeast(_) => None,
        }
    }

    fn field_types(&mut self, constructor: ConstructorId, arguments: Vec<V>, count: usize) -> Rc<[V]> {
        let key = (constructor, arguments);
        if let Some(known) = self.field_types.get(&key) {
            return known.clone();
        }
        let mut ty = self.constructor_type(constructor, Some(key.1.clone()));
        let mut types = Vec::new();
        for _ in 0..count {
            let Value::Pi(_, name, domain, codomain) = *self.values.get(ty) else {
                types.push(ty);
                continue;
            };
            types.push(domain);
            let id = self.fresh_var(name);
            let var = self.values.var(id);
            ty = self.values.instantiate(codomain, var);
        }
        let types: Rc<[V]> = types.into();
        self.field_types.insert(key, types.clone());
        types
    }

    fn split_literals(&mut self, rows: &[Row], heads: &[Head], types: &[V], budget: &mut u64) -> Search {
        let mut groups: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut any = Vec::new();
        for (at, head) in heads.iter().enumerate() {
            match head {
                Head::Literal(text) => groups.entry(text).or_default().push(at),
                _ => any.push(at),
            }
        }
        let rest: Vec<Row> = any.iter().map(|&at| rows[at][1..].to_vec()).collect();
        if let Some(mut example) = self.uncovered(rest, types[1..].to_vec(), budget)? {
            example.insert(0, String::from("_"));
            return Ok(Some(example));
        }
        let mut literals: Vec<(&str, Vec<usize>)> = groups.into_iter().collect();
        literals.sort();
        for (text, mut group) in literals {
            group.extend(&any);
            group.sort_unstable();
            let part = group.iter().map(|&at| rows[at][1..].to_vec()).collect();
            if let Some(mut example) = self.uncovered(part, types[1..].to_vec(), budget)? {
                example.insert(0, text.to_owned());
                return Ok(Some(example));
            }
        }
        Ok(None)
    }

    /// The numbers split at every number that a row names.
    fn split_numbers(&mut self, rows: &[Row], heads: &[Head], types: &[V], budget: &mut u64) -> Search {
        let mut cuts = vec![0];
        for head in heads {
            match head {
                Head::Nat(value) => cuts.extend([*value, value.saturating_add(1)]),
                Head::AtLeast(count) => cuts.push(*count),
                _ => {}
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        let mut points: NumberMap<u64, Vec<usize>> = NumberMap::default();
        let mut ranges = Vec::new();
        for (at, head) in heads.iter().enumerate() {
            match head {
                Head::Nat(value) => points.entry(*value).or_default().push(at),
                Head::AtLeast(count) => ranges.push((*count, at)),
                _ => ranges.push((0, at)),
            }
        }
        for (at, &from) in cuts.iter().enumerate() {
            let mut meeting = points.remove(&from).unwrap_or_default();
            meeting.extend(ranges.iter().filter(|(count, _)| *count <= from).map(|(_, row)| *row));
            meeting.sort_unstable();
            *budget = budget.checked_sub(ranges.len() as u64).ok_or(TooMuch)?;
            let part = meeting.into_iter().map(|row| rows[row][1..].to_vec()).collect();
            if let Some(mut example) = self.uncovered(part, types[1..].to_vec(), budget)? {
                let single = cuts.get(at + 1) == Some(&(from + 1));
                let shape = if single { format!("{from}n") } else { format!("{from}n+_") };
                example.insert(0, if from == 0 && !single { String::from("_") } else { shape });
                return Ok(Some(example));
            }
        }
        Ok(None)
    }
}
