//! Pages of the kernel's ring buffer (ftrace), in which trace-cmd stores events.
//!
//! A page has a header and entries. An entry is an event, or it changes the time of the next events. The recording
//! describes the header (`header_page`). Pages are converted to records of perf, so that only this module reads pages.
//!
//! Source of the layout of entries: `Documentation/trace/ring-buffer-design.rst` and the file `header_event` of
//! tracefs.

use std::ops::Range;

use crate::bytes::{Bytes, Order};
use crate::damage::Fault;
use crate::format::{Field, Format, Place, parse_field};
use crate::record::{self, kind};

/// Types of entries (`header_event`).
mod entry {
    pub(super) const PADDING: u32 = 29;
    pub(super) const TIME_EXTEND: u32 = 30;
    pub(super) const TIME_STAMP: u32 = 31;
}

/// Number of low bits of the time that an entry of the type `TIME_STAMP` contains. The high bits come from the time of
/// the previous entry (see [`whole_stamp`]).
const STAMP_BITS: u32 = 59;

/// Bits of the field `commit` with the number of used bytes.
const COMMITTED: u64 = (1 << 27) - 1;
/// Bit of `commit`: events were lost before this page.
const LOST: u64 = 1 << 31;
/// Bit of `commit`: the number of lost events follows the used bytes.
const LOST_STORED: u64 = 1 << 30;

/// Maximum distance, in events, from a stack back to the event to which the stack belongs. Events of interrupts can be
/// between the two.
const NEAR: usize = 8;

/// Layout of the pages of a recording.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    order: Order,
    /// Size of a page in bytes.
    pub(crate) size: usize,
    time: Place,
    commit: Place,
    data: usize,
    /// Fields that all events have: type, flags and thread.
    common: [Place; 3],
    stacks: Option<Stacks>,
}

/// Layout of the event `kernel_stack`.
#[derive(Clone, Debug)]
struct Stacks {
    id: i64,
    /// Offset of the first address in bytes.
    first: usize,
    /// Size of an address in bytes.
    size: usize,
}

/// Faults and losses of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageEnd {
    /// Number of events that were lost before the page. It is 1 if events were lost but their number is unknown.
    pub(crate) lost: u64,
    /// Fault and its offset in the page. The rest of the page was not read.
    pub(crate) fault: Option<(Fault, usize)>,
}

impl Pages {
    /// Creates the layout from the text of `header_page` and the layouts of events. Returns `None` if a needed field
    /// is missing.
    pub(crate) fn new(text: &str, formats: &[Format], order: Order, size: usize) -> Option<Pages> {
        let fields: Vec<Field> = text.lines().filter_map(parse_field).collect();
        let field = |name: &str| fields.iter().find(|field| field.name == name);
        let first = formats.first()?;
        let common = |name| first.field(name).map(Field::place);
        let stacks = formats
            .iter()
            .find(|format| (&*format.system, &*format.name) == ("ftrace", "kernel_stack"));
        let data = field("data")?.offset;
        Some(Pages {
            order,
            size: (size > data).then_some(size)?,
            time: field("timestamp")?.place(),
            commit: field("commit")?.place(),
            data,
            common: [
                common("common_type")?,
                common("common_flags")?,
                common("common_pid")?,
            ],
            stacks: stacks.and_then(|format| {
                let caller = format.field("caller")?;
                // In old kernels, the field is an array of eight addresses. Each has the size of `long`.
                let count = if caller.size == 0 { 1 } else { 8 };
                let size = field("commit")?.size.max(caller.size / count);
                Some(Stacks {
                    id: format.id.into(),
                    first: caller.offset,
                    size,
                })
            }),
        })
    }

    /// Calls `each` for each event, with the time of the event and the byte range of its data in `page`.
    pub(crate) fn read(&self, page: &[u8], each: &mut impl FnMut(u64, Range<usize>)) -> PageEnd {
        let mut end = PageEnd::default();
        let order = self.order;
        let number = |place: Place| Some(place.number(page, order)?.cast_unsigned());
        let Some((start_ns, commit)) = number(self.time).zip(number(self.commit)) else {
            end.fault = Some((Fault::CutOff, 0));
            return end;
        };
        let used = self.data + (commit & COMMITTED) as usize;
        if commit & LOST != 0 {
            let stored = number(self.commit.moved_to(used));
            let stored = stored.filter(|_| commit & LOST_STORED != 0);
            end.lost = stored.unwrap_or(1).max(1);
        }
        let Some(entries) = page.get(..used) else {
            end.fault = Some((Fault::CutOff, page.len()));
            return end;
        };
        let (mut at, mut time_ns) = (self.data, start_ns);
        while at < used {
            let Some(entry) = self.entry(&entries[at..]) else {
                end.fault = Some((Fault::RecordSize, at));
                return end;
            };
            time_ns = match entry.stamp {
                Some(stamp) => whole_stamp(stamp, time_ns),
                None => time_ns.wrapping_add(entry.delta),
            };
            if let Some(data) = entry.data {
                each(time_ns, at + data.start..at + data.end);
            }
            match entry.size {
                Some(size) => at += size,
                None => break,
            }
        }
        end
    }

    /// Reads the entry at the start of `bytes`. Returns `None` if its size is impossible.
    fn entry(&self, bytes: &[u8]) -> Option<Entry> {
        let mut fields = Bytes::new(bytes, self.order);
        let header = fields.u32()?;
        let (kind, delta) = match self.order {
            Order::Little => (header & 0x1F, header >> 5),
            Order::Big => (header >> 27, header & 0x07FF_FFFF),
        };
        let delta = u64::from(delta);
        let mut entry = Entry {
            delta,
            stamp: None,
            data: None,
            size: Some(8),
        };
        match kind {
            // The rest of the page is empty.
            entry::PADDING if delta == 0 => entry.size = None,
            // The kernel dropped an event that it had begun.
            entry::PADDING => entry.size = Some(fields.len32()?.checked_add(4)?),
            entry::TIME_EXTEND => entry.delta = delta + (u64::from(fields.u32()?) << 27),
            entry::TIME_STAMP => entry.stamp = Some(delta + (u64::from(fields.u32()?) << 27)),
            0 => {
                // The stated length includes the four bytes of the length.
                let size = fields.len32()?.checked_add(4)?;
                entry.data = Some(8..size);
                entry.size = Some(size.checked_next_multiple_of(4)?);
            }
            words => {
                let size = 4 + 4 * words as usize;
                entry.data = Some(4..size);
                entry.size = Some(size);
            }
        }
        let is_whole = entry
            .size
            .is_none_or(|size| size <= bytes.len() && size > 4);
        let has_data = (entry.data.as_ref()).is_none_or(|data| data.start < data.end);
        (is_whole && has_data).then_some(entry)
    }

    /// Converts pages of a CPU to records of perf with the layout `SampleLayout::OF_PAGES`. The
    /// process of an event is always unknown.
    pub(crate) fn records(&self, bytes: &[u8], cpu: u32) -> Vec<u8> {
        let mut events: Vec<PageEvent> = Vec::new();
        for (index, page) in bytes.chunks(self.size).enumerate() {
            let start = index * self.size;
            self.read(page, &mut |time_ns, data| {
                let data = start + data.start..start + data.end;
                let event = &bytes[data.clone()];
                if let Some(stack) = self.stack(event)
                    && let Some(it) = (events.iter_mut().rev().take(NEAR))
                        .filter(|it| it.stack.is_none())
                        .find(|it| self.is_of(&bytes[it.data.clone()], event))
                {
                    it.stack = Some(data.start + stack..data.end);
                    return;
                }
                events.push(PageEvent {
                    time_ns,
                    data,
                    stack: None,
                });
            });
        }
        let mut records = Vec::with_capacity(2 * bytes.len());
        for events in events {
            self.write(&events, bytes, cpu, &mut records);
        }
        records
    }

    fn common(&self, field: usize, event: &[u8]) -> Option<i64> {
        self.common[field].number(event, self.order)
    }

    /// Returns the offset of the first address if an event is a stack.
    fn stack(&self, event: &[u8]) -> Option<usize> {
        let stacks = self.stacks.as_ref()?;
        let is_stack = self.common(0, event) == Some(stacks.id);
        (is_stack && stacks.first < event.len()).then_some(stacks.first)
    }

    /// Returns true if a stack can belong to an event. Both must be of the same thread, or of an interrupt of the same
    /// kind, and the event must not be a stack.
    fn is_of(&self, event: &[u8], stack: &[u8]) -> bool {
        [1, 2].map(|field| self.common(field, event))
            == [1, 2].map(|field| self.common(field, stack))
            && self.stack(event).is_none()
    }

    fn write(&self, found: &PageEvent, bytes: &[u8], cpu: u32, records: &mut Vec<u8>) {
        let order = self.order;
        let event = &bytes[found.data.clone()];
        let (id, thread) = (self.common(0, event), self.common(2, event));
        let stack = found.stack.clone().map_or(&[][..], |stack| &bytes[stack]);
        let width = self.stacks.as_ref().map_or(8, |stacks| stacks.size).max(1);
        let addresses = stack.chunks_exact(width).map(|address| match *address {
            [a, b, c, d] => u64::from(order.u32([a, b, c, d])),
            _ => address
                .try_into()
                .map_or(u64::MAX, |bytes| order.u64(bytes)),
        });
        record::write(records, kind::SAMPLE, order, |body| {
            body.extend(order.of_u64(id.unwrap_or_default().cast_unsigned()));
            body.extend(order.of_u32(u32::MAX));
            body.extend(order.of_u32(thread.map_or(u32::MAX, |thread| thread as u32)));
            body.extend(order.of_u64(found.time_ns));
            body.extend(order.of_u32(cpu));
            body.extend(order.of_u32(0));
            body.extend(order.of_u64((stack.len() / width) as u64));
            body.extend(addresses.flat_map(|address| order.of_u64(address)));
            body.extend(order.of_u32(event.len() as u32));
            body.extend_from_slice(event);
        });
    }
}

/// Entry of a page.
struct Entry {
    /// Time since the previous entry.
    delta: u64,
    /// Low bits of the time, from an entry of the type `TIME_STAMP`. `None` for other entries, which have `delta`.
    stamp: Option<u64>,
    /// Place of the event's data in the entry.
    data: Option<Range<usize>>,
    /// Size of the entry in bytes; `None` if the rest of the page is empty.
    size: Option<usize>,
}

/// Event in pages.
struct PageEvent {
    time_ns: u64,
    data: Range<usize>,
    /// Place of the addresses of the event's stack.
    stack: Option<Range<usize>>,
}

/// Returns the whole time whose low bits are `stamp`. `before_ns` is the time of the previous entry.
fn whole_stamp(stamp: u64, before_ns: u64) -> u64 {
    let high = before_ns >> STAMP_BITS << STAMP_BITS;
    let time_ns = high | stamp;
    if high != 0 && time_ns < before_ns {
        time_ns.wrapping_add(1 << STAMP_BITS)
    } else {
        time_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file `header_page` of a kernel with 64 bits.
    const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    const FORMAT: &str = "name: x\nID: 7\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";

    fn pages(order: Order) -> Pages {
        let formats = [Format::parse("s", FORMAT).unwrap()];
        Pages::new(HEADER_PAGE, &formats, order, 4096).unwrap()
    }

    /// Returns the first four bytes of an entry.
    fn entry(order: Order, kind: u32, delta: u32) -> [u8; 4] {
        order.of_u32(match order {
            Order::Little => delta << 5 | kind,
            Order::Big => kind << 27 | delta,
        })
    }

    fn page(order: Order, start_ns: u64, flags: u64, entries: &[&[u8]]) -> Vec<u8> {
        let data = entries.concat();
        let commit = data.len() as u64 | flags;
        let mut page = [&order.of_u64(start_ns)[..], &order.of_u64(commit), &data].concat();
        page.extend(order.of_u64(42));
        page.resize(4096, 0);
        page
    }

    fn read(order: Order, page: &[u8]) -> (Vec<(u64, Vec<u8>)>, PageEnd) {
        let mut events = Vec::new();
        let end = pages(order).read(page, &mut |time_ns, data| {
            events.push((time_ns, page[data].to_vec()));
        });
        (events, end)
    }

    #[test]
    fn entries_have_the_times_and_sizes_of_the_kernel() {
        for order in [Order::Little, Order::Big] {
            let start = (3 << STAMP_BITS) + 1000;
            let stamp: u64 = 900;
            let page = page(
                order,
                start,
                LOST | LOST_STORED,
                &[
                    // An entry with two words of data, 5 ns later.
                    &entry(order, 2, 5),
                    b"abcdefgh",
                    // An entry that adds 2²⁷ + 1 ns, then a dropped event of 8 bytes, 1 ns later.
                    &entry(order, entry::TIME_EXTEND, 1),
                    &order.of_u32(1),
                    &entry(order, entry::PADDING, 1),
                    &order.of_u32(8),
                    b"drop",
                    // An entry with 5 bytes of data and their size. Entries fill whole words.
                    &entry(order, 0, 2),
                    &order.of_u32(9),
                    b"12345\0\0\0",
                    // An entry with the low bits of an absolute time.
                    &entry(order, entry::TIME_STAMP, stamp as u32 & 0x07FF_FFFF),
                    &order.of_u32((stamp >> 27) as u32),
                    &entry(order, 1, 0),
                    b"last",
                    // The rest of the page is empty.
                    &entry(order, entry::PADDING, 0),
                    b"????",
                ],
            );
            let (found, end) = read(order, &page);
            let second = start + 5 + (1 << 27) + 1 + 1 + 2;
            // The low bits of the absolute time are less than the low bits of the previous time, so the high bits have
            // increased.
            let third = (4 << STAMP_BITS) + stamp;
            let expected = [
                (start + 5, b"abcdefgh".to_vec()),
                (second, b"12345".to_vec()),
                (third, b"last".to_vec()),
            ];
            assert_eq!(found, expected);
            let expected = PageEnd {
                lost: 42,
                fault: None,
            };
            assert_eq!(end, expected);
        }
    }

    #[test]
    fn an_impossible_entry_ends_its_page() {
        let order = Order::Little;
        for (entries, at) in [
            // Three impossible entries. The first and the third are longer than the page. The second states a length
            // of 3 bytes, but the length includes the 4 bytes in which it is stored.
            (&[&entry(order, 28, 1)[..], b"abcd"], 16),
            (&[&entry(order, 0, 1)[..], &[3, 0, 0, 0]], 16),
            (&[&entry(order, 0, 1)[..], &[0xFF; 4]], 16),
        ] {
            let (found, end) = read(order, &page(order, 1, 0, entries));
            assert_eq!((found.len(), end.fault), (0, Some((Fault::RecordSize, at))));
        }
        // The header states more bytes than the page has.
        let (found, end) = read(order, &page(order, 1, 1 << 20, &[b"abcd"]));
        assert_eq!((found.len(), end.fault), (0, Some((Fault::CutOff, 4096))));
        let unknown = page(order, 1, LOST, &[]);
        assert_eq!(read(order, &unknown).1.lost, 1);
    }
}
