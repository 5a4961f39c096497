//! Computes a hash of the code that makes tables. The hash is part of the cache key. So tables that other
//! code made are not used.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::Path;
use std::{env, fs};

/// Files and folders with the code that determines the rows of a table. Most of them are not part of a
/// published package. In a published package, the version of the package identifies the code.
const CODE: &[&str] = &[
    "src",
    "../etl/src",
    "../events/data",
    "../events/src",
    "../import_linux/src",
    "../import_windows/src",
    "../linux/src",
    "../store/src",
    "../tables/src",
    "../../Cargo.lock",
];

fn main() -> io::Result<()> {
    let mut hasher = DefaultHasher::new();
    env::var("CARGO_PKG_VERSION").ok().hash(&mut hasher);
    let mut out = io::stdout();
    for part in CODE.iter().map(Path::new) {
        if part.exists() {
            writeln!(out, "cargo::rerun-if-changed={}", part.display())?;
            hash(part, &mut hasher)?;
        }
    }
    writeln!(out, "cargo::rustc-env=TABLES_CODE={:016x}", hasher.finish())
}

fn hash(path: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    if path.is_file() {
        path.file_name().hash(hasher);
        fs::read(path)?.hash(hasher);
        return Ok(());
    }
    let mut entries: Vec<_> = fs::read_dir(path)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    entries.sort();
    entries.iter().try_for_each(|entry| hash(entry, hasher))
}
