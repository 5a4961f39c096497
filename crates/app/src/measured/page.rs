//! Measurements as one HTML file that needs no other files.

use maud::{Markup, PreEscaped, html};
use measure::HeatScale;
use report::{TextPage, to_the_second};

use super::table::{Table, tables};
use super::text::{answer, clock_went_back, facts, grants, hosts, remarks, unavailable};
use super::{Report, heat_maps};
use crate::output::{Printable, Side};

/// Formats a measurement as an HTML page.
pub(crate) fn page(report: &Report<'_>, scale: HeatScale) -> String {
    let (axes, maps) = heat_maps(report.measurement(), scale);
    let title = format!("laglab measure {}", report.probe);
    let header = html! {
        p.what { "How late this machine is" }
        h1 { (title) }
        @if let Some(answer) = answer(report) { p { (Printable(&answer)) } }
        p { code { (Printable(&report.command)) } }
        p { "Measured until " (to_the_second(&report.ended_utc)) "." }
    };
    let main = html! {
        section {
            h2 { "Results" }
            @for table in tables(report) { (results(&table)) }
            @for remark in remarks(report) { p.note { (Printable(&remark)) } }
        }
        @if let Some(causes) = report.why {
            section {
                h2 { "Why samples were late" }
                p { (Printable(&causes.answer())) }
                @let table = causes.table();
                @if !table.rows.is_empty() { (results(&Table { title: None, ..table })) }
                @for remark in causes.remarks() { p.note { (Printable(&remark)) } }
            }
        }
        section {
            h2 { "Over time" }
            // The text needs no further escaping, because `heat_svg_rows` escapes the names of methods.
            figure {
                @for row in measure::heat_svg_rows(&axes, &maps) { (PreEscaped(row)) }
            }
            p.note { "In each map, time runs to the right, over the runs of this map. Latency \
                      grows upward, on the same scale in all maps. Darker cells have more \
                      samples." }
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
    let page = TextPage {
        title: &title,
        style: STYLE,
        header,
        main,
    };
    page.still()
}

/// CSS styles that stretch heat maps to the full width, on screen and on paper.
const STYLE: &str = "figure svg { display: block; width: 100%; height: auto; break-inside: avoid; } \
     table + h3 { margin-top: 1.2rem; } @media print { figure { break-inside: auto; } }";

fn results(table: &Table) -> Markup {
    let is_figure = |column: usize| table.columns[column].1 == Side::Right;
    html! {
        @if let Some(title) = &table.title { h3 { (Printable(title)) } }
        table {
            thead { tr { @for (column, (heading, _)) in table.columns.iter().enumerate() {
                th.figure[is_figure(column)] scope="col" { (heading) }
            } } }
            tbody {
                @for row in &table.rows {
                    tr { @for (column, cell) in row.iter().enumerate() {
                        td.figure[is_figure(column)] { (Printable(cell)) }
                    } }
                }
            }
        }
    }
}
