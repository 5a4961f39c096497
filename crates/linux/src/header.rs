//! Header of a recording.

use crate::bytes::{Bytes, Order};
use crate::error::OpenError;
use crate::features::feature;

/// Number at the beginning of a file, "PERFILE2" on machines with little-endian numbers.
const MAGIC: &[u8; 8] = b"PERFILE2";

/// Size of the header of a stream, which has only the magic number and this size.
const STREAM: u64 = 16;

/// Size of a file's header.
pub(crate) const SIZE: usize = 104;

/// Part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// Header of a recording.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) order: Order,
    pub(crate) layout: Layout,
}

/// Organisation of a recording.
#[derive(Debug)]
pub(crate) enum Layout {
    /// Descriptions of the events, records, and feature sections.
    File {
        /// Size of an entry of `attributes`.
        attribute_size: u64,
        attributes: Section,
        data: Section,
        /// Numbers of the feature sections, in the order of their entries after the data.
        features: Vec<u32>,
    },
    /// Records only, among them descriptions (`perf record -o -`).
    Stream,
}

/// Returns the byte order of a recording; `None` if the bytes do not begin a recording.
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
    /// Reads the header at the beginning of a recording.
    ///
    /// # Errors
    /// If the bytes do not begin a recording, or the header is impossible.
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
        // Types of events of old versions.
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
