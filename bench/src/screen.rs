//! What a person sees: tables on standard output, a progress bar on a terminal.

use std::io::{self, Write};

use indicatif::{ProgressBar, ProgressStyle};

use crate::harness::machine::Machine;
use crate::harness::report::{print_agreement, print_case, print_head, print_load, About, Document, Method, Row};
use crate::harness::{Cell, Load};

pub(crate) struct Screen {
    is_silent: bool,
    bar: ProgressBar,
}

impl Screen {
    /// For that many runs. A silent one shows no tables.
    pub(crate) fn new(is_silent: bool, runs: usize) -> Screen {
        // Indicatif draws on standard error, and only if that is a terminal.
        let bar = ProgressBar::new(runs as u64);
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} runs, {eta} left: {msg}");
        bar.set_style(style.expect("a sound template"));
        Screen { is_silent, bar }
    }

    pub(crate) fn step(&self, load: &Load, cell: &Cell) {
        self.bar.inc(1);
        self.bar.set_message(format!("{}/{}, {}", load.name, cell.peer, cell.case));
    }

    pub(crate) fn show_head(&self, machine: &Machine, method: &Method) -> Result<(), String> {
        self.show(|out| print_head(out, machine, method))
    }

    pub(crate) fn show_load(&self, about: &About) -> Result<(), String> {
        self.show(|out| print_load(out, about))
    }

    pub(crate) fn show_case(&self, rows: &[Row]) -> Result<(), String> {
        self.show(|out| print_case(out, rows))
    }

    /// A run that is over.
    pub(crate) fn show_all(&self, document: &Document) -> Result<(), String> {
        self.show(|out| writeln!(out, "{}, {:.0} s: {}", document.date, document.seconds, document.command()))?;
        self.show_head(&document.machine, &document.method)?;
        for about in &document.loads {
            self.show_load(about)?;
            document.cases(&about.name).into_iter().try_for_each(|rows| self.show_case(rows))?;
        }
        Ok(())
    }

    /// Whether another run says the same as one that is over.
    pub(crate) fn show_agreement(&self, run: &Document, other: &Document) -> Result<(), String> {
        self.show(|out| print_agreement(out, run, other))
    }

    fn show(&self, print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), String> {
        if self.is_silent {
            return Ok(());
        }
        let print = || {
            // Leaves the colors out unless standard output is a terminal that shows them.
            let mut out = anstream::stdout().lock();
            print(&mut out).and_then(|()| out.flush())
        };
        self.bar.suspend(print).map_err(|error| format!("standard output: {error}"))
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
