//! The machine that runs code: a stack of values and a stack of frames, both on the heap.
//!
//! A call pushes a frame, a tail call replaces it; nothing recurses on the thread's own stack, so depth costs heap only, up
//! to [`MAX_STACK`]. An effect stops the machine: whoever runs it performs the effect and goes on with the answer. At that
//! moment only frames that run actions are on the stack, mostly one, so what a waiting computation keeps ([`Saved`]) is
//! small; one machine serves all computations of a program in turn.
//!
//! Every call counts down; at zero the machine looks up from its work ([`Machine::beat`]): it offers work to other threads
//! (`parallel.rs`) and sees whether the run is over.
//!
//! Functions and actions that are values are in `machine/apply.rs`.

mod apply;

use std::mem::take;
use std::sync::Arc;

use super::code::{Code, List, Op, Operand, Source, Unit, NOWHERE};
use super::parallel::{Pool, Record};
use super::value::{take_items, Items, Value};
use super::{primitive, Failure};

/// How many bytes of stack a machine may use.
pub const MAX_STACK: usize = 1 << 30;
/// The same in values; frames are counted with them.
const MAX_VALUES: usize = MAX_STACK / size_of::<Value>();
/// How many calls from one look around to the next.
const BEAT: u32 = 2048;
/// A computation with more values than that keeps the stack itself, not a copy.
const SMALL: usize = 64;

/// Whom a frame answers to.
#[derive(Clone, Copy, Debug)]
struct Frame {
    pc: u32,
    base: u32,
    to: u32,
}

/// Why a machine has stopped.
pub(crate) enum Exit {
    /// It is done, with that value.
    Done(Value),
    /// It waits for the answer to an effect, whose arguments are in [`Machine::arguments`].
    Effect(u32),
}

/// What is left of a computation while it waits.
#[derive(Debug, Default)]
pub(crate) struct Saved {
    values: Vec<Value>,
    frames: Vec<Frame>,
    pc: u32,
    base: u32,
    to: u32,
    /// What Base is working for ([`Op::Locate`]).
    site: u32,
}

impl Saved {
    /// A computation that is to run an action.
    pub(crate) fn new(code: &Code, action: Value) -> Saved {
        let pc = code.units[code.start as usize].entry;
        Saved { values: vec![action], frames: Vec::new(), pc, base: 0, to: 0, site: u32::MAX }
    }

    /// The answer to the effect that it waits for.
    pub(crate) fn answer(&mut self, value: Value) {
        self.values[(self.base + self.to) as usize] = value;
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(super) values: Vec<Value>,
    frames: Vec<Frame>,
    pc: u32,
    base: u32,
    to: u32,
    site: u32,
    fuel: u32,
    /// The arguments of an effect, or of a call under way.
    pub(crate) arguments: Vec<Value>,
    /// The parallel lets under way, the outermost first; those before `offered` have nothing left to offer.
    pub(super) records: Vec<Record>,
    pub(super) offered: usize,
    /// None: with one thread there is nobody to offer work to.
    pub(super) pool: Option<Arc<Pool>>,
    /// How many machines wait below this one on the thread's own stack.
    pub(super) nesting: u32,
}

impl Machine {
    pub(crate) fn new(pool: Option<Arc<Pool>>) -> Machine {
        Machine {
            values: Vec::new(),
            frames: Vec::new(),
            pc: 0,
            base: 0,
            to: 0,
            site: u32::MAX,
            fuel: BEAT,
            arguments: Vec::new(),
            records: Vec::new(),
            offered: 0,
            pool,
            nesting: 0,
        }
    }

    /// Makes ready to run a unit. The machine is idle.
    pub(crate) fn begin(&mut self, code: &Code, unit: u32, arguments: impl IntoIterator<Item = Value>) {
        self.values.clear();
        self.frames.clear();
        self.records.clear();
        self.offered = 0;
        self.site = u32::MAX;
        self.base = 0;
        self.arguments.clear();
        self.arguments.extend(arguments);
        let unit = &code.units[unit as usize];
        self.place_arguments(unit);
        self.pc = unit.entry;
    }

    /// Takes a waiting computation up again.
    pub(crate) fn load(&mut self, saved: &mut Saved) {
        take_up(&mut self.values, &mut saved.values);
        take_up(&mut self.frames, &mut saved.frames);
        (self.pc, self.base, self.to, self.site) = (saved.pc, saved.base, saved.to, saved.site);
    }

    /// Puts the computation away that waits for an effect's answer.
    pub(crate) fn save(&mut self, saved: &mut Saved) {
        saved.values = put_away(&mut self.values);
        saved.frames = put_away(&mut self.frames);
        (saved.pc, saved.base, saved.to, saved.site) = (self.pc, self.base, self.to, self.site);
    }

    /// The answer to the effect that the machine stopped for.
    #[inline]
    pub(crate) fn answer(&mut self, value: Value) {
        let place = (self.base + self.to) as usize;
        self.values[place] = value;
    }

    /// What Base is working for.
    pub(crate) fn site(&self) -> u32 {
        self.site
    }

    /// Where the current frame begins.
    pub(super) fn base(&self) -> u32 {
        self.base
    }

    /// Fills a slot of the current frame.
    #[inline(always)]
    pub(super) fn put(&mut self, to: u32, value: Value) {
        std::mem::replace(self.slot(to), value).discard();
    }

    #[inline(always)]
    fn slot(&mut self, slot: u32) -> &mut Value {
        &mut self.values[(self.base + slot) as usize]
    }

    #[inline(always)]
    pub(super) fn read_at(&mut self, code: &Code, base: u32, operand: Operand) -> Value {
        match operand.source() {
            Source::Move(slot) => take(&mut self.values[base as usize + slot]),
            Source::Copy(slot) => self.values[base as usize + slot].copy(),
            Source::Constant(number) => code.constants[number].copy(),
        }
    }

    #[inline(always)]
    fn read(&mut self, code: &Code, operand: Operand) -> Value {
        self.read_at(code, self.base, operand)
    }

    /// Reads a list of operands to `arguments`.
    #[inline]
    fn read_list(&mut self, code: &Code, list: List) {
        self.arguments.clear();
        for &word in code.list(list) {
            let value = self.read(code, Operand(word));
            self.arguments.push(value);
        }
    }

    /// Runs until the machine is done, or waits for an effect.
    pub(crate) fn run(&mut self, code: &Code) -> Result<Exit, Failure> {
        loop {
            let op = code.ops[self.pc as usize];
            self.pc += 1;
            match op {
                Op::Load { to, from } => {
                    let value = self.read(code, from);
                    self.put(to, value);
                }
                Op::Binary { to, primitive, left, right } => {
                    let (left, right) = (self.read(code, left), self.read(code, right));
                    self.put(to, primitive::binary(primitive, &left, &right)?);
                }
                Op::Compare { to, comparison, left, right } => {
                    let (left, right) = (self.read(code, left), self.read(code, right));
                    self.put(to, code.bool(primitive::compare(comparison, &left, &right)?));
                }
                Op::IfConstructor { slot, constructor, otherwise } => {
                    if self.slot(slot).constructor() != Some(constructor) {
                        self.pc = otherwise;
                    }
                }
                Op::IfNat { slot, least, exactly, otherwise } => {
                    let fits = match *self.slot(slot) {
                        Value::Nat(value) if exactly => value == u64::from(least),
                        Value::Nat(value) => value >= u64::from(least),
                        _ => false,
                    };
                    if !fits {
                        self.pc = otherwise;
                    }
                }
                Op::IfTest { slot, test, otherwise } => {
                    let test = &code.tests[test as usize];
                    if !primitive::fits(code, self.slot(slot), &test.path, &test.wanted) {
                        self.pc = otherwise;
                    }
                }
                Op::TakeMoved { slot, fields } => {
                    let value = take(self.slot(slot));
                    self.unpack(code, value, fields)?;
                }
                Op::TakeCopied { slot, fields } => {
                    let value = self.slot(slot).clone();
                    self.unpack(code, value, fields)?;
                }
                Op::TakeAbove { to, from, count } => {
                    let Value::Nat(value) = self.read(code, from) else { return Err(no_case()) };
                    let rest = value.checked_sub(u64::from(count)).ok_or_else(no_case)?;
                    self.put(to, Value::Nat(rest));
                }
                Op::Jump { to } => self.pc = to,
                Op::Call { to, unit, arguments } => {
                    self.beat(code)?;
                    self.call(code, to, unit, arguments)?;
                }
                Op::TailCall { unit, arguments } => {
                    self.beat(code)?;
                    self.read_list(code, arguments);
                    let unit = &code.units[unit as usize];
                    self.clear_frame();
                    self.place_arguments(unit);
                    self.pc = unit.entry;
                }
                Op::Return { from } => {
                    let value = self.read(code, from);
                    if let Some(value) = self.leave(value) {
                        return Ok(Exit::Done(value));
                    }
                }
                Op::Construct { to, constructor, fields } => {
                    let base = self.base;
                    let list = code.list(fields);
                    let fields = list.iter().map(|&word| self.read_at(code, base, Operand(word)));
                    let value = Value::record(constructor, fields);
                    self.put(to, value);
                }
                Op::ConstructKnown { to, constructor, fields } => {
                    self.read_list(code, fields);
                    let fields = self.arguments.drain(..).collect();
                    self.put(to, code.construct_known(constructor, fields)?);
                }
                Op::Primitive { to, primitive, arguments } => {
                    self.read_list(code, arguments);
                    let value = primitive::call(code, primitive, &mut self.arguments)?;
                    self.put(to, value);
                }
                Op::Apply { to, list } => {
                    self.beat(code)?;
                    let function = self.read_function(code, list);
                    self.push_frame(to)?;
                    if let Some(value) = self.apply(code, function)? {
                        return Ok(Exit::Done(value));
                    }
                }
                Op::TailApply { list } => {
                    self.beat(code)?;
                    let function = self.read_function(code, list);
                    self.clear_frame();
                    if let Some(value) = self.apply(code, function)? {
                        return Ok(Exit::Done(value));
                    }
                }
                Op::TailApplyPacked { function, packed } => {
                    let (function, packed) = (take(self.slot(function)), take(self.slot(packed)));
                    self.arguments.clear();
                    if let Value::More(_, items) = packed {
                        self.arguments = take_items(items);
                    }
                    self.clear_frame();
                    if let Some(value) = self.apply(code, function)? {
                        return Ok(Exit::Done(value));
                    }
                }
                Op::Closure { to, function, captures } => {
                    let items = self.pack(code, captures);
                    self.put(to, Value::Closure(function, items));
                }
                Op::Sequence { to, unit, captures } => {
                    let items = self.pack(code, captures);
                    self.put(to, Value::Sequence(unit, items));
                }
                Op::MakeEffect { to, effect, arguments } => {
                    let items = self.pack(code, arguments);
                    self.put(to, Value::Effect(effect, items));
                }
                Op::Fork { fork } => self.open_record(code, fork),
                Op::Side { fork, side } => {
                    self.beat(code)?;
                    let info = code.forks[fork as usize].sides[side as usize];
                    match self.take_side(code, fork, side) {
                        None => self.call(code, info.to, info.unit, info.arguments)?,
                        Some(job) => self.join_side(code, &job, info.to)?,
                    }
                }
                Op::Run { to, action } => {
                    self.beat(code)?;
                    let action = self.read(code, action);
                    self.push_frame(to)?;
                    if let Some(exit) = self.run_action(code, action)? {
                        return Ok(exit);
                    }
                }
                Op::TailRun { action } => {
                    self.beat(code)?;
                    let action = self.read(code, action);
                    self.clear_frame();
                    if let Some(exit) = self.run_action(code, action)? {
                        return Ok(exit);
                    }
                }
                Op::Effect { to, effect, arguments } => {
                    self.read_list(code, arguments);
                    self.to = to;
                    return Ok(Exit::Effect(effect));
                }
                Op::Locate { site } => self.site = site,
                Op::NoCase => return Err(no_case()),
            }
        }
    }

    /// Counts a call; now and then, looks around.
    #[inline(always)]
    fn beat(&mut self, code: &Code) -> Result<(), Failure> {
        self.fuel -= 1;
        if self.fuel > 0 {
            return Ok(());
        }
        self.fuel = BEAT;
        self.look_around(code)
    }

    /// A new frame, still empty.
    #[inline(always)]
    fn push_frame(&mut self, to: u32) -> Result<(), Failure> {
        if self.values.len() + self.frames.len() > MAX_VALUES {
            return Err(stack_full());
        }
        self.frames.push(Frame { pc: self.pc, base: self.base, to });
        self.base = self.values.len() as u32;
        Ok(())
    }

    /// Calls a unit in a new frame.
    #[inline(always)]
    fn call(&mut self, code: &Code, to: u32, unit: u32, arguments: List) -> Result<(), Failure> {
        let caller = self.base;
        self.push_frame(to)?;
        let unit = &code.units[unit as usize];
        if unit.places.is_empty() {
            self.values.reserve(unit.slots as usize);
            for &word in code.list(arguments) {
                let value = self.read_at(code, caller, Operand(word));
                self.values.push(value);
            }
            self.values.resize_with(self.base as usize + unit.slots as usize, Value::default);
        } else {
            self.arguments.clear();
            for &word in code.list(arguments) {
                let value = self.read_at(code, caller, Operand(word));
                self.arguments.push(value);
            }
            self.place_arguments(unit);
        }
        self.pc = unit.entry;
        Ok(())
    }

    /// The same with arguments that are there.
    pub(super) fn call_with(&mut self, code: &Code, to: u32, unit: u32, arguments: Vec<Value>) -> Result<(), Failure> {
        self.push_frame(to)?;
        self.arguments = arguments;
        let unit = &code.units[unit as usize];
        self.place_arguments(unit);
        self.pc = unit.entry;
        Ok(())
    }

    /// Fills the empty frame of a unit with the arguments: those that it takes, then those that it has captured.
    #[inline]
    fn place_arguments(&mut self, unit: &Unit) {
        let base = self.base as usize;
        if unit.places.is_empty() {
            self.values.append(&mut self.arguments);
            self.values.resize_with(base + unit.slots as usize, Value::default);
            return;
        }
        let captured = self.arguments.len().min(unit.arity as usize);
        self.values.extend(self.arguments.drain(..captured));
        self.values.resize_with(base + unit.slots as usize, Value::default);
        for (value, &place) in self.arguments.drain(..).zip(&unit.places) {
            self.values[base + place as usize] = value;
        }
    }

    /// Drops what is left in the frame. Mostly that is numbers and what was moved away.
    #[inline(always)]
    fn clear_frame(&mut self) {
        let base = self.base as usize;
        while self.values.len() > base {
            self.values.pop().unwrap_or_default().discard();
        }
    }

    /// Ends the frame. `Some`: it was the last.
    #[inline(always)]
    fn leave(&mut self, value: Value) -> Option<Value> {
        self.clear_frame();
        let Some(frame) = self.frames.pop() else { return Some(value) };
        (self.pc, self.base) = (frame.pc, frame.base);
        self.put(frame.to, value);
        None
    }

    /// The parts of a value that a pattern fits.
    #[inline]
    fn unpack(&mut self, code: &Code, value: Value, places: List) -> Result<(), Failure> {
        let places = code.list(places);
        let base = self.base as usize;
        let values = &mut self.values;
        let mut put = |(at, part): (usize, Value)| {
            let place = places.get(at).copied().unwrap_or(NOWHERE);
            if place != NOWHERE {
                values[base + place as usize] = part;
            }
        };
        match value {
            Value::Text(..) | Value::Char(_) | Value::Array(_) => {
                let parts = primitive::parts(value).ok_or_else(no_case)?;
                parts.into_iter().enumerate().for_each(put);
                Ok(())
            }
            value => match value.unpack(&mut put) {
                true => Ok(()),
                false => Err(no_case()),
            },
        }
    }

    fn pack(&mut self, code: &Code, list: List) -> Arc<Items> {
        let base = self.base;
        Arc::new(Items(code.list(list).iter().map(|&word| self.read_at(code, base, Operand(word))).collect()))
    }
}

/// Puts back what was put away.
fn take_up<T>(stack: &mut Vec<T>, kept: &mut Vec<T>) {
    if kept.len() > SMALL {
        *stack = take(kept);
    } else {
        stack.clear();
        stack.append(kept);
        *kept = Vec::new();
    }
}

/// What a waiting computation keeps of a stack. A large one goes with its buffer: to copy it at each wait would cost more
/// than the room at its end. Unless that is the room of a deep recursion, which has cost more itself.
fn put_away<T>(stack: &mut Vec<T>) -> Vec<T> {
    if stack.len() > SMALL && stack.capacity() <= 4 * stack.len() {
        return take(stack);
    }
    let mut kept = Vec::with_capacity(stack.len());
    kept.append(stack);
    kept
}

#[cold]
fn no_case() -> Failure {
    Failure::internal("no case fits")
}

#[cold]
fn stack_full() -> Failure {
    Failure::error(format!("the stack has grown to {} MiB: is there a recursion without end?", MAX_STACK >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_that_is_put_away_keeps_no_room_of_a_deep_recursion() {
        for len in [0, 1, SMALL, SMALL + 1, 1000] {
            let mut stack: Vec<usize> = Vec::with_capacity(1 << 16);
            stack.extend(0..len);
            let mut kept = put_away(&mut stack);
            assert!(kept.capacity() <= len && stack.capacity() >= 1 << 16, "{len}");
            take_up(&mut stack, &mut kept);
            assert_eq!((stack.len(), kept.capacity()), (len, 0));
        }
    }

    #[test]
    fn a_large_stack_goes_with_its_buffer() {
        let mut stack: Vec<usize> = (0..1000).collect();
        let buffer = stack.as_ptr();
        let mut kept = put_away(&mut stack);
        assert_eq!((kept.as_ptr(), stack.len()), (buffer, 0));
        take_up(&mut stack, &mut kept);
        assert_eq!(stack.as_ptr(), buffer);
    }
}
