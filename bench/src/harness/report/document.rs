//! A whole run: what `--json` writes and `--from` reads.

use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Row;
use crate::harness::machine::Machine;
use crate::harness::Load;

/// Everything that was measured, and how.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Document {
    /// When the run ended, UTC.
    pub(crate) date: String,
    /// How long it took, gate and warm-up included.
    pub(crate) seconds: f64,
    pub(crate) machine: Machine,
    pub(crate) method: Method,
    pub(crate) loads: Vec<About>,
    pub(crate) results: Vec<Row>,
}

/// How it was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Method {
    /// The most rounds a case had; each row says its own.
    pub(crate) rounds: usize,
    pub(crate) warm_up_runs: usize,
    pub(crate) quick: bool,
    /// Of the bootstrap and of all random orders.
    pub(crate) seed: u64,
    pub(crate) arguments: Vec<String>,
}

/// What a load says about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) shows: String,
    pub(crate) does_not_show: String,
}

impl About {
    pub(crate) fn of(load: &Load) -> About {
        About { name: load.name.into(), shows: load.shows.into(), does_not_show: load.hides.into() }
    }
}

impl Document {
    /// # Errors
    /// The file cannot be read, or is not what `--json` writes.
    pub(crate) fn read(path: &Path) -> Result<Document, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_str(&text)
            .map_err(|error| format!("{}: not a run as --json writes it: {error}", path.display()))
    }

    /// One JSON object.
    pub(crate) fn write(&self, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut out, self)?;
        writeln!(out)?;
        out.flush()
    }

    /// The rows of a load, case by case, in the order of the run.
    pub(crate) fn cases(&self, load: &str) -> Vec<&[Row]> {
        let cases = self.results.chunk_by(|a, b| a.load == b.load && a.case == b.case);
        cases.filter(|rows| rows[0].load == load).collect()
    }

    /// The command that was given, without the program's place.
    pub(crate) fn command(&self) -> String {
        let words = ["tidegate", "bench"].into_iter().chain(self.method.arguments.iter().map(String::as_str));
        words.collect::<Vec<_>>().join(" ")
    }

    /// A case and rounds that began while the machine was busy, and all of them; sizes and counts have none.
    pub(crate) fn noise(&self) -> (usize, usize) {
        let cases = self.results.chunk_by(|a, b| a.load == b.load && a.case == b.case);
        let timed = cases.filter(|rows| !rows.iter().all(Row::is_exact));
        timed.fold((0, 0), |(noisy, all), rows| (noisy + rows[0].noisy_rounds, all + rows[0].rounds))
    }
}

/// Now, in UTC, to the minute: `2026-11-30 22:50 UTC`.
pub(crate) fn now() -> String {
    let stamp = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    format!("{} UTC", stamp[..16].replace('T', " "))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::harness::report::{rows, CaseResult};
    use crate::harness::rounds::Series;
    use crate::harness::{Curve, Unit};

    /// A case of a load, with a series a peer.
    pub(in crate::harness::report) fn case(
        load: &'static str,
        case: &str,
        unit: Unit,
        peers: &[(&'static str, &[f64])],
    ) -> Vec<Row> {
        let series = peers.iter().map(|&(peer, values)| Series {
            peer,
            metric: "a thing",
            unit,
            values: values.to_vec(),
            p99: Vec::new(),
            cpu: values.to_vec(),
        });
        let result = CaseResult {
            case: case.into(),
            curve: case.strip_prefix("at ").map(|x| Curve::new("things <ahead>", x.parse().expect("a number"))),
            rounds: peers[0].1.len(),
            noisy: 1,
            series: series.collect(),
        };
        rows(load, &result)
    }

    /// A run of those cases.
    pub(in crate::harness::report) fn run(results: Vec<Row>) -> Document {
        let mut loads: Vec<About> = Vec::new();
        for row in &results {
            if !loads.iter().any(|load| load.name == row.load) {
                loads.push(About { name: row.load.clone(), shows: "a <b> & c".into(), does_not_show: "d".into() });
            }
        }
        let method = Method { rounds: 3, warm_up_runs: 1, quick: true, seed: 7, arguments: vec!["--quick".into()] };
        Document { date: now(), seconds: 90.0, machine: Machine::this(), method, loads, results }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let peers: &[(&str, &[f64])] = &[("tidegate", &[1.5, 2.0, 3.0]), ("a", &[2.0, 2.5, 4.0])];
        let written = run(case("load", "at 8", Unit::Microseconds, peers));
        let mut text = Vec::new();
        written.write(&mut text).unwrap();
        let read: Document = serde_json::from_slice(&text).unwrap();
        let mut again = Vec::new();
        read.write(&mut again).unwrap();
        assert_eq!(String::from_utf8(text), String::from_utf8(again));
        assert_eq!(read.results[1].runs, [2.0, 2.5, 4.0]);
        assert_eq!(read.results[0].unit, Unit::Microseconds);
    }

    #[test]
    fn a_file_that_is_none_is_named() {
        let error = Document::read(Path::new("no/such/file.json")).unwrap_err();
        assert!(error.starts_with("no/such/file.json: "), "{error}");
        let error = Document::read(Path::new("Cargo.toml")).unwrap_err();
        assert!(error.starts_with("Cargo.toml: not a run as --json writes it: "), "{error}");
    }

    #[test]
    fn cases_are_kept_apart() {
        let peers: &[(&str, &[f64])] = &[("tidegate", &[1.0]), ("a", &[2.0])];
        let mut results = case("one", "x", Unit::Nanoseconds, peers);
        results.extend(case("one", "y", Unit::Nanoseconds, peers));
        results.extend(case("two", "y", Unit::Bytes, peers));
        let run = run(results);
        let cases = run.cases("one");
        assert_eq!(
            cases.iter().map(|rows| (rows[0].case.as_str(), rows.len())).collect::<Vec<_>>(),
            [("x", 2), ("y", 2)]
        );
        assert_eq!(run.noise(), (2, 2), "sizes have no noise");
    }

    #[test]
    fn the_date_is_short() {
        let now = now();
        assert_eq!((now.len(), &now[10..11], &now[16..]), (20, " ", " UTC"), "{now}");
    }
}
