//! Records about the threads and mapped files that exist when the recording begins or is saved. They have the form of
//! the kernel's records, but no time.

use std::fs;
use std::path::Path;

use crate::attribute::sample;

/// Kinds of records (`PERF_RECORD_…`).
mod record {
    pub(super) const MMAP: u32 = 1;
    pub(super) const COMM: u32 = 3;
    pub(super) const FORK: u32 = 7;
    pub(super) const MMAP2: u32 = 10;
}

/// Bits of the header field `misc`: code of the kernel, or code of a program.
const OF_KERNEL: u16 = 1;
const OF_PROGRAM: u16 = 2;

/// Existing thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) process_id: u32,
    pub(crate) thread_id: u32,
    /// Id of the process that started the process of this thread; 0 if the id is unknown.
    parent_id: u32,
    name: Vec<u8>,
}

/// Returns the names in a folder that are numbers.
fn numbers(folder: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns all threads in /proc. Threads that end before they are read are left out.
pub(crate) fn all() -> Vec<Thread> {
    let mut threads = Vec::new();
    for process_id in numbers(Path::new("/proc")) {
        let folder = Path::new("/proc").join(process_id.to_string());
        let parent_id = fs::read_to_string(folder.join("status")).ok();
        let parent_id = parent_id.and_then(|status| {
            let mut lines = status.lines();
            let parent = lines.find_map(|line| line.strip_prefix("PPid:"))?;
            parent.trim().parse().ok()
        });
        let tasks = folder.join("task");
        for thread_id in numbers(&tasks) {
            let Ok(mut name) = fs::read(tasks.join(thread_id.to_string()).join("comm")) else {
                continue;
            };
            name.pop_if(|last| *last == b'\n');
            threads.push(Thread {
                process_id,
                thread_id,
                parent_id: parent_id.unwrap_or(0),
                name,
            });
        }
    }
    threads
}

/// Adds a record with its header and its fields. The fields about the event that wrote the record are 0.
fn push(records: &mut Vec<u8>, kind: u32, misc: u16, fields: &[u8]) {
    let trailer = 8 * sample::ALWAYS.count_ones() as usize;
    // Names of the kernel have at most 4,096 bytes, so the size fits into 16 bits.
    let size = (8 + fields.len() + trailer) as u16;
    records.extend(kind.to_ne_bytes());
    records.extend(misc.to_ne_bytes());
    records.extend(size.to_ne_bytes());
    records.extend(fields);
    records.resize(records.len() + trailer, 0);
}

/// Returns the bytes of 32-bit numbers.
fn numbers_32(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|it| it.to_ne_bytes()).collect()
}

/// Adds a text, ended by a zero byte and padded to a multiple of 8 bytes.
fn push_text(fields: &mut Vec<u8>, text: &[u8]) {
    fields.extend(text);
    fields.push(0);
    fields.resize(fields.len().next_multiple_of(8), 0);
}

/// Returns two records for each thread: its start and its name.
pub(crate) fn records<'t>(threads: impl Iterator<Item = &'t Thread>) -> Vec<u8> {
    let mut records = Vec::new();
    for thread in threads {
        let (process, id) = (thread.process_id, thread.thread_id);
        let parent = if process == id {
            thread.parent_id
        } else {
            process
        };
        let mut started = numbers_32(&[process, parent, id, parent]);
        started.extend(0_u64.to_ne_bytes());
        push(&mut records, record::FORK, 0, &started);
        let mut named = numbers_32(&[process, id]);
        push_text(&mut named, &thread.name);
        push(&mut records, record::COMM, 0, &named);
    }
    records
}

/// Returns records of the code that is mapped into processes, and of the kernel's code.
pub(crate) fn mapped_files(threads: &[Thread], kernel: Option<(u64, u64)>) -> Vec<u8> {
    let mut records = Vec::new();
    if let Some((start, end)) = kernel {
        // The process id −1 stands for the kernel.
        let mut fields = numbers_32(&[u32::MAX, 0]);
        for number in [start, end.saturating_sub(start), start] {
            fields.extend(number.to_ne_bytes());
        }
        push_text(&mut fields, b"[kernel.kallsyms]_text");
        push(&mut records, record::MMAP, OF_KERNEL, &fields);
    }
    let processes = threads.iter().filter(|it| it.process_id == it.thread_id);
    for process in processes {
        let maps = format!("/proc/{}/maps", process.process_id);
        let maps = fs::read(maps).unwrap_or_default();
        for line in maps.split(|byte| *byte == b'\n') {
            if let Some(fields) = mapped_file(process.process_id, &String::from_utf8_lossy(line)) {
                push(&mut records, record::MMAP2, OF_PROGRAM, &fields);
            }
        }
    }
    records
}

/// Reads a line of `/proc/PID/maps`: `START-END rwxp OFFSET MAJOR:MINOR INODE PATH`. Returns the fields of a record, or
/// `None` if the memory has no code.
fn mapped_file(process_id: u32, line: &str) -> Option<Vec<u8>> {
    const READ_AND_EXECUTE: u32 = 5;
    const PRIVATE: u32 = 2;
    let mut words = line.splitn(6, ' ');
    let (range, rights, offset) = (words.next()?, words.next()?, words.next()?);
    let (device, inode, path) = (words.next()?, words.next()?, words.next()?.trim_start());
    // perf and the kernel name memory without a file like this. Programs put code there that they generate.
    let path = if path.is_empty() { "//anon" } else { path };
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = range.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    if !rights.contains('x') {
        return None;
    }
    let (major, minor) = device.split_once(':')?;
    let mut fields = numbers_32(&[process_id, process_id]);
    for number in [start, end.checked_sub(start)?, hex(offset)?] {
        fields.extend(number.to_ne_bytes());
    }
    fields.extend(numbers_32(&[hex(major)? as u32, hex(minor)? as u32]));
    for number in [inode.parse().ok()?, 0_u64] {
        fields.extend(number.to_ne_bytes());
    }
    fields.extend(numbers_32(&[READ_AND_EXECUTE, PRIVATE]));
    push_text(&mut fields, path.as_bytes());
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_become_records() {
        let line = "7f12a000-7f12b000 r-xp 00001000 fe:01 1234                    /usr/lib/a b.so";
        let fields = mapped_file(7, line).unwrap();
        assert_eq!(fields[8..16], 0x7f12_a000_u64.to_ne_bytes());
        assert_eq!(fields[16..24], 0x1000_u64.to_ne_bytes());
        assert_eq!(fields[40..48], 1234_u64.to_ne_bytes());
        assert!(fields[64..].starts_with(b"/usr/lib/a b.so\0"));
        assert_eq!(fields.len() % 8, 0);
        // Source: `perf script --show-mmap-events` of a program with generated code.
        let generated = mapped_file(7, "7f12a000-7f12b000 rwxp 00000000 00:00 0 ").unwrap();
        assert!(generated[64..].starts_with(b"//anon\0"));
        for other in [
            "7f12a000-7f12b000 rw-p 00001000 fe:01 1234    /usr/lib/a.so",
            "",
            "x",
        ] {
            assert_eq!(mapped_file(7, other), None, "{other}");
        }
    }

    #[test]
    fn this_thread_is_among_all() {
        let threads = all();
        let own = threads
            .iter()
            .find(|it| it.process_id == std::process::id())
            .unwrap();
        let records = records([own].into_iter());
        assert_eq!(records.len() % 8, 0);
        assert_eq!(records[..4], record::FORK.to_ne_bytes());
    }
}
