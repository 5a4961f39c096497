//! Which module each address of a stack lies in.

use etl::Trace;
use tables::{ImageTracker, Options, Table, Tables};

use crate::module_name::module_name;
use crate::watch::{Interrupted, Watch};

/// The modules of a trace by process, address and time; none if they were not asked for.
#[derive(Default)]
pub(crate) struct StackModules {
    known: Option<(Tables, ImageTracker)>,
}

impl StackModules {
    /// Reads them from the trace.
    pub(crate) fn read(trace: &Trace) -> Result<StackModules, Interrupted> {
        let watch = Watch::new("looking for modules", trace.size_bytes());
        let progress = |done: u64| watch.reach(done).is_ok();
        let options = Options {
            progress: &progress,
        };
        let tables = tables::build(trace, &[Table::Images], options).map_err(|_| Interrupted)?;
        let images = ImageTracker::new(&tables.images);
        Ok(StackModules {
            known: Some((tables, images)),
        })
    }

    /// The address as `module+0x123`: file name of the module and offset in it. An address of the
    /// kernel needs no process.
    pub(crate) fn name(&self, pid: Option<u32>, address: u64, time_ns: i64) -> Option<String> {
        let (tables, images) = self.known.as_ref()?;
        let row = images.lookup(pid.unwrap_or(0), address, time_ns)?;
        let module = module_name(tables.images.path.get(row), None)?;
        let offset = address.checked_sub(*tables.images.base_address.get(row)?)?;
        Some(format!("{module}+{offset:#x}"))
    }
}
