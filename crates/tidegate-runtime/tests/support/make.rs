//! The runtime that a test is about: a local one; or, where its file is a module of `pool_suite`, a pool.
#![allow(dead_code)]

use tidegate_runtime::{Builder, Runtime};

/// How many threads a pool has here, with the one in `block_on`.
pub(crate) const THREADS: usize = 3;

pub(crate) fn is_pool() -> bool {
    module_path!().starts_with("pool_suite")
}

pub(crate) fn builder() -> Builder {
    Runtime::builder().threads(if is_pool() { THREADS } else { 1 })
}

pub(crate) fn runtime() -> Runtime {
    builder().build().unwrap()
}
