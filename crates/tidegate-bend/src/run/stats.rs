//! What a run has done, for `--stats`.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

/// The counters of a run under way.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) computations: Cell<u64>,
    pub(super) operations: Cell<u64>,
    pub(super) time_outs: Cell<u64>,
    pub(super) timers: Cell<u64>,
}

/// What a run has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Computations that were started, `main` among them.
    pub computations: u64,
    /// Operations on channels: sends, receives, tries, closes.
    pub channel_operations: u64,
    /// Tries that gave up: at once, or when their time was over.
    pub time_outs: u64,
    /// Waits with a timer: sleeps, and tries that had to wait.
    pub timers: u64,
    /// The most computations that waited at one time.
    pub peak_parked: u64,
    /// The most memory that the process had, in bytes. `None`: this system does not tell.
    pub peak_memory: Option<u64>,
    /// How long the run took.
    pub wall_time: Duration,
}

impl Stats {
    fn rows(&self) -> [(&'static str, Option<u64>); 6] {
        [
            ("computations", Some(self.computations)),
            ("channel operations", Some(self.channel_operations)),
            ("time-outs", Some(self.time_outs)),
            ("timers", Some(self.timers)),
            ("peak parked", Some(self.peak_parked)),
            ("peak memory", self.peak_memory),
        ]
    }

    /// One JSON object, with `_` in the names; times in milliseconds, memory in bytes, `null` where it is not known.
    #[must_use]
    pub fn to_json(&self) -> String {
        let fields: Vec<String> = self
            .rows()
            .iter()
            .map(|(name, value)| {
                let name = name.replace([' ', '-'], "_");
                format!("\"{name}\":{}", value.map_or_else(|| String::from("null"), |value| value.to_string()))
            })
            .collect();
        format!("{{{},\"wall_time_ms\":{:.3}}}", fields.join(","), self.wall_time.as_secs_f64() * 1e3)
    }
}

/// The table for people.
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.rows() {
            match value {
                Some(bytes) if name == "peak memory" => {
                    writeln!(f, "{name:18}  {:>11.1} MB", bytes as f64 / 1e6)?;
                }
                Some(value) => writeln!(f, "{name:18}  {value:>11}")?,
                None => writeln!(f, "{name:18}  {:>11}", "unknown")?,
            }
        }
        writeln!(f, "{:18}  {:>11.1} ms", "wall time", self.wall_time.as_secs_f64() * 1e3)
    }
}

/// The most memory that this process had.
pub(super) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_memory_is_told() {
        let stats = Stats { computations: 3, wall_time: Duration::from_micros(1500), ..Stats::default() };
        assert!(stats.to_string().contains("peak memory             unknown\n"), "{stats}");
        assert!(stats.to_json().ends_with("\"peak_memory\":null,\"wall_time_ms\":1.500}"), "{}", stats.to_json());
    }
}
