//! Output of results: to the terminal, as JSON, or into a file.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use answer::Shown;
use measure::{End, HeatScale};
use session::NewFile;

use crate::cli::Failure;

use crate::measured::{self, Report};
use crate::output;
use crate::output::say;

/// Options for the output of results.
#[derive(clap::Args)]
pub(super) struct Delivery {
    /// Also write a file: samples as .parquet, .csv, .jsonl (or .json), .arrow or .txt; a heat map as
    /// .png or .svg; a page as .html
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Scale of latencies in heat maps
    #[arg(
        long,
        value_enum,
        default_value_t = Scale::Log,
        help_heading = "Output"
    )]
    scale: Scale,
}

/// Scale of latencies in heat maps.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    /// Logarithmic
    Log,
    /// Linear
    Linear,
}

/// Content of an output file, selected by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Samples(answer::Format),
    Png,
    Svg,
    Html,
}

impl Kind {
    fn of(path: &Path) -> Result<Kind, Failure> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("png") => Ok(Kind::Png),
            Some("svg") => Ok(Kind::Svg),
            Some("html" | "htm") => Ok(Kind::Html),
            _ => answer::Format::of_file(path)
                .map(Kind::Samples)
                .ok_or_else(|| {
                    let known = "unknown format; use .parquet, .csv, .jsonl (or .json), .arrow or .txt \
                                 for samples, .png or .svg for a heat map, or .html for a page";
                    Failure::input(path, known)
                }),
        }
    }
}

/// Format in which results are printed to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    /// A page of text.
    Text,
    /// JSON.
    Json,
    /// One line per sleep, as the program SleepBenchmark prints it.
    Lines,
}

/// Output of results. It creates its file before the measurement. If the file cannot be written, no time is
/// lost on a measurement.
pub(super) struct Destination {
    scale: HeatScale,
    file: Option<(Kind, PathBuf, NewFile)>,
}

impl Delivery {
    /// Returns true if the options name an output file.
    pub(super) fn has_file(&self) -> bool {
        self.output.is_some()
    }

    /// Creates the output file, if the options name one.
    pub(super) fn prepare(&self) -> Result<Destination, Failure> {
        let file = match &self.output {
            None => None,
            Some(path) => Some((Kind::of(path)?, path.clone(), NewFile::create(path)?)),
        };
        Ok(Destination {
            scale: match self.scale {
                Scale::Log => HeatScale::Logarithmic,
                Scale::Linear => HeatScale::Linear,
            },
            file,
        })
    }
}

impl Destination {
    /// Writes the file and prints the results. The file is complete before anything is printed, so that a closed pipe does
    /// not lose it. The results are also printed if the file cannot be written.
    ///
    /// # Errors
    /// Returns [`Failure::Interrupted`] if the user stopped the measurement.
    pub(super) fn deliver(self, report: &Report<'_>, show: Show) -> Result<(), Failure> {
        let scale = self.scale;
        let written = self.write_file(report);
        let printed = print(report, show, scale);
        let path = written?;
        printed?;
        if let Some(path) = path
            && show == Show::Text
            && io::stdout().is_terminal()
        {
            say(&format!("wrote {}", path.display()));
        }
        match report.measurement().end {
            End::Stopped => Err(Failure::Interrupted),
            _ => Ok(()),
        }
    }

    /// Writes the file, if there is one. Returns its path.
    fn write_file(self, report: &Report<'_>) -> Result<Option<PathBuf>, Failure> {
        let Some((kind, path, new)) = self.file else {
            return Ok(None);
        };
        write(kind, new.file(), report, self.scale)
            .map_err(|error| Failure::writing(&path, &error))?;
        new.finish()?;
        Ok(Some(path))
    }
}

/// Prints the results on standard output.
fn print(report: &Report<'_>, show: Show, scale: HeatScale) -> io::Result<()> {
    let measurement = report.measurement();
    match show {
        Show::Json => output::json(report),
        Show::Lines => measured::sleep_lines(measurement, &mut output::for_programs()),
        Show::Text => {
            let mut out = output::for_people();
            measured::text(report, &mut out)?;
            measured::terminal_heat(measurement, scale, &mut out)?;
            out.flush()
        }
    }
}

fn write(kind: Kind, file: &File, report: &Report<'_>, scale: HeatScale) -> io::Result<()> {
    let measurement = report.measurement();
    let mut out = BufWriter::new(file);
    match kind {
        Kind::Samples(format) => {
            let batch = report
                .conditions()
                .attach(&measurement.table().into_batch());
            let everything = Shown {
                rows: None,
                characters: None,
            };
            let mut rows = format.writer(Box::new(out), &batch.schema(), everything)?;
            rows.write(&batch)?;
            return rows.finish();
        }
        Kind::Png | Kind::Svg => {
            let (axes, maps) = measured::heat_maps(measurement, scale);
            match kind {
                Kind::Png => out.write_all(&measure::heat_png(&axes, &maps))?,
                _ => out.write_all(measure::heat_svg(&axes, &maps).as_bytes())?,
            }
        }
        Kind::Html => out.write_all(measured::page(report, scale).as_bytes())?,
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_select_the_content() {
        for (name, kind) in [
            ("a.parquet", Some(Kind::Samples(answer::Format::Parquet))),
            ("a.CSV", Some(Kind::Samples(answer::Format::Csv))),
            ("a.json", Some(Kind::Samples(answer::Format::Jsonl))),
            ("a.png", Some(Kind::Png)),
            ("a.SVG", Some(Kind::Svg)),
            ("a.html", Some(Kind::Html)),
            ("a.etl", None),
            ("a", None),
        ] {
            assert_eq!(Kind::of(Path::new(name)).ok(), kind, "{name}");
        }
    }
}
