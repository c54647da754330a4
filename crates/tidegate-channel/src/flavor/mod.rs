//! The kinds of channel, one a module.

pub(crate) mod bounded;
pub(crate) mod unbounded;
pub(crate) mod weighted;
