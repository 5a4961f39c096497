//! Facts that TraceEvent reads from other events. TraceEvent uses these facts when it prints an event.

use std::collections::HashMap;

use etl::Event;
use events::{Decoded, Value};

/// Facts from all events of a trace.
#[derive(Default)]
pub(crate) struct Facts {
    processes: HashMap<u64, String>,
    /// Time and process id of each start event and each end event of a thread. The key is the thread id.
    threads: HashMap<u64, Vec<(i64, u64)>>,
    files: HashMap<u64, Vec<(i64, String)>>,
    /// Kernel paths of volumes and their drive letters.
    volumes: Vec<(String, String)>,
    /// Times at which transfers ended, in time order. The key is the disk.
    transfers: HashMap<u64, Vec<i64>>,
    /// Names of .NET types, by type id.
    types: HashMap<u64, String>,
}

impl Facts {
    pub(crate) fn learn(&mut self, event: &Event<'_>, decoded: &Decoded<'_>) {
        let name = decoded.identity.name.as_deref();
        if name == Some("Type/BulkType") {
            self.learn_types(decoded);
        }
        let provider = decoded.identity.provider.as_deref();
        let Some(("Windows Kernel", name)) = provider.zip(name) else {
            return;
        };
        let number = |name: &str| decoded.fields.get(name).and_then(Value::as_u64).unwrap();
        let text = |name: &str| decoded.fields.get(name).unwrap().to_string();
        let time = event.time_ns();
        match name {
            "Process/Start" | "Process/DCStart" | "Process/End" | "Process/DCEnd" => {
                let file = text("ImageFileName");
                let stem = file.rsplit_once('.').map_or(&*file, |(stem, _)| stem);
                self.processes.insert(number("ProcessId"), stem.to_owned());
            }
            "Thread/Start" | "Thread/DCStart" | "Thread/End" | "Thread/DCEnd" => {
                let owners = self.threads.entry(number("TThreadId")).or_default();
                owners.push((time, number("ProcessId")));
            }
            "FileIo/Name" | "FileIo/FileCreate" | "FileIo/FileDelete" | "FileIo/FileRundown" => {
                let names = self.files.entry(number("FileObject")).or_default();
                names.push((time, text("FileName")));
            }
            "SysConfigEx/VolumeMapping" => {
                self.volumes.push((text("NtPath"), text("DosPath")));
            }
            "DiskIo/Read" | "DiskIo/Write" => {
                let ends = self.transfers.entry(number("DiskNumber")).or_default();
                ends.push(time);
            }
            _ => {}
        }
    }

    fn learn_types(&mut self, decoded: &Decoded<'_>) {
        let Some(Value::Array(types)) = decoded.fields.get("Values") else {
            panic!("no types")
        };
        for one in types {
            let Value::Struct(members) = one else {
                panic!("no struct")
            };
            let member = |name: &str| &members.iter().find(|(n, _)| &**n == name).unwrap().1;
            let id = member("TypeID").as_u64().unwrap();
            self.types.insert(id, member("Name").to_string());
        }
    }

    /// Returns the name of a .NET type. Returns an empty text if no event has the name.
    pub(crate) fn type_name(&self, id: u64) -> String {
        self.types.get(&id).cloned().unwrap_or_default()
    }

    /// Returns the name that TraceEvent prints for a process.
    pub(crate) fn process_name(&self, process: i64) -> String {
        match self.processes.get(&(process as u64)) {
            Some(name) => name.clone(),
            None if process == -1 => String::new(),
            None if process == 0 => "Idle".into(),
            None => format!("Process({process})"),
        }
    }

    /// Returns the process of a thread at `time`.
    pub(crate) fn process_of_thread(&self, thread: u64, time: i64) -> Option<u64> {
        at(self.threads.get(&thread)?, time).copied()
    }

    /// Returns the path of a file. The path has a drive letter. Returns an empty text if no event has the
    /// path.
    pub(crate) fn file_name(&self, file: u64, time: i64) -> String {
        let name = self.files.get(&file).and_then(|names| at(names, time));
        name.map_or(String::new(), |name| self.user_path(name))
    }

    /// Returns a path of the kernel. The drive letter of the volume replaces the device.
    pub(crate) fn user_path(&self, path: &str) -> String {
        let volumes = self.volumes.iter().filter(|(device, _)| !device.is_empty());
        let longest = volumes
            .filter_map(|(device, letter)| Some((letter, path.strip_prefix(&**device)?)))
            .min_by_key(|(_, rest)| rest.len());
        if let Some((letter, rest)) = longest {
            return format!("{letter}{rest}");
        }
        // Image paths of 32-bit programs have no device. If such a path is in `\Windows`, the image is on the
        // system volume.
        let mut system = self
            .volumes
            .iter()
            .filter(|(device, _)| device == r"\SystemRoot\");
        match system.next() {
            Some((_, root)) if path.starts_with(r"\Windows\") => format!("{}{path}", &root[..2]),
            _ => path.to_owned(),
        }
    }

    /// Returns the end in nanoseconds of the last transfer that ended on a disk before `time`. If there is no
    /// such transfer, returns 0, which is the trace's start.
    pub(crate) fn transfer_before(&self, disk: u64, time: i64) -> i64 {
        let ends = &self.transfers[&disk];
        ends.iter().rfind(|end| **end < time).copied().unwrap_or(0)
    }
}

/// Returns the fact that is valid at `time`. This is the last fact at or before `time`. If there is no earlier fact,
/// this is the first fact after `time`.
fn at<T>(facts: &[(i64, T)], time: i64) -> Option<&T> {
    let known = facts.iter().rfind(|(from, _)| *from <= time);
    known.or(facts.first()).map(|(_, fact)| fact)
}
