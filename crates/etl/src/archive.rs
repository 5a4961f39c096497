//! Extraction of traces from archives: zip files (`.etl.zip`, and `.diagsession`, which is an OPC
//! package and thus a zip file) and cabinets (which `netsh trace` writes next to its `.etl`).
//!
//! An archive is untrusted input. The names in it are only labels, never paths. The code measures
//! the size of an expanded member and does not trust the size in the archive's header. It does not
//! open archives inside archives.

mod cabinet;

use std::fs::File;
use std::io::{self, Read, Seek, Write};

use cabinet::Cabinet;
use zip::result::ZipError;

/// Maximum ratio of a member's expanded to its compressed size. It is slightly above the maximum of
/// deflate (1032), so only a malicious member exceeds it.
const MAX_EXPANSION: u64 = 1100;

/// Maximum total size in bytes of the members that are kept in memory. Further members go to
/// temporary files.
const MAX_IN_MEMORY: u64 = 64 << 20;

/// Number of bytes that [`looks_like_trace`] needs.
const HEAD_SIZE: usize = 0x4C;

/// Maximum number of names in [`ArchiveError::NoTrace`].
const MAX_LISTED: usize = 20;

/// First bytes of a cabinet.
const CABINET_SIGNATURE: &[u8] = b"MSCF";

/// First bytes of a zip archive. The second value is the start of the end record, which comes first
/// in an empty archive.
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
    /// Content in an unnamed temporary file, whose position is at the start. The system deletes the
    /// file when it is closed.
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
    /// A member expands to more bytes than a real trace can have.
    #[error(
        "{name:?} in the archive expands to more than {limit} bytes, {MAX_EXPANSION} times its \
         compressed size, which no trace does"
    )]
    TooLarge {
        /// Name of the member.
        name: String,
        /// Limit in bytes.
        limit: u64,
    },
    /// The archive contains no trace.
    #[error("the archive contains no trace (.etl); {}", list(inside, *count))]
    NoTrace {
        /// Names of the first members.
        inside: Vec<String>,
        /// Number of members.
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

/// Returns true if `first_bytes` (4 are enough) begin an archive that [`extract`] can read.
pub(crate) fn is_archive(first_bytes: &[u8]) -> bool {
    first_bytes.starts_with(CABINET_SIGNATURE)
        || ZIP_SIGNATURES
            .iter()
            .any(|signature| first_bytes.starts_with(signature))
}

/// Extracts the traces of the archive `file`, in the archive's order. Returns at least one.
///
/// A member is a trace if its name ends in `.etl` or if it starts with the bytes of a trace,
/// because members of a `.diagsession` need not have the suffix.
///
/// # Errors
///
/// Returns an [`ArchiveError`] that names the failed member and the cause, or that lists the
/// contents if no member is a trace. A member may expand to at most 1100 times its compressed size,
/// and all members together to at most 1100 times the archive's size. In a cabinet, members are
/// compressed together, so only the second limit applies.
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

/// Expands the first file of a cabinet. Symbol stores keep compressed files as cabinets with one
/// file.
///
/// # Errors
/// Returns an error if the cabinet is damaged or empty, if its file expands to more than 1100 times
/// the cabinet's size, or if the output fails.
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

/// Extracts the files of a cabinet for whose names `wanted` returns true, in the cabinet's order.
/// The names are labels, not paths.
///
/// # Errors
/// Returns an error if the cabinet is damaged, or if it expands to more than `limit` bytes or 1100
/// times its size.
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

/// Traces found so far, and the remaining limits.
struct Traces {
    members: Vec<Member>,
    /// Names of the archive's first members, traces or not.
    seen: Vec<String>,
    count: usize,
    /// Number of bytes to which all remaining members together may expand.
    budget: u64,
    /// Number of bytes that remaining members may use in memory.
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
                // If a member cannot be opened, this is an error only if the member is a trace.
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
            // A member is a range of the folder's data. The data is expanded only once.
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

    /// Extracts the member if it is a trace. Otherwise reads only its first bytes.
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

/// Reads all data of `reader` into memory, or into a temporary file if there are more than `memory`
/// bytes. Also returns the size in bytes.
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

/// Returns true if `head` is the start of a trace: a buffer header, whose first field is the
/// buffer's size with its header, and then the SYSTEM record that begins every trace.
fn looks_like_trace(head: &[u8]) -> bool {
    crate::le::u32(head, 0).is_some_and(|size| size >= 0x48)
        && matches!(head.get(0x4A..0x4C), Some([1 | 2, 0xC0]))
}

#[cfg(test)]
mod tests;
