//! `file_io`: operations on files.

use events::ids::hook;
use events::kernel::{FileCreate, FileEnd, FileInfo, FileOperation, FileTransfer};
use tables::import::TimedValues;
use tables::{FileEvent, FileIo, FileOperationKind, OperationEnd, OperationStart};

use crate::register::{FromEvents, IncomingEvent, Reads};

fn kind_of(opcode: u8) -> Option<FileOperationKind> {
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

/// Opcode of the event that ends an operation.
const OPERATION_END: u8 = 76;

impl FromEvents for FileIo {
    const READS: Reads = Reads {
        hooks: &[hook::FILE_CREATE..=hook::FILE_SET_LINK_PATH],
        ..Reads::NOTHING
    };

    /// Adds an event. Events older than version 2 are refused.
    fn push(raw: &mut TimedValues<FileEvent>, incoming: &IncomingEvent<'_, '_>) -> Option<()> {
        let event = incoming.event;
        let (payload, version) = (event.payload(), event.version()?);
        let (opcode, width) = (event.opcode()?, event.pointer_size());
        let time_ns = event.time_ns();
        if opcode == OPERATION_END {
            let end = FileEnd::read(payload, version, width)?;
            let end = OperationEnd {
                irp: end.irp,
                extra_info: end.extra_info,
                status: end.status,
            };
            raw.0.push((time_ns, FileEvent::End(end)));
            return Some(());
        }
        let kind = kind_of(opcode)?;
        let start = |operation: FileOperation| OperationStart {
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
        let started = match opcode {
            64 | 78 => {
                let create = FileCreate::read(payload, version, width)?;
                let path = create.path.to_string().into_boxed_str();
                OperationStart {
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
                OperationStart {
                    transfer: Some((transfer.offset, transfer.size)),
                    ..start(transfer.operation)
                }
            }
            65 | 66 | 72 | 73 | 77 => start(FileOperation::read(payload, version, width)?),
            _ => {
                let info = FileInfo::read(payload, version, width)?;
                OperationStart {
                    info: Some((info.extra_info, info.info_class)),
                    ..start(info.operation)
                }
            }
        };
        raw.0.push((time_ns, FileEvent::Start(started)));
        Some(())
    }
}
