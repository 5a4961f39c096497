//! Modules of a trace, indexed by their rows in the table `images`.

use tables::{ImagesView, Table, file_name};

use super::part::Part;
use crate::Error;

/// Modules of a trace.
#[derive(Debug, Default)]
pub(super) struct Modules(Vec<Module>);

/// File name and base address of a module.
#[derive(Debug)]
struct Module {
    name: Option<String>,
    base_address: u64,
}

impl Modules {
    /// Reads the modules of the trace.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub(super) fn read(part: &Part<'_>) -> Result<Modules, Error> {
        let mut modules = Modules::default();
        for batch in part.rows(Table::Images, &["path", "base_address"])? {
            let batch = batch?;
            let view = ImagesView::new(&batch)?;
            modules.0.extend((0..batch.num_rows()).map(|row| Module {
                name: view.path.get(row).map(|path| file_name(path).to_owned()),
                base_address: view.base_address[row],
            }));
        }
        Ok(modules)
    }

    /// Formats an address as `module+0x123`, or as a number if its module is unknown.
    pub(super) fn place(&self, image_row: Option<u32>, address: u64) -> String {
        let module = image_row.and_then(|row| self.0.get(row as usize));
        let named = module.and_then(|module| {
            let offset = address.checked_sub(module.base_address)?;
            Some(format!("{}+{offset:#x}", module.name.as_deref()?))
        });
        named.unwrap_or_else(|| format!("{address:#x}"))
    }
}
