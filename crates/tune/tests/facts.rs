//! Comparison of the catalogue with reference facts, which are outside the repository. The catalogue was
//! later checked against its sources, so it corrects some reference facts.

use serde_json::Value;
use tune::catalogue::{Catalogue, Confidence, DefaultValue, Setting};
use tune::machine::{Edition, Machine};

fn facts() -> Vec<Value> {
    let facts = testdata::reference_json("settings.json");
    let settings = facts["settings"].as_array().expect("a list");
    assert_eq!(settings.len(), 88);
    settings.clone()
}

/// Reference facts that contradict the sources: id of the setting, name of the fact, and the reason.
const CORRECTED: &[(&str, &str, &str)] = &[
    ("afd_buffermultiplier", "default", "no public source"),
    (
        "chimney",
        "last build",
        "Features removed from Windows 10: 15063",
    ),
    ("gamedvr.capture", "first build", "WDDM 2.1: before 15063"),
    ("gamedvr.enabled", "first build", "WDDM 2.1: before 15063"),
];

/// Asserts that the settings that differ in one fact are exactly those in `CORRECTED`.
fn assert_known(fact: &str, mut differing: Vec<&str>) {
    let known = CORRECTED.iter().filter(|(_, of, _)| *of == fact);
    let mut known: Vec<&str> = known.map(|(id, ..)| *id).collect();
    known.sort_unstable();
    differing.sort_unstable();
    assert_eq!(differing, known, "{fact}");
}

/// Returns the settings for a row of the reference facts: the setting with its id, or all settings of
/// its family.
fn settings_of_row(row: &Value) -> Vec<&'static Setting> {
    let id = row["id"].as_str().expect("an id");
    let settings = Catalogue::get().settings().iter();
    let settings: Vec<_> = settings.filter(|setting| setting.family() == id).collect();
    assert!(!settings.is_empty(), "{id} is not in the catalogue");
    settings
}

#[test]
fn every_row_is_in_the_catalogue() {
    for row in facts() {
        for setting in settings_of_row(&row) {
            assert_eq!(setting.group, row["group"], "{}", setting.id);
        }
    }
    let families: Vec<_> = facts().iter().map(|row| row["id"].clone()).collect();
    for setting in Catalogue::get().settings() {
        assert!(
            families.iter().any(|id| id == setting.family()),
            "{}",
            setting.id
        );
    }
}

#[test]
fn builds_restarts_and_security_match_the_facts() {
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for row in facts() {
        for setting in settings_of_row(&row) {
            let id = &setting.id;
            let bound = |which: &str| row["builds"][which].as_u64();
            // A setting of a family can be newer than the family.
            let from = setting.builds.from.map(u64::from);
            if bound("min").is_some() && from < bound("min") {
                first.push(id.as_str());
            }
            if bound("max").is_some() && setting.builds.until.map(u64::from) != bound("max") {
                last.push(id.as_str());
            }
            assert_eq!(setting.needs_reboot(), row["needs_reboot"], "{id}");
            let is_control = row["risk"].as_str().is_some_and(|risk| {
                ["security", "HIGH", "as above"]
                    .iter()
                    .any(|word| risk.contains(word))
            });
            assert_eq!(!setting.protects.is_empty(), is_control, "{id}");
        }
    }
    assert_known("first build", first);
    assert_known("last build", last);
}

#[test]
fn confidence_is_at_most_that_of_the_facts() {
    let old = Machine {
        build: Some(19045),
        ..Machine::default()
    };
    for row in facts() {
        let most = match row["confidence"].as_str().expect("a confidence") {
            text if text.starts_with("high") => Confidence::High,
            text if text.starts_with("medium") => Confidence::Medium,
            _ => Confidence::Low,
        };
        for setting in settings_of_row(&row) {
            assert!(setting.confidence(&old) <= most, "{}", setting.id);
        }
    }
}

/// Checks defaults that the reference facts state as a plain number. In the catalogue, this number must be
/// the default on every machine.
#[test]
fn plain_defaults_match_the_facts() {
    let mut compared = 0;
    let mut differing = Vec::new();
    for row in facts() {
        let settings = settings_of_row(&row);
        let [setting] = settings[..] else { continue };
        let Some(text) = row["default"].as_str() else {
            continue;
        };
        let first = text.split([' ', '(']).next().unwrap_or_default();
        let Ok(number) = first.parse::<u64>() else {
            continue;
        };
        // Skip defaults that depend on a condition.
        if text.contains("else") || text.contains("AC") || text.contains("5999") {
            continue;
        }
        let machine = Machine {
            name: None,
            build: Some(19045),
            edition: Some(Edition::Pro),
        };
        let [default] = setting.defaults_on(&machine, None)[..] else {
            panic!("{}: not one default", setting.id)
        };
        let effective = default.value.effective().and_then(|value| match value {
            tune::catalogue::Datum::Number(number) => Some(*number),
            tune::catalogue::Datum::Text(text) => text.parse().ok(),
        });
        if effective != Some(number) {
            differing.push(setting.id.as_str());
        }
        compared += 1;
    }
    assert_known("default", differing);
    assert!(compared > 25, "{compared}");
}

#[test]
fn defaults_by_machine_match_the_facts() {
    let machine = |build, edition| Machine {
        name: None,
        build: Some(build),
        edition: Some(edition),
    };
    let value = |id: &str, machine: &Machine| {
        let setting = Catalogue::get().named(id)[0];
        let [default] = setting.defaults_on(machine, None)[..] else {
            panic!("{id}: not one default")
        };
        match &default.value {
            DefaultValue::Varies(_) => None,
            known => known.effective().and_then(tune::catalogue::Datum::number),
        }
    };
    for (id, build, edition, expected) in [
        ("win32prioritysep", 22631, Edition::Pro, 2),
        ("win32prioritysep", 20348, Edition::Server, 2),
        ("globaltimer", 22631, Edition::Home, 0),
        ("globaltimer", 20348, Edition::Server, 1),
        ("flowcontrol", 19045, Edition::Pro, 3),
        ("flowcontrol", 17763, Edition::Server, 0),
        ("smb_srv_enable", 17763, Edition::DomainController, 1),
        ("smb_srv_enable", 17763, Edition::Server, 0),
        ("smb1", 16299, Edition::Pro, 0),
        ("smb1", 15063, Edition::Pro, 1),
    ] {
        assert_eq!(
            value(id, &machine(build, edition)),
            Some(expected),
            "{id} on {build}"
        );
    }
}
