//! Arrays: one owner, a power of two of slots, indexes that wrap.

use std::sync::Arc;

use super::value::{take_items, Items, Value};
use super::Failure;
use crate::core::Known;

/// As a tree an array may be that deep.
const MAX_DEPTH: u64 = 32;

pub(super) fn leaf(value: Value) -> Value {
    Value::Array(Arc::new(Items(vec![value])))
}

/// Two halves as one.
pub(super) fn join(left: Arc<Items>, right: Arc<Items>) -> Result<Value, Failure> {
    if left.0.len() != right.0.len() {
        let sizes = (left.0.len(), right.0.len());
        return Err(Failure::error(format!("an Array of halves of {} and {} slots", sizes.0, sizes.1)));
    }
    let mut all = take_items(left);
    all.append(&mut take_items(right));
    Ok(Value::Array(Arc::new(Items(all))))
}

/// One slot's value, or two halves.
pub(super) fn split(items: Arc<Items>) -> Vec<Value> {
    let mut left = take_items(items);
    if left.len() == 1 {
        return left;
    }
    let right = left.split_off(left.len() / 2);
    [left, right].map(|half| Value::Array(Arc::new(Items(half)))).into()
}

pub(super) fn new(depth: u64, value: &Value) -> Result<Value, Failure> {
    let mut items = Vec::new();
    if depth > MAX_DEPTH || items.try_reserve_exact(1 << depth).is_err() {
        return Err(Failure::error(format!("no memory for an Array of 2^{depth} slots")));
    }
    items.resize(1 << depth, value.clone());
    Ok(Value::Array(Arc::new(Items(items))))
}

fn place(items: &Items, index: u32) -> usize {
    // The length is a power of two.
    index as usize & (items.0.len() - 1)
}

/// The array, and the value of a slot.
pub(super) fn get(known: &Known, items: Arc<Items>, index: u32) -> Value {
    let value = items.0[place(&items, index)].clone();
    Value::two(known.tuple, Value::Array(items), value)
}

/// Puts a value into a slot. The array, and what was there.
pub(super) fn swap(items: Arc<Items>, index: u32, value: Value) -> (Value, Value) {
    let mut items = items;
    let at = place(&items, index);
    if let Some(own) = Arc::get_mut(&mut items) {
        let before = std::mem::replace(&mut own.0[at], value);
        return (Value::Array(items), before);
    }
    let mut copy = items.0.clone();
    let before = std::mem::replace(&mut copy[at], value);
    (Value::Array(Arc::new(Items(copy))), before)
}

pub(super) fn size(known: &Known, items: Arc<Items>) -> Value {
    let size = Value::U32(items.0.len() as u32);
    Value::two(known.tuple, Value::Array(items), size)
}

/// Two arrays of the same values. They share their slots until one of them is written.
pub(super) fn clone(known: &Known, items: Arc<Items>) -> Value {
    Value::two(known.tuple, Value::Array(items.clone()), Value::Array(items))
}

pub(super) fn to_list(known: &Known, items: Arc<Items>) -> Value {
    list(known, take_items(items))
}

/// A list of values.
pub(super) fn list(known: &Known, values: impl IntoIterator<Item = Value, IntoIter: DoubleEndedIterator>) -> Value {
    values.into_iter().rev().fold(Value::Plain(known.nil), |rest, value| Value::two(known.con, value, rest))
}
