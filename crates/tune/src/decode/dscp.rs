//! Reasons why a QoS policy does not mark packets.
//!
//! A policy is a key below `HKLM\SOFTWARE\Policies\Microsoft\Windows\QoS`. Its values are documented as
//! REG_SZ. The effect of a value of another type is not documented. Sources:
//! - for the values: the table of registry values in "Implement QoS in Teams clients"
//!   (<https://learn.microsoft.com/microsoftteams/qos-in-teams-clients>)
//! - for the meaning of the values and for networks: "Manage QoS policy"
//!   (<https://learn.microsoft.com/windows-server/networking/technologies/qos/qos-policy-manage>)
//! - for [`SWITCH`]: "Configuring port ranges"
//!   (<https://learn.microsoft.com/skypeforbusiness/manage/network-management/qos/configuring-port-ranges-for-your-skype-clients>)
//! - for editions: the table of "NetworkQoSPolicy CSP", without Home
//!   (<https://learn.microsoft.com/windows/client-management/mdm/networkqospolicy-csp>)

use registry::Value;
use serde::Serialize;

use crate::machine::Edition;
use crate::placed_value::{Place, PlacedValue};

/// Parent key of the policy keys, with a trailing backslash.
pub const POLICIES: &str = r"HKLM\SOFTWARE\Policies\Microsoft\Windows\QoS\";
/// Key and name of a value for clients. The value makes registry policies also apply outside domain
/// networks.
pub const SWITCH: (&str, &str) = (
    r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\QoS",
    "Do not use NLA",
);
/// Names of the values of a policy. "Version" is known only from exports that users published.
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

/// Name that Microsoft's table gives to the value "Remote IP Prefix Length". Exported policies use the longer name.
const REMOTE_PREFIX: &str = "Remote IP Prefix";

/// Doubt about every policy on a machine with Windows Home.
const HOME: &str = "the documentation of QoS policies names Pro, Enterprise, Education and servers, but not Windows \
                    Home: it may ignore the policy";

/// Program and machine for which policies are judged.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// File name or path of the program that sends the packets. `None` to ignore programs.
    pub program: Option<String>,
    /// True if the machine is in a domain; `None` if unknown.
    pub in_domain: Option<bool>,
    /// Edition of Windows; `None` if unknown.
    pub edition: Option<Edition>,
}

/// A policy and the reasons why it does not or may not work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// Name of the policy.
    pub name: String,
    /// DSCP value that the policy sets, 0 to 63; `None` if it sets no valid value.
    pub mark: Option<u8>,
    /// Reasons why the policy does not mark packets.
    pub faults: Vec<String>,
    /// Reasons why it is uncertain whether the policy marks packets: the inputs are incomplete, or the effect
    /// is not documented.
    pub doubts: Vec<String>,
}

/// Judges every policy in the findings.
pub fn judge(found: &[PlacedValue], scope: &Scope) -> Vec<Policy> {
    let mut policies: Vec<(String, Vec<(&str, &Value)>)> = Vec::new();
    for PlacedValue { place, value, .. } in found {
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
    let network = network(found, scope);
    let judged = policies.into_iter().map(|(name, values)| {
        let mut policy = Policy {
            name,
            mark: None,
            faults: Vec::new(),
            doubts: Vec::new(),
        };
        policy.judge(&values, scope);
        if scope.edition == Some(Edition::Home) {
            policy.doubts.push(HOME.to_owned());
        }
        match &network {
            Ok(()) => {}
            Err(Network::Ignored(why)) => policy.faults.push(why.clone()),
            Err(Network::Unknown(why)) => policy.doubts.push(why.clone()),
        }
        policy
    });
    judged.collect()
}

impl Policy {
    fn judge(&mut self, values: &[(&str, &Value)], scope: &Scope) {
        let mut seen: [Option<String>; NAMES.len()] = std::array::from_fn(|_| None);
        for (name, value) in values {
            let Some(at) = position(name) else {
                let doubt = format!("\"{name}\" is not among the known values of a policy");
                self.doubts.push(doubt);
                continue;
            };
            if !matches!(value, Value::Text(_)) {
                self.doubts.push(format!(
                    "\"{name}\" is {}, but values of a policy are documented as REG_SZ: Windows may ignore it",
                    value.type_name()
                ));
            }
            seen[at] = Some(as_text(value));
        }
        let text = |name: &str| position(name).and_then(|at| seen[at].as_deref());
        let missing: Vec<&str> = NAMES
            .iter()
            .zip(&seen)
            .filter(|(_, text)| text.is_none())
            .map(|(name, _)| *name)
            .collect();
        if !missing.is_empty() {
            self.doubts.push(format!(
                "exported policies have {} values; this one lacks {}",
                NAMES.len(),
                missing.join(", ")
            ));
        }
        match text("DSCP Value").map(str::parse::<i32>) {
            Some(Ok(mark @ 0..=63)) => self.mark = u8::try_from(mark).ok(),
            Some(Ok(-1)) => self
                .faults
                .push("\"DSCP Value\" is -1, which is no mark: marks are 0 to 63".to_owned()),
            Some(_) => self.faults.push(format!(
                "\"DSCP Value\" is \"{}\": it must be 0 to 63",
                text("DSCP Value").unwrap_or_default()
            )),
            None => self
                .faults
                .push("\"DSCP Value\" is missing, so there is no mark".to_owned()),
        }
        if let Some(version) = text("Version").filter(|version| *version != "1.0") {
            self.doubts.push(format!(
                "\"Version\" is \"{version}\": exported policies have 1.0, other versions are not documented"
            ));
        }
        if let Some(protocol) = text("Protocol") {
            let is_known = ["*", "TCP", "UDP"]
                .iter()
                .any(|known| known.eq_ignore_ascii_case(protocol));
            if !is_known {
                self.faults.push(format!(
                    "\"Protocol\" is \"{protocol}\": it must be TCP, UDP or *"
                ));
            }
        }
        for name in ["Local Port", "Remote Port"] {
            if let Some(ports) = text(name).filter(|ports| !are_ports(ports)) {
                self.faults.push(format!(
                    "\"{name}\" is \"{ports}\": it must be a port, a range such as 1000:2000 or 1000-2000, or *"
                ));
            }
        }
        if let Some(program) = text("Application Name") {
            self.judge_program(program, scope);
        }
    }

    fn judge_program(&mut self, meant: &str, scope: &Scope) {
        if meant != "*" && !meant.to_ascii_lowercase().ends_with(".exe") {
            self.faults.push(format!(
                "\"Application Name\" is \"{meant}\": it must be a file name with .exe, a path, or *"
            ));
        }
        let Some(program) = &scope.program else {
            return;
        };
        let program = program.to_lowercase();
        let meant_is = meant.to_lowercase();
        let file = program.rsplit(['\\', '/']).next().unwrap_or(&program);
        let is_it = match meant_is.contains('\\') {
            // Variables in the path cannot be expanded, because the environment of the machine is unknown. So
            // only the file names are compared.
            true if meant_is.contains('%') || program == file => {
                meant_is.rsplit('\\').next() == Some(file)
            }
            true => meant_is == program,
            false => meant_is == "*" || meant_is == file,
        };
        if !is_it {
            self.faults
                .push(format!("it applies to \"{meant}\", not to {program}"));
        }
    }
}

/// Reason why policies do not apply, or may not apply, on the networks of the machine.
enum Network {
    Ignored(String),
    Unknown(String),
}

fn network(found: &[PlacedValue], scope: &Scope) -> Result<(), Network> {
    let switch = found.iter().rev().find_map(|found| match &found.place {
        Place::Registry { key, name } => {
            let is_it =
                key.as_str().eq_ignore_ascii_case(SWITCH.0) && name.eq_ignore_ascii_case(SWITCH.1);
            is_it.then_some(found.value.as_ref()?)
        }
        _ => None,
    });
    let (now, is_text) = match switch {
        Some(Value::Text(text)) if text.trim() == "1" => return Ok(()),
        Some(Value::Text(text)) => (format!("is \"{text}\""), true),
        Some(other) => {
            let now = format!("is {}, but documented as REG_SZ", other.type_name());
            (now, false)
        }
        None => ("is not set".to_owned(), true),
    };
    let is_client = scope.edition.map(|edition| !edition.is_server());
    // Windows Server 2012 applies policies on all networks. The same is assumed for later servers,
    // although no page mentions them.
    if scope.in_domain == Some(true) || is_client == Some(false) {
        return Ok(());
    }
    let unknown: Vec<&str> = [
        (
            is_client.is_none(),
            "whether the machine is a client or a server",
        ),
        (
            scope.in_domain.is_none(),
            "whether the machine is in a domain",
        ),
        (!is_text, "whether Windows reads this type"),
    ]
    .into_iter()
    .filter_map(|(is_unknown, what)| is_unknown.then_some(what))
    .collect();
    let rule = format!(
        "\"{}\" {now}: a client applies policies of the registry outside the networks of its domain only if this \
         value is \"1\"",
        SWITCH.1
    );
    Err(if unknown.is_empty() {
        Network::Ignored(rule)
    } else {
        Network::Unknown(format!("{rule}; unknown: {}", unknown.join(", ")))
    })
}

/// Returns the index of a value's name in [`NAMES`].
fn position(name: &str) -> Option<usize> {
    let name = if name.eq_ignore_ascii_case(REMOTE_PREFIX) {
        "Remote IP Prefix Length"
    } else {
        name
    };
    NAMES
        .iter()
        .position(|known| known.eq_ignore_ascii_case(name))
}

/// Formats a registry value as the text that a policy would have.
fn as_text(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Expandable(text) => text.trim().to_owned(),
        Value::Dword(number) => number.to_string(),
        Value::Qword(number) => number.to_string(),
        other => other.to_string(),
    }
}

/// Returns the name of `key` below `above`, which ends with a backslash. Returns `None` if `key` is not a direct subkey
/// of `above`.
fn below<'k>(key: &'k str, above: &str) -> Option<&'k str> {
    let head = key.get(..above.len())?;
    let rest = &key[above.len()..];
    (head.eq_ignore_ascii_case(above) && !rest.is_empty() && !rest.contains('\\')).then_some(rest)
}

/// Returns true if a text is a port, a range of ports or `*`. Ranges have a colon in the wizard of the group
/// policy editor, and a hyphen in the documented registry example.
fn are_ports(text: &str) -> bool {
    let port = |text: &str| text.parse::<u16>().ok();
    match text.split_once([':', '-']) {
        Some((from, to)) => matches!((port(from), port(to)), (Some(from), Some(to)) if from <= to),
        None => text == "*" || port(text).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placed_value::{InputPosition, Origin};
    use registry::Key;

    fn found(key: &str, name: &str, value: Value) -> PlacedValue {
        PlacedValue {
            place: Place::Registry {
                key: Key::new(key).unwrap(),
                name: name.to_owned(),
            },
            value: Some(value),
            origin: Origin {
                source: "test".into(),
                at: InputPosition::Whole,
            },
        }
    }

    /// Returns the values that the group policy editor writes for a policy that marks packets of
    /// game.exe with DSCP 46, after replacing the values in `changes`.
    fn policy(changes: &[(&str, Option<Value>)]) -> Vec<PlacedValue> {
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

    fn one(found: &[PlacedValue], scope: &Scope) -> Policy {
        let mut policies = judge(found, scope);
        assert_eq!(policies.len(), 1);
        policies.remove(0)
    }

    fn faults(found: &[PlacedValue], scope: &Scope) -> String {
        one(found, scope).faults.join("; ")
    }

    fn doubts(found: &[PlacedValue], scope: &Scope) -> String {
        one(found, scope).doubts.join("; ")
    }

    #[test]
    fn a_complete_policy_marks_in_a_domain() {
        let scope = Scope {
            program: Some(r"C:\Games\Game.exe".to_owned()),
            in_domain: Some(true),
            edition: None,
        };
        let policies = judge(&policy(&[]), &scope);
        assert_eq!(
            (policies[0].mark, policies[0].name.as_str()),
            (Some(46), "Game")
        );
        assert!(policies[0].faults.is_empty() && policies[0].doubts.is_empty());
    }

    /// Source: "Manage QoS policy", settings for roaming and remote users. Clients apply policies only on
    /// networks of their enterprise. Windows Server 2012 applies policies on all networks.
    #[test]
    fn only_clients_need_the_switch_outside_a_domain() {
        let machine = |in_domain, edition| Scope {
            program: None,
            in_domain,
            edition,
        };
        let (pro, server) = (Some(Edition::Pro), Some(Edition::Server));
        let client = machine(Some(false), pro);
        let mut all = policy(&[]);
        assert!(faults(&all, &client).contains("is not set"));
        assert_eq!(doubts(&all, &client), "");
        for fine in [
            machine(Some(true), pro),
            machine(Some(false), server),
            machine(None, server),
        ] {
            assert_eq!(faults(&all, &fine) + &doubts(&all, &fine), "");
        }
        for (open, unknown) in [
            (machine(Some(false), None), "a client or a server"),
            (machine(None, pro), "in a domain"),
            (machine(None, None), "in a domain"),
        ] {
            assert_eq!(faults(&all, &open), "");
            assert!(doubts(&all, &open).contains(unknown), "{open:?}");
        }
        // The type of this value is documented as REG_SZ. The effect of another type is not documented.
        all.push(found(SWITCH.0, SWITCH.1, Value::Dword(1)));
        assert_eq!(faults(&all, &client), "");
        assert!(doubts(&all, &client).contains("is REG_DWORD, but documented as REG_SZ"));
        all.push(found(SWITCH.0, SWITCH.1, text("1").unwrap()));
        assert_eq!(faults(&all, &client) + &doubts(&all, &client), "");
    }

    /// The documentation of QoS policies lists editions without Home.
    #[test]
    fn windows_home_is_doubtful() {
        let judged = |edition| {
            let scope = Scope {
                in_domain: Some(true),
                edition: Some(edition),
                ..Scope::default()
            };
            one(&policy(&[]), &scope)
        };
        let home = judged(Edition::Home);
        assert_eq!((home.mark, home.faults.len()), (Some(46), 0));
        assert!(home.doubts[0].contains("Windows Home"), "{home:?}");
        for edition in [Edition::Pro, Edition::Enterprise, Edition::Server] {
            assert!(judged(edition).doubts.is_empty(), "{edition}");
        }
    }

    #[test]
    fn a_value_of_another_type_is_doubtful() {
        let domain = Scope {
            in_domain: Some(true),
            ..Scope::default()
        };
        let number = one(&policy(&[("DSCP Value", Some(Value::Dword(46)))]), &domain);
        assert_eq!((number.mark, number.faults.len()), (Some(46), 0));
        assert_eq!(number.doubts.len(), 1);
        let doubt = &number.doubts[0];
        assert!(doubt.contains("is REG_DWORD, but values"), "{doubt}");
        assert!(doubt.contains("Windows may ignore it"), "{doubt}");
        let bytes = Value::Binary(vec![46, 0]);
        let bytes = one(&policy(&[("DSCP Value", Some(bytes))]), &domain);
        assert!(bytes.faults[0].contains("must be 0 to 63"), "{bytes:?}");
        assert_eq!((bytes.mark, bytes.doubts.len()), (None, 1));
    }

    /// Microsoft's table for Teams has port ranges with a hyphen, and the name "Remote IP Prefix".
    #[test]
    fn both_forms_of_ranges_and_of_the_remote_prefix_are_known() {
        let domain = Scope {
            in_domain: Some(true),
            ..Scope::default()
        };
        for ports in ["50000-50019", "50000:50019", "443", "*"] {
            let values = policy(&[("Local Port", text(ports))]);
            assert_eq!(faults(&values, &domain), "", "{ports}");
        }
        let short = [
            ("Remote IP Prefix Length", None),
            ("Remote IP Prefix", text("*")),
        ];
        assert_eq!(doubts(&policy(&short), &domain), "");
        assert_eq!(faults(&policy(&short), &domain), "");
    }

    #[test]
    fn each_fault_of_a_policy_is_named() {
        let domain = Scope {
            program: Some("game.exe".to_owned()),
            in_domain: Some(true),
            edition: Some(Edition::Pro),
        };
        for (name, value, fault) in [
            ("DSCP Value", text("64"), "must be 0 to 63"),
            ("DSCP Value", text("-1"), "no mark"),
            ("DSCP Value", None, "\"DSCP Value\" is missing"),
            ("Application Name", text("other.exe"), "not to game.exe"),
            ("Application Name", text("game"), "with .exe"),
            ("Protocol", text("17"), "TCP, UDP or *"),
            ("Remote Port", text("2000-1000"), "a range such as"),
            ("Remote Port", text("1000,2000"), "a range such as"),
        ] {
            let faults = faults(&policy(&[(name, value)]), &domain);
            assert!(faults.contains(fault), "{name}: {faults}");
        }
        for (name, value, doubt) in [
            ("DSCP", text("46"), "not among the known values"),
            ("Version", text("2.0"), "exported policies have 1.0"),
            ("Throttle Rate", None, "lacks Throttle Rate"),
        ] {
            let policy = policy(&[(name, value)]);
            let doubts = doubts(&policy, &domain);
            assert!(doubts.contains(doubt), "{name}: {doubts}");
            assert_eq!(faults(&policy, &domain), "", "{name}");
        }
    }
}
