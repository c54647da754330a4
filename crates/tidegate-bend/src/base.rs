//! Base: the library that every program may import.
//!
//! It is written in Bend where Bend can say it. A definition whose body is `import "runtime"` is a
//! [`Primitive`]; a law without a definition is a type whose values only primitives make.

mod primitive;

pub use primitive::Primitive;

/// The text of Base, in parts that are read as one file.
pub(crate) const SOURCE: [&str; 8] = [
    include_str!("base/types.bend"),
    include_str!("base/bool.bend"),
    include_str!("base/number.bend"),
    include_str!("base/option.bend"),
    include_str!("base/list.bend"),
    include_str!("base/text.bend"),
    include_str!("base/container.bend"),
    include_str!("base/io.bend"),
];
