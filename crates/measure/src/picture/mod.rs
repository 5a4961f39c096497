//! Pictures of heat maps, two side by side, with a colour scale.

mod raster;
mod svg;

use crate::heat::{HeatAxes, HeatMap};

/// Colour: the values of red, green and blue.
type Rgb = [u8; 3];

const PAPER: Rgb = [255, 255, 255];
const INK: Rgb = [40, 40, 40];
const FRAME: Rgb = [200, 200, 200];

/// Colours from few to many samples: pale yellow, orange, red, and then dark purple. The colours stay
/// distinguishable in grey. The source is matplotlib's "inferno" (CC0), in reverse order.
const RAMP: [Rgb; 6] = [
    [252, 240, 164],
    [252, 181, 25],
    [237, 105, 37],
    [187, 55, 84],
    [115, 29, 109],
    [35, 12, 76],
];

/// Width and height of a cell in pixels.
const CELL: usize = 4;

/// Width and height of a letter in pixels.
const LETTER: usize = 8;

/// Width of the area left of a map, in pixels.
const LEFT: usize = 9 * LETTER;

/// Height of the area above a map, in pixels.
const TOP: usize = 3 * LETTER;

/// Height of the area below a map, in pixels.
const BOTTOM: usize = 4 * LETTER;

/// Width of a gap in pixels.
const GAP: usize = 2 * LETTER;

/// Number of maps in a row. This number of maps fits on a page.
const PER_ROW: usize = 2;

/// Height of the colour scale in pixels.
const SCALE: usize = 3 * LETTER;

/// A drawing surface.
trait Canvas {
    fn rectangle(&mut self, at: (usize, usize), size: (usize, usize), colour: Rgb);
    /// Draws text with its upper left corner at the position `at`.
    fn text(&mut self, at: (usize, usize), text: &str);
}

/// Draws the maps as an SVG document.
pub fn heat_svg(axes: &HeatAxes, maps: &[HeatMap]) -> String {
    let mut svg = svg::Svg::new(size(axes, maps));
    draw(&mut svg, axes, maps);
    svg.finish()
}

/// Draws each row of maps as a separate SVG document. The last document contains the colour scale. All
/// documents have the same width. A page can break between two documents.
pub fn heat_svg_rows(axes: &HeatAxes, maps: &[HeatMap]) -> Vec<String> {
    let most = most(maps);
    let (width, _) = size(axes, maps);
    let row = |row: &[HeatMap]| {
        let mut svg = svg::Svg::new((width, row_height(axes)));
        draw_row(&mut svg, TOP, axes, row, most);
        svg.finish()
    };
    let mut rows: Vec<String> = maps.chunks(PER_ROW).map(row).collect();
    let mut scale = svg::Svg::new((width, SCALE));
    draw_scale(&mut scale, (LEFT, 0), most);
    rows.push(scale.finish());
    rows
}

/// Draws the maps as a PNG file.
pub fn heat_png(axes: &HeatAxes, maps: &[HeatMap]) -> Vec<u8> {
    let mut raster = raster::Raster::new(size(axes, maps));
    draw(&mut raster, axes, maps);
    raster.png()
}

/// Returns the density of a cell, from 0 (no sample) to 1 (the maximum of all maps). The density is
/// logarithmic. Single samples are therefore visible next to thousands of samples.
pub fn density(count: u64, most: u64) -> f64 {
    match count {
        0 => 0.0,
        _ => (1.0 + count as f64).ln() / (1.0 + most.max(count) as f64).ln(),
    }
}

/// Returns the colour of a density above 0.
pub fn heat_colour(density: f64) -> Rgb {
    let at = density.clamp(0.0, 1.0) * (RAMP.len() - 1) as f64;
    let from = (at as usize).min(RAMP.len() - 2);
    let share = at - from as f64;
    std::array::from_fn(|part| {
        let (low, high) = (RAMP[from][part], RAMP[from + 1][part]);
        (f64::from(low) + share * (f64::from(high) - f64::from(low))).round() as u8
    })
}

/// Formats a duration with few letters, for example `1.50 µs`.
pub fn short_time(ns: i64) -> String {
    let (value, unit) = match ns.unsigned_abs() {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    match value.abs() {
        100.0.. => format!("{value:.0} {unit}"),
        10.0.. => format!("{value:.1} {unit}"),
        _ => format!("{value:.2} {unit}"),
    }
}

fn map_size(axes: &HeatAxes, map: &HeatMap) -> (usize, usize) {
    (map.counts.len() * CELL, axes.rows() * CELL)
}

fn size(axes: &HeatAxes, maps: &[HeatMap]) -> (usize, usize) {
    let row = |maps: &[HeatMap]| {
        let maps = maps.iter().map(|map| LEFT + map_size(axes, map).0 + GAP);
        maps.sum::<usize>()
    };
    let width = maps.chunks(PER_ROW).map(row).max().unwrap_or(0);
    let rows = maps.len().div_ceil(PER_ROW);
    let scale = LEFT + scale_width(most(maps));
    (width.max(scale), rows * row_height(axes) + SCALE)
}

fn row_height(axes: &HeatAxes) -> usize {
    TOP + axes.rows() * CELL + BOTTOM
}

fn most(maps: &[HeatMap]) -> u64 {
    maps.iter().map(HeatMap::most).max().unwrap_or(0)
}

fn draw(canvas: &mut impl Canvas, axes: &HeatAxes, maps: &[HeatMap]) {
    let most = most(maps);
    let mut top = TOP;
    for row in maps.chunks(PER_ROW) {
        draw_row(canvas, top, axes, row, most);
        top += row_height(axes);
    }
    draw_scale(canvas, (LEFT, top - TOP), most);
}

fn draw_row(canvas: &mut impl Canvas, top: usize, axes: &HeatAxes, maps: &[HeatMap], most: u64) {
    let mut left = LEFT;
    for map in maps {
        draw_map(canvas, (left, top), axes, map, most);
        left += map_size(axes, map).0 + GAP + LEFT;
    }
}

fn draw_map(
    canvas: &mut impl Canvas,
    (left, top): (usize, usize),
    axes: &HeatAxes,
    map: &HeatMap,
    most: u64,
) {
    let (width, height) = map_size(axes, map);
    // Draws as many latency labels as there is room for. Each label is at the edge of a row.
    let step = axes.rows().div_ceil(8).max(1);
    for row in (0..=axes.rows()).step_by(step) {
        let y = top + height - row * CELL;
        let label = short_time(axes.edge_ns(row));
        let x = (left - LETTER).saturating_sub(length(&label));
        canvas.text((x, y.saturating_sub(LETTER / 2)), &label);
        canvas.rectangle((left - LETTER / 2, y), (LETTER / 2, 1), FRAME);
    }
    frame(canvas, (left, top), (width, height));
    // A title that is longer than its map is cut off.
    let title: String = map.title.chars().take(width / LETTER).collect();
    canvas.text((left, top - 2 * LETTER), &title);
    for (column, rows) in map.counts.iter().enumerate() {
        for (row, count) in rows.iter().enumerate().filter(|(_, count)| **count > 0) {
            let at = (left + column * CELL, top + height - (row + 1) * CELL);
            canvas.rectangle(at, (CELL, CELL), heat_colour(density(*count, most)));
        }
    }
    let end = short_time(map.span_ns);
    canvas.text((left, top + height + LETTER), "0 s");
    let x = left + width.saturating_sub(length(&end));
    canvas.text((x, top + height + LETTER), &end);
}

/// Returns the width of a text in pixels.
fn length(text: &str) -> usize {
    text.chars().count() * LETTER
}

const SCALE_TITLE: &str = "samples per cell:";

/// Returns the counts that the colour scale shows: powers of ten, and the maximum.
fn scale_counts(most: u64) -> impl Iterator<Item = u64> {
    let tens = std::iter::successors(Some(1u64), |ten| ten.checked_mul(10));
    tens.take_while(move |ten| *ten < most)
        .chain(Some(most).filter(|most| *most > 0))
}

/// Returns the width in pixels that a count needs on the colour scale: its box, its text and the gap.
fn scale_step(count: u64) -> usize {
    3 * LETTER + length(&count.to_string())
}

fn scale_width(most: u64) -> usize {
    let steps = scale_counts(most).map(scale_step).sum::<usize>();
    length(SCALE_TITLE) + LETTER + steps
}

/// Draws the colour scale, which shows the number of samples for each colour.
fn draw_scale(canvas: &mut impl Canvas, (left, top): (usize, usize), most: u64) {
    canvas.text((left, top), SCALE_TITLE);
    let mut left = left + length(SCALE_TITLE) + LETTER;
    for count in scale_counts(most) {
        let colour = heat_colour(density(count, most));
        canvas.rectangle((left, top), (LETTER, LETTER), colour);
        canvas.text((left + LETTER + LETTER / 2, top), &count.to_string());
        left += scale_step(count);
    }
}

fn frame(canvas: &mut impl Canvas, (x, y): (usize, usize), (width, height): (usize, usize)) {
    for (at, size) in [
        ((x - 1, y - 1), (width + 2, 1)),
        ((x - 1, y + height), (width + 2, 1)),
        ((x - 1, y - 1), (1, height + 2)),
        ((x + width, y - 1), (1, height + 2)),
    ] {
        canvas.rectangle(at, size, FRAME);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Group, HeatScale, Probe, Sample, Series};

    fn drawn() -> (HeatAxes, Vec<HeatMap>) {
        let mut series = Series::new(Probe::Sleep, "m", "s", 0);
        series.samples = (0..10)
            .map(|n| (10_000 * n, 1_000 * (n + 1)))
            .map(|(start, took)| Sample::timed(start, start, start + took))
            .collect();
        let group = Group {
            first: &series,
            runs: vec![&series],
        };
        let axes = HeatAxes::around(std::slice::from_ref(&group), HeatScale::Linear, 20, 10);
        let maps = ["a & <b>", "second"].map(|title| axes.map(&group, title));
        (axes, maps.into())
    }

    #[test]
    fn an_svg_has_a_rectangle_per_filled_cell() {
        let (axes, mut maps) = drawn();
        maps.push(maps[0].clone());
        let svg = heat_svg(&axes, &maps);
        let cells = maps.iter().flat_map(|map| map.counts.iter().flatten());
        let cells = cells.filter(|count| **count > 0).count();
        let drawn = svg.matches("width=\"4\" height=\"4\"").count();
        assert_eq!(drawn, cells);
        assert!(
            svg.contains("a &amp; &lt;b&gt;"),
            "names of methods are escaped"
        );
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        // The third map starts a second row, which is below the first row.
        let third = svg.rmatch_indices("a &amp;").next().unwrap().0;
        let place = |at: usize| svg[..at].rsplit_once("<text ").unwrap().1.to_owned();
        let x = format!("x=\"{LEFT}\"");
        assert!(place(third).starts_with(&x), "{}", place(third));
        assert_ne!(place(third), place(svg.find("a &amp;").unwrap()));
        assert!(svg.contains(SCALE_TITLE));
    }

    #[test]
    fn separate_rows_match_the_picture() {
        let (axes, mut maps) = drawn();
        maps.push(maps[0].clone());
        // The second map contains the maximum of all maps. The colours of the last row therefore depend on the other
        // rows.
        maps[1].counts[0][0] = 50;
        let cells = |svg: &str| {
            let line = |line: &&str| line.contains("width=\"4\" height=\"4\"");
            let colour = |line: &str| line.rsplit_once("fill=").unwrap().1.to_owned();
            svg.lines().filter(line).map(colour).collect::<Vec<_>>()
        };
        let rows = heat_svg_rows(&axes, &maps);
        let [first, second, scale] = &rows[..] else {
            panic!("{} parts", rows.len());
        };
        assert!(scale.contains(SCALE_TITLE) && scale.contains(">50<"));
        let apart = [cells(first), cells(second)].concat();
        assert_eq!(apart, cells(&heat_svg(&axes, &maps)));
        let width = |svg: &str| {
            svg.split("viewBox=")
                .nth(1)
                .unwrap()
                .split(' ')
                .nth(2)
                .unwrap()
                .to_owned()
        };
        assert!(rows.iter().all(|row| width(row) == width(first)));
    }

    #[test]
    fn the_scale_ends_with_the_maximum() {
        let counts = |most| scale_counts(most).collect::<Vec<_>>();
        assert_eq!(counts(1_234), [1, 10, 100, 1_000, 1_234]);
        assert_eq!(counts(10), [1, 10]);
        assert_eq!(counts(1), [1]);
        assert!(counts(0).is_empty());
    }

    #[test]
    fn a_png_has_the_colours_of_the_cells() {
        let (axes, maps) = drawn();
        let png = heat_png(&axes, &maps);
        let mut reader = png::Decoder::new(std::io::Cursor::new(png))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!(
            (info.width as usize, info.height as usize),
            size(&axes, &maps)
        );
        let pixel = |x: usize, y: usize| {
            let at = (y * info.width as usize + x) * 3;
            [pixels[at], pixels[at + 1], pixels[at + 2]]
        };
        // The first sample is in the lowest row of the first column. The cell above it is empty.
        let bottom = TOP + axes.rows() * CELL;
        let count = maps[0].counts[0][0];
        assert!(count > 0 && maps[0].counts[0][9] == 0);
        assert_eq!(
            pixel(LEFT + 1, bottom - 2),
            heat_colour(density(count, maps[0].most()))
        );
        assert_eq!(pixel(LEFT + 1, TOP + 2), PAPER);
    }

    #[test]
    fn colours_darken_with_density() {
        let brightness = |count| {
            let colour = heat_colour(density(count, 10_000));
            colour.iter().map(|part| u32::from(*part)).sum::<u32>()
        };
        let levels = [1, 10, 100, 1_000, 10_000].map(brightness);
        assert!(levels.is_sorted_by(|a, b| a > b), "{levels:?}");
        assert_eq!(density(0, 10), 0.0);
        assert_eq!(density(10, 10), 1.0);
        assert!(density(1, 1_000_000) > 0.04);
    }

    #[test]
    fn durations_are_formatted_shortly() {
        let texts = [-7, 999, 1_500, 12_345, 15_625_000, 2_000_000_000].map(short_time);
        assert_eq!(
            texts,
            ["-7 ns", "999 ns", "1.50 µs", "12.3 µs", "15.6 ms", "2.00 s"]
        );
    }
}
