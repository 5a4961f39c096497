//! What identifies a module and the PDB that describes it.

use std::fmt;

use etl::Guid;

/// Longest name of a file that common file systems have, in bytes.
const MAX_NAME: usize = 255;

/// Identity of a PDB: a file name, and a GUID and age that no other build has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PdbId {
    name: String,
    guid: Guid,
    age: u32,
}

impl PdbId {
    /// From what an image's RSDS record says: the path of the PDB as the linker knew it, of which
    /// only the file name is kept, its GUID, and its age.
    ///
    /// # Errors
    /// If the path does not end in something that can only be the name of a file: it comes from a
    /// trace, and must lead nowhere.
    pub fn new(path: &str, guid: Guid, age: u32) -> Result<PdbId, NotAFileName> {
        let name = path.rsplit(['\\', '/']).next().unwrap_or(path);
        let is_file_name = !name.is_empty()
            && name.len() <= MAX_NAME
            && !name.ends_with(['.', ' '])
            && !name
                .chars()
                .any(|c| c.is_control() || ":*?\"<>|".contains(c));
        match is_file_name {
            true => Ok(PdbId {
                name: name.to_owned(),
                guid,
                age,
            }),
            false => Err(NotAFileName(path.escape_debug().take(MAX_NAME).collect())),
        }
    }

    /// Its file name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its GUID.
    pub fn guid(&self) -> Guid {
        self.guid
    }

    /// How often it was rewritten: the age of its DBI stream, which the linker puts into the image.
    pub fn age(&self) -> u32 {
        self.age
    }

    /// The folder that symbol stores keep it in, below one of its name: the GUID's 32 digits and
    /// the age, hexadecimal, in upper case.
    pub fn key(&self) -> String {
        key(self.guid, self.age)
    }
}

/// As [`PdbId::key`].
pub(crate) fn key(guid: Guid, age: u32) -> String {
    let digits = guid.to_string().replace('-', "").to_uppercase();
    format!("{digits}{age:X}")
}

impl fmt::Display for PdbId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.key())
    }
}

/// The path of a PDB ends in no name of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not end in the name of a PDB file")]
pub struct NotAFileName(String);

/// A module: what a trace knows of the file of a program, library or driver. Equal ones are one
/// build of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// Name of its file.
    pub name: String,
    /// Link time of its file, or a hash where builds are reproducible.
    pub time_date_stamp: Option<u32>,
    /// Its size in memory, in bytes.
    pub size: Option<u64>,
    /// The PDB that describes it.
    pub pdb: Option<PdbId>,
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
