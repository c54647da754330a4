//! What is said about the runs: the same summary as tables, JSON, CSV, HTML, Markdown.

mod agreement;
mod csv;
mod document;
mod html;
mod markdown;
mod standing;
mod table;

use serde::{Deserialize, Serialize};

use super::rounds::{CaseResult, Series};
use super::statistics::{median, minimum, paired_ratio, Ratio};
use super::{Curve, Unit};

pub(crate) use self::agreement::print_agreement;
pub(crate) use self::csv::write_csv;
pub(crate) use self::document::{now, About, Document, Method};
pub(crate) use self::html::write_html;
pub(crate) use self::markdown::in_markdown;
pub(crate) use self::table::{print_case, print_head, print_load};

/// One metric of one peer, summed up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) load: String,
    pub(crate) case: String,
    pub(crate) curve: Option<Curve>,
    pub(crate) peer: String,
    pub(crate) metric: String,
    pub(crate) unit: Unit,
    pub(crate) median: f64,
    pub(crate) minimum: f64,
    /// The median of the runs' 99th percentiles.
    pub(crate) p99: Option<f64>,
    /// Processor time of all threads, median.
    pub(crate) cpu: Option<f64>,
    /// How this peer stands beside the best one that is not ours (below 1: less).
    pub(crate) ratio: Option<Against>,
    pub(crate) rounds: usize,
    pub(crate) noisy_rounds: usize,
    pub(crate) runs: Vec<f64>,
}

impl Row {
    pub(crate) fn is_exact(&self) -> bool {
        self.unit.is_exact()
    }
}

/// A ratio of medians of pairs, with its 95 % interval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Against {
    pub(crate) peer: String,
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Against {
    fn ratio(&self) -> Ratio {
        let Against { value, low, high, .. } = *self;
        Ratio { value, low, high }
    }
}

/// Our own variants are called after us.
fn is_ours(peer: &str) -> bool {
    peer.split('+').next() == Some("tidegate")
}

/// Sums a case up, one row a series, metric by metric.
pub(crate) fn rows(load: &str, result: &CaseResult) -> Vec<Row> {
    let mut metrics: Vec<&'static str> = Vec::new();
    for series in &result.series {
        if !metrics.contains(&series.metric) {
            metrics.push(series.metric);
        }
    }
    let of = |metric| result.series.iter().filter(move |series| series.metric == metric);
    metrics
        .into_iter()
        .flat_map(|metric| {
            let best = best_peer(of(metric));
            of(metric).map(move |series| row(load, result, series, best))
        })
        .collect()
}

/// The series with the lowest median that is not ours.
fn best_peer<'r>(series: impl Iterator<Item = &'r Series>) -> Option<&'r Series> {
    series
        .filter(|series| series.unit.is_compared() && !is_ours(series.peer))
        .min_by(|a, b| median(&a.values).total_cmp(&median(&b.values)))
}

fn row(load: &str, result: &CaseResult, series: &Series, best: Option<&Series>) -> Row {
    let some_median = |values: &[f64]| (!values.is_empty()).then(|| median(values));
    let ratio = best.and_then(|best| {
        let Ratio { value, low, high } = paired_ratio(&series.values, &best.values)?;
        Some(Against { peer: best.peer.into(), value, low, high })
    });
    Row {
        load: load.into(),
        case: result.case.clone(),
        curve: result.curve.clone(),
        peer: series.peer.into(),
        metric: series.metric.into(),
        unit: series.unit,
        median: median(&series.values),
        minimum: minimum(&series.values),
        p99: some_median(&series.p99),
        cpu: some_median(&series.cpu),
        ratio,
        rounds: result.rounds,
        noisy_rounds: result.noisy,
        runs: series.values.clone(),
    }
}

/// About three digits that matter.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 && value.abs() < 1e7 => format!("{value:.0}"),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 1000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(peer: &'static str, values: [f64; 3]) -> Series {
        let (metric, unit) = ("time", Unit::Nanoseconds);
        Series { peer, metric, unit, values: values.to_vec(), p99: Vec::new(), cpu: Vec::new() }
    }

    #[test]
    fn ratios_are_against_the_best_that_is_not_ours() {
        let series = vec![
            series("tidegate", [1.0, 1.0, 1.0]),
            series("tidegate+hooks", [1.5, 1.5, 1.5]),
            series("a", [4.0, 4.0, 4.0]),
            series("b", [2.0, 2.0, 2.0]),
        ];
        let result = CaseResult { case: "case".into(), curve: None, rounds: 3, noisy: 1, series };
        let ratios: Vec<_> =
            rows("load", &result).into_iter().map(|row| row.ratio.map(|ratio| (ratio.peer, ratio.value))).collect();
        assert_eq!(ratios, [0.5, 0.75, 2.0, 1.0].map(|ratio| Some(("b".to_owned(), ratio))));
    }

    #[test]
    fn numbers_have_the_digits_that_matter() {
        let said = [0.0, 4.0, 1.234, 12.34, 123.4, 1234.5, 40.0].map(number);
        assert_eq!(said, ["0", "4", "1.23", "12.3", "123.4", "1234", "40"]);
    }
}
