//! How the value of a pure `main` is printed: as it would be written.

use std::fmt::Write as _;

use super::code::Code;
use super::primitive::shown_float;
use super::text;
use super::value::Value;

/// What is still to be written, the next last.
enum Todo<'v> {
    Value(&'v Value),
    /// What follows the head of a list, or of a tuple.
    Rest(&'v Value, u32),
    Text(&'static str),
}

/// A value as text. Without recursion: a list may be long and a tree deep.
pub(super) fn show(code: &Code, value: &Value) -> String {
    let mut out = String::new();
    let mut todo = vec![Todo::Value(value)];
    while let Some(next) = todo.pop() {
        match next {
            Todo::Text(text) => out.push_str(text),
            Todo::Value(value) => show_one(code, value, &mut out, &mut todo),
            Todo::Rest(rest, constructor) if rest.constructor() == Some(constructor) => {
                out.push_str(", ");
                todo.push(Todo::Rest(&rest.fields()[1], constructor));
                todo.push(Todo::Value(&rest.fields()[0]));
            }
            Todo::Rest(rest, constructor) if constructor == code.known.tuple => {
                out.push_str(", ");
                todo.push(Todo::Text(")"));
                todo.push(Todo::Value(rest));
            }
            Todo::Rest(..) => out.push(']'),
        }
    }
    out
}

fn show_one<'v>(code: &Code, value: &'v Value, out: &mut String, todo: &mut Vec<Todo<'v>>) {
    let known = &code.known;
    match value {
        Value::Empty => out.push('_'),
        Value::Nat(value) => drop(write!(out, "{value}n")),
        Value::U32(value) => drop(write!(out, "{value}")),
        Value::F32(bits) => out.push_str(&shown_float(f32::from_bits(*bits))),
        Value::Char(character) => {
            out.push('\'');
            show_code(*character, '\'', out);
            out.push('\'');
        }
        Value::Text(start, buffer) => {
            out.push('"');
            text::codes(*start, buffer).for_each(|character| show_code(character, '"', out));
            out.push('"');
        }
        Value::Plain(constructor) if *constructor == known.nil => out.push_str("[]"),
        Value::Two(constructor, _) if *constructor == known.con || *constructor == known.tuple => {
            out.push(if *constructor == known.con { '[' } else { '(' });
            todo.push(Todo::Rest(&value.fields()[1], *constructor));
            todo.push(Todo::Value(&value.fields()[0]));
        }
        Value::Array(items) => {
            out.push('[');
            todo.push(Todo::Text("]"));
            push_all(&items.0, todo);
        }
        Value::Function(_) | Value::Closure(..) | Value::Primitive(_) | Value::Partial(_) => out.push_str("<function>"),
        Value::Sequence(..) | Value::Effect(..) => out.push_str("<action>"),
        Value::Channel(_) => out.push_str("<channel>"),
        Value::File(_) => out.push_str("<file>"),
        constructed => {
            let name = constructed.constructor().map_or("", |number| &code.constructors[number as usize]);
            let _ = write!(out, "{name}{{");
            todo.push(Todo::Text("}"));
            push_all(constructed.fields(), todo);
        }
    }
}

/// Values with commas between them.
fn push_all<'v>(values: &'v [Value], todo: &mut Vec<Todo<'v>>) {
    for (at, value) in values.iter().enumerate().rev() {
        todo.push(Todo::Value(value));
        if at > 0 {
            todo.push(Todo::Text(", "));
        }
    }
}

/// A character as in a literal.
fn show_code(code: u32, quote: char, out: &mut String) {
    match char::from_u32(code) {
        Some('\n') => out.push_str("\\n"),
        Some('\t') => out.push_str("\\t"),
        Some('\r') => out.push_str("\\r"),
        Some('\0') => out.push_str("\\0"),
        Some('\\') => out.push_str("\\\\"),
        Some(character) if character == quote => out.extend(['\\', quote]),
        Some(character) if !character.is_control() => out.push(character),
        _ => drop(write!(out, "\\u{{{code:x}}}")),
    }
}
