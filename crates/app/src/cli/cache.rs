//! `laglab cache`, and the choice of the folder for the cache.

use std::env::{self, VarError};
use std::io::{self, Write};
use std::path::PathBuf;

use etcetera::BaseStrategy;
use serde::Serialize;
use tables::{Cache, CacheFolder};

use super::Failure;
use crate::output;

const FOLDER: &str = "LAGLAB_CACHE";
const LIMIT: &str = "LAGLAB_CACHE_LIMIT";

/// Shows the folder and the size of the cache. The cache keeps the tables of traces for later commands.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab cache\n  \
    laglab cache --clear\n  \
    LAGLAB_CACHE=/big/disk LAGLAB_CACHE_LIMIT=100G laglab explain trace.etl")]
pub(super) struct Args {
    /// Remove all cached tables; later commands build them again
    #[arg(long)]
    clear: bool,
}

/// JSON output of `laglab cache`. Programs rely on its fields.
#[derive(Serialize)]
struct Report {
    folder: String,
    traces: usize,
    bytes: u64,
    limit_bytes: u64,
    /// Number of bytes that `--clear` removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    removed_bytes: Option<u64>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let Cache::Folder(cache) = chosen()? else {
        return Err(Failure::Input(format!(
            "cannot choose the cache's folder: this user has no home folder; set the variable \
             {FOLDER} to a folder"
        )));
    };
    let failed = |error: io::Error| Failure::reading(cache.path(), &error);
    let mut usage = cache.usage().map_err(failed)?;
    let mut removed_bytes = None;
    if args.clear {
        let before = usage.bytes;
        cache.clear().map_err(failed)?;
        usage = cache.usage().map_err(failed)?;
        removed_bytes = Some(before.saturating_sub(usage.bytes));
    }
    if json {
        output::json(&Report {
            folder: cache.path().to_string_lossy().into_owned(),
            traces: usage.traces,
            bytes: usage.bytes,
            limit_bytes: cache.limit_bytes(),
            removed_bytes,
        })?;
        return Ok(());
    }
    let mut out = output::for_people();
    let traces = output::counted(usage.traces as u64, "trace", "traces");
    output::first_heading(&mut out, &cache.path().to_string_lossy())?;
    if let Some(removed) = removed_bytes {
        output::paragraph(&mut out, &format!("removed {}", output::size(removed)))?;
    }
    output::paragraph(
        &mut out,
        &format!(
            "tables of {traces}: {} (limit {})",
            output::size(usage.bytes),
            output::size(cache.limit_bytes())
        ),
    )?;
    out.flush()?;
    Ok(())
}

/// Returns the cache. Environment variables can set its folder and its maximum size. The default folder is in
/// the platform's cache folder.
pub(super) fn chosen() -> Result<Cache, Failure> {
    let folder = match env::var_os(FOLDER).filter(|folder| !folder.is_empty()) {
        Some(folder) => Some(PathBuf::from(folder)),
        None => etcetera::base_strategy::choose_native_strategy()
            .ok()
            .map(|places| places.cache_dir().join("laglab")),
    };
    let limit = match env::var(LIMIT) {
        Err(VarError::NotPresent) => CacheFolder::DEFAULT_LIMIT_BYTES,
        Ok(limit) if limit.is_empty() => CacheFolder::DEFAULT_LIMIT_BYTES,
        given => given
            .ok()
            .and_then(|text| wording::parse_bytes(&text))
            .ok_or_else(|| {
                Failure::Input(format!(
                    "{LIMIT} is not a size; give a number of bytes, or one with K, M, G or T (20G)"
                ))
            })?,
    };
    Ok(folder.map_or(Cache::Off, |folder| {
        Cache::Folder(CacheFolder::new(folder, limit))
    }))
}
