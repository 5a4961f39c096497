//! Labels of processes, modules and functions. The SQL functions return these labels.

use crate::{Identities, file_name};

/// Source of the names of functions.
pub trait Functions: Send + Sync {
    /// Returns the name of the function at `address`, for example `ntoskrnl.exe!KeSetEvent+0x1f`. The address
    /// is within the image that the row `image_row` of `images` describes. If symbols are missing, returns
    /// the module and an offset. Returns `None` if there is no such image.
    fn name(&self, image_row: u32, address: u64) -> Option<String>;

    /// Returns the function that contains the address, for example `ntoskrnl.exe!KeSetEvent`. Returns `None` if symbols
    /// are missing.
    fn function(&self, image_row: u32, address: u64) -> Option<String>;
}

impl Identities {
    /// Returns the label of the SQL function `process(process_row)`.
    pub fn process_label(&self, row: Option<u32>) -> Option<String> {
        let row = row.filter(|row| (*row as usize) < self.process_rows())?;
        let process = self.process(Some(row), None);
        Some(format!("{} ({})", process.name.unwrap_or("?"), process.id?))
    }

    /// Returns the label that the SQL function `module(image_row)` returns.
    pub fn module_label(&self, image_row: Option<u32>) -> Option<&str> {
        let path = self.images.path.get(image_row? as usize)?;
        Some(file_name(path)).filter(|name| !name.is_empty())
    }

    /// Returns the label that the SQL function `symbol(image_row, address)` returns.
    pub fn symbol(
        &self,
        functions: Option<&dyn Functions>,
        image_row: Option<u32>,
        address: u64,
    ) -> String {
        let bases = &self.images.base_address;
        let known = image_row.and_then(|row| Some((row, *bases.get(row as usize)?)));
        let Some((row, base)) = known else {
            return format!("{address:#x}");
        };
        let named = functions.and_then(|functions| functions.name(row, address));
        named.unwrap_or_else(|| {
            let module = self.module_label(Some(row)).unwrap_or("?");
            format!("{module}+{:#x}", address.wrapping_sub(base))
        })
    }
}
