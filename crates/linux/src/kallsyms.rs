//! Kernel's symbols in a recording of trace-cmd.

use std::io;

use files::Source;

use crate::compression::Compression;
use crate::header::Section;

/// Place of the kernel's symbols in a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kallsyms {
    pub(crate) place: Section,
    /// Size of the expanded symbols in bytes; `None` if they are not compressed.
    pub(crate) expanded: Option<(Compression, usize)>,
    /// Offset of the text in the expanded symbols.
    pub(crate) text: usize,
}

impl Kallsyms {
    /// Reads the symbols. Returns `None` if they are damaged.
    pub(crate) fn read(self, source: &dyn Source) -> io::Result<Option<Vec<u8>>> {
        let Some(mut bytes) = self.place.read(source)? else {
            return Ok(None);
        };
        if let Some((compression, size)) = self.expanded {
            let Some(expanded) = compression.expand(&bytes, size) else {
                return Ok(None);
            };
            bytes = expanded;
        }
        bytes.drain(..self.text.min(bytes.len()));
        Ok(Some(bytes))
    }
}
