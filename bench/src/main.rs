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
mod outputs;
mod peers;
mod screen;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;

use cli::Arguments;
use filter::{Filter, Listing};
use harness::allocation::CountingAllocator;
use harness::gate::Gate;
use harness::machine::Machine;
use harness::report::{now, rows, About, Document, Method, Row};
use harness::rounds::{by_case, run_case};
use harness::{statistics, Cell, Load, Scale};
use outputs::Outputs;
use screen::Screen;

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
    match arguments.from.is_some() {
        true => again(arguments),
        false => measure(arguments, loads),
    }
}

fn measure(arguments: Arguments, loads: Vec<Load>) -> ExitCode {
    let setup = Filter::new(&arguments.filter, &loads)
        .map_err(|error| error.to_string())
        .and_then(|filter| Session::new(arguments, filter));
    match setup {
        Ok(session) => ended(session.run(loads), 1),
        Err(error) => ended(Err(error), BAD_INPUT),
    }
}

/// Shows a saved run, or whether another says the same, and writes its documents.
fn again(arguments: Arguments) -> ExitCode {
    let Arguments { from, against, documents, .. } = arguments;
    let open = || -> Result<_, String> {
        let other = against.as_deref().map(Document::read).transpose()?;
        Ok((Document::read(&from.unwrap_or_default())?, other, Outputs::open(documents)?))
    };
    match open() {
        Ok((run, other, outputs)) => {
            let screen = Screen::new(outputs.takes_stdout(), 0);
            let shown = match &other {
                Some(other) => screen.show_agreement(&run, other),
                None => screen.show_all(&run),
            };
            ended(shown.and_then(|()| outputs.write(&run)), 1)
        }
        Err(error) => ended(Err(error), BAD_INPUT),
    }
}

fn ended(result: Result<(), String>, status: u8) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tidegate-bench: {}", error.trim_end());
            ExitCode::from(status)
        }
    }
}

/// One call of the program.
struct Session {
    filter: Filter,
    scale: Scale,
    rounds: Option<usize>,
    outputs: Outputs,
}

impl Session {
    fn new(arguments: Arguments, filter: Filter) -> Result<Session, String> {
        let scale = if arguments.quick { Scale::Quick } else { Scale::Full };
        Ok(Session { filter, scale, rounds: arguments.rounds, outputs: Outputs::open(arguments.documents)? })
    }

    fn run(self, mut loads: Vec<Load>) -> Result<(), String> {
        let begin = Instant::now();
        loads.retain(|load| self.filter.has_load(load.name));
        let mut cases: Vec<(usize, Vec<Cell>)> = Vec::new();
        for (load, about) in loads.iter().enumerate() {
            let mut cells = (about.cells)(self.scale);
            cells.retain(|cell| self.filter.has(about.name, cell.peer));
            cases.extend(by_case(cells).into_iter().map(|case| (load, case)));
        }
        let (machine, method) = (Machine::this(), self.method());
        let mut screen = Screen::new(self.outputs.takes_stdout(), self.total_runs(&loads, &cases));
        screen.show_head(&machine, &method)?;
        let results = self.measure(&loads, &cases, &mut screen)?;
        screen.finish();
        let (date, seconds) = (now(), begin.elapsed().as_secs_f64());
        let loads = loads.iter().map(About::of).collect();
        self.outputs.write(&Document { date, seconds, machine, method, loads, results })
    }

    fn method(&self) -> Method {
        Method {
            rounds: self.most_rounds(),
            warm_up_runs: 1,
            quick: self.scale == Scale::Quick,
            seed: statistics::SEED,
            arguments: std::env::args().skip(1).collect(),
        }
    }

    fn most_rounds(&self) -> usize {
        self.rounds.unwrap_or(self.scale.pick(3, 15))
    }

    fn rounds_of(&self, load: &Load) -> usize {
        let most = match self.rounds {
            Some(_) => load.max_rounds,
            // The loads of many seconds are those that take most of a quick run.
            None => self.scale.pick(load.max_rounds.div_ceil(5), load.max_rounds),
        };
        self.most_rounds().min(most)
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
                screen.show_load(&About::of(about))?;
            }
            let rounds = self.rounds_of(about);
            let result = run_case(about, cells, rounds, &mut gate, |cell| screen.step(about, cell))
                .map_err(|error| error.to_string())?;
            let rows = rows(about.name, &result);
            screen.show_case(&rows)?;
            all.extend(rows);
        }
        Ok(all)
    }
}
