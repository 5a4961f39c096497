//! Traces inside archives: zip (`.etl.zip`, and `.diagsession`, which is an OPC package and so a
//! zip) and cabinets (what `netsh trace` leaves beside its `.etl`).
//!
//! An archive is as hostile as a trace. Names in it are labels, never paths; what a member expands
//! to is measured as it is read, not believed from its header; and archives inside are not opened.

mod cabinet;

use std::fs::File;
use std::io::{self, Read, Seek, Write};

use cabinet::Cabinet;
use zip::result::ZipError;

/// How many times its compressed size a member may expand to: somewhat above what deflate can
/// reach (1032 times), so only a member that lies about itself gets there.
const MAX_EXPANSION: u64 = 1100;

/// Members stay in memory up to this size of all of them; the others go to temporary files. In
/// bytes.
const MAX_IN_MEMORY: u64 = 64 << 20;

/// How many bytes of a member tell whether it [looks like a trace](looks_like_trace).
const HEAD_SIZE: usize = 0x4C;

/// How many names [`ArchiveError::NoTrace`] lists.
const MAX_LISTED: usize = 20;

/// The first bytes of a cabinet.
const CABINET_SIGNATURE: &[u8] = b"MSCF";

/// The first bytes of a zip archive: of its first member, or of the end record if it has none.
const ZIP_SIGNATURES: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// One trace taken out of an archive.
#[derive(Debug)]
pub(crate) struct Member {
    /// The member's name as the archive has it. A label for messages: it may hold anything, and
    /// must not be used as a path.
    pub(crate) name: String,
    /// The trace.
    pub(crate) data: MemberData,
}

/// Where the bytes of a [`Member`] are.
#[derive(Debug)]
pub(crate) enum MemberData {
    /// In memory: at most 64 MiB, of all members together.
    Memory(Vec<u8>),
    /// In a temporary file, at its start. The file has no name and goes when it is closed.
    File(File),
}

/// An archive that could not be read, or holds no trace.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file is neither a zip archive nor a cabinet.
    #[error("not an archive: expected it to start with \"PK\" (zip) or \"MSCF\" (cabinet)")]
    NotAnArchive,
    /// The archive's own structure is damaged or cannot be read.
    #[error(
        "the archive cannot be read ({0}): it is damaged, or was not copied to its end; copy it again, \
         and compare the sizes"
    )]
    Unreadable(#[source] io::Error),
    /// A member is damaged, is stored in a way that cannot be read, or its temporary file could
    /// not be written.
    #[error("{name:?} in the archive cannot be read: {source}")]
    Member {
        /// The member's name.
        name: String,
        /// What went wrong.
        source: io::Error,
    },
    /// A member expands to more than honest data can.
    #[error(
        "{name:?} in the archive expands past {limit} bytes: more than {MAX_EXPANSION} times its \
         compressed data, which no trace does"
    )]
    TooLarge {
        /// The member's name.
        name: String,
        /// How far it was read, in bytes.
        limit: u64,
    },
    /// No member is a trace.
    #[error("the archive holds no trace (.etl); {}", list(inside, *count))]
    NoTrace {
        /// Names of the first members.
        inside: Vec<String>,
        /// How many members there are.
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

/// Whether a file that starts with `first_bytes` (4 are enough) is an archive that [`extract`]
/// reads.
pub(crate) fn is_archive(first_bytes: &[u8]) -> bool {
    first_bytes.starts_with(CABINET_SIGNATURE)
        || ZIP_SIGNATURES
            .iter()
            .any(|signature| first_bytes.starts_with(signature))
}

/// Takes the traces out of the archive `file`: at least one, in the order of the archive.
///
/// A member is a trace when its name ends in `.etl` or its first bytes are those of one: members
/// of a `.diagsession` need not have the suffix.
///
/// # Errors
///
/// [`ArchiveError`] says which member failed and why, or what was inside when none is a trace. A
/// member may expand to at most 1100 times its compressed size, and all members together to at
/// most 1100 times the archive's. In a cabinet, where several members are compressed together,
/// only the second limit applies.
pub(crate) fn extract(mut file: File) -> Result<Vec<Member>, ArchiveError> {
    let mut first = Vec::with_capacity(4);
    let size = (|| {
        file.rewind()?;
        (&mut file).take(4).read_to_end(&mut first)?;
        file.rewind()?;
        Ok(file.metadata()?.len())
    })()
    .map_err(ArchiveError::Unreadable)?;

    let mut traces = Traces {
        members: Vec::new(),
        seen: Vec::new(),
        count: 0,
        budget: size.saturating_mul(MAX_EXPANSION),
        memory: MAX_IN_MEMORY,
    };
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

/// Expands the first file of a cabinet, such as symbol stores keep compressed files in.
///
/// # Errors
/// If the cabinet is damaged or empty, its file expands to more than 1100 times the cabinet's size,
/// or the output fails.
pub fn expand_cabinet(
    mut cabinet: impl io::BufRead + Seek,
    out: &mut impl Write,
) -> io::Result<()> {
    let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    let limit = cabinet
        .seek(io::SeekFrom::End(0))?
        .saturating_mul(MAX_EXPANSION);
    cabinet.rewind()?;
    let mut signature = [0; CABINET_SIGNATURE.len()];
    cabinet.read_exact(&mut signature)?;
    if signature != CABINET_SIGNATURE {
        return Err(invalid("it is no cabinet: it does not start with \"MSCF\""));
    }
    cabinet.rewind()?;
    let mut cabinet = Cabinet::open(cabinet)?;
    for folder in cabinet.take_folders() {
        let mut data = cabinet.expand(&folder);
        let Some(file) = folder.files.first() else {
            continue;
        };
        if file.start.saturating_add(file.size) > limit {
            return Err(invalid("its file expands to more than honest data can"));
        }
        io::copy(&mut (&mut data).take(file.start), &mut io::sink())?;
        io::copy(&mut data.take(file.size), out)?;
        return Ok(());
    }
    Err(invalid("it is an empty cabinet"))
}

/// Takes the files with wanted names out of a cabinet, in its order. Their names are labels, no paths.
///
/// # Errors
/// If the cabinet is damaged, or more than `limit` bytes or 1100 times its size had to be expanded.
pub fn cabinet_files(
    mut cabinet: impl io::BufRead + Seek,
    wanted: impl Fn(&str) -> bool,
    limit: u64,
) -> io::Result<Vec<(String, Vec<u8>)>> {
    let size = cabinet.seek(io::SeekFrom::End(0))?;
    let mut budget = size.saturating_mul(MAX_EXPANSION).min(limit);
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
                let what = format!("{name:?} expands to more than honest data can");
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

/// The traces found so far, and what may still be expanded.
struct Traces {
    members: Vec<Member>,
    /// Names of the first members of any kind.
    seen: Vec<String>,
    count: usize,
    /// How many bytes all further members may expand to.
    budget: u64,
    /// How many of these bytes may stay in memory.
    memory: u64,
}

impl Traces {
    fn read_zip(&mut self, file: File) -> Result<(), ArchiveError> {
        let unreadable = |error: ZipError| ArchiveError::Unreadable(error.into());
        let mut archive = zip::ZipArchive::new(io::BufReader::new(file)).map_err(unreadable)?;
        for index in 0..archive.len() {
            let entry = archive.by_index_data(index).map_err(unreadable)?;
            if entry.is_dir() {
                continue;
            }
            let name = match entry.name() {
                Ok(name) => name.into_owned(),
                Err(_) => String::from_utf8_lossy(entry.name_raw()).into_owned(),
            };
            let limit = entry.compressed_size().saturating_mul(MAX_EXPANSION);
            match archive.by_index(index) {
                Ok(entry) => self.read_member(name, entry, limit)?,
                // Only a member known to be a trace is missed when it cannot be opened.
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
            // Members follow one another in the folder's data, which is expanded once.
            let mut data = cabinet.expand(&folder);
            let mut at = 0;
            for cabinet::FileEntry { name, start, size } in folder.files {
                let gap = start.saturating_sub(at);
                if gap > self.budget {
                    return Err(ArchiveError::TooLarge {
                        name,
                        limit: self.budget,
                    });
                }
                if let Err(source) = io::copy(&mut (&mut data).take(gap), &mut io::sink()) {
                    return Err(ArchiveError::Member { name, source });
                }
                self.budget -= gap;
                at += gap;

                let mut member = (&mut data).take(size);
                self.read_member(name, &mut member, u64::MAX)?;
                at += size - member.limit();
            }
        }
        Ok(())
    }

    /// Keeps the member if it is a trace; reads no more than its head if not.
    fn read_member(
        &mut self,
        name: String,
        mut reader: impl Read,
        limit: u64,
    ) -> Result<(), ArchiveError> {
        self.note(&name);
        let limit = limit.min(self.budget);
        let mut head = Vec::with_capacity(HEAD_SIZE);
        let named = has_trace_name(&name);
        match (&mut reader).take(HEAD_SIZE as u64).read_to_end(&mut head) {
            Ok(_) => self.budget = self.budget.saturating_sub(head.len() as u64),
            Err(source) if named => return Err(ArchiveError::Member { name, source }),
            Err(_) => return Ok(()),
        }
        if !named && !looks_like_trace(&head) {
            return Ok(());
        }
        let whole = head.as_slice().chain(reader).take(limit.saturating_add(1));
        match expand(whole, self.memory) {
            Ok((_, size)) if size > limit => Err(ArchiveError::TooLarge { name, limit }),
            Ok((data, size)) => {
                self.budget = self.budget.saturating_sub(size);
                if let MemberData::Memory(bytes) = &data {
                    self.memory = self.memory.saturating_sub(bytes.len() as u64);
                }
                self.members.push(Member { name, data });
                Ok(())
            }
            Err(source) => Err(ArchiveError::Member { name, source }),
        }
    }

    fn note(&mut self, name: &str) {
        self.count += 1;
        if self.seen.len() < MAX_LISTED {
            self.seen.push(name.to_owned());
        }
    }
}

/// Reads all of `reader`, to memory or, when it has more than `memory` bytes, to a temporary file.
/// Also gives the size.
fn expand(mut reader: impl Read, memory: u64) -> io::Result<(MemberData, u64)> {
    let mut bytes = Vec::new();
    (&mut reader)
        .take(memory.saturating_add(1))
        .read_to_end(&mut bytes)?;
    let size = bytes.len() as u64;
    if size <= memory {
        return Ok((MemberData::Memory(bytes), size));
    }
    let mut file = tempfile::tempfile()?;
    file.write_all(&bytes)?;
    drop(bytes);
    let size = size + io::copy(&mut reader, &mut file)?;
    file.rewind()?;
    Ok((MemberData::File(file), size))
}

fn has_trace_name(name: &str) -> bool {
    name.len() >= 4 && name.as_bytes()[name.len() - 4..].eq_ignore_ascii_case(b".etl")
}

/// Whether `head` is the start of a trace: a buffer header (its first field is the buffer's size,
/// header included) and the system event that comes first in the first buffer.
fn looks_like_trace(head: &[u8]) -> bool {
    crate::le::u32(head, 0).is_some_and(|size| size >= 0x48)
        && matches!(head.get(0x4A..0x4C), Some([1 | 2, 0xC0]))
}

#[cfg(test)]
mod tests;
