//! Compression of a recording of trace-cmd.

use std::io::Read;

use flate2::read::ZlibDecoder;

use crate::error::OpenError;
use crate::header::LARGEST_SECTION;

/// Method of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Zlib,
    Zstd,
}

impl Compression {
    /// Returns the method with the name that the file's header states; `None` if the file is not compressed.
    ///
    /// # Errors
    /// Returns an error if the name is unknown.
    pub(crate) fn named(name: &str) -> Result<Option<Compression>, OpenError> {
        match name {
            "none" | "" => Ok(None),
            "zlib" => Ok(Some(Compression::Zlib)),
            "zstd" => Ok(Some(Compression::Zstd)),
            other => Err(OpenError::Compression(other.chars().take(32).collect())),
        }
    }

    /// Expands data. `size` is its expanded size in bytes. Returns `None` if the data is damaged or too large.
    pub(crate) fn expand(self, data: &[u8], size: usize) -> Option<Vec<u8>> {
        if size as u64 > LARGEST_SECTION {
            return None;
        }
        let expanded = match self {
            Compression::Zstd => zstd::bulk::decompress(data, size).ok()?,
            Compression::Zlib => {
                let mut expanded = Vec::new();
                let mut decoder = ZlibDecoder::new(data).take(size as u64 + 1);
                decoder.read_to_end(&mut expanded).ok()?;
                expanded
            }
        };
        (expanded.len() == size).then_some(expanded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_expanded_to_its_stated_size() {
        // The text `aaaaaaaaaa`, compressed by Python's `zlib.compress`.
        let zlib = [
            0x78, 0x9c, 0x4b, 0x4c, 0x84, 0x01, 0x00, 0x14, 0xe1, 0x03, 0xcb,
        ];
        let expand = |size: usize| Compression::Zlib.expand(&zlib, size);
        assert_eq!(expand(10).as_deref(), Some(&b"aaaaaaaaaa"[..]));
        assert_eq!((expand(9), expand(11)), (None, None));
        assert_eq!(Compression::Zlib.expand(&zlib[1..], 10), None);
        assert_eq!(Compression::Zstd.expand(&zlib, 10), None);
        assert_eq!(expand(usize::MAX), None);
        assert!(Compression::named("lzma").is_err());
    }
}
