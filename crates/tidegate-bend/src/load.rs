//! The files of a program: the entry, what it imports, and Base.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use crate::base;
use crate::check::DefId;
use crate::diagnostic::{Diagnostic, Failure, Sources, Span};
use crate::hash::NumberMap;
use crate::parser;
use crate::syntax::{Interner, Symbol, Tree};

/// The number of a file among the modules of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ModuleId(pub(crate) u32);

impl ModuleId {
    /// The entry: the file that is checked.
    pub(crate) const ENTRY: ModuleId = ModuleId(0);
    /// The base library.
    pub(crate) const BASE: ModuleId = ModuleId(1);
}

/// A file and what its names may mean.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) tree: Tree,
    pub(crate) aliases: NumberMap<Symbol, ModuleId>,
    /// Laws of this file whose definitions stand in another.
    pub(crate) filled_by: NumberMap<DefId, ModuleId>,
}

/// All files of a program, imports before importers.
pub(crate) struct Loaded {
    pub(crate) sources: Sources,
    pub(crate) names: Interner,
    pub(crate) modules: Vec<Module>,
    /// The order in which modules are declared and checked.
    pub(crate) order: Vec<ModuleId>,
    pub(crate) base_visible: bool,
}

/// A file on the way to being loaded.
enum Visit {
    /// Its imports are being read.
    Open,
    Done(ModuleId),
}

struct Loader {
    loaded: Loaded,
    visits: HashMap<PathBuf, Visit>,
}

/// Reads and parses `path` and all it imports.
pub(crate) fn load(path: &Path, text: Option<String>) -> Result<Loaded, Failure> {
    let text = match text {
        Some(text) => text,
        None => read(path).map_err(|reason| Failure::unreadable(path, reason))?,
    };
    let mut loader = Loader {
        loaded: Loaded {
            sources: Sources::default(),
            names: Interner::new(),
            modules: Vec::new(),
            order: Vec::new(),
            base_visible: false,
        },
        visits: HashMap::new(),
    };
    match loader.program(path, text) {
        Ok(()) => Ok(loader.loaded),
        Err(error) => Err(Failure::Rejected { sources: loader.loaded.sources, errors: vec![*error] }),
    }
}

/// The text of a file without a byte order mark, or a sentence about why there is none.
fn read(path: &Path) -> Result<String, String> {
    if path.is_dir() {
        return Err(String::from("it is a directory; give a .bend file"));
    }
    let bytes = std::fs::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => String::from("no such file"),
        std::io::ErrorKind::PermissionDenied => String::from("permission denied"),
        _ => error.to_string(),
    })?;
    if bytes.len() > u32::MAX as usize / 2 {
        return Err(String::from("it is larger than 2 GiB"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("it is not UTF-8 (byte {at}); save it as UTF-8")
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

impl Loader {
    fn program(&mut self, path: &Path, text: String) -> Result<(), Box<Diagnostic>> {
        let key = canonical(path);
        self.visits.insert(key.clone(), Visit::Open);
        let file = self.loaded.sources.add(path, text);
        let tree = parser::parse(&self.loaded.sources.file(file).text, file, &mut self.loaded.names)?;
        self.add_module(tree);
        self.base()?;
        self.imports(ModuleId::ENTRY, path)?;
        self.loaded.order.push(ModuleId::ENTRY);
        self.visits.insert(key, Visit::Done(ModuleId::ENTRY));
        Ok(())
    }

    fn add_module(&mut self, tree: Tree) -> ModuleId {
        self.loaded.modules.push(Module { tree, aliases: NumberMap::default(), filled_by: NumberMap::default() });
        ModuleId(self.loaded.modules.len() as u32 - 1)
    }

    fn base(&mut self) -> Result<(), Box<Diagnostic>> {
        let file = self.loaded.sources.add("Base", base::SOURCE.concat());
        let tree = parser::parse(&self.loaded.sources.file(file).text, file, &mut self.loaded.names)?;
        let id = self.add_module(tree);
        self.loaded.order.push(id);
        Ok(())
    }

    /// Loads what `module` imports; `path` is its own file.
    fn imports(&mut self, module: ModuleId, path: &Path) -> Result<(), Box<Diagnostic>> {
        let imports = self.loaded.modules[module.0 as usize].tree.imports.clone();
        for import in imports {
            let Some((target, alias)) = import.module else {
                self.loaded.base_visible = true;
                continue;
            };
            let full = path.parent().unwrap_or(Path::new("")).join(&target);
            let id = self.module(&full, &target, import.span)?;
            self.loaded.modules[module.0 as usize].aliases.insert(alias, id);
        }
        Ok(())
    }

    /// The module of a file that an import at `span` spells as `written`.
    fn module(&mut self, path: &Path, written: &str, span: Span) -> Result<ModuleId, Box<Diagnostic>> {
        let key = canonical(path);
        let refuse =
            |expected: &str, observed: String| Err(Box::new(Diagnostic::mismatch(expected, observed, Some(span))));
        match self.visits.get(&key) {
            Some(Visit::Done(id)) => return Ok(*id),
            Some(Visit::Open) => {
                let observed = format!("{written} imports itself, by way of this import");
                return refuse("imports without a cycle", observed);
            }
            None => {}
        }
        if self.visits.len() > MAX_FILES {
            return refuse("a program of fewer files", format!("more than {MAX_FILES}"));
        }
        let text = match read(path) {
            Ok(text) => text,
            Err(reason) => return refuse("a file that can be read", format!("{written}: {reason}")),
        };
        self.visits.insert(key.clone(), Visit::Open);
        let loaded = self.parse_module(path, text);
        if let Ok(id) = loaded {
            self.visits.insert(key, Visit::Done(id));
        }
        loaded
    }

    fn parse_module(&mut self, path: &Path, text: String) -> Result<ModuleId, Box<Diagnostic>> {
        let file = self.loaded.sources.add(tidy(path), text);
        let tree = parser::parse(&self.loaded.sources.file(file).text, file, &mut self.loaded.names)?;
        let id = self.add_module(tree);
        self.imports(id, path)?;
        self.loaded.order.push(id);
        Ok(id)
    }
}

/// More files than this are refused: imports nest on the stack.
const MAX_FILES: usize = 10_000;

fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| tidy(path))
}

/// `a/./b/../c` as `a/c`.
fn tidy(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}
