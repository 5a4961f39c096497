//! Addresses of many modules, each resolved once.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::pdb::{Location, Pdb, PdbError};
use crate::{Module, PdbId};

/// How many PDBs are open at once: each keeps the parts it has read in memory.
const MAX_OPEN: usize = 16;

/// Brings PDBs. [`Stores`](crate::Stores) does so from the places of a symbol path.
pub trait PdbSource: Send {
    /// Finds and opens a PDB.
    ///
    /// # Errors
    /// If none of that identity can be found: where it was looked for.
    fn find(&mut self, id: &PdbId) -> Result<Pdb, NotFound>;
}

/// A PDB was not found.
#[derive(Debug, Default)]
pub struct NotFound {
    /// Where it was looked for, in order.
    pub attempts: Vec<Attempt>,
}

/// A look for a PDB.
#[derive(Debug)]
pub struct Attempt {
    /// The folder, server or file.
    pub place: String,
    /// Why it did not bring the PDB.
    pub outcome: Outcome,
}

/// Why a place did not bring a PDB.
#[derive(Debug, thiserror::Error)]
pub enum Outcome {
    /// It has none.
    #[error("does not have it")]
    Absent,
    /// It is a server, and the network may not be used.
    #[error("not asked: the network was not allowed")]
    NetworkNotAllowed,
    /// What is there cannot be used.
    #[error("{0}")]
    Refused(#[from] PdbError),
    /// It could not be looked at.
    #[error("{0}")]
    Failed(String),
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.attempts.is_empty() {
            return f.write_str("no symbol path was given");
        }
        for (index, Attempt { place, outcome }) in self.attempts.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{place}: {outcome}")?;
        }
        Ok(())
    }
}

/// Why a module's addresses have no functions.
#[derive(Debug, thiserror::Error)]
pub enum Unresolved {
    /// The trace does not say which PDB describes it.
    #[error("the trace does not say which PDB describes it")]
    Unidentified,
    /// Its PDB was not found.
    #[error("{0}")]
    NotFound(NotFound),
    /// Its PDB turned out to be damaged.
    #[error("its PDB {0}")]
    Damaged(PdbError),
}

/// A module in a [`Symbolizer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(u32);

/// A module whose addresses were asked for in vain.
#[derive(Debug)]
pub struct Missing<'a> {
    /// The module.
    pub module: &'a Module,
    /// Why.
    pub why: &'a Unresolved,
}

/// Resolves addresses of modules to functions, files and lines.
///
/// Every address is looked up once, and a module's PDB is looked for when its first address is
/// asked for.
pub struct Symbolizer {
    source: Box<dyn PdbSource>,
    modules: Vec<Entry>,
    by_module: HashMap<Module, ModuleId>,
    found: FxHashMap<(ModuleId, u32), Option<Arc<Location>>>,
    /// Modules whose PDB is open, the one used last at the end.
    open: VecDeque<(ModuleId, Pdb)>,
}

struct Entry {
    module: Module,
    unresolved: Option<Unresolved>,
}

impl Symbolizer {
    /// One that knows no module yet.
    pub fn new(source: impl PdbSource + 'static) -> Symbolizer {
        Symbolizer {
            source: Box::new(source),
            modules: Vec::new(),
            by_module: HashMap::new(),
            found: FxHashMap::default(),
            open: VecDeque::new(),
        }
    }

    /// Adds a module. Equal modules are one.
    pub fn add(&mut self, module: Module) -> ModuleId {
        let next = ModuleId(self.modules.len() as u32);
        let id = *self.by_module.entry(module.clone()).or_insert(next);
        if id == next {
            self.modules.push(Entry {
                module,
                unresolved: None,
            });
        }
        id
    }

    /// Resolves many addresses, so that [`Symbolizer::locate`] has their answers at hand. That is
    /// quicker than one by one where more PDBs are needed than are kept open.
    pub fn prepare(&mut self, addresses: impl IntoIterator<Item = (ModuleId, u32)>) {
        let mut addresses: Vec<_> = addresses.into_iter().collect();
        addresses.sort_unstable();
        addresses.dedup();
        for (module, rva) in addresses {
            self.locate(module, rva);
        }
    }

    /// What is known of an address, relative to its module. Nothing if the module's PDB is missing
    /// (see [`Symbolizer::missing`]) or knows no function there.
    pub fn locate(&mut self, module: ModuleId, rva: u32) -> Option<Arc<Location>> {
        if let Some(known) = self.found.get(&(module, rva)) {
            return known.clone();
        }
        let location = self.look_up(module, rva).map(Arc::new);
        self.found.insert((module, rva), location.clone());
        location
    }

    /// The address as `module!function+0x1f`, with the function that it lies in and its offset
    /// there; as `module+0x1f` where the function is unknown.
    pub fn name(&mut self, module: ModuleId, rva: u32) -> String {
        let location = self.locate(module, rva);
        let module = &self.modules[module.0 as usize].module.name;
        let function = location.as_deref().and_then(|location| {
            let name = location.frames.last()?.function.as_deref()?;
            Some((name, rva.checked_sub(location.function_rva)?))
        });
        match function {
            Some((name, 0)) => format!("{module}!{name}"),
            Some((name, offset)) => format!("{module}!{name}+{offset:#x}"),
            None => format!("{module}+{rva:#x}"),
        }
    }

    /// The modules whose addresses were asked for in vain, in the order they were added.
    pub fn missing(&self) -> impl Iterator<Item = Missing<'_>> {
        self.modules.iter().filter_map(|entry| {
            Some(Missing {
                module: &entry.module,
                why: entry.unresolved.as_ref()?,
            })
        })
    }

    fn look_up(&mut self, module: ModuleId, rva: u32) -> Option<Location> {
        let entry = &mut self.modules[module.0 as usize];
        if entry.unresolved.is_some() {
            return None;
        }
        let at = self.open.iter().position(|(open, _)| *open == module);
        let pdb = match at.and_then(|at| self.open.remove(at)) {
            Some((_, pdb)) => Ok(pdb),
            None => match &entry.module.pdb {
                None => Err(Unresolved::Unidentified),
                Some(id) => self.source.find(id).map_err(Unresolved::NotFound),
            },
        };
        let found = pdb.and_then(|pdb| {
            let location = pdb.locate(rva).map_err(Unresolved::Damaged)?;
            if self.open.len() == MAX_OPEN {
                self.open.pop_front();
            }
            self.open.push_back((module, pdb));
            Ok(location)
        });
        found.unwrap_or_else(|why| {
            entry.unresolved = Some(why);
            None
        })
    }
}

impl fmt::Debug for Symbolizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Symbolizer of {} modules", self.modules.len())
    }
}
