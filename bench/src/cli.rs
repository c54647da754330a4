//! The command line.

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

    #[command(flatten)]
    pub(crate) documents: Documents,

    /// Measure nothing: show what a run has written with --json, and write other documents from it
    #[arg(long, value_name = "RUN.json", conflicts_with_all = ["filter", "rounds", "quick", "list"])]
    pub(crate) from: Option<PathBuf>,

    /// With --from: show whether that other run says the same, cell by cell
    #[arg(long, value_name = "OTHER.json", requires = "from")]
    pub(crate) against: Option<PathBuf>,

    /// List the loads and their peers, and run nothing
    #[arg(long)]
    pub(crate) list: bool,
}

/// What to write besides the tables.
#[derive(Debug, clap::Args)]
pub(crate) struct Documents {
    /// Write everything as JSON to a file, or to standard output in place of the tables
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,

    /// Write the summary as CSV to a file, or to standard output in place of the tables
    #[arg(long, value_name = "FILE|-")]
    pub(crate) csv: Option<PathBuf>,

    /// Write a report with pictures to a file: one HTML page that needs nothing else
    #[arg(long, value_name = "FILE|-")]
    pub(crate) html: Option<PathBuf>,

    /// Write the tables as Markdown into a file; what it has around them stays
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}

fn parse_rounds(rounds: &str) -> Result<usize, String> {
    match rounds.parse() {
        Ok(rounds @ 1..=10_000) => Ok(rounds),
        _ => Err("say a number from 1 to 10000".into()),
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

    #[test]
    fn a_saved_run_is_not_measured_again() {
        let parse =
            |words: &[&str]| Arguments::try_parse_from([&["tidegate-bench", "--from", "run.json"], words].concat());
        assert!(parse(&["--html", "run.html", "--markdown", "run.md"]).is_ok());
        for words in [&["--quick"][..], &["--rounds", "3"], &["--filter", "ready"], &["--list"]] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn only_a_saved_run_is_held_against_another() {
        let parse = |words: &[&str]| Arguments::try_parse_from([&["tidegate-bench"], words].concat());
        assert!(parse(&["--from", "run.json", "--against", "other.json"]).is_ok());
        assert!(parse(&["--against", "other.json"]).is_err());
    }
}
