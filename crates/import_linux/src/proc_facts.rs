//! Facts that a recording of Linux does not contain. They are read from a text file next to the recording. The file
//! has lines of files in `/proc`, as `grep` prints them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use tables::LimitKind;

/// Maximum number of bytes that are read from the file. The line of a thread has about 60 bytes.
const LARGEST: u64 = 256 << 20;

/// Facts about threads and the kernel at some moment of the recording.
#[derive(Debug, Default)]
pub(crate) struct ProcFacts {
    /// CPUs that each thread may use, as a bit mask, by thread id.
    pub(crate) affinities: FxHashMap<u32, u64>,
    /// Ids of the processes of threads, by thread id.
    pub(crate) processes: FxHashMap<u32, u32>,
    /// Paths of the cgroups (version 2) of processes.
    pub(crate) cgroups: FxHashMap<u32, String>,
    /// Kind of limit on CPU time, by the address of the timer function that runs when a period of the limit ends.
    pub(crate) limits: FxHashMap<u64, LimitKind>,
}

/// Returns the path of the file with the facts about a recording: the path of the recording, followed by `.proc`.
pub fn path_of(recording: &Path) -> PathBuf {
    let mut path = recording.as_os_str().to_owned();
    path.push(".proc");
    path.into()
}

/// Reads the file with the facts about a recording. Returns `None` if the file does not exist.
///
/// # Errors
/// Returns an error if the file exists but cannot be read.
pub(crate) fn read_next_to(recording: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    match File::open(path_of(recording)) {
        Ok(file) => file.take(LARGEST).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(bytes))
}

impl ProcFacts {
    /// Reads the file with the facts about a recording. Returns no facts if the file does not exist.
    ///
    /// # Errors
    /// Returns an error if the file exists but cannot be read.
    pub(crate) fn read(recording: &Path) -> io::Result<ProcFacts> {
        let bytes = read_next_to(recording)?.unwrap_or_default();
        Ok(ProcFacts::parse(&String::from_utf8_lossy(&bytes)))
    }

    /// Reads lines such as `/proc/1/task/1/status:Cpus_allowed_list: 0-3` and `/proc/1/cgroup:0::/init.scope`, and
    /// lines of `/proc/kallsyms` such as `ffffffff813b8bb0 t sched_cfs_period_timer`. Other lines are ignored.
    fn parse(text: &str) -> ProcFacts {
        let mut facts = ProcFacts::default();
        for line in text.lines() {
            let affinity = line.split_once("/status:Cpus_allowed_list:");
            let thread = affinity.and_then(|(folder, cpus)| {
                let (process, thread) = folder.strip_prefix("/proc/")?.split_once("/task/")?;
                Some((process.parse().ok()?, thread.parse().ok()?, cpus.trim()))
            });
            if let Some((process, thread, cpus)) = thread {
                facts.processes.insert(thread, process);
                facts
                    .affinities
                    .extend(mask(cpus).map(|mask| (thread, mask)));
            }
            let cgroup = line.split_once("/cgroup:0::");
            let cgroup = cgroup.and_then(|(folder, path)| {
                let process = folder.strip_prefix("/proc/")?;
                Some((process.parse().ok()?, path.to_owned()))
            });
            facts.cgroups.extend(cgroup);
            let mut words = line.split_ascii_whitespace();
            let function = (words.next().zip(words.nth(1))).and_then(|(address, name)| {
                let address = u64::from_str_radix(address, 16)
                    .ok()
                    .filter(|it| *it != 0)?;
                Some((address, LimitKind::of_function(name)?))
            });
            facts.limits.extend(function);
        }
        facts
    }
}

/// Converts a list of CPUs such as `0-3,8` to a bit mask. Returns `None` if the text is not such a list. Also returns
/// `None` if a CPU has number 64 or higher, because this number does not fit into the mask.
fn mask(list: &str) -> Option<u64> {
    let mut mask = 0;
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= u64::BITS {
            return None;
        }
        mask |= u64::MAX >> (u64::BITS - 1 - (last - first)) << first;
    }
    Some(mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_become_masks() {
        for (list, expected) in [
            ("0", Some(1)),
            ("0-1", Some(3)),
            ("1,3-4", Some(0b11010)),
            ("0-63", Some(u64::MAX)),
            ("63", Some(1 << 63)),
            ("0-64", None),
            ("3-1", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(mask(list), expected, "{list}");
        }
    }

    #[test]
    fn lines_of_proc_are_read_and_others_ignored() {
        // The lines have the form of `grep -H` (GNU grep) and of proc(5).
        let text = "/proc/1/task/1/status:Cpus_allowed_list:\t0-1\n\
            /proc/7/task/9/status:Cpus_allowed_list:\t1\n\
            /proc/7/task/x/status:Cpus_allowed_list:\t1\n\
            grep: /proc/8/task/8/status: No such file or directory\n\
            /proc/7/cgroup:0::/a b:c\n\
            /proc/7/cgroup:4:memory:/x\n\
            ffffffff813b8bb0 t sched_cfs_period_timer\n\
            ffffffff813b8bc0 t sched_cfs_slack_timer\n\
            0000000000000000 t dl_task_timer\n";
        let facts = ProcFacts::parse(text);
        let mut affinities: Vec<_> = facts
            .affinities
            .iter()
            .map(|(id, mask)| (*id, *mask))
            .collect();
        affinities.sort_unstable();
        assert_eq!(affinities, [(1, 3), (9, 2)]);
        assert_eq!((facts.processes[&1], facts.processes[&9]), (1, 7));
        let cgroups: Vec<_> = facts.cgroups.into_iter().collect();
        assert_eq!(cgroups, [(7, "/a b:c".to_owned())]);
        // If the reader of /proc/kallsyms has no rights, the file shows zeros instead of addresses.
        let limits: Vec<_> = facts.limits.into_iter().collect();
        assert_eq!(limits, [(0xFFFF_FFFF_813B_8BB0, LimitKind::CpuMax)]);
    }
}
