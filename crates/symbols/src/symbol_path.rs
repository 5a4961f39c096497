//! Parser of symbol paths in the syntax of `_NT_SYMBOL_PATH`. It also lists the locations where a PDB can be.
//!
//! This module does no I/O. A [`SymbolPath`] lists [`Candidate`]s, and a finder such as [`Stores`](crate::Stores)
//! reads them.
//!
//! The syntax is described in [Microsoft's symbol path][1] and [symbol stores][2].
//!
//! [1]: https://learn.microsoft.com/windows-hardware/drivers/debugger/symbol-path
//! [2]: https://learn.microsoft.com/windows-hardware/drivers/debugger/advanced-symsrv-use

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::PdbId;

/// Locations that are searched for symbols. They are searched in the order of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolPath {
    elements: Vec<Element>,
}

/// One element of a symbol path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Element {
    /// A folder with PDBs, or a symbol store.
    Folder(PathBuf),
    /// Element `cache*folder`. It is a symbol store. Files that later elements download are also stored in this store.
    Cache(PathBuf),
    /// Element `srv*store*store*…`. Files that come from a store are also stored in all stores before it.
    Chain(Vec<Store>),
}

/// A symbol store.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Store {
    Folder(PathBuf),
    /// URL of the server's root, without a trailing slash.
    Server(String),
}

/// A location where a PDB can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Folder or server, with the path or URL of the file.
    pub place: Place,
    /// Form of the file in this location.
    pub form: Form,
}

/// Location of a [`Candidate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file in a folder.
    File {
        /// Folder in the symbol path.
        root: PathBuf,
        /// Components of the file's path below `root`. The case of the components is ignored, because stores
        /// come from systems that ignore case.
        names: Vec<String>,
    },
    /// A file on a symbol server.
    Url {
        /// URL of the server's root in the symbol path.
        server: String,
        /// URL of the file.
        url: String,
        /// Stores for the downloaded file. The file is stored in the first writable store.
        keep_in: Vec<PathBuf>,
    },
}

/// Form in which a store contains a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The unmodified file.
    Plain,
    /// A cabinet that contains the file. The cabinet has the file's name, but the last letter of the name is
    /// `_`.
    Compressed,
    /// A text file `file.ptr` that contains `PATH:` and the path of the file.
    Pointer,
}

/// Reason why a symbol path is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SymbolPathError {
    /// A `srv*` element contains no store.
    #[error(
        "`{0}` in the symbol path has no store: expected `srv*FOLDER` or `srv*CACHE*https://SERVER`"
    )]
    NoStore(String),
    /// A store follows a server. Downloads from the server could not be stored in this store.
    #[error(
        "`{0}` in the symbol path has a store after a server: a server must be the last element"
    )]
    ServerNotLast(String),
    /// The word before `*` is unknown.
    #[error(
        "`{0}` in the symbol path is unknown: expected `FOLDER`, `srv*…`, `symsrv*DLL*…` or `cache*FOLDER`"
    )]
    Unknown(String),
}

impl FromStr for SymbolPath {
    type Err = SymbolPathError;

    /// Parses elements separated by `;`. An empty store, as in `srv**https://…`, and `cache*` alone mean the
    /// default store of the debugger. They are ignored, because no debugger is used.
    fn from_str(text: &str) -> Result<SymbolPath, SymbolPathError> {
        let mut elements = Vec::new();
        for element in text.split(';').map(str::trim).filter(|e| !e.is_empty()) {
            let mut parts = element.split('*').map(str::trim);
            let first = parts.next().unwrap_or_default();
            if !element.contains('*') {
                elements.push(match store(first) {
                    Store::Folder(folder) => Element::Folder(folder),
                    server => Element::Chain(vec![server]),
                });
                continue;
            }
            match first.to_ascii_lowercase().as_str() {
                "cache" => {
                    let folders = parts.filter(|part| !part.is_empty()).map(PathBuf::from);
                    elements.extend(folders.map(Element::Cache));
                    continue;
                }
                "srv" => {}
                // This skips the name of the DLL that implements the server protocol.
                "symsrv" => drop(parts.next()),
                _ => return Err(SymbolPathError::Unknown(element.to_owned())),
            }
            let stores: Vec<Store> = parts.filter(|part| !part.is_empty()).map(store).collect();
            let Some((_, before)) = stores.split_last() else {
                return Err(SymbolPathError::NoStore(element.to_owned()));
            };
            if before.iter().any(|store| matches!(store, Store::Server(_))) {
                return Err(SymbolPathError::ServerNotLast(element.to_owned()));
            }
            elements.push(Element::Chain(stores));
        }
        Ok(SymbolPath { elements })
    }
}

fn store(text: &str) -> Store {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    let is_server =
        scheme.is_some_and(|s| s.eq_ignore_ascii_case("https") || s.eq_ignore_ascii_case("http"));
    if is_server {
        Store::Server(text.trim_end_matches('/').to_owned())
    } else {
        Store::Folder(PathBuf::from(text))
    }
}

impl SymbolPath {
    /// Returns true if the path has no elements.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Returns the plain folders of the path. The folders of stores and caches are left out, because they may
    /// not exist yet.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.elements.iter().filter_map(|element| match element {
            Element::Folder(folder) => Some(folder.as_path()),
            Element::Cache(_) | Element::Chain(_) => None,
        })
    }

    /// Returns all folders of the path, including the folders of stores and caches.
    pub(crate) fn all_folders(&self) -> impl Iterator<Item = &Path> {
        self.elements.iter().flat_map(|element| match element {
            Element::Folder(folder) | Element::Cache(folder) => vec![folder.as_path()],
            Element::Chain(stores) => {
                let folders = stores.iter().filter_map(|store| match store {
                    Store::Folder(folder) => Some(folder.as_path()),
                    Store::Server(_) => None,
                });
                folders.collect()
            }
        })
    }

    /// Returns the possible locations of a PDB, in search order.
    ///
    /// In a store, the path of the file is `name.pdb/KEY/name.pdb`. A large store can have two tiers. In this
    /// case, the path is below a folder that is named after the first two letters of the name. A plain folder
    /// may also contain the file directly.
    pub fn candidates(&self, id: &PdbId) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        let mut caches: Vec<PathBuf> = Vec::new();
        for element in &self.elements {
            match element {
                Element::Folder(root) => {
                    candidates.push(Candidate {
                        place: Place::File {
                            root: root.clone(),
                            names: vec![id.name().to_owned()],
                        },
                        form: Form::Plain,
                    });
                    in_folder(root, id, &mut candidates);
                }
                Element::Cache(root) => {
                    in_folder(root, id, &mut candidates);
                    caches.push(root.clone());
                }
                Element::Chain(stores) => {
                    let mut keep_in = caches.clone();
                    for store in stores {
                        match store {
                            Store::Folder(root) => {
                                in_folder(root, id, &mut candidates);
                                keep_in.push(root.clone());
                            }
                            Store::Server(root) => on_server(root, id, &keep_in, &mut candidates),
                        }
                    }
                }
            }
        }
        candidates
    }
}

/// Returns the path of a PDB in a symbol store: `name.pdb/KEY/name.pdb`.
pub fn in_store(id: &PdbId) -> PathBuf {
    next_to(id, id.name()).iter().collect()
}

/// Returns the path of a file in a store. The file is in the same folder as a PDB, or the file is the PDB itself.
fn next_to(id: &PdbId, file: &str) -> [String; 3] {
    [id.name().to_owned(), id.key(), file.to_owned()]
}

/// Returns the name of the compressed form of a file.
fn compressed(name: &str) -> String {
    let mut name = name.to_owned();
    name.pop();
    name.push('_');
    name
}

fn in_folder(root: &Path, id: &PdbId, candidates: &mut Vec<Candidate>) {
    let tier: String = id.name().chars().take(2).collect();
    for prefix in [None, Some(tier)] {
        for (form, file) in [
            (Form::Plain, id.name().to_owned()),
            (Form::Compressed, compressed(id.name())),
            (Form::Pointer, "file.ptr".to_owned()),
        ] {
            let names = prefix.iter().cloned().chain(next_to(id, &file));
            candidates.push(Candidate {
                place: Place::File {
                    root: root.to_owned(),
                    names: names.collect(),
                },
                form,
            });
        }
    }
}

/// Adds the locations of a PDB on a server. Servers have only one layout. They resolve pointer files
/// themselves, so pointer files need no location.
fn on_server(root: &str, id: &PdbId, keep_in: &[PathBuf], candidates: &mut Vec<Candidate>) {
    for (form, file) in [
        (Form::Plain, id.name().to_owned()),
        (Form::Compressed, compressed(id.name())),
    ] {
        let path: Vec<String> = next_to(id, &file)
            .iter()
            .map(|name| percent_encoded(name))
            .collect();
        candidates.push(Candidate {
            place: Place::Url {
                server: root.to_owned(),
                url: format!("{root}/{}", path.join("/")),
                keep_in: keep_in.to_owned(),
            },
            form,
        });
    }
}

/// Percent-encodes a name for a URL. Only the unreserved characters of RFC 3986 stay unchanged.
fn percent_encoded(name: &str) -> String {
    let mut encoded = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(byte.into());
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(path: &str) -> Vec<String> {
        let guid = "9dc487da-0ef9-1033-4c4c-44205044422e".parse().unwrap();
        let id = PdbId::new("ab c.pdb", guid, 1).unwrap();
        let path: SymbolPath = path.parse().unwrap();
        let shown = |candidate: Candidate| match candidate.place {
            Place::File { root, names } => format!("{}|{}", root.display(), names.join("/")),
            Place::Url { url, keep_in, .. } => format!("{url} -> {keep_in:?}"),
        };
        path.candidates(&id).into_iter().map(shown).collect()
    }

    const KEY: &str = "9DC487DA0EF910334C4C44205044422E1";

    #[test]
    fn a_store_has_two_layouts_and_three_forms() {
        let expected = [
            format!("s|ab c.pdb/{KEY}/ab c.pdb"),
            format!("s|ab c.pdb/{KEY}/ab c.pd_"),
            format!("s|ab c.pdb/{KEY}/file.ptr"),
            format!("s|ab/ab c.pdb/{KEY}/ab c.pdb"),
            format!("s|ab/ab c.pdb/{KEY}/ab c.pd_"),
            format!("s|ab/ab c.pdb/{KEY}/file.ptr"),
        ];
        assert_eq!(places("srv*s"), expected);
        assert_eq!(places("symsrv*symsrv.dll*s"), expected);
        assert_eq!(places("cache*s;"), expected);
        assert_eq!(places(" s ")[0], "s|ab c.pdb");
        assert_eq!(places("s")[1..], expected);
    }

    #[test]
    fn what_servers_have_is_kept_in_the_stores_before_them() {
        let places_of_path = places("cache*c;SRV*l1*l2*https://example.com/symbols/;plain");
        let server: Vec<_> = places_of_path
            .iter()
            .filter(|p| p.starts_with("https"))
            .collect();
        let keep = r#"["c", "l1", "l2"]"#;
        assert_eq!(
            server,
            [
                &format!("https://example.com/symbols/ab%20c.pdb/{KEY}/ab%20c.pdb -> {keep}"),
                &format!("https://example.com/symbols/ab%20c.pdb/{KEY}/ab%20c.pd_ -> {keep}"),
            ]
        );
        let order: Vec<&str> = places_of_path
            .iter()
            .map(|p| p.split('|').next().unwrap())
            .collect();
        assert!(order.iter().position(|p| *p == "c") < order.iter().position(|p| *p == "l1"));
        assert_eq!(order.last(), Some(&"plain"));
        assert_eq!(
            places("srv**https://example.com")[0].split(" -> ").last(),
            Some("[]")
        );
    }

    #[test]
    fn what_is_no_symbol_path_is_told() {
        use SymbolPathError::*;
        for (path, error) in [
            ("srv*", NoStore("srv*".into())),
            ("a;symsrv*symsrv.dll", NoStore("symsrv*symsrv.dll".into())),
            ("x*y", Unknown("x*y".into())),
            ("srv*http://a*b", ServerNotLast("srv*http://a*b".into())),
        ] {
            assert_eq!(path.parse::<SymbolPath>(), Err(error));
        }
        assert!(" ; ;".parse::<SymbolPath>().unwrap().is_empty());
    }
}
