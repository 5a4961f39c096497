//! `laglab cache`, and which folder tables are kept in.

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

/// Shows where the tables of traces are kept for the next question, and how much that is.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab cache\n  \
    laglab cache --clear\n  \
    LAGLAB_CACHE=/big/disk LAGLAB_CACHE_LIMIT=100G laglab explain trace.etl")]
pub(super) struct Args {
    /// Remove all kept tables; they are made again when they are asked for
    #[arg(long)]
    clear: bool,
}

/// The stable shape of `laglab cache --json`.
#[derive(Serialize)]
struct Report {
    folder: String,
    traces: usize,
    bytes: u64,
    limit_bytes: u64,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let Cache::Folder(cache) = chosen()? else {
        return Err(Failure::Input(format!(
            "nothing is kept: this user has no home folder; name a folder by {FOLDER}"
        )));
    };
    let failed = |error: io::Error| Failure::input(cache.path(), error);
    if args.clear {
        cache.clear().map_err(failed)?;
    }
    let usage = cache.usage().map_err(failed)?;
    if json {
        output::json(&Report {
            folder: cache.path().to_string_lossy().into_owned(),
            traces: usage.traces,
            bytes: usage.bytes,
            limit_bytes: cache.limit_bytes(),
        })?;
        return Ok(());
    }
    let mut out = output::for_people();
    let of = match usage.traces {
        1 => "1 trace".to_owned(),
        traces => format!("{traces} traces"),
    };
    output::first_heading(&mut out, &cache.path().to_string_lossy())?;
    output::paragraph(
        &mut out,
        &format!(
            "tables of {of}, {} of at most {}",
            output::size(usage.bytes),
            output::size(cache.limit_bytes())
        ),
    )?;
    out.flush()?;
    Ok(())
}

/// Where tables are kept: as the environment says, else where the platform keeps such.
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
        given => given.ok().and_then(|text| bytes(&text)).ok_or_else(|| {
            Failure::Input(format!(
                "{LIMIT} is no size: give a number of bytes, or one with K, M, G or T (20G)"
            ))
        })?,
    };
    Ok(folder.map_or(Cache::Off, |folder| {
        Cache::Folder(CacheFolder::new(folder, limit))
    }))
}

/// A number of bytes, in units of 1024 where a letter says so.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let shift = match text.chars().last()?.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => return text.parse().ok(),
    };
    let number: u64 = text[..text.len() - 1].trim_end().parse().ok()?;
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("1000"), Some(1000));
        assert_eq!(bytes("20G"), Some(20 * 1024 * 1024 * 1024));
        assert_eq!(bytes(" 3 m "), Some(3 * 1024 * 1024));
        assert_eq!(bytes("99999999T"), None);
        assert_eq!(bytes("20GB"), None);
        assert_eq!(bytes("G"), None);
        assert_eq!(bytes(""), None);
        assert_eq!(bytes("20é"), None);
    }
}
