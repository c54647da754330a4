//! What a machine runs: flat tables of operations, without names or strings.
//!
//! A *unit* is a piece of code with a frame of its own: a function, the steps of an action, or one side of a parallel
//! let. A function has up to two units: as a value it answers what the function answers; *run*, for a function that
//! answers an action, it does what that action would do, in the same frame, without ever making the action.
//!
//! An *operand* says how a value is read: moved out of a slot (its last use), copied, or taken from the constants.

use super::value::Value;
use super::Failure;
use crate::base::Primitive;
use crate::core::Known;

/// How a value is read: two bits of how, the rest of where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand(pub(crate) u32);

/// [`Operand`], read.
pub(crate) enum Source {
    /// The last use of a slot.
    Move(usize),
    Copy(usize),
    Constant(usize),
}

impl Operand {
    const MOVE: u32 = 0;
    const COPY: u32 = 1;
    const CONSTANT: u32 = 2;

    pub(crate) fn take(slot: u32) -> Operand {
        Operand(slot << 2 | Self::MOVE)
    }

    pub(crate) fn copy(slot: u32) -> Operand {
        Operand(slot << 2 | Self::COPY)
    }

    pub(crate) fn constant(number: u32) -> Operand {
        Operand(number << 2 | Self::CONSTANT)
    }

    #[inline(always)]
    pub(crate) fn source(self) -> Source {
        let place = (self.0 >> 2) as usize;
        match self.0 & 3 {
            Self::MOVE => Source::Move(place),
            Self::COPY => Source::Copy(place),
            _ => Source::Constant(place),
        }
    }
}

/// A list of operands or slots in [`Code::lists`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) start: u32,
}

/// A slot that no pattern binds.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// An operation. `to` is the slot of its result; one without `to` ends the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Load {
        to: u32,
        from: Operand,
    },
    Construct {
        to: u32,
        constructor: u32,
        fields: List,
    },
    /// One of those that numbers, strings and arrays are seen as.
    ConstructKnown {
        to: u32,
        constructor: u32,
        fields: List,
    },
    Call {
        to: u32,
        unit: u32,
        arguments: List,
    },
    TailCall {
        unit: u32,
        arguments: List,
    },
    /// The function is the first of the list.
    Apply {
        to: u32,
        list: List,
    },
    TailApply {
        list: List,
    },
    Primitive {
        to: u32,
        primitive: Primitive,
        arguments: List,
    },
    /// A primitive of two numbers.
    Binary {
        to: u32,
        primitive: Primitive,
        left: Operand,
        right: Operand,
    },
    /// A comparison of two U32 or two Nat as a Bool.
    Compare {
        to: u32,
        comparison: Comparison,
        left: Operand,
        right: Operand,
    },
    Closure {
        to: u32,
        function: u32,
        captures: List,
    },
    Sequence {
        to: u32,
        unit: u32,
        captures: List,
    },
    MakeEffect {
        to: u32,
        effect: u32,
        arguments: List,
    },
    Return {
        from: Operand,
    },
    Jump {
        to: u32,
    },
    /// Goes on if the slot has that constructor.
    IfConstructor {
        slot: u32,
        constructor: u32,
        otherwise: u32,
    },
    /// Goes on if the slot has that number.
    IfNat {
        slot: u32,
        least: u32,
        exactly: bool,
        otherwise: u32,
    },
    IfTest {
        slot: u32,
        test: u32,
        otherwise: u32,
    },
    /// Takes the fields of a constructor apart.
    TakeMoved {
        slot: u32,
        fields: List,
    },
    TakeCopied {
        slot: u32,
        fields: List,
    },
    /// A Nat without what a pattern has counted.
    TakeAbove {
        to: u32,
        from: Operand,
        count: u32,
    },
    NoCase,
    /// Begins a parallel let; its sides follow.
    Fork {
        fork: u32,
    },
    Side {
        fork: u32,
        side: u32,
    },
    /// Runs an action.
    Run {
        to: u32,
        action: Operand,
    },
    TailRun {
        action: Operand,
    },
    /// Stops for an effect.
    Effect {
        to: u32,
        effect: u32,
        arguments: List,
    },
    /// What Base does from here on, it does for that place of the program.
    Locate {
        site: u32,
    },
    /// The rest of the arguments of a function that answered a function.
    TailApplyPacked {
        function: u32,
        packed: u32,
    },
}

const _: () = assert!(size_of::<Op>() <= 16);

/// How two numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A test below the surface of a slot, or of a literal.
#[derive(Debug)]
pub(crate) struct Test {
    /// The numbers of the fields down to what is tested.
    pub(crate) path: Vec<Step>,
    pub(crate) wanted: Wanted,
}

/// A step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Field(u32),
    /// What is above a Nat that a pattern has counted.
    Above(u64),
}

/// What a test asks for.
#[derive(Debug)]
pub(crate) enum Wanted {
    Constructor(u32),
    Nat(u64),
    AtLeast(u64),
    U32(u32),
    F32(u32),
    Char(u32),
    Text(Vec<u8>),
}

/// A piece of code with its own frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    pub(crate) entry: u32,
    /// The size of the frame.
    pub(crate) slots: u32,
    /// How many arguments come first in it.
    pub(crate) arity: u32,
    /// Where the captured values go.
    pub(crate) places: Box<[u32]>,
}

/// A function as a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionCode {
    pub(crate) arity: u32,
    pub(crate) unit: u32,
}

/// A primitive as a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrimitiveInfo {
    pub(crate) primitive: Primitive,
    pub(crate) arity: u32,
    /// The effect that it makes.
    pub(crate) effect: Option<u32>,
}

/// An effect that some code may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EffectInfo {
    pub(crate) kind: EffectKind,
    /// Where the program asks for it; [`Site::NONE`]: in Base.
    pub(crate) site: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EffectKind {
    Primitive(Primitive),
    /// Runs the action that is its argument; Base does that for this site.
    At,
}

/// A place of the program, for reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Site {
    /// The definition.
    pub(crate) definition: String,
    /// `file:line`.
    pub(crate) place: String,
}

impl Site {
    pub(crate) const NONE: u32 = u32::MAX;
}

/// A parallel let.
#[derive(Debug)]
pub(crate) struct ForkInfo {
    pub(crate) sides: Vec<SideInfo>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SideInfo {
    pub(crate) to: u32,
    pub(crate) unit: u32,
    pub(crate) arguments: List,
}

/// A program, compiled.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub(crate) ops: Vec<Op>,
    /// Each list: its length, then its words.
    pub(crate) lists: Vec<u32>,
    pub(crate) constants: Vec<Value>,
    pub(crate) units: Vec<Unit>,
    /// By the numbers of the core; those that are never a value have no unit.
    pub(crate) functions: Vec<FunctionCode>,
    pub(crate) tests: Vec<Test>,
    pub(crate) effects: Vec<EffectInfo>,
    pub(crate) forks: Vec<ForkInfo>,
    pub(crate) sites: Vec<Site>,
    pub(crate) known: Known,
    /// The name of each constructor.
    pub(crate) constructors: Vec<String>,
    /// The primitives that the program uses as values.
    pub(crate) primitives: Vec<PrimitiveInfo>,
    /// `IO.bind`: runs its first argument and gives the answer to the second.
    pub(crate) bind: u32,
    /// Runs its argument.
    pub(crate) start: u32,
    /// Applies what a call answers to packed arguments.
    pub(crate) apply_rest: u32,
    /// The operation that returns the first slot: for the answer to an effect that is a value.
    pub(crate) answer: u32,
}

impl Code {
    #[inline(always)]
    pub(crate) fn list(&self, list: List) -> &[u32] {
        let start = list.start as usize;
        let len = self.lists[start] as usize;
        &self.lists[start + 1..start + 1 + len]
    }

    pub(crate) fn add_list(&mut self, words: impl IntoIterator<Item = u32>) -> List {
        let start = self.lists.len();
        self.lists.push(0);
        self.lists.extend(words);
        self.lists[start] = (self.lists.len() - start - 1) as u32;
        List { start: start as u32 }
    }

    /// A primitive that is used as a value.
    pub(crate) fn primitive(&self, primitive: Primitive) -> Result<PrimitiveInfo, Failure> {
        let known = self.primitives.iter().find(|known| known.primitive == primitive);
        known.copied().ok_or_else(|| Failure::internal("a primitive that the program does not use was applied"))
    }

    pub(crate) fn bool(&self, value: bool) -> Value {
        Value::Plain(if value { self.known.r#true } else { self.known.r#false })
    }

    /// A constructor of which the machine has a form of its own.
    pub(crate) fn has_form(&self, constructor: u32) -> bool {
        let known = &self.known;
        [known.chr, known.snil, known.scon, known.leaf, known.node].contains(&constructor)
    }

    /// Such a constructor at its fields.
    pub(crate) fn construct_known(&self, constructor: u32, fields: Vec<Value>) -> Result<Value, Failure> {
        use super::{array, text};
        let known = &self.known;
        let mut fields = fields.into_iter();
        match (fields.next(), fields.next()) {
            (None, None) if constructor == known.snil => Ok(text::text("")),
            (Some(Value::U32(code)), None) if constructor == known.chr => Ok(Value::Char(code)),
            (Some(Value::Char(code)), Some(Value::Text(start, buffer))) if constructor == known.scon => {
                text::push_front(code, (start, buffer)).map(|(start, buffer)| Value::Text(start, buffer))
            }
            (Some(value), None) if constructor == known.leaf => Ok(array::leaf(value)),
            (Some(Value::Array(left)), Some(Value::Array(right))) if constructor == known.node => {
                array::join(left, right)
            }
            _ => Err(Failure::internal("a constructor at values of other types")),
        }
    }
}
