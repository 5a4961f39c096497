//! A measurement as one HTML file that needs nothing else.

use maud::{Markup, PreEscaped, html};
use measure::HeatScale;

use super::text::{HEADINGS, cells, clock_went_back, facts, grants, hosts, remarks, unavailable};
use super::{Report, heat_maps};
use crate::html_report::still_page;
use crate::output::Printable;

/// The page.
pub(crate) fn page(report: &Report<'_>, scale: HeatScale) -> String {
    let (axes, maps) = heat_maps(report.measurement(), scale);
    let title = format!("laglab measure {}", report.probe);
    let header = html! {
        p.what { "How late this machine is" }
        h1 { (title) }
    };
    let main = html! {
        section {
            h2 { "Results" }
            (results(report))
            @for remark in remarks(report) { p.note { (Printable(&remark)) } }
        }
        section {
            h2 { "Over time" }
            // What names methods in it is escaped by its maker.
            figure { (PreEscaped(measure::heat_svg(&axes, &maps))) }
            p.note { "Each map: time of its own runs to the right, latency upward; the darker, the more samples." }
        }
        section {
            h2 { "Measured on" }
            @for fact in facts(report) { p { (Printable(&fact)) } }
            @for warning in hosts(report.machine) { p.warning { (Printable(&warning)) } }
            @if report.clock.went_back > 0 { p.warning { (clock_went_back(report)) } }
            @for (refused, line) in grants(report) { p.warning[refused] { (Printable(&line)) } }
            @for line in unavailable(report) { p.note { (Printable(&line)) } }
        }
    };
    still_page(&title, "", &header, &main)
}

fn results(report: &Report<'_>) -> Markup {
    // Of these all but the first two and the last are numbers.
    let is_figure = |column: usize| (2..HEADINGS.len() - 1).contains(&column);
    html! {
        table {
            thead { tr { @for (column, heading) in HEADINGS.iter().enumerate() {
                th.figure[is_figure(column)] scope="col" { (heading) }
            } } }
            tbody {
                @for outcome in &report.results {
                    tr { @for (column, cell) in cells(outcome).iter().enumerate() {
                        td.figure[is_figure(column)] { (Printable(cell)) }
                    } }
                }
            }
        }
    }
}
