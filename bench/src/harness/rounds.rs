//! The order of the runs, and the runs.

use std::collections::BTreeMap;
use std::fmt;

use super::gate::{Gate, Machine};
use super::watchdog::watched;
use super::{Cell, Curve, Failure, Load, Metric, Unit};

/// All rounds of one case.
pub(crate) struct CaseResult {
    pub(crate) case: String,
    pub(crate) curve: Option<Curve>,
    pub(crate) rounds: usize,
    /// Rounds that began without quiet.
    pub(crate) noisy: usize,
    pub(crate) series: Vec<Series>,
}

/// One metric of one peer over all rounds.
pub(crate) struct Series {
    pub(crate) peer: &'static str,
    pub(crate) metric: &'static str,
    pub(crate) unit: Unit,
    pub(crate) values: Vec<f64>,
    pub(crate) p99: Vec<f64>,
    pub(crate) cpu: Vec<f64>,
}

/// A run that failed, and where.
#[derive(Debug)]
pub(crate) struct FailedRun {
    place: String,
    failure: Failure,
}

impl fmt::Display for FailedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.failure)
    }
}

impl std::error::Error for FailedRun {}

/// The order of `peers` in a round: each round begins with the next one, so that none is always first; when all have been
/// first, it goes backwards, so that none always comes behind the same.
pub(crate) fn order(peers: usize, round: usize) -> impl Iterator<Item = usize> {
    let backwards = (round / peers) % 2 == 1;
    (0..peers).map(move |place| {
        let place = if backwards { peers - 1 - place } else { place };
        (place + round) % peers
    })
}

/// Cells by case, in the order in which the cases first appear.
pub(crate) fn by_case(cells: Vec<Cell>) -> Vec<Vec<Cell>> {
    let mut places = BTreeMap::new();
    let mut cases: Vec<Vec<Cell>> = Vec::new();
    for cell in cells {
        let place = *places.entry(cell.case.clone()).or_insert(cases.len());
        if place == cases.len() {
            cases.push(Vec::new());
        }
        cases[place].push(cell);
    }
    cases
}

/// Runs all cells of one case: one warm-up each, then the rounds, each behind the gate. `step` is told each run before it begins.
pub(crate) fn run_case(
    load: &Load,
    cells: &[Cell],
    rounds: usize,
    gate: &mut Gate,
    mut step: impl FnMut(&Cell),
) -> Result<CaseResult, FailedRun> {
    let mut measured = |cell: &Cell| {
        step(cell);
        let place = || format!("{}/{}, {}", load.name, cell.peer, cell.case);
        watched(place(), || (cell.run)()).map_err(|failure| FailedRun { place: place(), failure })
    };
    let mut is_exact = true;
    for cell in cells {
        is_exact &= measured(cell)?.iter().all(|metric| metric.unit.is_exact());
    }
    let mut noisy = 0;
    let mut runs: Vec<Vec<Vec<Metric>>> = cells.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        // Neighbours change no size.
        noisy += usize::from(!is_exact && gate.wait() == Machine::Noisy);
        for cell in order(cells.len(), round) {
            runs[cell].push(measured(&cells[cell])?);
        }
    }
    let series = cells.iter().zip(runs).flat_map(|(cell, runs)| series(cell.peer, &runs)).collect();
    Ok(CaseResult { case: cells[0].case.clone(), curve: cells[0].curve.clone(), rounds, noisy, series })
}

/// The metrics of a peer's runs, each as a series. Every run gives the same metrics in the same order.
fn series(peer: &'static str, runs: &[Vec<Metric>]) -> Vec<Series> {
    let names = runs.first().map_or(&[][..], Vec::as_slice);
    names
        .iter()
        .enumerate()
        .map(|(place, Metric { name, unit, .. })| Series {
            peer,
            metric: name,
            unit: *unit,
            values: runs.iter().map(|run| run[place].value).collect(),
            p99: runs.iter().filter_map(|run| run[place].p99).collect(),
            cpu: runs.iter().filter_map(|run| run[place].cpu).collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_round_has_every_peer_once() {
        for peers in 1..9 {
            for round in 0..20 {
                let mut seen: Vec<usize> = order(peers, round).collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..peers).collect::<Vec<_>>(), "{peers} peers, round {round}");
            }
        }
    }

    #[test]
    fn every_peer_comes_first_and_last_in_turn() {
        let peers = 5;
        for place in [0, peers - 1] {
            let mut there: Vec<usize> = (0..2 * peers).map(|round| order(peers, round).nth(place).unwrap()).collect();
            there.sort_unstable();
            there.dedup();
            assert_eq!(there.len(), peers, "place {place}");
        }
    }

    fn no_cells(_: crate::harness::Scale) -> Vec<Cell> {
        Vec::new()
    }

    const LOAD: Load = Load { name: "load", shows: "", hides: "", max_rounds: 9, cells: no_cells };

    fn logging(peer: &'static str, log: &Rc<RefCell<Vec<&'static str>>>) -> Cell {
        let log = log.clone();
        Cell::new("case", peer, move || {
            log.borrow_mut().push(peer);
            Ok(vec![Metric::new("time", Unit::Nanoseconds, log.borrow().len() as f64)])
        })
    }

    #[test]
    fn runs_are_interleaved_after_one_warm_up() {
        let log = Rc::new(RefCell::new(Vec::new()));
        let cells = [logging("a", &log), logging("b", &log)];
        let mut gate = Gate::new(Duration::ZERO);
        let result = run_case(&LOAD, &cells, 3, &mut gate, |_| ()).unwrap();
        assert_eq!(*log.borrow(), ["a", "b", "a", "b", "b", "a", "b", "a"]);
        assert_eq!(result.series.len(), 2);
        assert_eq!(result.series[0].values, [3.0, 6.0, 8.0], "the warm-up is not counted");
    }

    #[test]
    fn a_failed_run_says_where() {
        let cells = [Cell::new("case", "peer", || Err(Failure::new("a value was lost")))];
        let failed = run_case(&LOAD, &cells, 3, &mut Gate::new(Duration::ZERO), |_| ());
        assert_eq!(failed.err().unwrap().to_string(), "load/peer, case: a value was lost");
    }

    #[test]
    fn cells_keep_their_cases_together() {
        let cell = |case: &str, peer| Cell::new(case, peer, || Ok(Vec::new()));
        let cases = by_case(vec![cell("x", "a"), cell("y", "a"), cell("x", "b")]);
        let names: Vec<Vec<_>> = cases.iter().map(|case| case.iter().map(|cell| cell.peer).collect()).collect();
        assert_eq!(names, [vec!["a", "b"], vec!["a"]]);
    }
}
