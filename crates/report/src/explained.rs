//! Facts and findings that `laglab explain`, `laglab report` and the page of `laglab open` show.

use std::sync::Arc;

use explain::{Explanation, Scope};
use facts::Info;
use serde::Serialize;
use session::{SymbolOptions, Symbolication, TraceTables};
use tables::Table;
use wording::{counted, duration};

use crate::Error;

/// Facts about a trace, and the explanation of its lags.
#[derive(Serialize)]
pub struct Explained {
    /// Facts about the trace.
    pub info: Arc<Info>,
    /// Findings and theories.
    pub explanation: Explanation,
    /// Description of a trace that has no events, but captured packets or samples of a live probe.
    #[serde(skip)]
    pub instead: Option<String>,
}

impl Explained {
    /// Reads the facts of the trace and explains it. Also returns the symbols, which list missing symbol
    /// files.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read, the symbol path is wrong, or the work is cancelled.
    pub fn read(
        tables: &TraceTables,
        asked: Scope,
        symbols: &SymbolOptions,
    ) -> Result<(Explained, Symbolication), Error> {
        // All tables are requested at once, because each call of `make` reads the whole trace.
        let mut wanted = explain::tables();
        wanted.extend(Info::TABLES);
        tables.make(&wanted)?;
        let info = tables.watched(|options| Info::read(tables.store(), options))?;
        let symbols = Symbolication::new(symbols, tables.store(), &tables.identities()?.images);
        let symbols = symbols.map_err(session::Error::from)?;
        let explained = Explained::known(tables, Arc::new(info), asked, &symbols)?;
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
    ) -> Result<Explained, Error> {
        let explanation = tables
            .watched(|options| explain::explain(tables.store(), asked, Some(symbols), options))?;
        let instead = instead(tables)?;
        Ok(Explained {
            info,
            explanation,
            instead,
        })
    }
}

impl Explained {
    /// Returns the conclusion in sentences, if there is one. If the trace has no events, a description of the
    /// trace comes first.
    pub fn conclusion(&self) -> Option<String> {
        let conclusion = self.explanation.conclusion()?;
        Some(match &self.instead {
            Some(instead) => format!("{instead}. {conclusion}."),
            None => format!("{conclusion}."),
        })
    }

    /// Returns a sentence for each kind of loss or damage in the trace.
    pub fn damage(&self) -> Vec<String> {
        let mut lines = match self.info.damage.none {
            true => Vec::new(),
            false => self.info.damage.sentences(),
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

/// Describes a trace without events. Returns `None` for a trace with events.
fn instead(tables: &TraceTables) -> Result<Option<String>, Error> {
    let Some(only) = tables.store().holds_only() else {
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
