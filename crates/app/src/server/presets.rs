//! The user's own presets, in one file.

use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use explore::View;
use serde::{Deserialize, Serialize};

use super::{Refusal, body};
use crate::cli::NewFile;

/// Presets that are kept.
const MOST: usize = 1000;

/// Characters of a preset's name.
const LONGEST_NAME: usize = 200;

/// A view that the user gave a name.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnPreset {
    name: String,
    view: View,
}

/// The user's own presets.
#[derive(Debug)]
pub(super) struct UserPresets {
    /// Where they are kept; nowhere if the user has no home.
    file: Option<PathBuf>,
    /// Held while they are replaced.
    writing: Mutex<()>,
}

impl UserPresets {
    pub(super) fn new(file: Option<PathBuf>) -> UserPresets {
        UserPresets {
            file,
            writing: Mutex::default(),
        }
    }

    /// What is kept.
    ///
    /// # Errors
    /// If the file is damaged or cannot be read.
    pub(super) fn read(&self) -> Result<Vec<OwnPreset>, Refusal> {
        let Some(path) = &self.file else {
            return Ok(Vec::new());
        };
        let failed = |what: &dyn std::fmt::Display| {
            let advice = "mend it, or move it away to begin anew";
            Refusal::failed(format!("{}: {what}; {advice}", path.display()))
        };
        let file = match fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(&error)),
        };
        let mut text = Vec::new();
        let read = file.take(body::LONGEST as u64 + 1).read_to_end(&mut text);
        read.map_err(|error| failed(&error))?;
        if text.len() > body::LONGEST {
            return Err(failed(&"it has more than 1 MiB, which presets never have"));
        }
        serde_json::from_slice(&text).map_err(|error| failed(&error))
    }

    /// Keeps these instead. A file that cannot be understood is not replaced: it may hold presets of
    /// another version.
    ///
    /// # Errors
    /// If there are too many, or the file cannot be written.
    pub(super) fn replace(&self, presets: Vec<OwnPreset>) -> Result<Vec<OwnPreset>, Refusal> {
        let Some(path) = &self.file else {
            return Err(Refusal::failed(
                "presets cannot be kept: this user has no home folder; name a folder by \
                 LAGLAB_CONFIG",
            ));
        };
        if presets.len() > MOST {
            return Err(Refusal::bad(format!(
                "{} presets are more than the {MOST} that are kept; delete some",
                presets.len()
            )));
        }
        let is_name = |name: &str| !name.trim().is_empty() && name.chars().count() <= LONGEST_NAME;
        if let Some(unnamed) = presets.iter().find(|preset| !is_name(&preset.name)) {
            return Err(Refusal::bad(format!(
                "a preset's name has 1 to {LONGEST_NAME} characters, not {}",
                unnamed.name.chars().count()
            )));
        }
        let text = serde_json::to_vec_pretty(&presets);
        let text = text.map_err(|error| Refusal::failed(error.to_string()))?;
        if text.len() > body::LONGEST {
            return Err(Refusal::bad("presets have at most 1 MiB; delete some"));
        }
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.read()?;
        let failed = |error: io::Error| Refusal::failed(format!("{}: {error}", path.display()));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let new = NewFile::create(path)?;
        new.file().write_all(&text).map_err(failed)?;
        new.finish()?;
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
        let kept = UserPresets::new(Some(file.clone()));
        assert_eq!(kept.read().unwrap().len(), 0);
        kept.replace(presets(ONE)).unwrap();
        let again = UserPresets::new(Some(file)).read().unwrap();
        assert_eq!((again.len(), again[0].name.as_str()), (1, "mine"));
        kept.replace(Vec::new()).unwrap();
        assert_eq!(kept.read().unwrap().len(), 0);
    }

    #[test]
    fn what_cannot_be_understood_is_neither_read_nor_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("presets.json");
        let kept = UserPresets::new(Some(file.clone()));
        let long = " ".repeat(body::LONGEST + 1);
        for text in ["{", r#"[{"name": "x", "view": {}, "more": 1}]"#, &long] {
            fs::write(&file, text).unwrap();
            assert!(kept.read().is_err());
            assert!(kept.replace(presets(ONE)).is_err());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
    }

    #[test]
    fn presets_have_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let kept = UserPresets::new(Some(folder.path().join("presets.json")));
        let of = |name: &str| OwnPreset {
            name: name.to_owned(),
            view: presets(ONE).remove(0).view,
        };
        let long = "x".repeat(LONGEST_NAME + 1);
        for name in ["", "  ", &long] {
            assert!(kept.replace(vec![of(name)]).is_err());
        }
        let many = (0..=MOST).map(|_| of("x")).collect();
        assert!(kept.replace(many).is_err());
    }
}
