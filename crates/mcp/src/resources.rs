//! Resources: findings, evidence as CSV, columns of tables, pages of the manual, and recording kits.

use std::sync::Arc;

use explain::{Evidence, Value as Cell};
use record::{Investigation, Kit, Machine};
use rmcp::model::{Resource, ResourceTemplate};
use wording::csv_cell;

use crate::answer::{MAX_TOKENS, Room};
use crate::call::Call;
use crate::failure::Failure;
use crate::finding_id::FindingId;
use crate::marks::Marks;
use crate::server::ServerState;
use crate::tools::{self, Session};

/// Content of a resource.
pub(crate) struct Content {
    pub(crate) mime_type: &'static str,
    pub(crate) text: String,
}

/// Page of the manual.
struct Page {
    name: &'static str,
    title: &'static str,
    text: &'static str,
}

/// Pages that help to use the tools.
const PAGES: [Page; 7] = [
    Page {
        name: "explain",
        title: "Theories about lags, and how to read findings",
        text: include_str!("../../../docs/explain.md"),
    },
    Page {
        name: "linux",
        title: "Recordings of Linux",
        text: include_str!("../../../docs/linux.md"),
    },
    Page {
        name: "mcp",
        title: "This server",
        text: include_str!("../../../docs/mcp.md"),
    },
    Page {
        name: "prove",
        title: "Comparison of recordings",
        text: include_str!("../../../docs/prove.md"),
    },
    Page {
        name: "record",
        title: "How to record a trace",
        text: include_str!("../../../docs/record.md"),
    },
    Page {
        name: "sql",
        title: "SQL over the tables",
        text: include_str!("../../../docs/sql.md"),
    },
    Page {
        name: "views",
        title: "Views and functions of SQL",
        text: include_str!("../../../docs/views.md"),
    },
];

/// Maximum size of a resource, in bytes. A token counts as 2.5 bytes, because rows have many numbers. Longer
/// resources are divided into parts.
const BYTES: usize = MAX_TOKENS as usize * 5 / 2;

/// Returns the resources that do not depend on a trace, in a fixed order.
pub(crate) fn list() -> Vec<Resource> {
    let pages = PAGES.iter().map(|page| {
        let uri = format!("laglab://docs/{}", page.name);
        let resource = Resource::new(uri, page.name).with_title(page.title);
        resource.with_mime_type("text/markdown")
    });
    let kits = Investigation::ALL.iter().map(|kit| {
        let uri = format!("laglab://record/{}", kit.name());
        let resource = Resource::new(uri, kit.name()).with_title(kit.question());
        resource.with_mime_type("text/plain")
    });
    pages.chain(kits).collect()
}

/// Returns the templates of the other resources.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    [
        (
            "laglab://trace/{trace}/finding/{number}",
            "finding",
            "A finding of `explain`",
        ),
        (
            "laglab://trace/{trace}/finding/{number}/evidence/{evidence}",
            "evidence",
            "Rows of evidence as CSV",
        ),
        ("laglab://table/{table}", "table", "Columns of a table"),
    ]
    .into_iter()
    .map(|(uri, name, title)| ResourceTemplate::new(uri, name).with_title(title))
    .collect()
}

/// Returns the content at an address. Returns `None` if there is nothing at the address.
pub(crate) fn read(
    server: &ServerState,
    call: &Arc<Call>,
    uri: &str,
) -> Option<Result<Content, Failure>> {
    if let Some(page) = uri.strip_prefix("laglab://docs/") {
        return manual(page).map(Ok);
    }
    if let Some(kit) = uri.strip_prefix("laglab://record/") {
        return recording(kit).map(Ok);
    }
    if let Some(table) = uri.strip_prefix("laglab://table/") {
        return Some(columns(table));
    }
    let (id, evidence) = FindingId::parse_uri(uri)?;
    Some(of_finding(server, call, &id, evidence))
}

/// Returns a page of the manual (`sql`), or a numbered part of a page (`sql/2`).
fn manual(asked: &str) -> Option<Content> {
    let (name, part) = match asked.split_once('/') {
        Some((name, part)) => (name, part.parse().ok()?),
        None => (asked, 1),
    };
    let page = PAGES.iter().find(|page| page.name == name)?;
    let parts = parts(page.text);
    let text = parts.get(usize::checked_sub(part, 1)?)?;
    let more = if part < parts.len() {
        format!("\nMore: laglab://docs/{name}/{}\n", part + 1)
    } else {
        String::new()
    };
    Some(Content {
        mime_type: "text/markdown",
        text: format!("{text}{more}"),
    })
}

/// Divides a text at ends of lines.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = rest.len().min(BYTES - 250);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        if end < rest.len() {
            end = rest[..end].rfind('\n').map_or(end, |line| line + 1);
        }
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    parts
}

/// Returns the files of a kit as text. Does not record anything.
fn recording(name: &str) -> Option<Content> {
    let kit = Kit::new(Investigation::from_name(name)?, Machine::TYPICAL);
    let mut text = String::new();
    for file in kit.files() {
        let part = format!("==== {}\n{}\n", file.name, file.text);
        if text.len() + part.len() > BYTES {
            text += &format!(
                "==== {}: left out; `laglab record --for {name}` writes it\n",
                file.name
            );
            continue;
        }
        text += &part;
    }
    Some(Content {
        mime_type: "text/plain",
        text,
    })
}

fn columns(table: &str) -> Result<Content, Failure> {
    let columns = tools::table_schema(table, Room::new(Some(MAX_TOKENS)))?;
    Ok(Content {
        mime_type: "application/json",
        text: serde_json::to_string(&columns).map_err(|_| Failure::defect())?,
    })
}

fn of_finding(
    server: &ServerState,
    call: &Arc<Call>,
    id: &FindingId,
    evidence: Option<usize>,
) -> Result<Content, Failure> {
    let session = Session { server, call };
    let Some(number) = evidence else {
        let arguments = serde_json::json!({ "id": id.to_string(), "max_tokens": MAX_TOKENS });
        let arguments = arguments.as_object().cloned();
        let answer = tools::run(&session, "finding", arguments).ok_or_else(Failure::defect)??;
        return Ok(Content {
            mime_type: "application/json",
            text: answer.text,
        });
    };
    let trace = session.open(Some(&id.trace))?;
    let explained = trace.explained_as(id.scope.as_deref(), call)?;
    let findings = &explained.explanation.findings;
    let finding = findings.get(id.number - 1).ok_or_else(tools::no_finding)?;
    let evidence = number
        .checked_sub(1)
        .and_then(|place| finding.evidence.get(place));
    let evidence = evidence
        .ok_or_else(|| Failure::unknown("this finding has no evidence with this number"))?;
    Ok(Content {
        mime_type: "text/csv",
        text: csv(evidence, &Marks::new()?),
    })
}

/// Returns the rows as CSV. Texts from the trace are marked.
fn csv(evidence: &Evidence, marks: &Marks) -> String {
    let quoted = |text: &str| {
        if text.contains([',', '"', '\n']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_owned()
        }
    };
    let names: Vec<&str> = evidence.columns.iter().map(|column| column.name).collect();
    let mut csv = names.join(",") + "\r\n";
    for (at, row) in evidence.rows.iter().enumerate() {
        let cells = row.iter().map(|cell| match cell {
            None => String::new(),
            Some(Cell::Integer(number)) => number.to_string(),
            Some(Cell::Real(number)) => number.to_string(),
            Some(Cell::Flag(flag)) => flag.to_string(),
            Some(Cell::Text(text)) => quoted(&csv_cell(&marks.cell(text))),
        });
        let line = cells.collect::<Vec<_>>().join(",") + "\r\n";
        if csv.len() + line.len() > BYTES - 100 {
            let left = wording::counted((evidence.rows.len() - at) as u64, "row is", "rows are");
            csv += &format!("# {left} left out; the query of the finding returns them\r\n");
            break;
        }
        csv += &line;
    }
    if csv.contains('⟦') {
        format!("{csv}# {}\r\n", marks.note())
    } else {
        csv
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_in_parts_that_fit() {
        for page in &PAGES {
            let parts = parts(page.text);
            assert_eq!(parts.concat(), page.text);
            for number in 1..=parts.len() {
                let part = manual(&format!("{}/{number}", page.name)).unwrap();
                assert!(part.text.len() <= BYTES);
            }
            assert!(manual(&format!("{}/{}", page.name, parts.len() + 1)).is_none());
        }
        for none in ["", "x", "../sql", "sql/0", "sql/x"] {
            assert!(manual(none).is_none(), "{none}");
        }
    }

    #[test]
    fn every_listed_resource_can_be_read() {
        let folder = tempfile::TempDir::new().unwrap();
        let server = ServerState::for_tests(folder.path());
        for resource in list() {
            let content = read(&server, &Arc::default(), &resource.uri);
            let text = content.unwrap().unwrap().text;
            assert!(!text.is_empty() && text.len() <= BYTES, "{}", resource.uri);
        }
    }
}
