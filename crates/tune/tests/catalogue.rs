//! Checks that the catalogue is consistent.

use std::collections::HashSet;

use registry::Key;
use tune::catalogue::{Catalogue, PlacePattern, Type};
use tune::placed_value::Place;

#[test]
fn ids_are_unique_and_every_setting_has_sources() {
    let mut ids = HashSet::new();
    for setting in Catalogue::get().settings() {
        let id = &setting.id;
        assert!(ids.insert(id), "duplicate id {id}");
        assert!(!setting.meaning.is_empty(), "{id}");
        assert!(!setting.defaults.is_empty(), "{id}");
        assert!(!setting.takes_effect.is_empty(), "{id}");
        assert!(!setting.sources.is_empty(), "{id}");
        for source in &setting.sources {
            assert!(source.starts_with("https://"), "{id}: {source}");
        }
        let checked = &setting.checked;
        assert!(checked.found.len() > 20, "{id}");
        let parts: Vec<&str> = checked.on.split('-').collect();
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        assert_eq!(lengths, [4, 2, 2], "{id}: {}", checked.on);
        assert!(parts.iter().all(|part| part.parse::<u32>().is_ok()), "{id}");
        for shown in &setting.shows {
            assert!(
                setting.sources.contains(&shown.source),
                "{id}: {}",
                shown.source
            );
            assert!(shown.why.ends_with(['.', ')']), "{id}: {}", shown.why);
        }
        let is_fact = setting.types == [Type::Fact];
        assert_eq!(setting.places.is_empty(), is_fact, "{id}");
        // The last default must apply to all editions. The only exception is a setting with two defaults, such as one
        // for clients and one for servers.
        let kinds = |at: usize| setting.defaults[at].when.on.len();
        let last = setting.defaults.len() - 1;
        assert!(kinds(last) == 0 || last == 1, "{id}");
    }
}

#[test]
fn no_two_settings_are_at_one_place() {
    let settings = Catalogue::get().settings();
    let mut places = HashSet::new();
    for setting in settings {
        for place in &setting.places {
            assert!(places.insert(place.to_string().to_lowercase()), "{place}");
        }
    }
}

#[test]
fn registry_keys_are_in_canonical_form() {
    for setting in Catalogue::get().settings() {
        for place in &setting.places {
            let PlacePattern::Registry { key, name } = place else {
                continue;
            };
            let parsed = Key::new(key).unwrap_or_else(|| panic!("{key} is not a key"));
            assert_eq!(parsed.as_str(), key);
            let place = Place::Registry {
                key: parsed,
                name: name.to_uppercase(),
            };
            let found = Catalogue::get().at(&place).map(|setting| &setting.id);
            assert_eq!(found, Some(&setting.id));
        }
    }
}

#[test]
fn docs_are_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
    let expected = tune::reference();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &expected).expect("docs/settings.md is writable");
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == expected,
        "docs/settings.md is outdated: run UPDATE_EXPECT=1 cargo test -p tune"
    );
}
