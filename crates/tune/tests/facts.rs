//! The catalogue against the facts it was written from, which lie beside the repository.

use serde_json::Value;
use tune::catalogue::{Catalogue, Confidence, DefaultValue, Setting};
use tune::machine::{Edition, Machine};

fn facts() -> Vec<Value> {
    let facts = testdata::reference_json("settings.json");
    let settings = facts["settings"].as_array().expect("a list");
    assert_eq!(settings.len(), 88);
    settings.clone()
}

/// The settings that tell of a row: one of its id, or several of its family.
fn of(row: &Value) -> Vec<&'static Setting> {
    let id = row["id"].as_str().expect("an id");
    let settings = Catalogue::get().settings().iter();
    let settings: Vec<_> = settings.filter(|setting| setting.family() == id).collect();
    assert!(!settings.is_empty(), "{id} is not in the catalogue");
    settings
}

#[test]
fn every_row_is_there_with_its_sources() {
    for row in facts() {
        let settings = of(&row);
        for source in row["sources"].as_array().expect("sources") {
            let source = source.as_str().expect("a source");
            let has = |setting: &&Setting| setting.sources.iter().any(|own| own == source);
            assert!(settings.iter().any(has), "{}: {source}", row["id"]);
        }
        for setting in &settings {
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
fn builds_restarts_and_security_are_those_of_the_facts() {
    for row in facts() {
        for setting in of(&row) {
            let id = &setting.id;
            let bound = |which: &str| row["builds"][which].as_u64();
            // A part of a family may have come later.
            if let Some(from) = bound("min") {
                assert!(
                    setting
                        .builds
                        .from
                        .is_some_and(|own| u64::from(own) >= from),
                    "{id}"
                );
            }
            if let Some(until) = bound("max") {
                assert_eq!(setting.builds.until.map(u64::from), Some(until), "{id}");
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
        for setting in of(&row) {
            assert!(setting.confidence(&old) <= most, "{}", setting.id);
            if setting.family() == setting.id {
                assert_eq!(setting.confidence(&old), most, "{}", setting.id);
            }
        }
    }
}

/// Where the facts give one plain number as the default, the catalogue gives it on every machine.
#[test]
fn plain_defaults_are_those_of_the_facts() {
    let mut compared = 0;
    for row in facts() {
        let settings = of(&row);
        let [setting] = settings[..] else { continue };
        let Some(text) = row["default"].as_str() else {
            continue;
        };
        let first = text.split([' ', '(']).next().unwrap_or_default();
        let Ok(number) = first.parse::<u64>() else {
            continue;
        };
        // A number that hangs on something is told as such.
        if text.contains("else") || text.contains("AC") || text.contains("5999") {
            continue;
        }
        let machine = Machine {
            name: None,
            build: Some(19045),
            edition: Some(Edition::Pro),
        };
        let [default] = setting.defaults_on(&machine, None)[..] else {
            panic!("{}: no one default", setting.id)
        };
        let effective = default.value.effective().and_then(|value| match value {
            tune::catalogue::Datum::Number(number) => Some(*number),
            tune::catalogue::Datum::Text(text) => text.parse().ok(),
        });
        assert_eq!(effective, Some(number), "{}: {text}", setting.id);
        compared += 1;
    }
    assert!(compared > 25, "{compared}");
}

#[test]
fn defaults_that_differ_by_machine_are_those_of_the_facts() {
    let machine = |build, edition| Machine {
        name: None,
        build: Some(build),
        edition: Some(edition),
    };
    let value = |id: &str, machine: &Machine| {
        let setting = Catalogue::get().named(id)[0];
        let [default] = setting.defaults_on(machine, None)[..] else {
            panic!("{id}: no one default")
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
