//! Which module and function each address of a stack lies in.

use etl::Trace;
use tables::{ImageTracker, Options, Table};

use crate::cli::Failure;
use crate::symbolication::{MissingSymbols, SymbolOptions, Symbolication};
use crate::watch::{Interrupted, Watch};

/// The modules of a trace by process, address and time; none if they were not asked for.
#[derive(Default)]
pub(crate) struct StackModules {
    known: Option<(ImageTracker, Symbolication)>,
}

impl StackModules {
    /// Reads them from the trace.
    pub(crate) fn read(trace: &Trace, symbols: &SymbolOptions) -> Result<StackModules, Failure> {
        let watch = Watch::new("looking for modules", trace.size_bytes());
        let progress = |done: u64| watch.reach(done).is_ok();
        let options = Options {
            progress: &progress,
        };
        let tables = tables::build(trace, &[Table::Images], options).map_err(|_| Interrupted)?;
        let images = ImageTracker::new(&tables.images);
        Ok(StackModules {
            known: Some((images, Symbolication::new(symbols, &tables.images)?)),
        })
    }

    /// The address as `module!function+0x123`, or as `module+0x123` without symbols: file name of
    /// the module, and offset in the function or the module. An address of the kernel needs no
    /// process.
    pub(crate) fn name(&self, pid: Option<u32>, address: u64, time_ns: i64) -> Option<String> {
        let (images, symbols) = self.known.as_ref()?;
        symbols.name(images.lookup(pid.unwrap_or(0), address, time_ns)?, address)
    }

    /// The modules whose symbols were wanted and not found.
    pub(crate) fn missing(&self) -> Vec<MissingSymbols> {
        let known = self.known.as_ref();
        known.map_or_else(Vec::new, |(_, symbols)| symbols.missing())
    }
}
