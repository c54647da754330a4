//! Winners and ratios: all of it, load by load, cell by cell, and the cells behind.

use std::io::{self, Write};

use super::forest::{class, Forest};
use super::svg::Escaped;
use crate::harness::report::document::Document;
use crate::harness::report::number;
use crate::harness::report::standing::{Standing, Sum, Verdict};
use crate::harness::statistics::Ratio;

pub(super) fn write(out: &mut dyn Write, document: &Document, standings: &[Standing<'_>]) -> io::Result<()> {
    writeln!(out, "<section>\n<h2>Summary</h2>")?;
    if standings.is_empty() {
        return writeln!(out, "<p>No case of this run has both us and a peer.</p>\n</section>");
    }
    let forest = Forest::over(standings.iter().filter_map(|standing| standing.ratio));
    tiles(out, &Sum::of(standings))?;
    legend(out)?;
    by_load(out, document, standings, &forest)?;
    writeln!(out, "</section>\n<section>\n<h2>Every cell</h2>")?;
    for load in &document.loads {
        let of_load: Vec<_> = standings.iter().filter(|standing| standing.ours.load == load.name).collect();
        if !of_load.is_empty() {
            let sum = Sum::of(of_load.iter().copied());
            writeln!(
                out,
                "<details>\n<summary>{} <span class=\"quiet\">{}</span></summary>",
                Escaped(&load.name),
                counts(&sum)
            )?;
            cells(out, &of_load, &forest)?;
            writeln!(out, "</details>")?;
        }
    }
    writeln!(out, "</section>\n<section id=\"behind\">\n<h2>Cells in which we are behind</h2>")?;
    let behind: Vec<_> =
        standings.iter().filter(|standing| matches!(standing.verdict, Verdict::Behind | Verdict::Dear)).collect();
    match behind.is_empty() {
        true => writeln!(out, "<p>None in this run.</p>")?,
        false => cells(out, &behind, &forest)?,
    }
    writeln!(out, "</section>")
}

/// The run in five figures.
fn tiles(out: &mut dyn Write, sum: &Sum) -> io::Result<()> {
    writeln!(out, "<ul class=\"tiles\">")?;
    if let Some(mean) = sum.mean {
        writeln!(
            out,
            "<li><b>× {:.2}</b> ours by the best peer's, geometric mean of all cells [{:.2}, {:.2}]</li>",
            mean.value, mean.low, mean.high
        )?;
    }
    for (count, verdict, says) in [
        (sum.ahead, Verdict::Ahead, "cells ahead of the best peer"),
        (sum.even, Verdict::Even, "even: the interval holds 1"),
        (sum.behind, Verdict::Behind, "behind"),
        (sum.dear, Verdict::Dear, "ahead, but with more than 1.2 × the processor time"),
    ] {
        writeln!(out, "<li class=\"{}\"><b>{} {count}</b> {says}</li>", class(verdict), sign(verdict))?;
    }
    writeln!(out, "</ul>")
}

fn legend(out: &mut dyn Write) -> io::Result<()> {
    let entries = [Verdict::Ahead, Verdict::Even, Verdict::Behind, Verdict::Dear]
        .map(|verdict| format!("<span class=\"{}\">{}</span> {}", class(verdict), sign(verdict), verdict.word()));
    writeln!(
        out,
        "<p class=\"legend\">{}; the line is the 95 % interval, an arrow goes on beyond the axis. Ours by the best \
         peer's: below 1 is better.</p>",
        entries.join(", ")
    )
}

/// The shape that the pictures have.
fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ahead => "●",
        Verdict::Dear => "▲",
        Verdict::Even => "◆",
        Verdict::Behind => "■",
    }
}

fn counts(sum: &Sum) -> String {
    let mut parts =
        vec![format!("{} ahead", sum.ahead), format!("{} even", sum.even), format!("{} behind", sum.behind)];
    if sum.dear > 0 {
        parts.push(format!("{} ahead by processor time", sum.dear));
    }
    parts.join(", ")
}

fn by_load(out: &mut dyn Write, document: &Document, standings: &[Standing<'_>], forest: &Forest) -> io::Result<()> {
    writeln!(
        out,
        "<table class=\"ratios\">\n<thead><tr><th>load</th><th>cells</th><th class=\"n\">mean ratio</th><th>{}</th></tr></thead>\n<tbody>",
        forest.head()
    )?;
    for load in &document.loads {
        let sum = Sum::of(standings.iter().filter(|standing| standing.ours.load == load.name));
        if sum.cells() > 0 {
            sum_row(out, &load.name, &sum, forest)?;
        }
    }
    let (bytes, times): (Vec<_>, Vec<_>) = standings.iter().partition(|standing| standing.ours.is_exact());
    for (name, part) in [("all times", times), ("all sizes", bytes)] {
        let sum = Sum::of(part);
        if sum.cells() > 0 {
            sum_row(out, name, &sum, forest)?;
        }
    }
    writeln!(out, "</tbody>\n</table>")
}

fn sum_row(out: &mut dyn Write, name: &str, sum: &Sum, forest: &Forest) -> io::Result<()> {
    writeln!(out, "<tr><th scope=\"row\">{}</th><td>{}</td>", Escaped(name), counts(sum))?;
    match sum.mean {
        Some(mean) => {
            writeln!(out, "<td class=\"n\">{}</td><td>{}</td></tr>", ratio(mean), forest.mark(mean, verdict_of(mean)))
        }
        None => writeln!(out, "<td class=\"n\">–</td><td></td></tr>"),
    }
}

fn verdict_of(mean: Ratio) -> Verdict {
    match mean {
        Ratio { high, .. } if high < 1.0 => Verdict::Ahead,
        Ratio { low, .. } if low > 1.0 => Verdict::Behind,
        _ => Verdict::Even,
    }
}

fn ratio(ratio: Ratio) -> String {
    format!("× {:.2} <span class=\"quiet\">[{:.2}, {:.2}]</span>", ratio.value, ratio.low, ratio.high)
}

fn cells(out: &mut dyn Write, standings: &[&Standing<'_>], forest: &Forest) -> io::Result<()> {
    writeln!(
        out,
        "<table class=\"ratios\">\n<thead><tr><th>case</th><th class=\"n\">tidegate</th><th class=\"n\">best peer</th>\
         <th class=\"n\">ratio</th><th class=\"n\">cpu</th><th>{}</th></tr></thead>\n<tbody>",
        forest.head()
    )?;
    for standing in standings {
        let Standing { ours, best, cpu, verdict, .. } = standing;
        writeln!(
            out,
            "<tr><th scope=\"row\"><span class=\"quiet\">{}</span> {}: {}</th><td class=\"n\">{} {}</td><td class=\"n\">{} <span class=\"quiet\">{}</span></td>",
            Escaped(&ours.load),
            Escaped(&ours.case),
            Escaped(&ours.metric),
            number(ours.median),
            ours.unit.symbol(),
            number(best.median),
            Escaped(&best.peer)
        )?;
        let cpu = cpu.filter(|_| !ours.is_exact()).map_or("–".into(), |cpu| format!("× {cpu:.2}"));
        match standing.ratio {
            Some(value) => writeln!(
                out,
                "<td class=\"n\">{}</td><td class=\"n\">{cpu}</td><td>{}</td></tr>",
                ratio(value),
                forest.mark(value, *verdict)
            )?,
            None => writeln!(
                out,
                "<td class=\"n\">–</td><td class=\"n\">{cpu}</td><td class=\"{}\">{} {}</td></tr>",
                class(*verdict),
                sign(*verdict),
                verdict.word()
            )?,
        }
    }
    writeln!(out, "</tbody>\n</table>")
}
