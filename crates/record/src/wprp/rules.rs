//! Rules of profiles that a schema cannot express: names, references and combinations.

use std::collections::{HashMap, HashSet};

use xml::Node;

use super::Severity;
use super::document::{Document, Remarks, children};
use super::vocabulary::{
    self, CLASSIC_KEYWORDS, CLASSIC_STACKS, CUSTOM_EVENTS, NEWER_KEYWORDS, NEWER_STACKS, Since,
    nearest,
};

/// Checks all rules.
pub(super) fn check(remarks: &mut Remarks<'_, '_>, document: &Document<'_, '_>) {
    if document.root.attribute("Author").is_none() {
        let what = "the documentation requires the attribute `Author`; the schema does not";
        remarks.on(document.root, Severity::Advice, what);
    }
    check_ids(remarks, document);
    check_references(remarks, document);
    check_inherited_collectors(remarks, document);
    check_collectors(remarks, document);
    for provider in ["SystemProvider", "SystemProviderId"] {
        for provider in document.all(provider) {
            check_keywords(remarks, provider);
            check_stacks(remarks, document, provider);
            check_pool_tags(remarks, provider);
        }
    }
    check_providers(remarks, document);
    for provider in ["EventProvider", "EventProviderId"] {
        for provider in document.all(provider) {
            check_masks(remarks, provider);
        }
    }
    check_profiles(remarks, document);
    check_merging(remarks, document);
}

/// Elements to which other elements can refer.
const REFERENCED: [&str; 8] = [
    "SystemCollector",
    "EventCollector",
    "HeapEventCollector",
    "SystemProvider",
    "EventProvider",
    "HeapEventProvider",
    "Profile",
    "TraceMergeProperty",
];

/// Ids of collectors in WPR's built-in profiles. Public profiles refer to them.
const BUILT_IN_COLLECTORS: [&str; 2] = [
    "SystemCollector_WPRSystemCollectorInFile",
    "EventCollector_WPREventCollectorInFile",
];

fn check_ids(remarks: &mut Remarks<'_, '_>, document: &Document<'_, '_>) {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    // The schema requires unique ids for elements in lists, but not for providers that are defined inside a
    // profile.
    let lists = document.root.children();
    for node in lists.flat_map(|list| list.children()) {
        let name = node.tag_name().name();
        let Some(id) = node.attribute("Id") else {
            continue;
        };
        if let Some(other) = seen.insert(id, name) {
            let what = format!("the id `{id}` is already used by a `{other}`");
            remarks.on_attribute(node, "Id", Severity::Error, what);
        }
    }
}

fn check_references(remarks: &mut Remarks<'_, '_>, document: &Document<'_, '_>) {
    for node in document.root.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        let element = name.strip_suffix("Id");
        if let Some((element, id)) = element.zip(node.attribute("Value"))
            && REFERENCED.contains(&element)
            && document.element_by_id(element, id).is_none()
        {
            let (severity, hint) = if BUILT_IN_COLLECTORS.contains(&id) {
                (Severity::Advice, "; WPR may still have a built-in one")
            } else {
                (Severity::Error, "")
            };
            let what = format!("this file has no `{element}` with the id `{id}`{hint}");
            remarks.on_attribute(node, "Value", severity, what);
        }
        let Some(base) = node.attribute("Base").filter(|base| !base.is_empty()) else {
            continue;
        };
        if document.element_by_id(name, base).is_none() {
            let what = format!(
                "this file has no `{name}` with the id `{base}`; start WPR with the file that has \
                 it too"
            );
            remarks.on_attribute(node, "Base", Severity::Advice, what);
        } else if let Some(last) = document.lineage(node).last()
            && let Some(base) = last.attribute("Base")
            && document.element_by_id(name, base) == Some(node)
        {
            let what = format!("circular base: `{base}` is derived from this `{name}`");
            remarks.on_attribute(node, "Base", Severity::Error, what);
        }
    }
}

/// Reports providers that a profile drops from its base. If a profile with a base lists a collector of this base
/// again, the list replaces the base's list of providers, because the default of `Operation` is `Set`.
///
/// Source: <https://learn.microsoft.com/previous-versions/windows/it-pro/windows-8.1-and-8/hh162959(v=win.10)>
fn check_inherited_collectors(remarks: &mut Remarks<'_, '_>, document: &Document<'_, '_>) {
    for profile in document.all("Profile") {
        let lineage = document.lineage(profile);
        let lists = children(profile, "Collectors");
        let replaced = lists.filter(|list| list.attribute("Operation").is_none());
        for collector in replaced.flat_map(|list| list.children()) {
            let is_same = |other: &Node<'_, '_>| {
                collector.attribute("Value").is_some()
                    && other.tag_name() == collector.tag_name()
                    && other.attribute("Value") == collector.attribute("Value")
            };
            let inherited = lineage[1..].iter().find_map(|base| {
                let lists = children(*base, "Collectors");
                lists.flat_map(|list| list.children()).find(is_same)
            });
            let is_extended = children(collector, "EventProviders")
                .any(|list| list.attribute("Operation") == Some("Add"));
            let Some(inherited) = inherited.filter(|_| !is_extended) else {
                continue;
            };
            let own: HashSet<&str> = provider_ids(collector).collect();
            let dropped: Vec<&str> = provider_ids(inherited)
                .filter(|id| !own.contains(id))
                .collect();
            if let Some((first, others)) = dropped.split_first() {
                let others = match others.len() {
                    0 => String::new(),
                    1 => " and one other provider".to_owned(),
                    count => format!(" and {count} other providers"),
                };
                let what = format!(
                    "this list replaces the list of the base and does not record its `{first}`{others}; add \
                     `Operation=\"Add\"` to `Collectors`"
                );
                remarks.on(collector, Severity::Advice, what);
            }
        }
    }
}

/// Returns the ids of the providers that a collector of a profile lists.
fn provider_ids<'a>(collector: Node<'a, '_>) -> impl Iterator<Item = &'a str> {
    let lists = collector.descendants();
    let providers = lists.filter(|node| node.tag_name().name().contains("Provider"));
    providers.filter_map(|node| node.attribute("Value").or(node.attribute("Id")))
}

/// Checks the names of collectors. Releases of WPR with the classic schema accept only two names for a
/// system collector.
fn check_collectors(remarks: &mut Remarks<'_, '_>, document: &Document<'_, '_>) {
    const NAMES: [&str; 2] = ["NT Kernel Logger", "Circular Kernel Context Logger"];
    for collector in ["SystemCollector", "EventCollector", "HeapEventCollector"] {
        for node in document.all(collector) {
            match node.attribute("Name") {
                // Public profiles omit the name of a collector that has a base, even if the base is empty.
                None if collector == "SystemCollector" => {
                    let what = format!(
                        "a system collector without a name needs a newer WPR; for every release, \
                         name it `{}`",
                        NAMES[0]
                    );
                    remarks.on(node, Severity::Newer, what);
                }
                None if node.attribute("Base").is_none() => {
                    let what = format!("`{collector}` has no attribute `Name`; add it");
                    remarks.on(node, Severity::Error, what);
                }
                Some(name) if collector == "SystemCollector" && !NAMES.contains(&name) => {
                    let what = format!(
                        "a system collector with the name `{name}` needs a newer WPR; for every \
                         release, name it `{}`",
                        NAMES[0]
                    );
                    remarks.on_attribute(node, "Name", Severity::Newer, what);
                }
                _ => {}
            }
        }
    }
}

fn check_keywords(remarks: &mut Remarks<'_, '_>, provider: Node<'_, '_>) {
    for list in children(provider, "Keywords") {
        let mut seen = HashSet::new();
        for node in children(list, "Keyword") {
            let name = node.attribute("Value").unwrap_or_default();
            let known = || CLASSIC_KEYWORDS.into_iter().chain(NEWER_KEYWORDS);
            check_known(remarks, node, "keyword", vocabulary::keyword(name), known());
            check_unique(remarks, node, "keyword", &mut seen);
        }
        for node in children(list, "CustomKeyword") {
            let value = node.attribute("Value").unwrap_or_default();
            let digits = value.strip_prefix("0x").unwrap_or_default();
            let is_hex = (1..=8).contains(&digits.len())
                && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !is_hex {
                let what = format!("a custom keyword must be 0x and 1 to 8 digits, not `{value}`");
                remarks.on_attribute(node, "Value", Severity::Error, what);
            }
        }
    }
}

fn check_stacks<'a>(
    remarks: &mut Remarks<'_, '_>,
    document: &Document<'a, '_>,
    provider: Node<'a, '_>,
) {
    let keywords: HashSet<&str> = document
        .values(provider, "Keywords", "Keyword")
        .into_iter()
        .collect();
    // A custom keyword, or a base outside of this file, may enable any keyword.
    let is_all_known = document.lineage(provider).iter().all(|node| {
        let custom =
            children(*node, "Keywords").any(|k| children(k, "CustomKeyword").next().is_some());
        let name = node.tag_name().name();
        let is_there = |base| document.element_by_id(name, base).is_some();
        !custom && node.attribute("Base").is_none_or(is_there)
    });
    for list in children(provider, "Stacks") {
        let is_removed = list.attribute("Operation") == Some("Remove");
        let mut seen = HashSet::new();
        for node in children(list, "Stack") {
            let name = node.attribute("Value").unwrap_or_default();
            let known = CLASSIC_STACKS.into_iter().map(|(stack, _)| stack);
            let since = vocabulary::stack(name).map(|(since, _)| since);
            check_known(remarks, node, "stack", since, known.chain(NEWER_STACKS));
            check_unique(remarks, node, "stack", &mut seen);
            let needs = vocabulary::stack(name).map_or(&[][..], |(_, needs)| needs);
            let has_one = needs.is_empty() || needs.iter().any(|needed| keywords.contains(needed));
            if !has_one && is_all_known && !is_removed {
                let what = format!(
                    "stacks of `{name}` need the keyword `{}`; add it",
                    needs.join("` or `")
                );
                remarks.on_attribute(node, "Value", Severity::Error, what);
            }
        }
    }
}

fn check_known<'n>(
    remarks: &mut Remarks<'_, '_>,
    node: Node<'_, '_>,
    noun: &str,
    since: Option<Since>,
    known: impl Iterator<Item = &'n str>,
) {
    let name = node.attribute("Value").unwrap_or_default();
    match since {
        Some(Since::Classic) => {}
        Some(Since::Newer) => {
            let what = format!("the {noun} `{name}` needs a newer WPR");
            remarks.on_attribute(node, "Value", Severity::Newer, what);
        }
        None if name.is_empty() => {}
        None => {
            let hint = nearest(name, known)
                .map_or(String::new(), |known| format!("; did you mean `{known}`?"));
            let what = format!("unknown {noun} `{name}`{hint}");
            remarks.on_attribute(node, "Value", Severity::Error, what);
        }
    }
}

fn check_unique<'a>(
    remarks: &mut Remarks<'_, '_>,
    node: Node<'a, '_>,
    noun: &str,
    seen: &mut HashSet<&'a str>,
) {
    let name = node.attribute("Value").unwrap_or_default();
    if !seen.insert(name) {
        let what = format!("the {noun} `{name}` is in the list twice");
        remarks.on_attribute(node, "Value", Severity::Error, what);
    }
}

fn check_pool_tags(remarks: &mut Remarks<'_, '_>, provider: Node<'_, '_>) {
    const MAX: usize = 4;
    for list in children(provider, "PoolTags") {
        if let Some(node) = children(list, "PoolTag").nth(MAX) {
            let what = format!("too many pool tags; WPR takes at most {MAX}");
            remarks.on(node, Severity::Error, what);
        }
    }
}

fn check_providers(remarks: &mut Remarks<'_, '_>, document: &Document<'_, '_>) {
    for node in document.all("EventProvider") {
        if node.attribute("Name").is_none() && node.attribute("Base").is_none() {
            let what = "`EventProvider` has no attribute `Name`; add a name or a GUID";
            remarks.on(node, Severity::Error, what);
        }
        if node.attribute("Strict") == Some("true") {
            let what = "if this provider cannot be started, WPR records nothing at all; remove \
                        `Strict` unless every recording needs the provider";
            remarks.on_attribute(node, "Strict", Severity::Advice, what);
        }
    }
}

fn check_masks(remarks: &mut Remarks<'_, '_>, provider: Node<'_, '_>) {
    for list in ["Keywords", "CaptureStateOnStart", "CaptureStateOnSave"] {
        for list in children(provider, list) {
            let mut seen = HashSet::new();
            for node in children(list, "Keyword") {
                check_unique(remarks, node, "keyword", &mut seen);
            }
        }
    }
}

fn check_profiles(remarks: &mut Remarks<'_, '_>, document: &Document<'_, '_>) {
    let parts = |node: Node<'_, '_>| {
        let part = |name| node.attribute(name).unwrap_or_default().to_owned();
        (part("Name"), part("DetailLevel"), part("LoggingMode"))
    };
    let all: HashSet<_> = document.all("Profile").map(parts).collect();
    let mut first: Option<String> = None;
    let mut is_reported = false;
    for node in document.all("Profile") {
        let (name, detail, mode) = parts(node);
        if name.is_empty() || detail.is_empty() || mode.is_empty() {
            continue;
        }
        let expected = format!("{name}.{detail}.{mode}");
        if let Some(id) = node.attribute("Id").filter(|id| *id != expected) {
            let what = format!("the id of this profile must be `{expected}`, not `{id}`");
            remarks.on_attribute(node, "Id", Severity::Error, what);
        }
        let other = if mode == "File" { "Memory" } else { "File" };
        if !all.contains(&(name.clone(), detail.clone(), other.to_owned())) {
            let what = format!(
                "the profile `{name}` has no variant for logging mode {other}, which the \
                 documentation requires; add `{name}.{detail}.{other}` with this one as its base"
            );
            remarks.on(node, Severity::Advice, what);
        }
        let first = first.get_or_insert_with(|| name.clone());
        if *first != name && !is_reported {
            let what = format!(
                "`{name}` is a second profile next to `{first}`; the documentation allows one name \
                 per file"
            );
            remarks.on_attribute(node, "Name", Severity::Advice, what);
            is_reported = true;
        }
    }
}

fn check_merging(remarks: &mut Remarks<'_, '_>, document: &Document<'_, '_>) {
    for list in document.all("CustomEvents") {
        let mut seen = HashSet::new();
        for node in children(list, "CustomEvent") {
            let name = node.attribute("Value").unwrap_or_default();
            if !CUSTOM_EVENTS.contains(&name) {
                let hint = nearest(name, CUSTOM_EVENTS.into_iter())
                    .map_or(String::new(), |known| format!("; did you mean `{known}`?"));
                let what = format!("unknown custom event `{name}`{hint}");
                remarks.on_attribute(node, "Value", Severity::Error, what);
            }
            check_unique(remarks, node, "custom event", &mut seen);
        }
        if !seen.contains("ImageId") && list.attribute("Operation").is_none() {
            let what = "without `ImageId` the symbols of the trace cannot be found; add it";
            remarks.on(list, Severity::Advice, what);
        }
    }
}
