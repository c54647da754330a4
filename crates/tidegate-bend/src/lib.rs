//! Reads Bend IO programs and tells what is wrong with them before anything runs.
#![forbid(unsafe_code)]

pub mod diagnostic;
pub mod lexer;
pub mod parser;
pub mod syntax;
