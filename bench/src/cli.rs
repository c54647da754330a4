//! The command line.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Parser;

/// Tidegate and its peers, measured side by side.
#[derive(Debug, Parser)]
#[command(name = "tidegate-bench", version)]
pub(crate) struct Arguments {
    /// Only these: LOAD or LOAD/PEER (see --list)
    #[arg(long, value_name = "LOAD|LOAD/PEER", num_args = 1..)]
    pub(crate) filter: Vec<String>,

    /// Rounds of each case; loads of many seconds have fewer
    #[arg(long, value_name = "N", value_parser = parse_rounds)]
    pub(crate) rounds: Option<usize>,

    /// Smaller loads, fewer rounds: all of them in about two minutes
    #[arg(long)]
    pub(crate) quick: bool,

    /// Write everything as JSON to a file, or to standard output in place of the tables
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,

    /// Write the summary as CSV to a file, or to standard output in place of the tables
    #[arg(long, value_name = "FILE|-")]
    pub(crate) csv: Option<PathBuf>,

    /// List the loads and their peers, and run nothing
    #[arg(long)]
    pub(crate) list: bool,
}

fn parse_rounds(rounds: &str) -> Result<usize, String> {
    match rounds.parse() {
        Ok(rounds @ 1..=10_000) => Ok(rounds),
        _ => Err("say a number from 1 to 10000".into()),
    }
}

/// Where a document goes.
pub(crate) enum Target {
    Stdout,
    File(PathBuf, File),
}

impl Target {
    /// Opens the file before anything is measured, so that a wrong path costs no time.
    pub(crate) fn open(path: PathBuf) -> Result<Target, String> {
        if path.as_os_str() == "-" {
            return Ok(Target::Stdout);
        }
        match File::create(&path) {
            Ok(file) => Ok(Target::File(path, file)),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self, Target::Stdout)
    }

    /// Hands `write` the place to write to; an error comes back with the place's name.
    pub(crate) fn write<E: From<io::Error> + ToString>(
        self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), String> {
        match self {
            Target::Stdout => write(&mut io::stdout().lock()).map_err(|error| error.to_string()),
            Target::File(path, file) => write(&mut io::BufWriter::new(file))
                .map_err(|error| format!("{}: {}", path.display(), error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn rounds_are_a_number_from_one() {
        assert_eq!(parse_rounds("7"), Ok(7));
        for wrong in ["0", "-1", "many", "", "10001"] {
            assert!(parse_rounds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn filters_come_in_one_option_or_many() {
        let arguments = Arguments::parse_from(["tidegate-bench", "--filter", "a", "b/c", "--filter", "d"]);
        assert_eq!(arguments.filter, ["a", "b/c", "d"]);
    }
}
