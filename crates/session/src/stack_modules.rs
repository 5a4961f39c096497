//! Names of the modules and functions at the addresses of a stack.

use etl::Trace;
use tables::{ImageTracker, Options, Table};

use crate::{Error, MissingSymbols, SymbolOptions, Symbolication, TraceTables};

/// Modules of a trace by process, address and time; empty if names were not requested.
#[derive(Debug, Default)]
pub struct StackModules {
    known: Option<(ImageTracker, Symbolication)>,
}

impl StackModules {
    /// Reads the modules from the trace.
    ///
    /// # Errors
    /// Returns an error if the symbol path is wrong or the progress callback cancelled the work.
    pub fn read(
        trace: &Trace,
        symbols: &SymbolOptions,
        options: Options<'_>,
    ) -> Result<StackModules, Error> {
        let tables = import_windows::build(trace, &[Table::Images], options)?;
        let images = ImageTracker::new(&tables.images);
        Ok(StackModules {
            known: Some((images, Symbolication::of_images(symbols, &tables.images)?)),
        })
    }

    /// Reads the modules from the tables of a trace.
    ///
    /// # Errors
    /// Returns an error if the symbol path is wrong, or the table of images cannot be made or read.
    pub fn of_tables(tables: &TraceTables, symbols: &SymbolOptions) -> Result<StackModules, Error> {
        let images = tables.identities()?.images;
        Ok(StackModules {
            known: Some((
                ImageTracker::new(&images),
                Symbolication::new(symbols, tables.store(), &images)?,
            )),
        })
    }

    /// Formats the address as `module!function+0x123`, or as `module+0x123` if there are no symbols. `module`
    /// is the file name of the module. `0x123` is the offset in the function or module. For an address of the
    /// kernel, `pid` may be `None`. Returns `None` if names were not requested, or if the trace names no module at
    /// the address.
    pub fn name(&self, pid: Option<u32>, address: u64, time_ns: i64) -> Option<String> {
        let (images, symbols) = self.known.as_ref()?;
        symbols.name(images.lookup(pid.unwrap_or(0), address, time_ns)?, address)
    }

    /// Returns the modules whose symbols were requested but not found.
    pub fn missing(&self) -> Vec<MissingSymbols> {
        let known = self.known.as_ref();
        known.map_or_else(Vec::new, |(_, symbols)| symbols.missing())
    }
}
