//! Rules that no schema states: names, references, and what belongs together.

use std::collections::{HashMap, HashSet};

use roxmltree::Node;

use super::Gravity;
use super::document::{Document, Remarks, children};
use super::vocabulary::{
    self, CLASSIC_KEYWORDS, CLASSIC_STACKS, CUSTOM_EVENTS, NEWER_KEYWORDS, NEWER_STACKS, Since,
    nearest,
};

/// Checks all of them.
pub(super) fn check(remarks: &mut Remarks<'_, '_>, document: &Document<'_, '_>) {
    if document.root.attribute("Author").is_none() {
        let what = "the documentation wants the attribute `Author`, though the schema does not";
        remarks.on(document.root, Gravity::Advice, what);
    }
    ids_are_unique(remarks, document);
    references_resolve(remarks, document);
    collectors_are_named(remarks, document);
    for provider in ["SystemProvider", "SystemProviderId"] {
        for provider in document.all(provider) {
            keywords_are_known(remarks, provider);
            stacks_are_known(remarks, document, provider);
            pool_tags_are_few(remarks, provider);
        }
    }
    providers_are_named(remarks, document);
    for provider in ["EventProvider", "EventProviderId"] {
        for provider in document.all(provider) {
            masks_are_there_once(remarks, provider);
        }
    }
    profiles_come_in_pairs(remarks, document);
    merging_keeps_identities(remarks, document);
}

/// Elements that others refer to.
const REFERRED: [&str; 8] = [
    "SystemCollector",
    "EventCollector",
    "HeapEventCollector",
    "SystemProvider",
    "EventProvider",
    "HeapEventProvider",
    "Profile",
    "TraceMergeProperty",
];

/// Collectors of WPR's built-in profiles, which public profiles refer to.
const OF_WPR_ITSELF: [&str; 2] = [
    "SystemCollector_WPRSystemCollectorInFile",
    "EventCollector_WPREventCollectorInFile",
];

fn ids_are_unique(remarks: &mut Remarks<'_, '_>, document: &Document<'_, '_>) {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    // The schema asks it of what lists hold, not of providers that a profile defines for itself.
    let lists = document.root.children();
    for node in lists.flat_map(|list| list.children()) {
        let name = node.tag_name().name();
        let Some(id) = node.attribute("Id") else {
            continue;
        };
        if let Some(other) = seen.insert(id, name) {
            let what = format!("the id `{id}` is taken already, by a `{other}`");
            remarks.on_attribute(node, "Id", Gravity::Wrong, what);
        }
    }
}

fn references_resolve(remarks: &mut Remarks<'_, '_>, document: &Document<'_, '_>) {
    for node in document.root.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        let element = name.strip_suffix("Id");
        if let Some((element, id)) = element.zip(node.attribute("Value"))
            && REFERRED.contains(&element)
            && document.of_id(element, id).is_none()
        {
            let (gravity, hint) = match OF_WPR_ITSELF.contains(&id) {
                true => (
                    Gravity::Advice,
                    ": it is one of WPR's own, if that still has it",
                ),
                false => (Gravity::Wrong, ""),
            };
            let what = format!("there is no `{element}` of id `{id}` in this file{hint}");
            remarks.on_attribute(node, "Value", gravity, what);
        }
        let Some(base) = node.attribute("Base").filter(|base| !base.is_empty()) else {
            continue;
        };
        if document.of_id(name, base).is_none() {
            let what = format!(
                "there is no `{name}` of id `{base}` in this file: WPR then has to be started with the \
                 one that has it, too"
            );
            remarks.on_attribute(node, "Base", Gravity::Advice, what);
        } else if let Some(last) = document.lineage(node).last()
            && let Some(base) = last.attribute("Base")
            && document.of_id(name, base) == Some(node)
        {
            let what = format!("`{base}` is derived from this `{name}` in turn");
            remarks.on_attribute(node, "Base", Gravity::Wrong, what);
        }
    }
}

/// The kernel's session had to have one of two names.
fn collectors_are_named(remarks: &mut Remarks<'_, '_>, document: &Document<'_, '_>) {
    const NAMES: [&str; 2] = ["NT Kernel Logger", "Circular Kernel Context Logger"];
    for collector in ["SystemCollector", "EventCollector", "HeapEventCollector"] {
        for node in document.all(collector) {
            match node.attribute("Name") {
                // Public profiles do without, with a base that is empty or none.
                None if collector == "SystemCollector" => {
                    let what = format!(
                        "a system collector without a name is known to newer WPR only; others take \
                         `{}`",
                        NAMES[0]
                    );
                    remarks.on(node, Gravity::Newer, what);
                }
                None if node.attribute("Base").is_none() => {
                    let what = format!("`{collector}` lacks its attribute `Name`");
                    remarks.on(node, Gravity::Wrong, what);
                }
                Some(name) if collector == "SystemCollector" && !NAMES.contains(&name) => {
                    let what = format!(
                        "a system collector of the name `{name}` is known to newer WPR only; others \
                         take `{}`",
                        NAMES[0]
                    );
                    remarks.on_attribute(node, "Name", Gravity::Newer, what);
                }
                _ => {}
            }
        }
    }
}

fn keywords_are_known(remarks: &mut Remarks<'_, '_>, provider: Node<'_, '_>) {
    for list in children(provider, "Keywords") {
        let mut seen = HashSet::new();
        for node in children(list, "Keyword") {
            let name = node.attribute("Value").unwrap_or_default();
            let known = || CLASSIC_KEYWORDS.into_iter().chain(NEWER_KEYWORDS);
            is_known(remarks, node, "keyword", vocabulary::keyword(name), known());
            is_new(remarks, node, "keyword", &mut seen);
        }
        for node in children(list, "CustomKeyword") {
            let value = node.attribute("Value").unwrap_or_default();
            let digits = value.strip_prefix("0x").unwrap_or_default();
            let is_hex = (1..=8).contains(&digits.len())
                && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !is_hex {
                let what = format!("a custom keyword is 0x and 1 to 8 digits, not `{value}`");
                remarks.on_attribute(node, "Value", Gravity::Wrong, what);
            }
        }
    }
}

fn stacks_are_known<'a>(
    remarks: &mut Remarks<'_, '_>,
    document: &Document<'a, '_>,
    provider: Node<'a, '_>,
) {
    let keywords: HashSet<&str> = document
        .values(provider, "Keywords", "Keyword")
        .into_iter()
        .collect();
    // These may switch on anything, and so may what is not in this file.
    let is_all_known = document.lineage(provider).iter().all(|node| {
        let custom =
            children(*node, "Keywords").any(|k| children(k, "CustomKeyword").next().is_some());
        let name = node.tag_name().name();
        let is_there = |base| document.of_id(name, base).is_some();
        !custom && node.attribute("Base").is_none_or(is_there)
    });
    for list in children(provider, "Stacks") {
        let is_removed = list.attribute("Operation") == Some("Remove");
        let mut seen = HashSet::new();
        for node in children(list, "Stack") {
            let name = node.attribute("Value").unwrap_or_default();
            let known = CLASSIC_STACKS.into_iter().map(|(stack, _)| stack);
            let since = vocabulary::stack(name).map(|(since, _)| since);
            is_known(remarks, node, "stack", since, known.chain(NEWER_STACKS));
            is_new(remarks, node, "stack", &mut seen);
            let needs = vocabulary::stack(name).map_or(&[][..], |(_, needs)| needs);
            let has_one = needs.is_empty() || needs.iter().any(|needed| keywords.contains(needed));
            if !has_one && is_all_known && !is_removed {
                let what = format!(
                    "stacks of `{name}` need the keyword `{}`, which is not switched on",
                    needs.join("` or `")
                );
                remarks.on_attribute(node, "Value", Gravity::Wrong, what);
            }
        }
    }
}

fn is_known<'n>(
    remarks: &mut Remarks<'_, '_>,
    node: Node<'_, '_>,
    what_it_is: &str,
    since: Option<Since>,
    known: impl Iterator<Item = &'n str>,
) {
    let name = node.attribute("Value").unwrap_or_default();
    match since {
        Some(Since::Classic) => {}
        Some(Since::Newer) => {
            let what = format!("the {what_it_is} `{name}` is known to newer WPR only");
            remarks.on_attribute(node, "Value", Gravity::Newer, what);
        }
        None if name.is_empty() => {}
        None => {
            let hint = nearest(name, known)
                .map_or(String::new(), |known| format!("; `{known}` is meant?"));
            let what = format!("there is no {what_it_is} `{name}`{hint}");
            remarks.on_attribute(node, "Value", Gravity::Wrong, what);
        }
    }
}

fn is_new<'a>(
    remarks: &mut Remarks<'_, '_>,
    node: Node<'a, '_>,
    what_it_is: &str,
    seen: &mut HashSet<&'a str>,
) {
    let name = node.attribute("Value").unwrap_or_default();
    if !seen.insert(name) {
        let what = format!("the {what_it_is} `{name}` is in the list already");
        remarks.on_attribute(node, "Value", Gravity::Wrong, what);
    }
}

fn pool_tags_are_few(remarks: &mut Remarks<'_, '_>, provider: Node<'_, '_>) {
    const MOST: usize = 4;
    for list in children(provider, "PoolTags") {
        if let Some(node) = children(list, "PoolTag").nth(MOST) {
            let what = format!("there are at most {MOST} pool tags");
            remarks.on(node, Gravity::Wrong, what);
        }
    }
}

fn providers_are_named(remarks: &mut Remarks<'_, '_>, document: &Document<'_, '_>) {
    for node in document.all("EventProvider") {
        if node.attribute("Name").is_none() && node.attribute("Base").is_none() {
            let what = "`EventProvider` lacks its attribute `Name`: a name or a GUID";
            remarks.on(node, Gravity::Wrong, what);
        }
        if node.attribute("Strict") == Some("true") {
            let what = "if this provider cannot be started, nothing is recorded at all: is it that \
                        important?";
            remarks.on_attribute(node, "Strict", Gravity::Advice, what);
        }
    }
}

fn masks_are_there_once(remarks: &mut Remarks<'_, '_>, provider: Node<'_, '_>) {
    for list in ["Keywords", "CaptureStateOnStart", "CaptureStateOnSave"] {
        for list in children(provider, list) {
            let mut seen = HashSet::new();
            for node in children(list, "Keyword") {
                is_new(remarks, node, "keyword", &mut seen);
            }
        }
    }
}

fn profiles_come_in_pairs(remarks: &mut Remarks<'_, '_>, document: &Document<'_, '_>) {
    let parts = |node: Node<'_, '_>| {
        let part = |name| node.attribute(name).unwrap_or_default().to_owned();
        (part("Name"), part("DetailLevel"), part("LoggingMode"))
    };
    let all: HashSet<_> = document.all("Profile").map(parts).collect();
    let mut first: Option<String> = None;
    let mut is_said = false;
    for node in document.all("Profile") {
        let (name, detail, mode) = parts(node);
        if name.is_empty() || detail.is_empty() || mode.is_empty() {
            continue;
        }
        let expected = format!("{name}.{detail}.{mode}");
        if let Some(id) = node.attribute("Id").filter(|id| *id != expected) {
            let what = format!("the id of this profile is `{expected}`, not `{id}`");
            remarks.on_attribute(node, "Id", Gravity::Wrong, what);
        }
        let other = if mode == "File" { "Memory" } else { "File" };
        if !all.contains(&(name.clone(), detail.clone(), other.to_owned())) {
            let what = format!(
                "the profile `{name}` has no form for logging mode {other}, which the documentation \
                 wants: `{name}.{detail}.{other}` may have this one as its base"
            );
            remarks.on(node, Gravity::Advice, what);
        }
        let first = first.get_or_insert_with(|| name.clone());
        if *first != name && !is_said {
            let what = format!(
                "`{name}` is another profile than `{first}`: the documentation wants one name in a file"
            );
            remarks.on_attribute(node, "Name", Gravity::Advice, what);
            is_said = true;
        }
    }
}

fn merging_keeps_identities(remarks: &mut Remarks<'_, '_>, document: &Document<'_, '_>) {
    for list in document.all("CustomEvents") {
        let mut seen = HashSet::new();
        for node in children(list, "CustomEvent") {
            let name = node.attribute("Value").unwrap_or_default();
            if !CUSTOM_EVENTS.contains(&name) {
                let hint = nearest(name, CUSTOM_EVENTS.into_iter())
                    .map_or(String::new(), |known| format!("; `{known}` is meant?"));
                let what = format!("there is no custom event `{name}`{hint}");
                remarks.on_attribute(node, "Value", Gravity::Wrong, what);
            }
            is_new(remarks, node, "custom event", &mut seen);
        }
        if !seen.contains("ImageId") && list.attribute("Operation").is_none() {
            let what = "without `ImageId` nobody finds the symbols of what is recorded";
            remarks.on(list, Gravity::Advice, what);
        }
    }
}
