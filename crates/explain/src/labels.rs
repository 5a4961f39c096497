//! Names as SQL gives them, for the cells of evidence.

use tables::file_name;

use crate::Case;

impl Case<'_> {
    /// What `process(process_row)` gives.
    pub fn process_label(&self, row: Option<u32>) -> Option<String> {
        let row = row.filter(|row| (*row as usize) < self.names.process_rows())?;
        let process = self.names.process(Some(row), None);
        Some(format!("{} ({})", process.name.unwrap_or("?"), process.id?))
    }

    /// What `module(image_row)` gives.
    pub fn module_label(&self, image_row: Option<u32>) -> Option<&str> {
        let path = self.names.images.path.get(image_row? as usize)?;
        Some(file_name(path)).filter(|name| !name.is_empty())
    }

    /// What `symbol(image_row, address)` gives.
    pub fn symbol(&self, image_row: Option<u32>, address: u64) -> String {
        let bases = &self.names.images.base_address;
        let known = image_row.and_then(|row| Some((row, *bases.get(row as usize)?)));
        let Some((row, base)) = known else {
            return format!("{address:#x}");
        };
        self.function(row, address).unwrap_or_else(|| {
            let module = self.module_label(Some(row)).unwrap_or("?");
            format!("{module}+{:#x}", address.wrapping_sub(base))
        })
    }
}

/// What `wait_reason(code)` gives.
pub(crate) fn wait_reason(code: u8) -> String {
    events::kernel::wait_reason(code).map_or_else(|| code.to_string(), str::to_owned)
}
