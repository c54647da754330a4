//! A tree as text that parses to the same tree.
//!
//! Parentheses are nodes of the tree, so the printer adds none; it only has to place lines so that
//! the layout rules read them back.

use super::{
    Body, Clause, DoBlock, Expr, ExprId, FillLength, Interner, Item, Local, Match, Parameter, Pattern, PatternId,
    Statement, Symbol, Tree,
};

struct Printer<'a> {
    tree: &'a Tree,
    names: &'a Interner,
    out: String,
    indent: usize,
}

pub(super) fn print(tree: &Tree, names: &Interner) -> String {
    let mut printer = Printer { tree, names, out: String::new(), indent: 0 };
    for import in &tree.imports {
        match &import.module {
            None => printer.out.push_str("import Base\n"),
            Some((path, alias)) => {
                let line = format!("import {path} as {}\n", names.text(*alias));
                printer.out.push_str(&line);
            }
        }
    }
    for declaration in &tree.declarations {
        printer.out.push('\n');
        printer.item(declaration.name, &declaration.item);
        printer.out.push('\n');
    }
    printer.out
}

/// A character as it is written between `quote`s.
pub(crate) fn escape(c: char, quote: char) -> String {
    match c {
        '\n' => String::from("\\n"),
        '\t' => String::from("\\t"),
        '\r' => String::from("\\r"),
        '\0' => String::from("\\0"),
        '\\' => String::from("\\\\"),
        _ if c == quote => format!("\\{c}"),
        _ if c.is_control() => format!("\\u{{{:x}}}", c as u32),
        _ => c.to_string(),
    }
}

/// An F32 as a literal that reads back to the same bits.
pub(crate) fn show_f32(bits: u32) -> String {
    let value = f32::from_bits(bits);
    let text = format!("{value:?}");
    match text.split_once('e') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.0e{exponent}"),
        _ => text,
    }
}

impl Printer<'_> {
    fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn name(&mut self, name: Symbol) {
        self.out.push_str(self.names.text(name));
    }

    fn line(&mut self) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', self.indent));
    }

    fn indented(&mut self, print: impl FnOnce(&mut Self)) {
        self.indent += 2;
        print(self);
        self.indent -= 2;
    }

    fn separated<T: Copy>(&mut self, items: &[T], mut print: impl FnMut(&mut Self, T)) {
        for (at, &item) in items.iter().enumerate() {
            if at > 0 {
                self.text(", ");
            }
            print(self, item);
        }
    }

    fn item(&mut self, name: Symbol, item: &Item) {
        match item {
            Item::Type { parameters, kind, constructors } => {
                self.text("type ");
                self.name(name);
                if !parameters.is_empty() {
                    self.parameters("<", parameters, ">");
                }
                self.text(" is ");
                self.expr(*kind);
                self.text(":");
                self.indented(|p| {
                    for constructor in constructors {
                        p.line();
                        p.name(constructor.name);
                        p.parameters("{", &constructor.fields, "}");
                    }
                });
            }
            Item::Law { clauses, claim } => self.law(name, clauses, *claim),
            Item::Def { is_unsafe, partial, parameters, result, body } => {
                self.text(if *is_unsafe { "@unsafe\ndef " } else { "def " });
                self.name(name);
                self.text(if *partial { "?" } else { "" });
                self.parameters("(", parameters, ")");
                if let Some(result) = result {
                    self.text(" -> ");
                    self.expr(*result);
                }
                self.text(":");
                self.indented(|p| p.def_body(body));
            }
        }
    }

    fn def_body(&mut self, body: &Body) {
        match body {
            Body::Term(term) => {
                self.line();
                self.expr(*term);
            }
            Body::Foreign(files) => {
                for &file in files {
                    self.line();
                    self.text("import ");
                    self.string(file);
                }
            }
        }
    }

    fn law(&mut self, name: Symbol, clauses: &[Clause], claim: ExprId) {
        self.text("law ");
        self.name(name);
        self.text(":");
        self.indented(|p| {
            for clause in clauses {
                p.line();
                p.text(if clause.exists { "exs " } else { "for " });
                p.parameter(&clause.parameter);
                if let Some(condition) = clause.condition {
                    p.text(" where ");
                    p.expr(condition);
                }
            }
            p.line();
            p.expr(claim);
        });
    }

    fn parameters(&mut self, open: &str, parameters: &[Parameter], close: &str) {
        self.text(open);
        for (at, parameter) in parameters.iter().enumerate() {
            if at > 0 {
                self.text(", ");
            }
            self.parameter(parameter);
        }
        self.text(close);
    }

    fn parameter(&mut self, parameter: &Parameter) {
        if let Some(ty) = parameter.ty {
            self.text(parameter.mode.mark());
            self.name(parameter.name);
            self.text(": ");
            self.expr(ty);
        } else {
            self.name(parameter.name);
        }
    }

    fn string(&mut self, value: Symbol) {
        let text: String = self.names.text(value).chars().map(|c| escape(c, '"')).collect();
        self.text(&format!("\"{text}\""));
    }

    /// A body after `=>` or `(`: on lines of its own if it has statements.
    fn block(&mut self, body: ExprId) {
        if matches!(self.tree.expr(body), Expr::Block(..) | Expr::Match(_)) {
            self.indented(|p| {
                p.line();
                p.expr(body);
            });
        } else {
            self.expr(body);
        }
    }

    fn expr(&mut self, id: ExprId) {
        match self.tree.expr(id) {
            Expr::Name(name) => self.name(*name),
            Expr::Nat(value) => self.text(&format!("{value}n")),
            Expr::U32(value) => self.text(&value.to_string()),
            Expr::F32(bits) => self.text(&show_f32(*bits)),
            Expr::Char(value) => self.text(&format!("'{}'", escape(*value, '\''))),
            Expr::Text(value) => self.string(*value),
            Expr::Type => self.text("Type"),
            Expr::Data => self.text("Data"),
            Expr::Quant => self.text("Quant"),
            Expr::Quantity(value) => self.text(&format!("&{value}")),
            Expr::Reflexivity => self.text("{==}"),
            Expr::Kind(quantity) => self.wrapped("Kind(", *quantity, ")"),
            Expr::Plus(inner) => self.wrapped("+", *inner, ""),
            Expr::Successor(count, rest) => self.wrapped(&format!("{count}n+"), *rest, ""),
            Expr::Hole(name) => {
                self.text("?");
                self.name(*name);
            }
            Expr::Construct(name, fields) => {
                self.name(*name);
                self.list("{", fields, "}");
            }
            Expr::List(items) => self.list("[", items, "]"),
            Expr::Family(head, arguments) => {
                self.expr(*head);
                self.list("<", arguments, ">");
            }
            Expr::Binary(operator, left, right) => {
                self.expr(*left);
                self.text(&format!(" {} ", operator.text()));
                self.expr(*right);
            }
            Expr::Do(block) => self.do_block(block),
            Expr::Match(found) => self.matching(found),
            Expr::Block(locals, tail) => {
                for local in locals {
                    self.local(local);
                    self.line();
                }
                self.expr(*tail);
            }
            other => self.compound(other),
        }
    }

    fn wrapped(&mut self, before: &str, inner: ExprId, after: &str) {
        self.text(before);
        self.expr(inner);
        self.text(after);
    }

    fn list(&mut self, open: &str, items: &[ExprId], close: &str) {
        self.text(open);
        self.separated(items, Self::expr);
        self.text(close);
    }

    /// The terms of several parts and fixed punctuation.
    fn compound(&mut self, expr: &Expr) {
        match expr {
            Expr::Call { function, bang, arguments } => {
                self.expr(*function);
                self.text(if *bang { "!(" } else { "(" });
                self.separated(arguments, |p, argument| {
                    p.text(if argument.template { "~" } else { "" });
                    p.expr(argument.value);
                });
                self.text(")");
            }
            Expr::Group(body, ty) => {
                self.text("(");
                self.block(*body);
                if let Some(ty) = ty {
                    self.text(" : ");
                    self.expr(*ty);
                }
                self.text(")");
            }
            Expr::Tuple(parts) => {
                self.text("(");
                self.separated(parts, Self::block);
                self.text(")");
            }
            Expr::Fill { value, of, unit, length } => {
                self.wrapped("[", *value, " : ");
                self.expr(*of);
                self.text(match unit {
                    FillLength::Count => " * ",
                    FillLength::Depth => " ^ ",
                });
                self.wrapped("", *length, "]");
            }
            Expr::Lambda(binder, body) => {
                self.text(binder.quantity.mark());
                self.name(binder.name);
                self.text(" => ");
                self.block(*body);
            }
            Expr::Forall(binder, domain, codomain) => {
                self.text(&format!("@{}", binder.quantity.mark()));
                self.arrow(binder.name, *domain, *codomain);
            }
            Expr::Exists(binder, domain, codomain) => {
                self.text("&");
                self.arrow(binder.name, *domain, *codomain);
            }
            Expr::Ascribe(term, ty) => {
                self.wrapped("{", *term, " : ");
                self.wrapped("", *ty, "}");
            }
            Expr::Equal(left, right, ty, unequal) => {
                self.wrapped("{", *left, if *unequal { " != " } else { " == " });
                self.wrapped("", *right, " : ");
                self.wrapped("", *ty, "}");
            }
            Expr::Rewrite { name, equation, motive, body } => {
                self.text("%");
                if let Some(name) = name {
                    self.text(name.quantity.mark());
                    self.name(name.name);
                    self.text(" @ ");
                }
                self.wrapped("", *equation, " : ");
                self.expr(*motive);
                self.end(*motive);
                self.text(" ");
                self.block(*body);
            }
            Expr::Index(array, index) => {
                self.wrapped("", *array, "[");
                self.wrapped("", *index, "]");
            }
            Expr::Write(array, index, value) => {
                self.wrapped("", *array, "[");
                self.wrapped("", *index, "] <- ");
                self.expr(*value);
            }
            _ => {}
        }
    }

    fn arrow(&mut self, name: Symbol, domain: ExprId, codomain: ExprId) {
        self.name(name);
        self.wrapped(": ", domain, " -> ");
        self.expr(codomain);
    }

    fn do_block(&mut self, block: &DoBlock) {
        self.text("do ");
        self.name(block.monad);
        self.list("<", &block.arguments, ">:");
        self.indented(|p| {
            for statement in &block.statements {
                p.line();
                p.statement(statement);
            }
            p.line();
            p.wrapped(if block.returns { "return " } else { "" }, block.result, "");
        });
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Bind(binder, ty, value) | Statement::Let(binder, ty, value) => {
                self.text(binder.quantity.mark());
                self.name(binder.name);
                self.wrapped(" : ", *ty, "");
                let binds = matches!(statement, Statement::Bind(..));
                self.wrapped(if binds { " <- " } else { " = " }, *value, "");
            }
            Statement::Run(ty, value) => {
                self.wrapped("", *ty, " <- ");
                self.expr(*value);
            }
            Statement::Step(value) => self.expr(*value),
        }
    }

    fn matching(&mut self, found: &Match) {
        self.text("match ");
        self.separated(&found.scrutinees, Self::expr);
        self.text(":");
        self.indented(|p| {
            for case in &found.cases {
                p.line();
                p.text("case ");
                p.separated(&case.patterns, Self::pattern);
                p.text(":");
                p.indented(|p| {
                    p.line();
                    p.expr(case.body);
                });
            }
        });
    }

    fn local(&mut self, local: &Local) {
        match local {
            Local::Let(binder, ty, value) => {
                self.text(binder.quantity.mark());
                self.name(binder.name);
                if let Some(ty) = ty {
                    self.wrapped(" : ", *ty, "");
                }
                self.wrapped(" = ", *value, "");
                self.end(*value);
            }
            Local::Destructure(pattern, value) => {
                self.pattern(*pattern);
                self.wrapped(" = ", *value, "");
                self.end(*value);
            }
            Local::Parallel(binders, values) => {
                for binder in binders {
                    self.text(binder.quantity.mark());
                    self.name(binder.name);
                    self.text(" ");
                }
                self.text("= ");
                self.separated(values, Self::expr);
                if let Some(&last) = values.last() {
                    self.end(last);
                }
            }
            Local::Write(_, write) => {
                self.expr(*write);
                self.end(*write);
            }
        }
    }

    /// The end of a statement: a `;`, which a `do` block in its last place would take for its own.
    fn end(&mut self, last: ExprId) {
        if !self.ends_in_do(last) {
            self.text(";");
        }
    }

    fn ends_in_do(&self, id: ExprId) -> bool {
        let mut id = id;
        loop {
            id = match self.tree.expr(id) {
                Expr::Do(_) => return true,
                Expr::Match(found) => match found.cases.last() {
                    Some(case) => case.body,
                    None => return false,
                },
                Expr::Binary(_, _, last)
                | Expr::Lambda(_, last)
                | Expr::Forall(_, _, last)
                | Expr::Exists(_, _, last)
                | Expr::Rewrite { body: last, .. }
                | Expr::Successor(_, last)
                | Expr::Plus(last)
                | Expr::Write(_, _, last)
                | Expr::Block(_, last) => *last,
                _ => return false,
            };
        }
    }

    fn patterns(&mut self, open: &str, patterns: &[PatternId], close: &str) {
        self.text(open);
        self.separated(patterns, Self::pattern);
        self.text(close);
    }

    fn pattern(&mut self, id: PatternId) {
        match self.tree.pattern(id) {
            Pattern::Bind(binder) => {
                self.text(binder.quantity.mark());
                self.name(binder.name);
            }
            Pattern::Construct(name, fields) => {
                self.name(*name);
                self.patterns("{", fields, "}");
            }
            Pattern::Tuple(fields) => self.patterns("(", fields, ")"),
            Pattern::List(fields) => self.patterns("[", fields, "]"),
            Pattern::Cons(head, tail) => {
                let parenthesize = matches!(self.tree.pattern(*head), Pattern::Cons(..));
                self.text(if parenthesize { "(" } else { "" });
                self.pattern(*head);
                self.text(if parenthesize { ")" } else { "" });
                self.text(" <> ");
                self.pattern(*tail);
            }
            Pattern::Successor(count, rest) => {
                self.text(&format!("{count}n+"));
                let parenthesize = matches!(self.tree.pattern(*rest), Pattern::Cons(..));
                self.text(if parenthesize { "(" } else { "" });
                self.pattern(*rest);
                self.text(if parenthesize { ")" } else { "" });
            }
            Pattern::Nat(value) => self.text(&format!("{value}n")),
            Pattern::U32(value) => self.text(&value.to_string()),
            Pattern::F32(bits) => self.text(&show_f32(*bits)),
            Pattern::Char(value) => self.text(&format!("'{}'", escape(*value, '\''))),
            Pattern::Text(value) => self.string(*value),
        }
    }
}
