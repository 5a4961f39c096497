//! Files that are mapped into processes of Linux.

use std::collections::HashMap;
use std::fmt::Write;

use linux::{Event, EventKind};
use rustc_hash::FxHashMap;

use tables::{Images, is_generated};

/// Maximum number of copied rows. The rows of a process are copied if a child starts with the memory of this process.
const MOST_INHERITED: usize = 1 << 20;

/// Process id that stands for the kernel.
const KERNEL: u32 = 0;

/// Facts about mapped files, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    facts: Vec<(i64, Fact)>,
}

#[derive(Debug)]
enum Fact {
    /// A file is mapped into a process. If `is_new` is false, the file was mapped before the recording.
    Mapped {
        process_id: u32,
        is_new: bool,
        base_address: u64,
        size_bytes: u64,
        path: String,
        build_id: Option<String>,
    },
    /// A process started with the memory of its parent.
    Forked { process_id: u32, parent_id: u32 },
    /// A process ended, or started another program.
    Unmapped { process_id: u32 },
}

impl Mappings {
    pub(crate) fn add(&mut self, time_ns: i64, event: &Event<'_>) {
        let fact = match &event.kind {
            EventKind::Mapped {
                address,
                length,
                file_offset,
                path,
                build_id,
            } => {
                let process_id = event.process_id.unwrap_or(KERNEL);
                // The base address of an image is the address at which the start of its file would be mapped. For the
                // kernel and for memory without a file, the recorded offset is an address, so it is not subtracted.
                let before = match process_id {
                    KERNEL => 0,
                    _ if is_generated(path) => 0,
                    _ => (*file_offset).min(*address),
                };
                let kernel = path.strip_suffix("_text").or(path.strip_suffix("_stext"));
                let path = kernel.filter(|_| process_id == KERNEL).unwrap_or(path);
                Fact::Mapped {
                    process_id,
                    is_new: event.time_ns.is_some(),
                    base_address: address - before,
                    size_bytes: length.saturating_add(before),
                    path: path.to_owned(),
                    build_id: build_id.as_deref().map(hexadecimal),
                }
            }
            EventKind::Started {
                parent_process_id, ..
            } => match event.process_id {
                Some(process_id) if event.time_ns.is_some() && process_id != *parent_process_id => {
                    Fact::Forked {
                        process_id,
                        parent_id: *parent_process_id,
                    }
                }
                _ => return,
            },
            EventKind::Name { is_exec: true, .. } => match event.process_id {
                Some(process_id) => Fact::Unmapped { process_id },
                None => return,
            },
            EventKind::Ended => match event.process_id {
                Some(process_id) if event.thread_id == Some(process_id) => {
                    Fact::Unmapped { process_id }
                }
                _ => return,
            },
            _ => return,
        };
        self.facts.push((time_ns, fact));
    }

    /// Adds the facts of another part of the recording.
    pub(crate) fn merge(&mut self, other: Mappings) {
        self.facts.extend(other.facts);
    }

    /// Makes the table. `build_ids` has build ids of files by path. They are used for mappings without a build id.
    pub(crate) fn into_table(mut self, build_ids: &HashMap<String, Vec<u8>>) -> Images {
        self.facts.sort_by_key(|(time_ns, _)| *time_ns);
        let mut images = Images::default();
        let mut mapped: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        let mut inherited = 0;
        for (time_ns, fact) in self.facts {
            match fact {
                Fact::Mapped {
                    process_id,
                    is_new,
                    base_address,
                    size_bytes,
                    path,
                    build_id,
                } => {
                    let load_ns = is_new.then_some(time_ns);
                    let place = (base_address, size_bytes);
                    let known = || build_ids.get(&path).map(|id| hexadecimal(id));
                    let file = (&*path, build_id.or_else(known));
                    push_image(&mut images, time_ns, load_ns, process_id, place, file);
                    let rows = mapped.entry(process_id).or_default();
                    rows.push(images.len() - 1);
                }
                Fact::Forked {
                    process_id,
                    parent_id,
                } => {
                    let rows = mapped.get(&parent_id).cloned().unwrap_or_default();
                    inherited += rows.len();
                    if inherited > MOST_INHERITED {
                        continue;
                    }
                    let copies = mapped.entry(process_id).or_default();
                    for row in rows {
                        let path = images.path.get(row).unwrap_or_default().to_owned();
                        let place = (images.base_address[row], images.size_bytes[row]);
                        let build_id = images.build_id.get(row).map(str::to_owned);
                        let file = (&*path, build_id);
                        push_image(&mut images, time_ns, Some(time_ns), process_id, place, file);
                        copies.push(images.len() - 1);
                    }
                }
                Fact::Unmapped { process_id } => {
                    for row in mapped.remove(&process_id).into_iter().flatten() {
                        images.unload_ns.set(row, Some(time_ns));
                    }
                }
            }
        }
        images
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

fn push_image(
    images: &mut Images,
    time_ns: i64,
    load_ns: Option<i64>,
    process_id: u32,
    (base_address, size_bytes): (u64, u64),
    (path, build_id): (&str, Option<String>),
) {
    images.first_seen_ns.push(time_ns);
    images.load_ns.push(load_ns);
    // The look-up of images reads this column before it becomes a batch.
    images.unload_ns.push(None);
    images.process_id.push(Some(process_id));
    images.base_address.push(base_address);
    images.size_bytes.push(size_bytes);
    images.path.push(Some(path));
    images.build_id.push(build_id.as_deref());
}
