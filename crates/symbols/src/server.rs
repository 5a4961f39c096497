//! Client of symbol servers over HTTP.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::{NamedTempFile, TempPath};
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};

use crate::symbol_path::{Form, in_store};
use crate::symbolizer::Outcome;
use crate::{PdbId, stores};

/// Time limit for each step of a request: resolving the host name, connecting, the start of the response, and each
/// read of the response.
const PATIENCE: Duration = Duration::from_secs(20);

/// Maximum size of a download in bytes. A PDB with the usual page size has at most 4 GiB.
const MAX_DOWNLOAD: u64 = 4 << 30;

/// HTTP client with a cache of failed requests.
pub(crate) struct Servers {
    agent: ureq::Agent,
    /// URLs of files that are absent on their server.
    absent: HashSet<String>,
    /// Servers that could not be reached, with the cause. Further requests to these servers fail at once,
    /// without a time-out.
    unreachable: HashMap<String, String>,
}

/// A file to download.
pub(crate) struct Wanted<'a> {
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
        }
    }

    /// Downloads a PDB and reads it with `read`. Stores the file in the first writable folder of `keep_in`.
    pub(crate) fn fetch<T>(
        &mut self,
        wanted: &Wanted<'_>,
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
        let mut new = NewFile::create(keep_in, &path).map_err(failed)?;
        match form {
            Form::Compressed => {
                let mut cabinet = tempfile::tempfile().map_err(failed)?;
                self.download(wanted, &mut cabinet)?;
                stores::expand(cabinet, &mut new.file).map_err(failed)?;
            }
            Form::Plain | Form::Pointer => self.download(wanted, &mut new.file)?,
        }
        let found = read(new.file.try_clone().map_err(failed)?)?;
        // If the file cannot be stored, it can still be used. So the error is ignored.
        let _ = new.keep();
        Ok(found)
    }

    /// Downloads the file of a request.
    fn download(&mut self, wanted: &Wanted<'_>, to: &mut File) -> Result<(), Outcome> {
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
        let body = response.body_mut().with_config().limit(MAX_DOWNLOAD);
        io::copy(&mut body.reader(), to)
            .and_then(|_| to.rewind())
            .map_err(|error| Outcome::Failed(format!("download failed: {error}")))
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

/// A new file in a store. It gets its final name after it was verified. So no reader finds an incomplete
/// file.
struct NewFile {
    file: File,
    /// Temporary name and final name of the file. `None` if no store is writable.
    name: Option<(TempPath, PathBuf)>,
}

impl NewFile {
    fn create(stores: &[PathBuf], path: &Path) -> io::Result<NewFile> {
        for store in stores {
            let path = store.join(path);
            let folder = path.parent().unwrap_or(store);
            let new = fs::create_dir_all(folder)
                .and_then(|()| NamedTempFile::with_prefix_in(".laglab-", folder));
            if let Ok(new) = new {
                let (file, temporary) = new.into_parts();
                let name = Some((temporary, path));
                return Ok(NewFile { file, name });
            }
        }
        let file = tempfile::tempfile()?;
        Ok(NewFile { file, name: None })
    }

    fn keep(self) -> io::Result<()> {
        match self.name {
            None => Ok(()),
            Some((temporary, path)) => temporary.persist(path).map_err(|error| error.error),
        }
    }
}
