//! The infix operators: how they are written, how tightly they bind, what they call.

/// An infix operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `->`
    Arrow,
    /// `&`
    Pair,
    /// `|`
    Either,
    /// `||`
    Or,
    /// `&&`
    And,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `<>`
    Cons,
    /// `++`
    Append,
    /// `<&>`
    Meet,
    /// `.|.`
    BitOr,
    /// `.^.`
    BitXor,
    /// `.&.`
    BitAnd,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

impl Operator {
    /// All, in the order of their binding, loosest first.
    pub const ALL: [Operator; 22] = [
        Operator::Arrow,
        Operator::Pair,
        Operator::Either,
        Operator::Or,
        Operator::And,
        Operator::Less,
        Operator::LessEqual,
        Operator::Greater,
        Operator::GreaterEqual,
        Operator::Cons,
        Operator::Append,
        Operator::Meet,
        Operator::BitOr,
        Operator::BitXor,
        Operator::BitAnd,
        Operator::ShiftLeft,
        Operator::ShiftRight,
        Operator::Add,
        Operator::Subtract,
        Operator::Multiply,
        Operator::Divide,
        Operator::Remainder,
    ];

    /// As it is written, its level (loosest 0), and the function of the operands' type it calls
    /// (empty if it does not take its meaning from a type).
    fn row(self) -> (&'static str, u8, &'static str) {
        match self {
            Operator::Arrow => ("->", 0, ""),
            Operator::Pair => ("&", 1, ""),
            Operator::Either => ("|", 1, ""),
            Operator::Or => ("||", 2, ""),
            Operator::And => ("&&", 3, ""),
            Operator::Less => ("<", 4, "is_lt"),
            Operator::LessEqual => ("<=", 4, "is_le"),
            Operator::Greater => (">", 4, "is_gt"),
            Operator::GreaterEqual => (">=", 4, "is_ge"),
            Operator::Cons => ("<>", 5, ""),
            Operator::Append => ("++", 5, ""),
            Operator::Meet => ("<&>", 5, ""),
            Operator::BitOr => (".|.", 6, "or"),
            Operator::BitXor => (".^.", 7, "xor"),
            Operator::BitAnd => (".&.", 8, "and"),
            Operator::ShiftLeft => ("<<", 9, "shln"),
            Operator::ShiftRight => (">>", 9, "shrn"),
            Operator::Add => ("+", 10, "add"),
            Operator::Subtract => ("-", 10, "sub"),
            Operator::Multiply => ("*", 11, "mul"),
            Operator::Divide => ("/", 11, "div"),
            Operator::Remainder => ("%", 11, "mod"),
        }
    }

    /// As it is written.
    #[must_use]
    pub fn text(self) -> &'static str {
        self.row().0
    }

    /// How tightly it binds; 0 is the loosest.
    #[must_use]
    pub fn level(self) -> u8 {
        self.row().1
    }

    /// The method it calls on the type that encloses it, if it is such an operator.
    #[must_use]
    pub fn method(self) -> Option<&'static str> {
        Some(self.row().2).filter(|name| !name.is_empty())
    }

    /// Whether `a op b op c` is `a op (b op c)`.
    #[must_use]
    pub fn is_right(self) -> bool {
        matches!(self.level(), 0 | 1 | 5)
    }
}
