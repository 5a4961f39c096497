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
    /// Ids of the parents of processes, by process id.
    pub(crate) parents: FxHashMap<u32, u32>,
    /// Policies and nice values of threads, by thread id.
    pub(crate) scheduling: FxHashMap<u32, Scheduling>,
    /// Paths of the cgroups (version 2) of processes.
    pub(crate) cgroups: FxHashMap<u32, String>,
    /// Paths of the cgroups of processes in the hierarchy of the CPU controller, if it has version 1.
    cpu_cgroups: FxHashMap<u32, String>,
    /// Kind of limit on CPU time, by the address of the timer function that runs when a period of the limit ends.
    pub(crate) limits: FxHashMap<u64, LimitKind>,
    /// Times of each CPU, when the facts had them for the first and for the last time.
    cpu_times: FxHashMap<u16, [CpuTimes; 2]>,
}

/// Times of a CPU since the start of the machine, in units of [`TICK_NS`].
#[derive(Clone, Copy, Debug)]
struct CpuTimes {
    stolen: u64,
    sum: u64,
}

/// Unit of the times in `/proc/stat`: `USER_HZ` is 100 on all processors but Alpha. Source: time(7) of the Linux manual,
/// `include/asm-generic/param.h`.
const TICK_NS: i64 = 10_000_000;

impl CpuTimes {
    /// Reads a line of `/proc/stat`, such as `cpu0 6123 0 1642 325752 30 0 14 1 0 0`. Also returns the number of the CPU.
    /// Source: proc_stat(5) of the Linux manual. The times of guests (the last two) are a part of the first two.
    fn parse(line: &str) -> Option<(u16, CpuTimes)> {
        let mut words = line.split_ascii_whitespace();
        let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
        let times = words.take(8).map(|word| word.parse().ok());
        let times: Vec<u64> = times.collect::<Option<_>>()?;
        let stolen = *times.get(7)?;
        let sum = times
            .iter()
            .try_fold(0u64, |sum, time| sum.checked_add(*time))?;
        Some((cpu, CpuTimes { stolen, sum }))
    }
}

/// Time that the host of a virtual machine took from a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StolenTime {
    pub(crate) ns: i64,
    /// Time in which the stolen time was counted, in nanoseconds.
    pub(crate) within_ns: i64,
}

/// Returns the fields of the file `/proc/PID/task/TID/stat` from the state on, which is field 3. The id and the name of
/// the thread may be missing. Source of the fields: proc_pid_stat(5) of the Linux manual.
fn stat_fields(stat: &str) -> impl Iterator<Item = &str> {
    // The name is in parentheses, and can contain any character.
    let fields = stat.rsplit_once(')').map_or(stat, |(_, fields)| fields);
    fields.split_ascii_whitespace()
}

/// Policy and nice value of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scheduling {
    /// Name of the policy.
    pub(crate) policy: &'static str,
    pub(crate) nice: i8,
}

impl Scheduling {
    /// Reads the file `/proc/PID/task/TID/stat`. Source of the policies: `include/uapi/linux/sched.h`.
    fn parse(stat: &str) -> Option<Scheduling> {
        // The nice value is field 19, and the policy is field 41.
        let mut fields = stat_fields(stat);
        let nice = fields.nth(19 - 3)?.parse().ok()?;
        let policy = match fields.nth(41 - 19 - 1)? {
            "0" => "other",
            "1" => "fifo",
            "2" => "rr",
            "3" => "batch",
            "5" => "idle",
            "6" => "deadline",
            "7" => "ext",
            _ => return None,
        };
        Some(Scheduling { policy, nice })
    }
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

    /// Returns the path of a process's cgroup. If the CPU controller has version 1, this is the path in its hierarchy.
    pub(crate) fn cpu_cgroup(&self, process_id: u32) -> Option<&str> {
        let of_cpu = self.cpu_cgroups.get(&process_id);
        of_cpu.or(self.cgroups.get(&process_id)).map(String::as_str)
    }

    /// Returns the time that the host took from a CPU between the two readings of its times.
    pub(crate) fn stolen(&self, cpu: u16) -> Option<StolenTime> {
        let [first, last] = self.cpu_times.get(&cpu)?;
        let between = |first: u64, last: u64| {
            let ticks = i64::try_from(last.checked_sub(first)?).ok()?;
            ticks.checked_mul(TICK_NS)
        };
        let ns = between(first.stolen, last.stolen)?;
        let within_ns = between(first.sum, last.sum)?;
        (within_ns > 0).then_some(StolenTime { ns, within_ns })
    }

    /// Reads lines of these files, as `grep -H` prints them, and lines of `/proc/kallsyms`. Other lines are ignored.
    ///
    /// - `/proc/stat:cpu0 6123 0 1642 325752 30 0 14 1 0 0`
    /// - `/proc/1/task/1/status:Cpus_allowed_list: 0-3`
    /// - `/proc/1/task/1/stat:1 (systemd) S 0 1 …`, also without the id and the name of the thread
    /// - `/proc/1/cgroup:0::/init.scope`
    /// - `ffffffff813b8bb0 t sched_cfs_period_timer`
    fn parse(text: &str) -> ProcFacts {
        let mut facts = ProcFacts::default();
        for line in text.lines() {
            let of_proc = line.strip_prefix("/proc/");
            match of_proc.and_then(|line| line.split_once(':')) {
                Some((path, text)) => {
                    facts.add_file(path, text);
                }
                None => facts.limits.extend(limit(line)),
            }
        }
        facts
    }

    /// Adds the text of a line of a file. `path` is the path of the file in `/proc`.
    fn add_file(&mut self, path: &str, text: &str) -> Option<()> {
        if path == "stat" {
            let (cpu, times) = CpuTimes::parse(text)?;
            let both = self.cpu_times.entry(cpu).or_insert([times; 2]);
            both[1] = times;
            return Some(());
        }
        let (process, file) = path.split_once('/')?;
        let process: u32 = process.parse().ok()?;
        if file == "cgroup" {
            // A line has the number of the hierarchy, its controllers and the path.
            let (_, of_hierarchy) = text.split_once(':')?;
            let (controllers, path) = of_hierarchy.split_once(':')?;
            if controllers.is_empty() {
                self.cgroups.insert(process, path.to_owned());
            } else if controllers.split(',').any(|it| it == "cpu") {
                self.cpu_cgroups.insert(process, path.to_owned());
            }
            return Some(());
        }
        let (thread, file) = file.strip_prefix("task/")?.split_once('/')?;
        let thread = thread.parse().ok()?;
        match file {
            "status" => {
                let cpus = text.strip_prefix("Cpus_allowed_list:")?;
                self.processes.insert(thread, process);
                self.affinities.insert(thread, mask(cpus.trim())?);
            }
            "stat" => {
                // The parent of the process is field 4.
                let parent = stat_fields(text).nth(1).and_then(|id| id.parse().ok());
                self.parents.extend(parent.map(|parent| (process, parent)));
                self.scheduling.insert(thread, Scheduling::parse(text)?);
            }
            _ => {}
        }
        Some(())
    }
}

/// Returns the kind of a limit on CPU time, and the address of its timer function. Reads a line of `/proc/kallsyms`.
fn limit(line: &str) -> Option<(u64, LimitKind)> {
    let mut words = line.split_ascii_whitespace();
    let (address, name) = words.next().zip(words.nth(1))?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let kind = LimitKind::of_function(name)?;
    (address != 0).then_some((address, kind))
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
            /proc/7/cgroup:2:cpuset,cpuacct:/y\n\
            /proc/9/cgroup:3:cpuacct,cpu:/z:z\n\
            /proc/9/cgroup:0::/\n\
            /proc/7/task/9/stat:S 1 7 7 0 -1 64 1 2 3 4 5 6 7 8 39 19 1 0 99 100 9 18446744073709551615 1 1 0 0 0 0 0 0 0 \
            0 0 0 17 1 0 3 0 0 0\n\
            /proc/7/task/7/stat:7 (a) R 1 b) R 1 7 7 0 -1 64 1 2 3 4 5 6 7 8 -11 0 1 0 99 100 9 18446744073709551615 1 1 0 0 0 0 0 0 0 \
            0 0 0 17 1 10 1 0 0 0\n\
            /proc/7/task/8/stat:R 1\n\
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
        let cgroups = [1, 7, 9].map(|process| facts.cpu_cgroup(process));
        assert_eq!(cgroups, [None, Some("/a b:c"), Some("/z:z")]);
        assert_eq!(facts.cgroups.len(), 2);
        assert_eq!(facts.parents.get(&7), Some(&1));
        let scheduling = [7, 8, 9].map(|thread| facts.scheduling.get(&thread).copied());
        let scheduled = |policy, nice| Some(Scheduling { policy, nice });
        assert_eq!(
            scheduling,
            [scheduled("fifo", 0), None, scheduled("batch", 19)]
        );
        assert_eq!(facts.stolen(0), None);
        // If the reader of /proc/kallsyms has no rights, the file shows zeros instead of addresses.
        let limits: Vec<_> = facts.limits.into_iter().collect();
        assert_eq!(limits, [(0xFFFF_FFFF_813B_8BB0, LimitKind::CpuMax)]);
    }

    #[test]
    fn stolen_time_is_the_difference_of_the_first_and_the_last_line_of_a_cpu() {
        let text = "/proc/stat:cpu  24 0 6 1600 0 0 0 70 0 0\n\
            /proc/stat:cpu0 12 1 3 800 4 5 6 30 7 0\n\
            /proc/stat:cpu1 12 0 3 800 0 0 0 40 0 0\n\
            /proc/stat:cpu2 12 0 3 800 0 0 0 40 0 0\n\
            /proc/stat:cpu3 12 0 3\n\
            /proc/stat:cpu4 12 0 3 800 0 0 0 x 0 0\n\
            /proc/stat:cpu5 18446744073709551615 0 3 800 0 0 0 1 0 0\n\
            /proc/stat:cpu0 13 1 3 801 4 5 6 31 7 0\n\
            /proc/stat:cpu0 32 1 3 880 4 5 6 130 27 0\n\
            /proc/stat:cpu1 32 0 3 880 0 0 0 39 0 0\n\
            /proc/stat:cpu9\n";
        let facts = ProcFacts::parse(text);
        let (ns, within_ns) = (1_000_000_000, 2_000_000_000);
        assert_eq!(facts.stolen(0), Some(StolenTime { ns, within_ns }));
        for cpu in 1..=9 {
            assert_eq!(facts.stolen(cpu), None, "{cpu}");
        }
    }
}
