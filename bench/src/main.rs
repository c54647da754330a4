//! Tidegate and its peers, measured side by side.
//!
//! [`harness`] is the method, [`peers`] the libraries behind one trait, [`loads`] what they are made to do. `README.md`
//! says how to run it and how to read its tables.

#![deny(unsafe_code)]

mod cli;
mod filter;
mod harness;
mod hosts;
mod loads;
mod peers;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

use cli::{Arguments, Target};
use filter::{Filter, Listing};
use harness::allocation::CountingAllocator;
use harness::gate::Gate;
use harness::machine::Machine;
use harness::report::{print_case, print_head, print_load, rows, write_csv, write_json, Method, Row};
use harness::rounds::{by_case, run_case};
use harness::{statistics, Cell, Load, Scale};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The exit status of bad input, as clap has it.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let loads = loads::all();
    if arguments.list {
        print!("{}", Listing::of(&loads));
        return ExitCode::SUCCESS;
    }
    let setup = Filter::new(&arguments.filter, &loads)
        .map_err(|error| error.to_string())
        .and_then(|filter| Session::new(arguments, filter));
    match setup {
        Ok(session) => match session.run(loads) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error, 1),
        },
        Err(error) => fail(&error, BAD_INPUT),
    }
}

fn fail(error: &str, status: u8) -> ExitCode {
    eprintln!("tidegate-bench: {}", error.trim_end());
    ExitCode::from(status)
}

/// One call of the program.
struct Session {
    filter: Filter,
    scale: Scale,
    rounds: usize,
    json: Option<Target>,
    csv: Option<Target>,
}

impl Session {
    fn new(arguments: Arguments, filter: Filter) -> Result<Session, String> {
        let scale = if arguments.quick { Scale::Quick } else { Scale::Full };
        let json = arguments.json.map(Target::open).transpose()?;
        let csv = arguments.csv.map(Target::open).transpose()?;
        if [&json, &csv].into_iter().flatten().filter(|target| target.is_stdout()).count() > 1 {
            return Err("--json and --csv cannot both go to standard output".into());
        }
        let rounds = arguments.rounds.unwrap_or(scale.pick(3, 15));
        Ok(Session { filter, scale, rounds, json, csv })
    }

    fn run(self, mut loads: Vec<Load>) -> Result<(), String> {
        loads.retain(|load| self.filter.has_load(load.name));
        let mut cases: Vec<(usize, Vec<Cell>)> = Vec::new();
        for (load, about) in loads.iter().enumerate() {
            let mut cells = (about.cells)(self.scale);
            cells.retain(|cell| self.filter.has(about.name, cell.peer));
            cases.extend(by_case(cells).into_iter().map(|case| (load, case)));
        }
        let machine = Machine::this();
        let mut screen = Screen::new(self.takes_stdout(), self.total_runs(&loads, &cases));
        screen.show(|out| print_head(out, &machine))?;
        let all = self.measure(&loads, &cases, &mut screen)?;
        screen.finish();
        self.write(&machine, &loads, &all)
    }

    /// Does a document go where the tables would?
    fn takes_stdout(&self) -> bool {
        [&self.json, &self.csv].into_iter().flatten().any(Target::is_stdout)
    }

    fn rounds_of(&self, load: &Load) -> usize {
        self.rounds.min(load.max_rounds)
    }

    fn total_runs(&self, loads: &[Load], cases: &[(usize, Vec<Cell>)]) -> usize {
        cases.iter().map(|(load, cells)| cells.len() * (1 + self.rounds_of(&loads[*load]))).sum()
    }

    fn measure(&self, loads: &[Load], cases: &[(usize, Vec<Cell>)], screen: &mut Screen) -> Result<Vec<Row>, String> {
        let mut gate = Gate::new(Duration::from_millis(self.scale.pick(50, 3_000)));
        let mut all = Vec::new();
        let mut last = None;
        for (load, cells) in cases {
            let about = &loads[*load];
            if last.replace(load) != Some(load) {
                screen.show(|out| print_load(out, about))?;
            }
            let rounds = self.rounds_of(about);
            let result = run_case(about, cells, rounds, &mut gate, |cell| screen.step(about, cell))
                .map_err(|error| error.to_string())?;
            let rows = rows(about.name, &result);
            screen.show(|out| print_case(out, &rows))?;
            all.extend(rows);
        }
        Ok(all)
    }

    fn write(self, machine: &Machine, loads: &[Load], rows: &[Row]) -> Result<(), String> {
        let method = Method {
            rounds: self.rounds,
            warm_up_runs: 1,
            quick: self.scale == Scale::Quick,
            seed: statistics::SEED,
            arguments: std::env::args().skip(1).collect(),
        };
        if let Some(json) = self.json {
            json.write(|out| write_json(out, machine, &method, loads, rows))?;
        }
        if let Some(csv) = self.csv {
            csv.write(|out| write_csv(out, rows))?;
        }
        Ok(())
    }
}

/// What a person sees: tables on standard output, a progress bar on a terminal.
struct Screen {
    is_silent: bool,
    bar: ProgressBar,
}

impl Screen {
    fn new(is_silent: bool, runs: usize) -> Screen {
        // Indicatif draws on standard error, and only if that is a terminal.
        let bar = ProgressBar::new(runs as u64);
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} runs, {eta} left: {msg}");
        bar.set_style(style.expect("a sound template"));
        Screen { is_silent, bar }
    }

    fn step(&self, load: &Load, cell: &Cell) {
        self.bar.inc(1);
        self.bar.set_message(format!("{}/{}, {}", load.name, cell.peer, cell.case));
    }

    fn show(&self, print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), String> {
        if self.is_silent {
            return Ok(());
        }
        let print = || {
            // Leaves the colors out unless standard output is a terminal that shows them.
            let mut out = anstream::stdout().lock();
            print(&mut out).and_then(|()| out.flush())
        };
        self.bar.suspend(print).map_err(|error| format!("standard output: {error}"))
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
