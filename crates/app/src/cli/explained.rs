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
    /// What there is if it is nothing but captured packets, in words.
    #[serde(skip)]
    pub(crate) captured: Option<String>,
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
        let captured = captured(tables)?;
        Ok(Explained {
            info,
            explanation,
            captured,
        })
    }
}

impl Explained {
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

/// What files are that hold nothing but captured packets, in words.
fn captured(tables: &TraceTables) -> Result<Option<String>, Failure> {
    if !tables.store.is_all_packets() {
        return Ok(None);
    }
    let table = tables.table(Table::Packets)?;
    let chunks = table.chunks();
    let lasted = chunks.iter().map(|chunk| chunk.last).max().unwrap_or(0);
    let packets = match table.rows() {
        1 => "1 captured packet".to_owned(),
        many => format!("{} captured packets", grouped(many as u64)),
    };
    Ok(Some(format!(
        "{packets} over {}, and no events: what programs and CPUs did is not in them",
        duration(lasted)
    )))
}

impl Functions for Symbolication {
    fn name(&self, image_row: u32, address: u64) -> Option<String> {
        Symbolication::name(self, image_row as usize, address)
    }
}
