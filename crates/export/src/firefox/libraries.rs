//! Modules of processes, and the addresses at which they are mapped at the time of a sample.

use fxprof_processed_profile::debugid::DebugId;
use fxprof_processed_profile::{LibraryHandle, LibraryInfo, Profile};
use tables::{ImagesView, Table, file_name};

use super::threads::Threads;
use crate::Error;
use crate::part::Part;
use crate::roster::Roster;

/// Changes of the mappings of libraries, sorted by time.
pub(super) struct Libraries {
    changes: Vec<Change>,
    next: usize,
}

struct Change {
    time_ns: i64,
    /// Row of the process in the table `processes`. `None` for the kernel.
    process: Option<usize>,
    base: u64,
    /// End address of the mapping, and the mapped library. `None` if the change is an unmapping.
    mapped: Option<(u64, LibraryHandle)>,
}

impl Libraries {
    /// Reads the images of a trace and adds them to the profile.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub(super) fn read(
        part: &Part<'_>,
        roster: &Roster,
        profile: &mut Profile,
    ) -> Result<Libraries, Error> {
        let columns = [
            "first_seen_ns",
            "load_ns",
            "unload_ns",
            "process_id",
            "base_address",
            "size_bytes",
            "path",
            "time_date_stamp",
            "pdb_guid",
            "pdb_age",
            "pdb_path",
        ];
        let mut changes = Vec::new();
        for batch in part.rows(Table::Images, &columns)? {
            let batch = batch?;
            let images = ImagesView::new(&batch)?;
            for row in 0..batch.num_rows() {
                let (base, size) = (images.base_address[row], images.size_bytes[row]);
                // Images with an impossible size are left out: portable executables have at most 4
                // GiB.
                let end = base.checked_add(size).filter(|_| size <= u32::MAX.into());
                let Some(end) = end.filter(|end| *end > base) else {
                    continue;
                };
                let process = match images.process_id.get(row) {
                    Some(0) => None,
                    Some(id) => match roster.process_row(id, images.first_seen_ns[row]) {
                        Some(process) => Some(process),
                        None => continue,
                    },
                    None => continue,
                };
                let library = profile.add_lib(library(&images, row));
                changes.push(Change {
                    time_ns: images.load_ns.get(row).unwrap_or(i64::MIN),
                    process,
                    base,
                    mapped: Some((end, library)),
                });
                changes.extend(images.unload_ns.get(row).map(|time_ns| Change {
                    time_ns,
                    process,
                    base,
                    mapped: None,
                }));
            }
        }
        // At equal times, unmapping comes first, because it makes room for new mappings.
        changes.sort_by_key(|change| (change.time_ns, change.mapped.is_some()));
        Ok(Libraries { changes, next: 0 })
    }

    /// Applies the changes up to a time to the profile's mappings.
    pub(super) fn advance(&mut self, time_ns: i64, threads: &Threads<'_>, profile: &mut Profile) {
        while let Some(change) = self.changes.get(self.next)
            && change.time_ns <= time_ns
        {
            self.next += 1;
            let base = change.base;
            let process = change.process.and_then(|row| threads.process(row));
            match (process, change.mapped) {
                (Some(process), Some((end, library))) => {
                    profile.add_lib_mapping(process, library, base, end, 0);
                }
                (Some(process), None) => profile.remove_lib_mapping(process, base),
                (None, Some((end, library))) => {
                    profile.add_kernel_lib_mapping(library, base, end, 0);
                }
                (None, None) => profile.remove_kernel_lib_mapping(base),
            }
        }
    }
}

/// Returns a library with the keys by which symbols are found: the identity of the PDB, and the link time and
/// size of the file.
fn library(images: &ImagesView<'_>, row: usize) -> LibraryInfo {
    let path = images.path.get(row).unwrap_or_default();
    let name = file_name(path).to_owned();
    let pdb_path = images.pdb_path.get(row).unwrap_or(&name).to_owned();
    let debug_id = images
        .pdb_guid
        .get(row)
        .zip(images.pdb_age.get(row))
        .and_then(|(guid, age)| debug_id(guid, age));
    let code_id = images
        .time_date_stamp
        .get(row)
        .map(|stamp| format!("{stamp:08X}{:x}", images.size_bytes[row]));
    LibraryInfo {
        debug_name: file_name(&pdb_path).to_owned(),
        debug_path: pdb_path,
        path: path.to_owned(),
        name,
        debug_id: debug_id.unwrap_or_default(),
        code_id,
        arch: None,
        symbol_table: None,
    }
}

/// Returns Breakpad's id for a PDB's GUID and age.
fn debug_id(guid: &str, age: u32) -> Option<DebugId> {
    let guid: String = guid.chars().filter(char::is_ascii_hexdigit).collect();
    DebugId::from_breakpad(&format!("{}{age:x}", guid.to_uppercase())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares an id with the name that Microsoft's symbol server uses for an `ntdll.pdb` of Windows 7.
    #[test]
    fn ids_are_those_of_symbol_servers() {
        let id = debug_id("{E9558E4D-2F2E-4DBB-A23E-B8CE0BBB5B22}", 2);
        let id = id.map(|id| id.breakpad().to_string());
        assert_eq!(id.as_deref(), Some("E9558E4D2F2E4DBBA23EB8CE0BBB5B222"));
        assert_eq!(debug_id("nonsense", 1), None);
    }
}
