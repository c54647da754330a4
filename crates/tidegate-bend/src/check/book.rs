//! Everything that the files of a program declare, by name and by number.

use super::value::V;
use crate::base::Primitive;
use crate::diagnostic::{Diagnostic, Span};
use crate::hash::NumberMap;
use crate::load::{Module, ModuleId};
use crate::syntax::{Body, ExprId, Interner, Item, Mode, Parameter, Quantity, Symbol};

/// A definition or a law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefId(pub(crate) u32);

/// A datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataId(pub(crate) u32);

/// A constructor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConstructorId(pub(crate) u32);

/// What a name outside all binders means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Global {
    Def(DefId),
    Data(DataId),
}

/// Where the code of a definition is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Code {
    /// A law without a definition, or a type that Base keeps abstract.
    Open,
    /// In Bend.
    Term(ExprId),
    /// In the runtime.
    Primitive(Primitive),
    /// In C or JavaScript, which this runtime does not run.
    Foreign,
}

/// A definition or a law.
#[derive(Debug)]
pub(crate) struct Def {
    pub(crate) module: ModuleId,
    pub(crate) name: Symbol,
    pub(crate) span: Span,
    /// The declarations of its module that give its type and its code (the same but for a law).
    pub(crate) typed_by: usize,
    pub(crate) coded_by: Option<usize>,
    pub(crate) code: Code,
    pub(crate) is_unsafe: bool,
    /// How many parameters its code names.
    pub(crate) arity: usize,
    /// Its type, once it is known.
    pub(crate) ty: Option<V>,
    /// It computes a type.
    pub(crate) is_type: bool,
    /// Which parameters take `~`.
    pub(crate) templates: Vec<bool>,
}

/// A datatype.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) module: ModuleId,
    pub(crate) name: Symbol,
    pub(crate) declared_by: usize,
    pub(crate) parameters: usize,
    /// How many leading parameters are quantities.
    pub(crate) quantities: usize,
    pub(crate) constructors: Vec<ConstructorId>,
    /// The type of the family, once it is known.
    pub(crate) ty: Option<V>,
}

/// A constructor.
#[derive(Debug)]
pub(crate) struct Constructor {
    pub(crate) name: Symbol,
    pub(crate) module: ModuleId,
    pub(crate) data: DataId,
    /// Its place among the constructors of its type.
    pub(crate) tag: u32,
    pub(crate) fields: usize,
    /// How many of its fields exist at run time.
    pub(crate) live_fields: usize,
    /// From the parameters of its type and its fields, once it is known.
    pub(crate) ty: Option<V>,
}

/// The names of a program.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) names: Interner,
    pub(crate) modules: Vec<Module>,
    pub(crate) defs: Vec<Def>,
    pub(crate) datas: Vec<Data>,
    pub(crate) constructors: Vec<Constructor>,
    globals: NumberMap<(ModuleId, Symbol), Global>,
    constructor_names: NumberMap<(ModuleId, Symbol), ConstructorId>,
    /// Some file imports Base.
    pub(crate) base_visible: bool,
    /// The text of each file, for messages.
    pub(crate) texts: Vec<std::sync::Arc<str>>,
}

impl Book {
    pub(crate) fn new(
        names: Interner,
        modules: Vec<Module>,
        base_visible: bool,
        texts: Vec<std::sync::Arc<str>>,
    ) -> Self {
        Book { names, modules, base_visible, texts, ..Book::default() }
    }

    pub(crate) fn def(&self, id: DefId) -> &Def {
        &self.defs[id.0 as usize]
    }

    pub(crate) fn data(&self, id: DataId) -> &Data {
        &self.datas[id.0 as usize]
    }

    pub(crate) fn constructor(&self, id: ConstructorId) -> &Constructor {
        &self.constructors[id.0 as usize]
    }

    /// Declares what `module` declares.
    pub(crate) fn declare_module(&mut self, module: ModuleId) -> Result<(), Box<Diagnostic>> {
        let count = self.modules[module.0 as usize].tree.declarations.len();
        for at in 0..count {
            let declaration = &self.modules[module.0 as usize].tree.declarations[at];
            match declaration.item {
                Item::Type { .. } => self.declare_type(module, at)?,
                Item::Law { .. } => self.declare_law(module, at)?,
                Item::Def { .. } => self.declare_def(module, at)?,
            }
        }
        Ok(())
    }

    fn add_global(
        &mut self,
        module: ModuleId,
        name: Symbol,
        span: Span,
        global: Global,
    ) -> Result<(), Box<Diagnostic>> {
        let text = self.names.text(name);
        let first = text.split_once('.').map(|(first, _)| first);
        let alias = first.and_then(|first| self.names.find(first));
        let aliases = &self.modules[module.0 as usize].aliases;
        if let Some(alias) = alias.filter(|alias| aliases.contains_key(alias)) {
            let alias = self.names.text(alias);
            let message = format!("a fresh name ({alias} in {text} names an import)");
            return Err(Diagnostic::message(message, Some(span)).into());
        }
        if self.globals.insert((module, name), global).is_some() {
            let message = format!("a fresh name ({text} is declared twice)");
            return Err(Diagnostic::message(message, Some(span)).into());
        }
        Ok(())
    }

    fn declare_type(&mut self, module: ModuleId, at: usize) -> Result<(), Box<Diagnostic>> {
        let declaration = self.modules[module.0 as usize].tree.declarations[at].clone();
        let Item::Type { parameters, constructors, .. } = declaration.item else {
            return Ok(());
        };
        let id = DataId(self.datas.len() as u32);
        self.add_global(module, declaration.name, declaration.name_span, Global::Data(id))?;
        let mut ids = Vec::new();
        for (tag, constructor) in constructors.iter().enumerate() {
            let key = (module, constructor.name);
            let new = ConstructorId(self.constructors.len() as u32);
            if self.constructor_names.insert(key, new).is_some() {
                let name = self.names.text(constructor.name);
                let message = format!("a fresh constructor name ({name} is declared twice)");
                return Err(Diagnostic::message(message, Some(constructor.span)).into());
            }
            ids.push(new);
            self.constructors.push(Constructor {
                name: constructor.name,
                module,
                data: id,
                tag: tag as u32,
                fields: constructor.fields.len(),
                live_fields: constructor
                    .fields
                    .iter()
                    .filter(|field| field.mode != Mode::Plain(Quantity::None))
                    .count(),
                ty: None,
            });
        }
        let is_quantity = |parameter: &Parameter| self.is_quantity(module, parameter);
        let quantities = parameters.iter().take_while(|p| is_quantity(p)).count();
        self.datas.push(Data {
            module,
            name: declaration.name,
            declared_by: at,
            parameters: parameters.len(),
            quantities,
            constructors: ids,
            ty: None,
        });
        Ok(())
    }

    fn is_quantity(&self, module: ModuleId, parameter: &Parameter) -> bool {
        let tree = &self.modules[module.0 as usize].tree;
        parameter.ty.is_none_or(|ty| *tree.expr(ty) == crate::syntax::Expr::Quant)
    }

    fn declare_law(&mut self, module: ModuleId, at: usize) -> Result<(), Box<Diagnostic>> {
        let declaration = &self.modules[module.0 as usize].tree.declarations[at];
        let (name, span) = (declaration.name, declaration.name_span);
        let Item::Law { clauses, .. } = &declaration.item else {
            return Ok(());
        };
        let arity = clauses.iter().take_while(|clause| !clause.exists).count();
        let id = DefId(self.defs.len() as u32);
        self.defs.push(Def {
            module,
            name,
            span,
            typed_by: at,
            coded_by: None,
            code: Code::Open,
            is_unsafe: false,
            arity,
            ty: None,
            is_type: false,
            templates: Vec::new(),
        });
        self.add_global(module, name, span, Global::Def(id))
    }

    fn declare_def(&mut self, module: ModuleId, at: usize) -> Result<(), Box<Diagnostic>> {
        let declaration = &self.modules[module.0 as usize].tree.declarations[at];
        let (name, span) = (declaration.name, declaration.name_span);
        let Item::Def { is_unsafe, partial, parameters, result, body } = &declaration.item else {
            return Ok(());
        };
        let arity = parameters.len();
        let is_unsafe = *is_unsafe || *partial;
        let typed = result.is_some();
        let bare = parameters.iter().all(|p| p.ty.is_none() && p.mode == Mode::Plain(Quantity::None));
        let code = match body {
            Body::Term(term) => Code::Term(*term),
            Body::Foreign(_) if module == ModuleId::BASE => {
                let name = self.names.text(name);
                let primitive = Primitive::named(name);
                Code::Primitive(primitive.unwrap_or_else(|| panic!("no primitive {name}")))
            }
            Body::Foreign(_) => Code::Foreign,
        };
        if !typed {
            return self.fill_law(module, at, (name, span), arity, bare, is_unsafe, code);
        }
        let id = DefId(self.defs.len() as u32);
        self.defs.push(Def {
            module,
            name,
            span,
            typed_by: at,
            coded_by: Some(at),
            code,
            is_unsafe,
            arity,
            ty: None,
            is_type: false,
            templates: Vec::new(),
        });
        self.add_global(module, name, span, Global::Def(id))
    }

    /// A definition without `->` gives a law its code; the law may be an import's.
    #[allow(clippy::too_many_arguments)]
    fn fill_law(
        &mut self,
        module: ModuleId,
        at: usize,
        (name, span): (Symbol, Span),
        arity: usize,
        bare: bool,
        is_unsafe: bool,
        code: Code,
    ) -> Result<(), Box<Diagnostic>> {
        let text = self.names.text(name).to_owned();
        let missing = || {
            let message = format!(
                "'->' and a result type (only a definition that fills a law leaves them out; no open law is named {text})"
            );
            Err(Diagnostic::message(message, Some(span)).into())
        };
        let Some(Global::Def(id)) = self.global(module, name) else {
            return missing();
        };
        let def = &mut self.defs[id.0 as usize];
        if def.code != Code::Open || def.coded_by.is_some() || def.module == ModuleId::BASE && module != ModuleId::BASE
        {
            return missing();
        }
        if !bare {
            let message = format!("bare parameter names (the law {text} gives their types)");
            return Err(Diagnostic::message(message, Some(span)).into());
        }
        if def.module != module {
            let owner = def.module;
            self.modules[owner.0 as usize].filled_by.insert(id, module);
        }
        let def = &mut self.defs[id.0 as usize];
        def.code = code;
        def.coded_by = Some(at);
        def.arity = arity;
        def.is_unsafe = is_unsafe;
        Ok(())
    }

    /// The module whose tree holds the code of a definition.
    pub(crate) fn code_module(&self, id: DefId) -> ModuleId {
        let owner = self.def(id).module;
        let filled = &self.modules[owner.0 as usize].filled_by;
        filled.get(&id).copied().unwrap_or(owner)
    }

    /// What `name` means in `module`.
    pub(crate) fn global(&self, module: ModuleId, name: Symbol) -> Option<Global> {
        self.lookup(module, name, &self.globals)
    }

    /// The constructor that `name` means in `module`.
    pub(crate) fn constructor_named(&self, module: ModuleId, name: Symbol) -> Option<ConstructorId> {
        self.lookup(module, name, &self.constructor_names)
    }

    /// An alias first, then the module's own names, then Base's.
    fn lookup<T: Copy>(&self, module: ModuleId, name: Symbol, table: &NumberMap<(ModuleId, Symbol), T>) -> Option<T> {
        let text = self.names.text(name);
        if let Some((first, rest)) = text.split_once('.') {
            let alias = self.names.find(first);
            let aliases = &self.modules[module.0 as usize].aliases;
            if let Some(target) = alias.and_then(|alias| aliases.get(&alias)) {
                let rest = self.names.find(rest)?;
                return table.get(&(*target, rest)).copied();
            }
        }
        let own = table.get(&(module, name)).copied();
        own.or_else(|| {
            let visible = self.base_visible || module == ModuleId::BASE;
            table.get(&(ModuleId::BASE, name)).copied().filter(|_| visible)
        })
    }

    /// A name of Base, whether or not the program imports it.
    pub(crate) fn base_global(&self, name: &str) -> Option<Global> {
        let name = self.names.find(name)?;
        self.globals.get(&(ModuleId::BASE, name)).copied()
    }

    /// A constructor of Base.
    pub(crate) fn base_constructor(&self, name: &str) -> Option<ConstructorId> {
        let name = self.names.find(name)?;
        self.constructor_names.get(&(ModuleId::BASE, name)).copied()
    }

    /// A name in scope that differs from `text` by little.
    pub(crate) fn closest_name(&self, module: ModuleId, text: &str) -> Option<String> {
        let visible = |owner: ModuleId| owner == module || (owner == ModuleId::BASE && self.base_visible);
        if text.len() < 3 {
            return None;
        }
        let folded = text.to_lowercase();
        let mut close: Vec<&str> = self
            .globals
            .keys()
            .filter(|(owner, _)| visible(*owner))
            .map(|(_, name)| self.names.text(*name))
            .filter(|name| name.len().abs_diff(text.len()) <= 1 && is_close(&name.to_lowercase(), &folded))
            .collect();
        close.sort_unstable();
        close.first().map(|name| (*name).to_owned())
    }

    /// A name as the reader of `module` would write it.
    pub(crate) fn shown(&self, module: ModuleId, owner: ModuleId, name: Symbol) -> String {
        let text = self.names.text(name);
        if owner == module || owner == ModuleId::BASE {
            return text.to_owned();
        }
        let aliases = &self.modules[module.0 as usize].aliases;
        match aliases.iter().find(|(_, target)| **target == owner) {
            Some((alias, _)) => format!("{}.{text}", self.names.text(*alias)),
            None => text.to_owned(),
        }
    }
}

/// Whether one edit (a letter more, less or other) makes one text the other.
fn is_close(a: &str, b: &str) -> bool {
    let common = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a.as_bytes()[common..], &b.as_bytes()[common..]);
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    a.len() - tail <= 1 && b.len() - tail <= 1
}
