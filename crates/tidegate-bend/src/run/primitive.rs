//! The pure primitives of Base, and how values that have a form of their own are seen as constructors.

use std::cmp::Ordering;

use super::code::{Code, Comparison, Step, Wanted};
use super::text::{self, Text};
use super::value::Value;
use super::{array, map, Failure};
use crate::base::Primitive;
use crate::core::Known;

/// The greatest Nat: 2^48-1.
pub(crate) const MAX_NAT: u64 = (1 << 48) - 1;

#[inline]
fn nat(value: u64) -> Result<Value, Failure> {
    if value <= MAX_NAT {
        return Ok(Value::Nat(value));
    }
    Err(too_large())
}

#[cold]
fn too_large() -> Failure {
    Failure::error(format!("a Nat above {MAX_NAT} (2^48-1)"))
}

#[cold]
fn mismatch(primitive: Primitive) -> Failure {
    Failure::internal(&format!("{} at values of other types", primitive.name()))
}

/// A primitive of two numbers.
#[inline]
pub(super) fn binary(primitive: Primitive, left: &Value, right: &Value) -> Result<Value, Failure> {
    use Primitive as P;
    match (left, right) {
        (&Value::U32(a), &Value::U32(b)) => Ok(Value::U32(match primitive {
            P::U32Add => a.wrapping_add(b),
            P::U32Sub => a.wrapping_sub(b),
            P::U32Mul => a.wrapping_mul(b),
            P::U32Div => a.checked_div(b).unwrap_or(0),
            P::U32Mod => a.checked_rem(b).unwrap_or(a),
            P::U32And => a & b,
            P::U32Or => a | b,
            P::U32Xor => a ^ b,
            _ => return Err(mismatch(primitive)),
        })),
        (&Value::Nat(a), &Value::Nat(b)) => nat(match primitive {
            P::NatAdd => a + b,
            P::NatSub => a.saturating_sub(b),
            P::NatMul => a.saturating_mul(b),
            P::NatDiv => a.checked_div(b).unwrap_or(0),
            P::NatMod => a.checked_rem(b).unwrap_or(a),
            _ => return Err(mismatch(primitive)),
        }),
        _ => Err(mismatch(primitive)),
    }
}

/// Compares two U32 or two Nat.
#[inline]
pub(super) fn compare(comparison: Comparison, left: &Value, right: &Value) -> Result<bool, Failure> {
    let order = match (left, right) {
        (Value::U32(a), Value::U32(b)) => a.cmp(b),
        (Value::Nat(a), Value::Nat(b)) => a.cmp(b),
        _ => return Err(Failure::internal("a comparison of values of other types")),
    };
    Ok(match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::Unequal => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    })
}

/// The fields of a value that has a form of its own.
pub(super) fn parts(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Char(code) => Some(vec![Value::U32(code)]),
        Value::Text(start, buffer) => {
            let (code, (start, buffer)) = text::split((start, buffer))?;
            Some(vec![Value::Char(code), Value::Text(start, buffer)])
        }
        Value::Array(items) => Some(array::split(items)),
        _ => None,
    }
}

/// Does what lies at the end of the path fit?
pub(super) fn fits(code: &Code, value: &Value, path: &[Step], wanted: &Wanted) -> bool {
    let Some((&step, rest)) = path.split_first() else { return is_wanted(&code.known, value, wanted) };
    match (step, value) {
        (Step::Above(count), Value::Nat(value)) => {
            value.checked_sub(count).is_some_and(|above| fits(code, &Value::Nat(above), rest, wanted))
        }
        (Step::Field(at), Value::Text(..) | Value::Char(_) | Value::Array(_)) => {
            let part = parts(value.clone()).and_then(|parts| parts.into_iter().nth(at as usize));
            part.is_some_and(|part| fits(code, &part, rest, wanted))
        }
        (Step::Field(at), value) => {
            value.fields().get(at as usize).is_some_and(|field| fits(code, field, rest, wanted))
        }
        _ => false,
    }
}

fn is_wanted(known: &Known, value: &Value, wanted: &Wanted) -> bool {
    match (wanted, value) {
        (Wanted::Constructor(wanted), Value::Text(start, buffer)) => {
            let is_empty = text::slice(*start, buffer).is_empty();
            *wanted == if is_empty { known.snil } else { known.scon }
        }
        (Wanted::Constructor(wanted), Value::Char(_)) => *wanted == known.chr,
        (Wanted::Constructor(wanted), Value::Array(items)) => {
            *wanted == if items.0.len() == 1 { known.leaf } else { known.node }
        }
        (Wanted::Constructor(wanted), value) => value.constructor() == Some(*wanted),
        (Wanted::Nat(wanted), Value::Nat(value)) => value == wanted,
        (Wanted::AtLeast(least), Value::Nat(value)) => value >= least,
        (Wanted::U32(wanted), Value::U32(value)) | (Wanted::Char(wanted), Value::Char(value)) => value == wanted,
        (Wanted::F32(wanted), Value::F32(value)) => f32::from_bits(*value) == f32::from_bits(*wanted),
        (Wanted::Text(wanted), Value::Text(start, buffer)) => text::slice(*start, buffer) == wanted,
        _ => false,
    }
}

/// A pure primitive at its arguments, which it takes out of the list.
pub(super) fn call(code: &Code, primitive: Primitive, arguments: &mut Vec<Value>) -> Result<Value, Failure> {
    let mut drain = arguments.drain(..);
    let mut next = || drain.next().unwrap_or_default();
    let (first, second, third) = (next(), next(), next());
    drop(drain);
    match first {
        Value::Nat(_) | Value::U32(_) => of_numbers(code, primitive, &first, second),
        Value::F32(bits) => of_floats(code, primitive, f32::from_bits(bits), &second),
        Value::Text(start, buffer) => of_text(code, primitive, (start, buffer), second),
        Value::Plain(_) | Value::Four(..) => match (primitive, second) {
            (Primitive::MapPut, Value::Text(start, buffer)) => Ok(map::set(&code.known, first, (start, buffer), third)),
            (Primitive::MapFind, Value::Text(start, buffer)) => Ok(map::find(&code.known, &first, &(start, buffer))),
            (Primitive::MapSeek, Value::Text(start, buffer)) => Ok(map::has(&code.known, first, &(start, buffer))),
            _ => Err(mismatch(primitive)),
        },
        Value::Array(items) => {
            let known = &code.known;
            Ok(match (primitive, second) {
                (Primitive::ArrayGet, Value::U32(index)) => array::get(known, items, index),
                (Primitive::ArraySet, Value::U32(index)) => array::swap(items, index, third).0,
                (Primitive::ArraySwap, Value::U32(index)) => {
                    let (array, before) = array::swap(items, index, third);
                    Value::two(known.tuple, array, before)
                }
                (Primitive::ArraySize, _) => array::size(known, items),
                (Primitive::ArrayClone, _) => array::clone(known, items),
                (Primitive::ArrayToList, _) => array::to_list(known, items),
                _ => return Err(mismatch(primitive)),
            })
        }
        _ => Err(mismatch(primitive)),
    }
}

fn of_numbers(code: &Code, primitive: Primitive, first: &Value, second: Value) -> Result<Value, Failure> {
    use Primitive as P;
    match (primitive, first, &second) {
        (P::NatCmp, Value::Nat(a), Value::Nat(b)) => Ok(order(code, a.cmp(b))),
        (P::U32Cmp, Value::U32(a), Value::U32(b)) => Ok(order(code, a.cmp(b))),
        (P::NatShow, Value::Nat(value), _) => Ok(text::text(&value.to_string())),
        (P::U32Show, Value::U32(value), _) => Ok(text::text(&value.to_string())),
        (P::U32Not, Value::U32(value), _) => Ok(Value::U32(!value)),
        (P::U32Shln, Value::U32(value), Value::Nat(by)) => Ok(Value::U32(shifted(*by, |by| value.checked_shl(by)))),
        (P::U32Shrn, Value::U32(value), Value::Nat(by)) => Ok(Value::U32(shifted(*by, |by| value.checked_shr(by)))),
        (P::U32ToNat, Value::U32(value), _) => Ok(Value::Nat(u64::from(*value))),
        (P::U32FromNat, Value::Nat(value), _) => Ok(Value::U32(*value as u32)),
        (P::U32ToF32, Value::U32(value), _) => Ok(float(*value as f32)),
        (P::F32FromNat, Value::Nat(value), _) => Ok(float(*value as f32)),
        (P::ArrayNew, Value::Nat(depth), _) => array::new(*depth, &second),
        _ => binary(primitive, first, &second),
    }
}

/// A shift by 32 or more gives 0.
fn shifted(by: u64, shift: impl FnOnce(u32) -> Option<u32>) -> u32 {
    u32::try_from(by).ok().and_then(shift).unwrap_or(0)
}

fn order(code: &Code, order: Ordering) -> Value {
    Value::Plain(match order {
        Ordering::Less => code.known.less,
        Ordering::Equal => code.known.equal,
        Ordering::Greater => code.known.greater,
    })
}

fn float(value: f32) -> Value {
    Value::F32(value.to_bits())
}

fn of_floats(code: &Code, primitive: Primitive, a: f32, second: &Value) -> Result<Value, Failure> {
    use Primitive as P;
    if let Value::F32(bits) = second {
        let b = f32::from_bits(*bits);
        return Ok(match primitive {
            P::F32Add => float(a + b),
            P::F32Sub => float(a - b),
            P::F32Mul => float(a * b),
            P::F32Div => float(a / b),
            P::F32Mod => float(a % b),
            P::F32Pow => float(a.powf(b)),
            P::F32Atan2 => float(a.atan2(b)),
            P::F32IsLt => code.bool(a < b),
            P::F32IsLe => code.bool(a <= b),
            P::F32IsGt => code.bool(a > b),
            P::F32IsGe => code.bool(a >= b),
            P::F32IsEq => code.bool(a == b),
            P::F32IsNe => code.bool(a != b),
            _ => return Err(mismatch(primitive)),
        });
    }
    Ok(match primitive {
        P::F32Neg => float(-a),
        P::F32Abs => float(a.abs()),
        P::F32Sqrt => float(a.sqrt()),
        P::F32Exp => float(a.exp()),
        P::F32Log => float(a.ln()),
        P::F32Log2 => float(a.log2()),
        P::F32Log10 => float(a.log10()),
        P::F32Sin => float(a.sin()),
        P::F32Cos => float(a.cos()),
        P::F32Tan => float(a.tan()),
        P::F32Asin => float(a.asin()),
        P::F32Acos => float(a.acos()),
        P::F32Atan => float(a.atan()),
        P::F32Sinh => float(a.sinh()),
        P::F32Cosh => float(a.cosh()),
        P::F32Tanh => float(a.tanh()),
        P::F32Floor => float(a.floor()),
        P::F32Ceil => float(a.ceil()),
        P::F32Trunc => float(a.trunc()),
        P::F32Round => float(a.round()),
        P::F32Show => text::text(&shown_float(a)),
        // Truncates; what does not fit becomes the nearest that does, and what is no number 0.
        P::F32ToU32 => Value::U32(a as u32),
        P::F32ToNat => Value::Nat((a as u64).min(MAX_NAT)),
        P::F32Bits => Value::U32(a.to_bits()),
        _ => return Err(mismatch(primitive)),
    })
}

/// As a literal would be written: always with a point or an exponent.
pub(super) fn shown_float(value: f32) -> String {
    format!("{value:?}")
}

fn of_text(code: &Code, primitive: Primitive, first: Text, second: Value) -> Result<Value, Failure> {
    use Primitive as P;
    let known = &code.known;
    match (primitive, second) {
        (P::StringAppend, Value::Text(start, buffer)) => {
            text::append(first, (start, buffer)).map(|(start, buffer)| Value::Text(start, buffer))
        }
        (P::StringOrder, Value::Text(start, buffer)) => {
            Ok(order(code, text::bytes(&first).cmp(text::slice(start, &buffer))))
        }
        (P::StringStartsWith, Value::Text(start, buffer)) => {
            Ok(code.bool(text::bytes(&first).starts_with(text::slice(start, &buffer))))
        }
        (P::StringEndsWith, Value::Text(start, buffer)) => {
            Ok(code.bool(text::bytes(&first).ends_with(text::slice(start, &buffer))))
        }
        (P::StringContains, Value::Text(start, buffer)) => {
            Ok(code.bool(text::contains(text::bytes(&first), text::slice(start, &buffer))))
        }
        (P::StringLength, _) => nat(text::length(&first)),
        (P::NatRead, _) => Ok(read(known, &first, is_digits, |text| {
            text.parse().ok().filter(|&value| value <= MAX_NAT).map(Value::Nat)
        })),
        (P::U32Read, _) => Ok(read(known, &first, is_digits, |text| text.parse().ok().map(Value::U32))),
        (P::F32Read, _) => Ok(read(known, &first, is_float, |text| text.parse().ok().map(float))),
        _ => Err(mismatch(primitive)),
    }
}

fn read(known: &Known, text: &Text, may_be: fn(&[u8]) -> bool, parse: impl FnOnce(&str) -> Option<Value>) -> Value {
    let bytes = text::bytes(text);
    let value = may_be(bytes).then(|| std::str::from_utf8(bytes).ok().and_then(parse)).flatten();
    value.map_or(Value::Plain(known.none), |value| Value::one(known.some, value))
}

fn is_digits(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_digit)
}

/// Not a name, as `inf` is.
fn is_float(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_or_stop() {
        use Primitive as P;
        let of_u32 = |primitive, a, b| match binary(primitive, &Value::U32(a), &Value::U32(b)) {
            Ok(Value::U32(value)) => value,
            other => panic!("{other:?}"),
        };
        assert_eq!(of_u32(P::U32Add, u32::MAX, 2), 1);
        assert_eq!(of_u32(P::U32Sub, 0, 1), u32::MAX);
        assert_eq!((of_u32(P::U32Div, 5, 0), of_u32(P::U32Mod, 5, 0)), (0, 5));
        assert_eq!(shifted(31, |by| 1_u32.checked_shl(by)), 1 << 31);
        assert_eq!((shifted(32, |by| 1_u32.checked_shl(by)), shifted(1 << 40, |by| 1_u32.checked_shl(by))), (0, 0));
        assert!(binary(P::NatAdd, &Value::Nat(MAX_NAT), &Value::Nat(0)).is_ok());
        assert!(binary(P::NatAdd, &Value::Nat(MAX_NAT), &Value::Nat(1)).is_err());
        assert!(binary(P::NatMul, &Value::Nat(MAX_NAT), &Value::Nat(MAX_NAT)).is_err());
    }

    #[test]
    fn floats_are_shown_as_literals() {
        let shown: Vec<String> = [1.0, 0.5, -2.25, 1e20, f32::NAN].into_iter().map(shown_float).collect();
        assert_eq!(shown, ["1.0", "0.5", "-2.25", "1e20", "NaN"]);
    }
}
