//! Heat maps in the terminal: denser letters for more samples, in colour where there is colour.

use std::io::{self, Write};

use anstyle::{AnsiColor, Color, Style};
use measure::{HeatScale, Measurement, density};

use super::maps;
use crate::output::{self, duration};

/// Rows of a map, and the width of one, of its labels and between two.
const ROWS: usize = 10;
const WIDTH: usize = 36;
const LABEL: usize = 10;
const GAP: usize = 2;

/// Maps beyond are in pictures only.
const MOST: usize = 12;

/// From few samples to many. A cell without any is empty.
const LETTERS: [char; 7] = ['.', ':', '-', '=', '+', '#', '@'];
const COLOURS: [AnsiColor; 7] = [
    AnsiColor::Blue,
    AnsiColor::Blue,
    AnsiColor::Cyan,
    AnsiColor::Cyan,
    AnsiColor::Green,
    AnsiColor::Yellow,
    AnsiColor::Red,
];

/// Draws the maps of all methods and settings, as many side by side as there is room for.
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
    let beside = (room / (WIDTH + GAP)).max(1);
    for line in maps[..maps.len().min(MOST)].chunks(beside) {
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
        for _ in line {
            let end = duration(axes.span_ns());
            let dashes = "─".repeat(WIDTH.saturating_sub(end.chars().count() + 1));
            write!(out, "└{dashes} {end}{:1$}", "", GAP - 1)?;
        }
        writeln!(out)?;
    }
    if maps.len() > MOST {
        let more = maps.len() - MOST;
        output::quiet(
            out,
            &format!("… {more} more; -o FILE.png or .html shows all"),
        )?;
    }
    Ok(())
}

fn cell(out: &mut dyn Write, count: u64, most: u64) -> io::Result<()> {
    if count == 0 {
        return write!(out, " ");
    }
    let step = (density(count, most) * LETTERS.len() as f64) as usize;
    let step = step.min(LETTERS.len() - 1);
    let style = Style::new().fg_color(Some(Color::Ansi(COLOURS[step])));
    write!(out, "{style}{}{style:#}", LETTERS[step])
}
