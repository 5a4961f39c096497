//! Build ids of mapped files. Readers use a build id to find the file with the names of the functions.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use object::{Object, ReadCache};

use crate::records;

/// Kind of the record that describes a mapped file (`PERF_RECORD_MMAP2`). `PATH` is the offset of the file's path in
/// the record, in bytes.
const MAPPED_FILE: u32 = 10;
const PATH: usize = 72;

/// Path of a file and its build id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BuildId {
    pub(crate) path: Vec<u8>,
    pub(crate) id: Vec<u8>,
}

/// Returns the build ids of the files that the records name as mapped files. Files that no longer exist and files
/// without a build id are left out.
pub(crate) fn find<'r>(parts: impl Iterator<Item = &'r [u8]>) -> Vec<BuildId> {
    let mut paths = BTreeSet::new();
    for part in parts {
        records::each(part, |kind, record| {
            let path = record.get(PATH..).filter(|_| kind == MAPPED_FILE);
            let path = path.and_then(|path| path.split(|byte| *byte == 0).next());
            paths.extend(path.filter(|path| path.starts_with(b"/")));
        });
    }
    let build_ids = paths.into_iter().map(|path| BuildId {
        path: path.to_owned(),
        id: read(Path::new(OsStr::from_bytes(path))).unwrap_or_default(),
    });
    build_ids
        .filter(|build_id| !build_id.id.is_empty())
        .collect()
}

/// Reads the build id of an ELF file. Returns `None` if the file has no build id.
fn read(path: &Path) -> Option<Vec<u8>> {
    // If the file were a pipe, opening it would wait for a writer.
    if !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let file = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&file).ok()?;
    file.build_id().ok().flatten().map(<[u8]>::to_vec)
}
