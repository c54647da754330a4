//! What the attributes `main` and `test` expand to.

use core::future::Future;

use crate::{Builder, Runtime};

fn builder(threads: usize, closed_world: bool, virtual_time: bool) -> Builder {
    Runtime::builder().threads(threads).closed_world(closed_world).virtual_time(virtual_time)
}

/// The body of `#[tidegate::main]`. What keeps it from an output is written to the standard error, and the process ends
/// with status 1.
#[doc(hidden)]
pub fn run_main<F: Future>(main: F, threads: usize, closed_world: bool, virtual_time: bool) -> F::Output {
    let ended = match builder(threads, closed_world, virtual_time).build() {
        Ok(rt) => rt.block_on(main).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("tidegate: {error}");
        std::process::exit(1)
    })
}

/// The body of `#[tidegate::test]`.
///
/// # Panics
/// When nothing can wake any task any more, with the report.
#[doc(hidden)]
#[track_caller]
pub fn run_test<F: Future>(test: F, threads: usize, closed_world: bool, virtual_time: bool) -> F::Output {
    match builder(threads, closed_world, virtual_time).build() {
        Ok(rt) => rt.block_on(test).unwrap_or_else(|error| panic!("{error}")),
        Err(error) => panic!("{error}"),
    }
}
