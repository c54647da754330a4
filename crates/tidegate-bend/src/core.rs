//! The core: what is left of a checked program to run.
//!
//! Types, proofs and erased arguments are gone, names are numbers, functions are closed. A program is
//! a table of functions; the code of all of them lies in one flat table of nodes. A function runs in
//! a frame of `slots` values: its parameters first, then its captures and locals.

use crate::base::Primitive;
use crate::check::DefId;
use crate::diagnostic::Span;
use crate::hash::NumberMap;

/// The number of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeId(pub(crate) u32);

/// The number of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorePatternId(pub(crate) u32);

/// The number of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionId(pub(crate) u32);

/// A place in a frame.
pub type Slot = u32;

/// A constructor: its number among those of its type, and its name for printing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Its place among the constructors of its type.
    pub index: u32,
    /// The number of its constructor in [`Program::constructors`].
    pub constructor: u32,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A value that nothing reads: a type or a proof.
    Erased,
    /// The value of a slot.
    Slot(Slot),
    /// A definition as a function value.
    Global(DefId),
    /// A Nat.
    Nat(u64),
    /// A U32.
    U32(u32),
    /// An F32, as its bits.
    F32(u32),
    /// A Char.
    Char(char),
    /// A String; its number in [`Program::texts`].
    Text(u32),
    /// A constructor and its fields.
    Construct(Tag, Vec<NodeId>),
    /// A Nat that much greater.
    Successor(u64, NodeId),
    /// A definition at exactly its arguments.
    CallGlobal(DefId, Vec<NodeId>),
    /// A function value at some arguments: perhaps fewer or more than it takes.
    Apply(NodeId, Vec<NodeId>),
    /// A closure: a function of the table, and the slots it captures.
    Closure(FunctionId, Vec<Slot>),
    /// Local definitions, then a value.
    Block(Vec<Bind>, NodeId),
    /// The first row whose patterns fit the slots.
    Match(Vec<Slot>, Vec<CoreRow>),
    /// An action: runs actions in order, then the last.
    Sequence(Vec<Action>, NodeId),
}

/// A local definition.
#[derive(Clone, Debug, PartialEq)]
pub enum Bind {
    /// One value.
    Let(Slot, NodeId),
    /// Values that do not depend on each other; they may be computed in parallel.
    Parallel(Vec<Slot>, Vec<NodeId>),
    /// A value, the slot for all of it, and the pattern for its parts.
    Destructure(Slot, CorePatternId, NodeId),
}

/// A step of an action.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Runs an action and binds its answer.
    Run(Slot, NodeId),
    /// Binds a value.
    Let(Slot, NodeId),
}

/// A case.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreRow {
    /// One for each slot.
    pub patterns: Vec<CorePatternId>,
    /// What it answers.
    pub body: NodeId,
}

/// A pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum CorePattern {
    /// Anything.
    Wildcard,
    /// Anything, kept in a slot.
    Bind(Slot),
    /// A constructor and patterns for its fields.
    Construct(Tag, Vec<CorePatternId>),
    /// That Nat.
    Nat(u64),
    /// At least that Nat; a pattern for what is above it.
    AtLeast(u64, CorePatternId),
    /// That U32.
    U32(u32),
    /// That F32, as its bits.
    F32(u32),
    /// That Char.
    Char(char),
    /// That String; its number in [`Program::texts`].
    Text(u32),
}

/// A function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The definition it is, or lies in.
    pub name: String,
    /// How many arguments it takes; they come first in its frame.
    pub arity: u32,
    /// The slots of its frame that the captured values of a closure go to.
    pub captures: Vec<Slot>,
    /// The size of its frame.
    pub slots: u32,
    /// Its code.
    pub body: NodeId,
}

/// What a definition is at run time.
#[derive(Clone, Debug, PartialEq)]
pub enum Definition {
    /// A function of the table.
    Function(FunctionId),
    /// A primitive, and how many arguments it takes.
    Primitive(Primitive, u32),
    /// A body in another language.
    Foreign(String),
    /// A type or a proof.
    Erased,
}

/// A constructor, for printing values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstructorInfo {
    /// Its name.
    pub name: String,
    /// Its place among the constructors of its type.
    pub index: u32,
    /// How many fields of it exist at run time.
    pub fields: u32,
}

/// The numbers of the constructors that literals, primitives and printing know by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// `Unit{}`
    pub unit: u32,
    /// `False{}`
    pub r#false: u32,
    /// `True{}`
    pub r#true: u32,
    /// `LT{}`
    pub less: u32,
    /// `EQ{}`
    pub equal: u32,
    /// `GT{}`
    pub greater: u32,
    /// `Chr{code}`
    pub chr: u32,
    /// `SNil{}`
    pub snil: u32,
    /// `SCon{head, tail}`
    pub scon: u32,
    /// `None{}`
    pub none: u32,
    /// `Some{value}`
    pub some: u32,
    /// `Fail{error}`
    pub fail: u32,
    /// `Done{value}`
    pub done: u32,
    /// `Nil{}`
    pub nil: u32,
    /// `Con{head, tail}`
    pub con: u32,
    /// `Tuple{fst, snd}`
    pub tuple: u32,
    /// `Ready{value}`
    pub ready: u32,
    /// `Wait{rest}`
    pub wait: u32,
    /// `ALeaf{value}`
    pub leaf: u32,
    /// `ANode{xs, ys}`
    pub node: u32,
    /// `MTip{}`
    pub map_tip: u32,
    /// `MNode{key, value, low, high}`
    pub map_node: u32,
}

/// A checked program, ready to run.
#[derive(Debug, Default)]
pub struct Program {
    /// What each definition is, by its number.
    pub definitions: Vec<Definition>,
    /// All functions.
    pub functions: Vec<Function>,
    /// All constructors.
    pub constructors: Vec<ConstructorInfo>,
    /// All string literals.
    pub texts: Vec<String>,
    /// Where a run starts, if the file was checked for a `main`.
    pub main: Option<DefId>,
    /// The constructors that Base's types and this crate share.
    pub known: Known,
    /// Which definitions are Base's, by number.
    pub(crate) is_base: Vec<bool>,
    /// The name of each definition.
    pub(crate) names: Vec<String>,
    /// Where the calls of the program itself (not Base's) stand, by node.
    pub(crate) places: NumberMap<u32, Span>,
    /// Where the program's own definitions stand.
    pub(crate) spans: Vec<Span>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) patterns: Vec<CorePattern>,
}

impl DefId {
    /// Its index in [`Program::definitions`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Program {
    /// The node of that number.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The pattern of that number.
    #[must_use]
    pub fn pattern(&self, id: CorePatternId) -> &CorePattern {
        &self.patterns[id.0 as usize]
    }

    /// The function of that number.
    #[must_use]
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }
}
