//! `file_io`: operations on files.

use etl::Event;
use events::kernel::{FileCreate, FileEnd, FileInfo, FileOperation, FileTransfer};
use rustc_hash::FxHashMap;

use crate::column::{Named, Names, Nullable, Text};
use crate::join::Join;
use crate::schema::{Rows, table};
use crate::timed::Timed;
use crate::world::{ThreadFinder, World};

table! {
    /// One row per operation on a file, as the file system sees it: whether a disk has anything to
    /// do with it, `disk_io` tells.
    ///
    /// Rows come when operations end. One whose end the trace does not hold comes when its request
    /// packet is used again, or at the trace's end; then `end_ns` is unknown.
    FileIo, FileIoView = "file_io" sorted by time_ns {
        /// When it ended; without an end, when its request packet was used again or the trace
        /// ended.
        time_ns: Vec<i64> = "OperationEnd: header time, by Irp",
        /// When it began.
        start_ns: Vec<i64> = "header time" wpa "Start (s)",
        /// When it ended.
        end_ns: Nullable<i64> = "OperationEnd: header time, by Irp",
        /// How long it took.
        duration_ns: Nullable<i64> = "end_ns - start_ns" wpa "Duration (us)",
        /// The CPU that logged its begin.
        cpu: Vec<u16> = "CPU of the buffer" wpa "CPU",
        /// What it is: `create`, `cleanup`, `close`, `read`, `write`, `set_info`, `delete`,
        /// `rename`, `dir_enum`, `flush`, `query_info`, `fs_control`, `dir_notify`, `delete_path`,
        /// `rename_path` or `set_link_path`.
        operation: Names<FileOperationKind> = "FileIo opcodes 64-75, 77-81" wpa "Event Type",
        /// The file, with a drive letter where the trace maps its volume to one.
        path: Text = "Create: OpenPath; FileIo Name, FileCreate, FileDelete, FileRundown: FileName, by FileKey and FileObject"
            wpa "File Path",
        /// Where in the file.
        offset_bytes: Nullable<u64> = "Read, Write: Offset" wpa "Offset",
        /// How much is asked for.
        size_bytes: Nullable<u32> = "Read, Write: IoSize" wpa "Size",
        /// What the operation gave back: bytes moved of a read or write.
        result: Nullable<u64> = "OperationEnd: ExtraInfo",
        /// How it ended (NTSTATUS): 0 well.
        status: Nullable<u32> = "OperationEnd: NtStatus" wpa "Result",
        /// The class of information, or the control code of `fs_control`.
        info_class: Nullable<u32> = "InfoClass",
        /// What it adds: the new size, a disposition, …
        extra_info: Nullable<u64> = "ExtraInfo",
        /// How a file is opened: options of NtCreateFile, the disposition in the top byte.
        create_options: Nullable<u32> = "Create: CreateOptions",
        /// The request packet.
        irp: Vec<u64> = "Irp",
        /// The file object.
        file_object: Vec<u64> = "FileObject",
        /// Key of the file.
        file_key: Nullable<u64> = "FileKey",
        /// The thread that asked.
        thread_id: Vec<u32> = "TTID" wpa "Thread ID",
        /// Row of its thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and start_ns in `threads`",
        /// Its process.
        process_id: Nullable<u32> = "thread_id and start_ns in `threads`" wpa "Process Id",
        /// Row of its process in `processes`.
        process_row: Nullable<u32> = "process_id and start_ns in `processes`",
        /// The stack of the thread that asked.
        stack_id: Nullable<u32> = "the stack of the operation's event" wpa "Stack",
    }
}

/// An operation on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileOperationKind {
    /// A file is opened or created.
    Create,
    /// The last handle is closed.
    Cleanup,
    /// The file object goes.
    Close,
    /// Data from the file.
    Read,
    /// Data to the file.
    Write,
    /// Its attributes, size or place change.
    SetInfo,
    /// It is deleted.
    Delete,
    /// It gets another name.
    Rename,
    /// A folder is listed.
    DirEnum,
    /// Its data is to go to the disk.
    Flush,
    /// Its attributes are asked for.
    QueryInfo,
    /// A request to the file system.
    FsControl,
    /// Changes of a folder are waited for.
    DirNotify,
    /// It is deleted, told with its path.
    DeletePath,
    /// It gets another name, told with its path.
    RenamePath,
    /// It gets a further name, told with its path.
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

impl FileOperationKind {
    fn of_opcode(opcode: u8) -> Option<FileOperationKind> {
        Some(match opcode {
            64 | 78 => FileOperationKind::Create,
            65 => FileOperationKind::Cleanup,
            66 => FileOperationKind::Close,
            67 => FileOperationKind::Read,
            68 => FileOperationKind::Write,
            69 => FileOperationKind::SetInfo,
            70 => FileOperationKind::Delete,
            71 => FileOperationKind::Rename,
            72 => FileOperationKind::DirEnum,
            73 => FileOperationKind::Flush,
            74 => FileOperationKind::QueryInfo,
            75 => FileOperationKind::FsControl,
            77 => FileOperationKind::DirNotify,
            79 => FileOperationKind::DeletePath,
            80 => FileOperationKind::RenamePath,
            81 => FileOperationKind::SetLinkPath,
            _ => return None,
        })
    }
}

/// Opcode of the event that ends an operation.
const OPERATION_END: u8 = 76;

/// Begins and ends of operations, that rows are made of.
pub(crate) type FileEvents = Timed<FileEvent>;

/// A begin or an end.
#[derive(Debug)]
pub(crate) enum FileEvent {
    Begin(Begin),
    End(FileEnd),
}

/// How an operation began.
#[derive(Debug)]
pub(crate) struct Begin {
    start_ns: i64,
    cpu: u16,
    kind: FileOperationKind,
    irp: u64,
    thread_id: u32,
    file_object: u64,
    file_key: Option<u64>,
    transfer: Option<(u64, u32)>,
    info: Option<(u64, u32)>,
    /// Options and NT path of what is opened.
    create: Option<(u32, Box<str>)>,
}

impl FileEvents {
    /// Adds an event; `None` if the payload is unreadable or older than version 2.
    pub(crate) fn push(&mut self, event: &Event<'_>) -> Option<()> {
        let (payload, version) = (event.payload(), event.version()?);
        let (opcode, width) = (event.opcode()?, event.pointer_size());
        let time_ns = event.time_ns();
        if opcode == OPERATION_END {
            let end = FileEnd::read(payload, version, width)?;
            self.0.push((time_ns, FileEvent::End(end)));
            return Some(());
        }
        let kind = FileOperationKind::of_opcode(opcode)?;
        let begin = |operation: FileOperation| Begin {
            start_ns: time_ns,
            cpu: event.cpu(),
            kind,
            irp: operation.irp,
            thread_id: operation.thread_id,
            file_object: operation.file_object,
            file_key: Some(operation.file_key),
            transfer: None,
            info: None,
            create: None,
        };
        let begun = match opcode {
            64 | 78 => {
                let create = FileCreate::read(payload, version, width)?;
                let path = create.path.to_string().into_boxed_str();
                Begin {
                    start_ns: time_ns,
                    cpu: event.cpu(),
                    kind,
                    irp: create.irp,
                    thread_id: create.thread_id,
                    file_object: create.file_object,
                    file_key: None,
                    transfer: None,
                    info: None,
                    create: Some((create.create_options, path)),
                }
            }
            67 | 68 => {
                let transfer = FileTransfer::read(payload, version, width)?;
                Begin {
                    transfer: Some((transfer.offset, transfer.size)),
                    ..begin(transfer.operation)
                }
            }
            65 | 66 | 72 | 73 | 77 => begin(FileOperation::read(payload, version, width)?),
            _ => {
                let info = FileInfo::read(payload, version, width)?;
                Begin {
                    info: Some((info.extra_info, info.info_class)),
                    ..begin(info.operation)
                }
            }
        };
        self.0.push((time_ns, FileEvent::Begin(begun)));
        Some(())
    }
}

/// What operations need from the slice before.
#[derive(Debug, Default)]
pub(crate) struct FileState {
    threads: ThreadFinder,
    /// Operations under way, by request packet.
    open: FxHashMap<u64, Begin>,
}

impl FileState {
    /// The rows of the operations that end in a slice.
    pub(crate) fn take(&mut self, events: FileEvents, world: &World<'_>) -> FileIo {
        let mut rows = FileIo::default();
        for (time_ns, event) in events.0 {
            match event {
                // The end of what was used before is missing.
                FileEvent::Begin(begin) => {
                    if let Some(before) = self.open.insert(begin.irp, begin) {
                        self.push(&mut rows, &before, time_ns, None, world);
                    }
                }
                FileEvent::End(end) => {
                    if let Some(begin) = self.open.remove(&end.irp) {
                        self.push(&mut rows, &begin, time_ns, Some(end), world);
                    }
                }
            }
        }
        rows
    }

    /// The rows of the operations that are under way when the trace ends.
    pub(crate) fn finish(&mut self, end_ns: i64, world: &World<'_>) -> FileIo {
        let mut rows = FileIo::default();
        let mut open: Vec<Begin> = std::mem::take(&mut self.open).into_values().collect();
        open.sort_by_key(|begin| (begin.start_ns, begin.irp));
        for begin in open {
            self.push(&mut rows, &begin, end_ns.max(begin.start_ns), None, world);
        }
        rows.sort();
        rows
    }

    fn push(
        &mut self,
        rows: &mut FileIo,
        begin: &Begin,
        time_ns: i64,
        end: Option<FileEnd>,
        world: &World<'_>,
    ) {
        let (start_ns, thread_id) = (begin.start_ns, begin.thread_id);
        let ids = self.threads.find(world, thread_id, start_ns);
        rows.time_ns.push(time_ns);
        rows.start_ns.push(start_ns);
        rows.end_ns.push(end.map(|_| time_ns));
        rows.duration_ns
            .push(end.map(|_| time_ns.saturating_sub(start_ns)));
        rows.cpu.push(begin.cpu);
        rows.operation.0.push(begin.kind);
        match &begin.create {
            Some((options, path)) => {
                rows.create_options.push(Some(*options));
                rows.path.push(Some(&world.files.to_dos(path)));
            }
            None => {
                rows.create_options.push(None);
                let by_key = |key| world.files.path(key, start_ns);
                let path = begin.file_key.and_then(by_key);
                rows.path.push(path.or_else(|| by_key(begin.file_object)));
            }
        }
        rows.offset_bytes
            .push(begin.transfer.map(|(offset, _)| offset));
        rows.size_bytes.push(begin.transfer.map(|(_, size)| size));
        rows.result.push(end.map(|end| end.extra_info));
        rows.status.push(end.map(|end| end.status));
        rows.extra_info.push(begin.info.map(|(extra, _)| extra));
        rows.info_class.push(begin.info.map(|(_, class)| class));
        rows.irp.push(begin.irp);
        rows.file_object.push(begin.file_object);
        rows.file_key.push(begin.file_key);
        rows.thread_id.push(thread_id);
        rows.thread_row.push(ids.thread_row);
        rows.process_id.push(ids.process_id);
        rows.process_row.push(ids.process_row);
        rows.stack_id
            .push(world.stacks.find(start_ns, thread_id, begin.cpu));
    }
}

/// Made joined, by [`FileState::take`].
impl Join for FileIo {
    type State = FileState;

    fn join(&mut self, _: &mut FileState, _: &World<'_>) {}
}
