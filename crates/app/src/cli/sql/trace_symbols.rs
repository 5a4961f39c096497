//! Resolver of addresses to names of functions, for the SQL function `symbol()`.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use session::{SymbolOptions, Symbolication};
use tables::{Identities, Options, Store};

use crate::cli::{Failure, warn_of_missing_symbols};

use crate::output::say;

/// Symbols of all traces in a session. Loads the images of a trace when it looks up the first address of this
/// trace.
pub(super) struct TraceSymbols {
    options: SymbolOptions,
    traces: Vec<(Arc<Store>, OnceLock<Option<Symbolication>>)>,
    /// Names of modules whose missing symbols were reported already.
    reported: Mutex<HashSet<String>>,
}

impl fmt::Debug for TraceSymbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceSymbols").finish_non_exhaustive()
    }
}

impl TraceSymbols {
    /// Creates the symbols for the traces in `stores`.
    ///
    /// # Errors
    /// Returns [`Failure::Input`] if the symbol path is invalid.
    pub(super) fn new(
        options: SymbolOptions,
        stores: impl Iterator<Item = Arc<Store>>,
    ) -> Result<TraceSymbols, Failure> {
        options.check()?;
        Ok(TraceSymbols {
            options,
            traces: stores.map(|store| (store, OnceLock::new())).collect(),
            reported: Mutex::default(),
        })
    }

    fn load(&self, store: &Store) -> Option<Symbolication> {
        let load = || -> Result<Symbolication, Failure> {
            let identities = Identities::read(store, Options::default())?;
            Ok(Symbolication::new(
                &self.options,
                store,
                &identities.images,
            )?)
        };
        match load() {
            Ok(symbols) => Some(symbols),
            Err(Failure::Input(why)) => {
                say(&format!("no symbols: {why}"));
                None
            }
            Err(_) => None,
        }
    }

    /// Prints on stderr which modules have no symbols. Each module is reported once.
    pub(super) fn warn_of_missing(&self) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = self.traces.iter().filter_map(|(_, loaded)| loaded.get());
        let mut missing: Vec<_> = loaded.flatten().flat_map(Symbolication::missing).collect();
        missing.retain(|missing| reported.insert(missing.module.clone()));
        warn_of_missing_symbols(&missing);
    }
}

impl sql::Symbols for TraceSymbols {
    fn name(&self, trace: usize, image_row: u32, address: u64) -> Option<String> {
        let (store, loaded) = self.traces.get(trace)?;
        let symbols = loaded.get_or_init(|| self.load(store)).as_ref()?;
        symbols.name(image_row as usize, address)
    }
}
