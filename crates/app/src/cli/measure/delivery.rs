//! Where the results of a probe go: to the terminal, as JSON, into a file.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use measure::{End, HeatScale};

use crate::answer::{self, Shown};
use crate::cli::{Failure, NewFile, say};
use crate::measured::{self, Report};
use crate::output;

/// What to do with the results.
#[derive(clap::Args)]
pub(super) struct Delivery {
    /// Write to this file too: samples as .parquet, .csv, .jsonl (or .json), .arrow or .txt; a heat map
    /// as .png or .svg; a page as .html
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// How latencies go up heat maps
    #[arg(
        long,
        value_enum,
        default_value_t = Scale::Log,
        help_heading = "Output"
    )]
    scale: Scale,
}

/// How latencies go up heat maps.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    /// The same length for the same factor
    Log,
    /// The same length for the same difference
    Linear,
}

/// What a file is to hold.
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
                    let known = "its name must end in .parquet, .csv, .jsonl (or .json), .arrow or .txt \
                                 for samples, .png or .svg for a heat map, or .html for a page";
                    Failure::input(path, known)
                }),
        }
    }
}

/// How results are shown on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    /// A page of text.
    Text,
    /// JSON.
    Json,
    /// A line for every sample of sleep, as the programs SleepBenchmark print.
    Lines,
}

/// A place for the results, made before anything is measured: it can be written, or nothing is done.
pub(super) struct Destination {
    scale: HeatScale,
    file: Option<(Kind, PathBuf, NewFile)>,
}

impl Delivery {
    /// Whether results are to go to a file.
    pub(super) fn is_asked(&self) -> bool {
        self.output.is_some()
    }

    /// Makes the file that is asked for.
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
    /// Shows the results, then writes the file: if that cannot be written to its end, they have been
    /// seen. If the user stopped the measurement, this is said last.
    pub(super) fn deliver(self, report: &Report<'_>, show: Show) -> Result<(), Failure> {
        let measurement = report.measurement();
        match show {
            Show::Json => output::json(report)?,
            Show::Lines => measured::sleep_lines(measurement, &mut output::for_programs())?,
            Show::Text => {
                let mut out = output::for_people();
                measured::text(report, &mut out)?;
                measured::terminal_heat(measurement, self.scale, &mut out)?;
                out.flush()?;
            }
        }
        if let Some((kind, path, new)) = self.file {
            write(kind, new.file(), report, self.scale)
                .map_err(|error| Failure::input(&path, error))?;
            new.finish()?;
            if show == Show::Text && io::stdout().is_terminal() {
                say(&format!("written: {}", path.display()));
            }
        }
        match measurement.end {
            End::Stopped => Err(Failure::Interrupted),
            _ => Ok(()),
        }
    }
}

fn write(kind: Kind, file: &File, report: &Report<'_>, scale: HeatScale) -> io::Result<()> {
    let measurement = report.measurement();
    let mut out = BufWriter::new(file);
    match kind {
        Kind::Samples(format) => {
            let batch = measurement.table().into_batch();
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
    fn names_say_what_a_file_holds() {
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
