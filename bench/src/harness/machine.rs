//! What the figures were measured on and with.

use serde::{Deserialize, Serialize};

use crate::peers;

/// The lock file this program was built with.
const LOCK: &str = include_str!("../../../Cargo.lock");

/// The line of this program in it.
const OWN: &str = concat!("name = \"", env!("CARGO_PKG_NAME"), "\"");

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) os: String,
    pub(crate) rustc: String,
    pub(crate) flags: String,
    pub(crate) crates: Vec<Version>,
}

#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) version: String,
}

impl Machine {
    pub(crate) fn this() -> Machine {
        let version = |name: &str| Version {
            name: name.to_owned(),
            version: locked_version(LOCK, name).unwrap_or("unknown").to_owned(),
        };
        Machine {
            cpu: cpu_model(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            os: operating_system(),
            rustc: env!("BENCH_RUSTC").to_owned(),
            flags: env!("BENCH_FLAGS").to_owned(),
            crates: peers::crates().into_iter().map(version).collect(),
        }
    }
}

fn cpu_model() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    line.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, model)| model.trim().to_owned())
}

fn operating_system() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} {}", std::env::consts::OS, release.trim()).trim().to_owned()
}

/// The version of `name` in a lock file; where there are several, the one that this program depends on.
fn locked_version<'l>(lock: &'l str, name: &str) -> Option<&'l str> {
    let own = lock.lines().skip_while(|line| *line != OWN).take_while(|line| !line.is_empty());
    let prefix = format!(" \"{name} ");
    if let Some(version) = own.filter_map(|line| line.strip_prefix(&prefix)?.strip_suffix("\",")).next() {
        return Some(version);
    }
    let name = format!("name = \"{name}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name).skip(1);
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_lock_file() {
        let lock = "[[package]]\nname = \"kanal\"\nversion = \"0.1.1\"\n\n[[package]]\nname = \"tokio\"\nversion = \"1.54.1\"\n";
        assert_eq!(locked_version(lock, "tokio"), Some("1.54.1"));
        assert_eq!(locked_version(lock, "toki"), None);
    }

    #[test]
    fn of_two_versions_ours_counts() {
        let package = |name: &str, rest: &str| format!("[[package]]\nname = \"{name}\"\n{rest}\n\n");
        let lock = package("flume", "version = \"0.10.14\"")
            + &package("flume", "version = \"0.12.0\"")
            + &package("glommio", "dependencies = [\n \"flume 0.10.14\",\n]")
            + &package("tidegate-bench", "dependencies = [\n \"csv\",\n \"flume 0.12.0\",\n]");
        assert_eq!(locked_version(&lock, "flume"), Some("0.12.0"));
    }

    #[test]
    fn every_measured_crate_has_a_version() {
        for crate_ in Machine::this().crates {
            assert_ne!(crate_.version, "unknown", "{}", crate_.name);
        }
    }
}
