//! Why a QoS policy would not mark packets.
//!
//! A policy is a key below `HKLM\SOFTWARE\Policies\Microsoft\Windows\QoS` whose values are all
//! REG_SZ. Source: "Manage QoS policy" in the documentation of Windows Server.

use serde::Serialize;

use crate::found::{Found, Place};
use crate::registry::Value;

/// Where policies are, each a key below it.
pub const POLICIES: &str = r"HKLM\SOFTWARE\Policies\Microsoft\Windows\QoS\";
/// Key and name of the switch that makes them count outside of a domain's network.
pub const SWITCH: (&str, &str) = (
    r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\QoS",
    "Do not use NLA",
);
/// The values of a policy.
const NAMES: [&str; 11] = [
    "Version",
    "Application Name",
    "Protocol",
    "Local Port",
    "Local IP",
    "Local IP Prefix Length",
    "Remote Port",
    "Remote IP",
    "Remote IP Prefix Length",
    "DSCP Value",
    "Throttle Rate",
];

/// What policies are judged for.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The program that is to be marked, as its file's name or path.
    pub program: Option<String>,
    /// Whether the machine is in a domain.
    pub in_domain: Option<bool>,
}

/// A policy, and what is the matter with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// The mark that it gives, 0 to 63; `None` if it gives none.
    pub mark: Option<u8>,
    /// Why it would not give it.
    pub faults: Vec<String>,
    /// Why it might not, where what was found does not tell.
    pub doubts: Vec<String>,
}

/// Judges every policy that was found.
pub fn judge(found: &[Found], asked: &Asked) -> Vec<Policy> {
    let mut policies: Vec<(String, Vec<(&str, &Value)>)> = Vec::new();
    for Found { place, value, .. } in found {
        let (Place::Registry { key, name }, Some(value)) = (place, value) else {
            continue;
        };
        let Some(policy) = below(key.as_str(), POLICIES) else {
            continue;
        };
        let at = policies
            .iter()
            .position(|(name, _)| name.eq_ignore_ascii_case(policy));
        match at {
            Some(at) => policies[at].1.push((name, value)),
            None => policies.push((policy.to_owned(), vec![(name, value)])),
        }
    }
    let network = network(found, asked);
    let judged = policies.into_iter().map(|(name, values)| {
        let mut policy = Policy {
            name,
            mark: None,
            faults: Vec::new(),
            doubts: Vec::new(),
        };
        policy.judge(&values, asked);
        match &network {
            Ok(()) => {}
            Err(Network::Ignored(why)) => policy.faults.push(why.clone()),
            Err(Network::Unknown(why)) => policy.doubts.push((*why).to_owned()),
        }
        policy
    });
    judged.collect()
}

impl Policy {
    fn judge(&mut self, values: &[(&str, &Value)], asked: &Asked) {
        let mut seen = [None; NAMES.len()];
        for (name, value) in values {
            let at = NAMES
                .iter()
                .position(|known| known.eq_ignore_ascii_case(name));
            let (Some(at), Value::Text(text)) = (at, value) else {
                self.faults.push(match at {
                    Some(_) => format!(
                        "\"{name}\" is {}: only REG_SZ is read, so it is ignored",
                        value.type_name()
                    ),
                    None => format!("\"{name}\" is no value of a policy: it is ignored"),
                });
                continue;
            };
            seen[at] = Some(text.trim());
        }
        let text = |name: &str| {
            NAMES
                .iter()
                .position(|known| *known == name)
                .and_then(|at| seen[at])
        };
        let missing: Vec<&str> = NAMES
            .iter()
            .zip(seen)
            .filter(|(_, text)| text.is_none())
            .map(|(name, _)| *name)
            .collect();
        if !missing.is_empty() {
            self.doubts.push(format!(
                "policies that Windows writes have all {} values; not here: {}",
                NAMES.len(),
                missing.join(", ")
            ));
        }
        match text("DSCP Value").map(str::parse::<i32>) {
            Some(Ok(mark @ 0..=63)) => self.mark = u8::try_from(mark).ok(),
            Some(Ok(-1)) => self.faults.push("\"DSCP Value\" is -1: no mark".to_owned()),
            Some(_) => self.faults.push(format!(
                "\"DSCP Value\" is \"{}\": marks are 0 to 63",
                text("DSCP Value").unwrap_or_default()
            )),
            None => self
                .faults
                .push("there is no \"DSCP Value\" to mark with".to_owned()),
        }
        if let Some(version) = text("Version").filter(|version| *version != "1.0") {
            self.faults
                .push(format!("\"Version\" is \"{version}\": it has to be 1.0"));
        }
        if let Some(protocol) = text("Protocol") {
            let is_known = ["*", "TCP", "UDP"]
                .iter()
                .any(|known| known.eq_ignore_ascii_case(protocol));
            if !is_known {
                self.faults.push(format!(
                    "\"Protocol\" is \"{protocol}\": it has to be TCP, UDP or *"
                ));
            }
        }
        for name in ["Local Port", "Remote Port"] {
            if let Some(ports) = text(name).filter(|ports| !are_ports(ports)) {
                self.faults.push(format!(
                    "\"{name}\" is \"{ports}\": it has to be a port, a range such as 1000:2000, or *"
                ));
            }
        }
        if let Some(program) = text("Application Name") {
            self.judge_program(program, asked);
        }
    }

    fn judge_program(&mut self, meant: &str, asked: &Asked) {
        if meant != "*" && !meant.to_ascii_lowercase().ends_with(".exe") {
            self.faults.push(format!(
                "\"Application Name\" is \"{meant}\": it has to be a program's file name with .exe, \
                 its path, or *"
            ));
        }
        let Some(program) = &asked.program else {
            return;
        };
        let program = program.to_lowercase();
        let meant_is = meant.to_lowercase();
        let file = program.rsplit(['\\', '/']).next().unwrap_or(&program);
        let is_it = match meant_is.contains('\\') {
            // A path may begin with a variable, which only the machine can expand.
            true if meant_is.contains('%') || program == file => {
                meant_is.rsplit('\\').next() == Some(file)
            }
            true => meant_is == program,
            false => meant_is == "*" || meant_is == file,
        };
        if !is_it {
            self.faults
                .push(format!("it is about \"{meant}\", not about {program}"));
        }
    }
}

/// Why policies do not count on the machine's networks.
enum Network {
    Ignored(String),
    Unknown(&'static str),
}

fn network(found: &[Found], asked: &Asked) -> Result<(), Network> {
    let switch = found.iter().rev().find_map(|found| match &found.place {
        Place::Registry { key, name } => {
            let is_it =
                key.as_str().eq_ignore_ascii_case(SWITCH.0) && name.eq_ignore_ascii_case(SWITCH.1);
            is_it.then_some(found.value.as_ref()?)
        }
        _ => None,
    });
    let wrong = match switch {
        Some(Value::Text(text)) if text.trim() == "1" => return Ok(()),
        Some(Value::Text(text)) => format!("is \"{text}\""),
        Some(other) => format!("is {}, but only REG_SZ is read", other.type_name()),
        None => "is not set".to_owned(),
    };
    match asked.in_domain {
        Some(true) => Ok(()),
        Some(false) => Err(Network::Ignored(format!(
            "\"{}\" {wrong}: on a machine in no domain policies are ignored unless it is \"1\"",
            SWITCH.1
        ))),
        None => Err(Network::Unknown(
            "policies are ignored on networks that are not of the machine's domain, unless \"Do not \
             use NLA\" is \"1\"; it is not, and whether the machine is in a domain is not known",
        )),
    }
}

/// The part of a key below another, if it is one name.
fn below<'k>(key: &'k str, above: &str) -> Option<&'k str> {
    let head = key.get(..above.len())?;
    let rest = &key[above.len()..];
    (head.eq_ignore_ascii_case(above) && !rest.is_empty() && !rest.contains('\\')).then_some(rest)
}

fn are_ports(text: &str) -> bool {
    let port = |text: &str| text.parse::<u16>().ok();
    match text.split_once(':') {
        Some((from, to)) => matches!((port(from), port(to)), (Some(from), Some(to)) if from <= to),
        None => text == "*" || port(text).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::found::{At, Origin};
    use crate::registry::Key;

    fn found(key: &str, name: &str, value: Value) -> Found {
        Found {
            place: Place::Registry {
                key: Key::new(key).unwrap(),
                name: name.to_owned(),
            },
            value: Some(value),
            origin: Origin {
                source: "test".to_owned(),
                at: At::Whole,
            },
        }
    }

    /// A policy as the group policy editor writes it, for game.exe and 46, with changes.
    fn policy(changes: &[(&str, Option<Value>)]) -> Vec<Found> {
        let texts = [
            "1.0", "game.exe", "UDP", "*", "*", "*", "*", "*", "*", "46", "-1",
        ];
        let mut values: Vec<(&str, Value)> = NAMES
            .iter()
            .zip(texts)
            .map(|(name, text)| (*name, Value::Text(text.to_owned())))
            .collect();
        for (name, value) in changes {
            values.retain(|(known, _)| known != name);
            values.extend(value.clone().map(|value| (*name, value)));
        }
        let key = format!("{POLICIES}Game");
        values
            .into_iter()
            .map(|(name, value)| found(&key, name, value))
            .collect()
    }

    fn text(text: &str) -> Option<Value> {
        Some(Value::Text(text.to_owned()))
    }

    fn faults(found: &[Found], asked: &Asked) -> String {
        let policies = judge(found, asked);
        assert_eq!(policies.len(), 1);
        policies[0].faults.join("; ")
    }

    #[test]
    fn a_policy_of_windows_own_marks_in_a_domain() {
        let asked = Asked {
            program: Some(r"C:\Games\Game.exe".to_owned()),
            in_domain: Some(true),
        };
        let policies = judge(&policy(&[]), &asked);
        assert_eq!(
            (policies[0].mark, policies[0].name.as_str()),
            (Some(46), "Game")
        );
        assert!(policies[0].faults.is_empty() && policies[0].doubts.is_empty());
    }

    #[test]
    fn outside_of_a_domain_it_wants_the_switch_as_text() {
        let workgroup = Asked {
            in_domain: Some(false),
            ..Asked::default()
        };
        let mut all = policy(&[]);
        assert!(faults(&all, &workgroup).contains("is not set"));
        assert!(!judge(&all, &Asked::default())[0].doubts.is_empty());
        all.push(found(SWITCH.0, SWITCH.1, Value::Dword(1)));
        assert!(faults(&all, &workgroup).contains("is REG_DWORD"));
        all.push(found(SWITCH.0, SWITCH.1, text("1").unwrap()));
        assert_eq!(faults(&all, &workgroup), "");
    }

    #[test]
    fn what_keeps_a_policy_from_marking_is_named() {
        let domain = Asked {
            program: Some("game.exe".to_owned()),
            in_domain: Some(true),
        };
        for (name, value, fault) in [
            ("DSCP Value", Some(Value::Dword(46)), "only REG_SZ is read"),
            ("DSCP Value", text("64"), "marks are 0 to 63"),
            ("DSCP Value", text("-1"), "no mark"),
            ("DSCP Value", None, "no \"DSCP Value\""),
            ("DSCP", text("46"), "no value of a policy"),
            ("Application Name", text("other.exe"), "not about game.exe"),
            ("Application Name", text("game"), "with .exe"),
            ("Protocol", text("17"), "TCP, UDP or *"),
            ("Remote Port", text("1000-2000"), "a range such as"),
            ("Version", text("2.0"), "has to be 1.0"),
        ] {
            let told = faults(&policy(&[(name, value)]), &domain);
            assert!(told.contains(fault), "{name}: {told}");
        }
    }
}
