//! The types of what a program declares: first as values, then checked.

use super::book::{Code, ConstructorId, DataId, DefId};
use super::recursion::Current;
use super::scope::Scope;
use super::value::{Value, VarId, V};
use super::{Checked, Checker, Origin, Variable};
use crate::load::ModuleId;
use crate::syntax::{Clause, ExprId, Item, Mode, Parameter, Quantity, Symbol};

/// A parameter on its way into a function type.
struct Bound {
    id: VarId,
    quantity: Quantity,
    name: Symbol,
    domain: V,
    /// `exs`: a pair of the witness and the rest, not a function.
    exists: bool,
}

impl Checker<'_> {
    /// Gives every declaration of a module its type, without checking it.
    pub(super) fn declare_types(&mut self, module: ModuleId) {
        self.scope = Scope::new(module);
        for at in 0..self.book.datas.len() {
            if self.book.datas[at].module == module {
                self.declare_data(DataId(at as u32));
            }
        }
        for at in 0..self.book.defs.len() {
            if self.book.defs[at].module == module {
                self.declare_def(DefId(at as u32));
            }
        }
    }

    fn declare_data(&mut self, id: DataId) {
        let data = self.book.data(id);
        let (module, at, ids) = (data.module, data.declared_by, data.constructors.clone());
        let item = self.book.modules[module.0 as usize].tree.declarations[at].item.clone();
        let Item::Type { parameters, kind, constructors } = item else { return };
        let mark = self.scope.mark();
        let bound = self.bind_parameters(&parameters);
        let kind = self.eval_here(kind);
        let ty = self.function_type(&bound, kind);
        self.book.datas[id.0 as usize].ty = Some(ty);
        let arguments: Vec<V> = bound.iter().map(|bound| self.values.var(bound.id)).collect();
        let tip = self.data_type(id, &arguments);
        for (constructor, &constructor_id) in constructors.iter().zip(&ids) {
            let inner = self.scope.mark();
            let fields = self.bind_parameters(&constructor.fields);
            let ty = self.function_type(&fields, tip);
            let ty = self.function_type(&bound, ty);
            self.book.constructors[constructor_id.0 as usize].ty = Some(ty);
            self.scope.truncate(inner);
        }
        self.scope.truncate(mark);
    }

    fn declare_def(&mut self, id: DefId) {
        let def = self.book.def(id);
        let (module, at) = (def.module, def.typed_by);
        let item = self.book.modules[module.0 as usize].tree.declarations[at].item.clone();
        let mark = self.scope.mark();
        let (bound, result, templates) = match item {
            Item::Def { parameters, result: Some(result), .. } => {
                let bound = self.bind_parameters(&parameters);
                let templates = parameters.iter().map(|p| p.mode == Mode::Template).collect();
                (bound, self.eval_here(result), templates)
            }
            Item::Law { clauses, claim } => {
                let bound = self.bind_clauses(&clauses);
                let templates = clauses.iter().map(|c| c.parameter.mode == Mode::Template).collect();
                (bound, self.eval_here(claim), templates)
            }
            _ => return,
        };
        let ty = self.function_type(&bound, result);
        self.scope.truncate(mark);
        let def = &mut self.book.defs[id.0 as usize];
        def.is_type = matches!(self.values.get(result), Value::Kind(_));
        def.ty = Some(ty);
        def.templates = templates;
    }

    fn bind_parameters(&mut self, parameters: &[Parameter]) -> Vec<Bound> {
        parameters.iter().map(|parameter| self.bind_parameter(parameter)).collect()
    }

    fn bind_parameter(&mut self, parameter: &Parameter) -> Bound {
        let domain = match parameter.ty {
            Some(ty) => self.eval_here(ty),
            None => self.values.add(Value::Quant),
        };
        let quantity = self.parameter_quantity(parameter.mode, domain);
        let id = self.new_variable(Variable {
            name: parameter.name,
            ty: domain,
            quantity,
            span: Some(parameter.span),
            origin: Origin::Parameter,
        });
        let value = self.values.var(id);
        self.scope.push(parameter.name, value);
        Bound { id, quantity, name: parameter.name, domain, exists: false }
    }

    /// A template parameter is erased if it is a type, and reusable if it is a value.
    fn parameter_quantity(&self, mode: Mode, domain: V) -> Quantity {
        match mode {
            Mode::Plain(quantity) => quantity,
            Mode::Template => match self.values.get(domain) {
                Value::Kind(_) | Value::Quant => Quantity::None,
                _ => Quantity::Many,
            },
        }
    }

    fn bind_clauses(&mut self, clauses: &[Clause]) -> Vec<Bound> {
        let mut bound = Vec::new();
        for clause in clauses {
            let mut new = self.bind_parameter(&clause.parameter);
            new.exists = clause.exists;
            if let Some(condition) = clause.condition {
                let condition = self.eval_here(condition);
                let family = self.values.abstract_over(condition, new.id);
                let family = self.values.add(Value::Lambda(new.name, family));
                new.domain = self.apply_def(self.builtin.exists, &[new.domain, family]);
                self.variables[new.id.0 as usize].ty = new.domain;
            }
            bound.push(new);
        }
        bound
    }

    fn function_type(&mut self, bound: &[Bound], result: V) -> V {
        let mut ty = result;
        for bound in bound.iter().rev() {
            let codomain = self.values.abstract_over(ty, bound.id);
            ty = if bound.exists {
                let family = self.values.add(Value::Lambda(bound.name, codomain));
                self.apply_def(self.builtin.exists, &[bound.domain, family])
            } else {
                self.values.add(Value::Pi(bound.quantity, bound.name, bound.domain, codomain))
            };
        }
        ty
    }

    /// Checks the types that a module declares; what fails has an unknown type from here on.
    pub(super) fn check_declared_types(&mut self, module: ModuleId, errors: &mut Vec<crate::diagnostic::Diagnostic>) {
        for at in 0..self.book.datas.len() {
            if self.book.datas[at].module != module {
                continue;
            }
            let id = DataId(at as u32);
            self.enter(module, self.book.data(id).name, None);
            if let Some(current) = &mut self.current {
                current.data = Some(id);
            }
            if let Err(error) = self.check_data(id) {
                errors.push(*error);
                self.forget_data(id);
            }
        }
        for at in 0..self.book.defs.len() {
            if self.book.defs[at].module != module {
                continue;
            }
            let id = DefId(at as u32);
            self.enter(module, self.book.def(id).name, Some(id));
            if let Err(error) = self.check_signature(id) {
                errors.push(*error);
                self.book.defs[at].ty = None;
            }
        }
    }

    fn forget_data(&mut self, id: DataId) {
        self.book.datas[id.0 as usize].ty = None;
        self.constructor_types.clear();
        self.field_types.clear();
        for constructor in self.book.data(id).constructors.clone() {
            let ConstructorId(at) = constructor;
            self.book.constructors[at as usize].ty = None;
        }
    }

    /// Starts afresh, inside a declaration.
    pub(super) fn enter(&mut self, module: ModuleId, name: Symbol, def: Option<DefId>) {
        self.scope = Scope::new(module);
        self.locals.clear();
        self.known.clear();
        self.affinity = super::affinity::Affinity::default();
        self.dead = 0;
        self.lenient = false;
        self.closed_from = None;
        let is_unsafe = def.is_some_and(|def| self.book.def(def).is_unsafe);
        self.current = Some(Current {
            def: def.unwrap_or(DefId(u32::MAX)),
            data: None,
            shown: self.book.names.text(name).to_owned(),
            is_unsafe,
            parameters: Vec::new(),
        });
    }

    fn check_data(&mut self, id: DataId) -> Checked<()> {
        let data = self.book.data(id);
        let item = self.book.modules[data.module.0 as usize].tree.declarations[data.declared_by].item.clone();
        let Item::Type { parameters, kind, constructors } = item else { return Ok(()) };
        for parameter in &parameters {
            self.check_parameter(parameter)?;
        }
        let span = self.span(kind);
        let declared = self.check_type(kind)?;
        if !matches!(self.values.get(declared), Value::Kind(_) | Value::Any | Value::Opaque(_)) {
            let observed = self.source_text(span);
            let error = self.mismatch("a kind after 'is' (Data, Type or Kind(q))", observed, Some(span));
            return Err(self.with_context(Box::new(error)));
        }
        if !matches!(self.values.get(declared), Value::Kind(_)) {
            self.note_undecided();
        }
        for constructor in &constructors {
            let (depth, mark) = (self.locals.len(), self.scope.mark());
            for field in &constructor.fields {
                let kind = self.check_parameter(field)?;
                if field.mode == Mode::Plain(Quantity::One) {
                    self.require_field_kind(field, kind, declared)?;
                }
            }
            self.close(depth, mark)?;
        }
        Ok(())
    }

    /// A Data type holds Data only.
    fn require_field_kind(&mut self, field: &Parameter, kind: V, declared: V) -> Checked<()> {
        if self.may_stand(kind, declared) {
            return Ok(());
        }
        let (expected, observed) = (self.show(declared), self.show(kind));
        let span = field.ty.map_or(field.span, |ty| self.span(ty));
        let error = self.mismatch(expected, observed, Some(span));
        let name = self.book.names.text(field.name);
        let note = format!("the type is declared to be of the first kind, and its field {name} is of the second.");
        let error = Box::new(error.with_note(note));
        Err(self.with_context(error))
    }

    /// Checks a parameter's type and brings it into scope; gives the kind of its type.
    fn check_parameter(&mut self, parameter: &Parameter) -> Checked<V> {
        let (domain, kind) = match parameter.ty {
            None => {
                let quant = self.values.add(Value::Quant);
                (quant, self.values.kind(1))
            }
            Some(ty) => {
                let (domain, kind) = self.type_of_type(ty)?;
                if parameter.mode == Mode::Plain(Quantity::Many) {
                    self.require_data(kind, parameter.name, self.span(ty))?;
                }
                (domain, kind)
            }
        };
        self.open_parameter(parameter, domain);
        Ok(kind)
    }

    fn open_parameter(&mut self, parameter: &Parameter, ty: V) {
        let quantity = self.parameter_quantity(parameter.mode, ty);
        let origin = if parameter.mode == Mode::Template { Origin::Template } else { Origin::Parameter };
        self.open(Variable { name: parameter.name, ty, quantity, span: Some(parameter.span), origin });
    }

    fn check_signature(&mut self, id: DefId) -> Checked<()> {
        let def = self.book.def(id);
        let code = def.code;
        let item = self.book.modules[def.module.0 as usize].tree.declarations[def.typed_by].item.clone();
        match item {
            Item::Def { parameters, result: Some(result), .. } => {
                for parameter in &parameters {
                    self.check_parameter(parameter)?;
                }
                let result_type = self.check_type(result)?;
                if code == Code::Foreign {
                    self.require_io(result, result_type)?;
                }
                Ok(())
            }
            Item::Law { clauses, claim } => {
                for clause in &clauses {
                    self.check_clause(clause)?;
                }
                self.check_type(claim).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    fn check_clause(&mut self, clause: &Clause) -> Checked<()> {
        self.check_parameter(&clause.parameter)?;
        if let Some(condition) = clause.condition {
            self.check_type(condition)?;
        }
        Ok(())
    }

    /// A body in another language answers an action.
    fn require_io(&mut self, result: ExprId, ty: V) -> Checked<()> {
        let (head, _) = self.values.spine(ty);
        if matches!(*self.values.get(head), Value::Def(def) if def == self.builtin.io) {
            return Ok(());
        }
        let observed = self.show(ty);
        let span = self.span(result);
        let error = self.mismatch("IO(..), as the answer of a foreign definition", observed, Some(span));
        Err(self.with_context(Box::new(error)))
    }
}
