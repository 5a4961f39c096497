//! Header at the start of a recording.

use std::io;

use files::Source;

use crate::bytes::{Bytes, Order};
use crate::error::OpenError;
use crate::features::feature;

/// First eight bytes of a file, as a little-endian machine writes them. A big-endian machine writes them in the
/// reverse order.
const MAGIC: &[u8; 8] = b"PERFILE2";

/// Size in bytes of the header of a stream. This header contains only the magic number and this size.
const STREAM: u64 = 16;

/// Size in bytes of the header of a file.
pub(crate) const SIZE: usize = 104;

/// Byte range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// Maximum size in bytes of a section that is read. The descriptions of all tracepoints of a kernel have about 3 MB.
pub(crate) const LARGEST_SECTION: u64 = 64 << 20;

impl Section {
    /// Reads the bytes. Returns `None` if the range is too large, or ends after the end of the file. An empty range may be
    /// anywhere.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
    pub(crate) fn read(self, source: &dyn Source) -> io::Result<Option<Vec<u8>>> {
        if self.size == 0 {
            return Ok(Some(Vec::new()));
        }
        let end = self.offset.checked_add(self.size);
        if self.size > LARGEST_SECTION || end.is_none_or(|end| end > source.len()) {
            return Ok(None);
        }
        let mut bytes = vec![0; self.size as usize];
        let read = source.read_at(self.offset, &mut bytes)?;
        Ok((read == bytes.len()).then_some(bytes))
    }
}

/// Header of a recording: its byte order, and the places of its parts.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) order: Order,
    pub(crate) layout: Layout,
}

/// Form of a recording.
#[derive(Debug)]
pub(crate) enum Layout {
    /// A file with separate sections for the descriptions of the events, the records, and the features.
    File {
        /// Size in bytes of one entry in the section `attributes`.
        attribute_size: u64,
        attributes: Section,
        data: Section,
        /// Numbers of the feature sections. A list of their places, in the same order, follows the section `data`.
        features: Vec<u32>,
    },
    /// A stream of records (`perf record -o -`). Some of the records contain the descriptions.
    Stream,
}

/// Returns the byte order of a recording. Returns `None` if `first` are not the first bytes of a recording.
pub(crate) fn order(first: &[u8]) -> Option<Order> {
    let mut reversed = *MAGIC;
    reversed.reverse();
    match first.first_chunk()? {
        magic if magic == MAGIC => Some(Order::Little),
        magic if *magic == reversed => Some(Order::Big),
        _ => None,
    }
}

impl Header {
    /// Reads the header of a recording that begins with the bytes `first`.
    ///
    /// # Errors
    /// Returns an error if `first` are not the first bytes of a recording, or if they are fewer than the header
    /// needs.
    pub(crate) fn read(first: &[u8]) -> Result<Header, OpenError> {
        let order = order(first).ok_or(OpenError::Foreign)?;
        let too_short = || OpenError::Header("the file is too short");
        let mut bytes = Bytes::new(&first[MAGIC.len()..], order);
        let mut number = || bytes.u64().ok_or_else(too_short);
        let size = number()?;
        if size == STREAM {
            let layout = Layout::Stream;
            return Ok(Header { order, layout });
        }
        let attribute_size = number()?;
        let mut section = || {
            let (offset, size) = (number()?, number()?);
            Ok::<_, OpenError>(Section { offset, size })
        };
        let (attributes, data) = (section()?, section()?);
        // Old versions of perf listed the types of events in this section. It is not needed.
        section()?;
        let mut features = Vec::new();
        for first in (0..feature::COUNT).step_by(64) {
            let bits = number()?;
            features.extend(
                (0..64)
                    .filter(|bit| bits >> bit & 1 != 0)
                    .map(|bit| first + bit),
            );
        }
        Ok(Header {
            order,
            layout: Layout::File {
                attribute_size,
                attributes,
                data,
                features,
            },
        })
    }
}
