//! What a kernel's (or any) program file says of itself, and whether it names a setting.
//!
//! A kernel reads a value of the registry by its name, so the name is in the file: in UTF-16 where
//! it is asked for, rarely in ASCII. A kernel whose file lacks the name cannot know the setting.

use memchr::memmem;
use object::LittleEndian as LE;
use object::pe::{ImageNtHeaders32, ImageNtHeaders64};
use object::read::pe::{ImageNtHeaders, PeFile, ResourceDirectoryEntryData};
use object::{FileKind, Object};

/// The number of resources that hold versions (RT_VERSION).
const VERSION_RESOURCE: u16 = 16;

/// What stands before the version's numbers in the resource `VS_FIXEDFILEINFO`.
const VERSION_SIGNATURE: [u8; 4] = 0xFEEF_04BD_u32.to_le_bytes();

/// A program file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its version, such as 10.0.22621.1928, if it has one.
    pub version: Option<Version>,
    /// The PDB that describes it.
    pub pdb: Option<PdbReference>,
}

/// The four numbers of a file's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub [u16; 4]);

impl Version {
    /// The build of Windows that a file of Windows is of.
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

/// Which PDB describes a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdbReference {
    /// Its path where it was made.
    pub path: String,
    /// Its GUID, as bytes in the order in which they are kept.
    pub guid: [u8; 16],
    /// Its age.
    pub age: u32,
}

/// A file that is no program of Windows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// It does not begin like one.
    #[error("is no program file of Windows (PE)")]
    NotPe,
    /// Its headers lead nowhere.
    #[error("is a damaged program file: {0}")]
    Damaged(String),
}

impl Image {
    /// Reads what the file says of itself.
    ///
    /// # Errors
    /// If it is no program file, or its headers are damaged. A version or PDB that cannot be read is
    /// absent.
    pub fn read(bytes: &[u8]) -> Result<Image, ImageError> {
        match FileKind::parse(bytes) {
            Ok(FileKind::Pe64) => read::<ImageNtHeaders64>(bytes),
            Ok(FileKind::Pe32) => read::<ImageNtHeaders32>(bytes),
            _ => Err(ImageError::NotPe),
        }
    }
}

fn read<Headers: ImageNtHeaders>(bytes: &[u8]) -> Result<Image, ImageError> {
    let damaged = |error: object::Error| ImageError::Damaged(error.to_string());
    let file = PeFile::<Headers>::parse(bytes).map_err(damaged)?;
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

/// The version in the file's resources.
fn version<Headers: ImageNtHeaders>(file: &PeFile<'_, Headers>, bytes: &[u8]) -> Option<Version> {
    let sections = file.section_table();
    let resources = file.data_directories().resource_directory(bytes, &sections);
    let directory = resources.ok()??;
    let root = directory.root().ok()?;
    let versions =
        (root.entries.iter()).find(|entry| entry.name_or_id().id() == Some(VERSION_RESOURCE))?;
    // By name, then by language: the first of each.
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

/// How a file names something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mention {
    /// In UTF-16: where the registry is asked for it.
    Utf16 {
        /// Where in the file.
        offset: usize,
    },
    /// In ASCII only.
    Ascii {
        /// Where in the file.
        offset: usize,
    },
}

/// Where the file names something as a word of its own, not as a part of a longer one.
pub fn mention(bytes: &[u8], name: &str) -> Option<Mention> {
    let wide: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf16 = find_word(bytes, &wide, 2).map(|offset| Mention::Utf16 { offset });
    utf16.or_else(|| find_word(bytes, name.as_bytes(), 1).map(|offset| Mention::Ascii { offset }))
}

/// The first place of `word`, whose letters have so many bytes, between letters of no name.
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
