//! What `laglab explain` and `laglab report` tell of a trace, each in its way.

use explain::{Asked, Explanation};
use serde::Serialize;
use tables::Functions;

use super::Failure;
use super::open::TraceTables;
use crate::info::{Facts, Info};
use crate::metadata::MetadataFiles;
use crate::pass;
use crate::symbolication::{SymbolOptions, Symbolication};
use crate::watch::Watch;

/// What a trace is, and why it lagged.
#[derive(Serialize)]
pub(crate) struct Explained {
    pub(crate) info: Info,
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
        let watch = Watch::new("reading", trace.size_bytes());
        let (facts, damage) = pass::collect::<Facts>(trace, &watch)?;
        drop(watch);
        let mut decoder = MetadataFiles::default().decoder()?;
        crate::metadata::learn(&mut decoder, trace, facts.survey().metadata_buffers.clone());
        let info = Info::new(trace, &decoder, facts, damage);
        let identities = tables.identities()?;
        let symbols = Symbolication::new(symbols, &identities.images)?;
        let explanation = tables
            .watched(|options| explain::explain(&tables.store, asked, Some(&symbols), options))?;
        super::say_what_lacks_symbols(&symbols.missing());
        Ok(Explained { info, explanation })
    }
}

impl Functions for Symbolication {
    fn name(&self, image_row: u32, address: u64) -> Option<String> {
        Symbolication::name(self, image_row as usize, address)
    }
}
