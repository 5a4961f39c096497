//! Heat maps of the measurements before and after a change: latency over time, next to each other.

use maud::{Markup, PreEscaped, html};
use measure::{HeatAxes, HeatMap, HeatScale, run_length_ns};
use prove::{Error, Group, Sides, Unit};

/// Number of columns and number of rows of a heat map.
const SIZE: (usize, usize) = (120, 80);

/// Draws a heat map of the runs before the change, and one of the runs after it. Returns `None` if the values are
/// not times, if the start times of the samples are unknown, or if no latency is above 0.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub(super) fn maps(sides: &Sides) -> Result<Option<Markup>, Error> {
    if sides.before.unit != Unit::Nanoseconds {
        return Ok(None);
    }
    // Minimum latency above 0, and maximum latency, in nanoseconds.
    let mut latencies: Option<(i64, i64)> = None;
    let mut spans = [0_i64; 2];
    let both = [&sides.before, &sides.after];
    for (group, span) in both.into_iter().zip(&mut spans) {
        for run in &group.runs {
            let Some(samples) = run.timed()? else {
                return Ok(None);
            };
            *span = span.saturating_add(run_length_ns(integer_samples(&samples)));
            let known = integer_samples(&samples).filter_map(|(_, latency)| latency);
            for latency in known.filter(|latency| *latency > 0) {
                let (low, high) = latencies.unwrap_or((latency, latency));
                latencies = Some((low.min(latency), high.max(latency)));
            }
        }
    }
    let Some((low, high)) = latencies else {
        return Ok(None);
    };
    let axes = HeatAxes::new(low..high, HeatScale::Logarithmic, SIZE.0, SIZE.1);
    let map = |group: &Group, span: i64, title: &str| -> Result<HeatMap, Error> {
        let mut growing = axes.begin(span);
        for run in &group.runs {
            let samples = run.timed()?.unwrap_or_default();
            growing.add_run(integer_samples(&samples));
        }
        Ok(growing.finish(title))
    };
    let maps = [
        map(&sides.before, spans[0], "before the change")?,
        map(&sides.after, spans[1], "after the change")?,
    ];
    Ok(Some(html! {
        figure.heat {
            h3 { "Latency over time" }
            // The rows of the picture need no further escaping, because the titles of the maps are constants.
            @for row in measure::heat_svg_rows(&axes, &maps) { (PreEscaped(row)) }
            p.note { "Time is to the right, latency is upward; the runs of a side follow each other without gaps." }
        }
    }))
}

/// Returns the samples with their values rounded to nanoseconds.
fn integer_samples(
    samples: &[(i64, Option<f64>)],
) -> impl Iterator<Item = (i64, Option<i64>)> + Clone {
    let samples = samples.iter();
    samples.map(|(start, value)| (*start, value.map(|ns| ns.round() as i64)))
}
