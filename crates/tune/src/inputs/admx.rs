//! ADMX and ADML: which policies write which values, and what they are called.
//!
//! Format: <https://learn.microsoft.com/previous-versions/windows/desktop/Policy/admx-schema>

use roxmltree::{Document, Node};

use super::reading::Reading;
use super::text::Text;
use super::xml;
use super::{Format, InputError};
use crate::registry::Key;

/// The root elements: of the policies, and of what they are called in a language.
pub(super) const POLICIES: &str = "policyDefinitions";
pub(super) const LANGUAGE: &str = "policyDefinitionResources";

/// What writes a value of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyName {
    /// The key.
    pub key: Key,
    /// The value's name.
    pub name: String,
    /// What people call the policy. Of an ADMX alone it is only the policy's own short name.
    pub policy: String,
    /// The string in the ADML that is what people call it.
    pub(super) string: Option<String>,
}

/// Texts of an ADML by their id.
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

/// The texts of an ADML.
pub(super) fn strings(name: &str, text: &Text) -> Result<Strings, InputError> {
    let document: Document<'_> = xml::parse(name, &text.text)?;
    let nodes = document.descendants();
    let strings = nodes.filter(|node| node.tag_name().name() == "string");
    Ok(strings
        .filter_map(|node| Some((node.attribute("id")?.to_owned(), node.text()?.to_owned())))
        .collect())
}

/// Gives policies the names that their language's file has for them.
pub(super) fn translate(policies: &mut [PolicyName], strings: &Strings) {
    for policy in policies {
        let id = policy.string.as_ref();
        let text = id.and_then(|id| strings.iter().find(|(known, _)| known == id));
        if let Some((_, text)) = text {
            policy.policy.clone_from(text);
        }
    }
}

/// Adds the values that a policy writes: its own and those of its elements.
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
    fn a_policy_is_called_what_its_language_says() {
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
        let told: Vec<String> = policies
            .iter()
            .map(|policy| format!("{}\\{}: {}", policy.key, policy.name, policy.policy))
            .collect();
        assert_eq!(
            told,
            [
                r"HKLM\Software\Policies\Microsoft\Windows\Personalization\NoLockScreen: Do not display the lock screen",
                r"HKLM\Software\Policies\B\Number: Two",
                r"HKCU\Software\Policies\B\Number: Two",
            ]
        );
    }
}
