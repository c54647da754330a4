//! Where we stand: each of our cells beside the best peer's.

use super::document::Document;
use super::{is_ours, Row};
use crate::harness::statistics::{geometric_mean, Ratio};

/// Our name among the peers. Variants of ours (`tidegate+…`) are shown, but stand for nothing here.
const US: &str = "tidegate";

/// The share of the best peer's processor time beyond which a cell is not won.
pub(crate) const CPU_LIMIT: f64 = 1.2;

/// One metric of one case.
#[derive(Debug)]
pub(crate) struct Standing<'d> {
    pub(crate) ours: &'d Row,
    /// The peer with the lowest median.
    pub(crate) best: &'d Row,
    /// Ours by theirs. `None`: one of them is zero.
    pub(crate) ratio: Option<Ratio>,
    /// Our processor time by theirs.
    pub(crate) cpu: Option<f64>,
    pub(crate) verdict: Verdict,
}

/// Ahead and behind: the interval is clear of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ahead,
    /// Ahead, but with more than [`CPU_LIMIT`] times the best peer's processor time: not won.
    Dear,
    Even,
    Behind,
}

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Verdict::Ahead => "ahead",
            Verdict::Dear => "ahead by processor time",
            Verdict::Even => "even",
            Verdict::Behind => "behind",
        }
    }
}

/// Every cell of ours that has a peer beside it, in the order of the run.
pub(crate) fn standings(document: &Document) -> Vec<Standing<'_>> {
    let mut standings = Vec::new();
    for load in &document.loads {
        for rows in document.cases(&load.name) {
            let ours = rows.iter().filter(|row| row.peer == US && row.unit.is_compared());
            standings.extend(ours.filter_map(|ours| standing(ours, rows)));
        }
    }
    standings
}

fn standing<'d>(ours: &'d Row, rows: &'d [Row]) -> Option<Standing<'d>> {
    let peers = rows.iter().filter(|row| row.metric == ours.metric && !is_ours(&row.peer));
    let best = peers.min_by(|a, b| a.median.total_cmp(&b.median))?;
    let ratio = ours.ratio.as_ref().map(|against| against.ratio());
    let cpu = ours.cpu.zip(best.cpu).map(|(ours, best)| ours / best).filter(|cpu| cpu.is_finite());
    let verdict = match ratio {
        Some(Ratio { high, .. }) if high < 1.0 && cpu.is_some_and(|cpu| cpu > CPU_LIMIT) => Verdict::Dear,
        Some(Ratio { high, .. }) if high < 1.0 => Verdict::Ahead,
        Some(Ratio { low, .. }) if low > 1.0 => Verdict::Behind,
        None if ours.median < best.median => Verdict::Ahead,
        None if ours.median > best.median => Verdict::Behind,
        _ => Verdict::Even,
    };
    Some(Standing { ours, best, ratio, cpu, verdict })
}

/// Several cells in one line.
#[derive(Debug)]
pub(crate) struct Sum {
    pub(crate) ahead: usize,
    pub(crate) dear: usize,
    pub(crate) even: usize,
    pub(crate) behind: usize,
    /// The geometric mean of the ratios, with a bootstrap over the rounds of each cell. `None`: there is no ratio.
    pub(crate) mean: Option<Ratio>,
}

impl Sum {
    pub(crate) fn of<'s, 'd: 's>(standings: impl IntoIterator<Item = &'s Standing<'d>>) -> Sum {
        let mut sum = Sum { ahead: 0, dear: 0, even: 0, behind: 0, mean: None };
        let mut pairs = Vec::new();
        for standing in standings {
            *match standing.verdict {
                Verdict::Ahead => &mut sum.ahead,
                Verdict::Dear => &mut sum.dear,
                Verdict::Even => &mut sum.even,
                Verdict::Behind => &mut sum.behind,
            } += 1;
            // The logarithm of zero is nothing to add.
            if standing.ratio.is_some_and(|ratio| ratio.value > 0.0) {
                pairs.push((standing.ours.runs.as_slice(), standing.best.runs.as_slice()));
            }
        }
        sum.mean = geometric_mean(&pairs.iter().map(ratios).collect::<Vec<_>>());
        sum
    }

    pub(crate) fn cells(&self) -> usize {
        self.ahead + self.dear + self.even + self.behind
    }
}

/// The ratios of two series, round by round.
fn ratios((ours, best): &(&[f64], &[f64])) -> Vec<f64> {
    ours.iter().zip(*best).map(|(ours, best)| ours / best).collect()
}

#[cfg(test)]
mod tests {
    use super::super::document::tests::{case, run};
    use super::*;
    use crate::harness::Unit;

    fn verdicts(document: &Document) -> Vec<Verdict> {
        standings(document).iter().map(|standing| standing.verdict).collect()
    }

    fn one(unit: Unit, peers: &[(&'static str, &[f64])]) -> Vec<Verdict> {
        verdicts(&run(case("load", "case", unit, peers)))
    }

    #[test]
    fn an_interval_clear_of_one_decides() {
        let best: &[f64] = &[10.0, 10.0, 10.0, 10.0, 10.0];
        for (ours, verdict) in [
            ([8.0, 8.1, 8.2, 8.3, 8.4], Verdict::Ahead),
            ([8.0, 9.0, 10.0, 11.0, 12.0], Verdict::Even),
            ([11.0, 11.1, 11.2, 11.3, 11.4], Verdict::Behind),
        ] {
            assert_eq!(one(Unit::Nanoseconds, &[("tidegate", &ours), ("a", best), ("b", &[20.0; 5])]), [verdict]);
        }
    }

    #[test]
    fn what_cannot_be_divided_is_compared() {
        for (ours, best, verdict) in
            [(0.0, 40.0, Verdict::Ahead), (0.0, 0.0, Verdict::Even), (40.0, 0.0, Verdict::Behind)]
        {
            assert_eq!(one(Unit::Bytes, &[("tidegate", &[ours]), ("a", &[best])]), [verdict], "{ours} by {best}");
        }
    }

    #[test]
    fn nothing_is_won_by_processor_time() {
        let mut rows = case("load", "case", Unit::Nanoseconds, &[("tidegate", &[8.0; 5]), ("a", &[10.0; 5])]);
        rows[0].cpu = Some(12.5);
        assert_eq!(verdicts(&run(rows.clone())), [Verdict::Dear]);
        rows[0].cpu = Some(11.5);
        assert_eq!(verdicts(&run(rows)), [Verdict::Ahead]);
    }

    #[test]
    fn our_variants_and_what_has_no_peer_stand_for_nothing() {
        assert_eq!(one(Unit::Nanoseconds, &[("tidegate+hooks", &[1.0; 5]), ("a", &[2.0; 5])]), []);
        assert_eq!(one(Unit::Nanoseconds, &[("tidegate", &[1.0; 5]), ("tidegate+hooks", &[1.0; 5])]), []);
        assert_eq!(one(Unit::Count, &[("tidegate", &[1.0; 5]), ("a", &[2.0; 5])]), [], "a count is no speed");
    }

    #[test]
    fn a_sum_counts_and_means() {
        let mut rows = case("one", "x", Unit::Nanoseconds, &[("tidegate", &[1.0; 5]), ("a", &[2.0; 5])]);
        rows.extend(case("one", "y", Unit::Nanoseconds, &[("tidegate", &[8.0; 5]), ("a", &[2.0; 5])]));
        rows.extend(case("one", "z", Unit::Bytes, &[("tidegate", &[0.0]), ("a", &[9.0])]));
        let document = run(rows);
        let sum = Sum::of(&standings(&document));
        assert_eq!((sum.ahead, sum.dear, sum.even, sum.behind, sum.cells()), (2, 0, 0, 1, 3));
        let mean = sum.mean.unwrap();
        assert!((mean.value - 2.0_f64.sqrt()).abs() < 1e-9, "zero is left out: {mean:?}");
        assert!(Sum::of(&[]).mean.is_none());
    }
}
