//! Histograms by group.

use explore::{HistogramAnswer, Number};
use maud::{Markup, html};
use wording::{counted, grouped};

use super::axes::{Axes, Tick, units, values};
use super::{colour, figure, heat, measured};

const HEIGHT: f64 = 160.0;

pub(super) fn picture(histogram: &HistogramAnswer, table: &str) -> Markup {
    let classes = histogram.bounds.len().saturating_sub(1);
    let axes = Axes {
        from: 0,
        to: classes.max(1) as i64,
        height: HEIGHT,
        ruled: true,
    };
    let sums: Vec<u64> = (0..classes)
        .map(|class| {
            let counts = histogram.series.iter().map(|one| &one.counts);
            counts.filter_map(|counts| counts.get(class)).sum()
        })
        .collect();
    let most = sums.iter().copied().max().unwrap_or(0).max(1) as f64;
    let mut below = vec![0.0; classes];
    let mut paths: Vec<String> = Vec::new();
    for series in &histogram.series {
        let mut path = String::new();
        for (class, count) in series.counts.iter().enumerate().take(classes) {
            if *count == 0 {
                continue;
            }
            let from = below[class];
            below[class] += *count as f64;
            let (top, bottom) = (axes.y(below[class] / most), axes.y(from / most));
            let (left, right) = (axes.x(class as i64), axes.x(class as i64 + 1));
            // Draws each class with a minimum height, so that one value is visible next to thousands.
            let high = (bottom - top).max(0.7);
            path += &Axes::rectangle(left + 0.5, bottom - high, right - left - 1.0, high);
        }
        paths.push(path);
    }
    let ticks: Vec<Tick> = values(most, |value| grouped(value.round() as u64))
        .into_iter()
        .map(|(share, text)| (axes.y(share), text))
        .collect();
    let every = (classes / 9).max(1);
    let bounds = histogram.bounds.iter().enumerate().step_by(every);
    let bounds: Vec<Tick> = bounds
        .map(|(place, bound)| {
            let text = measured(Number::Integer(*bound), &histogram.unit);
            (axes.x(place as i64), text)
        })
        .collect();
    let limits = heat::limits(&histogram.bounds, table);
    let inside = html! {
        @for (place, path) in paths.iter().enumerate() {
            @if !path.is_empty() { path d=(path) style={ "fill:" (colour(place)) } {} }
        }
        @for (share, text) in &limits {
            @let x = axes.x(0) + share * (axes.x(axes.to) - axes.x(0));
            path.limit d={ "M" (units(x)) ",8V" (units(axes.y(0.0))) } {}
            text.limit x=(units(x + 3.0)) y="16" { (text) }
        }
    };
    let all: u64 = sums.iter().sum();
    let mut caption = format!("Distribution of {}", counted(all, "value", "values"));
    let left_out: u64 = histogram
        .series
        .iter()
        .map(|one| one.above + one.below)
        .sum();
    if left_out > 0 {
        caption += &format!("; {} outside the axis", grouped(left_out));
    }
    if histogram.rest > 0 {
        caption += &format!(
            "; {} more groups are not drawn",
            grouped(histogram.rest as u64)
        );
    }
    let colours = histogram.series.iter().enumerate();
    let colours: Vec<(String, String)> = colours
        .map(|(place, series)| (series.label.clone(), colour(place)))
        .collect();
    figure(
        axes.framed(&caption, &ticks, &bounds, inside),
        &caption,
        &colours,
    )
}
