//! Do two runs say the same?

use std::fmt::Write as _;
use std::io::{self, Write};

use super::document::Document;
use super::standing::standings;
use super::{number, Row};
use crate::harness::statistics::{paired_ratio, Ratio};

/// One of our cells that both runs have: its ratio to the peer that was best in the first one.
#[derive(Debug)]
struct Pair<'d> {
    ours: &'d Row,
    peer: &'d str,
    first: Ratio,
    second: Ratio,
}

impl Pair<'_> {
    /// Do the intervals overlap? Figures that every run has the same are two equal points.
    fn agrees(&self) -> bool {
        self.first.low <= self.second.high && self.second.low <= self.first.high
    }
}

/// Prints how many cells of `first` have the same ratio in `second`, within the intervals of both, and those that do not.
pub(crate) fn print_agreement(out: &mut dyn Write, first: &Document, second: &Document) -> io::Result<()> {
    let (timed, exact): (Vec<_>, Vec<_>) = pairs(first, second).into_iter().partition(|pair| !pair.ours.is_exact());
    writeln!(out, "{}, {:.0} s: {}", first.date, first.seconds, first.command())?;
    writeln!(out, "{}, {:.0} s: {}", second.date, second.seconds, second.command())?;
    for (what, pairs) in [("times", &timed), ("sizes", &exact)] {
        writeln!(out, "{}", share(what, pairs))?;
    }
    for load in &first.loads {
        let of_load: Vec<_> = timed.iter().chain(&exact).filter(|pair| pair.ours.load == load.name).collect();
        if !of_load.is_empty() {
            writeln!(out, "  {}", share(&load.name, of_load))?;
        }
    }
    for pair in timed.iter().chain(&exact).filter(|pair| !pair.agrees()) {
        let Row { load, case, metric, .. } = pair.ours;
        let mut line = format!("  {load}, {case}: {metric}, by {}:", pair.peer);
        for Ratio { value, low, high } in [pair.first, pair.second] {
            write!(line, " × {} [{}, {}]", number(value), number(low), number(high))
                .expect("a String takes everything");
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn share<'p, 'd: 'p>(what: &str, pairs: impl IntoIterator<Item = &'p Pair<'d>>) -> String {
    let (mut agree, mut all) = (0, 0);
    for pair in pairs {
        agree += usize::from(pair.agrees());
        all += 1;
    }
    format!("{what}: {agree} of {all} cells agree within their intervals")
}

fn pairs<'d>(first: &'d Document, second: &'d Document) -> Vec<Pair<'d>> {
    let pair = |ours: &'d Row, peer: &'d str| {
        let ratio_in = |document: &'d Document| {
            paired_ratio(&find(document, ours, &ours.peer)?.runs, &find(document, ours, peer)?.runs)
        };
        Some(Pair { ours, peer, first: ratio_in(first)?, second: ratio_in(second)? })
    };
    standings(first).iter().filter_map(|standing| pair(standing.ours, &standing.best.peer)).collect()
}

/// The row of a peer in the cell of `like`.
fn find<'d>(document: &'d Document, like: &Row, peer: &str) -> Option<&'d Row> {
    let same = |row: &&Row| row.load == like.load && row.case == like.case && row.metric == like.metric;
    document.results.iter().filter(same).find(|row| row.peer == peer)
}

#[cfg(test)]
mod tests {
    use super::super::document::tests::{case, run};
    use super::*;
    use crate::harness::Unit;

    fn text(first: &Document, second: &Document) -> String {
        let mut out = Vec::new();
        print_agreement(&mut out, first, second).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn timed(name: &str, ours: [f64; 5]) -> Vec<Row> {
        case("load", name, Unit::Nanoseconds, &[("tidegate", &ours), ("a", &[10.0; 5]), ("b", &[20.0; 5])])
    }

    #[test]
    fn intervals_that_overlap_agree() {
        let first = run([timed("x", [8.0, 8.5, 9.0, 9.5, 10.0]), timed("y", [8.0; 5])].concat());
        let second = run([timed("x", [9.0, 9.5, 10.0, 10.5, 11.0]), timed("y", [8.1; 5])].concat());
        let said = text(&first, &second);
        assert!(said.contains("times: 1 of 2 cells agree"), "{said}");
        assert!(said.contains("load, y: a thing, by a: × 0.80 [0.80, 0.80] × 0.81 [0.81, 0.81]"), "{said}");
        assert!(!said.contains("load, x"), "{said}");
    }

    #[test]
    fn the_peer_is_the_first_runs_best() {
        let with = |a: f64, b: f64| {
            run(case("load", "x", Unit::Nanoseconds, &[("tidegate", &[5.0; 5]), ("a", &[a; 5]), ("b", &[b; 5])]))
        };
        let said = text(&with(10.0, 20.0), &with(10.0, 8.0));
        assert!(said.contains("times: 1 of 1 cells agree"), "b is faster in the second run only: {said}");
    }

    #[test]
    fn sizes_agree_if_they_are_equal() {
        let sized = |bytes: f64| run(case("load", "x", Unit::Bytes, &[("tidegate", &[bytes]), ("a", &[100.0])]));
        assert!(text(&sized(50.0), &sized(50.0)).contains("sizes: 1 of 1 cells agree"));
        assert!(text(&sized(50.0), &sized(51.0)).contains("sizes: 0 of 1 cells agree"));
    }

    #[test]
    fn what_one_run_lacks_is_not_counted() {
        let first = run([timed("x", [8.0; 5]), timed("y", [8.0; 5])].concat());
        let said = text(&first, &run(timed("y", [8.0; 5])));
        assert!(said.contains("times: 1 of 1 cells agree"), "{said}");
    }
}
