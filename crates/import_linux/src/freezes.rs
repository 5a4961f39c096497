//! Freezes of processes by cgroups of version 2.

use linux::{Event, EventKind, Meaning};
use rustc_hash::FxHashMap;

use tables::import::Interval;
use tables::{ProcessFreezes, Processes};

use crate::proc_facts::ProcFacts;

/// Maximum number of ancestors that are searched for the cgroup of a process.
const ANCESTORS: usize = 16;

/// Maximum number of rows. If one cgroup contains all processes of a machine, a freeze of this cgroup makes thousands
/// of rows.
const MOST: usize = 1 << 20;

/// Maximum number of freezes. It limits the time that a hostile recording needs.
const MOST_FREEZES: usize = 4096;

/// Changes of cgroups, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    changes: Vec<(i64, Change)>,
}

#[derive(Debug)]
enum Change {
    /// All processes of a cgroup are frozen or thawed.
    Frozen {
        root: i64,
        path: String,
        is_frozen: bool,
    },
    /// A process moves to a cgroup.
    Attached {
        root: i64,
        path: String,
        process_id: u32,
    },
}

impl Cgroups {
    pub(crate) fn add(&mut self, time_ns: i64, event: &Event<'_>) {
        let EventKind::Tracepoint { tracepoint, .. } = &event.kind else {
            return;
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let change = match tracepoint.meaning {
            Meaning::CgroupFrozen {
                root,
                path,
                is_frozen,
            } => Change::Frozen {
                root,
                path: text(path),
                is_frozen,
            },
            Meaning::CgroupAttached {
                root,
                path,
                thread_id,
            } => Change::Attached {
                root,
                path: text(path),
                process_id: thread_id,
            },
            _ => return,
        };
        self.changes.push((time_ns, change));
    }

    /// Adds the changes of another part of the recording.
    pub(crate) fn merge(&mut self, other: Cgroups) {
        self.changes.extend(other.changes);
    }

    /// Makes the table. `end_ns` is the end of the recording.
    pub(crate) fn into_table(
        mut self,
        processes: &Processes,
        facts: &ProcFacts,
        end_ns: i64,
    ) -> ProcessFreezes {
        self.changes.sort_by_key(|(time_ns, _)| *time_ns);
        let is_frozen = |(_, change): &&(i64, Change)| matches!(change, Change::Frozen { .. });
        let Some((_, Change::Frozen { root, .. })) = self.changes.iter().find(is_frozen) else {
            return ProcessFreezes::default();
        };
        let members = Members::new(&self.changes, *root, processes, facts);
        let mut open: FxHashMap<&str, Interval> = FxHashMap::default();
        let mut freezes: Vec<(&str, Interval)> = Vec::new();
        for (time_ns, change) in &self.changes {
            match change {
                Change::Frozen {
                    path,
                    is_frozen: true,
                    ..
                } => {
                    let opened = Interval::open(0, *time_ns);
                    open.entry(path).or_insert(opened);
                }
                Change::Frozen { path, .. } => {
                    let before = Interval::since_before(0, 0);
                    let interval = open.remove(&**path).unwrap_or(before);
                    freezes.push((path, interval.ended(*time_ns)));
                }
                Change::Attached { .. } => {}
            }
        }
        freezes.extend((open.into_iter()).map(|(path, interval)| (path, interval.cut(end_ns))));
        freezes.sort_by_key(|(path, interval)| (interval.start_ns, *path));
        freezes.truncate(MOST_FREEZES);
        let mut rows: Vec<(Interval, usize)> = Vec::new();
        for (path, interval) in freezes {
            let of_path = (0..processes.len()).filter(|row| members.has(*row, path, interval));
            rows.extend(of_path.map(|row| (interval, row)).take(MOST - rows.len()));
        }
        let mut table = ProcessFreezes::default();
        for (interval, row) in rows {
            table.start_ns.push(interval.start_ns);
            table.end_ns.push(interval.end_ns);
            table.starts_at_event.push(interval.starts_at_event);
            table.ends_at_event.push(interval.ends_at_event);
            table.process_id.push(processes.process_id[row]);
            table.process_row.push(u32::try_from(row).ok());
        }
        table
    }
}

/// Processes of cgroups.
struct Members<'c> {
    processes: &'c Processes,
    facts: &'c ProcFacts,
    /// Moves of each process to another cgroup, in time order.
    moves: FxHashMap<u32, Vec<(i64, &'c str)>>,
    /// Last row in `processes` of each process id.
    rows: FxHashMap<u32, usize>,
}

impl<'c> Members<'c> {
    fn new(
        changes: &'c [(i64, Change)],
        wanted: i64,
        processes: &'c Processes,
        facts: &'c ProcFacts,
    ) -> Members<'c> {
        let mut moves: FxHashMap<u32, Vec<(i64, &str)>> = FxHashMap::default();
        for (time_ns, change) in changes {
            if let Change::Attached {
                root,
                path,
                process_id,
            } = change
                && *root == wanted
            {
                moves.entry(*process_id).or_default().push((*time_ns, path));
            }
        }
        Members {
            processes,
            facts,
            moves,
            rows: (processes.process_id.iter().copied().zip(0..)).collect(),
        }
    }

    /// Returns true if the process of a row lived during an interval and was in a cgroup at the end of the interval.
    fn has(&self, row: usize, path: &str, interval: Interval) -> bool {
        let (start_ns, end_ns) = (
            self.processes.start_ns.get(row),
            self.processes.end_ns.get(row),
        );
        start_ns.is_none_or(|start_ns| start_ns < interval.end_ns)
            && end_ns.is_none_or(|end_ns| end_ns > interval.start_ns)
            && self.path(self.processes.process_id[row], interval.end_ns) == Some(path)
    }

    /// Returns the path of a process's cgroup at a given time. This is the cgroup to which the process last moved. If
    /// the recording has no move of the process, this is the cgroup in the facts. If the facts do not have the process,
    /// or if all its moves are later, this is the cgroup that the parent had when the process started.
    fn path(&self, process_id: u32, time_ns: i64) -> Option<&str> {
        let (mut process_id, mut time_ns) = (process_id, time_ns);
        for _ in 0..ANCESTORS {
            if let Some(moves) = self.moves.get(&process_id) {
                let before = moves.partition_point(|(at_ns, _)| *at_ns <= time_ns);
                if let Some((_, path)) = before.checked_sub(1).and_then(|at| moves.get(at)) {
                    return Some(path);
                }
            } else if let Some(path) = self.facts.cgroups.get(&process_id) {
                return Some(path);
            }
            let row = *self.rows.get(&process_id)?;
            time_ns = self.processes.start_ns.get(row)?;
            process_id = self.processes.parent_id[row];
        }
        None
    }
}
