//! The executors on which the peers run: tokio's, the same for all.

use tokio::runtime::{Builder, Runtime};

use crate::harness::Failure;

pub(crate) fn current_thread() -> Result<Runtime, Failure> {
    built(Builder::new_current_thread().enable_time())
}

pub(crate) fn two_workers() -> Result<Runtime, Failure> {
    built(Builder::new_multi_thread().worker_threads(2).enable_time())
}

/// More workers than this machine has cores, on most machines.
pub(crate) fn sixteen_workers() -> Result<Runtime, Failure> {
    built(Builder::new_multi_thread().worker_threads(16).enable_time())
}

fn built(builder: &mut Builder) -> Result<Runtime, Failure> {
    builder.build().map_err(|error| Failure::new(format!("no runtime: {error}")))
}
