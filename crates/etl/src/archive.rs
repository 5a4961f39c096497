//! Extraction of traces from archives. An archive is a zip file (`.etl.zip` or `.diagsession`) or a cabinet.
//! A `.diagsession` is an OPC package, so it is also a zip file. `netsh trace` writes a cabinet next to its
//! `.etl`.
//!
//! An archive is untrusted input. The names in it are only labels, never paths. The size that an archive
//! states for a member is only an upper limit of the expanded size. Archives inside archives are not opened.

mod cabinet;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, Write};

use files::free_space::{BETWEEN_CHECKS, NoSpace};
use zip::result::ZipError;

use cabinet::Cabinet;

/// Maximum ratio of the expanded size to the archive's size. Traces usually compress 10 to 30 times. Traces
/// with many similar events compress about a hundred times.
const MAX_EXPANSION: u64 = 200;

/// Expanded size in bytes that is allowed for every archive, even a small one. A short trace with
/// large, almost empty buffers can compress a thousand times.
const MAY_EXPAND: u64 = 1 << 30;

/// Maximum total size in bytes of the members that are kept in memory. Members beyond this size go to
/// temporary files.
const MAX_IN_MEMORY: u64 = 64 << 20;

/// Number of bytes at the start of a member that [`looks_like_trace`] needs.
const HEAD_SIZE: usize = 0x4C;

/// Maximum number of names in [`ArchiveError::NoTrace`].
const MAX_LISTED: usize = 20;

/// First bytes of a cabinet.
const CABINET_SIGNATURE: &[u8] = b"MSCF";

/// First bytes of a zip archive. The second value is the start of the end record. In an empty archive, the
/// end record comes first.
const ZIP_SIGNATURES: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// One trace from an archive.
#[derive(Debug)]
pub(crate) struct Member {
    /// Name of the member in the archive. It is a label for messages. It can contain anything, so
    /// it must not be used as a path.
    pub(crate) name: String,
    /// Content of the member.
    pub(crate) data: MemberData,
}

/// Content of a [`Member`], in memory or in a file.
#[derive(Debug)]
pub(crate) enum MemberData {
    /// Content in memory. All members together have at most 64 MiB in memory.
    Memory(Vec<u8>),
    /// Content in an unnamed temporary file. The read position is at the start of the file. The system
    /// deletes the file when the file is closed.
    File(File),
}

/// Error in an archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file is neither a zip archive nor a cabinet.
    #[error("it is not an archive: expected \"PK\" (zip) or \"MSCF\" (cabinet) at its start")]
    NotAnArchive,
    /// The archive's structure is damaged.
    #[error("the archive is damaged or incomplete ({0}); copy it again and compare the sizes")]
    Unreadable(#[source] io::Error),
    /// A member is damaged or stored in an unsupported way, or its temporary file could not be
    /// written.
    #[error("cannot read {name:?} in the archive: {source}")]
    Member {
        /// Name of the member.
        name: String,
        /// Cause of the error.
        source: io::Error,
    },
    /// The archive expands to more bytes than real traces do.
    #[error(
        "the archive expands to more than {} MiB; {name:?} exceeded this limit; only damaged or hostile \
         archives expand so much; if you trust the archive, unpack it and give the .etl file", limit >> 20
    )]
    TooLarge {
        /// Name of the member that exceeds the limit.
        name: String,
        /// Limit for the whole archive, in bytes.
        limit: u64,
    },
    /// A member expands to more bytes than the archive states.
    #[error(
        "{name:?} in the archive expands to more than the {declared} bytes that the archive states: the \
         archive is damaged; copy it again"
    )]
    Understated {
        /// Name of the member.
        name: String,
        /// Size in bytes that the archive states for the member.
        declared: u64,
    },
    /// The disk of temporary files has too little space for a member.
    #[error("{name:?} in the archive {lack}")]
    NoSpace {
        /// Name of the member.
        name: String,
        /// Needed and free space.
        lack: NoSpace,
    },
    /// Two members of a zip archive have the same name, so that only the last one can be read.
    #[error(
        "the archive is ambiguous: two members are called {name:?}; unpack it with a program that gives them \
         different names, and give the .etl files"
    )]
    SameName {
        /// Name of the members.
        name: String,
    },
    /// The archive contains no trace.
    #[error("the archive contains no trace (.etl); {}", list(inside, *count))]
    NoTrace {
        /// Names of the first members, at most 20.
        inside: Vec<String>,
        /// Number of members in the archive.
        count: usize,
    },
}

fn list(inside: &[String], count: usize) -> String {
    if inside.is_empty() {
        return "it is empty".to_owned();
    }
    let names: Vec<String> = inside.iter().map(|name| format!("{name:?}")).collect();
    let more = match count.saturating_sub(inside.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("inside: {}{more}", names.join(", "))
}

/// Returns true if `first_bytes` are the start of an archive that [`extract`] can read. 4 bytes are enough.
pub(crate) fn is_archive(first_bytes: &[u8]) -> bool {
    first_bytes.starts_with(CABINET_SIGNATURE)
        || ZIP_SIGNATURES
            .iter()
            .any(|signature| first_bytes.starts_with(signature))
}

/// Extracts the traces of the archive `file`, in the archive's order. Returns at least one trace.
///
/// A member is a trace if its name ends in `.etl` or if it starts with the bytes of a trace, because members
/// of a `.diagsession` can lack this suffix.
///
/// # Errors
///
/// Returns an [`ArchiveError`] that names the failed member and the cause. If no member is a trace, the error
/// lists the members. All members together may expand to at most 1 GiB or 200 times the size of the archive,
/// whichever is larger. A member that needs a temporary file must leave 256 MiB of its disk free.
pub(crate) fn extract(mut file: File) -> Result<Vec<Member>, ArchiveError> {
    let mut first = Vec::with_capacity(4);
    let size = (|| {
        file.rewind()?;
        (&mut file).take(4).read_to_end(&mut first)?;
        file.rewind()?;
        Ok(file.metadata()?.len())
    })()
    .map_err(ArchiveError::Unreadable)?;

    let free_space = || files::free_space::of(&std::env::temp_dir());
    let mut traces = Traces::new(expansion_limit(size), &free_space);
    if first == CABINET_SIGNATURE {
        traces.read_cabinet(file)?;
    } else if is_archive(&first) {
        traces.read_zip(file)?;
    } else {
        return Err(ArchiveError::NotAnArchive);
    }

    let Traces {
        members,
        seen,
        count,
        ..
    } = traces;
    if members.is_empty() {
        return Err(ArchiveError::NoTrace {
            inside: seen,
            count,
        });
    }
    Ok(members)
}

/// Expands the first file of a cabinet. Symbol stores keep compressed files as cabinets with one file.
///
/// # Errors
/// Returns an error in these cases:
///
/// * The cabinet is damaged or empty.
/// * Writing the output fails.
/// * The file expands to more than 1 GiB and to more than 200 times the size of the cabinet.
pub fn expand_cabinet(
    mut cabinet: impl io::BufRead + Seek,
    out: &mut impl Write,
) -> io::Result<()> {
    let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    let limit = expansion_limit(cabinet.seek(io::SeekFrom::End(0))?);
    cabinet.rewind()?;
    let mut signature = [0; CABINET_SIGNATURE.len()];
    cabinet.read_exact(&mut signature)?;
    if signature != CABINET_SIGNATURE {
        return Err(invalid(
            "it is not a cabinet: it does not start with \"MSCF\"",
        ));
    }
    cabinet.rewind()?;
    let mut cabinet = Cabinet::open(cabinet)?;
    for folder in cabinet.take_folders() {
        let mut data = cabinet.expand(&folder);
        let Some(file) = folder.files.first() else {
            continue;
        };
        if file.start.saturating_add(file.size) > limit {
            return Err(invalid(
                "its file expands to more bytes than undamaged data does",
            ));
        }
        io::copy(&mut (&mut data).take(file.start), &mut io::sink())?;
        io::copy(&mut data.take(file.size), out)?;
        return Ok(());
    }
    Err(invalid("it is an empty cabinet"))
}

/// Calls `wanted` with the name of each file of a cabinet. Extracts the files for which `wanted` returns
/// true, in the cabinet's order. The names are labels, not paths.
///
/// # Errors
/// Returns an error if the cabinet is damaged, or if it expands to more than `limit` bytes.
pub fn cabinet_files(
    mut cabinet: impl io::BufRead + Seek,
    wanted: impl Fn(&str) -> bool,
    limit: u64,
) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut budget = limit;
    cabinet.rewind()?;
    let mut cabinet = Cabinet::open(cabinet)?;
    let mut files = Vec::new();
    for folder in cabinet.take_folders() {
        let mut data = cabinet.expand(&folder);
        let mut at = 0_u64;
        for cabinet::FileEntry { name, start, size } in folder.files {
            if !wanted(&name) {
                continue;
            }
            let gap = start.saturating_sub(at);
            let needed = gap.saturating_add(size);
            budget = budget.checked_sub(needed).ok_or_else(|| {
                let what = format!("it expands to more than {limit} bytes at the member {name:?}");
                io::Error::new(io::ErrorKind::InvalidData, what)
            })?;
            io::copy(&mut (&mut data).take(gap), &mut io::sink())?;
            let mut bytes = Vec::new();
            (&mut data).take(size).read_to_end(&mut bytes)?;
            if bytes.len() as u64 != size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            at = at.saturating_add(needed);
            files.push((name, bytes));
        }
    }
    Ok(files)
}

/// Returns the first name that occurs twice in the central directory of a zip archive. The directory starts at the offset
/// `directory`.
///
/// # Errors
/// Returns an error if the directory cannot be read, or no name occurs twice.
pub fn repeated_name(mut archive: impl Read + Seek, directory: u64) -> io::Result<String> {
    const HEADER_SIZE: usize = 46;
    archive.seek(io::SeekFrom::Start(directory))?;
    let mut names = HashSet::new();
    loop {
        let mut header = [0; HEADER_SIZE];
        archive.read_exact(&mut header)?;
        if !header.starts_with(b"PK\x01\x02") {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let [name_size, extra, comment] =
            [28, 30, 32].map(|at| usize::from(u16::from_le_bytes([header[at], header[at + 1]])));
        let mut name = vec![0; name_size];
        archive.read_exact(&mut name)?;
        archive.seek_relative((extra + comment) as i64)?;
        let text = String::from_utf8_lossy(&name).into_owned();
        if !names.insert(name) {
            return Ok(text);
        }
    }
}

/// Returns the number of bytes to which an archive of `size` bytes may expand.
fn expansion_limit(size: u64) -> u64 {
    size.saturating_mul(MAX_EXPANSION).max(MAY_EXPAND)
}

/// Traces found so far, and the remaining limits.
struct Traces<'s> {
    members: Vec<Member>,
    /// Names of the archive's first members. Members that are not traces are included.
    seen: Vec<String>,
    count: usize,
    /// Number of bytes to which all members together may expand.
    limit: u64,
    /// Number of bytes to which the remaining members may expand. It starts at `limit`.
    budget: u64,
    /// Number of bytes that remaining members may use in memory.
    memory: u64,
    /// Function that returns the free space for temporary files in bytes, or `None` if the free space is
    /// unknown.
    free_space: &'s dyn Fn() -> Option<u64>,
}

impl<'s> Traces<'s> {
    fn new(limit: u64, free_space: &'s dyn Fn() -> Option<u64>) -> Traces<'s> {
        Traces {
            members: Vec::new(),
            seen: Vec::new(),
            count: 0,
            limit,
            budget: limit,
            memory: MAX_IN_MEMORY,
            free_space,
        }
    }

    fn read_zip(&mut self, file: File) -> Result<(), ArchiveError> {
        let unreadable = |error: ZipError| ArchiveError::Unreadable(error.into());
        let mut archive = zip::ZipArchive::new(io::BufReader::new(file)).map_err(unreadable)?;
        // The library shows only the last of several members with the same name.
        if archive.has_duplicate_names() {
            let directory = archive.central_directory_start();
            let name = repeated_name(archive.into_inner(), directory);
            let name = name.map_err(ArchiveError::Unreadable)?;
            return Err(ArchiveError::SameName { name });
        }
        for index in 0..archive.len() {
            let entry = archive.by_index_data(index).map_err(unreadable)?;
            if entry.is_dir() {
                continue;
            }
            let name = match entry.name() {
                Ok(name) => name.into_owned(),
                Err(_) => String::from_utf8_lossy(entry.name_raw()).into_owned(),
            };
            match archive.by_index(index) {
                Ok(entry) => {
                    let declared = entry.size();
                    self.read_member(name, entry, declared)?;
                }
                // An unreadable member is an error only if its name ends in `.etl`. Other members are not needed.
                Err(error) if has_trace_name(&name) => {
                    return Err(ArchiveError::Member {
                        name,
                        source: error.into(),
                    });
                }
                Err(_) => self.note(&name),
            }
        }
        Ok(())
    }

    fn read_cabinet(&mut self, file: File) -> Result<(), ArchiveError> {
        let mut cabinet =
            Cabinet::open(io::BufReader::new(file)).map_err(ArchiveError::Unreadable)?;
        for folder in cabinet.take_folders() {
            // A member is a range of the folder's data. The data of a folder is expanded only once, for all
            // members of the folder.
            let mut data = cabinet.expand(&folder);
            let mut at = 0;
            for cabinet::FileEntry { name, start, size } in folder.files {
                let gap = start.saturating_sub(at);
                if gap > self.budget {
                    return Err(self.too_large(name));
                }
                if let Err(source) = io::copy(&mut (&mut data).take(gap), &mut io::sink()) {
                    return Err(ArchiveError::Member { name, source });
                }
                self.budget -= gap;
                at += gap;

                let mut member = (&mut data).take(size);
                self.read_member(name, &mut member, size)?;
                at += size - member.limit();
            }
        }
        Ok(())
    }

    /// Extracts the member if it is a trace. Otherwise reads only the member's first bytes. `declared` is the
    /// expanded size that the archive states for the member.
    fn read_member(
        &mut self,
        name: String,
        mut reader: impl Read,
        declared: u64,
    ) -> Result<(), ArchiveError> {
        self.note(&name);
        let mut head = Vec::with_capacity(HEAD_SIZE);
        let named = has_trace_name(&name);
        match (&mut reader).take(HEAD_SIZE as u64).read_to_end(&mut head) {
            Ok(_) => {}
            Err(source) if named => return Err(ArchiveError::Member { name, source }),
            Err(_) => return Ok(()),
        }
        if !named && !looks_like_trace(&head) {
            self.budget = self.budget.saturating_sub(head.len() as u64);
            return Ok(());
        }
        if declared > self.budget {
            return Err(self.too_large(name));
        }
        let whole = head.as_slice().chain(reader);
        let (data, size) = match self.expand(&name, whole, declared) {
            Ok(expanded) => expanded,
            Err(Stop::Archive(error)) => return Err(error),
            Err(Stop::Read(source)) => return Err(ArchiveError::Member { name, source }),
        };
        self.budget -= size;
        if let MemberData::Memory(bytes) = &data {
            self.memory -= bytes.len() as u64;
        }
        self.members.push(Member { name, data });
        Ok(())
    }

    /// Expands a member into memory. If too little of [`MAX_IN_MEMORY`] is left, expands the member into a
    /// temporary file. Also returns the expanded size in bytes, which is at most `declared`.
    fn expand(
        &self,
        name: &str,
        mut reader: impl Read,
        declared: u64,
    ) -> Result<(MemberData, u64), Stop> {
        let understated = || {
            Stop::Archive(ArchiveError::Understated {
                name: name.to_owned(),
                declared,
            })
        };
        if declared <= self.memory {
            let mut bytes = Vec::new();
            let size = (&mut reader).take(declared + 1).read_to_end(&mut bytes)? as u64;
            return if size > declared {
                Err(understated())
            } else {
                Ok((MemberData::Memory(bytes), size))
            };
        }
        let mut size = 0;
        self.check_space(name, declared)?;
        let mut file = tempfile::tempfile()?;
        loop {
            let written = io::copy(&mut (&mut reader).take(BETWEEN_CHECKS), &mut file)?;
            size += written;
            if size > declared {
                return Err(understated());
            }
            if written < BETWEEN_CHECKS {
                break;
            }
            // Other programs may have filled the disk.
            self.check_space(name, declared - size)?;
        }
        file.rewind()?;
        Ok((MemberData::File(file), size))
    }

    /// Returns an error if the disk has too little space to write `needed` bytes to a temporary file.
    fn check_space(&self, name: &str, needed: u64) -> Result<(), ArchiveError> {
        let checked = NoSpace::check_free(needed, (self.free_space)());
        checked.map_err(|lack| ArchiveError::NoSpace {
            name: name.to_owned(),
            lack,
        })
    }

    fn too_large(&self, name: String) -> ArchiveError {
        ArchiveError::TooLarge {
            name,
            limit: self.limit,
        }
    }

    fn note(&mut self, name: &str) {
        self.count += 1;
        if self.seen.len() < MAX_LISTED {
            self.seen.push(name.to_owned());
        }
    }
}

/// Reason why the expansion of a member stopped.
enum Stop {
    Archive(ArchiveError),
    Read(io::Error),
}

impl From<ArchiveError> for Stop {
    fn from(error: ArchiveError) -> Stop {
        Stop::Archive(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Read(error)
    }
}

fn has_trace_name(name: &str) -> bool {
    name.len() >= 4 && name.as_bytes()[name.len() - 4..].eq_ignore_ascii_case(b".etl")
}

/// Returns true if `head` is the start of a trace. A trace starts with a buffer header and a SYSTEM record.
/// The first field of the buffer header is the size of the buffer, including the header.
fn looks_like_trace(head: &[u8]) -> bool {
    crate::le::u32(head, 0).is_some_and(|size| size >= 0x48)
        && matches!(head.get(0x4A..0x4C), Some([1 | 2, 0xC0]))
}

#[cfg(test)]
mod tests;
