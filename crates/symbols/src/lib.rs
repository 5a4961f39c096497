//! Resolves addresses of programs and drivers of Windows and Linux to functions, files and lines, on any system.
//!
//! A trace contains addresses and, for each module, the identity of its PDB. This crate finds the PDB and looks up
//! addresses in it. Parsing does no I/O. A [`SymbolPath`] lists the possible locations of a PDB. A finder such as
//! [`Stores`] reads these locations. [`Pdb`] parses the bytes.
//!
//! ```
//! use symbols::write::{Function, write_pdb};
//! use symbols::{PdbId, Stores, Symbolizer, in_store};
//!
//! // A PDB in a symbol store.
//! let store = tempfile::tempdir()?;
//! let id = PdbId::new("tiny.pdb", "9dc487da-0ef9-1033-4c4c-44205044422e".parse()?, 1)?;
//! let file = store.path().join(in_store(&id));
//! std::fs::create_dir_all(file.parent().unwrap())?;
//! let functions = [Function { name: "TinyIsr".into(), rva: 0x1000, size: 0x80 }];
//! std::fs::write(file, write_pdb(&id, "tiny.obj", &functions)?)?;
//!
//! // An address resolved with it.
//! let path = format!("srv*{}", store.path().display()).parse()?;
//! let mut symbolizer = Symbolizer::new(Stores::offline(path));
//! let tiny = symbolizer.add(symbols::Module {
//!     name: "tiny.sys".into(),
//!     time_date_stamp: None,
//!     size: None,
//!     pdb: Some(id),
//!     elf: None,
//! });
//! assert_eq!(symbolizer.name(tiny, 0x1010), "tiny.sys!TinyIsr+0x10");
//! assert_eq!(symbolizer.name(tiny, 0x2000), "tiny.sys+0x2000");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A file of Linux contains its functions ([`Elf`]). Its file with debug information is found by the build id. A kernel
//! of Linux lists its functions ([`KernelSymbols`]).
//!
//! With the feature `network`, [`Stores`] can also use symbol servers, if the caller requests this.

mod code_map;
mod elf;
mod functions;
mod identity;
mod kernel;
mod name_cost;
mod pdb;
#[cfg(feature = "network")]
mod server;
mod stores;
mod symbol_path;
mod symbolizer;
pub mod write;

pub use code_map::CodeMap;
pub use elf::{BuildId, Elf, ElfError, ElfId};
pub use identity::{Module, NotAFileName, PdbId};
pub use kernel::KernelSymbols;
pub use pdb::{Frame, Location, Pdb, PdbError, symbols_named};
pub use stores::Stores;
pub use symbol_path::{Candidate, Form, Place, SymbolPath, SymbolPathError, in_store};
pub use symbolizer::{
    Attempt, ModuleId, NotFound, Outcome, PdbSource, Symbolizer, UnresolvedModule, UnresolvedReason,
};
