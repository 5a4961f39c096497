//! Facts that no event contains: the CPUs that threads may use, scheduling policies, cgroups with their limits and
//! counters, times of CPUs, and addresses of kernel functions. The facts are lines of files in `/proc` and `/sys`, in the form of
//! `grep -H`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::threads::Thread;

/// Files of the machine.
const OF_MACHINE: [&str; 5] = [
    "/proc/cmdline",
    "/proc/sys/kernel/sched_rr_timeslice_ms",
    "/proc/sys/kernel/sched_rt_period_us",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/uptime",
];

/// Files of a cgroup with its limits, and with counters of their effects.
const OF_CGROUP: [&str; 16] = [
    "cgroup.freeze",
    "cpu.cfs_period_us",
    "cpu.cfs_quota_us",
    "cpu.max",
    "cpu.rt_runtime_us",
    "cpu.stat",
    "cpu.weight",
    "cpuset.cpus",
    "cpuset.cpus.effective",
    "freezer.state",
    "io.max",
    "memory.events",
    "memory.failcnt",
    "memory.high",
    "memory.limit_in_bytes",
    "memory.max",
];

/// Adds the lines of a file for which `is_wanted` returns true. Control characters become spaces, because a thread can
/// have any name and must not be able to add lines.
fn add(facts: &mut String, path: &Path, is_wanted: impl Fn(&str) -> bool) {
    if let Ok(bytes) = fs::read(path) {
        add_lines(facts, path, &bytes, is_wanted);
    }
}

fn add_lines(facts: &mut String, path: &Path, bytes: &[u8], is_wanted: impl Fn(&str) -> bool) {
    for line in String::from_utf8_lossy(bytes).lines() {
        if is_wanted(line) {
            let line = line.replace(|c: char| c.is_control() && c != '\t', " ");
            // Writing to a string cannot fail.
            let _ = writeln!(facts, "{}:{line}", path.display());
        }
    }
}

/// Returns the folder of a thread in `/proc`.
fn task(process_id: u32, thread_id: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{process_id}/task/{thread_id}"))
}

/// Adds the line about the CPUs that a thread may use.
fn add_cpus(facts: &mut String, task: &Path) {
    let is_affinity = |line: &str| line.starts_with("Cpus_allowed_list:");
    add(facts, &task.join("status"), is_affinity);
}

/// Returns the fact about the CPUs that a thread of this process may use at this moment, in the form of the facts of a
/// [`Capture`](crate::Capture). The text is empty if the thread has ended.
pub fn own_cpus(thread_id: u32) -> String {
    let mut facts = String::new();
    add_cpus(&mut facts, &task(std::process::id(), thread_id));
    facts
}

/// Returns the facts about threads at this moment.
pub(crate) fn of_threads(threads: &[Thread]) -> String {
    let mut facts = String::new();
    for thread in threads {
        let task = task(thread.process_id, thread.thread_id);
        add_cpus(&mut facts, &task);
        // `stat` contains the policy, the priority and the nice value (proc(5)). `schedstat` contains how long and how
        // often the thread ran.
        let stat = fs::read(task.join("stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat);
        if let Some((_, numbers)) = stat.rsplit_once(')') {
            let _ = write!(facts, "{}:{}", task.join("stat").display(), numbers.trim());
            facts.push('\n');
        }
        add(&mut facts, &task.join("schedstat"), |_| true);
        if thread.process_id == thread.thread_id {
            // The cgroup of a process is that of its first thread.
            let process = Path::new("/proc").join(thread.process_id.to_string());
            add(&mut facts, &process.join("cgroup"), |_| true);
        }
    }
    facts
}

/// Adds the times of the CPUs. Two readings show what the host of a virtual machine took from them.
fn add_cpu_times(facts: &mut String) {
    add(facts, Path::new("/proc/stat"), |line| {
        line.starts_with("cpu")
    });
}

/// Returns the facts at the start of a recording.
pub(crate) fn at_start(threads: &[Thread]) -> String {
    let mut facts = of_threads(threads);
    add_cpu_times(&mut facts);
    facts
}

/// Returns the facts about the machine and about the cgroups of the threads at this moment.
pub(crate) fn of_machine(threads: &[Thread]) -> String {
    let mut facts = String::new();
    add_cpu_times(&mut facts);
    for path in OF_MACHINE {
        add(&mut facts, Path::new(path), |_| true);
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for folder in cgroups(threads, &mounts) {
        for name in OF_CGROUP {
            add(&mut facts, &folder.join(name), |_| true);
        }
    }
    facts
}

/// Maximum number of bytes of the maps of generated code that are kept.
const MOST_MAP_BYTES: u64 = 32 << 20;

/// Returns the maps of the code that living programs generated while they ran (`/tmp/perf-PID.map`), in the form of
/// `grep -H`. A program in a container has its own `/tmp` and its own process id.
pub(crate) fn code_maps(threads: &[Thread]) -> String {
    let mut facts = String::new();
    let mut left = MOST_MAP_BYTES;
    let processes = threads.iter().filter(|it| it.process_id == it.thread_id);
    for Thread { process_id, .. } in processes {
        if let Some(file) = code_map(*process_id) {
            let mut bytes = Vec::new();
            let read = file.take(left).read_to_end(&mut bytes).unwrap_or_default();
            left -= read as u64;
            let path = format!("/tmp/perf-{process_id}.map");
            add_lines(&mut facts, Path::new(&path), &bytes, |_| true);
        }
    }
    facts
}

/// Opens the map of a process. Everybody can write to `/tmp`, so returns `None` if the file is not a regular file of the
/// process's user or of root.
fn code_map(process_id: u32) -> Option<fs::File> {
    let process = PathBuf::from(format!("/proc/{process_id}"));
    let status = fs::read_to_string(process.join("status")).ok()?;
    let ids = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    let own_id: u32 = ids.split_ascii_whitespace().next_back()?.parse().ok()?;
    let map = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(process.join(format!("root/tmp/perf-{own_id}.map")));
    let map = map.ok()?;
    let (found, user) = (map.metadata().ok()?, fs::metadata(&process).ok()?.uid());
    (found.is_file() && (found.uid() == 0 || found.uid() == user)).then_some(map)
}

/// Returns the folders of the threads' cgroups in all mounted hierarchies.
fn cgroups(threads: &[Thread], mounts: &str) -> BTreeSet<PathBuf> {
    // The mount of a hierarchy has a folder and options with the names of its controllers. Version 2 names no
    // controllers.
    let hierarchies = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (folder, kind, options) = (words.next()?, words.next()?, words.next()?);
        kind.starts_with("cgroup")
            .then_some((folder, kind, options))
    });
    let hierarchies: Vec<_> = hierarchies.collect();
    let mut folders = BTreeSet::new();
    let processes = threads.iter().filter(|it| it.process_id == it.thread_id);
    for process in processes {
        let path = format!("/proc/{}/cgroup", process.process_id);
        for line in fs::read_to_string(path).unwrap_or_default().lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let Some((controllers, path)) = parts.next().zip(parts.next()) else {
                continue;
            };
            let its_hierarchy = hierarchies.iter().find(|(_, kind, options)| {
                if controllers.is_empty() {
                    *kind == "cgroup2"
                } else {
                    let first = controllers.split(',').next().unwrap_or_default();
                    *kind == "cgroup" && options.split(',').any(|option| option == first)
                }
            });
            if let Some((folder, ..)) = its_hierarchy {
                folders.insert(Path::new(folder).join(path.trim_start_matches('/')));
            }
        }
    }
    folders
}

/// Addresses of functions of the kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelSymbols {
    /// Lines of `/proc/kallsyms` about the functions that readers of the facts need.
    pub(crate) lines: String,
    /// Addresses of the functions in `record::linux::LIMIT_TIMERS`, which run when a period of a limit on CPU time
    /// ends.
    pub(crate) limits: Vec<u64>,
    /// Addresses of the start and the end of the kernel's code (`_text` and `_etext`).
    pub(crate) code: Option<(u64, u64)>,
}

impl KernelSymbols {
    /// Reads `/proc/kallsyms`. If the caller may not see addresses, the file contains zeros instead, and all fields
    /// stay empty. If `are_all_needed` is true, the lines of all functions are kept, because samples contain addresses
    /// of any function.
    pub(crate) fn read(are_all_needed: bool) -> KernelSymbols {
        let text = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        KernelSymbols::parse(&text, are_all_needed)
    }

    fn parse(text: &str, are_all_needed: bool) -> KernelSymbols {
        let mut symbols = KernelSymbols::default();
        let (mut start, mut end) = (None, None);
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let Some(((address, kind), name)) = words.next().zip(words.next()).zip(words.next())
            else {
                continue;
            };
            let address = u64::from_str_radix(address, 16).ok();
            let Some(address) = address.filter(|address| *address != 0) else {
                continue;
            };
            match name {
                "_text" => start = Some(address),
                "_etext" => end = Some(address),
                _ => {}
            }
            let is_limit = record::linux::LIMIT_TIMERS.contains(&name);
            if is_limit {
                symbols.limits.push(address);
            }
            if is_limit || are_all_needed && matches!(kind, "t" | "T" | "w" | "W") {
                symbols.lines += line;
                symbols.lines.push('\n');
            }
        }
        symbols.code = start.zip(end);
        symbols
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_without_addresses_are_unknown() {
        let text = "ffffffff81000000 T _text\nffffffff81e00000 T _etext\n0000000000000000 t dl_task_timer\n\
            ffffffff813b8bb0 t sched_cfs_period_timer\nffffffff82000000 D data\nx\n";
        let symbols = KernelSymbols::parse(text, false);
        assert_eq!(symbols.limits, [0xFFFF_FFFF_813B_8BB0]);
        assert_eq!(
            symbols.code,
            Some((0xFFFF_FFFF_8100_0000, 0xFFFF_FFFF_81E0_0000))
        );
        assert_eq!(symbols.lines, "ffffffff813b8bb0 t sched_cfs_period_timer\n");
        let all = KernelSymbols::parse(text, true).lines;
        assert_eq!(all.lines().count(), 3, "{all}");
    }

    #[test]
    fn the_map_of_a_living_program_is_a_fact() {
        let path = format!("/tmp/perf-{}.map", std::process::id());
        fs::write(&path, "7f00 10 fib /x.js\n8000 8 \x1b[31mred\n").unwrap();
        let maps = code_maps(&crate::threads::all());
        fs::remove_file(&path).unwrap();
        assert!(maps.contains(&format!(
            "{path}:7f00 10 fib /x.js\n{path}:8000 8  [31mred\n"
        )));
        std::os::unix::fs::symlink("/proc/self/status", &path).unwrap();
        let maps = code_maps(&crate::threads::all());
        fs::remove_file(&path).unwrap();
        assert!(!maps.contains(&path), "{maps}");
    }

    #[test]
    fn facts_about_this_thread_are_lines_with_their_file() {
        let threads = crate::threads::all();
        let facts = of_threads(&threads);
        let own = format!(
            "/proc/{0}/task/{0}/status:Cpus_allowed_list:",
            std::process::id()
        );
        assert!(facts.lines().any(|line| line.starts_with(&own)), "{own}");
        assert!(facts.lines().all(|line| line.starts_with("/proc/")));
    }
}
