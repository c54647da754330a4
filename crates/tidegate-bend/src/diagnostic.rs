//! What a check reports: where, what was expected, what stood there, and how it is printed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A range of bytes in one source file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Which file, as numbered by [`Sources`].
    pub file: u32,
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range from the start of `self` to the end of `other`.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { end: other.end.max(self.end), ..self }
    }
}

/// One source file.
#[derive(Debug)]
pub struct Source {
    /// The path as it should be shown.
    pub path: PathBuf,
    /// The whole text.
    pub text: Arc<str>,
    line_starts: Vec<u32>,
}

impl Source {
    /// The line (from 0) that holds byte `at`.
    fn line_of(&self, at: u32) -> usize {
        self.line_starts.partition_point(|&start| start <= at) - 1
    }

    /// The text of line `line` (from 0), without its end.
    fn line(&self, line: usize) -> &str {
        let start = self.line_starts[line] as usize;
        let end = self.line_starts.get(line + 1).map_or(self.text.len(), |&next| next as usize);
        self.text[start..end].trim_end_matches(['\n', '\r'])
    }
}

/// All files of one check.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    /// Adds a file and gives its number.
    pub fn add(&mut self, path: impl Into<PathBuf>, text: String) -> u32 {
        let mut line_starts = vec![0];
        line_starts.extend(text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at as u32 + 1));
        self.files.push(Source { path: path.into(), text: text.into(), line_starts });
        (self.files.len() - 1) as u32
    }

    /// The text of each file, in order.
    pub(crate) fn texts(&self) -> Vec<Arc<str>> {
        self.files.iter().map(|file| file.text.clone()).collect()
    }

    /// The file of that number.
    #[must_use]
    pub fn file(&self, file: u32) -> &Source {
        &self.files[file as usize]
    }

    /// Line and column (both from 1, the column in characters) of a byte of a file.
    #[must_use]
    pub fn position(&self, file: u32, at: u32) -> (usize, usize) {
        let source = self.file(file);
        let line = source.line_of(at);
        let before = &source.text[source.line_starts[line] as usize..at as usize];
        (line + 1, before.chars().count() + 1)
    }
}

/// How much a diagnostic weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The program fails the check.
    Error,
    /// The program passes; the line is for the reader.
    Warning,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// What was expected; the whole message if `observed` is absent.
    pub expected: String,
    /// What stood there instead.
    pub observed: Option<String>,
    /// The names in scope and their types, outermost first.
    pub context: Vec<(String, String)>,
    /// The declaration it was found in.
    pub definition: Option<String>,
    /// Where.
    pub span: Option<Span>,
    /// What to do about it.
    pub note: Option<String>,
}

impl Diagnostic {
    /// An error of one message.
    #[must_use]
    pub fn message(message: impl Into<String>, span: Option<Span>) -> Self {
        Diagnostic {
            severity: Severity::Error,
            expected: message.into(),
            observed: None,
            context: Vec::new(),
            definition: None,
            span,
            note: None,
        }
    }

    /// An error of a thing expected and a thing observed.
    #[must_use]
    pub fn mismatch(expected: impl Into<String>, observed: impl Into<String>, span: Option<Span>) -> Self {
        Diagnostic { observed: Some(observed.into()), ..Diagnostic::message(expected, span) }
    }

    /// The same, with advice.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Prints the finding in Bend's own layout, without a final newline.
    #[must_use]
    pub fn render(&self, sources: &Sources) -> String {
        let mut out = String::from(match self.severity {
            Severity::Error => "Error:",
            Severity::Warning => "Warning:",
        });
        self.render_message(&mut out);
        if !self.context.is_empty() {
            out.push_str("\nContext:");
            let width = self.context.iter().map(|(name, _)| name.chars().count()).max();
            for (name, ty) in &self.context {
                let _ = write!(out, "\n- {name:<0$} : {ty}", width.unwrap_or(0));
            }
        }
        self.render_location(sources, &mut out);
        if let Some(note) = &self.note {
            let _ = write!(out, "\nNote: {note}");
        }
        out
    }

    fn render_message(&self, out: &mut String) {
        let _ = match &self.observed {
            None => write!(out, "\n- message  : {}", self.expected),
            Some(observed) => write!(out, "\n- expected : {}\n- observed : {observed}", self.expected),
        };
    }

    fn render_location(&self, sources: &Sources, out: &mut String) {
        if self.definition.is_none() && self.span.is_none() {
            return;
        }
        out.push_str("\nLocation:");
        if let Some(definition) = &self.definition {
            let _ = write!(out, " {definition}");
        }
        let Some(span) = self.span else { return };
        if span.file != 0 {
            let _ = write!(out, " ({})", sources.file(span.file).path.display());
        }
        render_excerpt(sources.file(span.file), span, out);
    }
}

/// The line of `span` between its neighbours, with the range underlined.
fn render_excerpt(source: &Source, span: Span, out: &mut String) {
    let at = source.line_of(span.start);
    let last = (at + 1).min(source.line_starts.len() - 1);
    let width = (last + 1).to_string().len();
    for line in at.saturating_sub(1)..=last {
        let mark = if line == at { '>' } else { ' ' };
        let text = source.line(line);
        let _ = write!(out, "\n{:>width$}{mark}| {text}", line + 1);
        if line == at {
            let column = (span.start - source.line_starts[at]) as usize;
            let lead: String =
                text.get(..column).unwrap_or(text).chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            let marked = text
                .get(column..text.len().min(column + (span.end - span.start) as usize))
                .map_or(0, |range| range.chars().count());
            let _ = write!(out, "\n{:width$} | {lead}{}", "", "^".repeat(marked.max(1)));
        }
    }
}

/// Why a program was refused.
#[derive(Debug)]
pub enum Failure {
    /// A file could not be read; nothing of the program is known.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What was wrong with it.
        reason: String,
    },
    /// The program is wrong.
    Rejected {
        /// The files that were read.
        sources: Sources,
        /// What is wrong, in the order of the source; never empty.
        errors: Vec<Diagnostic>,
    },
}

impl Failure {
    pub(crate) fn unreadable(path: &Path, reason: impl Into<String>) -> Self {
        Failure::Unreadable { path: path.to_owned(), reason: reason.into() }
    }

    /// The whole report as `tidegate check` prints it, without a final newline.
    #[must_use]
    pub fn render(&self) -> String {
        match self {
            Failure::Unreadable { path, reason } => {
                format!("tidegate: cannot read {}: {reason}", path.display())
            }
            Failure::Rejected { sources, errors } => {
                let mut out = String::from("SOME PROOFS FAIL");
                for error in errors {
                    out.push('\n');
                    out.push_str(&error.render(sources));
                }
                out
            }
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.render())
    }
}

impl std::error::Error for Failure {}
