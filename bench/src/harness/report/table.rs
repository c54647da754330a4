//! Tables for people.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::{is_ours, number, About, Method, Row};
use crate::harness::machine::Machine;

const TITLE: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// The machine, the versions and the method.
pub(crate) fn print_head(out: &mut dyn Write, machine: &Machine, method: &Method) -> io::Result<()> {
    writeln!(out, "{}, {} cores, {}; {}", machine.cpu, machine.cores, machine.os, machine.rustc)?;
    writeln!(out, "{}", machine.flags)?;
    let crates: Vec<_> = machine.crates.iter().map(|crate_| format!("{} {}", crate_.name, crate_.version)).collect();
    writeln!(out, "{}", crates.join(", "))?;
    let scale = if method.quick { "quick, " } else { "" };
    writeln!(
        out,
        "{scale}at most {} rounds a case, {} warm-up, seed {:#x}",
        method.rounds, method.warm_up_runs, method.seed
    )
}

/// What a load is about.
pub(crate) fn print_load(out: &mut dyn Write, load: &About) -> io::Result<()> {
    writeln!(out, "\n{TITLE}{}{TITLE:#}", load.name)?;
    writeln!(out, "  shows: {}", load.shows)?;
    writeln!(out, "  does not show: {}", load.does_not_show)
}

/// One case.
pub(crate) fn print_case(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    let noise = match first.noisy_rounds {
        0 => String::new(),
        noisy => format!("  [noisy: {noisy} of {} rounds began while the machine was busy]", first.rounds),
    };
    let rounds = if first.rounds == 1 { "round" } else { "rounds" };
    writeln!(out, "\n  {TITLE}{}{TITLE:#}  ({} {rounds}){BAD}{noise}{BAD:#}", first.case, first.rounds)?;
    match rows.iter().all(Row::is_exact) {
        true => print_figures(out, rows),
        false => print_statistics(out, rows),
    }
}

/// Exact figures: a line a peer, a column a metric.
fn print_figures(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    let mut metrics: Vec<(&str, &str)> = Vec::new();
    let mut peers: Vec<&str> = Vec::new();
    for row in rows {
        if !metrics.contains(&(&row.metric, row.unit.symbol())) {
            metrics.push((&row.metric, row.unit.symbol()));
        }
        if !peers.contains(&row.peer.as_str()) {
            peers.push(&row.peer);
        }
    }
    let titles: Vec<String> = metrics.iter().map(|(metric, unit)| format!("{metric} {unit}").trim().into()).collect();
    write!(out, "    {DIM}{:<24}", "peer")?;
    for title in &titles {
        write!(out, "  {title:>9}")?;
    }
    writeln!(out, "{DIM:#}")?;
    for peer in peers {
        write!(out, "    {peer:<24}")?;
        for ((metric, _), title) in metrics.iter().zip(&titles) {
            let row = rows.iter().find(|row| row.peer == peer && row.metric == *metric);
            let figure = row.map_or("–".into(), |row| number(row.median));
            write!(out, "  {figure:>width$}", width = title.chars().count().max(9))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Times: a line a peer and metric.
fn print_statistics(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    let metric =
        rows.iter().map(|row| row.metric.chars().count() + row.unit.symbol().chars().count() + 3).max().unwrap_or(0);
    writeln!(
        out,
        "    {DIM}{:<metric$}  {:<24}  {:>10}  {:>10}  {:>10}  {:>10}  against the best peer (95 %){DIM:#}",
        "metric", "peer", "median", "minimum", "p99", "cpu"
    )?;
    for row in rows {
        let name = match row.unit.symbol() {
            "" => row.metric.clone(),
            unit => format!("{} ({unit})", row.metric),
        };
        let optional = |value: Option<f64>| value.map_or("–".into(), number);
        write!(
            out,
            "    {name:<metric$}  {:<24}  {:>10}  {:>10}  {:>10}  {:>10}  ",
            row.peer,
            number(row.median),
            number(row.minimum),
            optional(row.p99),
            optional(row.cpu)
        )?;
        print_ratio(out, row)?;
    }
    Ok(())
}

fn print_ratio(out: &mut dyn Write, row: &Row) -> io::Result<()> {
    let Some(ratio) = row.ratio.as_ref().filter(|ratio| ratio.peer != row.peer) else { return writeln!(out) };
    let style = match is_ours(&row.peer) {
        true if ratio.high < 1.0 => GOOD,
        true if ratio.low > 1.0 => BAD,
        _ => Style::new(),
    };
    let (value, low, high) = (ratio.value, ratio.low, ratio.high);
    writeln!(out, "{style}× {value:.2} [{low:.2}, {high:.2}]{style:#} {}", ratio.peer)
}
