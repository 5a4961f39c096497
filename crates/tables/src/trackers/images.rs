//! Look-up of images by address, process and time.

use std::collections::HashMap;

use crate::Images;

/// Process id in the events about the kernel's modules.
const KERNEL: u32 = 0;

/// Look-up of images. It finds the image at an address of a process at a given time. With n images, a look-up
/// takes O(log² n) time, even in a hostile trace.
#[derive(Clone, Debug, Default)]
pub struct ImageTracker {
    spaces: HashMap<u32, Space>,
}

/// Images of one process, in a segment tree over addresses. Each image is listed at a few nodes. These nodes
/// together cover the address range of the image. So all images that contain an address are listed on the
/// path from the leaf of the address to the root.
#[derive(Clone, Debug, Default)]
struct Space {
    /// Start and end addresses of images in ascending order. Leaf `i` covers the addresses from
    /// bound `i` to bound `i + 1`.
    bounds: Vec<u64>,
    /// Nodes in heap order. The children of node `n` are `2n` and `2n + 1`. The leaves come last.
    nodes: Vec<Vec<Mapping>>,
}

/// An image that is mapped from the time `first` to the time `last`.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    first: i64,
    last: i64,
    row: usize,
}

impl ImageTracker {
    /// Reads the lifetimes in the table. If an image has no load time, it counts as mapped since the previous image at
    /// its address was unmapped. If this time is unknown, it counts as mapped since its first event. If there is no
    /// previous image, it counts as mapped at all earlier times.
    pub fn new(table: &Images) -> ImageTracker {
        let mut rows: Vec<usize> = (0..table.len()).collect();
        let place = |row: usize| (table.process_id.get(row), table.base_address[row]);
        rows.sort_by_key(|row| (place(*row), table.first_seen_ns[*row]));
        let mut by_process: HashMap<u32, Vec<Mapping>> = HashMap::new();
        let mut before: Option<usize> = None;
        for row in rows {
            let since = before
                .replace(row)
                .filter(|before| place(*before) == place(row))
                .map(|before| {
                    let end = table.unload_ns.get(before);
                    end.map_or(table.first_seen_ns[row], |end| end.saturating_add(1))
                });
            let Some(process_id) = table.process_id.get(row) else {
                continue;
            };
            by_process.entry(process_id).or_default().push(Mapping {
                first: table.load_ns.get(row).or(since).unwrap_or(i64::MIN),
                last: table.unload_ns.get(row).unwrap_or(i64::MAX),
                row,
            });
        }
        ImageTracker {
            spaces: by_process
                .into_iter()
                .map(|(process_id, mappings)| (process_id, Space::new(table, mappings)))
                .collect(),
        }
    }

    /// Returns the row of the image at an address of a process. `time_ns` is in nanoseconds since the trace's
    /// start. The kernel's modules are in every process. If several images contain the address, returns the
    /// image that was mapped last.
    pub fn lookup(&self, process_id: u32, address: u64, time_ns: i64) -> Option<usize> {
        let in_process = |process_id| self.spaces.get(&process_id)?.row(address, time_ns);
        in_process(process_id).or_else(|| in_process(KERNEL))
    }
}

impl Space {
    fn new(table: &Images, mut mappings: Vec<Mapping>) -> Space {
        let range = |mapping: &Mapping| {
            let base = table.base_address[mapping.row];
            (base, base.saturating_add(table.size_bytes[mapping.row]))
        };
        let mut bounds: Vec<u64> = mappings
            .iter()
            .map(range)
            .flat_map(|(from, to)| [from, to])
            .collect();
        bounds.sort_unstable();
        bounds.dedup();
        let leaves = bounds.len();
        let mut nodes: Vec<Vec<Mapping>> = vec![Vec::new(); leaves * 2];
        let leaf = |address: u64| leaves + bounds.partition_point(|bound| *bound < address);
        mappings.sort_by_key(|mapping| mapping.first);
        for mapping in mappings {
            let (from, to) = range(&mapping);
            let (mut from, mut to) = (leaf(from), leaf(to));
            while from < to {
                if from % 2 == 1 {
                    nodes[from].push(mapping);
                    from += 1;
                }
                if to % 2 == 1 {
                    to -= 1;
                    nodes[to].push(mapping);
                }
                from /= 2;
                to /= 2;
            }
        }
        Space { bounds, nodes }
    }

    fn row(&self, address: u64, time_ns: i64) -> Option<usize> {
        let leaf = self.bounds.partition_point(|bound| *bound <= address);
        let mut node = self.bounds.len() + leaf.checked_sub(1)?;
        let mut best: Option<Mapping> = None;
        while node >= 1 {
            let mappings = &self.nodes[node];
            let begun = mappings.partition_point(|mapping| mapping.first <= time_ns);
            let latest = begun.checked_sub(1).map(|at| mappings[at]);
            if let Some(mapping) = latest.filter(|mapping| mapping.last >= time_ns)
                && best.is_none_or(|best| best.first <= mapping.first)
            {
                best = Some(mapping);
            }
            node /= 2;
        }
        best.map(|mapping| mapping.row)
    }
}
