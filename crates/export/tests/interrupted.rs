//! Checks that an export to Parquet that ends early leaves no files behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use export::{Error, Part, parquet};
use session::{Amount, Observer, Task, TraceTables};
use tables::{Cache, Table};

/// Observer that cancels the work as soon as a file or folder exists.
struct Until(PathBuf);

impl Observer for Until {
    fn begin(&self, _: &'static str, _: Amount) -> Box<dyn Task> {
        Box::new(session::Unobserved)
    }

    fn warn(&self, _: &str) {}

    fn is_cancelled(&self) -> bool {
        self.0.exists()
    }
}

fn export(folder: &Path, until: PathBuf) -> Result<parquet::ParquetSummary, Error> {
    let wanted = [Table::Processes, Table::Images, Table::Threads];
    let trace = testdata::path("etl/perfview__net.4.5.2.x64.etl");
    let tables = TraceTables::open(&[trace], Cache::Off, Arc::new(Until(until)))?;
    let part = Part::new(&tables, i64::MIN..i64::MAX, &wanted)?;
    parquet::write(&part, &wanted, folder, "trace")
}

/// Returns the paths of all files and folders below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(below(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

#[test]
fn nothing_stays_of_an_interrupted_export() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("new/folder");
    // The first table is complete when the folder of the second table exists.
    let error = export(&folder, folder.join("images")).unwrap_err();
    assert!(
        matches!(error, Error::Session(session::Error::Cancelled)),
        "{error}"
    );
    assert_eq!(below(home.path()), Vec::<PathBuf>::new());

    // An earlier export must stay unchanged.
    let written = export(&folder, home.path().join("never")).unwrap();
    assert_eq!(written.files, 3);
    let complete = below(home.path());
    let first = folder.join("processes/trace=trace/part-0.parquet");
    let changed = |path: &Path| path.metadata().unwrap().modified().unwrap();
    let before = changed(&first);
    let other = folder.join("other");
    fs::create_dir_all(&other).unwrap();
    fs::remove_dir_all(folder.join("images")).unwrap();
    export(&folder, folder.join("images")).unwrap_err();
    assert_eq!(changed(&first), before);
    let now = below(home.path());
    assert!(now.contains(&other));
    let kept = |path: &&PathBuf| !path.starts_with(folder.join("images"));
    assert!(complete.iter().filter(kept).all(|path| now.contains(path)));
    assert_eq!(now.len(), complete.iter().filter(kept).count() + 1);
}
