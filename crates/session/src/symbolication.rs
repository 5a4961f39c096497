//! Names of functions. They come from PDBs and files of Linux that are found through a symbol path, and from the
//! symbols of a kernel of Linux.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use symbols::{
    BuildId, CodeMap, ElfId, KernelSymbols, Module, ModuleId, PdbId, Stores, SymbolPath,
    SymbolPathError, Symbolizer,
};
use tables::{CodeMaker, Functions, Images, Store, is_generated, module_name};

/// Environment variable from which the tools of Windows read the symbol path.
const VARIABLE: &str = "_NT_SYMBOL_PATH";

/// Command-line option that sets the symbol path.
const OPTION: &str = "--symbols";

/// Name of the file with the symbols of a kernel of Linux. The file can be in a folder of the symbol path, for example
/// as a copy of `/proc/kallsyms`.
const KERNEL_FILE: &str = "kallsyms";

/// Options that state where symbols are searched.
#[derive(Clone, Debug, Default)]
pub struct SymbolOptions {
    /// Symbol path in the syntax of the environment variable `_NT_SYMBOL_PATH`. If `None`, the value of that
    /// variable is used.
    pub path: Option<String>,
    /// True if PDBs may be downloaded from the servers of the path.
    #[cfg(feature = "network")]
    pub allow_network: bool,
}

/// Error of a wrong symbol path.
#[derive(Debug, thiserror::Error)]
pub enum SymbolOptionsError {
    /// The path cannot be parsed.
    #[error("{origin}: {source}")]
    Syntax {
        /// The option or environment variable that gave the path.
        origin: &'static str,
        /// Reason why the path cannot be parsed.
        source: SymbolPathError,
    },
    /// The path that the command line gives is empty.
    #[error(
        "--symbols: the path is empty; give a folder with PDBs, a symbol store or srv*CACHE*https://SERVER"
    )]
    Empty,
    /// A folder of the path that the command line gives does not exist.
    #[error("--symbols: {}: there is no such folder; check the path", .0.display())]
    NoFolder(PathBuf),
}

impl SymbolOptions {
    /// Returns these options with a folder that is searched first.
    pub fn with_folder(&self, folder: &Path) -> SymbolOptions {
        let text = self.text();
        let folder = folder.display();
        let mut options = self.clone();
        options.path = Some(if text.is_empty() {
            folder.to_string()
        } else {
            format!("{folder};{text}")
        });
        options
    }

    /// Checks the symbol path.
    ///
    /// # Errors
    /// Returns an error if the path is wrong.
    pub fn check(&self) -> Result<(), SymbolOptionsError> {
        self.symbol_path().map(drop)
    }

    /// Returns the symbol path of the option. If the option is not set, returns the symbol path of the
    /// environment variable. If neither is set, returns an empty text.
    fn text(&self) -> String {
        match &self.path {
            Some(text) => text.clone(),
            None => env::var(VARIABLE).unwrap_or_default(),
        }
    }

    /// Returns the symbol stores of the symbol path. Servers are used only if the network is allowed.
    ///
    /// # Errors
    /// Returns an error if the path is wrong.
    pub fn stores(&self) -> Result<Stores, SymbolOptionsError> {
        let path = self.symbol_path()?;
        #[cfg(feature = "network")]
        if self.allow_network {
            return Ok(Stores::online(path));
        }
        Ok(Stores::offline(path))
    }

    fn symbol_path(&self) -> Result<SymbolPath, SymbolOptionsError> {
        let path = self.text().parse::<SymbolPath>().map_err(|source| {
            let origin = self.path.as_ref().map_or(VARIABLE, |_| OPTION);
            SymbolOptionsError::Syntax { origin, source }
        })?;
        match &self.path {
            Some(_) => check_given(&path).map(|()| path),
            // The environment variable is set for all tools. It may name folders that do not exist on this
            // machine.
            None => Ok(path),
        }
    }
}

/// Refuses a symbol path of the command line that is empty or names a folder that does not exist.
fn check_given(path: &SymbolPath) -> Result<(), SymbolOptionsError> {
    if path.is_empty() {
        return Err(SymbolOptionsError::Empty);
    }
    match path.folders().find(|folder| !folder.is_dir()) {
        Some(none) => Err(SymbolOptionsError::NoFolder(none.to_owned())),
        None => Ok(()),
    }
}

/// Names of the addresses in the images of a trace. The PDB of a module is searched when an address in that
/// module is first requested. Every address is looked up only once.
pub struct Symbolication {
    symbolizer: Mutex<Symbolizer>,
    /// Module and base address of each image, by row in `images`. The module is `None` if the trace does not
    /// name it.
    images: Vec<(Option<ModuleId>, u64)>,
    kernel: Option<Kernel>,
    generated: GeneratedCode,
    /// True if the symbol path is not empty.
    is_asked: bool,
}

impl Symbolication {
    /// Prepares names for the images of the tables in `store`. Reads the symbols of a kernel of Linux, and opens no
    /// other file yet.
    ///
    /// # Errors
    /// Returns an error if the symbol path is wrong.
    pub fn new(
        options: &SymbolOptions,
        store: &Store,
        images: &Images,
    ) -> Result<Symbolication, SymbolOptionsError> {
        let mut symbolication = Symbolication::of_images(options, images)?;
        if store.info().is_linux() {
            let path = options.symbol_path()?;
            symbolication.kernel = Kernel::read(&path, store, images);
            symbolication.generated = GeneratedCode::read(&path, store, images);
        }
        Ok(symbolication)
    }

    /// Prepares names for the images of a trace of Windows. Opens no file yet.
    ///
    /// # Errors
    /// Returns an error if the symbol path is wrong.
    pub(crate) fn of_images(
        options: &SymbolOptions,
        images: &Images,
    ) -> Result<Symbolication, SymbolOptionsError> {
        let is_asked = !options.symbol_path()?.is_empty();
        let mut symbolizer = Symbolizer::new(options.stores()?);
        let rows = (0..images.len()).map(|row| {
            let module = module(images, row).map(|module| symbolizer.add(module));
            (module, images.base_address[row])
        });
        Ok(Symbolication {
            images: rows.collect(),
            symbolizer: Mutex::new(symbolizer),
            is_asked,
            kernel: None,
            generated: GeneratedCode::default(),
        })
    }

    /// Formats an address in an image as `module!function+0x1f`, or as `module+0x1f` if the function is
    /// unknown. `image` is the row in `images`. `module` is the file name of the module. `function` is the
    /// function that contains the address. Inlined functions are not named. Returns `None` if the trace does
    /// not name the image.
    pub fn name(&self, image: usize, address: u64) -> Option<String> {
        if let Some((function, offset)) = self.in_text(image, address) {
            return Some(match offset {
                0 => function,
                offset => format!("{function}+{offset:#x}"),
            });
        }
        let (module, rva) = self.place(image, address)?;
        Some(self.symbolizer().name(module, rva))
    }

    /// Returns the function that contains an address in an image, as `module!function`. `image` is the row in `images`.
    /// Returns `None` if the function is unknown.
    pub fn function(&self, image: usize, address: u64) -> Option<String> {
        if let Some((function, _)) = self.in_text(image, address) {
            return Some(function);
        }
        let (module, rva) = self.place(image, address)?;
        let (function, _) = self.symbolizer().function(module, rva)?;
        Some(function)
    }

    /// Returns the function that contains an address, and the offset in it, from a list of the kernel's functions or of
    /// those that a program generated.
    fn in_text(&self, image: usize, address: u64) -> Option<(String, u64)> {
        let of_kernel = (self.kernel.as_ref()).and_then(|kernel| kernel.function(image, address));
        of_kernel.or_else(|| self.generated.function(image, address))
    }

    fn place(&self, image: usize, address: u64) -> Option<(ModuleId, u32)> {
        let (module, base) = self.images.get(image)?;
        let rva = u32::try_from(address.checked_sub(*base)?).ok()?;
        Some(((*module)?, rva))
    }

    fn symbolizer(&self) -> MutexGuard<'_, Symbolizer> {
        let symbolizer = self.symbolizer.lock();
        symbolizer.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the modules whose symbols were needed but not found, each with its PDB and the reason. The
    /// list is empty if the symbol path is empty.
    pub fn missing(&self) -> Vec<MissingSymbols> {
        if !self.is_asked {
            return Vec::new();
        }
        let symbolizer = self.symbolizer();
        let missing = symbolizer.missing().map(|missing| MissingSymbols {
            module: missing.module.name.clone(),
            pdb: (missing.module.pdb.as_ref().map(ToString::to_string))
                .or_else(|| missing.module.elf.as_ref().map(ToString::to_string)),
            why: missing.why.to_string(),
        });
        missing.collect()
    }
}

/// Symbols of the recorded kernel of Linux. The text of a recording also has those of programs.
struct Kernel {
    symbols: KernelSymbols,
    /// Names of all modules, by row in `images`. The symbols of a kernel have no address of a program.
    modules: HashMap<usize, String>,
}

/// Maximum number of bytes of a list of kernel symbols. Lists of kernels with many modules have 20 MB.
const MOST_KERNEL_SYMBOLS: u64 = 256 << 20;

impl Kernel {
    /// Reads the symbols of the recorded kernel. Searches the folders of the symbol path first, then the recording and
    /// the file next to the recording. Ignores symbols of a kernel that was loaded at another address than the recorded
    /// kernel. Returns `None` if no symbols remain.
    fn read(path: &SymbolPath, store: &Store, images: &Images) -> Option<Kernel> {
        let is_kernel = |row: &usize| images.process_id.get(*row) == Some(0);
        let starts = (0..images.len()).filter(is_kernel);
        let starts: Vec<u64> = starts.map(|row| images.base_address[row]).collect();
        let files = path.folders().map(|folder| folder.join(KERNEL_FILE));
        let files = files.filter_map(|file| files::read_file(&file, MOST_KERNEL_SYMBOLS).ok());
        let recorded = std::iter::once_with(|| store.recording().kernel_symbols().ok().flatten());
        let mut texts = files.chain(recorded.flatten());
        let symbols = texts.find_map(|text| {
            let symbols = KernelSymbols::parse(&text);
            let mut its = starts.iter().map(|start| symbols.are_of(*start));
            (starts.is_empty() || its.any(|is_its| is_its)).then_some(symbols)
        })?;
        let modules = (0..images.len()).filter_map(|row| {
            let name = module_name(images.path.get(row), None)?;
            Some((row, name.to_owned()))
        });
        Some(Kernel {
            symbols,
            modules: modules.collect(),
        })
    }

    /// Returns the function that contains an address, and the offset of the address in the function.
    fn function(&self, image: usize, address: u64) -> Option<(String, u64)> {
        let module = self.modules.get(&image)?;
        let (function, offset) = self.symbols.find(address)?;
        Some((format!("{module}!{function}"), offset))
    }
}

/// Functions that programs of Linux generated while they ran.
#[derive(Default)]
struct GeneratedCode {
    maps: BTreeMap<u32, CodeMap>,
    /// Process and name of each image with generated code, by row in `images`.
    modules: HashMap<usize, (u32, String)>,
}

/// Maximum number of bytes of all maps in folders of the symbol path.
const MOST_BYTES: u64 = 64 << 20;

/// Maximum number of functions of all maps. The map of a large program has 100,000 functions.
const MOST_GENERATED: usize = 1 << 20;

impl GeneratedCode {
    /// Reads the maps of the processes with generated code. A file `perf-PID.map` in a folder of the symbol path
    /// replaces what belongs to the recording.
    fn read(path: &SymbolPath, store: &Store, images: &Images) -> GeneratedCode {
        let rows = (0..images.len()).filter_map(|row| {
            let path = images.path.get(row).filter(|path| is_generated(path))?;
            let maker = CodeMaker {
                process_id: images.process_id.get(row)?,
                start_ns: images.load_ns.get(row),
                end_ns: images.unload_ns.get(row),
            };
            Some((row, path, maker))
        });
        // The rows are in the order of time. A map is of the last process with its id, and of its first code.
        let mut makers: BTreeMap<u32, CodeMaker> = BTreeMap::new();
        for (_, _, found) in rows.clone() {
            let maker = makers.entry(found.process_id).or_insert(found);
            if maker.end_ns != found.end_ns {
                *maker = found;
            }
        }
        if makers.is_empty() {
            return GeneratedCode::default();
        }
        let modules = rows.filter(|(_, _, found)| makers[&found.process_id].end_ns == found.end_ns);
        let modules = modules.map(|(row, path, found)| {
            let module = module_name(Some(path), None).unwrap_or_default();
            (row, (found.process_id, module.to_owned()))
        });
        let modules = modules.collect();
        let mut texts = store.recording().code_maps(&makers).unwrap_or_default();
        let mut left_bytes = MOST_BYTES;
        for process_id in makers.into_keys() {
            let name = format!("perf-{process_id}.map");
            let files = path.folders().map(|folder| folder.join(&name));
            let mut texts_of_files =
                files.filter_map(|file| files::read_file(&file, left_bytes).ok());
            if let Some(text) = texts_of_files.next() {
                left_bytes -= text.len() as u64;
                texts.insert(process_id, text);
            }
        }
        let mut left = MOST_GENERATED;
        let maps = texts.into_iter().map(|(process_id, text)| {
            let map = CodeMap::parse(&text, left);
            left -= map.functions();
            (process_id, map)
        });
        GeneratedCode {
            maps: maps.collect(),
            modules,
        }
    }

    /// Returns the function that contains an address, and the offset of the address in the function.
    fn function(&self, image: usize, address: u64) -> Option<(String, u64)> {
        let (process_id, module) = self.modules.get(&image)?;
        let (function, offset) = self.maps.get(process_id)?.find(address)?;
        Some((format!("{module}!{function}"), offset))
    }
}

impl std::fmt::Debug for Symbolication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbolication").finish_non_exhaustive()
    }
}

impl Functions for Symbolication {
    fn name(&self, image_row: u32, address: u64) -> Option<String> {
        Symbolication::name(self, image_row as usize, address)
    }

    fn function(&self, image_row: u32, address: u64) -> Option<String> {
        Symbolication::function(self, image_row as usize, address)
    }
}

/// A module without symbols.
#[derive(Clone, Debug)]
pub struct MissingSymbols {
    /// File name of the module.
    pub module: String,
    /// Name of the PDB, with the key that symbol stores use. For a file of Linux, its path and its build id. `None` if
    /// the trace does not contain this information.
    pub pdb: Option<String>,
    /// Reason why the symbols are missing: the folders and servers that were searched, and the result.
    pub why: String,
}

impl MissingSymbols {
    /// Formats warnings about these modules. The first warning names the first module and its reason. If
    /// there are more modules, a second warning gives their number.
    pub fn warnings(missing: &[MissingSymbols]) -> Vec<String> {
        let Some(MissingSymbols { module, pdb, why }) = missing.first() else {
            return Vec::new();
        };
        let pdb = pdb
            .as_ref()
            .map_or(String::new(), |pdb| format!(" ({pdb})"));
        let mut warnings = vec![format!("no symbols of {module}{pdb}: {why}")];
        if missing.len() > 1 {
            warnings.push(format!("no symbols of {} more modules", missing.len() - 1));
        }
        warnings
    }
}

/// Returns the module of an image: the facts that the trace contains about the image's file. Facts that the trace
/// does not contain are `None`. Returns `None` if the trace does not name the file.
fn module(images: &Images, row: usize) -> Option<Module> {
    let name = module_name(images.path.get(row), None)?;
    let pdb = || {
        let guid = images.pdb_guid.get(row)?.parse().ok()?;
        PdbId::new(images.pdb_path.get(row)?, guid, images.pdb_age.get(row)?).ok()
    };
    // Only paths of Linux start with `/`. Code of Linux that is in no file has a name in brackets, such as `[vdso]`.
    let elf = || {
        let path = images
            .path
            .get(row)
            .filter(|path| path.starts_with(['/', '[']))?;
        let build_id = images.build_id.get(row).and_then(BuildId::parse);
        Some(ElfId {
            path: path.to_owned(),
            build_id,
            is_generated: is_generated(path),
        })
    };
    Some(Module {
        name: name.to_owned(),
        time_date_stamp: images.time_date_stamp.get(row),
        size: Some(images.size_bytes[row]),
        pdb: pdb(),
        elf: elf(),
    })
}
