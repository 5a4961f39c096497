//! Symbolizer: resolves addresses of many modules. Each address is resolved only once.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::elf::{BuildId, Elf, ElfError, ElfId};
use crate::pdb::{Location, Pdb, PdbError};
use crate::{Module, PdbId};

/// Maximum number of open PDBs. An open PDB keeps in memory all parts of its file that were read so far.
const MAX_OPEN: usize = 16;

/// Source of PDBs. An example is [`Stores`](crate::Stores), which searches a symbol path.
pub trait PdbSource: Send {
    /// Finds and opens a PDB.
    ///
    /// # Errors
    /// Returns an error if there is no PDB with this identity. The error lists the locations that were
    /// searched.
    fn find(&mut self, id: &PdbId) -> Result<Pdb, NotFound>;

    /// Finds and opens a file of Linux. The default implementation finds no file.
    ///
    /// # Errors
    /// Returns an error if there is no file with this build id. The error lists the locations that were searched.
    fn find_elf(&mut self, _id: &ElfId, _build_id: &BuildId) -> Result<Elf, NotFound> {
        Err(NotFound::default())
    }
}

/// Error: a PDB was not found.
#[derive(Debug, Default)]
pub struct NotFound {
    /// Locations that were searched, in the order of the search.
    pub attempts: Vec<Attempt>,
}

/// A location that was searched without success.
#[derive(Debug)]
pub struct Attempt {
    /// Folder, server or file.
    pub place: String,
    /// Reason why the location did not provide the PDB.
    pub outcome: Outcome,
}

/// Reason why a location did not provide a PDB.
#[derive(Debug, thiserror::Error)]
pub enum Outcome {
    /// The location does not have the file.
    #[error("not found")]
    Absent,
    /// The location is a server, and network access is not allowed.
    #[error("not used: network access is not allowed")]
    NetworkNotAllowed,
    /// The location has a file that cannot be used.
    #[error("{0}")]
    Refused(#[from] PdbError),
    /// The location has a file of Linux that cannot be used.
    #[error("{0}")]
    RefusedElf(ElfError),
    /// The location could not be read.
    #[error("{0}")]
    Failed(String),
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.attempts.is_empty() {
            return f.write_str("there is no symbol path");
        }
        for (index, Attempt { place, outcome }) in self.attempts.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{place}: {outcome}")?;
        }
        Ok(())
    }
}

/// Reason why the addresses of a module cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum UnresolvedReason {
    /// The trace does not identify the PDB of the module.
    #[error("the trace does not identify its PDB")]
    Unidentified,
    /// The recording does not have the build id of the module.
    #[error("the recording does not have its build id; record with `perf record --buildid-mmap`")]
    NoBuildId,
    /// The module is of Linux, but it is not a file. Examples are the kernel and `[vdso]`.
    #[error(
        "it is not a file; to name kernel functions, add the lines of /proc/kallsyms to FILE.proc next to the \
         recording, or copy /proc/kallsyms to a folder of the symbol path"
    )]
    NotAFile,
    /// The program generated the code while it ran.
    #[error(
        "the program generated this code; to name its functions, let the program write perf's map (for example \
         `node --perf-basic-prof`, `python3 -X perf`), and add the map to FILE.proc next to the recording: \
         grep -sH . /tmp/perf-*.map >> FILE.proc"
    )]
    Generated,
    /// The PDB or the file of Linux was not found.
    #[error("{0}")]
    NotFound(NotFound),
    /// The PDB is damaged.
    #[error("its PDB {0}")]
    Damaged(PdbError),
}

/// Id of a module in a [`Symbolizer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(u32);

/// A module whose addresses cannot be resolved.
#[derive(Debug)]
pub struct UnresolvedModule<'a> {
    /// Module with the addresses that cannot be resolved.
    pub module: &'a Module,
    /// Reason why the addresses of the module cannot be resolved.
    pub why: &'a UnresolvedReason,
}

/// Resolver of addresses to functions, files and lines, for many modules.
///
/// The symbolizer looks up each address only once. It searches the PDB of a module when the first address of
/// the module is resolved.
pub struct Symbolizer {
    source: Box<dyn PdbSource>,
    modules: Vec<Entry>,
    by_module: HashMap<Module, ModuleId>,
    found: FxHashMap<(ModuleId, u32), Option<Arc<Location>>>,
    /// Modules whose PDB is open. The most recently used module is last.
    open: VecDeque<(ModuleId, Symbols)>,
}

/// Opened symbols of a module.
enum Symbols {
    Pdb(Pdb),
    Elf(Elf),
}

impl Symbols {
    fn locate(&self, rva: u32) -> Result<Option<Location>, PdbError> {
        match self {
            Symbols::Pdb(pdb) => pdb.locate(rva),
            Symbols::Elf(elf) => Ok(elf.locate(rva)),
        }
    }
}

struct Entry {
    module: Module,
    unresolved: Option<UnresolvedReason>,
}

impl Symbolizer {
    /// Creates a symbolizer without modules.
    pub fn new(source: impl PdbSource + 'static) -> Symbolizer {
        Symbolizer {
            source: Box::new(source),
            modules: Vec::new(),
            by_module: HashMap::new(),
            found: FxHashMap::default(),
            open: VecDeque::new(),
        }
    }

    /// Adds a module and returns its id. Equal modules get the same id.
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

    /// Resolves many addresses in advance for [`Symbolizer::locate`]. The addresses are resolved module by module. This
    /// is faster if the number of needed PDBs is larger than the number of PDBs that can be open at a time.
    pub fn prepare(&mut self, addresses: impl IntoIterator<Item = (ModuleId, u32)>) {
        let mut addresses: Vec<_> = addresses.into_iter().collect();
        addresses.sort_unstable();
        addresses.dedup();
        for (module, rva) in addresses {
            self.locate(module, rva);
        }
    }

    /// Looks up an address. `rva` is the address relative to the module. For a file of Linux, `rva` is the offset in
    /// the file. Returns `None` if the symbols of the module are missing (see [`Symbolizer::missing`]), or if no
    /// function of the module contains the address.
    pub fn locate(&mut self, module: ModuleId, rva: u32) -> Option<Arc<Location>> {
        if let Some(known) = self.found.get(&(module, rva)) {
            return known.clone();
        }
        let location = self.look_up(module, rva).map(Arc::new);
        self.found.insert((module, rva), location.clone());
        location
    }

    /// Formats an address as `module!function+0x1f`. The number is the offset in the function. If the
    /// function is unknown, formats the address as `module+0x1f`. The number is then the offset in the
    /// module.
    pub fn name(&mut self, module: ModuleId, rva: u32) -> String {
        match self.function(module, rva) {
            Some((name, 0)) => name,
            Some((name, offset)) => format!("{name}+{offset:#x}"),
            None => format!("{}+{rva:#x}", self.modules[module.0 as usize].module.name),
        }
    }

    /// Returns the function that contains an address, as `module!function`, and the offset of the address in the function.
    /// Returns `None` if the function is unknown.
    pub fn function(&mut self, module: ModuleId, rva: u32) -> Option<(String, u32)> {
        let location = self.locate(module, rva)?;
        let name = location.frames.last()?.function.as_deref()?;
        let offset = rva.checked_sub(location.function_rva)?;
        let module = &self.modules[module.0 as usize].module.name;
        Some((format!("{module}!{name}"), offset))
    }

    /// Returns the modules whose addresses cannot be resolved, in the order in which they were added.
    pub fn missing(&self) -> impl Iterator<Item = UnresolvedModule<'_>> {
        self.modules.iter().filter_map(|entry| {
            Some(UnresolvedModule {
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
        let symbols = match at.and_then(|at| self.open.remove(at)) {
            Some((_, symbols)) => Ok(symbols),
            None => open(&mut *self.source, &entry.module),
        };
        let location = symbols.and_then(|symbols| {
            let location = symbols.locate(rva).map_err(UnresolvedReason::Damaged)?;
            if self.open.len() == MAX_OPEN {
                self.open.pop_front();
            }
            self.open.push_back((module, symbols));
            Ok(location)
        });
        location.unwrap_or_else(|why| {
            entry.unresolved = Some(why);
            None
        })
    }
}

/// Finds and opens the symbols of a module.
fn open(source: &mut dyn PdbSource, module: &Module) -> Result<Symbols, UnresolvedReason> {
    match (&module.pdb, &module.elf) {
        (Some(id), _) => source
            .find(id)
            .map(Symbols::Pdb)
            .map_err(UnresolvedReason::NotFound),
        (None, Some(id)) => {
            if id.is_generated {
                return Err(UnresolvedReason::Generated);
            }
            if !id.path.starts_with('/') {
                return Err(UnresolvedReason::NotAFile);
            }
            let build_id = id.build_id.as_ref().ok_or(UnresolvedReason::NoBuildId)?;
            let elf = source.find_elf(id, build_id).map(Symbols::Elf);
            elf.map_err(UnresolvedReason::NotFound)
        }
        (None, None) => Err(UnresolvedReason::Unidentified),
    }
}

impl fmt::Debug for Symbolizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Symbolizer of {} modules", self.modules.len())
    }
}
