//! Catalogue of settings: `catalogue/*.toml`, one file per group.

mod condition;
mod datum;
mod default_value;
mod place_pattern;
mod rule;
mod setting;
mod shown;

use std::collections::HashMap;
use std::sync::LazyLock;

use registry::Key;
use serde::Deserialize;

pub use condition::{Condition, Kind, Scheme};
pub use datum::Datum;
pub use default_value::{DefaultRule, DefaultValue};
pub use place_pattern::PlacePattern;
pub(crate) use place_pattern::is_open;
pub use rule::{Rule, Verdict};
pub use setting::{
    AllowedValues, Builds, Confidence, FactCheck, Misspelling, NamedValue, Setting, TakesEffect,
    Type, WrongType,
};
pub use shown::{Shown, Times};

use crate::placed_value::Place;

/// Returns the name and the text of each group's file in `catalogue/`.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../catalogue/", $name, ".toml")))),*]
    };
}

const FILES: [(&str, &str); 18] = files![
    "scheduler",
    "timer",
    "multimedia",
    "interrupt",
    "power",
    "memory",
    "rss",
    "nic",
    "sockets",
    "tcp",
    "qos",
    "smb",
    "dfs",
    "storage",
    "services",
    "security",
    "input",
    "ui",
];

/// All known settings.
#[derive(Debug)]
pub struct Catalogue {
    groups: Vec<Group>,
    settings: Vec<Setting>,
    /// Indexes in `settings`. The key is the last part of one of the setting's places or misspellings, in
    /// lower case.
    by_name: HashMap<String, Vec<usize>>,
    /// Indexes in `settings`, each with the index of a place of this setting. The key is the end of the
    /// place's registry key.
    by_key: HashMap<KeyEnd, Vec<(usize, usize)>>,
}

/// End of the registry key of a place. It consists of the number of the key's parts and of the key's last
/// part in lower case. The last part is `None` if it is a placeholder.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct KeyEnd {
    parts: usize,
    last: Option<String>,
}

impl KeyEnd {
    fn of_pattern(key: &str) -> KeyEnd {
        let (parts, last) = end(key);
        let last = (!is_open(last)).then(|| last.to_lowercase());
        KeyEnd { parts, last }
    }

    /// Returns the ends of all patterns that can match a key.
    fn of_patterns_for(key: &Key) -> [KeyEnd; 2] {
        let (parts, last) = end(key.as_str());
        let last = Some(last.to_lowercase());
        [KeyEnd { parts, last }, KeyEnd { parts, last: None }]
    }
}

/// Returns the number of parts of a key, and the last part.
fn end(key: &str) -> (usize, &str) {
    let last = key.rsplit('\\').next().unwrap_or_default();
    (key.split('\\').count(), last)
}

/// A group of settings.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name of the group's file, without `.toml`.
    pub name: &'static str,
    /// Title of the group.
    pub title: String,
    /// Text about the effect of the group's settings on latency.
    pub about: String,
}

/// Contents of a group's file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    about: String,
    setting: Vec<Setting>,
}

impl Catalogue {
    /// Returns the built-in catalogue.
    pub fn get() -> &'static Catalogue {
        static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
            let files = FILES.iter();
            let parsed = files.map(|(name, text)| {
                let file = toml::from_str::<File>(text);
                let file = file.unwrap_or_else(|error| panic!("catalogue/{name}.toml: {error}"));
                (*name, file)
            });
            Catalogue::new(parsed.collect())
        });
        &CATALOGUE
    }

    fn new(files: Vec<(&'static str, File)>) -> Catalogue {
        let (mut groups, mut settings) = (Vec::new(), Vec::new());
        for (name, file) in files {
            groups.push(Group {
                name,
                title: file.title,
                about: file.about,
            });
            for mut setting in file.setting {
                setting.group = name;
                settings.push(setting);
            }
        }
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, setting) in settings.iter().enumerate() {
            let misspelt = (setting.misspellings.iter()).map(|misspelling| &misspelling.place);
            for place in setting.places.iter().chain(misspelt) {
                let numbers = by_name.entry(place.name().to_lowercase()).or_default();
                if numbers.last() != Some(&number) {
                    numbers.push(number);
                }
            }
        }
        let mut by_key: HashMap<KeyEnd, Vec<(usize, usize)>> = HashMap::new();
        for (number, setting) in settings.iter().enumerate() {
            for (place, pattern) in setting.places.iter().enumerate() {
                if let PlacePattern::Registry { key, .. } = pattern {
                    let numbers = by_key.entry(KeyEnd::of_pattern(key)).or_default();
                    numbers.push((number, place));
                }
            }
        }
        Catalogue {
            groups,
            settings,
            by_name,
            by_key,
        }
    }

    /// Returns all groups in the order in which they are shown.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Returns all settings in the order of their groups.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Returns the setting that is stored at this place.
    pub fn at(&self, place: &Place) -> Option<&Setting> {
        self.candidates(place)
            .find(|setting| setting.places.iter().any(|pattern| pattern.matches(place)))
    }

    /// Returns the setting for which this place is a known misspelling.
    pub fn misspelt_at(&self, place: &Place) -> Option<(&Setting, &Misspelling)> {
        self.candidates(place).find_map(|setting| {
            let mut misspellings = setting.misspellings.iter();
            let misspelling = misspellings.find(|misspelling| misspelling.place.matches(place))?;
            Some((setting, misspelling))
        })
    }

    /// Returns the settings that are stored in this registry key, each with the name of its registry value.
    pub fn names_in(&self, key: &Key) -> impl Iterator<Item = (&Setting, &str)> {
        let ends = KeyEnd::of_patterns_for(key);
        let numbers = ends.into_iter().filter_map(|end| self.by_key.get(&end));
        numbers.flatten().filter_map(|(setting, place)| {
            let setting = &self.settings[*setting];
            let pattern = &setting.places[*place];
            pattern.is_in(key).then(|| (setting, pattern.name()))
        })
    }

    fn candidates(&self, place: &Place) -> impl Iterator<Item = &Setting> {
        let name: &str = match place {
            Place::Registry { name, .. } => name,
            Place::Boot { element, .. } => element,
            Place::Power { setting, .. } => setting.trim_matches(['{', '}']),
            Place::Answer { property, .. } => property,
            Place::Kernel { symbol } => symbol,
        };
        let numbers = self.by_name.get(&name.to_lowercase());
        (numbers.into_iter().flatten()).map(move |number| &self.settings[*number])
    }

    /// Returns all settings with this name, ignoring case. The name may be an id, a family, a name, an alias,
    /// or the last part of a place.
    pub fn named(&self, name: &str) -> Vec<&Setting> {
        let is_named = |setting: &&Setting| {
            setting
                .names()
                .any(|known| known.eq_ignore_ascii_case(name))
        };
        self.settings.iter().filter(is_named).collect()
    }
}

impl Setting {
    /// Returns all names of the setting: id, family, name, aliases, and the last part of each place (see
    /// [`PlacePattern::name`]).
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [self.id.as_str(), self.family(), &self.name]
            .into_iter()
            .chain(self.aliases.iter().map(String::as_str))
            .chain(self.places.iter().map(PlacePattern::name))
    }
}
