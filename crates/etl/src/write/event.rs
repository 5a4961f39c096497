//! Header data of the events to write, and the record headers that are built from this data.

use crate::event::{Descriptor, HeaderKind};
use crate::guid::Guid;

/// Header data of a kernel event.
#[derive(Clone, Copy, Debug)]
pub struct KernelEvent {
    /// Hook id: group in the high byte, opcode in the low byte.
    pub hook: u16,
    /// Version of the payload's layout.
    pub version: u8,
    /// Raw time of the event.
    pub time: i64,
    /// Ids of the thread and the process that log the event. If the ids are given, the event gets a SYSTEM
    /// header. If they are `None`, it gets a PERFINFO header.
    pub thread: Option<(u32, u32)>,
}

/// Header data of a classic event.
#[derive(Clone, Copy, Debug)]
pub struct ClassicEvent {
    /// GUID of the event class.
    pub class: Guid,
    /// Opcode of the event.
    pub opcode: u8,
    /// Version of the payload's layout.
    pub version: u8,
    /// Raw time of the event.
    pub time: i64,
    /// Id of the thread that logs the event.
    pub thread_id: u32,
    /// Id of the process that logs the event.
    pub process_id: u32,
}

/// Header data of a manifest or TraceLogging event.
#[derive(Clone, Copy, Debug)]
pub struct ProviderEvent<'a> {
    /// GUID of the provider.
    pub provider: Guid,
    /// Id, version, level, opcode, task and keyword.
    pub descriptor: Descriptor,
    /// Raw time of the event.
    pub time: i64,
    /// Id of the thread that logs the event.
    pub thread_id: u32,
    /// Id of the process that logs the event.
    pub process_id: u32,
    /// Activity id; all zeros if there is no activity.
    pub activity: Guid,
    /// Types and data of the extended items; see [`super::extended`].
    pub extended: &'a [(u16, &'a [u8])],
}

/// The parts of a record that come before its payload. They are the header and the extended items.
pub(super) trait Head {
    /// Returns the raw time of the event.
    fn time(&self) -> i64;

    /// Returns the size of the header and the extended items in bytes.
    fn head_size(&self) -> usize;

    /// Appends the header and the extended items. `size` is the size of the whole record in bytes.
    fn put_head(&self, size: u16, into: &mut Vec<u8>);
}

impl Head for KernelEvent {
    #[inline]
    fn time(&self) -> i64 {
        self.time
    }

    fn head_size(&self) -> usize {
        match self.thread {
            Some(_) => HeaderKind::System64.min_size(),
            None => HeaderKind::PerfInfo64.min_size(),
        }
    }

    #[inline]
    fn put_head(&self, size: u16, into: &mut Vec<u8>) {
        let mut head = [0; 32];
        head[0] = self.version;
        head[3] = 0xC0;
        head[4..6].copy_from_slice(&size.to_le_bytes());
        head[6..8].copy_from_slice(&self.hook.to_le_bytes());
        match self.thread {
            Some((thread, process)) => {
                head[2] = HeaderKind::System64 as u8;
                head[8..12].copy_from_slice(&thread.to_le_bytes());
                head[12..16].copy_from_slice(&process.to_le_bytes());
                head[16..24].copy_from_slice(&self.time.to_le_bytes());
                into.extend_from_slice(&head);
            }
            None => {
                head[2] = HeaderKind::PerfInfo64 as u8;
                head[8..16].copy_from_slice(&self.time.to_le_bytes());
                into.extend_from_slice(&head[..16]);
            }
        }
    }
}

impl Head for ClassicEvent {
    fn time(&self) -> i64 {
        self.time
    }

    fn head_size(&self) -> usize {
        HeaderKind::Full64.min_size()
    }

    fn put_head(&self, size: u16, into: &mut Vec<u8>) {
        let mut head = [0; 48];
        head[0..2].copy_from_slice(&size.to_le_bytes());
        head[2..4].copy_from_slice(&[HeaderKind::Full64 as u8, 0xC0]);
        head[4] = self.opcode;
        head[6] = self.version;
        head[8..12].copy_from_slice(&self.thread_id.to_le_bytes());
        head[12..16].copy_from_slice(&self.process_id.to_le_bytes());
        head[16..24].copy_from_slice(&self.time.to_le_bytes());
        head[24..40].copy_from_slice(&self.class.0);
        into.extend_from_slice(&head);
    }
}

impl Head for ProviderEvent<'_> {
    #[inline]
    fn time(&self) -> i64 {
        self.time
    }

    fn head_size(&self) -> usize {
        let items = self.extended.iter().map(|(_, data)| item_size(data));
        80 + items.sum::<usize>()
    }

    #[inline]
    fn put_head(&self, size: u16, into: &mut Vec<u8>) {
        let d = &self.descriptor;
        let mut head = [0; 80];
        head[0..2].copy_from_slice(&size.to_le_bytes());
        head[2..4].copy_from_slice(&[HeaderKind::EventHeader64 as u8, 0xC0]);
        head[4] = u8::from(!self.extended.is_empty());
        head[8..12].copy_from_slice(&self.thread_id.to_le_bytes());
        head[12..16].copy_from_slice(&self.process_id.to_le_bytes());
        head[16..24].copy_from_slice(&self.time.to_le_bytes());
        head[24..40].copy_from_slice(&self.provider.0);
        head[40..42].copy_from_slice(&d.id.to_le_bytes());
        head[42..46].copy_from_slice(&[d.version, d.channel, d.level, d.opcode]);
        head[46..48].copy_from_slice(&d.task.to_le_bytes());
        head[48..56].copy_from_slice(&d.keyword.to_le_bytes());
        head[64..80].copy_from_slice(&self.activity.0);
        into.extend_from_slice(&head);
        for (i, (ext_type, data)) in self.extended.iter().enumerate() {
            let more = u16::from(i + 1 < self.extended.len());
            let total = item_size(data);
            for field in [total as u16, *ext_type, more, data.len() as u16] {
                into.extend_from_slice(&field.to_le_bytes());
            }
            into.extend_from_slice(data);
            into.resize(into.len() + total - 8 - data.len(), 0);
        }
    }
}

/// Returns the size of an extended item in bytes. An item has a header of 8 bytes and data that is padded to
/// a multiple of 8 bytes.
fn item_size(data: &[u8]) -> usize {
    8 + data.len().next_multiple_of(8)
}
