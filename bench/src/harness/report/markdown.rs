//! The measured tables in Markdown, for `docs/performance.md`.
//!
//! They stand between two marks: what is written around them, by people, stays when the tables are made anew.

use std::fmt::{self, Write};

use super::document::Document;
use super::standing::{standings, Standing, Sum, Verdict, CPU_LIMIT};
use super::{is_ours, number, Row};
use crate::harness::statistics::Ratio;

const BEGIN: &str = "<!-- measured: written by `tidegate bench --from RUN.json --markdown FILE`; do not edit -->";
const END: &str = "<!-- end of measured -->";

/// The file's new text: the tables in place of those between the marks of the old text, else at its end.
pub(crate) fn in_markdown(document: &Document, old: &str) -> String {
    let measured = format!("{BEGIN}\n\n{}\n{END}", tables(document));
    let marks = old.find(BEGIN).and_then(|begin| Some((begin, begin + old[begin..].find(END)? + END.len())));
    match marks {
        Some((begin, end)) => format!("{}{measured}{}", &old[..begin], &old[end..]),
        None if old.trim().is_empty() => format!("# Performance\n\n{measured}\n"),
        None => format!("{}\n\n{measured}\n", old.trim_end()),
    }
}

fn tables(document: &Document) -> String {
    let mut out = String::new();
    write(&mut out, document).expect("a String takes everything");
    out
}

fn write(out: &mut String, document: &Document) -> fmt::Result {
    let standings = standings(document);
    head(out, document)?;
    summary(out, document, &standings)?;
    behind(out, &standings)?;
    for load in &document.loads {
        writeln!(out, "\n### {}\n\nShows: {}\n\nDoes not show: {}", load.name, load.shows, load.does_not_show)?;
        let (exact, timed): (Vec<_>, Vec<_>) =
            document.cases(&load.name).into_iter().partition(|rows| rows.iter().all(Row::is_exact));
        if !timed.is_empty() {
            times(out, &timed, &standings)?;
        }
        for rows in exact {
            figures(out, rows)?;
        }
    }
    Ok(())
}

fn head(out: &mut String, document: &Document) -> fmt::Result {
    let Document { date, machine, method, .. } = document;
    writeln!(out, "Measured {date} in {:.0} s by `{}`.", document.seconds, document.command())?;
    if method.quick {
        writeln!(
            out,
            "\n**A quick run: small loads and few rounds. It shows that all of it works; its figures decide nothing.**"
        )?;
    }
    if let (noisy @ 1.., all) = document.noise() {
        writeln!(out, "\n**{noisy} of {all} rounds began while the machine was busy.**")?;
    }
    writeln!(out, "\n- {}, {} cores, {}", machine.cpu, machine.cores, machine.os)?;
    writeln!(out, "- {}; {}", machine.rustc, machine.flags)?;
    let crates: Vec<_> = machine.crates.iter().map(|version| format!("{} {}", version.name, version.version)).collect();
    writeln!(out, "- {}", crates.join(", "))?;
    writeln!(out, "- at most {} rounds a case, {} warm-up, seed {:#x}", method.rounds, method.warm_up_runs, method.seed)
}

fn summary(out: &mut String, document: &Document, standings: &[Standing<'_>]) -> fmt::Result {
    writeln!(out, "\n### Summary\n")?;
    writeln!(
        out,
        "Ours by the best peer's, below 1 is better; ahead and behind: the 95 % interval is clear of 1. Ahead by \
         processor time: with more than {CPU_LIMIT} times the best peer's, which does not count as won.\n"
    )?;
    writeln!(out, "| load | cells | ahead | ahead by processor time | even | behind | geometric mean of the ratios |")?;
    writeln!(out, "| --- | ---: | ---: | ---: | ---: | ---: | ---: |")?;
    for load in &document.loads {
        sum(out, &load.name, standings.iter().filter(|standing| standing.ours.load == load.name))?;
    }
    sum(out, "**all times**", standings.iter().filter(|standing| !standing.ours.is_exact()))?;
    sum(out, "**all sizes**", standings.iter().filter(|standing| standing.ours.is_exact()))
}

fn sum<'s, 'd: 's>(out: &mut String, name: &str, standings: impl Iterator<Item = &'s Standing<'d>>) -> fmt::Result {
    let sum = Sum::of(standings);
    if sum.cells() == 0 {
        return Ok(());
    }
    let mean = sum.mean.map_or("–".into(), ratio);
    writeln!(
        out,
        "| {name} | {} | {} | {} | {} | {} | {mean} |",
        sum.cells(),
        sum.ahead,
        sum.dear,
        sum.even,
        sum.behind
    )
}

fn ratio(Ratio { value, low, high }: Ratio) -> String {
    format!("{value:.2} [{low:.2}, {high:.2}]")
}

/// Every cell in which we are behind, or ahead by processor time.
fn behind(out: &mut String, standings: &[Standing<'_>]) -> fmt::Result {
    writeln!(out, "\n### Cells in which we are behind\n")?;
    let behind: Vec<_> =
        standings.iter().filter(|standing| matches!(standing.verdict, Verdict::Behind | Verdict::Dear)).collect();
    if behind.is_empty() {
        return writeln!(out, "None in this run.");
    }
    writeln!(
        out,
        "| load | case | tidegate | best peer | ratio | cpu | |\n| --- | --- | ---: | ---: | ---: | ---: | --- |"
    )?;
    for Standing { ours, best, ratio: value, cpu, verdict } in behind {
        writeln!(
            out,
            "| {} | {}: {} | {} {} | {} {} | {} | {} | {} |",
            ours.load,
            ours.case,
            ours.metric,
            number(ours.median),
            ours.unit.symbol(),
            number(best.median),
            best.peer,
            value.map_or("–".into(), ratio),
            cpu.filter(|_| !ours.is_exact()).map_or("–".into(), |cpu| format!("{cpu:.2}")),
            verdict.word()
        )?;
    }
    Ok(())
}

/// A line a case and metric: ours, and the best three of the others.
fn times(out: &mut String, cases: &[&[Row]], standings: &[Standing<'_>]) -> fmt::Result {
    writeln!(out, "\n| case | tidegate: median / minimum | the best peers | ratio | cpu | |\n| --- | ---: | --- | ---: | ---: | --- |")?;
    for rows in cases {
        let mut metrics: Vec<&str> = Vec::new();
        for row in rows.iter().filter(|row| row.unit.is_compared()) {
            if !metrics.contains(&row.metric.as_str()) {
                metrics.push(&row.metric);
            }
        }
        for metric in metrics {
            let rows: Vec<&Row> = rows.iter().filter(|row| row.metric == metric).collect();
            let of = |standing: &&Standing<'_>| {
                standing.ours.case == rows[0].case
                    && standing.ours.load == rows[0].load
                    && standing.ours.metric == metric
            };
            time(out, &rows, standings.iter().find(of))?;
        }
    }
    Ok(())
}

fn time(out: &mut String, rows: &[&Row], standing: Option<&Standing<'_>>) -> fmt::Result {
    let ours = rows.iter().filter(|row| is_ours(&row.peer)).map(|row| {
        let variant = row.peer.strip_prefix("tidegate").map_or(String::new(), |rest| {
            if rest.is_empty() {
                String::new()
            } else {
                format!("{rest} ")
            }
        });
        format!("{variant}{} / {}", number(row.median), number(row.minimum))
    });
    let mut peers: Vec<&&Row> = rows.iter().filter(|row| !is_ours(&row.peer)).collect();
    peers.sort_by(|a, b| a.median.total_cmp(&b.median));
    let peers = peers.iter().take(3).map(|row| format!("{} {}", row.peer, number(row.median)));
    writeln!(
        out,
        "| {}: {} ({}) | {} | {} | {} | {} | {} |",
        rows[0].case,
        rows[0].metric,
        rows[0].unit.symbol(),
        ours.collect::<Vec<_>>().join(", "),
        peers.collect::<Vec<_>>().join(", "),
        standing.and_then(|standing| standing.ratio).map_or("–".into(), ratio),
        standing.and_then(|standing| standing.cpu).map_or("–".into(), |cpu| format!("{cpu:.2}")),
        standing.map_or("", |standing| standing.verdict.word())
    )
}

/// What is exact: a line a peer, a column a metric.
fn figures(out: &mut String, rows: &[Row]) -> fmt::Result {
    let (mut metrics, mut peers): (Vec<&Row>, Vec<&str>) = (Vec::new(), Vec::new());
    for row in rows {
        if !metrics.iter().any(|metric| metric.metric == row.metric) {
            metrics.push(row);
        }
        if !peers.contains(&row.peer.as_str()) {
            peers.push(&row.peer);
        }
    }
    let titles: Vec<_> =
        metrics.iter().map(|row| format!("{} {}", row.metric, row.unit.symbol()).trim().to_owned()).collect();
    writeln!(out, "\n| {} | {} |", rows[0].case, titles.join(" | "))?;
    writeln!(out, "| --- |{}", " ---: |".repeat(metrics.len()))?;
    for peer in peers {
        let of = |metric: &&Row| rows.iter().find(|row| row.peer == peer && row.metric == metric.metric);
        let cells: Vec<_> =
            metrics.iter().map(|metric| of(metric).map_or("–".into(), |row| number(row.median))).collect();
        writeln!(out, "| {peer} | {} |", cells.join(" | "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::document::tests::{case, run};
    use super::*;
    use crate::harness::Unit;

    fn document() -> Document {
        let mut rows =
            case("one", "x", Unit::Nanoseconds, &[("tidegate", &[1.0; 5]), ("a", &[2.0; 5]), ("b", &[3.0; 5])]);
        rows.extend(case("one", "y", Unit::Nanoseconds, &[("tidegate", &[4.0; 5]), ("a", &[2.0; 5])]));
        rows.extend(case("two", "z", Unit::Bytes, &[("tidegate", &[0.0]), ("a", &[9.0])]));
        run(rows)
    }

    #[test]
    fn the_cell_behind_is_listed_and_no_other() {
        let text = tables(&document());
        let behind = text.split("### Cells in which we are behind").nth(1).unwrap().split("###").next().unwrap();
        assert!(behind.contains("| one | y: a thing | 4 ns | 2 a | 2.00 [2.00, 2.00] | 2.00 | behind |"), "{behind}");
        assert_eq!(behind.lines().filter(|line| line.starts_with('|')).count(), 3, "{behind}");
    }

    #[test]
    fn every_case_has_its_line() {
        let text = tables(&document());
        assert!(text.contains("| x: a thing (ns) | 1 / 1 | a 2, b 3 | 0.50 [0.50, 0.50] | 0.50 | ahead |"), "{text}");
        assert!(text.contains("| z | a thing B |\n| --- | ---: |\n| tidegate | 0 |\n| a | 9 |"), "{text}");
        assert!(text.contains("| one | 2 | 1 | 0 | 0 | 1 | 1.00 [1.00, 1.00] |"), "{text}");
        assert!(text.contains("A quick run"));
    }

    #[test]
    fn rows_of_a_table_have_the_columns_of_its_head() {
        let text = tables(&document());
        for table in text.split("\n\n").filter(|part| part.starts_with('|')) {
            let columns: Vec<usize> = table.lines().map(|line| line.matches('|').count()).collect();
            assert!(columns.iter().all(|count| *count == columns[0]), "{table}");
        }
    }

    #[test]
    fn what_people_wrote_stays() {
        let document = document();
        let first = in_markdown(&document, "");
        assert!(first.starts_with("# Performance\n\n<!-- measured"), "{first}");
        let edited = first.replace("# Performance\n", "# Performance\n\nBefore.\n") + "\nAfter.\n";
        let edited = edited.replace("| one | 2 |", "| stale |");
        let again = in_markdown(&document, &edited);
        assert!(again.contains("Before.") && again.ends_with("\nAfter.\n") && !again.contains("stale"), "{again}");
        assert_eq!(in_markdown(&document, &again), again);
        let appended = in_markdown(&document, "# Ours\n");
        assert!(appended.starts_with("# Ours\n\n<!-- measured"), "{appended}");
    }
}
