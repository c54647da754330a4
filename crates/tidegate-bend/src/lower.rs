//! Checked terms to core: variables become slots, lambdas become closed functions.

use crate::check::{Book, Code, ConstructorId, DefId, Findings, VarId};
use crate::core::{
    Action, Bind, ConstructorInfo, CorePattern, CorePatternId, CoreRow, Definition, Function, FunctionId, Known, Node,
    NodeId, Program, Slot, Tag,
};
use crate::elaborated::{Binding, CheckedPattern, CheckedPatternId, Elaborated, Row, Step, Term, TermId};
use crate::hash::NumberMap;
use crate::load::ModuleId;
use crate::syntax::Symbol;

/// The frame of the function that is being lowered.
#[derive(Default)]
struct Frame {
    slots: NumberMap<VarId, Slot>,
    size: Slot,
    /// The variables of outer functions, in the order of their slots.
    captures: Vec<VarId>,
}

impl Frame {
    fn add(&mut self, variable: VarId) -> Slot {
        let slot = self.size;
        self.size += 1;
        self.slots.insert(variable, slot);
        slot
    }
}

struct Lowering<'a> {
    book: &'a Book,
    elaborated: &'a Elaborated,
    /// How many arguments each definition takes at run time.
    arities: Vec<Option<u32>>,
    program: Program,
    texts: NumberMap<Symbol, u32>,
    name: String,
    /// Code of Base is being lowered: where its calls stand says nothing to a program's author.
    in_base: bool,
    frame: Frame,
}

/// The core of a program without errors.
pub(crate) fn lower(book: &Book, findings: &Findings) -> Program {
    let arities = (0..book.defs.len())
        .map(|at| match (&findings.code[at], book.defs[at].code) {
            (Some(code), _) => Some(code.parameters.len() as u32),
            (None, Code::Primitive(_)) => Some(primitive_arity(book, at)),
            _ => None,
        })
        .collect();
    let mut lowering = Lowering {
        book,
        elaborated: &findings.elaborated,
        arities,
        program: Program { main: findings.main, ..Program::default() },
        texts: NumberMap::default(),
        name: String::new(),
        in_base: false,
        frame: Frame::default(),
    };
    lowering.constructors();
    lowering.definitions();
    for (at, code) in findings.code.iter().enumerate() {
        let definition =
            lowering.definition(DefId(at as u32), code.as_ref().map(|code| (&code.parameters[..], code.body)));
        lowering.program.definitions.push(definition);
    }
    lowering.program
}

/// The parameters of a primitive that are not erased.
fn primitive_arity(book: &Book, at: usize) -> u32 {
    use crate::syntax::{Item, Mode, Quantity};
    let def = &book.defs[at];
    match &book.modules[def.module.0 as usize].tree.declarations[def.typed_by].item {
        Item::Def { parameters, .. } => parameters
            .iter()
            .filter(|parameter| parameter.mode != Mode::Plain(Quantity::None) && parameter.mode != Mode::Template)
            .count() as u32,
        _ => 0,
    }
}

/// What Base's constructors are numbered.
fn known(book: &Book) -> Known {
    let number = |name: &str| {
        let is_it = |constructor: &crate::check::Constructor| {
            constructor.module == ModuleId::BASE && book.names.text(constructor.name) == name
        };
        book.constructors.iter().position(is_it).map_or(u32::MAX, |at| at as u32)
    };
    Known {
        unit: number("Unit"),
        r#false: number("False"),
        r#true: number("True"),
        less: number("LT"),
        equal: number("EQ"),
        greater: number("GT"),
        chr: number("Chr"),
        snil: number("SNil"),
        scon: number("SCon"),
        none: number("None"),
        some: number("Some"),
        fail: number("Fail"),
        done: number("Done"),
        nil: number("Nil"),
        con: number("Con"),
        tuple: number("Tuple"),
        ready: number("Ready"),
        wait: number("Wait"),
        leaf: number("ALeaf"),
        node: number("ANode"),
        map_tip: number("MTip"),
        map_node: number("MNode"),
    }
}

impl Lowering<'_> {
    fn constructors(&mut self) {
        for constructor in &self.book.constructors {
            self.program.constructors.push(ConstructorInfo {
                name: self.book.names.text(constructor.name).to_owned(),
                index: constructor.tag,
                fields: constructor.live_fields as u32,
            });
        }
        self.program.known = known(self.book);
    }

    fn definitions(&mut self) {
        for def in &self.book.defs {
            self.program.is_base.push(def.module == ModuleId::BASE);
            self.program.names.push(self.book.names.text(def.name).to_owned());
            self.program.spans.push(def.span);
        }
    }

    fn definition(&mut self, id: DefId, code: Option<(&[VarId], TermId)>) -> Definition {
        let def = self.book.def(id);
        let name = self.book.names.text(def.name).to_owned();
        if def.is_type {
            return Definition::Erased;
        }
        match (def.code, code) {
            (_, Some((parameters, body))) => {
                self.in_base = def.module == ModuleId::BASE;
                self.name = name;
                self.frame = Frame::default();
                for &parameter in parameters {
                    self.frame.add(parameter);
                }
                let arity = parameters.len() as u32;
                let body = self.term(body);
                let slots = self.frame.size;
                Definition::Function(self.function(Vec::new(), arity, slots, body))
            }
            (Code::Primitive(primitive), None) => {
                Definition::Primitive(primitive, self.arities[id.index()].unwrap_or(0))
            }
            (Code::Foreign, None) => Definition::Foreign(name),
            _ => Definition::Erased,
        }
    }

    fn function(&mut self, captures: Vec<Slot>, arity: u32, slots: u32, body: NodeId) -> FunctionId {
        self.program.functions.push(Function { name: self.name.clone(), captures, arity, slots, body });
        FunctionId(self.program.functions.len() as u32 - 1)
    }

    fn add(&mut self, node: Node) -> NodeId {
        self.program.nodes.push(node);
        NodeId(self.program.nodes.len() as u32 - 1)
    }

    fn text(&mut self, text: Symbol) -> u32 {
        if let Some(&known) = self.texts.get(&text) {
            return known;
        }
        let number = self.program.texts.len() as u32;
        self.program.texts.push(self.book.names.text(text).to_owned());
        self.texts.insert(text, number);
        number
    }

    fn tag(&self, id: ConstructorId) -> Tag {
        Tag { index: self.book.constructor(id).tag, constructor: id.0 }
    }

    /// The slot of a variable; one of an outer function is captured.
    fn slot(&mut self, variable: VarId) -> Slot {
        if let Some(&slot) = self.frame.slots.get(&variable) {
            return slot;
        }
        self.frame.captures.push(variable);
        self.frame.add(variable)
    }

    fn term(&mut self, id: TermId) -> NodeId {
        let node = match self.elaborated.term(id).clone() {
            Term::Erased => Node::Erased,
            Term::Var(variable) => Node::Slot(self.slot(variable)),
            Term::Global(def) => self.global(def),
            Term::Nat(value) => Node::Nat(value),
            Term::U32(value) => Node::U32(value),
            Term::F32(bits) => Node::F32(bits),
            Term::Char(value) => Node::Char(value),
            Term::Text(text) => Node::Text(self.text(text)),
            Term::Construct(constructor, fields) => {
                let fields = self.terms(&fields);
                Node::Construct(self.tag(constructor), fields)
            }
            Term::Successor(count, rest) => Node::Successor(count, self.term(rest)),
            Term::Call(function, arguments) => self.call(function, &arguments),
            Term::Lambda(..) => return self.lambda(id),
            Term::Block(bindings, tail) => {
                let bindings = bindings.iter().map(|binding| self.binding(binding)).collect();
                Node::Block(bindings, self.term(tail))
            }
            Term::Match(variables, rows) => {
                let slots = variables.iter().map(|&variable| self.slot(variable)).collect();
                let rows = rows.iter().map(|row| self.row(row)).collect();
                Node::Match(slots, rows)
            }
            Term::Sequence(steps, result) => {
                let steps = steps.iter().map(|&step| self.step(step)).collect();
                Node::Sequence(steps, self.term(result))
            }
        };
        let lowered = self.add(node);
        if let (Some(place), false) = (self.elaborated.place(id), self.in_base) {
            self.program.places.insert(lowered.0, place);
        }
        lowered
    }

    fn terms(&mut self, ids: &[TermId]) -> Vec<NodeId> {
        ids.iter().map(|&id| self.term(id)).collect()
    }

    /// A definition without parameters is its value.
    fn global(&self, def: DefId) -> Node {
        match self.arities[def.index()] {
            Some(0) => Node::CallGlobal(def, Vec::new()),
            _ => Node::Global(def),
        }
    }

    fn call(&mut self, function: TermId, arguments: &[TermId]) -> Node {
        let arguments = self.terms(arguments);
        if let Term::Global(def) = *self.elaborated.term(function) {
            if self.arities[def.index()] == Some(arguments.len() as u32) {
                return Node::CallGlobal(def, arguments);
            }
        }
        let function = self.term(function);
        Node::Apply(function, arguments)
    }

    fn binding(&mut self, binding: &Binding) -> Bind {
        match binding {
            Binding::Let(variable, value) => {
                let value = self.term(*value);
                Bind::Let(self.frame.add(*variable), value)
            }
            Binding::Parallel(variables, values) => {
                let values = self.terms(values);
                Bind::Parallel(variables.iter().map(|&variable| self.frame.add(variable)).collect(), values)
            }
            Binding::Destructure(variable, pattern, value) => {
                let value = self.term(*value);
                let slot = match self.frame.slots.get(variable) {
                    Some(&slot) => slot,
                    None => self.frame.add(*variable),
                };
                Bind::Destructure(slot, self.pattern(*pattern), value)
            }
        }
    }

    fn step(&mut self, step: Step) -> Action {
        match step {
            Step::Run(variable, action) => {
                let action = self.term(action);
                Action::Run(self.frame.add(variable), action)
            }
            Step::Let(variable, value) => {
                let value = self.term(value);
                Action::Let(self.frame.add(variable), value)
            }
        }
    }

    fn row(&mut self, row: &Row) -> CoreRow {
        CoreRow {
            patterns: row.patterns.iter().map(|&pattern| self.pattern(pattern)).collect(),
            body: self.term(row.body),
        }
    }

    fn pattern(&mut self, id: CheckedPatternId) -> CorePatternId {
        let pattern = match self.elaborated.pattern(id).clone() {
            CheckedPattern::Wildcard => CorePattern::Wildcard,
            CheckedPattern::Bind(variable) => CorePattern::Bind(self.frame.add(variable)),
            CheckedPattern::Construct(constructor, fields) => {
                let fields = fields.iter().map(|&field| self.pattern(field)).collect();
                CorePattern::Construct(self.tag(constructor), fields)
            }
            CheckedPattern::Nat(value) => CorePattern::Nat(value),
            CheckedPattern::AtLeast(count, rest) => CorePattern::AtLeast(count, self.pattern(rest)),
            CheckedPattern::U32(value) => CorePattern::U32(value),
            CheckedPattern::F32(bits) => CorePattern::F32(bits),
            CheckedPattern::Char(value) => CorePattern::Char(value),
            CheckedPattern::Text(text) => CorePattern::Text(self.text(text)),
        };
        self.program.patterns.push(pattern);
        CorePatternId(self.program.patterns.len() as u32 - 1)
    }

    /// Lambdas in a row are one function of as many parameters.
    fn lambda(&mut self, id: TermId) -> NodeId {
        let outer = std::mem::take(&mut self.frame);
        let mut parameters = Vec::new();
        let mut body = id;
        while let Term::Lambda(parameter, inner) = *self.elaborated.term(body) {
            parameters.push(parameter);
            body = inner;
        }
        for &parameter in &parameters {
            self.frame.add(parameter);
        }
        let body = self.term(body);
        let inner = std::mem::replace(&mut self.frame, outer);
        self.close_function(inner, parameters.len() as u32, body)
    }

    /// A closure over what the function captures from this frame.
    fn close_function(&mut self, inner: Frame, arity: u32, body: NodeId) -> NodeId {
        let places = inner.captures.iter().map(|variable| inner.slots[variable]).collect();
        let captured = inner.captures.iter().map(|&variable| self.slot(variable)).collect();
        let function = self.function(places, arity, inner.size, body);
        self.add(Node::Closure(function, captured))
    }
}
