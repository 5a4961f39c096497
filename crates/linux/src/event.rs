//! Events of a recording.

use crate::bytes::{Bytes, Order, text};
use crate::record::{Header, kind, misc};
use crate::sample::{Common, Sample};
use crate::tracepoints::Tracepoint;

/// An event of a recording.
#[derive(Clone, Debug)]
pub struct Event<'r> {
    /// Time of the recording's clock, in nanoseconds; `None` for facts that perf collected itself.
    pub time_ns: Option<u64>,
    /// CPU; `None` if the recording does not have it.
    pub cpu: Option<u32>,
    /// Process; `None` if unknown, and for a thread that is ending.
    pub process_id: Option<u32>,
    /// Thread; `None` if unknown.
    pub thread_id: Option<u32>,
    /// Offset of the record in the file.
    pub offset: u64,
    /// Size of the record.
    pub bytes: u16,
    /// Contents.
    pub kind: EventKind<'r>,
}

/// Contents of an event.
#[derive(Clone, Debug)]
pub enum EventKind<'r> {
    /// A tracepoint was passed.
    Tracepoint {
        /// Index in [`Recording::attributes`](crate::Recording::attributes).
        attribute: usize,
        /// Meaning.
        tracepoint: Tracepoint<'r>,
        /// Call chain.
        chain: Chain<'r>,
    },
    /// Sample of another event, for example of a clock.
    Sample {
        /// Index in [`Recording::attributes`](crate::Recording::attributes).
        attribute: usize,
        /// Address of the running code.
        ip: Option<u64>,
        /// Address of the data, for example of a page fault.
        address: Option<u64>,
        /// Number of events since the previous sample.
        period: Option<u64>,
        /// Call chain.
        chain: Chain<'r>,
    },
    /// A thread has a name, or gets a new one.
    Name {
        /// Name, at most 15 bytes.
        name: String,
        /// True if the process started a new program.
        is_exec: bool,
    },
    /// A thread started.
    Started {
        /// Process that started it.
        parent_process_id: u32,
        /// Thread that started it.
        parent_thread_id: u32,
    },
    /// A thread ended.
    Ended,
    /// Memory was mapped to a file.
    Mapped {
        /// First address.
        address: u64,
        /// Number of bytes.
        length: u64,
        /// Offset in the file, in bytes.
        file_offset: u64,
        /// Path of the file, or a name in brackets.
        path: String,
        /// Build id, if the recording has it here.
        build_id: Option<Vec<u8>>,
    },
    /// The thread left or got its CPU (without a tracepoint).
    OwnSwitch {
        /// True if the thread left its CPU.
        is_out: bool,
        /// True if the thread could have run on.
        is_preempted: bool,
    },
}

/// Addresses of a call chain, the innermost first.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'r> {
    bytes: &'r [u8],
    order: Order,
}

/// First of the numbers that are marks (`PERF_CONTEXT_…`), not addresses.
const MARKS: u64 = u64::MAX - 4095;

impl<'r> Chain<'r> {
    pub(crate) fn new(bytes: &'r [u8], order: Order) -> Chain<'r> {
        Chain { bytes, order }
    }

    /// Returns the addresses, without the marks between kernel and user code.
    pub fn addresses(self) -> impl Iterator<Item = u64> + 'r {
        let (numbers, _) = self.bytes.as_chunks();
        let numbers = numbers.iter().map(move |bytes| self.order.u64(*bytes));
        numbers.filter(|number| *number < MARKS)
    }
}

impl<'r> Event<'r> {
    fn new(common: Common, (offset, bytes): (u64, u16), kind: EventKind<'r>) -> Event<'r> {
        // Ids of an ending thread are −1. Facts that perf collected itself have the time 0.
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

    /// Reads a record that is no sample. `body` is the record without header and common fields. Returns `None` if
    /// it is too short, and `Some(None)` if it is of a kind without meaning here.
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

    /// Makes the event of a sample. `place` is the offset of the record and its size.
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
        // Either the size and 20 bytes of a build id, or device, inode and generation.
        let mut id = Bytes::new(bytes.take(24)?, Order::Little);
        if header.misc & misc::MMAP_BUILD_ID != 0 {
            let size = usize::from(id.u8()?).min(20);
            id.take(3)?;
            build_id = id.take(size).map(<[u8]>::to_vec);
        }
        // Protection and flags.
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
