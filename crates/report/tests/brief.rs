//! Tests of the short form of explanations.

use std::path::PathBuf;
use std::sync::Arc;

use explain::Scope;
use report::{Brief, ExplainedTrace};
use serde_json::Value;
use session::{SymbolOptions, TraceTables, Unobserved};
use simulated::Simulated;
use tables::Cache;

/// Maximum number of bytes: 2,000 tokens with 3 bytes each.
const BYTES: usize = 6_000;

/// Checks the short form of each scenario. Its findings are the first ones of the whole explanation, so the cause of
/// each scenario is in it.
#[test]
fn every_scenario_has_a_brief_answer() {
    for scenario in testdata::cases(sim::shipped::names()) {
        // The scenario `load` simulates 4 million events, so the test limits its duration.
        let settings: &[&str] = match scenario {
            "load" => &["duration=1s"],
            _ => &[],
        };
        let simulated = Simulated::new(scenario, settings);
        let paths = [PathBuf::from(&simulated.trace)];
        let tables = TraceTables::open(&paths, Cache::Off, Arc::new(Unobserved)).unwrap();
        #[allow(clippy::needless_update, reason = "a feature adds a field")]
        let symbols = SymbolOptions {
            path: Some(simulated.symbols.clone()),
            ..SymbolOptions::default()
        };
        let (explained, _) = ExplainedTrace::read(&tables, Scope::default(), &symbols).unwrap();
        let whole = &explained.explanation.findings;
        let brief = serde_json::to_string(&Brief::new(&explained, 2_000)).unwrap();
        assert!(brief.len() <= BYTES, "{scenario}: {} bytes", brief.len());
        let brief: Value = serde_json::from_str(&brief).unwrap();
        let findings = brief["findings"].as_array().unwrap();
        assert!(!findings.is_empty() || whole.is_empty(), "{scenario}");
        let more = brief["more_findings"].as_u64().unwrap_or(0) as usize;
        assert_eq!(findings.len() + more, whole.len(), "{scenario}");
        for (short, long) in findings.iter().zip(whole) {
            assert_eq!(short["theory"], long.theory, "{scenario}");
            assert_eq!(short["sentence"], long.sentence.quoted(), "{scenario}");
            let delay = long.delay.as_ref().map(|delay| delay.ns);
            assert_eq!(short["delay_ns"].as_i64(), delay, "{scenario}");
        }
    }
}
