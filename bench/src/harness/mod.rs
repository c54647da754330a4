//! The method: what is measured, in which order, and what is said about it.
//!
//! A *load* has *cases*; a case has one *cell* a peer. All cells of a case run in rounds, interleaved peer by peer, so that
//! whatever the machine does meanwhile meets all of them; each run returns *metrics* or fails, and a run that lost or
//! duplicated a value fails.

pub(crate) mod allocation;
pub(crate) mod gate;
pub(crate) mod machine;
pub(crate) mod report;
pub(crate) mod rounds;
pub(crate) mod statistics;
pub(crate) mod stopwatch;
mod watchdog;

use std::fmt;

use serde::{Deserialize, Serialize};

/// What kind of work is measured, in how many cases.
pub(crate) struct Load {
    pub(crate) name: &'static str,
    /// What its figures say.
    pub(crate) shows: &'static str,
    /// What nobody should read into them.
    pub(crate) hides: &'static str,
    /// The most rounds that are worth their time.
    pub(crate) max_rounds: usize,
    pub(crate) cells: fn(Scale) -> Vec<Cell>,
}

/// How much work a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Quick,
    Full,
}

impl Scale {
    /// The amount for this scale.
    pub(crate) fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Scale::Quick => quick,
            Scale::Full => full,
        }
    }
}

/// One peer in one case.
pub(crate) struct Cell {
    pub(crate) case: String,
    pub(crate) peer: &'static str,
    pub(crate) curve: Option<Curve>,
    pub(crate) run: Box<dyn Fn() -> Run>,
}

/// Cases that differ in one figure: points of one curve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Curve {
    /// What the figure counts.
    pub(crate) name: String,
    pub(crate) x: usize,
}

impl Curve {
    pub(crate) fn new(name: &str, x: usize) -> Curve {
        Curve { name: name.into(), x }
    }
}

impl Cell {
    pub(crate) fn new(case: impl Into<String>, peer: &'static str, run: impl Fn() -> Run + 'static) -> Cell {
        Cell { case: case.into(), peer, curve: None, run: Box::new(run) }
    }

    /// The case is the point `x` of a curve; `name` says what `x` counts.
    pub(crate) fn on(self, name: &str, x: usize) -> Cell {
        Cell { curve: Some(Curve::new(name, x)), ..self }
    }
}

/// What a run says.
pub(crate) type Run = Result<Vec<Metric>, Failure>;

/// One figure of one run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    pub(crate) value: f64,
    /// The 99th percentile, where the run sees single operations.
    pub(crate) p99: Option<f64>,
    /// Processor time of all threads, in the same unit.
    pub(crate) cpu: Option<f64>,
}

impl Metric {
    pub(crate) fn new(name: &'static str, unit: Unit, value: f64) -> Metric {
        Metric { name, unit, value, p99: None, cpu: None }
    }

    pub(crate) fn with_p99(self, p99: f64) -> Metric {
        Metric { p99: Some(p99), ..self }
    }

    pub(crate) fn with_cpu(self, cpu: f64) -> Metric {
        Metric { cpu: Some(cpu), ..self }
    }
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Unit {
    #[serde(rename = "ns")]
    Nanoseconds,
    #[serde(rename = "µs")]
    Microseconds,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "B")]
    Bytes,
    /// A number of things, of which more or fewer is no matter of speed: not compared.
    #[serde(rename = "")]
    Count,
}

impl Unit {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Microseconds => "µs",
            Unit::Milliseconds => "ms",
            Unit::Bytes => "B",
            Unit::Count => "",
        }
    }

    /// Is less better, so that ratios mean something?
    pub(crate) fn is_compared(self) -> bool {
        self != Unit::Count
    }

    /// Does every run give the same figure?
    pub(crate) fn is_exact(self) -> bool {
        matches!(self, Unit::Bytes | Unit::Count)
    }
}

/// A run that is worth nothing: a value was lost or came twice, or the peer did not do what the load needs.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Failure {
        Failure(what.into())
    }

    /// Fails unless what came is what was meant to come.
    pub(crate) fn unless_equal<T: PartialEq + fmt::Display>(what: &str, came: T, expected: T) -> Result<(), Failure> {
        match came == expected {
            true => Ok(()),
            false => Err(Failure(format!("{what}: {came}, expected {expected}"))),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}
