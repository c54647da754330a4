//! A whole program: every declaration checked, then its `main`.

use super::affinity::Affinity;
use super::book::{Book, Code, DefId, Global};
use super::recursion::Calls;
use super::scope::Scope;
use super::value::{Value, Values, VarId, V};
use super::{Builtin, Checked, Checker, DataId, Origin, Variable};
use crate::diagnostic::Diagnostic;
use crate::elaborated::{Elaborated, TermId};
use crate::load::ModuleId;
use crate::syntax::{ExprId, Item, Quantity};

/// What a check passes over, to be told to the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Notice {
    /// A proof: its names were read, its steps not checked.
    ProofSkipped(DefId),
    /// A definition that is checked but for a proof inside it.
    InnerProofSkipped(DefId),
    /// In it a comparison of types was let pass: it hangs on what is not computed.
    Undecided(DefId),
    /// The same in the declaration of a type.
    UndecidedData(DataId),
    /// Marked unsafe: neither its recursion nor the kinds of its reusable binders are checked.
    Unsafe(DefId),
    /// Its body is C or JavaScript.
    Foreign(DefId),
    /// A law that no definition fills.
    Open(DefId),
}

/// The code of a definition, checked.
#[derive(Debug)]
pub(crate) struct CheckedDef {
    /// The parameters that exist at run time.
    pub(crate) parameters: Vec<VarId>,
    pub(crate) body: TermId,
}

/// What a check found out.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<Diagnostic>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) elaborated: Elaborated,
    /// The code of each definition that has one in Bend.
    pub(crate) code: Vec<Option<CheckedDef>>,
    pub(crate) main: Option<DefId>,
}

/// Checks a program; `order` lists its modules, imports first.
pub(crate) fn check(book: &mut Book, order: &[ModuleId], needs_main: bool) -> Findings {
    let mut errors = Vec::new();
    for &module in order {
        if let Err(error) = book.declare_module(module) {
            errors.push(*error);
        }
    }
    let mut findings =
        Findings { errors, notices: Vec::new(), elaborated: Elaborated::default(), code: Vec::new(), main: None };
    if !findings.errors.is_empty() {
        return findings;
    }
    let builtin = Builtin::find(book);
    let mut checker = Checker {
        book,
        builtin,
        values: Values::default(),
        elaborated: Elaborated::default(),
        variables: Vec::new(),
        known: Default::default(),
        scope: Scope::new(ModuleId::ENTRY),
        locals: Vec::new(),
        affinity: Affinity::default(),
        dead: 0,
        lenient: false,
        closed_from: None,
        current: None,
        calls: Calls::default(),
        notices: Vec::new(),
        proofs: Vec::new(),
        fuel: 0,
        computing: 0,
        evaluating: 0,
        constructor_types: Default::default(),
        field_types: Default::default(),
        reduced: Default::default(),
        compared: Default::default(),
    };
    checker.program(order, needs_main, &mut findings);
    findings.elaborated = std::mem::take(&mut checker.elaborated);
    findings
}

impl Checker<'_> {
    fn program(&mut self, order: &[ModuleId], needs_main: bool, findings: &mut Findings) {
        for &module in order {
            self.declare_types(module);
        }
        for &module in order {
            self.check_declared_types(module, &mut findings.errors);
        }
        for at in 0..self.book.defs.len() {
            let code = self.def(DefId(at as u32)).unwrap_or_else(|error| {
                findings.errors.push(*error);
                None
            });
            findings.code.push(code);
        }
        findings.errors.extend(self.circles());
        self.current = None;
        self.scope = Scope::new(ModuleId::ENTRY);
        self.locals.clear();
        if needs_main && findings.errors.is_empty() {
            match self.main() {
                Ok(main) => findings.main = Some(main),
                Err(error) => findings.errors.push(*error),
            }
        }
        findings.notices = std::mem::take(&mut self.notices);
        findings.notices.retain(|&notice| match notice {
            // Nothing of these is said to be checked; the lines for them tell.
            Notice::Undecided(id) => {
                self.proofs.binary_search(&id).is_err()
                    && (self.book.def(id).code != Code::Open || self.book.def(id).is_type)
            }
            Notice::InnerProofSkipped(id) => self.proofs.binary_search(&id).is_err(),
            _ => true,
        });
        findings.notices.extend(self.standing_notices());
        findings.notices.sort_unstable();
        findings.notices.dedup();
        findings.errors.sort_by_key(|error| {
            let span = error.span.unwrap_or_default();
            let entry_last = if span.file == 0 { u32::MAX } else { span.file };
            (error.span.is_none(), entry_last, span.start)
        });
    }

    /// Notices that hang on declarations, not on their code.
    fn standing_notices(&self) -> Vec<Notice> {
        let mut notices = Vec::new();
        for (at, def) in self.book.defs.iter().enumerate() {
            if def.module == ModuleId::BASE {
                continue;
            }
            let id = DefId(at as u32);
            match def.code {
                Code::Open if !def.is_type => notices.push(Notice::Open(id)),
                Code::Foreign => notices.push(Notice::Foreign(id)),
                _ => {}
            }
            if def.is_unsafe {
                notices.push(Notice::Unsafe(id));
            }
        }
        notices
    }

    /// Checks the code of a definition.
    fn def(&mut self, id: DefId) -> Checked<Option<CheckedDef>> {
        let Code::Term(body) = self.book.def(id).code else {
            return Ok(None);
        };
        let module = self.module_of(id);
        self.enter(module, self.book.def(id).name, Some(id));
        let Some(ty) = self.book.def(id).ty else {
            return Ok(None);
        };
        let (parameters, result) = self.open_parameters(id, ty)?;
        let live = parameters
            .iter()
            .copied()
            .filter(|&parameter| self.variable(parameter).quantity != Quantity::None)
            .collect();
        if let Some(current) = &mut self.current {
            current.parameters = parameters;
        }
        let body = self.def_body(id, body, result)?;
        Ok(Some(CheckedDef { parameters: live, body }))
    }

    /// Opens the parameters that the code of a definition names.
    fn open_parameters(&mut self, id: DefId, ty: V) -> Checked<(Vec<VarId>, V)> {
        let module = self.module_of(id);
        let at = self.book.def(id).coded_by.unwrap_or_default();
        let Item::Def { parameters, .. } = self.book.modules[module.0 as usize].tree.declarations[at].item.clone()
        else {
            return Ok((Vec::new(), ty));
        };
        let mut ids = Vec::new();
        let mut ty = ty;
        for (at, parameter) in parameters.iter().enumerate() {
            self.refuel();
            ty = self.whnf(ty);
            let Value::Pi(quantity, _, domain, codomain) = *self.values.get(ty) else {
                let name = self.def_name(id);
                let plural = if at == 1 { "" } else { "s" };
                let message = format!("at most {at} parameter{plural} (the law {name} has no more)");
                return Err(Box::new(self.message(message, Some(parameter.span))));
            };
            let is_template = self.book.def(id).templates.get(at).copied().unwrap_or(false);
            let variable = self.open(Variable {
                name: parameter.name,
                ty: domain,
                quantity,
                span: Some(parameter.span),
                origin: if is_template { Origin::Template } else { Origin::Parameter },
            });
            ids.push(variable);
            let value = self.values.var(variable);
            ty = self.values.instantiate(codomain, value);
        }
        Ok((ids, ty))
    }

    fn def_body(&mut self, id: DefId, body: ExprId, result: V) -> Checked<TermId> {
        if self.is_proposition(result) {
            self.notices.push(Notice::ProofSkipped(id));
            self.proofs.push(id);
            self.lenient = true;
            let any = self.values.any();
            self.in_dead(|checker| checker.check(body, any, None))?;
            return Ok(self.erased());
        }
        self.refuel();
        let kind = self.whnf(result);
        if matches!(self.values.get(kind), Value::Kind(_)) {
            self.in_dead(|checker| checker.check(body, result, None))?;
            return Ok(self.erased());
        }
        let body = self.check(body, result, None)?;
        self.close(0, 0)?;
        Ok(body)
    }

    /// The definition that a run starts with.
    fn main(&mut self) -> Checked<DefId> {
        let name = self.book.names.intern("main");
        let found = match self.book.global(ModuleId::ENTRY, name) {
            Some(Global::Def(id)) => id,
            _ => {
                let error = Diagnostic::mismatch("a definition of main", "no main", None);
                return Err(Box::new(error.with_note(
                    "a program starts at its main: write 'def main() -> IO(Unit): ..' (a file that others import is checked with --library).",
                )));
            }
        };
        let def = self.book.def(found);
        let (span, code) = (def.span, def.code);
        if code == Code::Open {
            let error = Diagnostic::mismatch("a definition of main", "a law that no definition fills", Some(span));
            return Err(Box::new(error));
        }
        let Some(ty) = def.ty else { return Ok(found) };
        self.refuel();
        let whnf = self.whnf(ty);
        let wrong = match self.values.get(whnf) {
            Value::Pi(..) => Some("main is run without arguments: the program's own come from IO.args."),
            Value::Kind(_) | Value::Quant => Some("a type is no value to run or print."),
            _ => None,
        };
        let Some(note) = wrong else { return Ok(found) };
        let observed = self.show(ty);
        let mut error = Diagnostic::mismatch(
            "main without parameters, of type IO(A) or of a type that can be printed",
            observed,
            Some(span),
        );
        error.definition = Some(String::from("main"));
        Err(Box::new(error.with_note(note)))
    }
}

impl Builtin {
    /// Looks up in Base what the language itself means.
    fn find(book: &Book) -> Builtin {
        let data = |name: &str| match book.base_global(name) {
            Some(Global::Data(id)) => id,
            _ => panic!("Base has no type {name}"),
        };
        let def = |name: &str| match book.base_global(name) {
            Some(Global::Def(id)) => id,
            _ => panic!("Base has no definition {name}"),
        };
        let constructor = |name: &str| {
            let found = book.base_constructor(name);
            found.unwrap_or_else(|| panic!("Base has no constructor {name}"))
        };
        Builtin {
            nat: data("Nat"),
            string: data("String"),
            char: data("Char"),
            unit: data("Unit"),
            empty: data("Empty"),
            sigma: data("Sigma"),
            u32: def("U32"),
            f32: def("F32"),
            io: def("IO"),
            io_bind: def("IO.bind"),
            zero: constructor("Zero"),
            succ: constructor("Succ"),
            nil: constructor("Nil"),
            con: constructor("Con"),
            tuple: constructor("Tuple"),
            chr: constructor("Chr"),
            snil: constructor("SNil"),
            scon: constructor("SCon"),
            pair: def("Pair"),
            or_type: def("Or"),
            exists: def("Exists"),
            append: def("String.append"),
            and: def("Bool.and"),
            or: def("Bool.or"),
            array_new: def("Array.new"),
            array_get: def("Array.get"),
            array_set: def("Array.set"),
        }
    }
}
