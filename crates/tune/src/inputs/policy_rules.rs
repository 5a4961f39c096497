//! Reader of `.PolicyRules` files, the baselines of Policy Analyzer.
//!
//! Each element `ComputerConfig` or `UserConfig` is a registry value. Each `LineItem` of a
//! `SecurityTemplate` is a line of a security template.
//! <https://learn.microsoft.com/windows/security/operating-system-security/device-management/windows-security-configuration-framework/security-compliance-toolkit-10>

use ::xml::Node;
use registry::{Key, Value};

use super::reading::Reading;
use super::text::Text;
use super::xml::{self, Lines};
use super::{Format, InputError, security_template};
use crate::placed_value::InputPosition;

/// Root element of the document.
pub(super) const ROOT: &str = "PolicyRules";

pub(super) fn read(name: &str, text: &Text) -> Result<Reading, InputError> {
    let document = xml::parse(name, &text.text)?;
    let lines = Lines::new(&text.text);
    let mut reading = Reading::new(name, Format::PolicyRules);
    for rule in document.root_element().children() {
        match rule.tag_name().name() {
            "ComputerConfig" => registry_value(&mut reading, rule, "HKLM", lines.at(rule)),
            "UserConfig" => registry_value(&mut reading, rule, "HKCU", lines.at(rule)),
            "SecurityTemplate" if rule.attribute("Section") == Some("Registry Values") => {
                for item in rule.children() {
                    if item.tag_name().name() == "LineItem" {
                        let written = item.text().unwrap_or("").trim();
                        security_template::registry_value(&mut reading, written, lines.at(item));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(reading)
}

fn registry_value(reading: &mut Reading, rule: Node<'_, '_>, hive: &str, at: InputPosition) {
    let (Some(path), Some(name)) = (xml::text(rule, "Key"), xml::text(rule, "Value")) else {
        reading.complain(at, "a rule without Key or Value");
        return;
    };
    let Some(key) = Key::new(&format!("{hive}\\{}", path.trim())) else {
        return;
    };
    let kind = xml::text(rule, "RegType").unwrap_or("").trim();
    let data = xml::text(rule, "RegData").unwrap_or("");
    // Names with this prefix delete the value, as in registry.pol.
    if let Some(name) = name.strip_prefix("**del.") {
        reading.registry(&key, name, None, at);
        return;
    }
    match value(kind, data) {
        Some(value) => reading.registry(&key, name, Some(value), at),
        None => reading.complain(at, format!("invalid {kind}: {data}")),
    }
}

fn value(kind: &str, data: &str) -> Option<Value> {
    let number = || {
        let data = data.trim();
        match data.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => data.parse().ok(),
        }
    };
    Some(match kind {
        "REG_SZ" => Value::Text(data.to_owned()),
        "REG_EXPAND_SZ" => Value::Expandable(data.to_owned()),
        "REG_DWORD" => Value::Dword(number()?.try_into().ok()?),
        "REG_QWORD" => Value::Qword(number()?),
        "REG_MULTI_SZ" => Value::List(data.lines().map(str::to_owned).collect()),
        "REG_NONE" => Value::None,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::text::decode;

    const RULES: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<PolicyRules>
  <ComputerConfig>
    <Key>Software\Policies\Microsoft\Windows\LanmanWorkstation</Key>
    <Value>AllowInsecureGuestAuth</Value>
    <RegType>REG_DWORD</RegType>
    <RegData>0</RegData>
    <SourceFile>registry.pol</SourceFile>
    <PolicyName>Baseline</PolicyName>
  </ComputerConfig>
  <UserConfig>
    <Key>Software\Policies\A</Key><Value>B</Value><RegType>REG_SZ</RegType><RegData>c</RegData>
  </UserConfig>
  <SecurityTemplate Section="Registry Values">
    <LineItem>MACHINE\System\CurrentControlSet\Services\LanmanServer\Parameters\RequireSecuritySignature=4,1</LineItem>
  </SecurityTemplate>
  <SecurityTemplate Section="System Access"><LineItem>LockoutBadCount = 10</LineItem></SecurityTemplate>
</PolicyRules>"#;

    #[test]
    fn rules_are_read() {
        let read = read("a.PolicyRules", &decode(RULES.as_bytes())).unwrap();
        let values: Vec<String> = read
            .input
            .found
            .iter()
            .map(|values| {
                let value = values.value.as_ref().unwrap();
                format!("{}={value} {}", values.place, values.origin)
            })
            .collect();
        assert_eq!(
            values,
            [
                r"HKLM\Software\Policies\Microsoft\Windows\LanmanWorkstation\AllowInsecureGuestAuth=0x0 a.PolicyRules:3",
                r#"HKCU\Software\Policies\A\B="c" a.PolicyRules:11"#,
                r"HKLM\System\CurrentControlSet\Services\LanmanServer\Parameters\RequireSecuritySignature=0x1 a.PolicyRules:15",
            ]
        );
        assert_eq!(read.input.complaints.count, 0);
    }

    #[test]
    fn entities_are_refused() {
        let bomb = r#"<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]>
            <PolicyRules>&c;</PolicyRules>"#;
        let error = read("bomb.PolicyRules", &decode(bomb.as_bytes())).err();
        assert!(matches!(error, Some(InputError::Xml { .. })), "{error:?}");
    }

    #[test]
    fn an_element_with_many_attributes_is_refused() {
        let attributes: String = (0..300_000).map(|n| format!(" a{n}=''")).collect();
        let wide = format!("<PolicyRules>\n<ComputerConfig{attributes}/></PolicyRules>");
        let error = read("wide.PolicyRules", &decode(wide.as_bytes())).err();
        let Some(InputError::Xml { source, .. }) = error else {
            panic!("{error:?}");
        };
        assert!(
            matches!(source, ::xml::Error::Attributes(place) if place.row == 2),
            "{source}"
        );
    }
}
