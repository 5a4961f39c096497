//! Presets that the user saved, stored in one file.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use explore::View;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{Refusal, body, user_file};

/// Name of the content in error messages.
const PRESETS: &str = "presets";

/// Maximum number of stored presets.
const MOST: usize = 1000;

/// Maximum number of characters of a preset's name.
const LONGEST_NAME: usize = 200;

/// View that the user saved under a name.
#[derive(Debug, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnPreset {
    name: String,
    view: View,
}

/// Store of the presets that the user saved.
#[derive(Debug)]
pub(super) struct UserPresets {
    /// File with the presets. `None` if the user has no home folder.
    file: Option<PathBuf>,
    /// Lock that writers of the file hold.
    writing: Mutex<()>,
}

impl UserPresets {
    pub(super) fn new(file: Option<PathBuf>) -> UserPresets {
        UserPresets {
            file,
            writing: Mutex::default(),
        }
    }

    /// Returns the stored presets.
    ///
    /// # Errors
    /// Returns an error if the file is damaged or cannot be read.
    pub(super) fn read(&self) -> Result<Vec<OwnPreset>, Refusal> {
        let Some(path) = &self.file else {
            return Ok(Vec::new());
        };
        Ok(user_file::read(path, PRESETS)?.unwrap_or_default())
    }

    /// Replaces the stored presets. A file with unknown content is not replaced, because another version of
    /// the program may have written it.
    ///
    /// # Errors
    /// Returns an error if there are too many presets, the stored ones cannot be read, or the file cannot be
    /// written.
    pub(super) fn replace(&self, presets: Vec<OwnPreset>) -> Result<Vec<OwnPreset>, Refusal> {
        let Some(path) = &self.file else {
            return Err(Refusal::failed(
                "cannot save presets: this user has no home folder; set LAGLAB_CONFIG to a \
                 folder",
            ));
        };
        if presets.len() > MOST {
            return Err(Refusal::bad(format!(
                "cannot save {} presets: the maximum is {MOST}; delete some",
                presets.len()
            )));
        }
        let is_name = |name: &str| !name.trim().is_empty() && name.chars().count() <= LONGEST_NAME;
        if let Some(unnamed) = presets.iter().find(|preset| !is_name(&preset.name)) {
            return Err(Refusal::bad(format!(
                "cannot save a preset: its name has {} characters; use 1 to {LONGEST_NAME}",
                unnamed.name.chars().count()
            )));
        }
        let text = serde_json::to_vec_pretty(&presets);
        let text = text.map_err(|error| Refusal::failed(error.to_string()))?;
        if text.len() > body::LONGEST {
            return Err(Refusal::bad(
                "cannot save presets: they are larger than 1 MiB; delete some",
            ));
        }
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.read()?;
        if let Some(folder) = path.parent() {
            let result = fs::create_dir_all(folder);
            result.map_err(|error| user_file::cannot_write(path, PRESETS, &error))?;
        }
        user_file::replace(path, PRESETS, &text)?;
        Ok(presets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presets(text: &str) -> Vec<OwnPreset> {
        serde_json::from_str(text).unwrap()
    }

    const ONE: &str = r#"[{"name": "mine", "view": {"table": "cpu_runs", "columns": ["|"]}}]"#;

    #[test]
    fn what_is_kept_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("not/yet/there.json");
        let stored = UserPresets::new(Some(file.clone()));
        assert_eq!(stored.read().unwrap().len(), 0);
        stored.replace(presets(ONE)).unwrap();
        let again = UserPresets::new(Some(file)).read().unwrap();
        assert_eq!((again.len(), again[0].name.as_str()), (1, "mine"));
        stored.replace(Vec::new()).unwrap();
        assert_eq!(stored.read().unwrap().len(), 0);
    }

    #[test]
    fn what_cannot_be_understood_is_neither_read_nor_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("presets.json");
        let stored = UserPresets::new(Some(file.clone()));
        let long = " ".repeat(body::LONGEST + 1);
        for text in ["{", r#"[{"name": "x", "view": {}, "more": 1}]"#, &long] {
            fs::write(&file, text).unwrap();
            assert!(stored.read().is_err());
            assert!(stored.replace(presets(ONE)).is_err());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
    }

    #[test]
    fn presets_have_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let stored = UserPresets::new(Some(folder.path().join("presets.json")));
        let preset = |name: &str| OwnPreset {
            name: name.to_owned(),
            view: presets(ONE).remove(0).view,
        };
        let long = "x".repeat(LONGEST_NAME + 1);
        for name in ["", "  ", &long] {
            assert!(stored.replace(vec![preset(name)]).is_err());
        }
        let many = (0..=MOST).map(|_| preset("x")).collect();
        assert!(stored.replace(many).is_err());
    }
}
