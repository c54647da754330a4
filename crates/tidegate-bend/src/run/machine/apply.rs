//! Functions that are values, and actions that are values.

use std::mem::take;
use std::sync::Arc;

use super::{Exit, Machine};
use crate::base::Primitive;
use crate::run::code::{Code, EffectKind, FunctionCode, List, Operand};
use crate::run::value::{take_items, Items, Partial, Value};
use crate::run::{primitive, Failure};

impl Machine {
    /// A function, and its arguments to `arguments`.
    pub(super) fn read_function(&mut self, code: &Code, list: List) -> Value {
        let words = code.list(list);
        let function = self.read(code, Operand(words[0]));
        self.arguments.clear();
        for &word in &words[1..] {
            let value = self.read(code, Operand(word));
            self.arguments.push(value);
        }
        function
    }

    /// Applies a function to `arguments`, in a frame that is still empty. `Some`: that was the last frame.
    pub(super) fn apply(&mut self, code: &Code, mut function: Value) -> Result<Option<Value>, Failure> {
        loop {
            match function {
                Value::Function(number) => {
                    let info = code.functions[number as usize];
                    return self.apply_code(code, function, info);
                }
                Value::Closure(number, _) => {
                    let info = code.functions[number as usize];
                    return self.apply_code(code, function, info);
                }
                Value::Partial(partial) => {
                    let mut all = partial.arguments.0.clone();
                    all.append(&mut self.arguments);
                    self.arguments = all;
                    function = partial.function.clone();
                }
                Value::Primitive(called) => {
                    let info = code.primitive(called)?;
                    let arity = info.arity as usize;
                    if self.arguments.len() < arity {
                        return Ok(self.leave_partial(function));
                    }
                    let rest = self.arguments.split_off(arity);
                    let value = match info.effect {
                        Some(effect) => Value::Effect(effect, Arc::new(Items(take(&mut self.arguments)))),
                        None => primitive::call(code, called, &mut self.arguments)?,
                    };
                    if rest.is_empty() {
                        return Ok(self.leave(value));
                    }
                    (function, self.arguments) = (value, rest);
                }
                _ => return Err(Failure::internal("a value that is no function was applied")),
            }
        }
    }

    /// The same for a function of the program.
    fn apply_code(&mut self, code: &Code, function: Value, info: FunctionCode) -> Result<Option<Value>, Failure> {
        let arity = info.arity as usize;
        if self.arguments.len() < arity {
            return Ok(self.leave_partial(function));
        }
        if self.arguments.len() > arity {
            // The answer is a function, which gets the rest.
            let rest = self.arguments.split_off(arity);
            self.values.push(Value::Empty);
            self.values.push(Value::More(u32::MAX, Arc::new(Items(rest))));
            self.pc = code.units[code.apply_rest as usize].entry;
            self.push_frame(0)?;
        }
        if let Value::Closure(_, captured) = function {
            self.arguments.append(&mut take_items(captured));
        }
        let unit = &code.units[info.unit as usize];
        self.place_arguments(unit);
        self.pc = unit.entry;
        Ok(None)
    }

    /// Answers with a function that waits for more arguments.
    fn leave_partial(&mut self, function: Value) -> Option<Value> {
        let arguments = Items(take(&mut self.arguments));
        self.leave(Value::Partial(Arc::new(Partial { function, arguments })))
    }

    /// Runs an action in a frame that is still empty.
    pub(super) fn run_action(&mut self, code: &Code, mut action: Value) -> Result<Option<Exit>, Failure> {
        loop {
            match action {
                Value::Sequence(unit, captured) => {
                    self.arguments = take_items(captured);
                    let unit = &code.units[unit as usize];
                    self.place_arguments(unit);
                    self.pc = unit.entry;
                    return Ok(None);
                }
                Value::Effect(number, arguments) => {
                    let effect = code.effects[number as usize];
                    let mut arguments = take_items(arguments);
                    match effect.kind {
                        EffectKind::At => {
                            self.site = effect.site;
                            action = arguments.pop().unwrap_or_default();
                        }
                        EffectKind::Primitive(Primitive::IoPure) => {
                            let answer = arguments.pop().unwrap_or_default();
                            return Ok(self.leave(answer).map(Exit::Done));
                        }
                        EffectKind::Primitive(Primitive::IoBind) => {
                            self.arguments = arguments;
                            let unit = &code.units[code.bind as usize];
                            self.place_arguments(unit);
                            self.pc = unit.entry;
                            return Ok(None);
                        }
                        EffectKind::Primitive(_) => {
                            self.arguments = arguments;
                            self.values.push(Value::Empty);
                            self.pc = code.answer;
                            self.to = 0;
                            return Ok(Some(Exit::Effect(number)));
                        }
                    }
                }
                _ => return Err(Failure::internal("a value that is no action was run")),
            }
        }
    }
}
