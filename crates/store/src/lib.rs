//! Storage of Arrow tables in files: the file format, the cache folder of the files, and the key
//! under which the tables of given input files are found again.
//!
//! This crate knows nothing about traces. A table is described by its name, its Arrow schema and
//! its sorted column ([`TableSpec`]). The caller supplies the rows.

mod cache_folder;
mod error;
mod input_files;
mod packing;
mod scratch_folder;
mod table_dir;
mod table_file;

pub use cache_folder::{CacheFolder, CacheUsage};
pub use error::Error;
pub use input_files::{Continue, InputFiles};
pub use scratch_folder::ScratchFolder;
pub use table_dir::{NewTableFile, TableDir, TableFileHandle};
pub use table_file::{Corrupt, RowGroup, TableFile, TableSpec, TableWriter};
