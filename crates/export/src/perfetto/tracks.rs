//! Slices (events with a duration) and instants (events without a duration) on tracks.
//!
//! Perfetto requires that the slices of a track are nested. Slices that overlap in another way are
//! spread over several lanes. Lanes are tracks of the same name, which Perfetto's page draws as
//! one.

use std::cmp::Reverse;
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::packets::{Name, Packets};
use super::proto::{
    DebugAnnotation, INSTANT, ORDERING_EXPLICIT, SLICE_BEGIN, SLICE_END, ThreadDescriptor,
    TracePacket, TrackDescriptor, TrackEvent,
};

/// Maximum number of lanes of a `Place`. Slices that need more lanes are left out.
const MAX_LANES: usize = 256;

/// Row of Perfetto's page in which slices and instants are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// Interrupt service routines and DPCs of a CPU.
    Interrupts(u16),
    /// Threaded DPCs and passive interrupt service routines of a CPU. They run in threads, so other
    /// work can interrupt them.
    InterruptThreads(u16),
    /// Requests to a disk.
    Disk(u32),
    /// Events of a thread, by process id and thread id.
    Thread(u32, u32),
    /// Processes in focus in a terminal session.
    Focus(u32),
    /// Frozen processes.
    Frozen,
    /// User input.
    Input,
    /// Marks in the trace.
    Marks,
}

/// Category of a slice or an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Category {
    Interrupt,
    Disk,
    Memory,
    Focus,
    Freeze,
    Input,
    Mark,
}

impl Category {
    /// Names of the categories, in the order of their numbers.
    pub(super) const NAMES: [&'static str; 7] = [
        "interrupt",
        "disk",
        "memory",
        "focus",
        "freeze",
        "input",
        "mark",
    ];

    fn iid(self) -> u64 {
        self as u64 + 1
    }
}

/// A slice: an event with a duration.
pub(super) struct Slice {
    pub(super) place: Place,
    pub(super) category: Category,
    pub(super) name: Name,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) details: Vec<DebugAnnotation>,
}

/// An instant: an event without a duration.
pub(super) struct Instant<'a> {
    pub(super) place: Place,
    pub(super) category: Category,
    /// Name of the instant. It is not interned, because marks may all have different names, and
    /// interned names stay in memory.
    pub(super) name: &'a str,
    pub(super) time_ns: u64,
    pub(super) details: Vec<DebugAnnotation>,
}

/// All tracks that slices or instants use.
#[derive(Default)]
pub(super) struct Tracks {
    lanes: FxHashMap<Place, Vec<Lane>>,
    tracks: u64,
    groups: FxHashMap<&'static str, u64>,
    /// Number of slices that are left out because no lane has room for them.
    pub(super) left_out: u64,
}

/// A lane, which is a track of the file.
struct Lane {
    uuid: u64,
    /// Ends of the open slices in nanoseconds, innermost slice last.
    open: Vec<u64>,
    /// End of the lane's last slice, in nanoseconds.
    free_from: u64,
}

impl Lane {
    fn new(uuid: u64) -> Lane {
        Lane {
            uuid,
            open: Vec::new(),
            free_from: 0,
        }
    }

    /// Writes the end of each open slice that ends at or before `until`.
    fn close<W: Write>(&mut self, until: u64, out: &mut Packets<W>) -> io::Result<()> {
        while let Some(end) = self.open.pop_if(|end| *end <= until) {
            self.free_from = self.free_from.max(end);
            let event = TrackEvent {
                kind: Some(SLICE_END),
                track_uuid: Some(self.uuid),
                ..TrackEvent::default()
            };
            out.event(end, event)?;
        }
        Ok(())
    }

    fn has_room(&self, slice: &Slice) -> bool {
        let nests = !matches!(slice.place, Place::Disk(_) | Place::Frozen);
        match self.open.last() {
            Some(outer) => nests && slice.end_ns <= *outer,
            None => slice.start_ns >= self.free_from,
        }
    }
}

impl Tracks {
    /// Writes slices, which may be in any order.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub(super) fn write<W: Write>(
        &mut self,
        mut slices: Vec<Slice>,
        out: &mut Packets<W>,
    ) -> io::Result<()> {
        for slice in &mut slices {
            slice.end_ns = slice.end_ns.max(slice.start_ns);
        }
        slices.sort_by_key(|slice| (slice.start_ns, Reverse(slice.end_ns)));
        for slice in slices {
            let lanes = self.lanes.entry(slice.place).or_default();
            let mut free = None;
            for (at, lane) in lanes.iter_mut().enumerate() {
                lane.close(slice.start_ns, out)?;
                if lane.has_room(&slice) {
                    free = Some(at);
                    break;
                }
            }
            let at = match free {
                Some(at) => at,
                None if lanes.len() == MAX_LANES => {
                    self.left_out += 1;
                    continue;
                }
                None => {
                    let uuid = describe(slice.place, &mut self.tracks, &mut self.groups, out)?;
                    lanes.push(Lane::new(uuid));
                    lanes.len() - 1
                }
            };
            let lane = &mut lanes[at];
            lane.open.push(slice.end_ns);
            let event = TrackEvent {
                kind: Some(SLICE_BEGIN),
                track_uuid: Some(lane.uuid),
                name_iid: Some(slice.name.iid()),
                category_iids: vec![slice.category.iid()],
                debug_annotations: slice.details,
                ..TrackEvent::default()
            };
            out.event(slice.start_ns, event)?;
        }
        for lane in self.lanes.values_mut().flatten() {
            lane.close(u64::MAX, out)?;
        }
        Ok(())
    }

    /// Writes an instant.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub(super) fn write_instant<W: Write>(
        &mut self,
        instant: Instant<'_>,
        out: &mut Packets<W>,
    ) -> io::Result<()> {
        let lanes = self.lanes.entry(instant.place).or_default();
        let uuid = match lanes.first() {
            Some(lane) => lane.uuid,
            None => {
                let uuid = describe(instant.place, &mut self.tracks, &mut self.groups, out)?;
                lanes.push(Lane::new(uuid));
                uuid
            }
        };
        let event = TrackEvent {
            kind: Some(INSTANT),
            track_uuid: Some(uuid),
            name: Some(instant.name.to_owned()),
            category_iids: vec![instant.category.iid()],
            debug_annotations: instant.details,
            ..TrackEvent::default()
        };
        out.event(instant.time_ns, event)
    }
}

/// Writes the description of a new track for a `Place`. If the `Place` belongs to a group of tracks,
/// describes the group on first use. Returns the number of the track.
fn describe<W: Write>(
    place: Place,
    tracks: &mut u64,
    groups: &mut FxHashMap<&'static str, u64>,
    out: &mut Packets<W>,
) -> io::Result<u64> {
    let (group, name, rank) = match place {
        Place::Interrupts(cpu) => (Some("Interrupts"), format!("CPU {cpu}"), i32::from(cpu)),
        Place::InterruptThreads(cpu) => (
            Some("Threaded interrupts"),
            format!("CPU {cpu}"),
            i32::from(cpu),
        ),
        Place::Disk(disk) => (Some("Disks"), format!("disk {disk}"), disk as i32),
        Place::Focus(session) => (None, format!("Window in focus, session {session}"), 0),
        Place::Frozen => (None, "Frozen processes".to_owned(), 0),
        Place::Input => (None, "Input".to_owned(), 0),
        Place::Marks => (None, "Marks".to_owned(), 0),
        Place::Thread(pid, tid) => {
            *tracks += 1;
            return track(
                TrackDescriptor {
                    uuid: Some(*tracks),
                    thread: Some(ThreadDescriptor {
                        pid: Some(pid as i32),
                        tid: Some(tid as i32),
                    }),
                    ..TrackDescriptor::default()
                },
                out,
            );
        }
    };
    let parent = match group.map(|group| (group, groups.get(group).copied())) {
        None => None,
        Some((_, Some(parent))) => Some(parent),
        Some((group, None)) => {
            *tracks += 1;
            groups.insert(group, *tracks);
            let descriptor = TrackDescriptor {
                uuid: Some(*tracks),
                name: Some(group.to_owned()),
                child_ordering: Some(ORDERING_EXPLICIT),
                ..TrackDescriptor::default()
            };
            Some(track(descriptor, out)?)
        }
    };
    *tracks += 1;
    track(
        TrackDescriptor {
            uuid: Some(*tracks),
            name: Some(name),
            parent_uuid: parent,
            sibling_order_rank: parent.map(|_| rank),
            ..TrackDescriptor::default()
        },
        out,
    )
}

fn track<W: Write>(descriptor: TrackDescriptor, out: &mut Packets<W>) -> io::Result<u64> {
    let uuid = descriptor.uuid.unwrap_or_default();
    out.write(&TracePacket {
        track_descriptor: Some(descriptor),
        ..TracePacket::default()
    })?;
    Ok(uuid)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use prost::Message;
    use testdata::Rng;

    use super::*;

    #[derive(Clone, PartialEq, Message)]
    struct Trace {
        #[prost(message, repeated, tag = "1")]
        packet: Vec<TracePacket>,
    }

    /// Returns the start, end and name of each slice, as Perfetto reads them. Perfetto sorts events by time, then by
    /// position in the file. The end of a slice closes the most recently opened slice of the track.
    fn read(bytes: &[u8]) -> Vec<(u64, u64, u64)> {
        let trace = Trace::decode(bytes).expect("packets are complete");
        let mut packets = trace.packet;
        packets.sort_by_key(|packet| packet.timestamp);
        let mut open: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
        let mut slices = Vec::new();
        for packet in packets {
            let Some(event) = packet.track_event else {
                continue;
            };
            let time = packet.timestamp.expect("events have a time");
            let stack = open.entry(event.track_uuid.expect("a track")).or_default();
            if event.kind == Some(SLICE_BEGIN) {
                stack.push((time, event.name_iid.expect("a name")));
            } else {
                let (start, name) = stack.pop().expect("a slice that ends has begun");
                slices.push((start, time, name));
            }
        }
        assert!(
            open.values().all(Vec::is_empty),
            "every slice that begins also ends"
        );
        slices.sort_unstable();
        slices
    }

    #[test]
    fn slices_come_out_as_they_went_in_however_they_overlap() {
        let mut random = Rng(5);
        for round in 0..200 {
            let mut bytes = Vec::new();
            let mut out =
                Packets::new(&mut bytes, &Category::NAMES).expect("writing to memory cannot fail");
            let mut tracks = Tracks::default();
            let mut expected = Vec::new();
            let names =
                ["a", "b", "c"].map(|name| out.name(name).expect("writing to memory cannot fail"));
            // Times come from a small range. So there are many equal times. Slices of a later batch may start
            // before slices of an earlier batch.
            for _ in 0..3 {
                let slices: Vec<Slice> = (0..random.below(30))
                    .map(|_| {
                        let start_ns = random.below(20) as u64;
                        let end_ns = start_ns + random.below(10) as u64;
                        let name = names[random.below(3)];
                        expected.push((start_ns, end_ns, name.iid()));
                        Slice {
                            place: match round % 2 {
                                0 => Place::Disk(random.below(2) as u32),
                                _ => Place::Interrupts(random.below(2) as u16),
                            },
                            category: Category::Disk,
                            name,
                            start_ns,
                            end_ns,
                            details: Vec::new(),
                        }
                    })
                    .collect();
                tracks
                    .write(slices, &mut out)
                    .expect("writing to memory cannot fail");
            }
            out.finish().expect("writing to memory cannot fail");
            expected.sort_unstable();
            assert_eq!(tracks.left_out, 0);
            assert_eq!(read(&bytes), expected, "round {round}");
        }
    }

    #[test]
    fn instants_of_a_place_share_a_track() {
        let mut bytes = Vec::new();
        let mut out =
            Packets::new(&mut bytes, &Category::NAMES).expect("writing to memory cannot fail");
        let mut tracks = Tracks::default();
        let happened = [
            (Place::Marks, Category::Mark, "begin", 7),
            (Place::Input, Category::Input, "key_down", 7),
            (Place::Marks, Category::Mark, "end", 7),
        ];
        for (place, category, name, time_ns) in happened {
            let instant = Instant {
                place,
                category,
                name,
                time_ns,
                details: Vec::new(),
            };
            let written = tracks.write_instant(instant, &mut out);
            written.expect("writing to memory cannot fail");
        }
        out.finish().expect("writing to memory cannot fail");
        let trace = Trace::decode(&bytes[..]).expect("packets are complete");
        let mut names = HashMap::new();
        let mut tracks = Vec::new();
        for packet in trace.packet {
            if let Some(track) = packet.track_descriptor {
                names.insert(track.uuid.expect("a number"), track.name.expect("a name"));
            } else if let Some(event) = packet.track_event {
                assert_eq!((event.kind, packet.timestamp), (Some(INSTANT), Some(7)));
                let track = names[&event.track_uuid.expect("a track")].clone();
                tracks.push((track, event.name.expect("a name")));
            }
        }
        let expected = [("Marks", "begin"), ("Input", "key_down"), ("Marks", "end")];
        assert_eq!(tracks, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!(names.len(), 2);
    }

    #[test]
    fn what_nests_shares_a_track() {
        let mut bytes = Vec::new();
        let mut out =
            Packets::new(&mut bytes, &Category::NAMES).expect("writing to memory cannot fail");
        let name = out.name("dpc").expect("writing to memory cannot fail");
        let slice = |place, start_ns, end_ns| Slice {
            place,
            category: Category::Interrupt,
            name,
            start_ns,
            end_ns,
            details: Vec::new(),
        };
        let mut tracks = Tracks::default();
        let cpu = Place::Interrupts(3);
        // ETW logs the inner routine first, because it ends first.
        let slices = vec![slice(cpu, 12, 14), slice(cpu, 10, 20), slice(cpu, 20, 21)];
        tracks
            .write(slices, &mut out)
            .expect("writing to memory cannot fail");
        assert_eq!(tracks.lanes[&cpu].len(), 1);
        let disk = Place::Disk(0);
        let slices = vec![slice(disk, 12, 14), slice(disk, 10, 20)];
        tracks
            .write(slices, &mut out)
            .expect("writing to memory cannot fail");
        assert_eq!(tracks.lanes[&disk].len(), 2);
    }
}
