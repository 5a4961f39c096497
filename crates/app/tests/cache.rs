//! Tests of `laglab cache`.

use crate::program;

use std::path::PathBuf;

use serde_json::Value;
use tables::{Cache, CacheFolder, Options, Table};

struct Case(tempfile::TempDir);

impl Case {
    fn folder(&self) -> PathBuf {
        self.0.path().join("cache")
    }

    fn json(&self, args: &[&str]) -> Value {
        let folder = self.folder();
        let cache = ("LAGLAB_CACHE", folder.to_str().unwrap());
        let limit = ("LAGLAB_CACHE_LIMIT", "5M");
        let output = program::laglab_with(&[cache, limit], args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

#[test]
fn the_cache_is_shown_and_cleared() {
    let case = Case(tempfile::tempdir().unwrap());
    let shown = case.json(&["cache", "--json"]);
    assert_eq!(shown["folder"], case.folder().to_str().unwrap());
    assert_eq!((&shown["traces"], &shown["bytes"]), (&0.into(), &0.into()));
    assert_eq!(shown["limit_bytes"], 5 * 1024 * 1024);

    let cache = Cache::Folder(CacheFolder::new(case.folder(), u64::MAX));
    let store = imports::open_store(&[testdata::path("etl/filtrace__etw.etl")], cache).unwrap();
    store.make(&[Table::Threads], Options::default()).unwrap();
    let shown = case.json(&["cache", "--json"]);
    assert_eq!(shown["traces"], 1);
    assert!(shown["bytes"].as_u64() > Some(1000), "{shown}");
    let kept = shown["bytes"].clone();

    // Windows does not remove open files, so the store is closed first.
    drop(store);
    let shown = case.json(&["cache", "--clear", "--json"]);
    assert_eq!(shown["removed_bytes"], kept);
    assert_eq!((&shown["traces"], &shown["bytes"]), (&0.into(), &0.into()));
}

/// Checks that other users see neither the tables nor the names and sizes of traces.
#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_cache() {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn modes(path: &Path, found: &mut Vec<(PathBuf, u32)>) {
        let mode = path.metadata().unwrap().permissions().mode();
        found.push((path.to_owned(), mode & 0o777));
        if path.is_dir() {
            let entries = std::fs::read_dir(path).unwrap();
            entries.for_each(|entry| modes(&entry.unwrap().path(), found));
        }
    }
    let case = Case(tempfile::tempdir().unwrap());
    let trace = testdata::path("etl/filtrace__etw.etl");
    case.json(&["explain", trace.to_str().unwrap(), "--json"]);
    let mut found = Vec::new();
    modes(&case.folder(), &mut found);
    let files = found.iter().filter(|(path, _)| path.is_file()).count();
    assert!(files > 5, "{found:?}");
    for (path, mode) in found {
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    }
}

#[test]
fn invalid_limits_are_refused() {
    let output = program::laglab_with(&[("LAGLAB_CACHE_LIMIT", "plenty")], &["cache"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("LAGLAB_CACHE_LIMIT is not a size"),
        "{error}"
    );
}
