//! Identities of modules and of the PDBs that describe them.

use std::fmt;

use etl::Guid;

use crate::elf::ElfId;

/// Maximum length of a file name in common file systems, in bytes.
const MAX_NAME: usize = 255;

/// Identity of a PDB: its file name, GUID and age. Each build of a program has a different identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PdbId {
    name: String,
    guid: Guid,
    age: u32,
}

impl PdbId {
    /// Creates the identity from the RSDS record of an image. The record contains the path, the GUID and the
    /// age of the PDB. Only the file name of the path is kept.
    ///
    /// # Errors
    /// Returns an error if the path does not end in a valid file name. The path comes from a trace, so it is
    /// untrusted.
    pub fn new(path: &str, guid: Guid, age: u32) -> Result<PdbId, NotAFileName> {
        let name = path.rsplit(['\\', '/']).next().unwrap_or(path);
        let is_file_name = !name.is_empty()
            && name.len() <= MAX_NAME
            && !name.ends_with(['.', ' '])
            && !name
                .chars()
                .any(|c| c.is_control() || ":*?\"<>|".contains(c));
        if is_file_name {
            Ok(PdbId {
                name: name.to_owned(),
                guid,
                age,
            })
        } else {
            Err(NotAFileName(path.escape_debug().take(MAX_NAME).collect()))
        }
    }

    /// Returns the file name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the GUID.
    pub fn guid(&self) -> Guid {
        self.guid
    }

    /// Returns the age in the DBI stream of the PDB. The linker also writes this age into the image.
    pub fn age(&self) -> u32 {
        self.age
    }

    /// Returns the name of the folder that contains the PDB in a symbol store. The name consists of the 32
    /// digits of the GUID and the age, both in upper-case hexadecimal. The name of the parent folder is the
    /// file name of the PDB.
    pub fn key(&self) -> String {
        key(self.guid, self.age)
    }
}

/// Returns the text of [`PdbId::key`] for a GUID and an age.
pub(crate) fn key(guid: Guid, age: u32) -> String {
    let digits = guid.to_string().replace('-', "").to_uppercase();
    format!("{digits}{age:X}")
}

impl fmt::Display for PdbId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.key())
    }
}

/// Error for a path that does not end in a valid file name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not end in the name of a PDB file")]
pub struct NotAFileName(String);

/// A module: a program, library or driver. The fields are the facts that a trace contains about the module's
/// file. If two modules are equal, they are the same build.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// File name of the module.
    pub name: String,
    /// Link time of the file. If the build of the file is reproducible, this is a hash.
    pub time_date_stamp: Option<u32>,
    /// Size of the module in memory, in bytes.
    pub size: Option<u64>,
    /// Identity of the module's PDB; `None` for a module of Linux.
    pub pdb: Option<PdbId>,
    /// Identity of the module's file, if it is a module of Linux.
    pub elf: Option<ElfId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_that_of_symbol_stores() {
        let guid = "9dc487da-0ef9-1033-4c4c-44205044422e".parse().unwrap();
        let id = PdbId::new(r"D:\build\tinydrv.pdb", guid, 0x1a).unwrap();
        assert_eq!(id.name(), "tinydrv.pdb");
        assert_eq!(id.key(), "9DC487DA0EF910334C4C44205044422E1A");
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for path in [
            "", r"C:\", "..", r"a\..", "/", "C:x.pdb", "a\0.pdb", "x.pdb ", "a*b",
        ] {
            assert!(PdbId::new(path, Guid::ZERO, 1).is_err(), "{path:?}");
        }
        let unix = PdbId::new("/tmp/../x.pdb", Guid::ZERO, 1).unwrap();
        assert_eq!(unix.name(), "x.pdb");
    }
}
