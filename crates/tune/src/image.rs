//! Version and PDB of a program file, and a search for the name of a setting in the file.
//!
//! A program that reads a registry value contains the name of the value: usually in UTF-16, rarely in
//! ASCII. If the file of a kernel does not contain the name, that kernel does not know the setting.

use memchr::memmem;
use object::LittleEndian as LE;
use object::pe::{ImageNtHeaders32, ImageNtHeaders64};
use object::read::pe::{ImageNtHeaders, PeFile, ResourceDirectoryEntryData};
use object::{FileKind, Object};

/// Number of the resource type for versions (RT_VERSION).
const VERSION_RESOURCE: u16 = 16;

/// Signature before the version numbers in `VS_FIXEDFILEINFO`.
const VERSION_SIGNATURE: [u8; 4] = 0xFEEF_04BD_u32.to_le_bytes();

/// A program file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// File version, such as 10.0.22621.1928.
    pub version: Option<Version>,
    /// Reference to the PDB of the file.
    pub pdb: Option<PdbReference>,
}

/// The four numbers of a file version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub [u16; 4]);

impl Version {
    /// Returns the third number of the version. In files of Windows, this number is the build of Windows.
    pub fn build(self) -> u32 {
        self.0[2].into()
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [major, minor, build, revision] = self.0;
        write!(f, "{major}.{minor}.{build}.{revision}")
    }
}

/// Reference to the PDB of a program file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdbReference {
    /// Path of the PDB on the machine that built the program.
    pub path: String,
    /// GUID of the PDB, in the byte order of the file.
    pub guid: [u8; 16],
    /// Age: the number that distinguishes PDBs with the same GUID.
    pub age: u32,
}

/// Reason why a program file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file is not a PE file.
    #[error("not a Windows program file (PE)")]
    NotPe,
    /// The headers are damaged.
    #[error("damaged program file")]
    Damaged(#[from] object::Error),
}

impl Image {
    /// Reads the version and the PDB reference of a program file.
    ///
    /// # Errors
    /// Returns an error if the file is not a program file or its headers are damaged. An unreadable version
    /// or PDB is `None`.
    pub fn read(bytes: &[u8]) -> Result<Image, ImageError> {
        match FileKind::parse(bytes) {
            Ok(FileKind::Pe64) => read::<ImageNtHeaders64>(bytes),
            Ok(FileKind::Pe32) => read::<ImageNtHeaders32>(bytes),
            _ => Err(ImageError::NotPe),
        }
    }
}

fn read<Headers: ImageNtHeaders>(bytes: &[u8]) -> Result<Image, ImageError> {
    let file = PeFile::<Headers>::parse(bytes)?;
    let pdb = file.pdb_info().ok().flatten().map(|pdb| PdbReference {
        path: String::from_utf8_lossy(pdb.path()).into_owned(),
        guid: pdb.guid(),
        age: pdb.age(),
    });
    Ok(Image {
        version: version(&file, bytes),
        pdb,
    })
}

/// Reads the version from the resources.
fn version<Headers: ImageNtHeaders>(file: &PeFile<'_, Headers>, bytes: &[u8]) -> Option<Version> {
    let sections = file.section_table();
    let resources = file.data_directories().resource_directory(bytes, &sections);
    let directory = resources.ok()??;
    let root = directory.root().ok()?;
    let versions =
        (root.entries.iter()).find(|entry| entry.name_or_id().id() == Some(VERSION_RESOURCE))?;
    // Each version has two more levels of directories: name and language. Take the first entry of each.
    let mut data = versions.data(directory).ok()?;
    for _ in 0..2 {
        if let ResourceDirectoryEntryData::Table(table) = data {
            data = table.entries.first()?.data(directory).ok()?;
        }
    }
    let ResourceDirectoryEntryData::Data(entry) = data else {
        return None;
    };
    let resource = sections.pe_data_at(bytes, entry.offset_to_data.get(LE))?;
    let resource = resource.get(..entry.size.get(LE) as usize)?;
    let at = memmem::find(resource, &VERSION_SIGNATURE)?;
    let word = |place: usize| {
        let bytes = resource.get(at + place..at + place + 2)?;
        Some(u16::from_le_bytes([bytes[0], bytes[1]]))
    };
    Some(Version([word(10)?, word(8)?, word(14)?, word(12)?]))
}

/// First occurrence of a name in a file, with its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mention {
    /// The name is in UTF-16, the encoding in which programs pass names to the registry.
    Utf16 {
        /// Offset in the file, in bytes.
        offset: usize,
    },
    /// The name is only in ASCII.
    Ascii {
        /// Offset in the file, in bytes.
        offset: usize,
    },
}

/// Finds the first occurrence of a name as a whole word. UTF-16 has precedence over ASCII.
pub fn mention(bytes: &[u8], name: &str) -> Option<Mention> {
    let wide: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf16 = find_word(bytes, &wide, 2).map(|offset| Mention::Utf16 { offset });
    utf16.or_else(|| find_word(bytes, name.as_bytes(), 1).map(|offset| Mention::Ascii { offset }))
}

/// Finds the first `word` that is not part of a longer name. `letter` is the size of a
/// character in bytes: 1 for ASCII, 2 for UTF-16.
fn find_word(bytes: &[u8], word: &[u8], letter: usize) -> Option<usize> {
    if word.is_empty() {
        return None;
    }
    let is_of_a_name = |unit: Option<&[u8]>| match unit {
        Some([low, rest @ ..]) => {
            let is_wide_ascii = rest.iter().all(|byte| *byte == 0);
            is_wide_ascii && (low.is_ascii_alphanumeric() || *low == b'_')
        }
        _ => false,
    };
    memmem::find_iter(bytes, word).find(|&at| {
        let before = at.checked_sub(letter).map(|start| &bytes[start..at]);
        let end = at + word.len();
        !is_of_a_name(before) && !is_of_a_name(bytes.get(end..end + letter))
    })
}
