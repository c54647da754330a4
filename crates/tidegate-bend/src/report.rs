//! What a check that passed says about itself.

use std::path::{Path, PathBuf};

use crate::check::{Book, Code, Findings, Notice};
use crate::load::ModuleId;

/// What was checked, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The file.
    pub path: PathBuf,
    /// How many definitions of the program (Base not counted) have code that was checked.
    pub definitions: usize,
    /// How many types it declares.
    pub types: usize,
    /// How many files it has, Base not counted.
    pub files: usize,
    /// Proofs: read, but their steps not checked.
    pub proofs: Vec<String>,
    /// Definitions and types in which a comparison of types was let pass, because it hangs on an
    /// equation or on values that are not computed.
    pub undecided: Vec<String>,
    /// Definitions marked unsafe: their recursion and the kinds of their reusable binders not checked.
    pub trusted: Vec<String>,
    /// Definitions with a body in C or JavaScript: not read.
    pub foreign: Vec<String>,
    /// Laws that no definition fills.
    pub open: Vec<String>,
}

impl Report {
    pub(crate) fn new(book: &Book, findings: &Findings, path: &Path) -> Report {
        let own = |module: ModuleId| module != ModuleId::BASE;
        let mut report = Report {
            path: path.to_owned(),
            types: book.datas.iter().filter(|data| own(data.module)).count(),
            files: book.modules.len() - 1,
            ..Report::default()
        };
        let mut whole_proofs = 0;
        for &notice in &findings.notices {
            let (list, id) = match notice {
                Notice::ProofSkipped(id) => {
                    whole_proofs += usize::from(own(book.def(id).module));
                    (&mut report.proofs, id)
                }
                Notice::InnerProofSkipped(id) => (&mut report.proofs, id),
                Notice::Undecided(id) => (&mut report.undecided, id),
                Notice::UndecidedData(id) => {
                    let data = book.data(id);
                    if own(data.module) {
                        report.undecided.push(book.shown(ModuleId::ENTRY, data.module, data.name));
                    }
                    continue;
                }
                Notice::Unsafe(id) => (&mut report.trusted, id),
                Notice::Foreign(id) => (&mut report.foreign, id),
                Notice::Open(id) => (&mut report.open, id),
            };
            let def = book.def(id);
            if own(def.module) {
                list.push(book.shown(ModuleId::ENTRY, def.module, def.name));
            }
        }
        let coded = book.defs.iter().filter(|def| own(def.module) && matches!(def.code, Code::Term(_)));
        report.definitions = coded.count().saturating_sub(whole_proofs);
        report
    }

    /// The lines that `tidegate check` prints, the first of them the verdict.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{}: checked {}{}{}: names, arity, cases, affinity, types, descent",
            self.path.display(),
            counted(self.definitions, "definition"),
            if self.types > 0 { format!(" and {}", counted(self.types, "type")) } else { String::new() },
            if self.files > 1 { format!(" in {} files", self.files) } else { String::new() },
        )];
        let mut list = |names: &[String], text: &str| {
            if !names.is_empty() {
                let shown: Vec<&str> = names.iter().take(10).map(String::as_str).collect();
                let more = if names.len() > 10 { ", .." } else { "" };
                lines.push(format!("not checked: {}: {text}: {}{more}", names.len(), shown.join(", ")));
            }
        };
        list(&self.proofs, "equality proofs, read and skipped");
        list(&self.undecided, "type comparisons let pass, which hang on equations or on values that are not computed");
        list(&self.trusted, "descent and reuse in definitions marked unsafe");
        list(&self.foreign, "bodies in another language, which Tidegate does not run");
        list(&self.open, "laws that no definition fills");
        lines
    }
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
