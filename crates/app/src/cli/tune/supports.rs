//! `laglab tune supports`: searches kernels for the name of a setting.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use etl::Guid;
use facts::windows_release;
use serde::Serialize;
use symbols::{PdbId, Stores, symbols_named};
use tune::catalogue::{Catalogue, PlacePattern, Setting, Type};
use tune::image::{Image, ImageError, Mention, PdbReference, Version, mention};

use super::chain;
use crate::cli::Failure;
use crate::cli::symbols::SymbolArgs;
use crate::output::say;
use crate::output::{self, Columns, Side};

/// Searches kernels, or other Windows programs, for the name of a setting. A program without the name does
/// not support the setting. For a folder, it searches every program. If the PDB of a program is next to it or
/// on the symbol path, it also searches the symbols in the PDB.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune supports GlobalTimerResolutionRequests --kernel ntoskrnl.exe\n  \
    laglab tune supports GlobalTimerResolutionRequests --kernel kernels/\n  \
    laglab tune supports globaltimer --kernel ntoskrnl.exe --symbols 'srv*symbols'\n\n\
    Exit code 1: no file supports it.")]
pub(super) struct Args {
    /// Setting, or any other name to search for
    #[arg(value_name = "SETTING")]
    setting: String,
    /// Kernel (ntoskrnl.exe), or a folder of kernels
    #[arg(long, value_name = "FILE|FOLDER")]
    kernel: PathBuf,
    #[command(flatten)]
    symbols: SymbolArgs,
}

/// Maximum size of a kernel, in bytes.
const MAX_FILE: u64 = 512 << 20;

/// JSON output: result for one file. Programs rely on its fields.
#[derive(Serialize)]
struct Row {
    file: String,
    version: Option<String>,
    build: Option<u32>,
    windows: Option<&'static str>,
    knows: bool,
    /// Name of the setting that was found in the file.
    name: Option<String>,
    encoding: Option<&'static str>,
    offset: Option<usize>,
    /// Symbol with a name of the setting in the PDB; `null` if there is no PDB or no such symbol.
    symbol: Option<String>,
    /// Name of the PDB that was searched.
    pdb: Option<String>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let names = names(&args.setting)?;
    let mut rows = Vec::new();
    let is_folder = args.kernel.is_dir();
    let files = if is_folder {
        programs(&args.kernel)?
    } else {
        vec![args.kernel.clone()]
    };
    let mut stores = args.symbols.options().stores()?;
    for file in &files {
        match search(file, &names, &mut stores) {
            Ok(row) => rows.push(row),
            // A folder may also contain files that are not programs. They are skipped.
            Err(SearchError::Image(ImageError::NotPe)) if is_folder => {}
            Err(error) if is_folder => {
                say(&format!("{}: {}; skipped", file.display(), chain(&error)))
            }
            Err(error) => return Err(Failure::input(file, chain(&error))),
        }
    }
    if rows.is_empty() {
        return Err(Failure::input(
            &args.kernel,
            "the folder has no Windows program",
        ));
    }
    rows.sort_by(|one, other| (one.build, &one.file).cmp(&(other.build, &other.file)));
    let is_known = rows.iter().any(|row| row.knows);
    if json {
        output::json(&rows)?
    } else {
        write(&rows)?
    }
    if is_known {
        Ok(())
    } else {
        Err(Failure::Negative(format!(
            "no file supports {}: it has no effect there",
            args.setting
        )))
    }
}

/// Returns the names to search for in programs. For a known setting, these are the names of its registry values, kernel
/// variables and boot elements. For any other word, the name is the word itself.
fn names(word: &str) -> Result<Vec<String>, Failure> {
    let catalogue = Catalogue::get();
    let settings = catalogue.named(word);
    if settings.is_empty() {
        let names = catalogue.settings().iter().flat_map(Setting::names);
        say(&format!(
            "unknown setting {word} (similar names: {}): searching for the word itself",
            wording::closest(word, names, 5).join(", ")
        ));
        return Ok(vec![word.to_owned()]);
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
    if names.is_empty() {
        let is_fact = settings.iter().all(|setting| setting.types == [Type::Fact]);
        let why = if is_fact {
            "a fact, not a setting"
        } else {
            "not in the registry"
        };
        Err(Failure::Input(format!(
            "cannot search for {word}: it is {why}"
        )))
    } else {
        Ok(names)
    }
}

/// Reason why a file cannot be searched for names.
#[derive(Debug, thiserror::Error)]
enum SearchError {
    #[error("cannot read the file")]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Image(#[from] ImageError),
}

fn search(file: &Path, names: &[String], stores: &mut Stores) -> Result<Row, SearchError> {
    let bytes = files::read_file(file, MAX_FILE)?;
    let image = Image::read(&bytes)?;
    let build = image.version.map(Version::build);
    let mention = names
        .iter()
        .find_map(|name| Some((name, mention(&bytes, name)?)));
    let (encoding, offset) = match mention {
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
        knows: mention.is_some() || symbol.is_some(),
        name: mention.map(|(name, _)| name.clone()),
        encoding,
        offset,
        symbol,
        pdb,
    })
}

/// Searches the PDB of a file for symbols with the given names. Returns the name of the PDB and the first
/// symbol found. A PDB next to the file has precedence over PDBs on the symbol path. An unusable PDB is
/// reported on stderr.
fn symbol(
    file: &Path,
    pdb: &PdbReference,
    names: &[String],
    stores: &mut Stores,
) -> Option<(String, Option<String>)> {
    let id = PdbId::new(&pdb.path, Guid(pdb.guid), pdb.age).ok()?;
    let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    let read = |bytes: File| symbols_named(bytes, &id, &wanted);
    let path = file.with_file_name(id.name());
    let next_to_file = files::open_file(&path).ok().and_then(|bytes| {
        let unusable = |error| say(&format!("{}: {error}; skipped", path.display()));
        read(bytes).map_err(unusable).ok()
    });
    let symbols = next_to_file.or_else(|| match stores.read(&id, &read) {
        Ok(symbols) => Some(symbols),
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
    let symbol = names
        .iter()
        .zip(symbols)
        .find(|(_, is_present)| *is_present);
    Some((id.name().to_owned(), symbol.map(|(name, _)| name.clone())))
}

/// Returns all files in a folder.
fn programs(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error| Failure::reading(folder, &error);
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
    columns.row(["build", "version", "Windows", "file", "supports it", ""]);
    for row in rows {
        let knows = match (row.knows, &row.name, row.encoding) {
            (true, Some(name), Some(encoding)) => format!("yes: {name} in {encoding}"),
            (true, ..) => "yes".to_owned(),
            (false, ..) => "no".to_owned(),
        };
        let symbol = match (&row.pdb, &row.symbol) {
            (Some(pdb), Some(symbol)) => format!("{pdb} has {symbol}"),
            (Some(pdb), None) => format!("{pdb} has no such symbol"),
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
        "A kernel with the name may still ignore the setting. A kernel without the name cannot use it.",
    )?;
    out.flush()
}
