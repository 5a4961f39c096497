//! `laglab tune supports`: whether kernels know a setting.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use etl::Guid;
use serde::Serialize;
use symbols::{PdbId, Stores, symbols_named};
use tune::catalogue::{Catalogue, PlacePattern, Setting, Type};
use tune::image::{Image, ImageError, Mention, PdbReference, Version, mention};

use super::nearest;
use crate::cli::{Failure, say};
use crate::output::{self, Columns, Side};
use crate::symbolication::SymbolOptions;
use crate::windows_release::windows_release;

/// Looks into kernels, or other programs of Windows, for the name of a setting: one that does not name
/// it cannot know it. Of a folder it looks into every program. Where a program's PDB lies beside it, or is
/// found by the symbol path, its symbols are looked into, too.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune supports GlobalTimerResolutionRequests --kernel ntoskrnl.exe\n  \
    laglab tune supports GlobalTimerResolutionRequests --kernel kernels/\n  \
    laglab tune supports globaltimer --kernel ntoskrnl.exe --symbols 'srv*symbols'\n\n\
    Exit code 1: none of the files knows it.")]
pub(super) struct Args {
    /// The setting, or any name that is to be looked for
    #[arg(value_name = "SETTING")]
    setting: String,
    /// The kernel (ntoskrnl.exe), or a folder of kernels
    #[arg(long, value_name = "FILE|FOLDER")]
    kernel: PathBuf,
    #[command(flatten)]
    symbols: SymbolOptions,
}

/// Files larger than this are no kernels.
const MAX_FILE: u64 = 512 << 20;

/// What a file says, in its stable shape for programs.
#[derive(Serialize)]
struct Row {
    file: String,
    version: Option<String>,
    build: Option<u32>,
    windows: Option<&'static str>,
    knows: bool,
    /// The name that was found, and how it is written there.
    name: Option<String>,
    encoding: Option<&'static str>,
    offset: Option<usize>,
    /// The symbol that its PDB has for it; `null` if the PDB is not there, or has none.
    symbol: Option<String>,
    /// The PDB that was looked into: beside the file, or where the symbol path leads.
    pdb: Option<String>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let names = names(&args.setting)?;
    let mut rows = Vec::new();
    let is_folder = args.kernel.is_dir();
    let files = match is_folder {
        true => programs(&args.kernel)?,
        false => vec![args.kernel.clone()],
    };
    let mut stores = args.symbols.stores()?;
    for file in &files {
        match look(file, &names, &mut stores) {
            Ok(row) => rows.push(row),
            // A folder may hold what is no program.
            Err(Look::Image(ImageError::NotPe)) if is_folder => {}
            Err(error) if is_folder => say(&format!("{}: {error}; left out", file.display())),
            Err(error) => return Err(Failure::input(file, error)),
        }
    }
    if rows.is_empty() {
        return Err(Failure::input(
            &args.kernel,
            "there is no program of Windows in it",
        ));
    }
    rows.sort_by(|one, other| (one.build, &one.file).cmp(&(other.build, &other.file)));
    let is_known = rows.iter().any(|row| row.knows);
    match json {
        true => output::json(&rows)?,
        false => write(&rows)?,
    }
    match is_known {
        true => Ok(()),
        false => Err(Failure::Negative(format!(
            "{} is in none of them: there it does nothing",
            args.setting
        ))),
    }
}

/// What is looked for: the names of the setting's values, or the word itself.
fn names(asked: &str) -> Result<Vec<String>, Failure> {
    let catalogue = Catalogue::get();
    let settings = catalogue.named(asked);
    if settings.is_empty() {
        let words = catalogue.settings().iter().flat_map(Setting::words);
        say(&format!(
            "the catalogue has no setting {asked} (the nearest are {}): the word itself is looked for",
            nearest(words, asked).join(", ")
        ));
        return Ok(vec![asked.to_owned()]);
    }
    let in_kernels = settings.iter().flat_map(|setting| &setting.places);
    let names = in_kernels.filter_map(|place| match place {
        PlacePattern::Registry { name, .. } | PlacePattern::Kernel { kernel: name } => {
            Some(name.clone())
        }
        PlacePattern::Boot { boot } => Some(boot.clone()),
        PlacePattern::Power { .. } | PlacePattern::Answer { .. } => None,
    });
    let names: Vec<String> = names.collect();
    match names.is_empty() {
        false => Ok(names),
        true => {
            let is_fact = settings.iter().all(|setting| setting.types == [Type::Fact]);
            let why = match is_fact {
                true => "no setting, but a fact",
                false => "not in the registry",
            };
            Err(Failure::Input(format!(
                "{asked} is {why}: no file names it"
            )))
        }
    }
}

/// Why a file cannot be looked into.
#[derive(Debug, thiserror::Error)]
enum Look {
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    #[error("has {0} bytes, more than any kernel")]
    TooLarge(u64),
    #[error(transparent)]
    Image(#[from] ImageError),
}

fn look(file: &Path, names: &[String], stores: &mut Stores) -> Result<Row, Look> {
    let length = fs::metadata(file)?.len();
    if length > MAX_FILE {
        return Err(Look::TooLarge(length));
    }
    let bytes = fs::read(file)?;
    let image = Image::read(&bytes)?;
    let build = image.version.map(Version::build);
    let found = names
        .iter()
        .find_map(|name| Some((name, mention(&bytes, name)?)));
    let (encoding, offset) = match found {
        Some((_, Mention::Utf16 { offset })) => (Some("UTF-16"), Some(offset)),
        Some((_, Mention::Ascii { offset })) => (Some("ASCII"), Some(offset)),
        None => (None, None),
    };
    let symbols = (image.pdb.as_ref()).and_then(|pdb| symbol(file, pdb, names, stores));
    let (pdb, symbol) = symbols.map_or((None, None), |(pdb, symbol)| (Some(pdb), symbol));
    let name = file.file_name().unwrap_or(file.as_os_str());
    Ok(Row {
        file: name.to_string_lossy().into_owned(),
        version: image.version.map(|version| version.to_string()),
        build,
        windows: build.and_then(windows_release),
        knows: found.is_some() || symbol.is_some(),
        name: found.map(|(name, _)| name.clone()),
        encoding,
        offset,
        symbol,
        pdb,
    })
}

/// The PDB of a file, and the first of the names that it has as a symbol. What lies beside the file goes
/// before what the symbol path leads to. One that cannot be used is said to be one.
fn symbol(
    file: &Path,
    pdb: &PdbReference,
    names: &[String],
    stores: &mut Stores,
) -> Option<(String, Option<String>)> {
    let id = PdbId::new(&pdb.path, Guid(pdb.guid), pdb.age).ok()?;
    let asked: Vec<&str> = names.iter().map(String::as_str).collect();
    let read = |bytes: File| symbols_named(bytes, &id, &asked);
    let path = file.with_file_name(id.name());
    let beside = File::open(&path).ok().and_then(|bytes| {
        let unusable = |error| say(&format!("{}: {error}; left out", path.display()));
        read(bytes).map_err(unusable).ok()
    });
    let found = beside.or_else(|| match stores.read(&id, &read) {
        Ok(found) => Some(found),
        Err(not_found) => {
            if !not_found.attempts.is_empty() {
                say(&format!(
                    "no symbols of {}, {id}: {not_found}",
                    file.display()
                ));
            }
            None
        }
    })?;
    let symbol = names.iter().zip(found).find(|(_, found)| *found);
    Some((id.name().to_owned(), symbol.map(|(name, _)| name.clone())))
}

/// The files of a folder that may be programs.
fn programs(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error| Failure::input(folder, error);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

fn write(rows: &[Row]) -> std::io::Result<()> {
    let mut out = output::for_people();
    let mut columns = Columns::new(&[Side::Left; 6]);
    columns.row(["build", "version", "Windows", "file", "knows it", ""]);
    for row in rows {
        let knows = match (row.knows, &row.name, row.encoding) {
            (true, Some(name), Some(encoding)) => format!("yes: {name} in {encoding}"),
            (true, ..) => "yes".to_owned(),
            (false, ..) => "no".to_owned(),
        };
        let symbol = match (&row.pdb, &row.symbol) {
            (Some(pdb), Some(symbol)) => format!("{pdb} has {symbol}"),
            (Some(pdb), None) => format!("{pdb} has no symbol of it"),
            (None, _) => String::new(),
        };
        columns.row([
            row.build.map_or("?".to_owned(), |build| build.to_string()),
            row.version.clone().unwrap_or_else(|| "?".to_owned()),
            row.windows.unwrap_or("?").to_owned(),
            row.file.clone(),
            knows,
            symbol,
        ]);
    }
    columns.write(&mut out)?;
    output::quiet(
        &mut out,
        "A kernel that names a setting may still do nothing with it; one that does not cannot.",
    )?;
    out.flush()
}
