//! Functions of addresses, for `symbol()`.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tables::{Identities, Options, Store};

use crate::cli::{Failure, say, say_what_lacks_symbols};
use crate::symbolication::{SymbolOptions, Symbolication};

/// The symbols of the traces of a session; each trace's images are read when the first of its
/// addresses is asked for.
pub(super) struct TraceSymbols {
    options: SymbolOptions,
    traces: Vec<(Arc<Store>, OnceLock<Option<Symbolication>>)>,
    /// The modules of which was said that their symbols are missing.
    said: Mutex<HashSet<String>>,
}

impl fmt::Debug for TraceSymbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceSymbols").finish_non_exhaustive()
    }
}

impl TraceSymbols {
    /// # Errors
    /// If the symbol path makes no sense.
    pub(super) fn new(
        options: &SymbolOptions,
        stores: impl Iterator<Item = Arc<Store>>,
    ) -> Result<TraceSymbols, Failure> {
        options.check()?;
        Ok(TraceSymbols {
            options: options.clone(),
            traces: stores.map(|store| (store, OnceLock::new())).collect(),
            said: Mutex::default(),
        })
    }

    fn load(&self, store: &Store) -> Option<Symbolication> {
        let load = || -> Result<Symbolication, Failure> {
            let identities = Identities::read(store, Options::default())?;
            Symbolication::new(&self.options, &identities.images)
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

    /// Says on stderr whose symbols were looked for and not found, of each module once.
    pub(super) fn say_what_is_missing(&self) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = self.traces.iter().filter_map(|(_, loaded)| loaded.get());
        let mut missing: Vec<_> = loaded.flatten().flat_map(Symbolication::missing).collect();
        missing.retain(|missing| said.insert(missing.module.clone()));
        say_what_lacks_symbols(&missing);
    }
}

impl sql::Symbols for TraceSymbols {
    fn name(&self, trace: usize, image_row: u32, address: u64) -> Option<String> {
        let (store, loaded) = self.traces.get(trace)?;
        let symbols = loaded.get_or_init(|| self.load(store)).as_ref()?;
        symbols.name(image_row as usize, address)
    }
}
