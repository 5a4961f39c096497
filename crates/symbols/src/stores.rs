//! Finder of PDBs and of files of Linux. It searches the locations of a symbol path: folders and, if allowed, servers.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};

use crate::PdbId;
use crate::elf::{BuildId, Elf, ElfError, ElfId};
use crate::pdb::{Pdb, PdbError};
#[cfg(feature = "network")]
use crate::server::Servers;
use crate::symbol_path::{Candidate, Form, Place, SymbolPath};
use crate::symbolizer::{Attempt, NotFound, Outcome, PdbSource};

/// Maximum size of a `file.ptr` in bytes. No path is longer.
const MAX_POINTER: u64 = 64 << 10;

/// Function that reads a found PDB.
pub(crate) type Read<'a, T> = dyn Fn(File) -> Result<T, PdbError> + 'a;

/// Finder of PDBs in the locations of a symbol path.
#[derive(Debug)]
pub struct Stores {
    path: SymbolPath,
    folders: Folders,
    #[cfg(feature = "network")]
    servers: Option<Servers>,
}

impl Stores {
    /// Creates a finder that uses the folders of the path, but not its servers.
    pub fn offline(path: SymbolPath) -> Stores {
        Stores {
            path,
            folders: Folders::default(),
            #[cfg(feature = "network")]
            servers: None,
        }
    }

    /// Creates a finder that uses the folders and the servers of the path. If the path has stores before a
    /// server, a downloaded file is stored in the first writable store. The finder also remembers which files
    /// the servers do not have.
    #[cfg(feature = "network")]
    pub fn online(path: SymbolPath) -> Stores {
        Stores {
            servers: Some(Servers::new()),
            ..Stores::offline(path)
        }
    }

    /// Finds a PDB and reads it with `read`.
    ///
    /// # Errors
    /// Returns an error if no location has a PDB that `read` accepts. The error lists the locations that were
    /// searched.
    pub fn read<T>(
        &mut self,
        id: &PdbId,
        read: &dyn Fn(File) -> Result<T, PdbError>,
    ) -> Result<T, NotFound> {
        let mut attempts: Vec<Attempt> = Vec::new();
        for candidate in self.path.candidates(id) {
            let outcome = match self.look(&candidate, id, read) {
                Ok(read) => return Ok(read),
                Err(outcome) => outcome,
            };
            let place = match (&candidate.place, &outcome) {
                (Place::File { root, names }, Outcome::Refused(_) | Outcome::Failed(_)) => {
                    let file: PathBuf = names.iter().collect();
                    root.join(file).display().to_string()
                }
                (Place::File { root, .. }, _) => root.display().to_string(),
                (Place::Url { server, .. }, _) => server.clone(),
            };
            // Each location is searched for several forms of the file, but the error lists the location only
            // once.
            if attempts.last().is_none_or(|last| last.place != place) {
                attempts.push(Attempt { place, outcome });
            }
        }
        Err(NotFound { attempts })
    }

    #[cfg_attr(
        not(feature = "network"),
        expect(unused_variables, reason = "only requests to servers need the id")
    )]
    fn look<T>(
        &mut self,
        candidate: &Candidate,
        id: &PdbId,
        read: &Read<'_, T>,
    ) -> Result<T, Outcome> {
        match &candidate.place {
            Place::File { root, names } => {
                let path = self.folders.find(root, names).ok_or(Outcome::Absent)?;
                read_file(&path, root, candidate.form, read)
            }
            #[cfg(not(feature = "network"))]
            Place::Url { .. } => Err(Outcome::NetworkNotAllowed),
            #[cfg(feature = "network")]
            Place::Url {
                server,
                url,
                keep_in,
            } => {
                let servers = self.servers.as_mut().ok_or(Outcome::NetworkNotAllowed)?;
                let wanted = crate::server::Download { server, url, id };
                let value = servers.fetch(&wanted, candidate.form, keep_in, read)?;
                self.folders = Folders::default();
                Ok(value)
            }
        }
    }
}

impl PdbSource for Stores {
    fn find(&mut self, id: &PdbId) -> Result<Pdb, NotFound> {
        self.read(id, &|file| Pdb::open(file, id))
    }

    fn find_elf(&mut self, id: &ElfId, build_id: &BuildId) -> Result<Elf, NotFound> {
        let mut attempts: Vec<Attempt> = Vec::new();
        let (mut program, mut debug) = (None, None);
        let (programs, debugs) = build_id.names();
        let below = id.name_below();
        let programs = below.iter().copied().chain(programs.iter().map(|it| &**it));
        let programs: Vec<&str> = programs.chain(below.map(file_name)).collect();
        for root in self.path.all_folders() {
            let before = attempts.len();
            let mut is_found = false;
            for (names, found) in [
                (&programs[..], &mut program),
                (&debugs.each_ref().map(|it| &**it)[..], &mut debug),
            ] {
                for name in names {
                    let path = root.join(name);
                    if found.is_some() || !path.is_file() {
                        continue;
                    }
                    let file = File::open(&path).map_err(ElfError::from);
                    match file.and_then(|file| Elf::open(file, build_id)) {
                        Ok(elf) => {
                            is_found = true;
                            *found = Some(elf);
                        }
                        Err(error) => attempts.push(Attempt {
                            place: path.display().to_string(),
                            outcome: Outcome::RefusedElf(error),
                        }),
                    }
                }
            }
            if attempts.len() == before && !is_found {
                attempts.push(Attempt {
                    place: root.display().to_string(),
                    outcome: Outcome::Absent,
                });
            }
        }
        let Some(mut program) = program else {
            return Err(NotFound { attempts });
        };
        if let Some(debug) = debug {
            program.take_functions(debug);
        }
        program.check().map_err(|error| NotFound {
            attempts: vec![Attempt {
                place: id.path.clone(),
                outcome: Outcome::RefusedElf(error),
            }],
        })
    }
}

/// Returns the last component of a path of Linux.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Reads the PDB file at `path`. The file is in the store `root` and has the form `form`.
fn read_file<T>(path: &Path, root: &Path, form: Form, read: &Read<'_, T>) -> Result<T, Outcome> {
    let failed = |error: io::Error| Outcome::Failed(error.to_string());
    let file = File::open(path).map_err(failed)?;
    match form {
        Form::Plain => Ok(read(file)?),
        Form::Compressed => {
            let mut expanded = tempfile::tempfile().map_err(failed)?;
            expand(file, &mut expanded).map_err(failed)?;
            Ok(read(expanded)?)
        }
        Form::Pointer => {
            let mut text = String::new();
            let length = file.take(MAX_POINTER).read_to_string(&mut text);
            length.map_err(failed)?;
            let text = text.trim().trim_start_matches('\u{feff}');
            match text.strip_prefix("MSG:") {
                Some(message) => Err(Outcome::Failed(message.trim().to_owned())),
                None => {
                    let target = root.join(text.strip_prefix("PATH:").unwrap_or(text));
                    let named =
                        |error| Outcome::Failed(format!("points to {}: {error}", target.display()));
                    Ok(read(File::open(&target).map_err(named)?)?)
                }
            }
        }
    }
}

/// Extracts the file from a cabinet of a store.
pub(crate) fn expand(cabinet: File, expanded: &mut impl Write) -> io::Result<()> {
    etl::expand_cabinet(BufReader::new(cabinet), expanded)
}

/// Names of files in folders. The comparison of names ignores case, because stores come from systems that
/// ignore case.
#[derive(Debug, Default)]
struct Folders {
    /// Names in each folder, by their lower-case form.
    listed: HashMap<PathBuf, HashMap<String, OsString>>,
}

impl Folders {
    /// Returns the path of a file below `root`. `names` are the components of the path. Upper and lower case do not
    /// matter.
    fn find(&mut self, root: &Path, names: &[String]) -> Option<PathBuf> {
        let mut path = root.to_owned();
        for name in names {
            let exact = path.join(name);
            path = if exact.exists() {
                exact
            } else {
                let other = self.list(&path).get(&name.to_lowercase())?.clone();
                path.join(other)
            };
        }
        path.is_file().then_some(path)
    }

    fn list(&mut self, folder: &Path) -> &HashMap<String, OsString> {
        self.listed.entry(folder.to_owned()).or_insert_with(|| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name());
            names
                .map(|name| (name.to_string_lossy().to_lowercase(), name))
                .collect()
        })
    }
}
