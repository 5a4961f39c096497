//! Functions of addresses, from PDBs that a symbol path leads to.

use std::env;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use symbols::{Module, ModuleId, PdbId, Stores, SymbolPath, Symbolizer};
use tables::{Images, module_name};

use crate::cli::Failure;

/// The variable that Windows' own tools read the symbol path from.
const VARIABLE: &str = "_NT_SYMBOL_PATH";

/// Where symbols come from. Flattened into the arguments of each command that shows functions.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct SymbolOptions {
    /// Where PDBs are: folders, symbol stores and servers, in the syntax of _NT_SYMBOL_PATH, which
    /// is used if this is absent
    #[arg(long, value_name = "PATH", help_heading = "Symbols")]
    symbols: Option<String>,
    /// Download PDBs from the symbol servers in that path
    #[arg(long, help_heading = "Symbols")]
    allow_network: bool,
}

impl SymbolOptions {
    /// The same with a folder that is looked into first.
    pub(crate) fn with_folder(&self, folder: &Path) -> SymbolOptions {
        let given = self.text();
        let folder = folder.display();
        SymbolOptions {
            symbols: Some(match given.is_empty() {
                true => folder.to_string(),
                false => format!("{folder};{given}"),
            }),
            allow_network: self.allow_network,
        }
    }

    /// Whether the symbol path makes sense.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.path().map(drop)
    }

    /// The symbol path as it is given; empty if none is.
    fn text(&self) -> String {
        match &self.symbols {
            Some(text) => text.clone(),
            None => env::var(VARIABLE).unwrap_or_default(),
        }
    }

    /// Where PDBs are looked for; and on servers, if that is allowed.
    pub(crate) fn stores(&self) -> Result<Stores, Failure> {
        let path = self.path()?;
        Ok(match self.allow_network {
            true => Stores::online(path),
            false => Stores::offline(path),
        })
    }

    fn path(&self) -> Result<SymbolPath, Failure> {
        let path = self.text().parse::<SymbolPath>().map_err(|error| {
            let whence = self.symbols.as_ref().map_or(VARIABLE, |_| "--symbols");
            Failure::Input(format!("{whence}: {error}"))
        })?;
        match &self.symbols {
            Some(_) => check_given(&path).map(|()| path),
            // Of what is set for all tools a part may be absent.
            None => Ok(path),
        }
    }
}

/// Refuses a symbol path of the command line that can lead nowhere.
fn check_given(path: &SymbolPath) -> Result<(), Failure> {
    if path.is_empty() {
        let message = "--symbols: names no place; give a folder with PDBs, a symbol store or \
                       srv*CACHE*https://SERVER";
        return Err(Failure::Input(message.to_owned()));
    }
    match path.folders().find(|folder| !folder.is_dir()) {
        Some(none) => Err(Failure::Input(format!(
            "--symbols: {}: there is no such folder; check the path",
            none.display()
        ))),
        None => Ok(()),
    }
}

/// Names addresses in the rows of the `images` table. A module's PDB is looked for when the first
/// of its addresses is asked for, and every address is looked up once.
pub(crate) struct Symbolication {
    symbolizer: Mutex<Symbolizer>,
    /// Of each image: its module, unless the trace does not name it, and where it is mapped.
    images: Vec<(Option<ModuleId>, u64)>,
    /// Whether there is any place to look for symbols.
    is_asked: bool,
}

impl Symbolication {
    /// For the images of a trace. Nothing is opened yet.
    pub(crate) fn new(options: &SymbolOptions, images: &Images) -> Result<Symbolication, Failure> {
        let is_asked = !options.path()?.is_empty();
        let mut symbolizer = Symbolizer::new(options.stores()?);
        let rows = (0..images.len()).map(|row| {
            let module = module(images, row).map(|module| symbolizer.add(module));
            (module, images.base_address[row])
        });
        Ok(Symbolication {
            images: rows.collect(),
            symbolizer: Mutex::new(symbolizer),
            is_asked,
        })
    }

    /// An address in the image of that row as `module!function+0x1f`, the file name of the module
    /// and the function that it lies in (not one inlined there); as `module+0x1f` where the function
    /// is not known. Nothing if the trace does not name the image.
    pub(crate) fn name(&self, image: usize, address: u64) -> Option<String> {
        let (module, base) = self.images.get(image)?;
        let rva = u32::try_from(address.checked_sub(*base)?).ok()?;
        let mut symbolizer = self
            .symbolizer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Some(symbolizer.name((*module)?, rva))
    }

    /// The modules whose symbols were needed and are missing, each with its PDB and where that was
    /// looked for. None if no symbol path was given: then nobody asked for symbols.
    pub(crate) fn missing(&self) -> Vec<MissingSymbols> {
        if !self.is_asked {
            return Vec::new();
        }
        let symbolizer = self
            .symbolizer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let missing = symbolizer.missing().map(|missing| MissingSymbols {
            module: missing.module.name.clone(),
            pdb: missing.module.pdb.as_ref().map(ToString::to_string),
            why: missing.why.to_string(),
        });
        missing.collect()
    }
}

/// A module without symbols.
pub(crate) struct MissingSymbols {
    /// Its file name.
    pub(crate) module: String,
    /// Its PDB with the key that symbol stores have it under, if the trace says.
    pub(crate) pdb: Option<String>,
    /// Why there are none: where they were looked for, and what was there.
    pub(crate) why: String,
}

/// What the trace knows of the file of an image.
fn module(images: &Images, row: usize) -> Option<Module> {
    let name = module_name(images.path.get(row), None)?;
    let pdb = || {
        let guid = images.pdb_guid.get(row)?.parse().ok()?;
        PdbId::new(images.pdb_path.get(row)?, guid, images.pdb_age.get(row)?).ok()
    };
    Some(Module {
        name: name.to_owned(),
        time_date_stamp: images.time_date_stamp.get(row),
        size: Some(images.size_bytes[row]),
        pdb: pdb(),
    })
}
