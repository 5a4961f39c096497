//! What `laglab explain`, `laglab report` and the page tell of a trace, each in its way.

use std::sync::Arc;

use explain::{Asked, Explanation};
use serde::Serialize;
use tables::Functions;

use super::Failure;
use super::open::TraceTables;
use crate::info::Info;
use crate::symbolication::{SymbolOptions, Symbolication};
use crate::watch::Watch;

/// What a trace is, and why it lagged.
#[derive(Serialize)]
pub(crate) struct Explained {
    pub(crate) info: Arc<Info>,
    pub(crate) explanation: Explanation,
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
        Ok(Explained { info, explanation })
    }
}

impl Functions for Symbolication {
    fn name(&self, image_row: u32, address: u64) -> Option<String> {
        Symbolication::name(self, image_row as usize, address)
    }
}
