//! `file_io`: operations on files.

use rustc_hash::FxHashMap;

use crate::column::{Named, Names, Nullable, Text};
use crate::register::{EventTable, Reader, Register};
use crate::schema::{Rows, table};
use crate::table::Table;
use crate::timed_values::TimedValues;
use crate::trackers::{ThreadFinder, Trackers};

table! {
    /// One row per operation on a file at the level of the file system. The table `disk_io` has the disk
    /// requests that the operation causes.
    ///
    /// A row is made when the operation ends. If the trace does not have the end of the operation, the row is
    /// made when its request packet is used again or when the trace ends. In this case, `end_ns` is unknown.
    FileIo, FileIoView = "file_io" sorted by time_ns
        title "File I/O"
        record "file operations (xperf -on FILE_IO+FILE_IO_INIT+FILENAME, WPR keywords FileIO and FileIOInit)"
        lasts start_ns to time_ns
    {
        /// End of the operation. If the trace does not have the end, this is the time when the request packet
        /// was used again or when the trace ended.
        time_ns: Vec<i64> = "OperationEnd: header time, by Irp",
        /// Start of the operation.
        start_ns: Vec<i64> = "header time" wpa "Start (s)",
        /// End of the operation. Unknown if the trace does not have the end.
        end_ns: Nullable<i64> = "OperationEnd: header time, by Irp",
        /// Duration of the operation.
        duration_ns: Nullable<i64> = "end_ns - start_ns" wpa "Duration (us)",
        /// CPU that logged the start.
        cpu: Vec<u16> = "CPU of the buffer" wpa "CPU",
        /// Kind of operation: `create`, `cleanup`, `close`, `read`, `write`, `set_info`, `delete`,
        /// `rename`, `dir_enum`, `flush`, `query_info`, `fs_control`, `dir_notify`, `delete_path`,
        /// `rename_path` or `set_link_path`.
        operation: Names<FileOperationKind> = "FileIo opcodes 64-75, 77-81" wpa "Event Type",
        /// Path of the file. It has a drive letter if the trace maps the volume to a drive letter.
        path: Text = "Create: OpenPath; FileIo Name, FileCreate, FileDelete, FileRundown: FileName, by FileKey and FileObject"
            wpa "File Path",
        /// Offset in the file.
        offset_bytes: Nullable<u64> = "Read, Write: Offset" wpa "Offset",
        /// Number of bytes requested.
        size_bytes: Nullable<u32> = "Read, Write: IoSize" wpa "Size",
        /// Result of the operation. For a read or write, this is the number of bytes transferred.
        result: Nullable<u64> = "OperationEnd: ExtraInfo",
        /// Status of the operation at its end (NTSTATUS); 0 is success.
        status: Nullable<u32> = "OperationEnd: NtStatus" wpa "Result",
        /// Information class of the operation. For `fs_control`, this is the control code.
        info_class: Nullable<u32> = "InfoClass",
        /// Additional argument of the operation: a new size, a disposition, …
        extra_info: Nullable<u64> = "ExtraInfo",
        /// Options of NtCreateFile for `create`. The top byte is the disposition.
        create_options: Nullable<u32> = "Create: CreateOptions",
        /// Address of the request packet (IRP).
        irp: Vec<u64> = "Irp",
        /// Address of the file object.
        file_object: Vec<u64> = "FileObject",
        /// Key of the file.
        file_key: Nullable<u64> = "FileKey",
        /// Thread that made the request.
        thread_id: Vec<u32> = "TTID" wpa "Thread ID",
        /// Row of the thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and start_ns in `threads`",
        /// Process of the thread.
        process_id: Nullable<u32> = "thread_id and start_ns in `threads`" wpa "Process Id",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and start_ns in `processes`",
        /// Stack of the thread that made the request.
        stack_id: Nullable<u32> = "the stack of the operation's event" wpa "Stack",
    }
}

/// Kind of an operation on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileOperationKind {
    /// Opens or creates a file.
    Create,
    /// Closes the last handle.
    Cleanup,
    /// Frees the file object.
    Close,
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Changes attributes, size or name.
    SetInfo,
    /// Deletes the file.
    Delete,
    /// Renames the file.
    Rename,
    /// Lists a folder.
    DirEnum,
    /// Writes cached data to the disk.
    Flush,
    /// Reads attributes.
    QueryInfo,
    /// Sends a control code to the file system.
    FsControl,
    /// Waits for changes in a folder.
    DirNotify,
    /// Deletes the file. The event has the path of the file.
    DeletePath,
    /// Renames the file. The event has the path of the file.
    RenamePath,
    /// Adds a hard link. The event has the path of the link.
    SetLinkPath,
}

impl Named for FileOperationKind {
    const NAMES: &'static [&'static str] = &[
        "create",
        "cleanup",
        "close",
        "read",
        "write",
        "set_info",
        "delete",
        "rename",
        "dir_enum",
        "flush",
        "query_info",
        "fs_control",
        "dir_notify",
        "delete_path",
        "rename_path",
        "set_link_path",
    ];

    fn code(self) -> i8 {
        self as i8
    }
}

/// Start or end of an operation.
#[derive(Debug)]
pub enum FileEvent {
    /// Start of an operation.
    Start(OperationStart),
    /// End of an operation.
    End(OperationEnd),
}

/// End of an operation.
#[derive(Clone, Copy, Debug)]
pub struct OperationEnd {
    /// Request packet of the operation.
    pub irp: u64,
    /// Result whose meaning depends on the operation.
    pub extra_info: u64,
    /// Status of the operation (`NTSTATUS`).
    pub status: u32,
}

/// Start of an operation.
#[derive(Debug)]
pub struct OperationStart {
    /// Start in nanoseconds since the start of the recording.
    pub start_ns: i64,
    /// CPU that logged the event.
    pub cpu: u16,
    /// Kind of the event.
    pub kind: FileOperationKind,
    /// Request packet.
    pub irp: u64,
    /// Id of the thread.
    pub thread_id: u32,
    /// Key of the file object.
    pub file_object: u64,
    /// Key of the file.
    pub file_key: Option<u64>,
    /// Offset and size in bytes of a read or write.
    pub transfer: Option<(u64, u32)>,
    /// Additional argument and information class of the operation.
    pub info: Option<(u64, u32)>,
    /// Options and NT path of `create`.
    pub create: Option<(u32, Box<str>)>,
}

/// State that is kept from one slice to the next while rows are made.
#[derive(Debug, Default)]
pub struct FileState {
    threads: ThreadFinder,
    /// Operations that have not ended yet, by request packet.
    open: FxHashMap<u64, OperationStart>,
}

impl Register for FileIo {
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
        Reader::Table(Table::Stacks),
        Reader::FileNames,
    ];
}

impl EventTable for FileIo {
    type Raw = TimedValues<FileEvent>;
    type State = FileState;

    /// Makes the rows of the operations that end in the slice.
    fn join(
        raw: &mut TimedValues<FileEvent>,
        state: &mut FileState,
        trackers: &Trackers<'_>,
    ) -> FileIo {
        let mut rows = FileIo::default();
        for (time_ns, event) in std::mem::take(&mut raw.0) {
            match event {
                FileEvent::Start(start) => {
                    // If the request packet already belongs to an earlier operation, the end of the earlier
                    // operation is missing.
                    if let Some(before) = state.open.insert(start.irp, start) {
                        state.push(&mut rows, &before, time_ns, None, trackers);
                    }
                }
                FileEvent::End(end) => {
                    if let Some(start) = state.open.remove(&end.irp) {
                        state.push(&mut rows, &start, time_ns, Some(end), trackers);
                    }
                }
            }
        }
        rows
    }

    /// Makes the rows of the operations that have not ended when the trace ends.
    fn finish(state: &mut FileState, last_ns: i64, trackers: &Trackers<'_>) -> FileIo {
        let mut rows = FileIo::default();
        let mut open: Vec<OperationStart> = std::mem::take(&mut state.open).into_values().collect();
        open.sort_by_key(|start| (start.start_ns, start.irp));
        for start in open {
            let end_ns = last_ns.max(start.start_ns);
            state.push(&mut rows, &start, end_ns, None, trackers);
        }
        rows.sort();
        rows
    }
}

impl FileState {
    fn push(
        &mut self,
        rows: &mut FileIo,
        start: &OperationStart,
        time_ns: i64,
        end: Option<OperationEnd>,
        trackers: &Trackers<'_>,
    ) {
        let (start_ns, thread_id) = (start.start_ns, start.thread_id);
        let ids = self.threads.find(trackers, thread_id, start_ns);
        rows.time_ns.push(time_ns);
        rows.start_ns.push(start_ns);
        rows.end_ns.push(end.map(|_| time_ns));
        rows.duration_ns
            .push(end.map(|_| time_ns.saturating_sub(start_ns)));
        rows.cpu.push(start.cpu);
        rows.operation.0.push(start.kind);
        match &start.create {
            Some((options, path)) => {
                rows.create_options.push(Some(*options));
                rows.path.push(Some(&trackers.files.to_dos(path)));
            }
            None => {
                rows.create_options.push(None);
                let by_key = |key| trackers.files.path(key, start_ns);
                let path = start.file_key.and_then(by_key);
                rows.path.push(path.or_else(|| by_key(start.file_object)));
            }
        }
        rows.offset_bytes
            .push(start.transfer.map(|(offset, _)| offset));
        rows.size_bytes.push(start.transfer.map(|(_, size)| size));
        rows.result.push(end.map(|end| end.extra_info));
        rows.status.push(end.map(|end| end.status));
        rows.extra_info.push(start.info.map(|(extra, _)| extra));
        rows.info_class.push(start.info.map(|(_, class)| class));
        rows.irp.push(start.irp);
        rows.file_object.push(start.file_object);
        rows.file_key.push(start.file_key);
        rows.thread_id.push(thread_id);
        rows.thread_row.push(ids.thread_row);
        rows.process_id.push(ids.process_id);
        rows.process_row.push(ids.process_row);
        rows.stack_id
            .push(trackers.stacks.find(start_ns, thread_id, start.cpu));
    }
}
