//! Symbols of a program or library of Linux (ELF).

use std::fmt;
use std::fs::File;
use std::io;

use object::{Object, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind};

use crate::functions::{Functions, Preference, readable};
use crate::pdb::{Frame, Location};

/// Identity of a file of Linux, as a recording states it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElfId {
    /// Path of the file on the recorded machine. It is untrusted.
    pub path: String,
    /// Build id that the linker wrote into the file; `None` if the recording does not have it.
    pub build_id: Option<BuildId>,
    /// True if the path stands for memory with code that the program generated while it ran.
    pub is_generated: bool,
}

/// Build id of a file: a hash of its contents, mostly 20 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BuildId(Vec<u8>);

impl BuildId {
    /// Parses hexadecimal digits. Returns `None` if the text is not a build id of at least 2 bytes.
    pub fn parse(digits: &str) -> Option<BuildId> {
        let is_valid = digits.is_ascii() && digits.len() >= 4 && digits.len().is_multiple_of(2);
        let bytes = (0..digits.len()).step_by(2).filter(|_| is_valid);
        let bytes: Option<Vec<u8>> = bytes
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok())
            .collect();
        bytes.filter(|bytes| !bytes.is_empty()).map(BuildId)
    }

    /// Returns two lists of possible paths, relative to a folder that is searched. The first list is for the file with
    /// this build id, as in perf's cache. The second list is for the separate file with its debug information.
    pub(crate) fn names(&self) -> ([String; 2], [String; 2]) {
        let digits = self.to_string();
        let (first, rest) = digits.split_at(2);
        let plain = format!(".build-id/{first}/{rest}");
        let debug = format!("{plain}.debug");
        let of_system = format!("usr/lib/debug/{debug}");
        ([format!("{plain}/elf"), plain], [debug, of_system])
    }

    /// Returns true if a file has this build id. Some recordings pad the build id with zeros to 20 bytes.
    fn is_of(&self, found: &[u8]) -> bool {
        let BuildId(wanted) = self;
        let (same, rest) = wanted.split_at(found.len().min(wanted.len()));
        !found.is_empty() && found == same && rest.iter().all(|byte| *byte == 0)
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl ElfId {
    /// Returns the path of the file relative to a folder that contains the files of the recorded machine. Returns
    /// `None` if the path is not absolute, or if it leads out of the folder.
    pub(crate) fn name_below(&self) -> Option<&str> {
        let path = self.path.strip_prefix('/')?;
        let is_name =
            |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['\\', ':', '\0']);
        path.split('/').all(is_name).then_some(path)
    }
}

impl fmt::Display for ElfId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.build_id {
            Some(id) => write!(f, "{} {id}", self.path),
            None => f.write_str(&self.path),
        }
    }
}

/// Reason why a file cannot be used for symbols.
#[derive(Debug, thiserror::Error)]
pub enum ElfError {
    /// The file is of another build.
    #[error("belongs to another build: its build id is {found}, expected {wanted}")]
    OtherBuild {
        /// Build id of the file.
        found: String,
        /// Build id that the recording states.
        wanted: String,
    },
    /// The file is not an ELF file or is damaged.
    #[error("is not a readable ELF file: {0}")]
    Unreadable(#[from] object::read::Error),
    /// The file has no functions.
    #[error("has no symbols of functions")]
    NoSymbols,
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// Functions of an ELF file, and the mapped parts of the file.
#[derive(Debug)]
pub struct Elf {
    /// Parts of the file that are mapped: offset in the file, size and address.
    segments: Vec<(u64, u64, u64)>,
    functions: Functions,
    /// True if the functions come from the complete symbol table. False if they come only from the symbol table for
    /// dynamic linking.
    pub(crate) is_complete: bool,
}

impl Elf {
    /// Opens a file and checks its build id.
    ///
    /// # Errors
    /// Returns an error if the file is not a readable ELF file, or if it has another build id.
    pub fn open(file: File, wanted: &BuildId) -> Result<Elf, ElfError> {
        let cache = ReadCache::new(file);
        let file = object::File::parse(&cache)?;
        let build_id = file.build_id()?.unwrap_or_default();
        if !wanted.is_of(build_id) {
            return Err(ElfError::OtherBuild {
                found: BuildId(build_id.to_owned()).to_string(),
                wanted: wanted.to_string(),
            });
        }
        let segments = file.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        });
        let mut elf = Elf {
            segments: segments.filter(|(_, size, _)| *size > 0).collect(),
            functions: Functions::default(),
            is_complete: true,
        };
        elf.add(file.symbols());
        if elf.functions.is_empty() {
            elf.is_complete = false;
            elf.add(file.dynamic_symbols());
        }
        elf.functions.sort();
        Ok(elf)
    }

    fn add<'f>(&mut self, symbols: impl Iterator<Item: ObjectSymbol<'f>>) {
        for symbol in symbols {
            let is_function = symbol.kind() == SymbolKind::Text && symbol.is_definition();
            if let Ok(name) = symbol.name()
                && is_function
            {
                let preference = Preference {
                    has_size: symbol.size() > 0,
                    is_strong: !symbol.is_weak(),
                    is_global: symbol.is_global(),
                };
                self.functions
                    .push(symbol.address(), symbol.size(), name, preference);
            }
        }
    }

    /// Replaces the functions by the functions of `debug`, a file with debug information of the same build. Does
    /// nothing if `debug` lacks the complete symbol table. The mapped parts of this file stay, because files with debug
    /// information have no mapped parts.
    pub(crate) fn take_functions(&mut self, debug: Elf) {
        if debug.is_complete {
            self.functions = debug.functions;
            self.is_complete = true;
        }
    }

    /// Returns an error if the file has no functions or no mapped parts. No address can then have a name.
    pub(crate) fn check(self) -> Result<Elf, ElfError> {
        if self.functions.is_empty() || self.segments.is_empty() {
            Err(ElfError::NoSymbols)
        } else {
            Ok(self)
        }
    }

    /// Looks up an offset in the file. Returns `None` if no function contains the offset.
    pub(crate) fn locate(&self, offset: u32) -> Option<Location> {
        let in_file = u64::from(offset);
        let is_in =
            |(start, size, _): &&(u64, u64, u64)| in_file >= *start && in_file - start < *size;
        let (start, size, first) = self.segments.iter().find(is_in)?;
        let address = first.checked_add(in_file - start)?;
        let (name, function) = (self.functions).find(address, first.saturating_add(*size))?;
        // If the function begins before the start of the mapped part, its offset in the file could be negative. Such a
        // function is not used.
        let function_rva = u64::from(offset).checked_sub(address - function)?;
        Some(Location {
            function_rva: u32::try_from(function_rva).ok()?,
            frames: vec![Frame {
                function: Some(readable(name)),
                file: None,
                line: None,
            }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_do_not_lead_out_of_a_folder() {
        let below = |path: &str| {
            let id = ElfId {
                path: path.into(),
                build_id: None,
                is_generated: false,
            };
            id.name_below().map(str::to_owned)
        };
        assert_eq!(below("/usr/bin/x"), Some("usr/bin/x".into()));
        for path in [
            "",
            "/",
            "x",
            "//anon",
            "/../x",
            "/a/./b",
            "/C:/x",
            "/a\\..\\b",
            "[vdso]",
        ] {
            assert_eq!(below(path), None, "{path}");
        }
    }

    #[test]
    fn build_ids_are_compared_without_filling() {
        let id = BuildId::parse("0123abCD0000").unwrap();
        assert_eq!(id.to_string(), "0123abcd0000");
        assert!(id.is_of(&[0x01, 0x23, 0xAB, 0xCD]) && id.is_of(&[0x01, 0x23, 0xAB, 0xCD, 0, 0]));
        for other in [&[][..], &[0x01, 0x23], &[0x01, 0x23, 0xAB, 0xCD, 0, 0, 1]] {
            assert!(!id.is_of(other), "{other:?}");
        }
        for text in ["", "01", "012", "01ß0", "xyzw"] {
            assert_eq!(BuildId::parse(text), None, "{text}");
        }
    }
}
