//! Symbol servers, by HTTP.

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

/// How long a server may take to be reached, and then to send anything more.
const PATIENCE: Duration = Duration::from_secs(20);

/// Most that is downloaded of one file, in bytes: PDBs cannot be larger than 4 GiB with the pages
/// that most have.
const MAX_DOWNLOAD: u64 = 4 << 30;

/// Servers, and what they did not have.
pub(crate) struct Servers {
    agent: ureq::Agent,
    /// Addresses of files that are not there.
    absent: HashSet<String>,
    /// Servers that cannot be reached, and why: asking each time would wait each time.
    unreachable: HashMap<String, String>,
}

/// A file to ask a server for.
pub(crate) struct Wanted<'a> {
    /// The server.
    pub(crate) server: &'a str,
    /// Address of the file.
    pub(crate) url: &'a str,
    /// The PDB that it must be.
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

    /// Downloads a PDB and keeps it in the first of the stores that can be written, or nowhere.
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
        // Not being able to keep it is no reason not to use it.
        let _ = new.keep();
        Ok(found)
    }

    /// Gets the file at an address.
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
                return Err(Outcome::Failed(format!("answers with status {status}")));
            }
            Err(error) => {
                let why = match error {
                    Error::HostNotFound => "no such host, or this machine is offline".to_owned(),
                    Error::Timeout(_) => format!("did not answer in {} s", PATIENCE.as_secs()),
                    error => format!("cannot be asked: {error}"),
                };
                self.unreachable.insert(server(), why.clone());
                return Err(Outcome::Failed(why));
            }
        };
        let body = response.body_mut().with_config().limit(MAX_DOWNLOAD);
        io::copy(&mut body.reader(), to)
            .and_then(|_| to.rewind())
            .map_err(|error| Outcome::Failed(format!("stopped while sending: {error}")))
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

/// A file that gets its name in a store once it is known to be right. Until then nobody who looks
/// in the store sees it.
struct NewFile {
    file: File,
    /// Its present name and the one it gets, if there is a store for it.
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
