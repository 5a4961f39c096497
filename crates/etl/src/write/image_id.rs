//! Events that identify an image (an EXE, DLL or driver file) and its symbols (Image Id class). These events
//! are added when a trace is merged.
//!
//! Source: the opcodes and field names of Microsoft's TraceEvent (`SymbolTraceEventParser`).

use super::injected::Injected;
use super::payload::Payload;
use crate::guid::Guid;
use crate::ids::class::IMAGE_ID;

fn injected(opcode: u8, version: u8, payload: &mut Payload) -> Injected {
    Injected {
        class: IMAGE_ID,
        opcode,
        version,
        payload: std::mem::take(payload),
    }
}

/// Event with the address and file of an image.
#[derive(Clone, Copy, Debug)]
pub struct ImageId<'a> {
    /// Start address of the image in memory.
    pub base: u64,
    /// Size of the image in memory, in bytes.
    pub size: u64,
    /// Id of the process into which the image is mapped; 0 for kernel modules.
    pub process_id: u32,
    /// `TimeDateStamp` in the PE header of the image's file.
    pub time_stamp: u32,
    /// Name of the file when it was built.
    pub file_name: &'a str,
}

impl ImageId<'_> {
    /// Returns the event. It has opcode 0 and version 2.
    pub fn event(&self) -> Injected {
        let payload = &mut Payload::new();
        payload.u64(self.base).u64(self.size);
        payload.u32(self.process_id).u32(self.time_stamp);
        injected(0, 2, payload.utf16_z(self.file_name))
    }
}

/// Event with the PDB that an image's debug directory names (RSDS record).
#[derive(Clone, Copy, Debug)]
pub struct Rsds<'a> {
    /// Start address of the image in memory.
    pub base: u64,
    /// Id of the process into which the image is mapped; 0 for kernel modules.
    pub process_id: u32,
    /// GUID of the PDB.
    pub guid: Guid,
    /// Age of the PDB.
    pub age: u32,
    /// Path or file name of the PDB.
    pub pdb: &'a str,
}

impl Rsds<'_> {
    /// Returns the event. It has opcode 36 and version 2.
    pub fn event(&self) -> Injected {
        let payload = &mut Payload::new();
        payload.u64(self.base).u32(self.process_id);
        payload.guid(self.guid).u32(self.age);
        injected(36, 2, payload.utf8_z(self.pdb))
    }
}

/// Event with the version resource of an image's file. The [`ImageId`] event of the same image has equal
/// values in `size` and `time_stamp`.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileVersion<'a> {
    /// Size of the image in memory, in bytes.
    pub size: u32,
    /// `TimeDateStamp` in the PE header of the image's file.
    pub time_stamp: u32,
    /// Name of the file when it was built.
    pub original_name: &'a str,
    /// Description of the file.
    pub description: &'a str,
    /// Version of the file as text.
    pub version: &'a str,
    /// Version of the file as numbers, such as `10.0.26100.1`.
    pub binary_version: &'a str,
    /// Language of the version resource.
    pub language: &'a str,
    /// Name of the product.
    pub product: &'a str,
    /// Name of the company.
    pub company: &'a str,
    /// Version of the product.
    pub product_version: &'a str,
    /// Id of the file: a hash in the format of Windows' compatibility database.
    pub file_id: &'a str,
    /// Id of the program to which the file belongs.
    pub program_id: &'a str,
}

impl FileVersion<'_> {
    /// Returns the event. It has opcode 64 and version 0.
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
