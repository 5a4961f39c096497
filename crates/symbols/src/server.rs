//! Client of symbol servers over HTTP.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use etl::le;
use files::free_space;
use tempfile::{NamedTempFile, TempPath};
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};

use crate::symbol_path::{Form, in_store};
use crate::symbolizer::Outcome;
use crate::{PdbId, pdb, stores};

/// Time limit for each step of a request: resolving the host name, connecting, the start of the response, and each
/// read of the response.
const PATIENCE: Duration = Duration::from_secs(20);

/// Maximum size of a download in bytes. A PDB with the usual page size has at most 4 GiB.
const MAX_DOWNLOAD: u64 = 4 << 30;

/// Maximum number of bytes behind the end of a file that its header states, for example of a signature.
const MAX_BEHIND: u64 = 1 << 20;

/// First letters of the names of temporary files in stores.
const TEMPORARY: &str = ".laglab-";

/// HTTP client with a cache of failed requests.
pub(crate) struct Servers {
    agent: ureq::Agent,
    /// URLs of files that are absent on their server.
    absent: HashSet<String>,
    /// Servers that could not be reached, with the cause. Further requests to these servers fail at once,
    /// without a time-out.
    unreachable: HashMap<String, String>,
    /// Stores without temporary files of killed programs.
    cleared: HashSet<PathBuf>,
}

/// A file to download.
pub(crate) struct Download<'a> {
    /// URL of the server's root.
    pub(crate) server: &'a str,
    /// URL of the file.
    pub(crate) url: &'a str,
    /// Identity of the PDB.
    pub(crate) id: &'a PdbId,
}

impl Servers {
    pub(crate) fn new() -> Servers {
        let agent = ureq::Agent::config_builder()
            .tls_config(tls())
            .timeout_resolve(Some(PATIENCE))
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_per_read(Some(PATIENCE))
            .user_agent(concat!("laglab/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Servers {
            agent,
            absent: HashSet::new(),
            unreachable: HashMap::new(),
            cleared: HashSet::new(),
        }
    }

    /// Downloads a PDB and reads it with `read`. Stores the file in the first writable folder of `keep_in`.
    pub(crate) fn fetch<T>(
        &mut self,
        wanted: &Download<'_>,
        form: Form,
        keep_in: &[PathBuf],
        read: &stores::Read<'_, T>,
    ) -> Result<T, Outcome> {
        if self.absent.contains(wanted.url) {
            return Err(Outcome::Absent);
        }
        if let Some(why) = self.unreachable.get(wanted.server) {
            return Err(Outcome::Failed(why.clone()));
        }
        let failed = |error: io::Error| Outcome::Failed(error.to_string());
        let path = in_store(wanted.id);
        for store in keep_in {
            if self.cleared.insert(store.clone()) {
                clear(store);
            }
        }
        let mut new = NewFile::create(keep_in, &path).map_err(failed)?;
        match form {
            Form::Compressed => {
                let mut cabinet = tempfile::tempfile().map_err(failed)?;
                let folder = std::env::temp_dir();
                self.download(wanted, form, &mut LimitedFile::new(&mut cabinet, &folder))?;
                cabinet.rewind().map_err(failed)?;
                let mut expanded = LimitedFile::new(&mut new.file, &new.folder);
                stores::expand(cabinet, &mut expanded).map_err(failed)?;
            }
            Form::Plain | Form::Pointer => {
                self.download(
                    wanted,
                    form,
                    &mut LimitedFile::new(&mut new.file, &new.folder),
                )?;
            }
        }
        let value = read(new.file.try_clone().map_err(failed)?)?;
        // If the file cannot be stored, it can still be used. So the error is ignored.
        let _ = new.keep();
        Ok(value)
    }

    /// Downloads the file of a request. The file has at most the size that its header states, so that an endless
    /// response ends.
    fn download(
        &mut self,
        wanted: &Download<'_>,
        form: Form,
        to: &mut LimitedFile<'_>,
    ) -> Result<(), Outcome> {
        use ureq::Error;
        let server = || wanted.server.to_owned();
        let mut response = match self.agent.get(wanted.url).call() {
            Ok(response) => response,
            Err(Error::StatusCode(404 | 410)) => {
                self.absent.insert(wanted.url.to_owned());
                return Err(Outcome::Absent);
            }
            Err(Error::StatusCode(status)) => {
                return Err(Outcome::Failed(format!("returned status {status}")));
            }
            Err(error) => {
                let why = match error {
                    Error::HostNotFound => "host not found, or this machine is offline".to_owned(),
                    Error::Timeout(_) => format!("did not answer in {} s", PATIENCE.as_secs()),
                    error => format!("request failed: {error}"),
                };
                self.unreachable.insert(server(), why.clone());
                return Err(Outcome::Failed(why));
            }
        };
        let failed = |error: io::Error| Outcome::Failed(format!("download failed: {error}"));
        let body = response.body_mut().with_config().limit(MAX_DOWNLOAD);
        let mut body = body.reader();
        let mut head = Vec::new();
        (&mut body)
            .take(pdb::HEAD)
            .read_to_end(&mut head)
            .map_err(failed)?;
        let stated = match form {
            Form::Compressed => cabinet_size(&head)?,
            Form::Plain | Form::Pointer => pdb::stated_size(&head)?,
        };
        let limit = stated.saturating_add(MAX_BEHIND);
        let whole = head.as_slice().chain(body);
        let copied = io::copy(&mut whole.take(limit.saturating_add(1)), to).map_err(failed)?;
        if copied > limit {
            Err(Outcome::Failed(format!(
                "download stopped: the server sent more than the {stated} bytes that the file's header states"
            )))
        } else {
            Ok(())
        }
    }
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Servers {{ unreachable: {:?} }}", self.unreachable)
    }
}

#[cfg(any(windows, target_os = "macos"))]
fn tls() -> TlsConfig {
    TlsConfig::builder()
        .provider(TlsProvider::NativeTls)
        .root_certs(RootCerts::PlatformVerifier)
        .build()
}

#[cfg(not(any(windows, target_os = "macos")))]
fn tls() -> TlsConfig {
    use std::sync::Arc;
    let system = rustls_native_certs::load_native_certs().certs;
    let roots: Vec<_> = system
        .iter()
        .map(|certificate| ureq::tls::Certificate::from_der(certificate).to_owned())
        .collect();
    TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::new_with_certs(&roots))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build()
}

/// Returns the size in bytes that a cabinet states in its header. `head` has the first bytes of the file.
fn cabinet_size(head: &[u8]) -> Result<u64, Outcome> {
    let size = le::u32(head, 8).filter(|_| head.starts_with(b"MSCF"));
    let not_a_cabinet = || Outcome::Failed("its compressed file is not a cabinet".to_owned());
    size.map(u64::from).ok_or_else(not_a_cabinet)
}

/// Deletes the temporary files in a store that programs left behind when they were killed. A running program holds a
/// lock on its file. Errors are ignored, because the files do no harm.
fn clear(store: &Path) {
    let entries = fs::read_dir(store).into_iter().flatten().flatten();
    for entry in entries {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file || !entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
            continue;
        }
        let path = entry.path();
        let is_left = File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
        if is_left {
            let _ = fs::remove_file(path);
        }
    }
}

/// A file that stops to grow before its disk is full.
struct LimitedFile<'f> {
    file: &'f mut File,
    /// Folder of the file.
    folder: &'f Path,
    /// Number of bytes that may be written before the next check of the free space.
    unchecked: u64,
    /// Free space of a folder's disk, if the system reports it.
    free: fn(&Path) -> Option<u64>,
}

impl<'f> LimitedFile<'f> {
    fn new(file: &'f mut File, folder: &'f Path) -> LimitedFile<'f> {
        LimitedFile {
            file,
            folder,
            unchecked: 0,
            free: free_space::available_bytes,
        }
    }
}

impl Write for LimitedFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        use free_space::{BETWEEN_CHECKS, RESERVE};
        if self.unchecked == 0 {
            let free = (self.free)(self.folder);
            if let Some(free) = free.filter(|free| *free < RESERVE + BETWEEN_CHECKS) {
                return Err(io::Error::new(
                    io::ErrorKind::StorageFull,
                    format!(
                        "{} MiB are free in {}, and {} MiB must stay free; free some space",
                        free >> 20,
                        self.folder.display(),
                        RESERVE >> 20
                    ),
                ));
            }
            self.unchecked = BETWEEN_CHECKS;
        }
        let most = usize::try_from(self.unchecked).unwrap_or(usize::MAX);
        let written = self.file.write(&bytes[..bytes.len().min(most)])?;
        self.unchecked = self.unchecked.saturating_sub(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A new file in a store. It gets its final name after it was verified. So no reader finds an incomplete
/// file. Its temporary name is in the store itself, where [`clear`] finds it. The file is locked until it has its final
/// name.
struct NewFile {
    file: File,
    /// Folder of the temporary file.
    folder: PathBuf,
    /// Temporary name and final name of the file. `None` if no store is writable.
    name: Option<(TempPath, PathBuf)>,
}

impl NewFile {
    fn create(stores: &[PathBuf], path: &Path) -> io::Result<NewFile> {
        for store in stores {
            let new = fs::create_dir_all(store)
                .and_then(|()| NamedTempFile::with_prefix_in(TEMPORARY, store));
            if let Ok(new) = new {
                let (file, temporary) = new.into_parts();
                // Some network drives have no locks.
                let _ = file.try_lock();
                return Ok(NewFile {
                    file,
                    folder: store.clone(),
                    name: Some((temporary, store.join(path))),
                });
            }
        }
        Ok(NewFile {
            file: tempfile::tempfile()?,
            folder: std::env::temp_dir(),
            name: None,
        })
    }

    fn keep(self) -> io::Result<()> {
        let Some((temporary, path)) = self.name else {
            return Ok(());
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        // Without a lock, this is an error.
        let _ = self.file.unlock();
        temporary.persist(path).map_err(|error| error.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_disk_stays_free() {
        let mut file = tempfile::tempfile().unwrap();
        let mut limited = LimitedFile::new(&mut file, Path::new("store"));
        limited.free = |folder| (folder == Path::new("store")).then_some(300 << 20);
        let error = limited.write_all(b"symbols").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(
            error.to_string(),
            "300 MiB are free in store, and 256 MiB must stay free; free some space"
        );
        // Up to 64 MiB are written before the next check, so that these must be free, too.
        limited.free = |_| Some((256 + 64) << 20);
        limited.write_all(b"symbols").unwrap();
        // Something else fills the disk while the first 64 MiB are written.
        limited.unchecked = 2;
        limited.free = |_| Some(0);
        let error = limited.write_all(b"more").unwrap_err();
        assert!(error.to_string().starts_with("0 MiB are free"), "{error}");
        assert_eq!(file.metadata().unwrap().len(), 7 + 2);
    }

    /// Some network drives do not report their free space.
    #[test]
    fn a_disk_of_unknown_size_counts_as_large_enough() {
        let mut file = tempfile::tempfile().unwrap();
        let mut limited = LimitedFile::new(&mut file, Path::new("store"));
        limited.free = |_| None;
        limited.write_all(b"symbols").unwrap();
        assert_eq!(file.metadata().unwrap().len(), 7);
    }
}
