//! Tables for people.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::{is_ours, Row};
use crate::harness::machine::Machine;
use crate::harness::Load;

const TITLE: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// The machine and the versions.
pub(crate) fn print_head(out: &mut dyn Write, machine: &Machine) -> io::Result<()> {
    writeln!(out, "{}, {} cores, {}; {}", machine.cpu, machine.cores, machine.os, machine.rustc)?;
    writeln!(out, "{}", machine.flags)?;
    let crates: Vec<_> = machine.crates.iter().map(|crate_| format!("{} {}", crate_.name, crate_.version)).collect();
    writeln!(out, "{}", crates.join(", "))
}

/// What a load is about.
pub(crate) fn print_load(out: &mut dyn Write, load: &Load) -> io::Result<()> {
    writeln!(out, "\n{TITLE}{}{TITLE:#}", load.name)?;
    writeln!(out, "  shows: {}", load.shows)?;
    writeln!(out, "  does not show: {}", load.hides)
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
    match rows.iter().all(|row| row.is_exact) {
        true => print_figures(out, rows),
        false => print_statistics(out, rows),
    }
}

/// Exact figures: a line a peer, a column a metric.
fn print_figures(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    let mut metrics: Vec<(&str, &str)> = Vec::new();
    let mut peers: Vec<&str> = Vec::new();
    for row in rows {
        if !metrics.contains(&(row.metric, row.unit)) {
            metrics.push((row.metric, row.unit));
        }
        if !peers.contains(&row.peer) {
            peers.push(row.peer);
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
    let metric = rows.iter().map(|row| row.metric.chars().count() + row.unit.chars().count() + 3).max().unwrap_or(0);
    writeln!(
        out,
        "    {DIM}{:<metric$}  {:<24}  {:>10}  {:>10}  {:>10}  {:>10}  against the best peer (95 %){DIM:#}",
        "metric", "peer", "median", "minimum", "p99", "cpu"
    )?;
    for row in rows {
        let name = if row.unit.is_empty() { row.metric.into() } else { format!("{} ({})", row.metric, row.unit) };
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
    let style = match is_ours(row.peer) {
        true if ratio.high < 1.0 => GOOD,
        true if ratio.low > 1.0 => BAD,
        _ => Style::new(),
    };
    let (value, low, high) = (ratio.value, ratio.low, ratio.high);
    writeln!(out, "{style}× {value:.2} [{low:.2}, {high:.2}]{style:#} {}", ratio.peer)
}

/// About three digits that matter.
fn number(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 && value.abs() < 1e7 => format!("{value:.0}"),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 1000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_the_digits_that_matter() {
        let said = [0.0, 4.0, 1.234, 12.34, 123.4, 1234.5, 40.0].map(number);
        assert_eq!(said, ["0", "4", "1.23", "12.3", "123.4", "1234", "40"]);
    }
}
