//! Checks the table `needs::THEORIES`, which lists the events that each theory needs. Simulates a trace for
//! each kit, and for each kind of events a trace without this kind. The table must predict which theories are
//! *not recorded*.

use crate::program;

use std::collections::BTreeMap;
use std::path::Path;

use record::{Capture, Investigation, Kind, RecorderOption, needs};
use simulated::{list, text};

/// Scenario in which each theory can be judged if its events are recorded.
const EVERYTHING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/record/everything.toml");

/// Simulates the scenario with these options. For each theory by id, returns true if `explain` judges it.
fn judged(folder: &Path, options: &[&str]) -> BTreeMap<String, bool> {
    let trace = folder.join("trace.etl");
    let trace = trace.to_str().unwrap();
    let args = [&["simulate", EVERYTHING, "-o", trace], options].concat();
    let output = program::laglab(&args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    let report = program::json(&["explain", trace, "--no-cache", "--json"]);
    let theories = list(&report["explanation"], "theories").iter();
    theories
        .map(|verdict| {
            let is_judged = verdict["judgement"] != "not_recorded";
            assert_eq!(verdict["record"].is_null(), is_judged, "{verdict}");
            (text(&verdict["theory"]), is_judged)
        })
        .collect()
}

/// Returns an entry for each theory, by the id of the theory. The entry is true if the table of needs states
/// that the capture has the data for the theory.
fn promised(capture: &Capture) -> BTreeMap<String, bool> {
    let all = needs::THEORIES.iter();
    all.map(|needs| (needs.theory.to_owned(), needs.are_met_by(capture)))
        .collect()
}

#[test]
fn kits_allow_the_verdicts_of_their_table() {
    let folder = tempfile::tempdir().unwrap();
    for investigation in Investigation::ALL {
        let kit = folder.path().join(investigation.name());
        let kit = kit.to_str().unwrap();
        program::text(&["record", "--for", investigation.name(), "-o", kit]);
        let profile = format!("{kit}/laglab-{}.wprp", investigation.name());
        let light = format!("{profile}!laglab-{}.light", investigation.name());
        for (profile, capture) in [
            (profile, investigation.capture()),
            (light, investigation.light_capture()),
        ] {
            let said = judged(folder.path(), &["--profile", &profile]);
            assert_eq!(said, promised(&capture), "{profile}");
            for theory in investigation.theories() {
                assert!(said[*theory], "{profile}: {theory}");
            }
        }
    }
}

#[test]
fn without_a_kind_of_events_only_its_theories_are_open() {
    let folder = tempfile::tempdir().unwrap();
    let full = Investigation::Full.capture();
    // Processor groups are left out, because every simulated trace has them.
    let kinds = full.kinds().filter(|kind| *kind != Kind::CpuConfig);
    for kind in kinds {
        let less = full.without(kind);
        let profile = folder.path().join("less.wprp");
        std::fs::write(&profile, profile_of(&less)).unwrap();
        let said = judged(folder.path(), &["--profile", profile.to_str().unwrap()]);
        assert_eq!(said, promised(&less), "without {kind:?}");
    }
}

/// Returns a WPR profile that records the events of a capture. It does not use the code that writes kits, so the test
/// is independent of that code.
fn profile_of(capture: &Capture) -> String {
    let (mut keywords, mut stacks, mut providers, mut ids) =
        (String::new(), String::new(), String::new(), String::new());
    for kind in capture.kinds() {
        match kind.recorded_by() {
            RecorderOption::Kernel(keyword) => {
                keywords += &format!("<Keyword Value=\"{}\"/>", keyword.wpr());
            }
            RecorderOption::Stack(stack) => {
                stacks += &format!("<Stack Value=\"{}\"/>", stack.wpr());
            }
            RecorderOption::Provider(provider, mask) => {
                let guid = provider.guid();
                let mask = if mask == 0 { u64::MAX } else { mask };
                providers += &format!(
                    "<EventProvider Id=\"P-{guid}\" Name=\"{guid}\"><Keywords><Keyword \
                     Value=\"{mask:#x}\"/></Keywords></EventProvider>"
                );
                ids += &format!("<EventProviderId Value=\"P-{guid}\"/>");
            }
        }
    }
    format!(
        "<WindowsPerformanceRecorder Version=\"1.0\" Author=\"a\"><Profiles><SystemCollector Id=\"S\" \
         Name=\"NT Kernel Logger\"><BufferSize Value=\"64\"/><Buffers Value=\"64\"/></SystemCollector>\
         <EventCollector Id=\"E\" Name=\"e\"><BufferSize Value=\"64\"/><Buffers Value=\"64\"/>\
         </EventCollector><SystemProvider Id=\"SP\"><Keywords>{keywords}</Keywords><Stacks>{stacks}\
         </Stacks></SystemProvider>{providers}<Profile Id=\"L.Verbose.File\" Name=\"L\" \
         Description=\"d\" LoggingMode=\"File\" DetailLevel=\"Verbose\"><Collectors>\
         <SystemCollectorId Value=\"S\"><SystemProviderId Value=\"SP\"/></SystemCollectorId>\
         <EventCollectorId Value=\"E\"><EventProviders>{ids}</EventProviders></EventCollectorId>\
         </Collectors></Profile></Profiles></WindowsPerformanceRecorder>"
    )
}
