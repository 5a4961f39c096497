//! Maps of code that programs generated while they ran (`perf-PID.map`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tables::CodeMaker;

/// Maximum number of bytes of all maps of a recording. The map of a large program has some MB.
const MOST_BYTES: u64 = 64 << 20;

/// Time in nanoseconds by which the last write to a map may be later than the end of its process, because the clocks of
/// files are coarse.
const LATE_NS: i64 = 1_000_000_000;

/// Number of units per second in which `/proc` counts the times of processes (`USER_HZ`, proc(5)).
const UNITS_PER_SECOND: i64 = 100;

/// Machine on which a recording was made, and the time of the recording.
#[derive(Debug)]
pub(crate) struct Origin<'r> {
    pub(crate) host_name: Option<&'r str>,
    /// Time of day of the first event, in nanoseconds since 1970.
    pub(crate) start_unix_ns: Option<i64>,
    /// Time from the first to the last event in nanoseconds.
    pub(crate) length_ns: i64,
}

/// Returns the maps in the file with the facts about a recording, by process. Its lines have the form of
/// `grep -H . /tmp/perf-PID.map`.
pub(crate) fn in_facts(facts: &[u8], makers: &BTreeMap<u32, CodeMaker>) -> BTreeMap<u32, Vec<u8>> {
    let mut maps: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let mut left = MOST_BYTES as usize;
    for line in facts.split_inclusive(|byte| *byte == b'\n') {
        if let Some((process_id, line)) = line_of_map(line)
            && makers.contains_key(&process_id)
            && line.len() <= left
        {
            left -= line.len();
            maps.entry(process_id).or_default().extend(line);
        }
    }
    maps
}

/// Returns the process and the text of a line of a map.
fn line_of_map(line: &[u8]) -> Option<(u32, &[u8])> {
    let rest = line.strip_prefix(b"/tmp/perf-")?;
    let digits = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    let text = rest[digits..].strip_prefix(b".map:")?;
    let process_id = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    Some((process_id, text))
}

impl Origin<'_> {
    /// Reads the maps in the folder `/tmp` of this machine. Returns no maps if the recording was made on another machine,
    /// or before this machine was started. A later process with the same id overwrites the map, so a map counts only
    /// if it was last written while its process lived.
    pub(crate) fn on_this_machine(
        &self,
        makers: &BTreeMap<u32, CodeMaker>,
    ) -> BTreeMap<u32, Vec<u8>> {
        let Some((start, boot)) = self.start_unix_ns.zip(boot_unix_ns()) else {
            return BTreeMap::new();
        };
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        if self.host_name != Some(host.trim_end()) || start < boot {
            return BTreeMap::new();
        }
        let mut left = MOST_BYTES;
        let mut maps = BTreeMap::new();
        for maker in makers.values() {
            let path = format!("/tmp/perf-{}.map", maker.process_id);
            let written = written_unix_ns(Path::new(&path));
            if written.is_some_and(|written| self.is_of(maker, written - start, start, boot))
                && let Ok(map) = files::read_file(Path::new(&path), left)
            {
                left -= map.len() as u64;
                maps.insert(maker.process_id, map);
            }
        }
        maps
    }

    /// Returns true if the process wrote its map last. `written_ns` is the time of the last write, from the start of the
    /// recording. `start` and `boot` are the starts of the recording and of the machine.
    fn is_of(&self, maker: &CodeMaker, written_ns: i64, start: i64, boot: i64) -> bool {
        if maker.start_ns.is_some_and(|start_ns| written_ns < start_ns) {
            return false;
        }
        let lived_until = maker.end_ns.unwrap_or(self.length_ns);
        // A process that still lives is the recorded one if it started before the end of the recording.
        let is_alive = || {
            let started = start_of(maker.process_id).map(|since_boot| boot - start + since_boot);
            maker.end_ns.is_none() && started.is_some_and(|started| started <= self.length_ns)
        };
        written_ns <= lived_until.saturating_add(LATE_NS) || is_alive()
    }
}

/// Returns the time of day at which this machine was started, in nanoseconds since 1970.
fn boot_unix_ns() -> Option<i64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let seconds = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    seconds
        .trim()
        .parse::<i64>()
        .ok()?
        .checked_mul(1_000_000_000)
}

/// Returns the time from the start of the machine to the start of a process that still lives, in nanoseconds.
fn start_of(process_id: u32) -> Option<i64> {
    let stat = fs::read_to_string(format!("/proc/{process_id}/stat")).ok()?;
    // Field 22 is the start (proc(5)). The name of the process ends with the last parenthesis, and is field 2.
    let (_, fields) = stat.rsplit_once(')')?;
    let units: i64 = fields.split_ascii_whitespace().nth(22 - 3)?.parse().ok()?;
    units.checked_mul(1_000_000_000 / UNITS_PER_SECOND)
}

/// Returns the time of the last write to a map, in nanoseconds since 1970. Returns `None` if the map is not a regular file,
/// or if it belongs neither to this user nor to root: everybody can write to `/tmp`.
#[cfg(unix)]
fn written_unix_ns(path: &Path) -> Option<i64> {
    use std::os::unix::fs::MetadataExt;
    let map = fs::symlink_metadata(path).ok()?;
    let own = fs::metadata("/proc/self").ok()?;
    let is_trusted = map.is_file() && (map.uid() == 0 || map.uid() == own.uid());
    let written = map
        .mtime()
        .checked_mul(1_000_000_000)?
        .checked_add(map.mtime_nsec())?;
    is_trusted.then_some(written)
}

#[cfg(not(unix))]
fn written_unix_ns(_path: &Path) -> Option<i64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKER: CodeMaker = CodeMaker {
        process_id: 7,
        start_ns: Some(1_000),
        end_ns: Some(5_000),
    };

    #[test]
    fn lines_of_maps_are_found_among_other_facts() {
        let facts = b"/proc/7/cgroup:0::/\n/tmp/perf-7.map:10 8 a b\n/tmp/perf-8.map:10 8 other\n\
            /tmp/perf-x.map:10 8 x\n/tmp/perf-7.mapping:1 1 y\n/tmp/perf-7.map:20 8 c";
        let maps = in_facts(facts, &BTreeMap::from([(7, MAKER)]));
        assert_eq!(maps, BTreeMap::from([(7, b"10 8 a b\n20 8 c".to_vec())]));
    }

    #[test]
    fn a_map_that_was_not_written_in_the_life_of_its_process_is_of_another_one() {
        let origin = Origin {
            host_name: Some("host"),
            start_unix_ns: Some(0),
            length_ns: 10_000,
        };
        let is_of = |maker, written_ns| origin.is_of(maker, written_ns, 0, 0);
        assert!(is_of(&MAKER, 3_000) && is_of(&MAKER, 5_000 + LATE_NS));
        assert!(!is_of(&MAKER, 999) && !is_of(&MAKER, 5_001 + LATE_NS));
        // No process has this id.
        let ended = CodeMaker {
            process_id: u32::MAX,
            start_ns: None,
            end_ns: None,
        };
        assert!(is_of(&ended, -1) && is_of(&ended, 10_000) && !is_of(&ended, 20_000 + LATE_NS));
    }
}
