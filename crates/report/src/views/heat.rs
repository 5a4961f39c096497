//! Heat maps: number of values by time and size. Cells with more values have a stronger colour.

use explore::{HeatAnswer, Number};
use maud::{Markup, html};
use wording::{counted, grouped};

use super::axes::{Axes, LEFT, Tick, units};
use super::{figure, measured, moment};

const HEIGHT: f64 = 200.0;

/// Number of colour strengths. Cells of the same strength are drawn as one path.
const STRENGTHS: usize = 12;
/// Strength of a cell with one value, as a share of the maximum strength. The longest waits are often alone in their
/// cells, and these cells must be visible.
const LEAST: f64 = 0.42;

pub(super) fn picture(heat: &HeatAnswer, table: &str) -> Markup {
    let classes = heat.bounds.len().saturating_sub(1);
    let axes = Axes {
        from: heat.start_ns,
        to: heat.end_ns,
        height: HEIGHT,
        ruled: true,
    };
    let most = heat.counts.iter().flatten().copied().max().unwrap_or(0);
    let high = HEIGHT / classes.max(1) as f64;
    let mut paths = vec![String::new(); STRENGTHS + 1];
    for (slice, counts) in heat.counts.iter().enumerate() {
        let slice = i64::try_from(slice).unwrap_or(i64::MAX);
        let from = heat
            .start_ns
            .saturating_add(heat.bucket_ns.saturating_mul(slice));
        let (left, right) = (axes.x(from), axes.x(from.saturating_add(heat.bucket_ns)));
        for (class, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let top = axes.y((class + 1) as f64 / classes.max(1) as f64);
            paths[strength(*count, most)] += &Axes::rectangle(left, top, right - left, high);
        }
    }
    // Only every n-th bound has a label, so that labels do not overlap.
    let every = (classes / 8).max(1);
    let bounds = heat.bounds.iter().enumerate().step_by(every);
    let ticks: Vec<Tick> = bounds
        .map(|(place, bound)| {
            let y = axes.y(place as f64 / classes.max(1) as f64);
            (y, measured(Number::Integer(*bound), &heat.unit))
        })
        .collect();
    let limits = limits(&heat.bounds, table);
    let inside = html! {
        @for (strength, path) in paths.iter().enumerate() {
            @if !path.is_empty() { path d=(path) style={ "fill:" (fill(strength)) } {} }
        }
        @for (share, text) in &limits {
            path.limit d={ "M" (LEFT) "," (units(axes.y(*share))) "H890" } {}
            text.limit x="886" y=(units(axes.y(*share) - 3.0)) text-anchor="end" { (text) }
        }
    };
    let mut caption = format!(
        "{} to {}; up to {} in a cell",
        moment(heat.start_ns),
        moment(heat.end_ns),
        grouped(most)
    );
    if most == 0 {
        caption = "No values are recorded in this time range".to_owned();
    }
    if let Some(least) = heat.bounds.first().filter(|_| heat.below > 0) {
        let least = measured(Number::Integer(*least), &heat.unit);
        caption += &format!(
            "; not drawn: {} up to {least}",
            counted(heat.below, "value", "values")
        );
    }
    if let Some(greatest) = heat.bounds.last().filter(|_| heat.above > 0) {
        let greatest = measured(Number::Integer(*greatest), &heat.unit);
        caption += &format!(
            "; not drawn: {} above {greatest}",
            counted(heat.above, "value", "values")
        );
    }
    figure(axes.over_time(&caption, &ticks, inside), &caption, &[])
}

/// Returns the colour strength for a count.
fn strength(count: u64, most: u64) -> usize {
    let share = match most {
        ..=1 => 1.0,
        most => LEAST + (1.0 - LEAST) * (count as f64).ln() / (most as f64).ln(),
    };
    ((share * STRENGTHS as f64).round() as usize).clamp(1, STRENGTHS)
}

/// Returns the colour for a strength. With increasing strength, the colour changes from the background of the
/// card to the accent colour, and then to the text colour.
fn fill(strength: usize) -> String {
    let share = strength as f64 / STRENGTHS as f64;
    if share < 0.65 {
        format!(
            "color-mix(in srgb,var(--accent) {:.0}%,var(--card))",
            share / 0.65 * 100.0
        )
    } else {
        format!(
            "color-mix(in srgb,var(--ink) {:.0}%,var(--accent))",
            (share - 0.65) / 0.35 * 75.0
        )
    }
}

/// Returns the position and label of Microsoft's limits for interrupt durations. Positions are shares of the
/// axis.
pub(super) fn limits(bounds: &[i64], table: &str) -> Vec<(f64, String)> {
    let of_interrupts = [("isr", "ISR"), ("dpc", "DPC")].into_iter();
    let limits = of_interrupts.filter(|_| table == tables::Table::Interrupts.name());
    let limits = limits.filter_map(|(kind, name)| Some((explain::limit_ns(kind)?, name)));
    let placed = limits.filter_map(|(limit, name)| {
        let share = share(bounds, limit)?;
        let limit = measured(Number::Integer(limit), "ns");
        Some((share, format!("{limit}: {name}")))
    });
    placed.collect()
}

/// Returns the position of a value, as a share of the axis. All classes have the same drawn width.
fn share(bounds: &[i64], value: i64) -> Option<f64> {
    let place = bounds.partition_point(|bound| *bound < value);
    let (low, high) = (bounds.get(place.checked_sub(1)?)?, bounds.get(place)?);
    let within = ((value - low) as f64 / (high - low).max(1) as f64).clamp(0.0, 1.0);
    Some((place as f64 - 1.0 + within) / (bounds.len() - 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_seen_and_the_most_is_strongest() {
        assert_eq!(strength(1, 1), STRENGTHS);
        assert_eq!(strength(1, 1_000), 5);
        assert_eq!(strength(1_000, 1_000), STRENGTHS);
    }

    #[test]
    fn limits_are_where_their_values_are() {
        let bounds = [1_000, 10_000, 100_000, 1_000_000];
        assert_eq!(share(&bounds, 100_000), Some(2.0 / 3.0));
        assert_eq!(share(&bounds, 500), None);
        assert_eq!(share(&bounds, 2_000_000), None);
        let limits = limits(&bounds, "interrupts");
        assert_eq!(limits.len(), 2);
        assert_eq!(limits[1], (2.0 / 3.0, "100.0 µs: DPC".to_owned()));
        assert!(super::limits(&bounds, "disk_io").is_empty());
    }
}
