//! Names as SQL gives them, for people.

use crate::{Identities, file_name};

/// Names functions.
pub trait Functions: Send + Sync {
    /// The function at an address within the image of that row, `ntoskrnl.exe!KeSetEvent+0x1f` as a
    /// rule; the module and an offset if symbols are missing. Nothing if there is no such image.
    fn name(&self, image_row: u32, address: u64) -> Option<String>;
}

impl Identities {
    /// What `process(process_row)` gives.
    pub fn process_label(&self, row: Option<u32>) -> Option<String> {
        let row = row.filter(|row| (*row as usize) < self.process_rows())?;
        let process = self.process(Some(row), None);
        Some(format!("{} ({})", process.name.unwrap_or("?"), process.id?))
    }

    /// What `module(image_row)` gives.
    pub fn module_label(&self, image_row: Option<u32>) -> Option<&str> {
        let path = self.images.path.get(image_row? as usize)?;
        Some(file_name(path)).filter(|name| !name.is_empty())
    }

    /// What `symbol(image_row, address)` gives.
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
