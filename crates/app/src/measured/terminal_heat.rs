//! Heat maps in the terminal. Cells with more samples have denser characters, and colours if the terminal
//! supports them.

use std::io::{self, Write};

use anstyle::{AnsiColor, Color, Style};
use measure::{HeatScale, Measurement, density};

use super::maps;
use crate::output::{self, duration};

/// Height of a map in lines.
const ROWS: usize = 10;
/// Width of a map in characters.
const WIDTH: usize = 36;
/// Width of the labels in characters.
const LABEL: usize = 10;
/// Gap between two maps in characters.
const GAP: usize = 2;

/// Maximum number of maps in the terminal.
const MAX_MAPS: usize = 12;

/// Characters for cells, from few samples to many samples. A cell without samples is drawn as a space.
const LETTERS: [char; 7] = ['.', ':', '-', '=', '+', '#', '@'];
/// Colour of each character in `LETTERS`.
const COLOURS: [AnsiColor; 7] = [
    AnsiColor::Blue,
    AnsiColor::Blue,
    AnsiColor::Cyan,
    AnsiColor::Cyan,
    AnsiColor::Green,
    AnsiColor::Yellow,
    AnsiColor::Red,
];

/// Draws the maps of all methods and settings. Draws as many maps next to each other as fit the width of the
/// terminal.
pub(crate) fn terminal_heat(
    measurement: &Measurement,
    scale: HeatScale,
    out: &mut dyn Write,
) -> io::Result<()> {
    let groups = measurement.groups();
    let (axes, maps) = maps(&groups, scale, (WIDTH, ROWS));
    let most = maps.iter().map(measure::HeatMap::most).max().unwrap_or(0);
    if most == 0 {
        return Ok(());
    }
    output::heading(out, "Over time")?;
    let room = output::width().unwrap_or(120).saturating_sub(LABEL + 2);
    let per_line = (room / (WIDTH + GAP)).max(1);
    for line in maps[..maps.len().min(MAX_MAPS)].chunks(per_line) {
        write!(out, "{:1$}", "", LABEL + 3)?;
        for map in line {
            let title: String = map.title.chars().take(WIDTH).collect();
            let title = output::Printable(&title).to_string();
            write!(out, "{title:<0$}", WIDTH + GAP)?;
        }
        writeln!(out)?;
        for row in (0..axes.rows()).rev() {
            let label = duration(axes.edge_ns(row));
            write!(out, "  {label:>LABEL$}")?;
            for map in line {
                write!(out, "│")?;
                for column in &map.counts {
                    cell(out, column[row], most)?;
                }
                write!(out, "{:1$}", "", GAP - 1)?;
            }
            writeln!(out)?;
        }
        write!(out, "  {:LABEL$}", "")?;
        for map in line {
            let end = duration(map.span_ns);
            let dashes = "─".repeat(WIDTH.saturating_sub(end.chars().count() + 1));
            write!(out, "└{dashes} {end}{:1$}", "", GAP - 1)?;
        }
        writeln!(out)?;
    }
    output::quiet(out, &scale_of(most))?;
    if maps.len() > MAX_MAPS {
        let more = maps.len() - MAX_MAPS;
        output::quiet(
            out,
            &format!("… {more} more; write all with -o FILE.png or FILE.html"),
        )?;
    }
    Ok(())
}

fn cell(out: &mut dyn Write, count: u64, most: u64) -> io::Result<()> {
    if count == 0 {
        return write!(out, " ");
    }
    let step = step(count, most);
    let style = Style::new().fg_color(Some(Color::Ansi(COLOURS[step])));
    write!(out, "{style}{}{style:#}", LETTERS[step])
}

/// Returns the index of the character for a number of samples.
fn step(count: u64, most: u64) -> usize {
    let step = (density(count, most) * LETTERS.len() as f64) as usize;
    step.min(LETTERS.len() - 1)
}

/// Returns the legend: the minimum number of samples for each character.
fn scale_of(most: u64) -> String {
    let least = |place: usize| {
        let (mut low, mut high) = (1, most);
        while low < high {
            let middle = low + (high - low) / 2;
            if step(middle, most) >= place {
                high = middle
            } else {
                low = middle + 1
            }
        }
        (step(low, most) == place).then_some(low)
    };
    let used = (0..LETTERS.len()).filter_map(|place| Some((LETTERS[place], least(place)?)));
    let texts: Vec<String> = used
        .map(|(letter, least)| format!("{letter} {least}"))
        .collect();
    format!("samples in a cell, at least: {}", texts.join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_names_the_least_count_of_each_letter() {
        // If all cells have at most one sample, only one letter is used.
        assert_eq!(scale_of(1), "samples in a cell, at least: @ 1");
        // The index of a letter is 7 · ln(1 + count) / ln(1 + most), rounded down. With most = 126 this is
        // just above log2(1 + count), so letters begin where 1 + count is a power of two, from 2^1 to 2^6.
        assert_eq!(
            scale_of(126),
            "samples in a cell, at least: : 1  - 3  = 7  + 15  # 31  @ 63"
        );
    }
}
