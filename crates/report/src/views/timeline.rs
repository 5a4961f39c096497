//! Series over time.

use std::fmt::Write;

use explore::{Drawn, Number, TimelineAnswer};
use maud::{Markup, html};
use wording::grouped;

use super::axes::{Axes, Tick, units, values};
use super::{Panel, SERIES, colour, figure, measured, moment};

const HEIGHT: f64 = 160.0;

/// Drawn series.
struct Line {
    label: String,
    colour: String,
    values: Vec<f64>,
}

pub(super) fn picture(timeline: &TimelineAnswer, panel: &Panel) -> Markup {
    let numbers = |values: &[Option<Number>]| -> Vec<f64> {
        let number = |value: &Option<Number>| match value {
            Some(Number::Integer(integer)) => *integer as f64,
            Some(Number::Real(real)) => *real,
            None => 0.0,
        };
        values.iter().map(number).collect()
    };
    let stacked = panel.view.graph.drawn != Some(Drawn::Lines);
    let series = timeline.series.iter().enumerate();
    let series = series.filter(|(_, one)| !panel.hidden.contains(&one.id));
    let mut lines: Vec<Line> = series
        .map(|(place, one)| Line {
            label: one.label.clone(),
            colour: colour(place % SERIES),
            values: numbers(&one.values),
        })
        .collect();
    if let Some(rest) = timeline.rest.as_ref().filter(|_| !panel.rest_hidden) {
        lines.push(Line {
            label: format!("{} others", grouped(rest.count as u64)),
            colour: colour(SERIES),
            values: numbers(&rest.values),
        });
    }
    let tops = tops(lines.iter().map(|line| line.values.as_slice()), stacked);
    let most = tops.iter().flatten().copied().fold(0.0, f64::max);
    let axes = Axes {
        from: timeline.start_ns,
        to: timeline.end_ns,
        height: HEIGHT,
        ruled: true,
    };
    let text = |value: f64| {
        if timeline.spread {
            // The value of a bucket is a sum of durations. Divided by the length of the bucket, it is the average number of
            // rows at a time.
            format!("{:.2}", value / timeline.bucket_ns.max(1) as f64)
        } else {
            measured(Number::Real(value), &timeline.unit)
        }
    };
    let at_once = if timeline.spread { " at once" } else { "" };
    let scale = if timeline.spread {
        timeline.bucket_ns.max(1) as f64
    } else {
        1.0
    };
    let ticks: Vec<Tick> = values(most / scale, |value| text(value * scale))
        .into_iter()
        .map(|(share, text)| (axes.y(share), text))
        .collect();
    let y = |value: f64| axes.y(if most > 0.0 { value / most } else { 0.0 });
    let x = |bucket: usize| {
        let bucket = i64::try_from(bucket).unwrap_or(i64::MAX);
        let since = timeline.bucket_ns.saturating_mul(bucket);
        axes.x(timeline.start_ns.saturating_add(since))
    };
    let path = |place: usize| {
        let mut path = String::new();
        for (bucket, top) in tops[place].iter().enumerate() {
            let step = if bucket == 0 { 'M' } else { 'L' };
            let (from, to) = (units(x(bucket)), units(x(bucket + 1)));
            let _ = write!(path, "{step}{from},{}H{to}", units(y(*top)));
        }
        if stacked {
            let below = place.checked_sub(1).map(|below| &tops[below]);
            for bucket in (0..tops[place].len()).rev() {
                let bottom = below.map_or(0.0, |below| below[bucket]);
                let (from, to) = (units(x(bucket)), units(x(bucket + 1)));
                let _ = write!(path, "L{to},{}H{from}", units(y(bottom)));
            }
            path.push('Z');
        }
        path
    };
    let inside = html! {
        @for (place, line) in lines.iter().enumerate() {
            @if stacked {
                path d=(path(place)) style={ "fill:" (line.colour) } {}
            } @else {
                path d=(path(place)) style={ "fill:none;stroke:" (line.colour) } {}
            }
        }
    };
    let caption = format!(
        "{} to {}; at most {}{at_once}",
        moment(timeline.start_ns),
        moment(timeline.end_ns),
        text(most)
    );
    let colours: Vec<(String, String)> = lines
        .iter()
        .map(|line| (line.label.clone(), line.colour.clone()))
        .collect();
    figure(axes.over_time(&caption, &ticks, inside), &caption, &colours)
}

/// Returns the upper edge of each series in each time bucket. If the series are stacked, each series starts
/// at the upper edge of the previous series.
fn tops<'v>(series: impl Iterator<Item = &'v [f64]>, stacked: bool) -> Vec<Vec<f64>> {
    let mut tops: Vec<Vec<f64>> = Vec::new();
    for values in series {
        let below = tops.last().filter(|_| stacked);
        let top = values.iter().enumerate();
        let top = top.map(|(bucket, value)| value + below.map_or(0.0, |below| below[bucket]));
        let top = top.collect();
        tops.push(top);
    }
    tops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacked_series_lie_on_each_other() {
        let series = [vec![1.0, 2.0], vec![10.0, 0.0]];
        let of = |stacked| tops(series.iter().map(Vec::as_slice), stacked);
        assert_eq!(of(true), [[1.0, 2.0], [11.0, 2.0]]);
        assert_eq!(of(false), [[1.0, 2.0], [10.0, 0.0]]);
    }
}
