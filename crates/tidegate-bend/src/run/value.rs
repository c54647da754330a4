//! Values at run time: 16 bytes, cheap to clone, dropped without recursion.
//!
//! Numbers, characters and constructors without fields stand in the value itself. Everything else is a counted
//! reference, whose count is atomic: a parallel let hands values to other threads. Where a reference is the only one, its
//! contents are moved out or changed in place instead of copied; in an affine language it mostly is.
//!
//! # Dropping
//! A list of a million cells would recurse a million times through `Drop`. So a container does not drop its parts: it
//! gives those that would die with it to a list of its thread, and the outermost drop empties the list ([`bury`]).

use std::cell::{Cell, RefCell};
use std::mem::take;
use std::sync::Arc;

use super::channel::{Channel, Ends};
use super::file::FileHandle;
use super::text::Buffer;
use crate::base::Primitive;

/// A value.
#[derive(Clone, Debug, Default)]
pub(crate) enum Value {
    /// None: it was moved away, or it is erased and nothing reads it.
    #[default]
    Empty,
    Nat(u64),
    U32(u32),
    /// As its bits.
    F32(u32),
    /// Its code, which need not be that of a character of Unicode.
    Char(u32),
    /// The bytes of the buffer from there on.
    Text(u32, Arc<Buffer>),
    /// A constructor without fields.
    Plain(u32),
    /// A constructor and its fields.
    One(u32, Arc<Fields<1>>),
    Two(u32, Arc<Fields<2>>),
    Three(u32, Arc<Fields<3>>),
    Four(u32, Arc<Fields<4>>),
    More(u32, Arc<Items>),
    /// A function of the program without captured values.
    Function(u32),
    /// A function of the program and what it captured.
    Closure(u32, Arc<Items>),
    Primitive(Primitive),
    /// A function at fewer arguments than it takes.
    Partial(Arc<Partial>),
    /// An action: a unit of code that runs actions in order, and what it captured.
    Sequence(u32, Arc<Items>),
    /// An action: an effect, by its number, and its arguments.
    Effect(u32, Arc<Items>),
    Array(Arc<Items>),
    Channel(Arc<Channel>),
    File(Arc<FileHandle>),
}

const _: () = assert!(size_of::<Value>() == 16);

/// The fields of a constructor.
#[derive(Debug)]
pub(crate) struct Fields<const N: usize>([Value; N]);

/// Any number of values.
#[derive(Debug, Default)]
pub(crate) struct Items(pub(crate) Vec<Value>);

/// A function that waits for more arguments.
#[derive(Debug)]
pub(crate) struct Partial {
    /// A function, a closure or a primitive.
    pub(crate) function: Value,
    pub(crate) arguments: Items,
}

impl<const N: usize> Drop for Fields<N> {
    #[inline]
    fn drop(&mut self) {
        bury(&mut self.0);
    }
}

impl Drop for Items {
    #[inline]
    fn drop(&mut self) {
        bury(&mut self.0);
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        bury(std::slice::from_mut(&mut self.function));
    }
}

/// What is about to be dropped.
enum Grave {
    Value(Value),
    /// The halves of a channel, whose buffer may hold other channels.
    Ends(Ends),
}

thread_local! {
    static PENDING: RefCell<Vec<Grave>> = const { RefCell::new(Vec::new()) };
    static IS_BURYING: Cell<bool> = const { Cell::new(false) };
}

/// Takes those values of a dying container that die with it, and drops them without recursion.
#[inline]
fn bury(values: &mut [Value]) {
    if values.iter().any(Value::dies_deep) {
        bury_deep(values);
    }
}

#[inline(never)]
fn bury_deep(values: &mut [Value]) {
    let dying = values.iter_mut().filter(|value| value.dies_deep()).map(|value| Grave::Value(take(value)));
    bury_all(dying);
}

/// The halves of a dying channel.
pub(crate) fn bury_ends(ends: Ends) {
    bury_all(std::iter::once(Grave::Ends(ends)));
}

fn bury_all(dying: impl Iterator<Item = Grave>) {
    // A thread that is going away has no list any more: what is left of its values may recurse.
    let Ok(is_nested) = PENDING.try_with(|pending| {
        pending.borrow_mut().extend(dying);
        IS_BURYING.replace(true)
    }) else {
        return;
    };
    if is_nested {
        return;
    }
    while let Some(grave) = PENDING.with(|pending| pending.borrow_mut().pop()) {
        match grave {
            Grave::Value(value) => drop(value),
            Grave::Ends(ends) => drop(ends),
        }
    }
    IS_BURYING.set(false);
}

#[inline(never)]
fn drop_value(value: Value) {
    drop(value);
}

/// Moves the fields out if nobody else has them, or copies them.
#[inline]
fn take_fields<const N: usize>(fields: Arc<Fields<N>>) -> [Value; N] {
    // One: there is no other reference, and nobody can make one.
    if Arc::strong_count(&fields) == 1 {
        if let Some(mut alone) = Arc::into_inner(fields) {
            return std::mem::replace(&mut alone.0, [const { Value::Empty }; N]);
        }
        return [const { Value::Empty }; N];
    }
    fields.0.clone()
}

/// The same for any number.
pub(crate) fn take_items(items: Arc<Items>) -> Vec<Value> {
    match Arc::try_unwrap(items) {
        Ok(mut alone) => take(&mut alone.0),
        Err(shared) => shared.0.clone(),
    }
}

impl Value {
    /// A constructor and its fields.
    #[inline]
    pub(crate) fn record(constructor: u32, mut fields: impl ExactSizeIterator<Item = Value>) -> Value {
        let len = fields.len();
        let mut next = || fields.next().unwrap_or_default();
        match len {
            0 => Value::Plain(constructor),
            1 => Value::One(constructor, Arc::new(Fields([next()]))),
            2 => Value::Two(constructor, Arc::new(Fields([next(), next()]))),
            3 => Value::Three(constructor, Arc::new(Fields([next(), next(), next()]))),
            4 => Value::Four(constructor, Arc::new(Fields([next(), next(), next(), next()]))),
            _ => Value::More(constructor, Arc::new(Items(fields.collect()))),
        }
    }

    /// A constructor with one field.
    pub(crate) fn one(constructor: u32, field: Value) -> Value {
        Value::One(constructor, Arc::new(Fields([field])))
    }

    /// A constructor with two fields.
    pub(crate) fn two(constructor: u32, first: Value, second: Value) -> Value {
        Value::Two(constructor, Arc::new(Fields([first, second])))
    }

    /// A clone; quick for those that stand in the value itself.
    #[inline(always)]
    pub(crate) fn copy(&self) -> Value {
        match *self {
            Value::Nat(value) => Value::Nat(value),
            Value::U32(value) => Value::U32(value),
            Value::Plain(constructor) => Value::Plain(constructor),
            _ => self.clone(),
        }
    }

    /// A drop; quick for those that stand in the value itself.
    #[inline(always)]
    pub(crate) fn discard(self) {
        match self {
            Value::Empty | Value::Nat(_) | Value::U32(_) | Value::Plain(_) => std::mem::forget(self),
            _ => drop_value(self),
        }
    }

    /// The number of its constructor.
    #[inline]
    pub(crate) fn constructor(&self) -> Option<u32> {
        match *self {
            Value::Plain(constructor)
            | Value::One(constructor, _)
            | Value::Two(constructor, _)
            | Value::Three(constructor, _)
            | Value::Four(constructor, _)
            | Value::More(constructor, _) => Some(constructor),
            _ => None,
        }
    }

    /// The fields of a constructor, or none.
    pub(crate) fn fields(&self) -> &[Value] {
        match self {
            Value::One(_, fields) => &fields.0,
            Value::Two(_, fields) => &fields.0,
            Value::Three(_, fields) => &fields.0,
            Value::Four(_, fields) => &fields.0,
            Value::More(_, items) => &items.0,
            _ => &[],
        }
    }

    /// The four fields of a constructor that has so many, which are copied if others have them, too.
    pub(crate) fn own_four(&mut self) -> Option<&mut [Value; 4]> {
        let Value::Four(_, fields) = self else { return None };
        if Arc::get_mut(fields).is_none() {
            *fields = Arc::new(Fields(fields.0.clone()));
        }
        Arc::get_mut(fields).map(|own| &mut own.0)
    }

    /// Gives each field of a constructor to `take`, with its number. False: it has none.
    #[inline]
    pub(crate) fn unpack(self, take: impl FnMut((usize, Value))) -> bool {
        match self {
            Value::One(_, fields) => take_fields(fields).into_iter().enumerate().for_each(take),
            Value::Two(_, fields) => take_fields(fields).into_iter().enumerate().for_each(take),
            Value::Three(_, fields) => take_fields(fields).into_iter().enumerate().for_each(take),
            Value::Four(_, fields) => take_fields(fields).into_iter().enumerate().for_each(take),
            Value::More(_, items) => take_items(items).into_iter().enumerate().for_each(take),
            _ => return false,
        }
        true
    }

    /// Is it the only reference to something that has parts?
    #[inline]
    fn dies_deep(&self) -> bool {
        match self {
            Value::One(_, fields) => Arc::strong_count(fields) == 1,
            Value::Two(_, fields) => Arc::strong_count(fields) == 1,
            Value::Three(_, fields) => Arc::strong_count(fields) == 1,
            Value::Four(_, fields) => Arc::strong_count(fields) == 1,
            Value::More(_, items)
            | Value::Closure(_, items)
            | Value::Sequence(_, items)
            | Value::Effect(_, items)
            | Value::Array(items) => Arc::strong_count(items) == 1,
            Value::Partial(partial) => Arc::strong_count(partial) == 1,
            Value::Channel(channel) => Arc::strong_count(channel) == 1,
            _ => false,
        }
    }

    /// Is it an action?
    pub(crate) fn is_action(&self) -> bool {
        matches!(self, Value::Sequence(..) | Value::Effect(..))
    }
}

#[cfg(test)]
mod tests {
    use super::Value;

    #[test]
    fn a_long_chain_is_dropped_without_recursion() {
        let mut list = Value::Plain(0);
        for n in 0..1_000_000 {
            list = Value::two(1, Value::Nat(n), list);
        }
        let shared = list.clone();
        drop(list);
        drop(shared);
    }

    #[test]
    fn shared_fields_are_copied_and_own_ones_moved() {
        let pair = Value::two(7, Value::U32(1), Value::one(8, Value::U32(2)));
        let shared = pair.clone();
        let mut fields = Vec::new();
        assert!(pair.unpack(|(at, field)| fields.push((at, field))));
        assert_eq!(fields.len(), 2);
        assert_eq!(shared.fields().len(), 2);
        drop(fields);
        assert!(shared.unpack(|_| {}));
        assert!(!Value::Nat(1).unpack(|_| {}));
    }
}
