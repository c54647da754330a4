//! Maps: what sets and looks up a key of Base's search trees, `MNode{key, value, low, high}`.
//!
//! Each key has a rank, a hash of it, and no key is below one of a lower rank (a treap). So the tree of some keys is the
//! same in whatever order they came, about twice as deep as the best one, and no node has to keep more than its key.
//! What a program itself builds of nodes may be ranked in another way: it stays a search tree.

use std::cmp::Ordering;

use super::text::{self, Text};
use super::value::Value;
use crate::core::Known;

/// Where to go on from a node on the way to a key.
enum Turn {
    Here,
    /// The field of a node that is its lower, or its higher, part.
    To(usize),
}

const LOW: usize = 2;
const HIGH: usize = 3;

/// Where the key lies from the root, and the key there. `None`: the tree is empty.
fn turn<'t>(tree: &'t Value, key: &[u8]) -> Option<(Turn, &'t [u8])> {
    let [Value::Text(start, buffer), _, _, _] = tree.fields() else { return None };
    let here = text::slice(*start, buffer);
    let turn = match key.cmp(here) {
        Ordering::Less => Turn::To(LOW),
        Ordering::Equal => Turn::Here,
        Ordering::Greater => Turn::To(HIGH),
    };
    Some((turn, here))
}

/// A hash (FNV-1a), and a mix of it: keys that differ little must have ranks that have nothing to do with each other.
fn rank(key: &[u8]) -> u64 {
    let hash = key
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let mixed = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ mixed >> 33
}

/// What the key stands for.
fn get<'m>(map: &'m Value, key: &[u8]) -> Option<&'m Value> {
    let mut tree = map;
    loop {
        match turn(tree, key)?.0 {
            Turn::Here => return tree.fields().get(1),
            Turn::To(side) => tree = &tree.fields()[side],
        }
    }
}

/// As a Maybe.
pub(super) fn find(known: &Known, map: &Value, key: &Text) -> Value {
    get(map, text::bytes(key)).map_or(Value::Plain(known.none), |value| Value::one(known.some, value.clone()))
}

/// The map again, and whether the key is in it.
pub(super) fn has(known: &Known, map: Value, key: &Text) -> Value {
    let is_in = get(&map, text::bytes(key)).is_some();
    Value::two(known.tuple, map, Value::Plain(if is_in { known.r#true } else { known.r#false }))
}

/// The map in which the key stands for the value. Only what lies on the way to the key is made anew, and only as far as
/// others have it, too.
pub(super) fn set(known: &Known, mut map: Value, key: Text, value: Value) -> Value {
    let own_rank = rank(text::bytes(&key));
    let mut tree = &mut map;
    loop {
        // A key is above what it outranks, and found before that if it is there.
        let turn = match turn(tree, text::bytes(&key)) {
            Some((turn, here)) if rank(here) >= own_rank => turn,
            _ => break,
        };
        let Some(fields) = tree.own_four() else { return map };
        match turn {
            Turn::Here => {
                fields[1] = value;
                return map;
            }
            Turn::To(side) => tree = &mut fields[side],
        }
    }
    let (low, high) = split(known, std::mem::take(tree), text::bytes(&key));
    *tree = node(known, [Value::Text(key.0, key.1), value, low, high]);
    map
}

fn node(known: &Known, fields: [Value; 4]) -> Value {
    Value::record(known.map_node, fields.into_iter())
}

/// The keys below, and those above.
fn split(known: &Known, mut tree: Value, key: &[u8]) -> (Value, Value) {
    let mut passed = Vec::new();
    let (mut low, mut high) = loop {
        let Some((turn, _)) = turn(&tree, key) else {
            break (Value::Plain(known.map_tip), Value::Plain(known.map_tip));
        };
        let mut fields = [const { Value::Empty }; 4];
        tree.unpack(|(at, field)| fields[at] = field);
        match turn {
            Turn::Here => {
                let [_, _, low, high] = fields;
                break (low, high);
            }
            Turn::To(side) => {
                tree = std::mem::take(&mut fields[side]);
                passed.push((side, fields));
            }
        }
    };
    for (side, mut fields) in passed.into_iter().rev() {
        let part = if side == LOW { &mut high } else { &mut low };
        fields[side] = std::mem::take(part);
        *part = node(known, fields);
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        Known { map_tip: 1, map_node: 2, none: 3, some: 4, tuple: 5, r#true: 6, ..Known::default() }
    }

    fn key(content: &str) -> Text {
        match text::text(content) {
            Value::Text(start, buffer) => (start, buffer),
            _ => unreachable!("a text is a text"),
        }
    }

    fn keys(map: &Value, into: &mut Vec<String>) -> usize {
        let [Value::Text(start, buffer), _, low, high] = map.fields() else { return 0 };
        let depth_of_low = keys(low, into);
        into.push(String::from_utf8_lossy(text::slice(*start, buffer)).into_owned());
        1 + depth_of_low.max(keys(high, into))
    }

    #[test]
    fn any_order_makes_the_same_tree_which_is_not_deep() {
        const COUNT: u64 = 4096;
        let known = known();
        let mut shown = Vec::new();
        // Odd factors: each number below 4096 comes once.
        for factor in [1, COUNT - 1, 1795, 5] {
            let mut map = Value::Plain(known.map_tip);
            for n in 0..COUNT {
                let n = n * factor % COUNT;
                map = set(&known, map, key(&n.to_string()), Value::Nat(n));
            }
            let mut all = Vec::new();
            let depth = keys(&map, &mut all);
            assert!(depth < 48, "{depth}");
            assert!(all.len() == COUNT as usize && all.is_sorted());
            shown.push(format!("{map:?}"));
        }
        assert!(shown.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn a_map_that_others_have_stays() {
        let known = known();
        let mut maps = vec![Value::Plain(known.map_tip)];
        for n in 0..200_u64 {
            let next = set(&known, maps[n as usize].clone(), key(&(n * 77 % 100).to_string()), Value::Nat(n));
            maps.push(next);
        }
        for (len, map) in maps.iter().enumerate() {
            for n in 0..100_u64 {
                let last = (0..len as u64).rev().find(|at| at * 77 % 100 == n);
                let found = match get(map, n.to_string().as_bytes()) {
                    Some(Value::Nat(value)) => Some(*value),
                    _ => None,
                };
                assert_eq!(found, last);
            }
        }
    }

    #[test]
    fn nodes_of_another_rank_are_a_search_tree_too() {
        let known = known();
        let mut map = Value::Plain(known.map_tip);
        for n in 10..90_u64 {
            let (start, buffer) = key(&n.to_string());
            map = node(&known, [Value::Text(start, buffer), Value::Nat(n), map, Value::Plain(known.map_tip)]);
        }
        for n in 5..95_u64 {
            map = set(&known, map, key(&format!("{n:02}")), Value::Nat(n + 1));
        }
        let mut all = Vec::new();
        keys(&map, &mut all);
        assert!(all.is_sorted() && all.contains(&"89".to_owned()) && all.contains(&"94".to_owned()));
        for n in 5..95_u64 {
            assert!(matches!(get(&map, format!("{n:02}").as_bytes()), Some(Value::Nat(value)) if *value == n + 1));
        }
    }
}
