//! Reader of security templates, such as `GptTmpl.inf` of a group policy: registry values and start
//! types of services.
//!
//! Format: <https://learn.microsoft.com/openspecs/windows_protocols/ms-gpsb/>

use registry::{Key, Value};

use super::Format;
use super::reading::{Reading, line};
use super::text::Text;
use crate::placed_value::InputPosition;

/// Returns true if the text is an `.inf` file that has sections of a security template.
pub(super) fn starts(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(';'));
    first.is_some_and(|first| first.starts_with('['))
        && text.lines().map(str::trim).any(|line| {
            [
                "[Registry Values]",
                "[System Access]",
                "[Service General Setting]",
            ]
            .iter()
            .any(|section| line.eq_ignore_ascii_case(section))
                || line.to_ascii_lowercase().starts_with("signature") && line.contains("$CHICAGO$")
        })
}

pub(super) fn read(name: &str, text: &Text) -> Reading {
    let mut reading = Reading::new(name, Format::SecurityTemplate);
    let mut section = String::new();
    for (index, written) in text.text.lines().enumerate() {
        let written = written.trim();
        if written.is_empty() || written.starts_with(';') {
            continue;
        }
        if let Some(inner) = written.strip_prefix('[') {
            section = inner.trim_end_matches(']').to_ascii_lowercase();
            continue;
        }
        match section.as_str() {
            "registry values" => registry_value(&mut reading, written, line(index)),
            "service general setting" => service(&mut reading, written, line(index)),
            _ => {}
        }
    }
    reading
}

/// Reads a registry value from a line of the form `MACHINE\path\name=type,data`.
pub(super) fn registry_value(reading: &mut Reading, written: &str, at: InputPosition) {
    let parsed = || {
        let (path, data) = written.split_once('=')?;
        let (path, name) = path.trim().trim_matches('"').rsplit_once('\\')?;
        let key = Key::new(path)?;
        let (kind, data) = data.trim().split_once(',')?;
        Some((key, name, value(kind.trim().parse().ok()?, data.trim())?))
    };
    match parsed() {
        Some((key, name, value)) => reading.registry(&key, name, Some(value), at),
        None => reading.complain(
            at,
            format!("expected MACHINE\\key\\name=type,value: {written}"),
        ),
    }
}

fn value(kind: u32, data: &str) -> Option<Value> {
    let unquoted = || data.trim_matches('"').to_owned();
    Some(match kind {
        1 => Value::Text(unquoted()),
        2 => Value::Expandable(unquoted()),
        3 => {
            let bytes = data.split(',').map(|byte| byte.trim().parse().ok());
            Value::Binary(bytes.collect::<Option<_>>()?)
        }
        4 => Value::Dword(data.parse().ok()?),
        7 => Value::List(if data.is_empty() {
            Vec::new()
        } else {
            data.split(',').map(str::to_owned).collect()
        }),
        _ => return None,
    })
}

/// Reads a service from a line of the form `"service",start,"rights"`. The start type is 2 (automatic),
/// 3 (manual) or 4 (disabled).
fn service(reading: &mut Reading, written: &str, at: InputPosition) {
    let parsed = || {
        let mut parts = written.splitn(3, ',');
        let name = parts.next()?.trim().trim_matches('"');
        let start: u32 = parts.next()?.trim().parse().ok()?;
        let key = Key::new(&format!(r"HKLM\SYSTEM\CurrentControlSet\Services\{name}"))?;
        (!name.is_empty()).then_some((key, start))
    };
    match parsed() {
        Some((key, start)) => reading.registry(&key, "Start", Some(Value::Dword(start)), at),
        None => reading.complain(
            at,
            format!("expected \"service\",start,\"rights\": {written}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::text::decode;

    #[test]
    fn values_and_services_are_read() {
        let text = "[Unicode]\r\nUnicode=yes\r\n[Version]\r\nsignature=\"$CHICAGO$\"\r\nRevision=1\r\n\
            [Registry Values]\r\n\
            MACHINE\\System\\CurrentControlSet\\Services\\LanManServer\\Parameters\\RequireSecuritySignature=4,1\r\n\
            MACHINE\\Software\\A\\Text=1,\"10\"\r\n\
            MACHINE\\Software\\A\\List=7,a,b\r\n\
            MACHINE\\Software\\A\\Broken=4\r\n\
            [Service General Setting]\r\n\"BFE\",4,\"\"\r\n";
        assert!(starts(text));
        let read = read("GptTmpl.inf", &decode(text.as_bytes())).input;
        let values: Vec<String> = read
            .found
            .iter()
            .map(|values| format!("{} {}", values.place, values.value.as_ref().unwrap()))
            .collect();
        assert_eq!(
            values,
            [
                "HKLM\\System\\CurrentControlSet\\Services\\LanManServer\\Parameters\\RequireSecuritySignature 0x1",
                "HKLM\\Software\\A\\Text \"10\"",
                "HKLM\\Software\\A\\List [\"a\", \"b\"]",
                "HKLM\\SYSTEM\\CurrentControlSet\\Services\\BFE\\Start 0x4",
            ]
        );
        assert_eq!(read.complaints.first[0].at, line(9));
    }
}
