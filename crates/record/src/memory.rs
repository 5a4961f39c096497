//! Memory that is available to this process.

/// Returns the number of bytes of memory that this process can get without swapping. On Linux, the limits of
/// control groups (version 2) are included. Returns `None` if the memory is unknown.
pub fn available_memory() -> Option<u64> {
    #[cfg(windows)]
    {
        let memory = crate::this_machine::memory_status()?;
        Some(memory.ullAvailPhys.min(memory.ullAvailPageFile))
    }
    #[cfg(target_os = "linux")]
    {
        linux::available(std::path::Path::new("/"))
    }
    #[cfg(not(any(windows, target_os = "linux")))]
    {
        None
    }
}

#[cfg(any(target_os = "linux", test))]
mod linux {
    use std::fs;
    use std::path::Path;

    /// Returns the available memory according to the files below `root`.
    pub(super) fn available(root: &Path) -> Option<u64> {
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let machine = number_after(&read("proc/meminfo"), "MemAvailable:")?.saturating_mul(1024);
        let groups = read("proc/self/cgroup");
        let group = groups.lines().find_map(|line| line.strip_prefix("0::/"));
        // The limit of a group also applies to all groups inside it.
        let groups = group
            .into_iter()
            .flat_map(|group| Path::new(group).ancestors());
        let left = groups.filter_map(|group| {
            let folder = root.join("sys/fs/cgroup").join(group);
            let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
            let stat = read("memory.stat").unwrap_or_default();
            rest_of(&read("memory.max")?, &read("memory.current")?, &stat)
        });
        left.chain([machine]).min()
    }

    /// Returns the memory that a group may still use. Returns `None` if the group has no limit.
    fn rest_of(max: &str, current: &str, stat: &str) -> Option<u64> {
        // Without a limit, the text is `max`.
        let max: u64 = max.trim().parse().ok()?;
        let current: u64 = current.trim().parse().ok()?;
        // If the group needs memory, the kernel drops cached files.
        let cached = ["active_file", "inactive_file"].map(|name| number_after(stat, name));
        let cached = cached.into_iter().flatten().fold(0, u64::saturating_add);
        Some(max.saturating_sub(current.saturating_sub(cached)))
    }

    /// Returns the number after the word at the start of a line.
    fn number_after(text: &str, word: &str) -> Option<u64> {
        let mut lines = text.lines().map(str::split_ascii_whitespace);
        let mut line = lines.find(|line| line.clone().next() == Some(word))?;
        line.nth(1)?.parse().ok()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// Writes files and returns the available memory according to them, in MiB.
        fn available_mib(files: &[(&str, &str)]) -> Option<u64> {
            let root = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = root.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            available(root.path()).map(|bytes| bytes >> 20)
        }

        const MEMINFO: (&str, &str) = (
            "proc/meminfo",
            "MemTotal:       16384000 kB\nMemFree:         1024000 kB\nMemAvailable:    8192000 kB\n",
        );

        #[test]
        fn the_machine_limits_memory() {
            assert_eq!(available_mib(&[MEMINFO]), Some(8_000));
            assert_eq!(available_mib(&[("proc/meminfo", "MemFree: 1 kB\n")]), None);
            assert_eq!(available_mib(&[]), None);
        }

        #[test]
        fn each_group_limits_memory() {
            let member = (
                "proc/self/cgroup",
                "4:memory:/old\n0::/user.slice/app.scope\n",
            );
            let max = |max: &'static str| ("sys/fs/cgroup/user.slice/memory.max", max);
            let current = ("sys/fs/cgroup/user.slice/memory.current", "314572800\n");
            let stat = (
                "sys/fs/cgroup/user.slice/memory.stat",
                "anon 104857600\nfile 209715200\ninactive_file 104857600\nactive_file 52428800\n",
            );
            let limited = max("536870912\n");
            assert_eq!(
                available_mib(&[MEMINFO, member, limited, current]),
                Some(212)
            );
            let all = [MEMINFO, member, limited, current, stat];
            assert_eq!(available_mib(&all), Some(362));
            let none = max("max\n");
            assert_eq!(
                available_mib(&[MEMINFO, member, none, current]),
                Some(8_000)
            );
            // The group of the process has a lower limit than the group that contains it.
            let inner = [
                ("sys/fs/cgroup/user.slice/app.scope/memory.max", "104857600"),
                (
                    "sys/fs/cgroup/user.slice/app.scope/memory.current",
                    "209715200",
                ),
            ];
            assert_eq!(available_mib(&[&all[..], &inner].concat()), Some(0));
            // This system has only version 1 of control groups.
            let old = ("proc/self/cgroup", "4:memory:/old\n");
            assert_eq!(
                available_mib(&[MEMINFO, old, limited, current]),
                Some(8_000)
            );
        }

        #[cfg(target_os = "linux")]
        #[test]
        fn this_machine_has_memory() {
            assert!(super::super::available_memory().is_some_and(|bytes| bytes > 0));
        }
    }
}
