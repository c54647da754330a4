//! The answer of `check --json`: one object.
//!
//! ```text
//! {"ok": bool, "file": path?, "checked": {..}?, "diagnostics": [{..}]}
//! ```
//! Lines and columns count from 1, columns in characters; the end is exclusive. The format has two
//! levels and no numbers but counts, so it is written by hand.

use std::fmt::Write as _;

use tidegate_bend::diagnostic::{Diagnostic, Failure, Severity, Sources, Span};
use tidegate_bend::{Checked, Report};

/// A program that passed.
pub(crate) fn passed(checked: &Checked) -> String {
    let Report { path, definitions, types, files, proofs, undecided, trusted, foreign, open } = &checked.report;
    let mut object = Object::new();
    object.raw("ok", "true");
    object.text("file", &path.display().to_string());
    let mut counts = Object::new();
    counts.raw("definitions", &definitions.to_string());
    counts.raw("types", &types.to_string());
    counts.raw("files", &files.to_string());
    object.raw("checked", &counts.close());
    let mut skipped = Object::new();
    for (key, names) in
        [("proofs", proofs), ("types", undecided), ("unsafe", trusted), ("foreign", foreign), ("open", open)]
    {
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        skipped.raw(key, &format!("[{}]", names.join(",")));
    }
    object.raw("not_checked", &skipped.close());
    object.raw("diagnostics", "[]");
    object.close()
}

/// A program that did not pass.
pub(crate) fn failed(failure: &Failure) -> String {
    let mut object = Object::new();
    object.raw("ok", "false");
    let diagnostics = match failure {
        Failure::Unreadable { path, reason } => {
            let mut one = Object::new();
            one.text("severity", "error");
            one.text("file", &path.display().to_string());
            one.text("message", &format!("cannot read {}: {reason}", path.display()));
            vec![one.close()]
        }
        Failure::Rejected { sources, errors } => errors.iter().map(|error| diagnostic(error, sources)).collect(),
    };
    object.raw("diagnostics", &format!("[{}]", diagnostics.join(",")));
    object.close()
}

fn diagnostic(error: &Diagnostic, sources: &Sources) -> String {
    let mut object = Object::new();
    object.text(
        "severity",
        match error.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
    );
    if let Some(span) = error.span {
        place(&mut object, span, sources);
    }
    match &error.observed {
        None => object.text("message", &error.expected),
        Some(observed) => {
            object.text("message", &format!("expected {}, observed {observed}", error.expected));
            object.text("expected", &error.expected);
            object.text("observed", observed);
        }
    }
    if let Some(definition) = &error.definition {
        object.text("definition", definition);
    }
    let context: Vec<String> = error
        .context
        .iter()
        .map(|(name, ty)| {
            let mut entry = Object::new();
            entry.text("name", name);
            entry.text("type", ty);
            entry.close()
        })
        .collect();
    object.raw("context", &format!("[{}]", context.join(",")));
    if let Some(note) = &error.note {
        object.text("note", note);
    }
    object.close()
}

fn place(object: &mut Object, span: Span, sources: &Sources) {
    object.text("file", &sources.file(span.file).path.display().to_string());
    let (line, column) = sources.position(span.file, span.start);
    let (end_line, end_column) = sources.position(span.file, span.end);
    for (key, value) in [("line", line), ("column", column), ("end_line", end_line), ("end_column", end_column)] {
        object.raw(key, &value.to_string());
    }
}

/// An object under construction.
struct Object(String);

impl Object {
    fn new() -> Self {
        Object(String::from("{"))
    }

    /// A value that is JSON already.
    fn raw(&mut self, key: &str, value: &str) {
        let separator = if self.0.len() > 1 { "," } else { "" };
        let _ = write!(self.0, "{separator}{}:{value}", quoted(key));
    }

    fn text(&mut self, key: &str, value: &str) {
        self.raw(key, &quoted(value));
    }

    fn close(self) -> String {
        self.0 + "}"
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(quoted("a\"b\\c\nd\u{1}é"), "\"a\\\"b\\\\c\\nd\\u0001é\"");
    }
}
