//! Values as Bend text, for messages.

use super::book::{ConstructorId, DefId};
use super::value::{Value, VarId, V};
use super::Checker;
use crate::syntax::{keyword, Quantity};

/// Longer types are cut: a message is read by people.
const MAX_LENGTH: usize = 2_000;

/// How tightly the surroundings bind: nothing, an operator's side, a call's head.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Tightness {
    Loose,
    Operand,
}

impl Checker<'_> {
    /// A type as a reader of the current file would write it.
    pub(super) fn show(&mut self, v: V) -> String {
        let mut out = String::new();
        self.write_value(v, Tightness::Loose, &mut out, 0);
        if out.len() > MAX_LENGTH {
            let cut = (0..=MAX_LENGTH).rev().find(|&at| out.is_char_boundary(at));
            out.truncate(cut.unwrap_or(0));
            out.push('…');
        }
        out
    }

    fn write_value(&mut self, v: V, around: Tightness, out: &mut String, depth: u32) {
        if out.len() > MAX_LENGTH || depth > 500 {
            out.push('…');
            return;
        }
        match self.values.get(v).clone() {
            Value::Any | Value::Opaque(_) => out.push('?'),
            Value::Var(id) => self.write_var(id, out, around, depth),
            Value::Bound(index) => out.push_str(&format!("^{index}")),
            Value::Def(id) => out.push_str(&self.def_name(id)),
            Value::Data(id, arguments) => self.write_data(id, &arguments, around, out, depth),
            Value::Construct(id, fields) => self.write_construct(id, &fields, out, depth),
            Value::Apply(..) => self.write_apply(v, around, out, depth),
            Value::Pi(quantity, name, domain, codomain) => {
                let open = self.values.is_open(codomain);
                self.parenthesized(around > Tightness::Loose, out, |checker, out| {
                    if open || quantity != Quantity::One {
                        out.push_str(&format!("@{}{}: ", quantity.mark(), checker.book.names.text(name)));
                    }
                    checker.write_value(domain, Tightness::Operand, out, depth + 1);
                    out.push_str(" -> ");
                    let body = checker.under(name, codomain);
                    checker.write_value(body, Tightness::Loose, out, depth + 1);
                });
            }
            Value::Lambda(name, body) => self.parenthesized(around > Tightness::Loose, out, |checker, out| {
                out.push_str(checker.book.names.text(name));
                out.push_str(" => ");
                let body = checker.under(name, body);
                checker.write_value(body, Tightness::Loose, out, depth + 1);
            }),
            Value::Kind(quantity) => match *self.values.get(quantity) {
                Value::Quantity(1) => out.push_str("Type"),
                Value::Quantity(2) => out.push_str("Data"),
                _ => {
                    out.push_str("Kind(");
                    self.write_value(quantity, Tightness::Loose, out, depth + 1);
                    out.push(')');
                }
            },
            Value::Quant => out.push_str("Quant"),
            Value::Quantity(value) => out.push_str(&format!("&{value}")),
            Value::Meet(a, b) => self.write_binary(a, " <&> ", b, around, out, depth),
            Value::Equal(a, b, ty) => {
                out.push('{');
                self.write_value(a, Tightness::Operand, out, depth + 1);
                out.push_str(" == ");
                self.write_value(b, Tightness::Operand, out, depth + 1);
                out.push_str(" : ");
                self.write_value(ty, Tightness::Loose, out, depth + 1);
                out.push('}');
            }
            Value::Reflexivity => out.push_str("{==}"),
            Value::Nat(value) => out.push_str(&format!("{value}n")),
            Value::NatPlus(count, rest) => {
                out.push_str(&format!("{count}n+"));
                self.write_value(rest, Tightness::Operand, out, depth + 1);
            }
            Value::U32(value) => out.push_str(&value.to_string()),
            Value::F32(bits) => out.push_str(&crate::syntax::show_f32(bits)),
            Value::Char(c) => out.push_str(&format!("'{}'", crate::syntax::escape(c, '\''))),
            Value::Text(text) => {
                let text: String = self.book.names.text(text).chars().map(|c| crate::syntax::escape(c, '"')).collect();
                out.push_str(&format!("\"{text}\""));
            }
        }
    }

    fn parenthesized(&mut self, wrap: bool, out: &mut String, write: impl FnOnce(&mut Self, &mut String)) {
        out.push_str(if wrap { "(" } else { "" });
        write(self, out);
        out.push_str(if wrap { ")" } else { "" });
    }

    /// The body of a binder, with its name in place of the bound variable.
    fn under(&mut self, name: crate::syntax::Symbol, body: V) -> V {
        if !self.values.is_open(body) {
            return body;
        }
        let id = self.fresh_var(name);
        let var = self.values.var(id);
        self.values.instantiate(body, var)
    }

    /// A variable by its name; a matched one by what it was matched with.
    fn write_var(&mut self, id: VarId, out: &mut String, around: Tightness, depth: u32) {
        let matched = self.variable(id).origin != super::Origin::Local;
        match self.known.get(&id).copied().filter(|_| matched) {
            Some(known) => self.write_value(known, around, out, depth + 1),
            None => out.push_str(self.book.names.text(self.variable(id).name)),
        }
    }

    pub(super) fn def_name(&self, id: DefId) -> String {
        let def = self.book.def(id);
        self.book.shown(self.scope.module, def.module, def.name)
    }

    pub(super) fn constructor_name(&self, id: ConstructorId) -> String {
        let constructor = self.book.constructor(id);
        self.book.shown(self.scope.module, constructor.module, constructor.name)
    }

    fn write_list(&mut self, open: &str, items: &[V], close: &str, out: &mut String, depth: u32) {
        out.push_str(open);
        for (at, &item) in items.iter().enumerate() {
            out.push_str(if at > 0 { ", " } else { "" });
            self.write_value(item, Tightness::Loose, out, depth + 1);
        }
        out.push_str(close);
    }

    fn write_binary(&mut self, a: V, operator: &str, b: V, around: Tightness, out: &mut String, depth: u32) {
        self.parenthesized(around > Tightness::Loose, out, |checker, out| {
            checker.write_value(a, Tightness::Operand, out, depth + 1);
            out.push_str(operator);
            checker.write_value(b, Tightness::Loose, out, depth + 1);
        });
    }

    fn write_data(&mut self, id: super::DataId, arguments: &[V], around: Tightness, out: &mut String, depth: u32) {
        if id == self.builtin.sigma {
            if let [.., first, family] = *arguments {
                if let Value::Lambda(_, body) = *self.values.get(family) {
                    if !self.values.is_open(body) {
                        return self.write_binary(first, " & ", body, around, out, depth);
                    }
                }
            }
        }
        let data = self.book.data(id);
        out.push_str(&self.book.shown(self.scope.module, data.module, data.name));
        if !arguments.is_empty() {
            self.write_list("<", arguments, ">", out, depth);
        }
    }

    fn write_construct(&mut self, id: ConstructorId, fields: &[V], out: &mut String, depth: u32) {
        if id == self.builtin.tuple && fields.len() == 2 {
            return self.write_list("(", fields, ")", out, depth);
        }
        out.push_str(&self.constructor_name(id));
        self.write_list("{", fields, "}", out, depth);
    }

    fn write_apply(&mut self, v: V, around: Tightness, out: &mut String, depth: u32) {
        let (head, arguments) = self.values.spine(v);
        match (self.values.get(head), &arguments[..]) {
            (Value::Def(id), &[a, b]) if *id == self.builtin.pair => {
                self.write_binary(a, " & ", b, around, out, depth);
            }
            (Value::Def(id), &[a, b]) if *id == self.builtin.or_type => {
                self.write_binary(a, " | ", b, around, out, depth);
            }
            _ => {
                self.write_value(head, Tightness::Operand, out, depth + 1);
                self.write_list("(", &arguments, ")", out, depth);
            }
        }
    }

    /// A constructor with one `_` for each field, as in `Some{_}`.
    pub(super) fn constructor_shape(&self, id: ConstructorId) -> String {
        let fields = self.book.constructor(id).fields;
        let blanks = vec![self.book.names.text(keyword::WILDCARD); fields].join(", ");
        format!("{}{{{blanks}}}", self.constructor_name(id))
    }
}
