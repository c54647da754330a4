//! Everything, for programs.

use std::io::Write;

use serde::Serialize;

use super::Row;
use crate::harness::machine::Machine;
use crate::harness::Load;

/// How it was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Method {
    /// The most rounds a case had; each row says its own.
    pub(crate) rounds: usize,
    pub(crate) warm_up_runs: usize,
    pub(crate) quick: bool,
    /// Of the bootstrap and of all random orders.
    pub(crate) seed: u64,
    pub(crate) arguments: Vec<String>,
}

#[derive(Serialize)]
struct Document<'a> {
    machine: &'a Machine,
    method: &'a Method,
    loads: Vec<About>,
    results: &'a [Row],
}

#[derive(Serialize)]
struct About {
    name: &'static str,
    shows: &'static str,
    does_not_show: &'static str,
}

/// Writes one JSON object.
pub(crate) fn write_json(
    mut out: impl Write,
    machine: &Machine,
    method: &Method,
    loads: &[Load],
    rows: &[Row],
) -> std::io::Result<()> {
    let about = |load: &Load| About { name: load.name, shows: load.shows, does_not_show: load.hides };
    let document = Document { machine, method, loads: loads.iter().map(about).collect(), results: rows };
    serde_json::to_writer_pretty(&mut out, &document)?;
    writeln!(out)?;
    out.flush()
}
