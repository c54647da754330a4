//! Strings: the bytes from some place on of a shared buffer.
//!
//! A Bend string is a list of characters, so programs take it apart and put it together at the front, a character at a
//! time; `++` puts it together at the back, too. All three are O(1) (amortized) for a string with one owner: its first
//! character goes by moving the start, a new one is written into the room before it, and the room at either end doubles
//! when it is used up. Characters that were taken off and are put back find their own bytes still there, so that a shared
//! string is taken apart and rebuilt without a copy.
//!
//! Characters are coded as UTF-8, which is extended by its own scheme to all codes of 32 bits: `Chr{code}` takes any.
//! The order of the bytes is the order of the codes.

use std::borrow::Cow;
use std::sync::Arc;

use super::value::Value;
use super::Failure;

/// The bytes of a string, with room before its start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
}

/// A string: what a [`Value::Text`] holds.
pub(crate) type Text = (u32, Arc<Buffer>);

/// The least room that is added.
const ROOM: usize = 16;

/// The longest code: a lead byte and six more.
const MAX_CODE: usize = 7;

pub(crate) fn text(content: &str) -> Value {
    Value::Text(0, Arc::new(Buffer { bytes: content.as_bytes().to_vec() }))
}

pub(crate) fn bytes(text: &Text) -> &[u8] {
    slice(text.0, &text.1)
}

/// The bytes of a string, for who has its parts.
pub(crate) fn slice(start: u32, buffer: &Buffer) -> &[u8] {
    &buffer.bytes[start as usize..]
}

/// For people and the system: what is no character of Unicode becomes U+FFFD.
pub(crate) fn shown(text: &Text) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes(text))
}

/// Bytes from outside: what is not UTF-8 becomes U+FFFD.
pub(crate) fn from_bytes(content: Vec<u8>) -> Value {
    let bytes = match String::from_utf8(content) {
        Ok(valid) => valid.into_bytes(),
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned().into_bytes(),
    };
    Value::Text(0, Arc::new(Buffer { bytes }))
}

/// The code of a character.
fn encode(code: u32, into: &mut [u8; MAX_CODE]) -> &[u8] {
    // How many bytes follow the lead byte.
    let more = match code {
        0..=0x7F => 0,
        0x80..=0x7FF => 1,
        0x800..=0xFFFF => 2,
        0x1_0000..=0x1F_FFFF => 3,
        0x20_0000..=0x3FF_FFFF => 4,
        0x400_0000..=0x7FFF_FFFF => 5,
        _ => 6,
    };
    let mut rest = u64::from(code);
    for at in (1..=more).rev() {
        into[at] = 0x80 | (rest & 0x3F) as u8;
        rest >>= 6;
    }
    into[0] = match more {
        0 => rest as u8,
        _ => !(0xFF_u8 >> (more + 1)) | rest as u8,
    };
    &into[..=more]
}

/// The first character and its length.
fn decode(bytes: &[u8]) -> Option<(u32, usize)> {
    let &lead = bytes.first()?;
    if lead < 0x80 {
        return Some((u32::from(lead), 1));
    }
    let len = lead.leading_ones() as usize;
    let first = u32::from(lead) & (0x7F >> len);
    let code = bytes[1..len].iter().fold(first, |code, byte| code << 6 | u32::from(byte & 0x3F));
    Some((code, len))
}

/// The first character, and the others. `None`: there is none.
#[inline]
pub(crate) fn split(text: Text) -> Option<(u32, Text)> {
    let (code, len) = decode(bytes(&text))?;
    Some((code, (text.0 + len as u32, text.1)))
}

/// All characters, from the first to the last.
pub(crate) fn codes(start: u32, buffer: &Buffer) -> impl Iterator<Item = u32> + '_ {
    let mut rest = slice(start, buffer);
    std::iter::from_fn(move || {
        let (code, len) = decode(rest)?;
        rest = &rest[len..];
        Some(code)
    })
}

pub(crate) fn length(text: &Text) -> u64 {
    // Every byte but those that follow a lead byte begins a character.
    bytes(text).iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u64
}

/// Are the bytes of `part` in `whole`, one after the other? That of a character begins with a byte that no other byte of
/// it is, so that they are there exactly if the characters are.
///
/// Looks at each byte a bounded number of times, whatever they are: what a mismatch leaves of a match is known from
/// `part` alone (Knuth, Morris and Pratt).
pub(crate) fn contains(whole: &[u8], part: &[u8]) -> bool {
    let Some((&first, others)) = part.split_first() else { return true };
    let Some(from) = whole.iter().position(|&byte| byte == first) else { return false };
    if whole.len() - from < part.len() {
        return false;
    }
    // The longest proper prefix of `part` that the first `n + 1` bytes of it end with.
    let mut borders = vec![0; part.len()];
    let mut matched = 0;
    for (at, &byte) in (1..).zip(others) {
        matched = extended(part, &borders, matched, byte);
        borders[at] = matched;
    }
    matched = 0;
    whole[from..].iter().any(|&byte| {
        matched = extended(part, &borders, matched, byte);
        matched == part.len()
    })
}

/// How much of `part` is matched after one more byte, of which `matched` was, but not all.
fn extended(part: &[u8], borders: &[usize], mut matched: usize, byte: u8) -> usize {
    while part[matched] != byte {
        if matched == 0 {
            return 0;
        }
        matched = borders[matched - 1];
    }
    matched + 1
}

/// A string with one more character in front.
pub(crate) fn push_front(code: u32, text: Text) -> Result<Text, Failure> {
    let mut coded = [0; MAX_CODE];
    prepend(encode(code, &mut coded), text)
}

fn prepend(front: &[u8], (start, mut buffer): Text) -> Result<Text, Failure> {
    let at = start as usize;
    let before = at.wrapping_sub(front.len());
    if at >= front.len() && buffer.bytes[before..at] == *front {
        return Ok((before as u32, buffer));
    }
    let len = buffer.bytes.len() - at + front.len();
    if at >= front.len() {
        if let Some(own) = Arc::get_mut(&mut buffer) {
            own.bytes[before..at].copy_from_slice(front);
            return Ok((before as u32, buffer));
        }
    }
    let room = len.max(ROOM);
    fits(room + len)?;
    let mut bytes = Vec::with_capacity(room + len);
    bytes.resize(room, 0);
    bytes.extend_from_slice(front);
    bytes.extend_from_slice(&buffer.bytes[at..]);
    Ok((room as u32, Arc::new(Buffer { bytes })))
}

/// `++`
pub(crate) fn append(mut left: Text, mut right: Text) -> Result<Text, Failure> {
    let (left_len, right_len) = (bytes(&left).len(), bytes(&right).len());
    if right_len == 0 {
        return Ok(left);
    }
    if left_len == 0 {
        return Ok(right);
    }
    let right_is_own = Arc::get_mut(&mut right.1).is_some();
    if left_len >= right_len || !right_is_own {
        if let Some(own) = Arc::get_mut(&mut left.1) {
            fits(own.bytes.len() + right_len)?;
            own.bytes.extend_from_slice(bytes(&right));
            return Ok(left);
        }
    }
    if right_is_own {
        return prepend(bytes(&left), right);
    }
    fits(left_len + right_len)?;
    let joined = [bytes(&left), bytes(&right)].concat();
    Ok((0, Arc::new(Buffer { bytes: joined })))
}

fn fits(len: usize) -> Result<(), Failure> {
    match u32::try_from(len) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::error("a String of more than 4 GiB")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(content: &str) -> Text {
        match text(content) {
            Value::Text(start, buffer) => (start, buffer),
            _ => unreachable!("a text is a text"),
        }
    }

    #[test]
    fn every_code_survives() {
        let samples = [0, 0x41, 0x7F, 0x80, 0x7FF, 0x800, 0xD800, 0xFFFF, 0x1_0000, 0x10_FFFF, 0x11_0000, 0x1F_FFFF];
        for code in samples.into_iter().chain([0x20_0000, 0x3FF_FFFF, 0x400_0000, 0x7FFF_FFFF, 0x8000_0000, u32::MAX]) {
            let text = push_front(code, of("z")).expect("it fits");
            assert_eq!(codes(text.0, &text.1).collect::<Vec<_>>(), [code, 0x7A], "{code:x}");
            assert_eq!(length(&text), 2);
            if let Some(character) = char::from_u32(code) {
                assert_eq!(shown(&text), format!("{character}z"));
            }
        }
    }

    #[test]
    fn order_is_that_of_the_codes() {
        let samples = [1, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x1_0000, 0x1F_FFFF, 0x20_0000, 0x400_0000, u32::MAX];
        let texts: Vec<Text> = samples.iter().map(|&code| push_front(code, of("")).expect("it fits")).collect();
        assert!(texts.windows(2).all(|pair| bytes(&pair[0]) < bytes(&pair[1])));
    }

    #[test]
    fn parts_are_found() {
        // All texts of up to six letters out of two, in all such texts.
        let texts = |longest: u32| (0..=longest).flat_map(|len| (0..1_u32 << len).map(move |bits| (len, bits)));
        let of = |(len, bits): (u32, u32)| (0..len).map(|at| b'a' + (bits >> at & 1) as u8).collect::<Vec<u8>>();
        for whole in texts(6).map(of) {
            for part in texts(6).map(of) {
                let is_there = part.is_empty() || whole.windows(part.len()).any(|window| window == part);
                assert_eq!(contains(&whole, &part), is_there, "{whole:?} {part:?}");
            }
        }
    }

    #[test]
    fn both_ends_grow() {
        let mut text = of("");
        for n in 0..1000_u32 {
            text = push_front(0x61 + n % 26, text).expect("it fits");
            text = append(text, of("é")).expect("it fits");
        }
        assert_eq!(length(&text), 2000);
        let shared = text.clone();
        let (first, rest) = split(text).expect("it is long");
        assert_eq!(length(&rest), 1999);
        let again = push_front(first, rest).expect("it fits");
        assert!(Arc::ptr_eq(&again.1, &shared.1), "what was taken off is put back without a copy");
        let other = push_front(0x21, again).expect("it fits");
        assert_eq!(shown(&other)[1..], shown(&shared)[..]);
        assert_eq!(shown(&append(of("ab"), shared.clone()).expect("it fits"))[2..], shown(&shared)[..]);
    }
}
