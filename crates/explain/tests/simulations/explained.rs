//! Explanation of a trace as JSON, and functions that read it.

use std::path::PathBuf;

use explain::Scope;
use serde_json::Value;
use session::{SymbolOptions, Symbolication};
use simulated::Simulated;
use tables::{Cache, Identities, Options, Store};

/// Explanation of a trace as JSON.
pub(crate) struct Explained {
    pub(crate) explanation: Value,
}

impl Explained {
    /// Explains a whole trace without symbols.
    pub(crate) fn new(trace: &str) -> Explained {
        Explained::scoped(trace, Scope::default())
    }

    /// Explains a part of a trace without symbols.
    pub(crate) fn scoped(trace: &str, scope: Scope) -> Explained {
        Explained::read(trace, None, scope)
    }

    /// Explains a simulated trace with its symbols.
    pub(crate) fn with_symbols(simulated: &Simulated, scope: Scope) -> Explained {
        Explained::read(&simulated.trace, Some(&simulated.symbols), scope)
    }

    /// Explains a damaged trace without symbols. Returns `None` if laglab refuses to open the trace.
    pub(crate) fn of_damaged(trace: &str) -> Option<Explained> {
        let store = imports::open_store(&[PathBuf::from(trace)], Cache::Off).ok()?;
        let scope = Scope::default();
        let explanation = explain::explain(&store, scope, None, Options::default()).ok()?;
        Some(Explained {
            explanation: serde_json::to_value(explanation).unwrap(),
        })
    }

    fn read(trace: &str, symbols: Option<&str>, scope: Scope) -> Explained {
        let store = open(trace);
        let names = Identities::read(&store, Options::default()).unwrap();
        #[allow(clippy::needless_update, reason = "a feature adds a field")]
        let symbols = SymbolOptions {
            path: symbols.map(str::to_owned),
            ..SymbolOptions::default()
        };
        let symbols = Symbolication::new(&symbols, &store, &names.images).unwrap();
        let explanation = explain::explain(&store, scope, Some(&symbols), Options::default());
        Explained {
            explanation: serde_json::to_value(explanation.unwrap()).unwrap(),
        }
    }

    pub(crate) fn findings(&self) -> &[Value] {
        self.explanation["findings"].as_array().unwrap()
    }

    /// Returns the findings of a theory.
    pub(crate) fn by_theory(&self, theory: &str) -> Vec<&Value> {
        let all = self.findings().iter();
        all.filter(|finding| finding["theory"] == theory).collect()
    }

    /// Returns the judgement of a theory about the whole trace.
    pub(crate) fn judgement(&self, theory: &str) -> &str {
        let mut all = self.explanation["theories"].as_array().unwrap().iter();
        let verdict = all.find(|verdict| verdict["theory"] == theory);
        let verdict = verdict.unwrap_or_else(|| panic!("no theory {theory}"));
        verdict["judgement"].as_str().unwrap()
    }

    /// Returns the sentences of the findings that are more than information.
    pub(crate) fn complaints(&self) -> Vec<&str> {
        let all = self.findings().iter();
        let grave = all.filter(|finding| finding["severity"] != "information");
        grave
            .map(|finding| finding["sentence"].as_str().unwrap())
            .collect()
    }
}

/// Returns the scope of a time range. The arguments are milliseconds since the trace's start.
pub(crate) fn during(from_ms: i64, to_ms: i64) -> Scope {
    Scope {
        during: Some(from_ms * 1_000_000..to_ms * 1_000_000),
        ..Scope::default()
    }
}

/// Opens a trace, with all tables that an explanation reads.
pub(crate) fn open(trace: &str) -> Store {
    let store = imports::open_store(&[PathBuf::from(trace)], Cache::Off).unwrap();
    // One call makes all tables, because each call reads the whole trace.
    store.make(&explain::tables(), Options::default()).unwrap();
    store
}
