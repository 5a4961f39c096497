//! Reader of the output of PowerShell network cmdlets as list, table or JSON.
//!
//! The reader identifies a cmdlet by properties that no other cmdlet has.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::reading::{Reading, line};
use super::text::Text;
use super::{Format, InputError};
use crate::placed_value::InputPosition;

/// Cmdlets, and properties that only their output has.
const COMMANDS: [(&str, &[&str]); 8] = [
    (
        "Get-SmbServerConfiguration",
        &[
            "EnableSMB1Protocol",
            "AnnounceServer",
            "RejectUnencryptedAccess",
        ],
    ),
    (
        "Get-SmbClientConfiguration",
        &[
            "EnableBandwidthThrottling",
            "DormantFileLimit",
            "WindowSizeThreshold",
        ],
    ),
    (
        "Get-NetAdapterRss",
        &[
            "NumberOfReceiveQueues",
            "RssProcessorArray",
            "IndirectionTable",
        ],
    ),
    ("Get-NetAdapterAdvancedProperty", &["RegistryKeyword"]),
    (
        "Get-NetTCPSetting",
        &["AutoTuningLevelLocal", "InitialRto", "DelayedAckFrequency"],
    ),
    (
        "Get-NetOffloadGlobalSetting",
        &["ReceiveSideScaling", "PacketCoalescingFilter"],
    ),
    ("Get-NetAdapterBinding", &["ComponentID"]),
    ("Get-NetLbfoTeam", &["LoadBalancingAlgorithm", "TeamNics"]),
];

/// One object in the output of a cmdlet.
#[derive(Default)]
struct Object {
    /// Names, values and positions of the properties.
    properties: Vec<(String, String, InputPosition)>,
}

impl Object {
    fn get(&self, name: &str) -> Option<&str> {
        let mut properties = self.properties.iter();
        properties
            .find(|(known, ..)| known.eq_ignore_ascii_case(name))
            .map(|(_, value, _)| value.as_str())
    }
}

/// Returns the cmdlet whose output has one of these properties.
fn command<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    let names: BTreeSet<String> = names.map(str::to_ascii_lowercase).collect();
    let has = |name: &str| names.contains(&name.to_ascii_lowercase());
    let mut commands = COMMANDS.iter();
    commands
        .find(|(_, only)| only.iter().any(|name| has(name)))
        .map(|(command, _)| *command)
}

/// Returns true if the text is the output of a known cmdlet.
pub(super) fn starts(text: &str) -> bool {
    let objects = if is_table(text) {
        table(text, &mut |_, _| {})
    } else {
        list(text)
    };
    objects.iter().any(|object| command_of(object).is_some())
}

fn command_of(object: &Object) -> Option<&'static str> {
    command(object.properties.iter().map(|(name, ..)| name.as_str()))
}

pub(super) fn read(name: &str, text: &Text) -> Reading {
    let mut reading = Reading::new(name, Format::Cmdlet);
    let objects = if is_table(&text.text) {
        table(&text.text, &mut |at, what| reading.complain(at, what))
    } else {
        list(&text.text)
    };
    for object in &objects {
        add(&mut reading, object);
    }
    reading
}

/// Reads the output of a cmdlet that `ConvertTo-Json` formatted.
pub(super) fn read_json(name: &str, text: &Text) -> Result<Reading, InputError> {
    let json: Json = serde_json::from_str(&text.text).map_err(|source| InputError::Json {
        name: name.to_owned(),
        source,
    })?;
    let objects = match json {
        Json::Array(objects) => objects,
        object => vec![object],
    };
    let mut reading = Reading::new(name, Format::Cmdlet);
    let mut is_known = false;
    for object in objects {
        let Json::Object(properties) = object else {
            reading.complain(InputPosition::Whole, "not an object with properties");
            continue;
        };
        let properties = properties.into_iter();
        let object = Object {
            properties: properties
                .filter_map(|(name, value)| Some((name, plain(&value)?, InputPosition::Whole)))
                .collect(),
        };
        is_known |= command_of(&object).is_some();
        add(&mut reading, &object);
    }
    if !is_known {
        return Err(InputError::Unknown {
            name: name.to_owned(),
            found: "JSON that is not the output of a known cmdlet".to_owned(),
        });
    }
    Ok(reading)
}

/// Formats the value of a property in the form that PowerShell prints.
fn plain(value: &Json) -> Option<String> {
    match value {
        Json::Null => Some(String::new()),
        Json::Bool(true) => Some("True".to_owned()),
        Json::Bool(false) => Some("False".to_owned()),
        Json::Number(number) => Some(number.to_string()),
        Json::String(text) => Some(text.clone()),
        Json::Array(values) => {
            let values: Option<Vec<String>> = values.iter().map(plain).collect();
            Some(values?.join(", "))
        }
        // The object is CIM metadata, not a setting.
        Json::Object(_) => None,
    }
}

/// Adds the properties of an object to the findings.
fn add(reading: &mut Reading, object: &Object) {
    let Some(command) = command_of(object) else {
        if let Some((name, _, at)) = object.properties.first() {
            let what = format!("unknown output: no known cmdlet has the property {name}");
            reading.complain(*at, what);
        }
        return;
    };
    let names = ["Name", "SettingName", "InterfaceAlias"];
    let owner = names.iter().find_map(|name| object.get(name)).unwrap_or("");
    if command == "Get-NetAdapterAdvancedProperty" {
        // Each object describes one property of the driver. Its `RegistryKeyword` is the name of the
        // registry value.
        let value = (object.get("RegistryValue").or(object.get("DisplayValue"))).unwrap_or("");
        let value = value.trim_start_matches('{').trim_end_matches('}');
        let at = object.properties[0].2;
        match object.get("RegistryKeyword") {
            Some(keyword) if keyword.ends_with("...") || keyword.ends_with('…') => {
                let what =
                    format!("the table cuts off {keyword}: use Format-List or ConvertTo-Json");
                reading.complain(at, what);
            }
            Some(keyword) => reading.answer(command, owner, keyword, value, at),
            None => {}
        }
        return;
    }
    for (name, value, at) in &object.properties {
        // List output shows a processor as `group:number`.
        match (name.as_str(), value.split_once(':')) {
            ("BaseProcessor" | "MaxProcessor", Some((group, number))) => {
                reading.answer(command, owner, &format!("{name}Group"), group.trim(), *at);
                reading.answer(command, owner, &format!("{name}Number"), number.trim(), *at);
            }
            _ => reading.answer(command, owner, name, value, *at),
        }
    }
}

/// Reads lines of the form `Name : value`. An empty line ends an object. A line without a name continues
/// the previous value.
fn list(text: &str) -> Vec<Object> {
    let mut objects = Vec::new();
    let mut object = Object::default();
    for (index, written) in text.lines().enumerate() {
        if written.trim().is_empty() {
            objects.push(std::mem::take(&mut object));
            continue;
        }
        let (name, value) = match written.split_once(" : ") {
            Some((name, value)) => (name, value),
            None => match written.trim_end().strip_suffix(" :") {
                Some(name) => (name, ""),
                // The line `IndirectionTable: [Group:Number]: 0:0 …` has no space before the colon that
                // precedes the value.
                None => match written.split_once(": [") {
                    Some((name, rest)) if !name.starts_with(' ') => {
                        (name, rest.split_once("]:").map_or("", |(_, value)| value))
                    }
                    _ => ("", written),
                },
            },
        };
        // The name in `BaseProcessor: [Group:Number]   : 0:0` contains a colon.
        let name = name.split(':').next().unwrap_or("").trim();
        let (name, value) = (name.to_owned(), value.trim().to_owned());
        match object.properties.last_mut() {
            Some((_, last, _)) if name.is_empty() => {
                last.push(' ');
                last.push_str(&value);
            }
            _ if name.is_empty() => {}
            _ => object.properties.push((name, value, line(index))),
        }
    }
    objects.push(object);
    objects.retain(|object| !object.properties.is_empty());
    objects
}

/// Returns true if the text has a line of hyphens below column names.
fn is_table(text: &str) -> bool {
    rule(text).is_some()
}

/// Returns the index of the line of hyphens.
fn rule(text: &str) -> Option<usize> {
    let is_rule = |line: &str| {
        let line = line.trim();
        line.starts_with("--") && line.bytes().all(|byte| byte == b'-' || byte == b' ')
    };
    text.lines().take(40).position(is_rule)
}

/// Reads a table. The hyphens below a column name start where the values of the column start.
fn table(text: &str, complain: &mut dyn FnMut(InputPosition, String)) -> Vec<Object> {
    let lines: Vec<&str> = text.lines().collect();
    let Some(rule) = rule(text).filter(|rule| *rule > 0) else {
        return Vec::new();
    };
    let hyphens: Vec<char> = lines[rule].chars().collect();
    let starts: Vec<usize> = (0..hyphens.len())
        .filter(|place| hyphens[*place] == '-' && (*place == 0 || hyphens[place - 1] != '-'))
        .collect();
    let cells = |line: &str| -> Vec<String> {
        let characters: Vec<char> = line.chars().collect();
        let ends = starts.iter().skip(1).copied().chain([characters.len()]);
        (starts.iter().zip(ends))
            .map(|(start, end)| {
                let end = end.min(characters.len());
                let cell = characters.get(*start..end.max(*start)).unwrap_or_default();
                cell.iter().collect::<String>().trim().to_owned()
            })
            .collect()
    };
    let names = cells(lines[rule - 1]);
    let mut objects = Vec::new();
    for (index, written) in lines.iter().enumerate().skip(rule + 1) {
        if written.trim().is_empty() {
            continue;
        }
        let values = cells(written);
        if values.first().is_none_or(String::is_empty) {
            complain(line(index), "a row with an empty first column".to_owned());
            continue;
        }
        let properties = names.iter().cloned().zip(values);
        objects.push(Object {
            properties: properties
                .map(|(name, value)| (name, value, line(index)))
                .collect(),
        });
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::text::decode;

    fn lines(reading: &Reading) -> Vec<String> {
        let values = reading.input.found.iter();
        values
            .map(|values| match &values.value {
                Some(value) => format!("{} {value}", values.place),
                None => format!("{} -", values.place),
            })
            .collect()
    }

    #[test]
    fn a_list_is_read() {
        let text = "\n\nName                            : Ethernet\n\
            InterfaceDescription            : Some Adapter\n\
            Enabled                         : True\n\
            NumberOfReceiveQueues           : 2\n\
            Profile                         : NUMAStatic\n\
            BaseProcessor: [Group:Number]   : 0:4\n\
            MaxProcessors                   : 8\n\
            IndirectionTable: [Group:Number]: 0:0\t0:4\t0:0\n\
            \x20                                 0:4\n\n";
        assert!(starts(text));
        let values = lines(&read("rss.txt", &decode(text.as_bytes())));
        assert!(
            values.contains(&r#"Get-NetAdapterRss "Ethernet" NumberOfReceiveQueues "2""#.into())
        );
        assert!(values.contains(&r#"Get-NetAdapterRss "Ethernet" BaseProcessorNumber "4""#.into()));
        assert!(values.contains(
            &r#"Get-NetAdapterRss "Ethernet" IndirectionTable "0:0\t0:4\t0:0 0:4""#.into()
        ));
    }

    #[test]
    fn a_table_and_json_are_read_alike() {
        let table = "\nName       DisplayName            DisplayValue  RegistryKeyword       RegistryValue\n\
            ----       -----------            ------------  ---------------       -------------\n\
            Ethernet   Interrupt Moderation   Enabled       *InterruptModeration  {1}\n\
            Ethernet   Receive Buffers        512           *ReceiveBuffers       {512}\n";
        let json = r#"[
            {"Name":"Ethernet","DisplayName":"Interrupt Moderation","RegistryKeyword":"*InterruptModeration","RegistryValue":["1"]},
            {"Name":"Ethernet","DisplayName":"Receive Buffers","RegistryKeyword":"*ReceiveBuffers","RegistryValue":["512"]}]"#;
        let expected = [
            r#"Get-NetAdapterAdvancedProperty "Ethernet" *InterruptModeration "1""#,
            r#"Get-NetAdapterAdvancedProperty "Ethernet" *ReceiveBuffers "512""#,
        ];
        assert!(starts(table));
        assert_eq!(lines(&read("a.txt", &decode(table.as_bytes()))), expected);
        let json = read_json("a.json", &decode(json.as_bytes())).unwrap();
        assert_eq!(lines(&json), expected);
    }

    #[test]
    fn the_two_sides_of_smb_are_told_apart() {
        let server = "EnableSMB1Protocol       : False\nRequireSecuritySignature : True\n";
        let client = "EnableBandwidthThrottling : True\nRequireSecuritySignature  : False\n";
        let both = format!("{server}\n{client}");
        let values = lines(&read("smb.txt", &decode(both.as_bytes())));
        assert_eq!(
            values[1],
            "Get-SmbServerConfiguration RequireSecuritySignature \"True\""
        );
        assert_eq!(
            values[3],
            "Get-SmbClientConfiguration RequireSecuritySignature \"False\""
        );
    }

    /// Checks that empty properties count as unknown. Cmdlets print such properties: in Microsoft's example,
    /// Get-DfsnServerConfiguration prints all its properties empty. In JSON output, the value is null.
    #[test]
    fn empty_properties_are_unknown() {
        let expected = [r#"Get-SmbServerConfiguration EnableSMB1Protocol "False""#];
        let list = "EnableSMB1Protocol : False\nEncryptData        :\nRejectUnencryptedAccess : \n";
        assert_eq!(lines(&read("smb.txt", &decode(list.as_bytes()))), expected);
        let table = "EnableSMB1Protocol EncryptData RejectUnencryptedAccess\n\
            ------------------ ----------- -----------------------\n\
            False\n";
        assert_eq!(lines(&read("smb.txt", &decode(table.as_bytes()))), expected);
        let json =
            r#"{"EnableSMB1Protocol":false,"EncryptData":null,"RejectUnencryptedAccess":""}"#;
        let json = read_json("smb.json", &decode(json.as_bytes())).unwrap();
        assert_eq!(lines(&json), expected);
        // A property without a value still identifies the cmdlet.
        let none = read_json("smb.json", &decode(br#"{"EnableSMB1Protocol":null}"#)).unwrap();
        assert!(lines(&none).is_empty());
    }

    #[test]
    fn json_of_something_else_is_refused() {
        let text = decode(br#"{"a": 1}"#);
        assert!(matches!(
            read_json("a.json", &text),
            Err(InputError::Unknown { .. })
        ));
    }
}
