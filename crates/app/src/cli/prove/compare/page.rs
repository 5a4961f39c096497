//! Comparison as one HTML file with pictures.

use maud::{Markup, html};
use prove::{Design, Histogram, Judgement, Picture, Question, Scale, Unit};
use report::still_page;

use super::{Answer, cells, headings, headline, ratio_text, remarks, value_text};
use crate::output::Printable;

/// Formats comparisons as an HTML page. Each comparison has its pictures. It also has heat maps if the start
/// times of its samples are known.
pub(super) fn page(answer: &Answer, drawn: &[(Picture, Option<Markup>)]) -> String {
    let question = answer.question;
    let header = html! {
        p.what { "Did the change help?" }
        h1 { "laglab prove compare" }
    };
    let main = html! {
        @for (judgement, (picture, heat)) in answer.compared.iter().zip(drawn) {
            section {
                h2 { (Printable(&judgement.name)) }
                p { (headline(judgement, question)) }
                (table(judgement, question))
                (pictures(picture, judgement))
                @if let Some(heat) = heat { (heat) }
                @for remark in remarks(judgement) { p.note { (Printable(&remark)) } }
                (warnings(&judgement.doubts))
            }
        }
        (warnings(&answer.doubts))
    };
    still_page("laglab prove compare", STYLE, &header, &main)
}

fn warnings(doubts: &[String]) -> Markup {
    html! { @for doubt in doubts { p.warning { "Doubt: " (Printable(doubt)) } } }
}

const STYLE: &str = "figure { display: inline-block; width: min(100%, 40rem); vertical-align: top; \
     margin: 0.8rem 1rem 0 0; break-inside: avoid; } figure svg { display: block; width: 100%; height: auto; } \
     figure.heat { width: 100%; } figure:not(.heat) svg text { font: 11px system-ui, sans-serif; fill: var(--ink-2); } .axis { stroke: var(--ink-2); } \
     .before { fill: var(--thread); stroke: var(--thread); } .after { fill: var(--more); stroke: var(--more); } \
     .pair { stroke: var(--ink-2); opacity: 0.35; } \
     .bounds { stroke: var(--ink); stroke-width: 2; } .centre { fill: var(--ink); }";

fn table(judgement: &Judgement, question: Question) -> Markup {
    let is_figure = |column: usize| (1..=3).contains(&column);
    html! {
        table {
            thead { tr { @for (column, heading) in headings(judgement).iter().enumerate() {
                th.figure[is_figure(column)] scope="col" { (heading) }
            } } }
            tbody { @for line in &judgement.lines {
                tr { @for (column, cell) in cells(line, judgement, question).iter().enumerate() {
                    td.figure[is_figure(column)] { (Printable(cell)) }
                } }
            } }
        }
    }
}

/// Width and height of a picture.
const SIZE: (f64, f64) = (560.0, 260.0);
/// Margins around the plot of a picture: left, top, right, bottom.
const MARGINS: [f64; 4] = [66.0, 12.0, 12.0, 34.0];

/// Vertical axis: linear or logarithmic, upwards.
#[derive(Clone, Copy)]
struct Axis {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    /// True if all values are equal.
    is_flat: bool,
}

impl Axis {
    /// Returns an axis that contains all values, with some space at both ends. Values that are not positive
    /// need a linear axis.
    fn around(values: impl Iterator<Item = f64> + Clone, is_logarithmic: bool) -> Axis {
        let is_logarithmic = is_logarithmic && values.clone().all(|value| value > 0.0);
        let scale = |value: f64| if is_logarithmic { value.ln() } else { value };
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(scale(value)), high.max(scale(value)))
            });
        let is_flat = low >= high;
        let space = if is_flat {
            low.abs().max(1.0)
        } else {
            (high - low) * 0.06
        };
        Axis {
            low: low - space,
            high: high + space,
            is_logarithmic,
            is_flat,
        }
    }

    /// Returns the vertical position of a value in the picture. Values outside the axis are drawn at its end.
    fn y(self, value: f64) -> f64 {
        let value = if self.is_logarithmic {
            value.ln()
        } else {
            value
        };
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        let height = SIZE.1 - MARGINS[1] - MARGINS[3];
        MARGINS[1] + height * (1.0 - share)
    }

    /// Returns values for labels, from bottom to top. If all values are equal, only this value has a label.
    fn ticks(self) -> impl Iterator<Item = f64> {
        let places = if self.is_flat { 2..=2 } else { 0..=4 };
        places.map(move |tick| {
            let value = self.low + (self.high - self.low) * f64::from(tick) / 4.0;
            if self.is_logarithmic {
                value.exp()
            } else {
                value
            }
        })
    }

    /// Draws the axis with its labels.
    fn drawn(self, label: impl Fn(f64) -> String) -> Markup {
        html! {
            @for value in self.ticks() {
                text x=(round(MARGINS[0] - 6.0)) y=(round(self.y(value) + 4.0)) text-anchor="end" { (label(value)) }
            }
            line.axis x1=(MARGINS[0]) x2=(MARGINS[0]) y1=(MARGINS[1]) y2=(SIZE.1 - MARGINS[3]) {}
        }
    }
}

/// Returns the horizontal position of the item with index `place` among `count` items.
fn x(place: usize, count: usize) -> f64 {
    let width = SIZE.0 - MARGINS[0] - MARGINS[2];
    MARGINS[0] + width * (place as f64 + 0.5) / count.max(1) as f64
}

/// Rounds a coordinate, so that pages stay small.
fn round(coordinate: f64) -> f64 {
    (coordinate * 10.0).round() / 10.0
}

fn pictures(picture: &Picture, judgement: &Judgement) -> Markup {
    html! {
        @if !picture.shifts.is_empty() { (shift_function(picture, judgement)) }
        @if picture.runs.iter().flatten().any(Option::is_some) { (runs(picture, judgement)) }
        @if let Some(histogram) = &picture.histogram { (back_to_back(histogram, judgement.unit)) }
    }
}

fn figure(title: &str, content: &Markup, note: &str) -> Markup {
    html! {
        figure {
            h3 { (title) }
            svg viewBox={ "0 0 " (SIZE.0) " " (SIZE.1) } role="img" aria-label=(title) { (content) }
            p.note { (note) }
        }
    }
}

/// Draws the change of each quantile with its bounds.
fn shift_function(picture: &Picture, judgement: &Judgement) -> Markup {
    let shifts = &picture.shifts;
    let is_ratio = shifts
        .iter()
        .all(|shift| shift.comparison.scale == Scale::Ratio);
    let none = if is_ratio { 1.0 } else { 0.0 };
    let bounds = shifts.iter().flat_map(|shift| {
        let change = shift.comparison.change;
        [change.low, change.high]
    });
    let axis = Axis::around(bounds.chain([none]), is_ratio);
    let label = |value: f64| {
        if is_ratio {
            format!("× {}", ratio_text(value))
        } else {
            value_text(value, judgement.unit)
        }
    };
    let content = html! {
        line.axis x1=(MARGINS[0]) x2=(SIZE.0 - MARGINS[2]) y1=(round(axis.y(none))) y2=(round(axis.y(none))) stroke-dasharray="4 4" {}
        @for (place, shift) in shifts.iter().enumerate() {
            @let (x, change) = (round(x(place, shifts.len())), shift.comparison.change);
            line.bounds x1=(x) x2=(x) y1=(round(axis.y(change.low))) y2=(round(axis.y(change.high))) {}
            circle.centre cx=(x) cy=(round(axis.y(change.centre))) r="4" {}
            text x=(x) y=(SIZE.1 - MARGINS[3] + 16.0) text-anchor="middle" { "p" (round(shift.share * 100.0)) }
        }
        (axis.drawn(label))
    };
    let note = "Change of each quantile with its 95 % bounds. The dashed line means no change.";
    let looks = if judgement.has_looks {
        " The bounds are too narrow, because they do not consider that the measurement could end early."
    } else {
        ""
    };
    figure("Shift function", &content, &format!("{note}{looks}"))
}

/// Draws the median of each run.
fn runs(picture: &Picture, judgement: &Judgement) -> Markup {
    let [before, after] = &picture.runs;
    let values = before.iter().chain(after).flatten().copied();
    let axis = Axis::around(values, true);
    let count = before.len().max(after.len());
    let is_paired = judgement.design == Design::Paired;
    // The dots of a pair are drawn next to each other.
    let apart = 0.15 * (x(1, count) - x(0, count)).min(40.0);
    let content = html! {
        @for place in 0..count {
            @let middle = x(place, count);
            @let (left, right) = (round(middle - apart), round(middle + apart));
            @let dots = (before.get(place).copied().flatten(), after.get(place).copied().flatten());
            @if let (Some(old), Some(new), true) = (dots.0, dots.1, is_paired) {
                line.pair x1=(left) x2=(right) y1=(round(axis.y(old))) y2=(round(axis.y(new))) {}
            }
            @if let Some(old) = dots.0 { circle.before cx=(left) cy=(round(axis.y(old))) r="3.5" {} }
            @if let Some(new) = dots.1 { circle.after cx=(right) cy=(round(axis.y(new))) r="3.5" {} }
        }
        text x=(round(x(0, count))) y=(SIZE.1 - MARGINS[3] + 16.0) text-anchor="middle" { "run 1" }
        @if count > 1 {
            text x=(round(x(count - 1, count))) y=(SIZE.1 - MARGINS[3] + 16.0) text-anchor="middle" { (count) }
        }
        (axis.drawn(|value| value_text(value, judgement.unit)))
    };
    let note = if is_paired {
        "Median of each run: blue before, red after the change. A line joins the runs of a pair."
    } else {
        "Median of each run: blue before, red after the change."
    };
    figure("Runs", &content, note)
}

/// Draws the distributions before (upward) and after (downward) the change.
fn back_to_back(histogram: &Histogram, unit: Unit) -> Markup {
    let [before, after] = &histogram.shares;
    let greatest = before.iter().chain(after).copied().fold(0.0, f64::max);
    let half = (SIZE.1 - MARGINS[1] - MARGINS[3]) / 2.0;
    let middle = MARGINS[1] + half;
    let bins = before.len();
    let width = (SIZE.0 - MARGINS[0] - MARGINS[2]) / bins as f64;
    let height = |share: f64| round(half * share / greatest.max(f64::MIN_POSITIVE));
    let at = |share: f64| {
        if histogram.is_logarithmic {
            histogram.low * (histogram.high / histogram.low).powf(share)
        } else {
            histogram.low + (histogram.high - histogram.low) * share
        }
    };
    let content = html! {
        @for (bin, (old, new)) in before.iter().zip(after).enumerate() {
            @let left = round(MARGINS[0] + width * bin as f64);
            @if *old > 0.0 { rect.before x=(left) y=(round(middle - height(*old))) width=(round(width)) height=(height(*old)) stroke="none" {} }
            @if *new > 0.0 { rect.after x=(left) y=(round(middle)) width=(round(width)) height=(height(*new)) stroke="none" {} }
        }
        line.axis x1=(MARGINS[0]) x2=(SIZE.0 - MARGINS[2]) y1=(middle) y2=(middle) {}
        @for tick in 0..=4 {
            @let share = f64::from(tick) / 4.0;
            text x=(round(MARGINS[0] + (SIZE.0 - MARGINS[0] - MARGINS[2]) * share)) y=(SIZE.1 - MARGINS[3] + 16.0) text-anchor=(if tick == 4 { "end" } else { "middle" }) { (value_text(at(share), unit)) }
        }
        text x=(MARGINS[0] - 6.0) y=(round(middle - half / 2.0)) text-anchor="end" { "before" }
        text x=(MARGINS[0] - 6.0) y=(round(middle + half / 2.0)) text-anchor="end" { "after" }
    };
    let note = format!(
        "Distribution of all samples; the last bar includes all greater ones, up to {}.",
        value_text(histogram.greatest, unit)
    );
    figure("Distributions", &content, &note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_label_in_the_middle() {
        for (value, is_logarithmic) in [(0.0, true), (10.0, true), (-3.0, false), (1e300, false)] {
            let axis = Axis::around([value; 3].into_iter(), is_logarithmic);
            let ticks: Vec<f64> = axis.ticks().collect();
            assert_eq!(ticks.len(), 1, "{ticks:?}");
            assert!((ticks[0] - value).abs() <= 1e-12 * value.abs(), "{ticks:?}");
            let middle = MARGINS[1] + (SIZE.1 - MARGINS[1] - MARGINS[3]) / 2.0;
            assert!((axis.y(value) - middle).abs() < 1e-6);
        }
        let axis = Axis::around([1.0, 2.0].into_iter(), false);
        assert_eq!(axis.ticks().count(), 5);
    }
}
