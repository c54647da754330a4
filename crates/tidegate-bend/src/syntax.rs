//! The syntax tree.
//!
//! A file is one [`Tree`]: its nodes lie in two flat tables and refer to each other by number, so
//! that dropping, comparing and cloning a tree never recurse, whatever its depth.

mod operator;
mod print;
mod symbol;

pub use operator::Operator;
pub(crate) use print::{escape, show_f32};
pub(crate) use symbol::keyword;
pub use symbol::{Interner, Symbol};

use crate::diagnostic::Span;

/// The number of a term in its [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExprId(pub(crate) u32);

/// The number of a pattern in its [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PatternId(pub(crate) u32);

/// How a binder may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// `-x`: erased, no use at run time.
    None,
    /// `x`: at most once on each path.
    #[default]
    One,
    /// `+x`: any number of times; needs a Data type.
    Many,
}

impl Quantity {
    /// The mark as it is written.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Quantity::None => "-",
            Quantity::One => "",
            Quantity::Many => "+",
        }
    }
}

/// A name that a term binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binder {
    /// Its mark.
    pub quantity: Quantity,
    /// Its name, `_` if it binds nothing.
    pub name: Symbol,
    /// Where, mark included.
    pub span: Span,
}

/// An argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Written `~t`.
    pub template: bool,
    /// The term.
    pub value: ExprId,
}

/// How `[v : T ..]` says its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillLength {
    /// `*n`: a count, a power of two.
    Count,
    /// `^d`: the logarithm of the count.
    Depth,
}

/// A term, or a body of terms.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// `x`, `List.map`
    Name(Symbol),
    /// `3n`
    Nat(u64),
    /// `42`
    U32(u32),
    /// `1.5`, as its bits
    F32(u32),
    /// `'c'`
    Char(char),
    /// `"s"`
    Text(Symbol),
    /// `Type`
    Type,
    /// `Data`
    Data,
    /// `Kind(q)`
    Kind(ExprId),
    /// `Quant`
    Quant,
    /// `&0`, `&1`, `&2`
    Quantity(u8),
    /// `f(a, b)`, or `f!(a, b)`
    Call {
        /// What is called.
        function: ExprId,
        /// Written with `!`.
        bang: bool,
        /// The arguments.
        arguments: Vec<Argument>,
    },
    /// `K{a, b}`
    Construct(Symbol, Vec<ExprId>),
    /// `T<A, B>`
    Family(ExprId, Vec<ExprId>),
    /// `+T` or `+T<A>`
    Plus(ExprId),
    /// `(body)` or `(body : T)`
    Group(ExprId, Option<ExprId>),
    /// `(a, b, c)`
    Tuple(Vec<ExprId>),
    /// `[a, b]`
    List(Vec<ExprId>),
    /// `[v : T*n]` or `[v : T^d]`
    Fill {
        /// The value of every slot.
        value: ExprId,
        /// Its type.
        of: ExprId,
        /// How `length` counts.
        unit: FillLength,
        /// The length.
        length: ExprId,
    },
    /// `a op b`
    Binary(Operator, ExprId, ExprId),
    /// `x => body`
    Lambda(Binder, ExprId),
    /// `@x: A -> B`
    Forall(Binder, ExprId, ExprId),
    /// `&x: A -> B`
    Exists(Binder, ExprId, ExprId),
    /// `{x : T}`
    Ascribe(ExprId, ExprId),
    /// `{a == b : T}`, or `{a != b : T}` if the flag is set
    Equal(ExprId, ExprId, ExprId, bool),
    /// `{==}`
    Reflexivity,
    /// `%n @ e : P; body`
    Rewrite {
        /// The name of the equation in `motive`.
        name: Option<Binder>,
        /// The equation.
        equation: ExprId,
        /// The goal, with `_` where the equation's right side stands.
        motive: ExprId,
        /// What is proved after the rewrite.
        body: ExprId,
    },
    /// `2n+p`
    Successor(u64, ExprId),
    /// `a[i]`
    Index(ExprId, ExprId),
    /// `a[i] <- v`
    Write(ExprId, ExprId, ExprId),
    /// `?name`
    Hole(Symbol),
    /// `do M<..>: ..`
    Do(DoBlock),
    /// `match ..: case ..`
    Match(Match),
    /// Local statements before a final term
    Block(Vec<Local>, ExprId),
}

impl Expr {
    /// Calls `visit` on every term directly below this one.
    pub fn for_each_child(&self, visit: &mut dyn FnMut(ExprId)) {
        match self {
            Expr::Name(_)
            | Expr::Nat(_)
            | Expr::U32(_)
            | Expr::F32(_)
            | Expr::Char(_)
            | Expr::Text(_)
            | Expr::Type
            | Expr::Data
            | Expr::Quant
            | Expr::Quantity(_)
            | Expr::Reflexivity
            | Expr::Hole(_) => {}
            Expr::Kind(a) | Expr::Plus(a) | Expr::Lambda(_, a) | Expr::Successor(_, a) => visit(*a),
            Expr::Binary(_, a, b)
            | Expr::Forall(_, a, b)
            | Expr::Exists(_, a, b)
            | Expr::Ascribe(a, b)
            | Expr::Index(a, b) => [*a, *b].into_iter().for_each(visit),
            Expr::Equal(a, b, c, _) | Expr::Write(a, b, c) => {
                [*a, *b, *c].into_iter().for_each(visit);
            }
            Expr::Fill { value, of, length, .. } => {
                [*value, *of, *length].into_iter().for_each(visit);
            }
            Expr::Rewrite { equation, motive, body, .. } => {
                [*equation, *motive, *body].into_iter().for_each(visit);
            }
            Expr::Construct(_, xs) | Expr::Tuple(xs) | Expr::List(xs) => {
                xs.iter().copied().for_each(visit);
            }
            Expr::Family(a, xs) => {
                visit(*a);
                xs.iter().copied().for_each(visit);
            }
            Expr::Group(a, ty) => {
                visit(*a);
                ty.iter().copied().for_each(visit);
            }
            Expr::Call { function, arguments, .. } => {
                visit(*function);
                arguments.iter().for_each(|argument| visit(argument.value));
            }
            Expr::Do(block) => block.for_each_child(visit),
            Expr::Match(Match { scrutinees, cases }) => {
                scrutinees.iter().copied().for_each(&mut *visit);
                cases.iter().for_each(|case| visit(case.body));
            }
            Expr::Block(locals, tail) => {
                locals.iter().for_each(|local| local.for_each_child(visit));
                visit(*tail);
            }
        }
    }
}

impl DoBlock {
    fn for_each_child(&self, visit: &mut dyn FnMut(ExprId)) {
        self.arguments.iter().copied().for_each(&mut *visit);
        for statement in &self.statements {
            match statement {
                Statement::Bind(_, a, b) | Statement::Run(a, b) | Statement::Let(_, a, b) => {
                    visit(*a);
                    visit(*b);
                }
                Statement::Step(a) => visit(*a),
            }
        }
        visit(self.result);
    }
}

impl Local {
    fn for_each_child(&self, visit: &mut dyn FnMut(ExprId)) {
        match self {
            Local::Let(_, ty, value) => {
                ty.iter().copied().for_each(&mut *visit);
                visit(*value);
            }
            Local::Destructure(_, value) | Local::Write(_, value) => visit(*value),
            Local::Parallel(_, values) => values.iter().copied().for_each(visit),
        }
    }
}

/// `do M<A, R>:` and its statements.
#[derive(Clone, Debug, PartialEq)]
pub struct DoBlock {
    /// The monad's name.
    pub monad: Symbol,
    /// Where the name stands.
    pub monad_span: Span,
    /// What stands between `<` and `>`.
    pub arguments: Vec<ExprId>,
    /// The statements before the last.
    pub statements: Vec<Statement>,
    /// The block's value.
    pub result: ExprId,
    /// The value is written `return e`.
    pub returns: bool,
}

/// A statement of a `do` block.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `x : A <- m`
    Bind(Binder, ExprId, ExprId),
    /// `A <- m`
    Run(ExprId, ExprId),
    /// `m`, a step of type Unit
    Step(ExprId),
    /// `x : A = e`
    Let(Binder, ExprId, ExprId),
}

/// `match a b:` and its cases.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// What is matched.
    pub scrutinees: Vec<ExprId>,
    /// The rows, in order.
    pub cases: Vec<Case>,
}

/// `case p q: body`
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// One for each scrutinee.
    pub patterns: Vec<PatternId>,
    /// What it answers.
    pub body: ExprId,
    /// The `case` and its patterns.
    pub span: Span,
}

/// A local statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Local {
    /// `x : T = v`
    Let(Binder, Option<ExprId>, ExprId),
    /// `(a, b) = v`
    Destructure(PatternId, ExprId),
    /// `x y = f(..) g(..)`
    Parallel(Vec<Binder>, Vec<ExprId>),
    /// `a[i] <- v`, which binds `a` anew
    Write(Binder, ExprId),
}

/// A pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// `x`, `+x`, `_`
    Bind(Binder),
    /// `K{p, q}`
    Construct(Symbol, Vec<PatternId>),
    /// `(a, b)`
    Tuple(Vec<PatternId>),
    /// `[a, b]`
    List(Vec<PatternId>),
    /// `h <> t`
    Cons(PatternId, PatternId),
    /// `2n+p`
    Successor(u64, PatternId),
    /// `3n`
    Nat(u64),
    /// `42`
    U32(u32),
    /// `1.5`, as its bits
    F32(u32),
    /// `'c'`
    Char(char),
    /// `"s"`
    Text(Symbol),
}

/// How a parameter may be used; [`Quantity`] and the template mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Unmarked, `-` or `+`.
    Plain(Quantity),
    /// `~x`: a closed argument, known when the call is checked.
    Template,
}

impl Mode {
    /// The mark as it is written.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Mode::Plain(quantity) => quantity.mark(),
            Mode::Template => "~",
        }
    }
}

/// A parameter or a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its mark.
    pub mode: Mode,
    /// Its name.
    pub name: Symbol,
    /// Where the name stands.
    pub span: Span,
    /// Its type; a bare name is an erased quantity.
    pub ty: Option<ExprId>,
}

/// A constructor of a `type`.
#[derive(Clone, Debug, PartialEq)]
pub struct Constructor {
    /// Its name.
    pub name: Symbol,
    /// Where the name stands.
    pub span: Span,
    /// Its fields.
    pub fields: Vec<Parameter>,
}

/// `for x: A where P`, or `exs` if the flag is set.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// Written `exs`.
    pub exists: bool,
    /// What it binds.
    pub parameter: Parameter,
    /// The condition after `where`.
    pub condition: Option<ExprId>,
}

/// What stands after a definition's colon.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Bend.
    Term(ExprId),
    /// `import "file"`, once or more.
    Foreign(Vec<Symbol>),
}

/// A declaration.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// `type N<..> is K: ..`
    Type {
        /// The parameters.
        parameters: Vec<Parameter>,
        /// The kind after `is`.
        kind: ExprId,
        /// The constructors.
        constructors: Vec<Constructor>,
    },
    /// `law N: ..`
    Law {
        /// The clauses.
        clauses: Vec<Clause>,
        /// What is claimed.
        claim: ExprId,
    },
    /// `def N(..) -> T: ..`
    Def {
        /// Marked `@unsafe`.
        is_unsafe: bool,
        /// Written `N?`.
        partial: bool,
        /// The parameters.
        parameters: Vec<Parameter>,
        /// The type after `->`; absent if it fills a law.
        result: Option<ExprId>,
        /// The body.
        body: Body,
    },
}

/// A declaration, its name and place.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// The name.
    pub name: Symbol,
    /// Where the name stands.
    pub name_span: Span,
    /// What it declares.
    pub item: Item,
}

/// `import Base`, or `import path as Name`.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// The path and its alias; absent for Base.
    pub module: Option<(String, Symbol)>,
    /// Where the path stands.
    pub span: Span,
}

/// A parsed file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// What it imports.
    pub imports: Vec<Import>,
    /// What it declares, in order.
    pub declarations: Vec<Declaration>,
    exprs: Vec<(Expr, Span)>,
    patterns: Vec<(Pattern, Span)>,
}

impl Tree {
    /// The term of that number.
    #[must_use]
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.0 as usize].0
    }

    /// Where a term stands.
    #[must_use]
    pub fn span(&self, id: ExprId) -> Span {
        self.exprs[id.0 as usize].1
    }

    /// The pattern of that number.
    #[must_use]
    pub fn pattern(&self, id: PatternId) -> &Pattern {
        &self.patterns[id.0 as usize].0
    }

    /// Where a pattern stands.
    #[must_use]
    pub fn pattern_span(&self, id: PatternId) -> Span {
        self.patterns[id.0 as usize].1
    }

    pub(crate) fn add_expr(&mut self, expr: Expr, span: Span) -> ExprId {
        self.exprs.push((expr, span));
        ExprId(self.exprs.len() as u32 - 1)
    }

    pub(crate) fn add_pattern(&mut self, pattern: Pattern, span: Span) -> PatternId {
        self.patterns.push((pattern, span));
        PatternId(self.patterns.len() as u32 - 1)
    }

    /// The tree as Bend text in one fixed layout.
    #[must_use]
    pub fn print(&self, names: &Interner) -> String {
        print::print(self, names)
    }
}
