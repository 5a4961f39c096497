//! Events of file operations.

use super::cursor::Cursor;
use crate::text::Utf16;

/// FileIo Name, FileCreate, FileDelete and FileRundown (opcodes 0, 32, 35 and 36 of the file class). The
/// event gives the name of a file and the file's key. Other events refer to the file by this key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileName<'a> {
    /// Key of the file, by which other events refer to the file.
    pub file_object: u64,
    /// NT path of the file (`\Device\HarddiskVolume3\…`).
    pub name: Utf16<'a>,
}

impl<'a> FileName<'a> {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(FileName {
            file_object: cursor.pointer()?,
            name: cursor.utf16()?,
        })
    }
}

/// FileIo Create and CreateNew (opcodes 64 and 78 of the file class). They mean that a file is opened or
/// created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileCreate<'a> {
    /// Address of the request packet. The [`FileEnd`] event of the same operation has the same address.
    pub irp: u64,
    /// Thread that issued the request.
    pub thread_id: u32,
    /// Address of the file object.
    pub file_object: u64,
    /// Options of `NtCreateFile`; the top byte is the disposition.
    pub create_options: u32,
    /// Attributes that a new file gets.
    pub file_attributes: u32,
    /// Share mode of `NtCreateFile`.
    pub share_access: u32,
    /// Path of the file.
    pub path: Utf16<'a>,
}

impl<'a> FileCreate<'a> {
    /// Reads the payload. Returns `None` if the payload is too short or older than version 2.
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

/// Request packet, thread and file of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOperation {
    /// Address of the request packet. The [`FileEnd`] event of the same operation has the same address.
    pub irp: u64,
    /// Thread that issued the request.
    pub thread_id: u32,
    /// Address of the file object.
    pub file_object: u64,
    /// File key; see [`FileName`].
    pub file_key: u64,
}

impl FileOperation {
    /// Reads FileIo Cleanup, Close and Flush (opcodes 65, 66 and 73 of the file class). Returns
    /// `None` if the payload is too short or older than version 2.
    pub fn read(payload: &[u8], version: u8, pointer_size: usize) -> Option<Self> {
        FileOperation::read_from(&mut Cursor::new(payload, pointer_size), version, |_| {
            Some(())
        })
        .map(|(operation, ())| operation)
    }

    /// Reads an operation. In version 2, the thread id comes before the file and has a pointer's size. In
    /// later versions, the thread id comes after the file and after the fields that `between` reads.
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
    /// Request packet, thread and file of the operation.
    pub operation: FileOperation,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Number of bytes requested.
    pub size: u32,
    /// Flags of the request; see [`super::irp_flags`].
    pub io_flags: u32,
    /// Further flags. Flag 1 means that the request has a memory descriptor list. The field is `None` if the
    /// traced build of Windows does not write these flags.
    pub extra_flags: Option<u32>,
}

impl FileTransfer {
    /// Reads the payload. Returns `None` if the payload is too short or older than version 2.
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

/// FileIo SetInfo, Delete, Rename, QueryInfo and FSControl (opcodes 69, 70, 71, 74 and 75 of the file class).
/// Also FileIo DeletePath, RenamePath and SetLinkPath (opcodes 79 to 81). The last three events also have a
/// path after these fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Request packet, thread and file of the operation.
    pub operation: FileOperation,
    /// Argument of the operation, such as a new size or a disposition.
    pub extra_info: u64,
    /// Information class of the operation. For FSControl, this is the control code.
    pub info_class: u32,
}

impl FileInfo {
    /// Reads the payload. Returns `None` if the payload is too short or older than version 2.
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

/// FileIo OperationEnd, hook 0x044C. It means that the operation of a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileEnd {
    /// Address of the request packet. The event of the same operation's start has the same address.
    pub irp: u64,
    /// Result of the operation. For a read, this is the number of bytes.
    pub extra_info: u64,
    /// NTSTATUS with which the operation ended.
    pub status: u32,
}

impl FileEnd {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &[u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(FileEnd {
            irp: cursor.pointer()?,
            extra_info: cursor.pointer()?,
            status: cursor.u32()?,
        })
    }
}
