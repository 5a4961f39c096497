//! Events of images (EXE, DLL and driver files) that Windows maps into memory, and their
//! identities.

use etl::Guid;

use super::cursor::Cursor;
use crate::text::{Ansi, Utf16};

/// Image Load, Unload, DCStart and DCEnd. Load has the hook 0x030A or the opcode 10 of the image class. The
/// others have the opcodes 2, 3 and 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    /// Start address of the image in memory.
    pub base: u64,
    /// Size of the image in memory, in bytes.
    pub size: u64,
    /// Id of the process into which the image is mapped; 0 for kernel modules. Present since version 1. In
    /// version 0, only the event's header contains the process id.
    pub process_id: Option<u32>,
    /// Checksum of the file. Present since version 2.
    pub checksum: Option<u32>,
    /// Link time of the file. If the build of the file is reproducible, this is a hash. Present since version
    /// 2.
    pub time_date_stamp: Option<u32>,
    /// Signature level; see [`super::signature_level`]. Present since version 3.
    pub signature_level: Option<u8>,
    /// Location of the signature; see [`super::signature_type`]. Present since version 3.
    pub signature_type: Option<u8>,
    /// Preferred start address that the file states. Present since version 2.
    pub default_base: Option<u64>,
    /// NT path of the file (`\Device\HarddiskVolume3\…`).
    pub file_name: Utf16<'a>,
}

impl<'a> Image<'a> {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &'a [u8], version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        let mut image = Image {
            base: cursor.pointer()?,
            size: if version == 0 {
                cursor.u32()?.into()
            } else {
                cursor.pointer()?
            },
            process_id: None,
            checksum: None,
            time_date_stamp: None,
            signature_level: None,
            signature_type: None,
            default_base: None,
            file_name: Utf16::default(),
        };
        if version >= 1 {
            image.process_id = Some(cursor.u32()?);
        }
        if version >= 2 {
            image.checksum = Some(cursor.u32()?);
            image.time_date_stamp = Some(cursor.u32()?);
            let [level, kind, ..] = cursor.u32()?.to_le_bytes();
            if version >= 3 {
                image.signature_level = Some(level);
                image.signature_type = Some(kind);
            }
            image.default_base = Some(cursor.pointer()?);
            cursor.skip(16)?;
        }
        image.file_name = cursor.utf16()?;
        Some(image)
    }
}

/// ImageId, opcode 0 of the image-id class. It contains the size and the time stamp of an image's file.
/// Debuggers use the size and the time stamp to find the file in a symbol path. When Windows' tools merge a
/// trace, they add an ImageId event for each image event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageId<'a> {
    /// Start address of the image in memory.
    pub base: u64,
    /// Size of the image in memory, in bytes.
    pub size: u64,
    /// Id of the process into which the image is mapped; 0 for kernel modules.
    pub process_id: u32,
    /// Link time of the file.
    pub time_date_stamp: u32,
    /// Name of the file when it was linked.
    pub original_file_name: Utf16<'a>,
}

impl<'a> ImageId<'a> {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(ImageId {
            base: cursor.pointer()?,
            size: cursor.pointer()?,
            process_id: cursor.u32()?,
            time_date_stamp: cursor.u32()?,
            original_file_name: cursor.utf16()?,
        })
    }
}

/// DbgIdRSDS and DbgIdILRSDS, opcodes 36 and 37 of the image-id class. They identify the PDB file of an
/// image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PdbId<'a> {
    /// Start address of the image in memory.
    pub base: u64,
    /// Id of the process into which the image is mapped; 0 for kernel modules.
    pub process_id: u32,
    /// GUID of the PDB.
    pub guid: Guid,
    /// Age of the PDB. This is the number of times that the PDB was rewritten.
    pub age: u32,
    /// Path of the PDB that the linker recorded.
    pub path: Ansi<'a>,
}

impl<'a> PdbId<'a> {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(PdbId {
            base: cursor.pointer()?,
            process_id: cursor.u32()?,
            guid: cursor.guid()?,
            age: cursor.u32()?,
            path: cursor.ansi()?,
        })
    }
}
