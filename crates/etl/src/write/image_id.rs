//! What identifies an image and its symbols, as a merge records it (Image Id class).
//!
//! Source: the `Opcode` and field names of Microsoft's TraceEvent (`SymbolTraceEventParser`).

use super::injected::Injected;
use super::payload::Payload;
use crate::guid::Guid;

/// Class of the events that identify images.
const IMAGE_ID: Guid = Guid::new(
    0xb3e6_75d7,
    0x2554,
    0x4f18,
    [0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde],
);

fn injected(opcode: u8, version: u8, payload: &mut Payload) -> Injected {
    Injected {
        class: IMAGE_ID,
        opcode,
        version,
        payload: std::mem::take(payload),
    }
}

/// Where an image lies, and what its file is.
#[derive(Clone, Copy, Debug)]
pub struct ImageId<'a> {
    /// Address of the image.
    pub base: u64,
    /// Its size in memory, in bytes.
    pub size: u64,
    /// Its process; 0 for kernel modules.
    pub process_id: u32,
    /// `TimeDateStamp` of its PE header.
    pub time_stamp: u32,
    /// The name it was built with.
    pub file_name: &'a str,
}

impl ImageId<'_> {
    /// The event: opcode 0, version 2.
    pub fn event(&self) -> Injected {
        let payload = &mut Payload::new();
        payload.u64(self.base).u64(self.size);
        payload.u32(self.process_id).u32(self.time_stamp);
        injected(0, 2, payload.utf16_z(self.file_name))
    }
}

/// The PDB that an image's debug directory names (its RSDS record).
#[derive(Clone, Copy, Debug)]
pub struct Rsds<'a> {
    /// Address of the image.
    pub base: u64,
    /// Its process; 0 for kernel modules.
    pub process_id: u32,
    /// GUID of the PDB.
    pub guid: Guid,
    /// Age of the PDB.
    pub age: u32,
    /// Path or name of the PDB.
    pub pdb: &'a str,
}

impl Rsds<'_> {
    /// The event: opcode 36, version 2.
    pub fn event(&self) -> Injected {
        let payload = &mut Payload::new();
        payload.u64(self.base).u32(self.process_id);
        payload.guid(self.guid).u32(self.age);
        injected(36, 2, payload.utf8_z(self.pdb))
    }
}

/// The version resource of an image's file. It belongs to the [`ImageId`] of the same size and
/// time stamp.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileVersion<'a> {
    /// Size of the image in memory, in bytes.
    pub size: u32,
    /// `TimeDateStamp` of its PE header.
    pub time_stamp: u32,
    /// The name it was built with.
    pub original_name: &'a str,
    /// What the file is.
    pub description: &'a str,
    /// Version in words.
    pub version: &'a str,
    /// Version in numbers, as in `10.0.26100.1`.
    pub binary_version: &'a str,
    /// Language of the resource.
    pub language: &'a str,
    /// Product.
    pub product: &'a str,
    /// Company.
    pub company: &'a str,
    /// Version of the product.
    pub product_version: &'a str,
    /// Id of the file (its hash, in the compatibility database's form).
    pub file_id: &'a str,
    /// Id of the program.
    pub program_id: &'a str,
}

impl FileVersion<'_> {
    /// The event: opcode 64, version 0.
    pub fn event(&self) -> Injected {
        let payload = &mut Payload::new();
        payload.u32(self.size).u32(self.time_stamp);
        for text in [
            self.original_name,
            self.description,
            self.version,
            self.binary_version,
            self.language,
            self.product,
            self.company,
            self.product_version,
            self.file_id,
            self.program_id,
        ] {
            payload.utf16_z(text);
        }
        injected(64, 0, payload)
    }
}
