//! Reader of ADMX files (registry values of policies) and ADML files (display names of policies).
//!
//! Format: <https://learn.microsoft.com/previous-versions/windows/desktop/Policy/admx-schema>

use std::collections::HashMap;

use ::xml::{Document, Node};
use registry::Key;

use super::reading::Reading;
use super::text::Text;
use super::xml;
use super::{Format, InputError};

/// Root element of ADMX files, which define policies.
pub(super) const POLICIES: &str = "policyDefinitions";

/// Root element of ADML files, which contain the strings of a language.
pub(super) const LANGUAGE: &str = "policyDefinitionResources";

/// Policy that writes a registry value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyName {
    /// Registry key to which the policy writes.
    pub key: Key,
    /// Name of the registry value.
    pub name: String,
    /// Display name of the policy; its short name if there is no ADML file.
    pub policy: String,
    /// Id of the display name in the ADML file.
    pub(super) string: Option<String>,
}

/// Ids and texts of the strings in an ADML file.
pub(super) type Strings = Vec<(String, String)>;

pub(super) fn read(name: &str, text: &Text) -> Result<Reading, InputError> {
    let document = xml::parse(name, &text.text)?;
    let mut reading = Reading::new(name, Format::Admx);
    let of_name = |name: &'static str| {
        let nodes = document.descendants();
        nodes.filter(move |node| node.tag_name().name() == name)
    };
    for policy in of_name("policy") {
        add(&mut reading, policy);
    }
    Ok(reading)
}

/// Reads the strings of an ADML file.
pub(super) fn strings(name: &str, text: &Text) -> Result<Strings, InputError> {
    let document: Document<'_> = xml::parse(name, &text.text)?;
    let nodes = document.descendants();
    let strings = nodes.filter(|node| node.tag_name().name() == "string");
    Ok(strings
        .filter_map(|node| Some((node.attribute("id")?.to_owned(), node.text()?.to_owned())))
        .collect())
}

/// Replaces the names of policies by the display names in a language.
pub(super) fn translate(policies: &mut [PolicyName], strings: &Strings) {
    let strings: HashMap<_, _> = strings.iter().map(|(id, text)| (id, text)).collect();
    for policy in policies {
        if let Some(text) = policy.string.as_ref().and_then(|id| strings.get(id)) {
            policy.policy.clone_from(text);
        }
    }
}

/// Adds the registry values that a policy and its elements write.
fn add(reading: &mut Reading, policy: Node<'_, '_>) {
    let hives: &[&str] = match policy.attribute("class") {
        Some("User") => &["HKCU"],
        Some("Both") => &["HKLM", "HKCU"],
        _ => &["HKLM"],
    };
    let Some(path) = policy.attribute("key") else {
        return;
    };
    let title = policy.attribute("name").unwrap_or("");
    let string = policy.attribute("displayName").and_then(|name| {
        let name = name.strip_prefix("$(string.")?;
        Some(name.strip_suffix(')')?.to_owned())
    });
    let elements = xml::child(policy, "elements");
    let elements = elements.iter().flat_map(|elements| elements.children());
    for node in [policy].into_iter().chain(elements) {
        let Some(name) = node.attribute("valueName") else {
            continue;
        };
        let path = node.attribute("key").unwrap_or(path);
        for hive in hives {
            let Some(key) = Key::new(&format!("{hive}\\{path}")) else {
                continue;
            };
            reading.input.policy_names.push(PolicyName {
                key,
                name: name.to_owned(),
                policy: title.to_owned(),
                string: string.clone(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::text::decode;

    #[test]
    fn a_policy_gets_its_display_name() {
        let admx = r#"<policyDefinitions revision="1.0" schemaVersion="1.0"><policies>
            <policy name="NoLockScreen" class="Machine" displayName="$(string.Lock)"
                key="Software\Policies\Microsoft\Windows\Personalization" valueName="NoLockScreen"/>
            <policy name="Two" class="Both" displayName="$(string.Two)" key="Software\Policies\B">
              <elements><decimal id="d" valueName="Number"/></elements></policy>
            </policies></policyDefinitions>"#;
        let adml = r#"<policyDefinitionResources><resources><stringTable>
            <string id="Lock">Do not display the lock screen</string>
            </stringTable></resources></policyDefinitionResources>"#;
        let mut policies = read("a.admx", &decode(admx.as_bytes()))
            .unwrap()
            .input
            .policy_names;
        translate(
            &mut policies,
            &strings("a.adml", &decode(adml.as_bytes())).unwrap(),
        );
        let lines: Vec<String> = policies
            .iter()
            .map(|policy| format!("{}\\{}: {}", policy.key, policy.name, policy.policy))
            .collect();
        assert_eq!(
            lines,
            [
                r"HKLM\Software\Policies\Microsoft\Windows\Personalization\NoLockScreen: Do not display the lock screen",
                r"HKLM\Software\Policies\B\Number: Two",
                r"HKCU\Software\Policies\B\Number: Two",
            ]
        );
    }
}
