//! Facts and findings that `laglab explain`, `laglab report` and the page of `laglab open` show.

use std::cmp::Reverse;
use std::sync::Arc;

use explain::{Conclusion, Explanation, Scope};
use facts::{Content, Data, Info};
use serde::Serialize;
use session::{SymbolOptions, Symbolication, TraceTables};
use tables::Table;
use wording::{counted, duration, grouped, listed};

use crate::Error;

/// Facts about a trace, and the explanation of its lags.
#[derive(Serialize)]
pub struct ExplainedTrace {
    /// Facts about the trace.
    pub info: Arc<Info>,
    /// Findings and theories.
    pub explanation: Explanation,
    /// Description of a trace that has no events, but captured packets or samples of a live probe.
    #[serde(skip)]
    pub instead: Option<String>,
}

impl ExplainedTrace {
    /// Returns the tables that [`ExplainedTrace::read`] reads.
    pub fn tables() -> Vec<Table> {
        let mut tables = explain::tables();
        tables.extend(Info::TABLES);
        tables.sort_unstable();
        tables.dedup();
        tables
    }

    /// Reads the facts of the trace and explains it. Also returns the symbols, which list missing symbol
    /// files.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read, the symbol path is wrong, or the work is cancelled.
    pub fn read(
        tables: &TraceTables,
        asked: Scope,
        symbols: &SymbolOptions,
    ) -> Result<(ExplainedTrace, Symbolication), Error> {
        tables.make(&ExplainedTrace::tables())?;
        let info = tables.watched(|options| Info::read(tables.store(), options))?;
        let symbols = Symbolication::new(symbols, tables.store(), &tables.identities()?.images);
        let symbols = symbols.map_err(session::Error::from)?;
        let explained = ExplainedTrace::known(tables, Arc::new(info), asked, &symbols)?;
        Ok((explained, symbols))
    }

    /// Explains a trace whose facts and symbols are known.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read or the work is cancelled.
    pub fn known(
        tables: &TraceTables,
        info: Arc<Info>,
        asked: Scope,
        symbols: &Symbolication,
    ) -> Result<ExplainedTrace, Error> {
        let explanation = tables
            .watched(|options| explain::explain(tables.store(), asked, Some(symbols), options))?;
        let instead = instead(tables)?;
        Ok(ExplainedTrace {
            info,
            explanation,
            instead,
        })
    }
}

impl ExplainedTrace {
    /// Returns the conclusion in sentences, if there is one. If the trace cannot answer, its contents are described.
    pub fn conclusion(&self) -> Option<String> {
        let conclusion = self.explanation.conclusion()?;
        let contents = || contents(&self.info.contents);
        Some(match (&self.instead, &conclusion) {
            (Some(instead), _) => format!("{instead}. {conclusion}."),
            (None, Conclusion::CannotAnswer) if self.info.one_system => {
                format!("{conclusion}. {}", contents())
            }
            (None, _) => format!("{conclusion}."),
        })
    }

    /// Returns a sentence for each kind of loss or damage in the trace.
    pub fn damage(&self) -> Vec<String> {
        let mut lines = if self.info.damage.none {
            Vec::new()
        } else {
            self.info.damage.sentences()
        };
        let contradictions = self.explanation.survey.contradictions;
        if contradictions > 0 {
            lines.push(counted(
                contradictions,
                "context switch contradicts the previous one on its CPU: events are missing",
                "context switches contradict the previous ones on their CPUs: events are missing",
            ));
        }
        lines
    }
}

/// Describes the contents of a trace without context switches: the kinds of data with most events, each with the command
/// that shows it.
fn contents(contents: &[Content]) -> String {
    const NAMED: usize = 4;
    let known = contents.iter().filter_map(|content| {
        let command = match content.data {
            Data::Samples => "laglab profile",
            Data::Dpcs | Data::Isrs => "laglab dpcisr",
            Data::DiskIo => "laglab diskio",
            Data::HardFaults => "laglab hardfault",
            Data::ReadyThreads => "laglab readythread",
            Data::Stacks
            | Data::Processes
            | Data::Threads
            | Data::Images
            | Data::ImageIds
            | Data::FileNames
            | Data::SystemConfiguration
            | Data::EventMetadata => return None,
            _ => "laglab events",
        };
        let kind = format!(
            "{} {}",
            grouped(content.count),
            content.data.name(content.count)
        );
        Some((content.count, kind, command))
    });
    let mut known: Vec<(u64, String, &str)> = known.collect();
    known.sort_by_key(|(count, ..)| Reverse(*count));
    if known.is_empty() {
        return "It only describes the machine: processes, images, its configuration.".to_owned();
    }
    let more = known.len().saturating_sub(NAMED) as u64;
    known.truncate(NAMED);
    // A command that shows several kinds is named once.
    let mut commands: Vec<&str> = Vec::new();
    let mut named: Vec<String> = Vec::new();
    for (_, kind, command) in known {
        named.push(if commands.contains(&command) {
            kind
        } else {
            format!("{kind} ({command})")
        });
        commands.push(command);
    }
    if more > 0 {
        named.push(counted(more, "more kind of event", "more kinds of events"));
    }
    format!("It has {}.", listed(named))
}

/// Describes a trace without events. Returns `None` for a trace with events.
fn instead(tables: &TraceTables) -> Result<Option<String>, Error> {
    let Some(only) = tables.store().info().only_table else {
        return Ok(None);
    };
    let table = tables.table(only)?;
    let chunks = table.chunks();
    let lasted = chunks.iter().map(|chunk| chunk.last).max().unwrap_or(0);
    let (one, many) = match only {
        Table::LatencySamples => ("measured latency sample", "measured latency samples"),
        _ => ("captured packet", "captured packets"),
    };
    let rows = counted(table.rows() as u64, one, many);
    Ok(Some(format!(
        "{rows} over {}; the trace has no events of programs or CPUs",
        duration(lasted)
    )))
}
