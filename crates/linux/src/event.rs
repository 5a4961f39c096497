//! Events of a recording. Each event is one record.

use crate::bytes::{Bytes, Order, text};
use crate::record::{Header, kind, misc};
use crate::sample::{Common, Sample};
use crate::tracepoints::Tracepoint;

/// One event of a recording.
#[derive(Clone, Debug)]
pub struct Event<'r> {
    /// Time of the event in nanoseconds of the recording's clock. `None` if perf itself made the record, for example
    /// from `/proc` when the recording started.
    pub time_ns: Option<u64>,
    /// CPU that logged the event. `None` if the recording does not contain it, or if perf itself made the record.
    pub cpu: Option<u32>,
    /// Id of the process. `None` if the id is unknown, or if the thread was ending.
    pub process_id: Option<u32>,
    /// Id of the thread. `None` if the id is unknown, or if the thread was ending.
    pub thread_id: Option<u32>,
    /// Offset of the record in bytes. It counts from the start of the file, or from the start of the expanded records
    /// if the record was compressed.
    pub offset: u64,
    /// Size of the record in bytes.
    pub bytes: u16,
    /// Kind and contents of the event.
    pub kind: EventKind<'r>,
}

/// Kind and contents of an event.
#[derive(Clone, Debug)]
pub enum EventKind<'r> {
    /// A CPU passed a tracepoint.
    Tracepoint {
        /// Index of the tracepoint's description in [`Recording::attributes`](crate::Recording::attributes).
        attribute: usize,
        /// Decoded data of the tracepoint.
        tracepoint: Tracepoint<'r>,
        /// Call chain at the tracepoint.
        chain: Chain<'r>,
    },
    /// Sample of an event that is not a tracepoint, for example of a clock.
    Sample {
        /// Index of the event's description in [`Recording::attributes`](crate::Recording::attributes).
        attribute: usize,
        /// Address of the code that ran.
        ip: Option<u64>,
        /// Address to which the event refers, for example the address that caused a page fault.
        address: Option<u64>,
        /// Number of events since the previous sample.
        period: Option<u64>,
        /// Call chain of the code that ran.
        chain: Chain<'r>,
    },
    /// A thread has this name. Either perf found the name when the recording started, or the thread gets the name at
    /// this time.
    Name {
        /// Name of the thread, at most 15 bytes.
        name: String,
        /// True if the process started a new program. Always false if the recording does not
        /// [state this](crate::Recording::marks_exec).
        is_exec: bool,
    },
    /// A thread started.
    Started {
        /// Id of the process that started the thread.
        parent_process_id: u32,
        /// Id of the thread that started the thread.
        parent_thread_id: u32,
    },
    /// A thread ended.
    Ended,
    /// A file or other memory was mapped into the process.
    Mapped {
        /// First mapped address.
        address: u64,
        /// Number of mapped bytes.
        length: u64,
        /// Offset in the file, in bytes.
        file_offset: u64,
        /// Path of the file, or a name such as `[vdso]` for other memory.
        path: String,
        /// Build id of the file; `None` if the record has no build id.
        build_id: Option<Vec<u8>>,
    },
    /// The thread left a CPU or got a CPU. The record is `PERF_RECORD_SWITCH`, not the tracepoint `sched_switch`.
    OwnSwitch {
        /// True if the thread left the CPU. False if it got the CPU.
        is_out: bool,
        /// True if the thread left the CPU although it could have continued to run.
        is_preempted: bool,
    },
}

/// Addresses of a call chain, the innermost first.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'r> {
    bytes: &'r [u8],
    order: Order,
}

/// Smallest number in a call chain that is a mark (`PERF_CONTEXT_…`) and not an address: `PERF_CONTEXT_MAX` of the
/// kernel, which is −4095.
const MARKS: u64 = (-4095_i64).cast_unsigned();

impl<'r> Chain<'r> {
    pub(crate) fn new(bytes: &'r [u8], order: Order) -> Chain<'r> {
        Chain { bytes, order }
    }

    /// Returns the addresses. Leaves out the marks, which separate kernel addresses from user addresses.
    pub fn addresses(self) -> impl Iterator<Item = u64> + 'r {
        let (numbers, _) = self.bytes.as_chunks();
        let numbers = numbers.iter().map(move |bytes| self.order.u64(*bytes));
        numbers.filter(|number| *number < MARKS)
    }
}

impl<'r> Event<'r> {
    /// Returns the index of a tracepoint or sample in [`Recording::attributes`](crate::Recording::attributes); `None`
    /// for an event of another kind.
    pub fn attribute(&self) -> Option<usize> {
        match self.kind {
            EventKind::Tracepoint { attribute, .. } | EventKind::Sample { attribute, .. } => {
                Some(attribute)
            }
            _ => None,
        }
    }

    /// Returns the call chain of a tracepoint or sample; `None` for an event of another kind.
    pub fn chain(&self) -> Option<Chain<'r>> {
        match self.kind {
            EventKind::Tracepoint { chain, .. } | EventKind::Sample { chain, .. } => Some(chain),
            _ => None,
        }
    }

    #[inline]
    fn new(common: Common, (offset, bytes): (u64, u16), kind: EventKind<'r>) -> Event<'r> {
        // The ids of an ending thread are −1. Records that perf itself made have the time 0.
        let known = |id: u32| (id != u32::MAX).then_some(id);
        Event {
            time_ns: common.time_ns.filter(|time_ns| *time_ns != 0),
            cpu: common.cpu.filter(|_| common.time_ns != Some(0)),
            process_id: common.ids.and_then(|(process, _)| known(process)),
            thread_id: common.ids.and_then(|(_, thread)| known(thread)),
            offset,
            bytes,
            kind,
        }
    }

    /// Reads a record that is not a sample. `body` is the record without its header and its common fields. Returns
    /// `None` if the record is too short. Returns `Some(None)` if records of this kind are not events.
    pub(crate) fn read(
        header: Header,
        body: &[u8],
        common: Common,
        offset: u64,
        order: Order,
    ) -> Option<Option<Event<'r>>> {
        let place = (offset, header.size as u16);
        let mut bytes = Bytes::new(body, order);
        let mut ids = common.ids;
        let kind = match header.kind {
            kind::COMM => {
                ids = Some((bytes.u32()?, bytes.u32()?));
                EventKind::Name {
                    name: text(bytes.rest()),
                    is_exec: header.misc & misc::COMM_EXEC != 0,
                }
            }
            kind::FORK | kind::EXIT => {
                let (process, parent_process_id) = (bytes.u32()?, bytes.u32()?);
                let (thread, parent_thread_id) = (bytes.u32()?, bytes.u32()?);
                ids = Some((process, thread));
                match header.kind {
                    kind::FORK => EventKind::Started {
                        parent_process_id,
                        parent_thread_id,
                    },
                    _ => EventKind::Ended,
                }
            }
            kind::MMAP | kind::MMAP2 => {
                ids = Some((bytes.u32()?, bytes.u32()?));
                read_mapping(header, &mut bytes)?
            }
            kind::SWITCH | kind::SWITCH_CPU_WIDE => EventKind::OwnSwitch {
                is_out: header.misc & misc::SWITCH_OUT != 0,
                is_preempted: header.misc & misc::SWITCH_OUT_PREEMPT != 0,
            },
            _ => return Some(None),
        };
        let common = Common { ids, ..common };
        Some(Some(Event::new(common, place, kind)))
    }

    /// Creates the event of a sample. `place` is the offset and the size of the record in bytes.
    #[inline]
    pub(crate) fn of_sample(
        sample: &Sample<'r>,
        attribute: usize,
        tracepoint: Option<Tracepoint<'r>>,
        place: (u64, u16),
        order: Order,
    ) -> Event<'r> {
        let chain = Chain::new(sample.chain, order);
        let kind = match tracepoint {
            Some(tracepoint) => EventKind::Tracepoint {
                attribute,
                tracepoint,
                chain,
            },
            None => EventKind::Sample {
                attribute,
                ip: sample.ip,
                address: sample.address,
                period: sample.period,
                chain,
            },
        };
        Event::new(sample.common, place, kind)
    }
}

fn read_mapping<'r>(header: Header, bytes: &mut Bytes<'_>) -> Option<EventKind<'r>> {
    let (address, length, file_offset) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
    let mut build_id = None;
    if header.kind == kind::MMAP2 {
        // These 24 bytes are a size and a build id of up to 20 bytes, or they are the device, the inode and its
        // generation.
        let mut id = Bytes::new(bytes.take(24)?, Order::Little);
        if header.misc & misc::MMAP_BUILD_ID != 0 {
            let size = usize::from(id.u8()?).min(20);
            id.take(3)?;
            build_id = id.take(size).map(<[u8]>::to_vec);
        }
        // These 8 bytes are the protection and the flags of the mapping.
        bytes.take(8)?;
    }
    Some(EventKind::Mapped {
        address,
        length,
        file_offset,
        path: text(bytes.rest()),
        build_id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_no_addresses() {
        // The last four numbers are PERF_CONTEXT_MAX, PERF_CONTEXT_USER, PERF_CONTEXT_KERNEL and the greatest 64-bit
        // number.
        let numbers = [1, -4096, -4095, -512, -128, -1_i64];
        let bytes: Vec<u8> = numbers.into_iter().flat_map(i64::to_le_bytes).collect();
        let chain = Chain::new(&bytes, Order::Little);
        let addresses: Vec<u64> = chain.addresses().collect();
        assert_eq!(addresses, [1, 0xffff_ffff_ffff_f000]);
    }
}
