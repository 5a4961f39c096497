//! Comparison as one HTML file with pictures.

use maud::{Markup, html};
use prove::{Judgement, Picture, Question};
use report::TextPage;

use super::{Answer, cells, headings, headline, remarks};
use crate::output::Printable;

/// Formats comparisons as an HTML page. `pictures` has the pictures of each comparison. `heat` has its heat map if the
/// start times of its samples are known.
///
/// # Errors
/// Returns an error if the pictures cannot be written as JSON.
pub(super) fn page(
    answer: &Answer,
    pictures: &[Picture],
    heat: &[Option<Markup>],
) -> Result<String, report::Error> {
    const TITLE: &str = "laglab prove compare";
    let question = answer.question;
    let header = html! {
        p.what { "Did the change help?" }
        h1 { (TITLE) }
    };
    let main = html! {
        @for (place, (judgement, heat)) in answer.compared.iter().zip(heat).enumerate() {
            section {
                h2 { (Printable(&judgement.name)) }
                p { (headline(judgement, question)) }
                div.scroll tabindex="0" role="region" aria-label="Results" { (table(judgement, question)) }
                div data-picture=(place) {}
                @if let Some(heat) = heat { (heat) }
                @for remark in remarks(judgement) { p.note { (Printable(&remark)) } }
                (warnings(&judgement.doubts))
            }
        }
        (warnings(&answer.doubts))
    };
    let page = TextPage {
        title: TITLE,
        style: STYLE,
        header,
        main,
    };
    page.with_runs(pictures)
}

fn warnings(doubts: &[String]) -> Markup {
    html! { @for doubt in doubts { p.warning { "Doubt: " (Printable(doubt)) } } }
}

/// Styles of heat maps.
const STYLE: &str = "figure.heat svg { display: block; width: 100%; height: auto; }";

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
