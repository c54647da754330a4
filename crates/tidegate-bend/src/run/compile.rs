//! The core to code: each unit that `main` can reach, once.
//!
//! A term is compiled for one of two purposes ([`Mode`]) and to one of two ends: its result goes to a slot, or ends the
//! frame. Matches are in `compile/cases.rs`.

mod cases;

use std::collections::HashMap;

use super::code::{
    Code, Comparison, EffectInfo, EffectKind, ForkInfo, FunctionCode, List, Op, Operand, PrimitiveInfo, SideInfo, Site,
    Unit,
};
use super::flow::{free, is_direct, Flow, Read};
use super::text;
use super::value::Value;
use crate::base::Primitive;
use crate::check::DefId;
use crate::core::{Action, Bind, Definition, FunctionId, Node, NodeId, Program, Slot};
use crate::diagnostic::Sources;
use crate::hash::NumberMap;

/// What a term is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Mode {
    /// To compute its value.
    Value,
    /// To do what the action that it is would do, and compute that one's answer.
    Run,
}

/// What Base does by spawning: reports name the place where the program calls these.
const SPAWNERS: [&str; 2] = ["IO.fork", "IO.within"];

/// What Base's comparisons compute; spelled out there by way of `Cmp`.
const COMPARISONS: [(&str, Comparison); 12] = [
    ("U32.is_eq", Comparison::Equal),
    ("U32.is_ne", Comparison::Unequal),
    ("U32.is_lt", Comparison::Less),
    ("U32.is_le", Comparison::LessOrEqual),
    ("U32.is_gt", Comparison::Greater),
    ("U32.is_ge", Comparison::GreaterOrEqual),
    ("Nat.is_eq", Comparison::Equal),
    ("Nat.is_ne", Comparison::Unequal),
    ("Nat.is_lt", Comparison::Less),
    ("Nat.is_le", Comparison::LessOrEqual),
    ("Nat.is_gt", Comparison::Greater),
    ("Nat.is_ge", Comparison::GreaterOrEqual),
];

/// Where the code of a unit comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Origin {
    Function(u32, Mode),
    /// A part of a function that has a frame of its own.
    Part(u32, u32, Mode),
}

/// Compiles what `main` needs. The error is the line that says what of it cannot run.
pub(super) fn compile(program: &Program, sources: &Sources, main: DefId) -> Result<(Code, u32), String> {
    let mut compiler = Compiler {
        program,
        sources,
        code: Code::default(),
        units: HashMap::new(),
        queue: Vec::new(),
        folded: Vec::new(),
        constants: NumberMap::default(),
        comparisons: NumberMap::default(),
        refused: None,
        function: FunctionId(0),
        flow: Flow::default(),
        next: 0,
        size: 0,
    };
    compiler.prepare();
    let main = match program.definitions[main.index()] {
        Definition::Function(function) => compiler.unit(Origin::Function(function.0, Mode::Value)),
        _ => return Err(String::from("main has no code that could run")),
    };
    while let Some((unit, origin)) = compiler.queue.pop() {
        compiler.compile_unit(unit, origin);
    }
    match compiler.refused {
        Some(message) => Err(message),
        None => Ok((compiler.code, main)),
    }
}

struct Compiler<'p> {
    program: &'p Program,
    sources: &'p Sources,
    code: Code,
    units: HashMap<Origin, u32>,
    queue: Vec<(u32, Origin)>,
    /// The nodes that are constants.
    folded: Vec<Option<Value>>,
    /// Those of them that the code has.
    constants: NumberMap<u32, u32>,
    comparisons: NumberMap<u32, Comparison>,
    /// The first thing that cannot run.
    refused: Option<String>,
    /// Of the unit at hand.
    function: FunctionId,
    flow: Flow,
    /// The next free slot for an intermediate result, and how many slots there are.
    next: Slot,
    size: Slot,
}

impl<'p> Compiler<'p> {
    fn prepare(&mut self) {
        self.code.known = self.program.known;
        self.code.constructors = self.program.constructors.iter().map(|info| info.name.clone()).collect();
        for function in &self.program.functions {
            self.code.functions.push(FunctionCode { arity: function.arity, unit: u32::MAX });
        }
        for (at, name) in self.program.names.iter().enumerate() {
            let known = COMPARISONS.iter().find(|(known, _)| self.program.is_base[at] && known == name);
            if let Some(&(_, comparison)) = known {
                self.comparisons.insert(at as u32, comparison);
            }
        }
        for at in 0..self.program.nodes.len() {
            let folded = self.fold(at as u32);
            self.folded.push(folded);
        }
        self.builtin_units();
    }

    /// The units that no program spells out.
    fn builtin_units(&mut self) {
        let take = Operand::take;
        let start = self.code.ops.len() as u32;
        self.code.ops.push(Op::TailRun { action: take(0) });
        let bind = self.code.ops.len() as u32;
        let list = self.code.add_list([take(1).0, take(2).0]);
        self.code.ops.push(Op::Run { to: 2, action: take(0) });
        self.code.ops.push(Op::Apply { to: 3, list });
        self.code.ops.push(Op::TailRun { action: take(3) });
        let rest = self.code.ops.len() as u32;
        self.code.ops.push(Op::TailApplyPacked { function: 0, packed: 1 });
        self.code.answer = self.code.ops.len() as u32;
        self.code.ops.push(Op::Return { from: take(0) });
        let mut add = |entry, slots, arity| {
            self.code.units.push(Unit { entry, slots, arity, places: Box::default() });
            self.code.units.len() as u32 - 1
        };
        (self.code.start, self.code.bind, self.code.apply_rest) = (add(start, 1, 1), add(bind, 4, 2), add(rest, 2, 2));
    }

    /// The value of a constant node; its children come before it.
    fn fold(&self, at: u32) -> Option<Value> {
        let folded = |id: &NodeId| self.folded[id.0 as usize].clone();
        Some(match self.program.node(NodeId(at)) {
            Node::Erased => Value::Empty,
            Node::Nat(value) => Value::Nat(*value),
            Node::U32(value) => Value::U32(*value),
            Node::F32(bits) => Value::F32(*bits),
            Node::Char(value) => Value::Char(u32::from(*value)),
            Node::Text(number) => text::text(&self.program.texts[*number as usize]),
            Node::Construct(tag, fields) if !self.code.has_form(tag.constructor) => {
                let values: Vec<Value> = fields.iter().map(folded).collect::<Option<_>>()?;
                Value::record(tag.constructor, values.into_iter())
            }
            _ => return None,
        })
    }

    /// The number of a unit, which is compiled later if it is new.
    fn unit(&mut self, origin: Origin) -> u32 {
        if let Some(&unit) = self.units.get(&origin) {
            return unit;
        }
        let (function, places, is_whole) = match origin {
            Origin::Function(function, _) => {
                let captures = self.program.function(FunctionId(function)).captures.clone();
                (function, captures, true)
            }
            Origin::Part(function, node, _) => (function, free(self.program, NodeId(node)), false),
        };
        let function = self.program.function(FunctionId(function));
        let arity = if is_whole { function.arity } else { 0 };
        self.code.units.push(Unit { entry: 0, slots: function.slots, arity, places: places.into() });
        let unit = self.code.units.len() as u32 - 1;
        self.units.insert(origin, unit);
        self.queue.push((unit, origin));
        unit
    }

    fn compile_unit(&mut self, unit: u32, origin: Origin) {
        let (function, root, mode) = match origin {
            Origin::Function(function, mode) => (function, self.program.function(FunctionId(function)).body, mode),
            Origin::Part(function, node, mode) => (function, NodeId(node), mode),
        };
        self.function = FunctionId(function);
        self.next = self.program.function(self.function).slots;
        self.size = self.next;
        self.flow = Flow::of(self.program, root, mode);
        self.code.units[unit as usize].entry = self.code.ops.len() as u32;
        self.term(root, mode, None);
        self.code.units[unit as usize].slots = self.size;
    }

    fn emit(&mut self, op: Op) -> usize {
        self.code.ops.push(op);
        self.code.ops.len() - 1
    }

    fn temporary(&mut self) -> Slot {
        self.next += 1;
        self.size = self.size.max(self.next);
        self.next - 1
    }

    /// Compiles a term. Without `to` its result ends the frame.
    fn term(&mut self, id: NodeId, mode: Mode, to: Option<Slot>) {
        let program = self.program;
        let mark = self.next;
        if self.folded[id.0 as usize].is_some() {
            let constant = self.constant(id);
            self.finish(constant, mode, to);
            return;
        }
        match program.node(id) {
            Node::Slot(_) | Node::Global(_) => {
                let operand = self.operand(id);
                self.finish(operand, mode, to);
            }
            Node::Construct(tag, fields) => {
                let (constructor, fields) = (tag.constructor, self.operands(fields));
                self.store(mode, to, |compiler, to| match compiler.code.has_form(constructor) {
                    true => Op::ConstructKnown { to, constructor, fields },
                    false => Op::Construct { to, constructor, fields },
                });
            }
            Node::Successor(count, rest) => {
                let right = self.operand(*rest);
                let left = self.number(*count);
                self.store(mode, to, |_, to| Op::Binary { to, primitive: Primitive::NatAdd, left, right });
            }
            Node::CallGlobal(def, arguments) => self.call(id, *def, arguments, mode, to),
            Node::Apply(function, arguments) => self.apply(id, *function, arguments, mode, to),
            Node::Closure(function, _) => {
                self.function_value(*function);
                let (function, captures) = (function.0, self.captures(id));
                self.store(mode, to, |_, to| Op::Closure { to, function, captures });
            }
            Node::Block(binds, tail) => {
                binds.iter().for_each(|bind| self.bind(bind));
                self.term(*tail, mode, to);
            }
            Node::Match(slots, rows) => self.cases(id, slots, rows, mode, to),
            Node::Sequence(actions, last) => match mode {
                Mode::Run => self.steps(actions, *last, to),
                Mode::Value => {
                    let unit = self.unit(Origin::Part(self.function.0, id.0, Mode::Run));
                    let captures = self.captures(id);
                    self.store(mode, to, |_, to| Op::Sequence { to, unit, captures });
                }
            },
            _ => unreachable!("the other nodes are constants"),
        }
        self.next = mark;
    }

    /// Emits an operation, and hands its result on.
    fn store(&mut self, mode: Mode, to: Option<Slot>, op: impl FnOnce(&mut Self, Slot) -> Op) {
        match (mode, to) {
            (Mode::Value, Some(to)) => {
                let op = op(self, to);
                self.emit(op);
            }
            _ => {
                let result = self.temporary();
                let op = op(self, result);
                self.emit(op);
                self.finish(Operand::take(result), mode, to);
            }
        }
    }

    /// Hands a value on.
    fn finish(&mut self, from: Operand, mode: Mode, to: Option<Slot>) {
        self.emit(match (mode, to) {
            (Mode::Value, Some(to)) => Op::Load { to, from },
            (Mode::Value, None) => Op::Return { from },
            (Mode::Run, Some(to)) => Op::Run { to, action: from },
            (Mode::Run, None) => Op::TailRun { action: from },
        });
    }

    /// How the value of a term is read; its code, if it needs some, comes before.
    fn operand(&mut self, id: NodeId) -> Operand {
        if self.folded[id.0 as usize].is_some() {
            return self.constant(id);
        }
        match self.program.node(id) {
            Node::Slot(slot) => read((*slot, self.flow.is_last(id))),
            Node::Global(def) => self.global(*def, id),
            _ => {
                let to = self.temporary();
                self.term(id, Mode::Value, Some(to));
                Operand::take(to)
            }
        }
    }

    /// The same for the arguments of a call.
    fn operands(&mut self, ids: &[NodeId]) -> List {
        let operands: Vec<u32> = ids.iter().map(|&id| self.operand(id).0).collect();
        self.code.add_list(operands)
    }

    fn constant(&mut self, id: NodeId) -> Operand {
        if let Some(&number) = self.constants.get(&id.0) {
            return Operand::constant(number);
        }
        let value = self.folded[id.0 as usize].clone().unwrap_or_default();
        let operand = self.add_constant(value);
        self.constants.insert(id.0, operand.0 >> 2);
        operand
    }

    fn add_constant(&mut self, value: Value) -> Operand {
        self.code.constants.push(value);
        Operand::constant(self.code.constants.len() as u32 - 1)
    }

    fn number(&mut self, value: u64) -> Operand {
        self.add_constant(Value::Nat(value))
    }

    /// A definition as a value.
    fn global(&mut self, def: DefId, at: NodeId) -> Operand {
        let value = match &self.program.definitions[def.index()] {
            Definition::Function(function) => {
                let function = *function;
                self.function_value(function);
                Value::Function(function.0)
            }
            Definition::Primitive(primitive, arity) => {
                let (primitive, arity) = (*primitive, *arity);
                self.check(def, at);
                self.use_primitive(primitive, arity);
                Value::Primitive(primitive)
            }
            Definition::Foreign(_) => {
                self.check(def, at);
                Value::Empty
            }
            Definition::Erased => Value::Empty,
        };
        self.add_constant(value)
    }

    /// The function is used as a value: it needs its unit.
    fn function_value(&mut self, function: FunctionId) {
        if self.code.functions[function.0 as usize].unit == u32::MAX {
            let unit = self.unit(Origin::Function(function.0, Mode::Value));
            self.code.functions[function.0 as usize].unit = unit;
        }
    }

    fn use_primitive(&mut self, primitive: Primitive, arity: u32) {
        if self.code.primitives.iter().any(|known| known.primitive == primitive) {
            return;
        }
        let effect = primitive.is_effect().then(|| self.effect(EffectKind::Primitive(primitive), Site::NONE));
        self.code.primitives.push(PrimitiveInfo { primitive, arity, effect });
    }

    /// What a closure, an action or a side takes along.
    fn captures(&mut self, id: NodeId) -> List {
        let operands: Vec<u32> = self.flow.reads(id).iter().map(|&slot| read(slot).0).collect();
        self.code.add_list(operands)
    }

    fn call(&mut self, id: NodeId, def: DefId, arguments: &[NodeId], mode: Mode, to: Option<Slot>) {
        let program = self.program;
        match &program.definitions[def.index()] {
            Definition::Function(function) => self.call_function(id, def, *function, arguments, mode, to),
            Definition::Primitive(primitive, _) => {
                self.check(def, id);
                self.call_primitive(id, *primitive, arguments, mode, to);
            }
            Definition::Foreign(_) => self.check(def, id),
            // A type or a proof: nothing reads it.
            Definition::Erased => {
                let nothing = self.add_constant(Value::Empty);
                self.finish(nothing, mode, to);
            }
        }
    }

    fn call_function(
        &mut self,
        id: NodeId,
        def: DefId,
        function: FunctionId,
        arguments: &[NodeId],
        mode: Mode,
        to: Option<Slot>,
    ) {
        if let (Some(&comparison), [left, right]) = (self.comparisons.get(&def.0), arguments) {
            let (left, right) = (self.operand(*left), self.operand(*right));
            self.store(mode, to, |_, to| Op::Compare { to, comparison, left, right });
            return;
        }
        let site = match self.is_spawner(def) {
            true => self.site(id),
            false => Site::NONE,
        };
        let unit = self.unit(Origin::Function(function.0, mode));
        let list = self.operands(arguments);
        if site != Site::NONE && mode == Mode::Value {
            let action = self.temporary();
            self.emit(Op::Call { to: action, unit, arguments: list });
            let arguments = self.code.add_list([Operand::take(action).0]);
            let effect = self.effect(EffectKind::At, site);
            self.store(mode, to, |_, to| Op::MakeEffect { to, effect, arguments });
            return;
        }
        if site != Site::NONE {
            self.emit(Op::Locate { site });
        }
        self.emit(match to {
            Some(to) => Op::Call { to, unit, arguments: list },
            None => Op::TailCall { unit, arguments: list },
        });
    }

    fn is_spawner(&self, def: DefId) -> bool {
        self.program.is_base[def.index()] && SPAWNERS.contains(&self.program.names[def.index()].as_str())
    }

    fn call_primitive(&mut self, id: NodeId, primitive: Primitive, arguments: &[NodeId], mode: Mode, to: Option<Slot>) {
        if let (true, [left, right]) = (is_binary(primitive), arguments) {
            let (left, right) = (self.operand(*left), self.operand(*right));
            self.store(mode, to, |_, to| Op::Binary { to, primitive, left, right });
            return;
        }
        if !primitive.is_effect() {
            let arguments = self.operands(arguments);
            self.store(mode, to, |_, to| Op::Primitive { to, primitive, arguments });
            return;
        }
        let site = self.site(id);
        match (mode, primitive, arguments) {
            (Mode::Run, Primitive::IoPure, [answer]) => self.term(*answer, Mode::Value, to),
            (Mode::Run, Primitive::IoBind, [action, next]) => {
                let answer = self.temporary();
                self.term(*action, Mode::Run, Some(answer));
                let next = self.operand(*next);
                let list = self.code.add_list([next.0, Operand::take(answer).0]);
                self.store(mode, to, |_, to| Op::Apply { to, list });
            }
            (Mode::Run, ..) => {
                let effect = self.effect(EffectKind::Primitive(primitive), site);
                let arguments = self.operands(arguments);
                let answer = to.unwrap_or_else(|| self.temporary());
                self.emit(Op::Effect { to: answer, effect, arguments });
                if to.is_none() {
                    self.emit(Op::Return { from: Operand::take(answer) });
                }
            }
            (Mode::Value, ..) => {
                let effect = self.effect(EffectKind::Primitive(primitive), site);
                let arguments = self.operands(arguments);
                self.store(mode, to, |_, to| Op::MakeEffect { to, effect, arguments });
            }
        }
    }

    fn effect(&mut self, kind: EffectKind, site: u32) -> u32 {
        self.code.effects.push(EffectInfo { kind, site });
        self.code.effects.len() as u32 - 1
    }

    fn apply(&mut self, id: NodeId, function: NodeId, arguments: &[NodeId], mode: Mode, to: Option<Slot>) {
        // Here, where the place of the call is known.
        if let Node::Global(def) = self.program.node(function) {
            self.check(*def, id);
        }
        let all: Vec<NodeId> = std::iter::once(function).chain(arguments.iter().copied()).collect();
        let list = self.operands(&all);
        match (mode, to) {
            (Mode::Value, None) => {
                self.emit(Op::TailApply { list });
            }
            _ => self.store(mode, to, |_, to| Op::Apply { to, list }),
        }
    }

    fn bind(&mut self, bind: &Bind) {
        let mark = self.next;
        match bind {
            Bind::Let(slot, value) => self.term(*value, Mode::Value, Some(*slot)),
            Bind::Parallel(slots, values) => self.fork(slots, values),
            Bind::Destructure(slot, pattern, value) => {
                self.term(*value, Mode::Value, Some(*slot));
                let is_moved = self.flow.is_destructured(*value);
                self.take_apart(*slot, is_moved, *pattern);
            }
        }
        self.next = mark;
    }

    fn fork(&mut self, slots: &[Slot], values: &[NodeId]) {
        let sides = slots.iter().zip(values).map(|(&to, &value)| self.side(to, value)).collect();
        self.code.forks.push(ForkInfo { sides });
        let fork = self.code.forks.len() as u32 - 1;
        self.emit(Op::Fork { fork });
        for side in 0..values.len() as u32 {
            self.emit(Op::Side { fork, side });
        }
    }

    fn side(&mut self, to: Slot, value: NodeId) -> SideInfo {
        let program = self.program;
        if let (true, Node::CallGlobal(def, arguments)) = (is_direct(program, value), program.node(value)) {
            if let Definition::Function(function) = program.definitions[def.index()] {
                let unit = self.unit(Origin::Function(function.0, Mode::Value));
                return SideInfo { to, unit, arguments: self.operands(arguments) };
            }
        }
        let unit = self.unit(Origin::Part(self.function.0, value.0, Mode::Value));
        SideInfo { to, unit, arguments: self.captures(value) }
    }

    fn steps(&mut self, actions: &[Action], last: NodeId, to: Option<Slot>) {
        for action in actions {
            match action {
                Action::Run(slot, node) => self.term(*node, Mode::Run, Some(*slot)),
                Action::Let(slot, node) => self.term(*node, Mode::Value, Some(*slot)),
            }
        }
        self.term(last, Mode::Run, to);
    }

    /// Where the program itself calls something.
    fn site(&mut self, id: NodeId) -> u32 {
        let Some(place) = self.place(id) else { return Site::NONE };
        let definition = self.program.function(self.function).name.clone();
        self.code.sites.push(Site { definition, place });
        self.code.sites.len() as u32 - 1
    }

    fn place(&self, id: NodeId) -> Option<String> {
        let span = self.program.places.get(&id.0)?;
        let (line, _) = self.sources.position(span.file, span.start);
        Some(format!("{}:{line}", self.sources.file(span.file).path.display()))
    }

    /// Refuses the program if a definition that it uses there cannot run.
    fn check(&mut self, def: DefId, at: NodeId) {
        match &self.program.definitions[def.index()] {
            Definition::Foreign(name) => {
                self.refuse(&format!("{name} is written in another language, which Tidegate does not run"), at);
            }
            Definition::Primitive(primitive, _) if primitive.needs_sockets() => {
                self.refuse(&format!("{} cannot run yet: Tidegate has no sockets", primitive.name()), at);
            }
            _ => {}
        }
    }

    fn refuse(&mut self, what: &str, at: NodeId) {
        let definition = &self.program.function(self.function).name;
        let place = self.place(at).map_or_else(String::new, |place| format!(" at {place}"));
        self.refused.get_or_insert(format!("{what} (used in {definition}{place})"));
    }
}

fn read((slot, is_last): Read) -> Operand {
    if is_last {
        Operand::take(slot)
    } else {
        Operand::copy(slot)
    }
}

/// Does the machine compute it without a list of arguments?
fn is_binary(primitive: Primitive) -> bool {
    use Primitive as P;
    matches!(
        primitive,
        P::NatAdd
            | P::NatSub
            | P::NatMul
            | P::NatDiv
            | P::NatMod
            | P::U32Add
            | P::U32Sub
            | P::U32Mul
            | P::U32Div
            | P::U32Mod
            | P::U32And
            | P::U32Or
            | P::U32Xor
    )
}
