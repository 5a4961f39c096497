//! Images are mapped into processes, and what identifies them.

use etl::Guid;

use super::cursor::Cursor;
use crate::text::{Ansi, Utf16};

/// Image Load, Unload, DCStart and DCEnd: hook 0x030A, and opcodes 2, 3, 4 and 10 of the image
/// class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    /// Where it is mapped.
    pub base: u64,
    /// Its size in memory, in bytes.
    pub size: u64,
    /// Its process; 0 for the kernel's modules. Since version 1; else the header's process.
    pub process_id: Option<u32>,
    /// Checksum of its file. Since version 2.
    pub checksum: Option<u32>,
    /// Link time of its file, or a hash where builds are reproducible. Since version 2.
    pub time_date_stamp: Option<u32>,
    /// How it was signed; see [`super::signature_level`]. Since version 3.
    pub signature_level: Option<u8>,
    /// Where its signature was found; see [`super::signature_type`]. Since version 3.
    pub signature_type: Option<u8>,
    /// Where its file asks to be mapped. Since version 2.
    pub default_base: Option<u64>,
    /// Its file as an NT path (`\Device\HarddiskVolume3\…`).
    pub file_name: Utf16<'a>,
}

impl<'a> Image<'a> {
    /// Reads the payload; `None` if it is too short.
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

/// ImageId, opcode 0 of the image-id class: names the file of an image, for the symbol path. The
/// merge step of Windows' tools writes it beside each image event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageId<'a> {
    /// Where the image is mapped.
    pub base: u64,
    /// Its size in memory, in bytes.
    pub size: u64,
    /// Its process; 0 for the kernel's modules.
    pub process_id: u32,
    /// Link time of its file.
    pub time_date_stamp: u32,
    /// The name that its file was linked with.
    pub original_file_name: Utf16<'a>,
}

impl<'a> ImageId<'a> {
    /// Reads the payload; `None` if it is too short.
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

/// DbgIdRSDS and DbgIdILRSDS, opcodes 36 and 37 of the image-id class: which PDB describes an
/// image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PdbId<'a> {
    /// Where the image is mapped.
    pub base: u64,
    /// Its process; 0 for the kernel's modules.
    pub process_id: u32,
    /// Identity of the PDB.
    pub guid: Guid,
    /// How often it was rewritten.
    pub age: u32,
    /// Path of the PDB as the linker knew it.
    pub path: Ansi<'a>,
}

impl<'a> PdbId<'a> {
    /// Reads the payload; `None` if it is too short.
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
