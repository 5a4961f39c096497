//! Operations on files.

use super::cursor::Cursor;
use crate::text::Utf16;

/// FileIo Name, FileCreate, FileDelete and FileRundown: opcodes 0, 32, 35 and 36 of the file
/// class. Names the key that other events call a file by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileName<'a> {
    /// The key.
    pub file_object: u64,
    /// The file as an NT path (`\Device\HarddiskVolume3\…`).
    pub name: Utf16<'a>,
}

impl<'a> FileName<'a> {
    /// Reads the payload; `None` if it is too short.
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(FileName {
            file_object: cursor.pointer()?,
            name: cursor.utf16()?,
        })
    }
}

/// FileIo Create and CreateNew: opcodes 64 and 78 of the file class. A file is opened or created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileCreate<'a> {
    /// The request packet, which [`FileEnd`] names.
    pub irp: u64,
    /// The thread that asked.
    pub thread_id: u32,
    /// The file object.
    pub file_object: u64,
    /// Options of NtCreateFile; the disposition is in the top byte.
    pub create_options: u32,
    /// Attributes of the file, if it is created.
    pub file_attributes: u32,
    /// How others may share it.
    pub share_access: u32,
    /// Its path.
    pub path: Utf16<'a>,
}

impl<'a> FileCreate<'a> {
    /// Reads the payload; `None` if it is too short or older than version 2.
    pub fn read(payload: &'a [u8], version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        let irp = cursor.pointer()?;
        let (thread_id, file_object) = match version {
            0 | 1 => return None,
            2 => (cursor.wide_id()?, cursor.pointer()?),
            _ => {
                let file_object = cursor.pointer()?;
                (cursor.u32()?, file_object)
            }
        };
        Some(FileCreate {
            irp,
            thread_id,
            file_object,
            create_options: cursor.u32()?,
            file_attributes: cursor.u32()?,
            share_access: cursor.u32()?,
            path: cursor.utf16()?,
        })
    }
}

/// The request, thread and file of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOperation {
    /// The request packet, which [`FileEnd`] names.
    pub irp: u64,
    /// The thread that asked.
    pub thread_id: u32,
    /// The file object.
    pub file_object: u64,
    /// Key of the file, which [`FileName`] names.
    pub file_key: u64,
}

impl FileOperation {
    /// Reads FileIo Cleanup, Close and Flush: opcodes 65, 66 and 73 of the file class. `None` if
    /// the payload is too short or older than version 2.
    pub fn read(payload: &[u8], version: u8, pointer_size: usize) -> Option<Self> {
        FileOperation::read_from(&mut Cursor::new(payload, pointer_size), version, |_| {
            Some(())
        })
        .map(|(operation, ())| operation)
    }

    /// Version 2 has the thread before the file, as wide as a pointer; later versions have it
    /// after the file and after what `between` reads.
    fn read_from<'a, T>(
        cursor: &mut Cursor<'a>,
        version: u8,
        between: impl FnOnce(&mut Cursor<'a>) -> Option<T>,
    ) -> Option<(Self, T)> {
        let irp = cursor.pointer()?;
        let wide_id = match version {
            0 | 1 => return None,
            2 => Some(cursor.wide_id()?),
            _ => None,
        };
        let (file_object, file_key) = (cursor.pointer()?, cursor.pointer()?);
        let between = between(cursor)?;
        let thread_id = match wide_id {
            Some(id) => id,
            None => cursor.u32()?,
        };
        Some((
            FileOperation {
                irp,
                thread_id,
                file_object,
                file_key,
            },
            between,
        ))
    }
}

/// FileIo Read and Write: opcodes 67 and 68 of the file class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileTransfer {
    /// Who works on which file.
    pub operation: FileOperation,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Bytes asked for.
    pub size: u32,
    /// Flags of the request; see [`super::irp_flags`].
    pub io_flags: u32,
    /// Further flags, 1 for a request with a memory descriptor list; `None` where the build did
    /// not write them.
    pub extra_flags: Option<u32>,
}

impl FileTransfer {
    /// Reads the payload; `None` if it is too short or older than version 2.
    pub fn read(payload: &[u8], version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        let offset = cursor.u64()?;
        let (operation, ()) = FileOperation::read_from(&mut cursor, version, |_| Some(()))?;
        Some(FileTransfer {
            operation,
            offset,
            size: cursor.u32()?,
            io_flags: cursor.u32()?,
            extra_flags: if version >= 3 { cursor.u32() } else { None },
        })
    }
}

/// FileIo SetInfo, Delete, Rename, QueryInfo, FSControl (opcodes 69, 70, 71, 74 and 75 of the
/// file class) and, with a path, DeletePath, RenamePath and SetLinkPath (79 to 81).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Who works on which file.
    pub operation: FileOperation,
    /// What the operation adds: a new size, a disposition, …
    pub extra_info: u64,
    /// The class of information, or the control code of FSControl.
    pub info_class: u32,
}

impl FileInfo {
    /// Reads the payload; `None` if it is too short or older than version 2.
    pub fn read(payload: &[u8], version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        let (operation, extra_info) =
            FileOperation::read_from(&mut cursor, version, Cursor::pointer)?;
        Some(FileInfo {
            operation,
            extra_info,
            info_class: cursor.u32()?,
        })
    }
}

/// FileIo OperationEnd, hook 0x044C: the operation of a request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileEnd {
    /// The request packet that the operation's own event named.
    pub irp: u64,
    /// What the operation gave back: bytes moved for a read.
    pub extra_info: u64,
    /// Its NTSTATUS.
    pub status: u32,
}

impl FileEnd {
    /// Reads the payload; `None` if it is too short.
    pub fn read(payload: &[u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(FileEnd {
            irp: cursor.pointer()?,
            extra_info: cursor.pointer()?,
            status: cursor.u32()?,
        })
    }
}
