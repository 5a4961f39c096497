//! Documents that the page keeps for the user: SQL queries, and a workspace (tabs, filters, notes) for each set of
//! traces. Only the page knows the format of the documents.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::{Refusal, user_file};

/// Name of the content in error messages.
const DOCUMENT: &str = "the document";

/// Maximum number of kept documents.
const MOST: usize = 2000;

/// Maximum number of characters of a document's name.
const LONGEST_NAME: usize = 64;

/// Store of the documents, in a folder with one file for each document.
#[derive(Debug)]
pub(super) struct DocumentStore {
    /// Path of the folder. `None` if the user has no home folder.
    folder: Option<PathBuf>,
    /// Lock that writers of documents hold.
    writing: Mutex<()>,
}

impl DocumentStore {
    pub(super) fn new(folder: Option<PathBuf>) -> DocumentStore {
        DocumentStore {
            folder,
            writing: Mutex::default(),
        }
    }

    /// Returns a document, or `null` if there is no document with this name.
    ///
    /// # Errors
    /// Returns an error if the name is invalid, or if the file is damaged or cannot be read.
    pub(super) fn read(&self, name: &str) -> Result<Value, Refusal> {
        let Some(path) = self.path(name)? else {
            return Ok(Value::Null);
        };
        Ok(user_file::read(&path, DOCUMENT)?.unwrap_or_default())
    }

    /// Replaces a document. If `document` is `null`, removes the document.
    ///
    /// # Errors
    /// Returns an error if the name is invalid, there are too many documents, or the file cannot be written.
    pub(super) fn replace(&self, name: &str, document: &Value) -> Result<Value, Refusal> {
        let Some(path) = self.path(name)? else {
            return Err(Refusal::failed(
                "cannot save this: this user has no home folder; set LAGLAB_CONFIG to a folder",
            ));
        };
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |error: io::Error| user_file::cannot_write(&path, DOCUMENT, &error);
        if document.is_null() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(Value::Null),
            };
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
            let others = fs::read_dir(folder).map_err(failed)?.count();
            if others >= MOST && !path.exists() {
                return Err(Refusal::bad(format!(
                    "cannot save this: {} has {others} files, and the maximum is {MOST}; delete some",
                    folder.display()
                )));
            }
        }
        let text = serde_json::to_vec(document);
        let text = text.map_err(|error| Refusal::failed(error.to_string()))?;
        user_file::replace(&path, DOCUMENT, &text)?;
        Ok(Value::Null)
    }

    /// Returns the path of a document's file. A name has only letters, digits and hyphens, so that no request leads
    /// out of the folder.
    fn path(&self, name: &str) -> Result<Option<PathBuf>, Refusal> {
        let is_name = (1..=LONGEST_NAME).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if is_name {
            Ok(self
                .folder
                .as_ref()
                .map(|folder| folder.join(format!("{name}.json"))))
        } else {
            Err(Refusal::bad(format!(
                "invalid name of a document; use 1 to {LONGEST_NAME} lower-case letters, digits and hyphens"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::body;

    #[test]
    fn documents_are_kept_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let store = DocumentStore::new(Some(folder.path().join("not/yet/there")));
        assert_eq!(store.read("workspace-1").unwrap(), Value::Null);
        store
            .replace("workspace-1", &json!({"notes": ["<b>"]}))
            .unwrap();
        let again = DocumentStore::new(Some(folder.path().join("not/yet/there")));
        assert_eq!(
            again.read("workspace-1").unwrap(),
            json!({"notes": ["<b>"]})
        );
        assert_eq!(again.read("workspace-2").unwrap(), Value::Null);
        again.replace("workspace-1", &Value::Null).unwrap();
        assert_eq!(store.read("workspace-1").unwrap(), Value::Null);
    }

    #[test]
    fn names_never_lead_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let store = DocumentStore::new(Some(folder.path().join("inside")));
        let long = "x".repeat(LONGEST_NAME + 1);
        for name in [
            "",
            "..",
            "../outside",
            "a/b",
            "a\\b",
            "A",
            "a.b",
            "é",
            "nul\0",
            &long,
        ] {
            assert!(store.read(name).is_err(), "{name}");
            assert!(store.replace(name, &json!(1)).is_err(), "{name}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn damaged_documents_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = DocumentStore::new(Some(folder.path().to_owned()));
        let long = format!("\"{}\"", "x".repeat(body::LONGEST));
        for text in ["{", &long] {
            fs::write(folder.path().join("queries.json"), text).unwrap();
            assert!(store.read("queries").is_err());
        }
    }
}
