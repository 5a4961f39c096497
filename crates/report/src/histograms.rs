//! Distributions of the durations of waits, DPCs and service routines, as tables with bars.

use maud::{Markup, html};
use session::missing_rows;
use tables::Table;
use wording::{duration, grouped};

use super::charts::Charts;
use super::{missing, sentence};
use crate::Explained;

/// Number of durations in each class.
struct Histogram<'a> {
    title: &'a str,
    /// Classes, each with its upper bound in nanoseconds and its count. The last class has no bound.
    classes: Vec<(Option<i64>, u64)>,
    /// Limit in nanoseconds that no duration should exceed.
    limit_ns: Option<i64>,
}

/// Returns all histograms.
pub(super) fn all(explained: &Explained, charts: &Charts) -> Markup {
    let explanation = &explained.explanation;
    let (is_linux, terms) = (explanation.is_linux, explanation.terms());
    let waits = &explanation.survey.ready_waits;
    let microseconds = |power: usize| 1_000i64.checked_shl(power as u32);
    let ready = waits.buckets.iter().enumerate();
    let ready: Vec<(Option<i64>, u64)> = ready
        .map(|(power, count)| (microseconds(power), *count))
        .collect();
    let of_interrupts = |counts: &[u64], bounds: &[i64]| {
        let bounds = bounds.iter().map(|bound| Some(*bound)).chain([None]);
        bounds.zip(counts.iter().copied()).collect()
    };
    html! {
        p.note { "Number of events by duration. Bars are logarithmic: each step of equal length is a factor of ten. Durations of " (terms.routines) " exclude interruptions. Routines that run in threads are not counted." }
        div.histograms {
            @if waits.known == 0 {
                (missing("Ready threads' waits for a CPU", &sentence(&missing_rows(Table::CpuRuns, is_linux))))
            } @else {
                (Histogram {
                    title: "Ready threads' waits for a CPU",
                    classes: ready,
                    limit_ns: None,
                }.markup())
            }
            @match &charts.interrupts {
                None => (missing(&wording::capitalized(terms.routines), &sentence(&missing_rows(Table::Interrupts, is_linux)))),
                Some(spread) => {
                    @for (title, kind, counts) in [(terms.dpcs, "dpc", &spread.dpc), (terms.isrs, "isr", &spread.isr)] {
                        @let title = &*wording::capitalized(title);
                        @if counts.is_empty() {
                            (missing(title, "The trace has no such events."))
                        } @else {
                            (Histogram {
                                title,
                                classes: of_interrupts(counts, &spread.bounds_ns),
                                limit_ns: explain::limit_ns(kind).filter(|_| !is_linux),
                            }.markup())
                        }
                    }
                }
            }
        }
    }
}

impl Histogram<'_> {
    fn markup(&self) -> Markup {
        let most = self.classes.iter().map(|(_, count)| *count).max();
        let most = most.unwrap_or(0);
        let all: u64 = self.classes.iter().map(|(_, count)| count).sum();
        let used = |(_, count): &(Option<i64>, u64)| *count > 0;
        let first = self.classes.iter().position(used).unwrap_or(0);
        let last = self.classes.iter().rposition(used).unwrap_or(0);
        let is_over = |(bound, _): &&(Option<i64>, u64)| {
            self.limit_ns
                .is_some_and(|limit| bound.is_none_or(|bound| bound > limit))
        };
        let over: u64 = self
            .classes
            .iter()
            .filter(is_over)
            .map(|(_, count)| count)
            .sum();
        html! {
            table.histogram {
                caption {
                    (self.title) ": " (grouped(all))
                    @if let Some(limit) = self.limit_ns {
                        ", " (grouped(over)) " of them longer than " (plain(limit))
                    }
                }
                thead { tr { th.figure scope="col" { "up to" } th.figure scope="col" { "count" } th scope="col" { span.unseen { "bar" } } } }
                tbody {
                    @for class in &self.classes[first..=last] {
                        @let (bound, count) = class;
                        tr.limit[bound.is_some() && *bound == self.limit_ns].over[is_over(&class)] {
                            th.figure scope="row" {
                                @match bound { Some(bound) => (plain(*bound)), None => "longer" }
                            }
                            td.figure { (grouped(*count)) }
                            td.bar { span style={ "width:" (format!("{:.1}", length(*count, most))) "%" } {} }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the length of the bar for a count, in percent of the longest bar. The scale is logarithmic.
fn length(count: u64, most: u64) -> f64 {
    match count {
        0 => 0.0,
        _ => 100.0 * (1.0 + (count as f64).log10()) / (1.0 + (most as f64).log10()),
    }
}

/// Formats an upper bound without trailing zeros after the decimal point.
fn plain(ns: i64) -> String {
    let text = duration(ns);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            let number = number.trim_end_matches('0').trim_end_matches('.');
            format!("{number} {unit}")
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_read_plainly_and_bars_grow_by_tens() {
        assert_eq!(plain(1_000), "1 µs");
        assert_eq!(plain(2_500), "2.5 µs");
        assert_eq!(plain(100_000_000), "100 ms");
        assert_eq!(plain(1_000_000_000), "1 s");
        assert_eq!(length(0, 100), 0.0);
        assert_eq!(length(100, 100), 100.0);
        let steps = [1, 10, 100].map(|count| length(count, 1_000));
        assert_eq!(steps, [25.0, 50.0, 75.0]);
    }
}
