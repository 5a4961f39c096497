//! What `laglab explain`, `laglab report` and the page tell of a trace, each in its way.

use std::sync::Arc;

use explain::{Asked, Explanation};
use serde::Serialize;
use tables::{Functions, Table};

use super::Failure;
use super::open::TraceTables;
use crate::info::Info;
use crate::output::{duration, grouped};
use crate::symbolication::{SymbolOptions, Symbolication};
use crate::watch::Watch;

/// What a trace is, and why it lagged.
#[derive(Serialize)]
pub(crate) struct Explained {
    pub(crate) info: Arc<Info>,
    pub(crate) explanation: Explanation,
    /// What there is instead of events, in words: captured packets, or samples of a live probe.
    #[serde(skip)]
    pub(crate) instead: Option<String>,
}

impl Explained {
    /// Looks at the trace; says on stderr which symbols are missing.
    pub(super) fn of(
        tables: &TraceTables,
        asked: Asked,
        symbols: &SymbolOptions,
    ) -> Result<Explained, Failure> {
        let trace = tables.store.trace();
        let info = Info::read(trace, &Watch::new("reading", trace.size_bytes()))?;
        let symbols = Symbolication::new(symbols, &tables.identities()?.images)?;
        let explained = Explained::known(tables, Arc::new(info), asked, &symbols)?;
        super::say_what_lacks_symbols(&symbols.missing());
        Ok(explained)
    }

    /// The same of a trace of which all but why it lagged is known.
    pub(crate) fn known(
        tables: &TraceTables,
        info: Arc<Info>,
        asked: Asked,
        symbols: &Symbolication,
    ) -> Result<Explained, Failure> {
        let explanation = tables
            .watched(|options| explain::explain(&tables.store, asked, Some(symbols), options))?;
        let instead = instead(tables)?;
        Ok(Explained {
            info,
            explanation,
            instead,
        })
    }
}

impl Explained {
    /// What there is instead of events, and what it comes to where nothing grave was found; in
    /// sentences.
    pub(crate) fn conclusion(&self) -> Option<String> {
        let conclusion = self.explanation.conclusion()?;
        Some(match &self.instead {
            Some(instead) => format!("{instead}. {conclusion}."),
            None => format!("{conclusion}."),
        })
    }

    /// What is lost or broken, one sentence per kind.
    pub(crate) fn damage(&self) -> Vec<String> {
        let mut lines = match self.info.damage.none {
            true => Vec::new(),
            false => self.info.damage.sentences(),
        };
        lines.extend(match self.explanation.survey.contradictions {
            0 => None,
            1 => Some("1 switch contradicts the one before on its CPU: events are missing".into()),
            many => Some(format!(
                "{} switches contradict the one before on their CPU: events are missing",
                grouped(many)
            )),
        });
        lines
    }
}

/// What files hold that have no events, in words.
fn instead(tables: &TraceTables) -> Result<Option<String>, Failure> {
    let Some(only) = tables.store.holds_only() else {
        return Ok(None);
    };
    let table = tables.table(only)?;
    let chunks = table.chunks();
    let lasted = chunks.iter().map(|chunk| chunk.last).max().unwrap_or(0);
    let what = match only {
        Table::LatencySamples => "measured latency sample",
        _ => "captured packet",
    };
    let rows = match table.rows() {
        1 => format!("1 {what}"),
        many => format!("{} {what}s", grouped(many as u64)),
    };
    Ok(Some(format!(
        "{rows} over {}, and no events: what programs and CPUs did is not in them",
        duration(lasted)
    )))
}

impl Functions for Symbolication {
    fn name(&self, image_row: u32, address: u64) -> Option<String> {
        Symbolication::name(self, image_row as usize, address)
    }
}
