use testdata::HOSTILE_NAMES;

use super::*;
use crate::inputs::read;
use crate::machine::Edition;

const PRO: Machine = Machine {
    name: None,
    build: Some(22631),
    edition: Some(Edition::Pro),
};

const PROFILE: &str =
    r"[HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Multimedia\SystemProfile]";

fn inputs(lines: &str) -> Vec<Input> {
    let text = format!("Windows Registry Editor Version 5.00\r\n{lines}\r\n");
    read("now.reg", text.as_bytes()).unwrap()
}

fn plan(requests: &[&str], lines: &str, accepted: &[&str]) -> Result<Plan, PlanError> {
    let requests: Vec<Request> = (requests.iter())
        .map(|request| request.parse().unwrap())
        .collect();
    let accepted: Vec<String> = accepted.iter().map(|name| (*name).to_owned()).collect();
    Plan::new(&requests, &inputs(lines), &PRO, &accepted)
}

fn file(plan: &Plan, name: &str) -> Vec<u8> {
    let files = plan.files().unwrap().into_iter();
    let mut named = files.filter(|(known, _)| *known == name);
    named.next().unwrap().1
}

#[test]
fn the_undo_restores_old_values_and_deletes_new_ones() {
    let lines = format!("{PROFILE}\r\n\"SystemResponsiveness\"=dword:14");
    let requests = ["SystemResponsiveness=10", "NetworkThrottlingIndex=70"];
    let plan = plan(&requests, &lines, &[]).unwrap();
    let values = |name: &str| -> Vec<Option<Value>> {
        let read = read(name, &file(&plan, name)).unwrap();
        read[0]
            .found
            .iter()
            .map(|found| found.value.clone())
            .collect()
    };
    assert_eq!(
        values(APPLY),
        [Some(Value::Dword(10)), Some(Value::Dword(70))]
    );
    assert_eq!(values(UNDO), [Some(Value::Dword(20)), None]);
}

#[test]
fn a_machine_agrees_with_the_plan_before_or_after_the_change() {
    let lines = format!("{PROFILE}\r\n\"SystemResponsiveness\"=dword:14");
    let requests = ["SystemResponsiveness=10", "NetworkThrottlingIndex=70"];
    let plan = plan(&requests, &lines, &[]).unwrap();
    let agrees = |name: &str, machine: &str| -> Vec<bool> {
        let planned = read(name, &file(&plan, name)).unwrap();
        let places = agreement(&planned, &inputs(machine)).into_iter();
        places.map(|(_, agrees)| agrees).collect()
    };
    let changed = format!(
        "{PROFILE}\r\n\"SystemResponsiveness\"=dword:a\r\n\"NetworkThrottlingIndex\"=dword:46"
    );
    assert_eq!(agrees(UNDO, &lines), [true, true]);
    assert_eq!(agrees(APPLY, &lines), [false, false]);
    assert_eq!(agrees(APPLY, &changed), [true, true]);
    // If the type differs, the value differs. An export of another key has no information about the value.
    let other = changed.replace("dword:46", "\"70\"");
    assert_eq!(agrees(APPLY, &other), [true, false]);
    assert!(agrees(APPLY, "").is_empty());
}

/// Plans a change of a QoS policy. The name of the policy does not pass through the `.reg` reader, because a
/// hive can contain any name.
fn plan_of_policy(name: &str) -> Result<Plan, PlanError> {
    let key = r"HKLM\SOFTWARE\Policies\Microsoft\Windows\QoS";
    let mut inputs = inputs(&format!("[{key}\\p]\r\n\"DSCP Value\"=\"10\""));
    inputs[0].found[0].place = Place::Registry {
        key: Key::new(key).unwrap().child(name),
        name: "DSCP Value".to_owned(),
    };
    Plan::new(&["qos_dscp=46".parse().unwrap()], &inputs, &PRO, &[])
}

/// A line break in the name of a policy would start another registry key in the `.reg` file.
#[test]
fn a_key_with_a_control_character_is_not_written() {
    let injection = "p]\r\n\"x\"=\"y\"\r\n[HKEY_CURRENT_USER]\r\n\"evil\"=\"calc.exe\"";
    let mut written = 0;
    for name in HOSTILE_NAMES.iter().chain(&[injection, "a]\"=[b;@"]) {
        // A backslash in the name separates two keys. The key with this name is therefore not a policy, but a key below
        // a policy.
        if name.contains('\\') {
            assert!(plan_of_policy(name).is_err(), "{name:?}");
            continue;
        }
        let plan = plan_of_policy(name).unwrap();
        if name.chars().any(|c| c.is_control() && c != '\t') {
            assert!(matches!(plan.files(), Err(PlanError::Name(_))), "{name:?}");
            continue;
        }
        for (file_name, value) in [(APPLY, "46"), (UNDO, "10")] {
            let read = read(file_name, &file(&plan, file_name)).unwrap().remove(0);
            assert_eq!(read.complaints.count, 0, "{name:?}");
            let [only] = read.found.as_slice() else {
                panic!("{name:?}: {:?}", read.found);
            };
            assert_eq!(only.place.to_string(), plan.changes[0].place.to_string());
            assert_eq!(only.value, Some(Value::Text(value.to_owned())));
        }
        written += 1;
    }
    assert_eq!(written, 11);
}

/// Returns the name that a cmdlet finds for a quoted argument. Returns `None` if the argument is a pattern.
fn name_of(quoted: &str) -> Option<String> {
    let inner = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut name = String::new();
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '\u{2018}'..='\u{201B}' => name.push(letters.next()?),
            '`' => name.push(letters.next()?),
            '*' | '?' | '[' | ']' => return None,
            _ => name.push(letter),
        }
    }
    Some(name)
}

/// A name such as `*` must not select all adapters, and `LAN [2]` must select itself.
#[test]
fn the_name_of_an_adapter_selects_this_adapter() {
    assert_eq!(name_of("'a*'"), None);
    let names = [
        "*",
        "[a-z]",
        "LAN [2]",
        "`*`",
        "’; calc #",
        "'; rm",
        "$(calc)",
    ];
    for name in names.iter().chain(HOSTILE_NAMES) {
        let printed = serde_json::json!({
            "Name": name, "NumberOfReceiveQueues": 4, "Profile": 4, "Enabled": true,
        });
        let plan = plan_from("rss.json", &printed.to_string(), &["*RSS=0"]).unwrap();
        for (file_name, value) in [("apply.ps1", "$false"), ("undo.ps1", "$true")] {
            let script = file(&plan, file_name);
            assert!(parses(&script), "{name:?}");
            let script = String::from_utf8(script).unwrap();
            let (_, rest) = script.split_once("Set-NetAdapterRss -Name ").unwrap();
            let quoted = rest.strip_suffix(&format!(" -Enabled {value}\r\n"));
            assert_eq!(name_of(quoted.unwrap()).as_deref(), Some(*name), "{script}");
        }
    }
}

/// Checks that names do not change the lines of the description, nor the text outside code spans.
#[test]
fn names_do_not_change_the_description() {
    let without_code = |name: &str| {
        let mut plan = plan_of_policy("p").unwrap();
        plan.machine.name = Some(name.to_owned());
        let change = &mut plan.changes[0];
        change.place = Place::Kernel {
            symbol: name.to_owned(),
        };
        change.found.as_mut().unwrap().origin.source = name.into();
        change.from = Some(Value::Text(name.to_owned()));
        let mut text = text::describe(&plan);
        // The name is in four code spans: alone, with its line number, as a value, and in the place.
        let shown = Value::Text(name.to_owned()).to_string();
        let place = plan.changes[0].place.to_string();
        for code in [name, &format!("{name}:3"), &shown, &place] {
            text = text.replace(&wording::MarkdownCode(code).to_string(), "CODE");
        }
        text
    };
    let expected = without_code("p");
    assert_eq!(expected.matches("CODE").count(), 4, "{expected}");
    for name in HOSTILE_NAMES {
        assert_eq!(without_code(name), expected, "{name:?}");
    }
}

#[test]
fn a_change_that_lowers_protection_must_be_accepted() {
    let lines = "[HKLM\\SYSTEM\\CurrentControlSet\\Services\\BFE]\r\n\"Start\"=dword:2";
    let refused = plan(&["bfe=4"], lines, &[]).unwrap_err();
    assert!(
        matches!(refused, PlanError::LowersProtection { .. }),
        "{refused}"
    );
    let accepted = plan(&["bfe=4"], lines, &["bfe"]).unwrap();
    let text = String::from_utf8(file(&accepted, "plan.md")).unwrap();
    assert!(text.contains("**Lowers protection**"));
}

#[test]
fn an_unknown_current_value_is_refused() {
    let lines = "[HKLM\\SOFTWARE\\Other]\r\n\"a\"=dword:1";
    let refused = plan(&["SystemResponsiveness=10"], lines, &[]).unwrap_err();
    assert!(matches!(refused, PlanError::UnknownNow { .. }), "{refused}");
}

#[test]
fn one_of_several_adapters_must_be_named() {
    let class =
        r"HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}";
    let lines = format!("[{class}\\0001]\r\n\"*RSS\"=\"1\"\r\n[{class}\\0002]\r\n\"*RSS\"=\"1\"");
    let refused = plan(&["*RSS=0"], &lines, &[]).unwrap_err();
    let expected = PlanError::WhichPart {
        name: "*RSS".to_owned(),
        found: vec!["0001".to_owned(), "0002".to_owned()],
    };
    assert_eq!(refused, expected);
    let plan = plan(&["*RSS@0002=0"], &lines, &[]).unwrap();
    assert_eq!(
        plan.changes[0].place.to_string(),
        format!(r"{class}\0002\*RSS")
    );
    // The `*RSS` value is stored as text.
    assert_eq!(plan.changes[0].to, Some(Value::Text("0".to_owned())));
}

#[test]
fn an_invalid_value_is_refused() {
    let lines = format!("{PROFILE}\r\n\"SystemResponsiveness\"=dword:14");
    let refused = plan(&["NetworkThrottlingIndex=5000000000"], &lines, &[]).unwrap_err();
    assert!(matches!(refused, PlanError::Value { .. }), "{refused}");
    assert!("SystemResponsiveness".parse::<Request>().is_err());
}

#[test]
fn an_element_of_the_boot_configuration_is_set_and_deleted_by_scripts() {
    let listing = "Windows Boot Loader\n-------------------\nidentifier              {current}\n\
                   tscsyncpolicy           Enhanced\n";
    let inputs = read("bcd.txt", listing.as_bytes()).unwrap();
    let requests = ["tscsyncpolicy=legacy", "useplatformclock=yes"];
    let requests = requests.map(|request| request.parse().unwrap());
    let plan = Plan::new(&requests, &inputs, &PRO, &[]).unwrap();
    let script = |name: &str| String::from_utf8(file(&plan, name)).unwrap();
    let apply = script("apply.ps1");
    assert!(
        apply.contains("bcdedit.exe /set '{current}' 'tscsyncpolicy' 'legacy'"),
        "{apply}"
    );
    assert!(
        apply.contains("bcdedit.exe /set '{current}' 'useplatformclock' 'yes'"),
        "{apply}"
    );
    let undo = script("undo.ps1");
    assert!(
        undo.contains("bcdedit.exe /set '{current}' 'tscsyncpolicy' 'enhanced'"),
        "{undo}"
    );
    assert!(
        undo.contains("bcdedit.exe /deletevalue '{current}' 'useplatformclock'"),
        "{undo}"
    );
}

/// Makes a plan from the output of a command.
fn plan_from(name: &str, printed: &str, requests: &[&str]) -> Result<Plan, PlanError> {
    let inputs = read(name, printed.as_bytes()).unwrap();
    let requests: Vec<Request> = (requests.iter())
        .map(|request| request.parse().unwrap())
        .collect();
    Plan::new(&requests, &inputs, &PRO, &[])
}

/// Returns the commands of a script. Asserts that a PowerShell grammar accepts the script.
fn commands(plan: &Plan, name: &str) -> Vec<String> {
    let script = file(plan, name);
    assert!(parses(&script), "{}", String::from_utf8_lossy(&script));
    let script = String::from_utf8(script).unwrap();
    let lines = script.lines().skip(3).map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with("if ($LAST"))
        .map(str::to_owned)
        .collect()
}

const RSS: &str = "\nName                            : Ethernet 2\n\
    Enabled                         : True\nNumberOfReceiveQueues           : 4\n\
    Profile                         : NUMAStatic\nBaseProcessor: [Group:Number]   : 0:0\n\
    MaxProcessors                   : 8\n";

/// Source of the parameters:
/// <https://learn.microsoft.com/powershell/module/netadapter/set-netadapterrss>.
#[test]
fn rss_of_an_adapter_is_set_by_its_cmdlet() {
    let requests = [
        "*RssBaseProcNumber=4",
        "*RSSProfile@ethernet 2=Closest",
        "*RSS=0",
    ];
    let plan = plan_from("rss.txt", RSS, &requests).unwrap();
    let adapter = "Set-NetAdapterRss -Name 'Ethernet 2'";
    assert_eq!(
        commands(&plan, "apply.ps1"),
        [
            format!("{adapter} -BaseProcessorNumber '4'"),
            format!("{adapter} -Profile 'Closest'"),
            format!("{adapter} -Enabled $false"),
        ]
    );
    assert_eq!(
        commands(&plan, "undo.ps1"),
        [
            format!("{adapter} -Enabled $true"),
            format!("{adapter} -Profile 'NUMAStatic'"),
            format!("{adapter} -BaseProcessorNumber '0'"),
        ]
    );
    let check = String::from_utf8(file(&plan, "check.ps1")).unwrap();
    assert!(parses(check.as_bytes()), "{check}");
    let row = "Now = { ([string]((Get-NetAdapterRss -Name 'Ethernet 2').BaseProcessorNumber))\
               .ToLowerInvariant() }; Before = '0'; After = '4'";
    assert!(check.contains(row), "{check}");
    let text = String::from_utf8(file(&plan, "plan.md")).unwrap();
    assert!(text.contains("**Restarts the adapter**"), "{text}");
    // In JSON output, properties have numbers where the text output of the cmdlet has words.
    let json = r#"{"Name":"Ethernet 2","NumberOfReceiveQueues":4,"Profile":4,"Enabled":true}"#;
    let plan = plan_from("rss.json", json, &["*RSSProfile=Closest"]).unwrap();
    let check = String::from_utf8(file(&plan, "check.ps1")).unwrap();
    assert!(
        check.contains("Before = 'numastatic'; After = 'closest'"),
        "{check}"
    );
}

#[test]
fn a_driver_keyword_is_set_by_name() {
    let printed = "\nName      DisplayName           DisplayValue RegistryKeyword      RegistryValue\n\
        ----      -----------           ------------ ---------------      -------------\n\
        Ethernet  Interrupt Moderation  Enabled      *InterruptModeration {1}\n\
        Wi-Fi     Interrupt Moderation  Enabled      *InterruptModeration {1}\n";
    let refused = plan_from("adapters.txt", printed, &["*InterruptModeration=0"]).unwrap_err();
    assert!(
        matches!(&refused, PlanError::WhichPart { found, .. } if found == &["Ethernet", "Wi-Fi"]),
        "{refused}"
    );
    let plan = plan_from("adapters.txt", printed, &["*InterruptModeration@Wi-Fi=0"]).unwrap();
    let command = "Set-NetAdapterAdvancedProperty -Name 'Wi-Fi' -RegistryKeyword '`*InterruptModeration' -RegistryValue";
    assert_eq!(commands(&plan, "apply.ps1"), [format!("{command} '0'")]);
    assert_eq!(commands(&plan, "undo.ps1"), [format!("{command} '1'")]);
    let gone = plan_from(
        "adapters.txt",
        printed,
        &["*InterruptModeration@Wi-Fi=absent"],
    );
    assert!(matches!(gone, Err(PlanError::Value { .. })), "{gone:?}");
}

#[test]
fn smb_signing_is_set_by_its_cmdlet_and_unset_only_if_accepted() {
    let printed = "EnableSMB1Protocol       : False\nRequireSecuritySignature : True\n";
    let refused = plan_from("smb.txt", printed, &["smb_srv_require=0"]).unwrap_err();
    assert!(
        matches!(refused, PlanError::LowersProtection { .. }),
        "{refused}"
    );
    let printed = printed.replace("True", "False");
    let plan = plan_from("smb.txt", &printed, &["smb_srv_require=1"]).unwrap();
    let command = "Set-SmbServerConfiguration -Force -RequireSecuritySignature";
    assert_eq!(commands(&plan, "apply.ps1"), [format!("{command} $true")]);
    assert_eq!(commands(&plan, "undo.ps1"), [format!("{command} $false")]);
}

/// Source:
/// <https://learn.microsoft.com/windows-hardware/design/device-experiences/powercfg-command-line-options>.
#[test]
fn a_power_scheme_is_changed_for_mains_or_battery() {
    let (scheme, group, setting) = (
        "381b4222-f694-41f0-9685-ff5bb260df2e",
        "54533251-82be-4824-96c1-47b60b740d00",
        "893dee8e-2bef-41e0-89c6-b55d0929964c",
    );
    let printed = format!(
        "Power Scheme GUID: {scheme}  (Balanced)\n  Subgroup GUID: {group}  (Processor)\n\
         \x20   Power Setting GUID: {setting}  (Minimum processor state)\n\
         \x20     Maximum Possible Setting: 0x00000064\n\
         \x20   Current AC Power Setting Index: 0x00000005\n\
         \x20   Current DC Power Setting Index: 0x00000006\n"
    );
    let refused = plan_from("power.txt", &printed, &["procmin=100"]).unwrap_err();
    assert!(
        matches!(&refused, PlanError::WhichPart { found, .. } if found == &["ac", "dc"]),
        "{refused}"
    );
    let plan = plan_from("power.txt", &printed, &["procmin@dc=100"]).unwrap();
    let command = format!("powercfg.exe /setdcvalueindex {scheme} {group} {setting}");
    let again = [
        format!("if (\"$(powercfg.exe /getactivescheme)\" -match '{scheme}') {{"),
        format!("powercfg.exe /setactive {scheme}"),
        "}".to_owned(),
    ];
    let with_again = |first: String| [vec![first], again.to_vec()].concat();
    assert_eq!(
        commands(&plan, "apply.ps1"),
        with_again(format!("{command} 100"))
    );
    assert_eq!(
        commands(&plan, "undo.ps1"),
        with_again(format!("{command} 6"))
    );
    let outside = plan_from("power.txt", &printed, &["procmin@ac=101"]).unwrap_err();
    assert!(matches!(outside, PlanError::Value { .. }), "{outside}");
}

#[test]
fn netsh_gets_its_own_words() {
    let printed = "TCP Global Parameters\n----------\nReceive-Side Scaling State : enabled\n\
        Receive Window Auto-Tuning Level : disabled\nECN Capability : disabled\n\
        RFC 1323 Timestamps : allowed\n";
    let requests = [
        "autotuninglevel=normal",
        "tcp_timestamps=disabled",
        "rss_global=0",
    ];
    let plan = plan_from("tcp.txt", printed, &requests).unwrap();
    let netsh = "netsh.exe int tcp set global";
    assert_eq!(
        commands(&plan, "apply.ps1"),
        [
            format!("{netsh} autotuninglevel='normal'"),
            format!("{netsh} timestamps='disabled'"),
            format!("{netsh} rss='disabled'"),
        ]
    );
    assert_eq!(
        commands(&plan, "undo.ps1"),
        [
            format!("{netsh} rss='enabled'"),
            format!("{netsh} timestamps='allowed'"),
            format!("{netsh} autotuninglevel='disabled'"),
        ]
    );
}

#[test]
fn errors_name_the_missing_input() {
    let refused = plan_from("rss.txt", RSS, &["procmin@ac=100"]).unwrap_err();
    assert!(refused.to_string().contains("powercfg /qh"), "{refused}");
    let refused = plan_from("rss.txt", RSS, &["rss_global=0"]).unwrap_err();
    assert!(
        refused.to_string().contains("netsh int tcp show global"),
        "{refused}"
    );
    let none = "\nName : Ethernet\nEnabled : vrai\nNumberOfReceiveQueues : 4\n";
    let refused = plan_from("rss.txt", none, &["*RSS=0"]).unwrap_err();
    assert!(
        matches!(refused, PlanError::NotUndoable { .. }),
        "{refused}"
    );
}

#[test]
fn no_key_is_created_for_an_unknown_adapter() {
    let class =
        r"HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}";
    let lines = format!("[{class}\\0001]\r\n\"DriverDesc\"=\"An adapter\"");
    assert!(plan(&["*RssBaseProcNumber@0001=2"], &lines, &[]).is_ok());
    // There are two adapters, and only one has the value. The user must choose between them.
    let two = format!("{lines}\r\n[{class}\\0002]\r\n\"*RssBaseProcNumber\"=\"0\"");
    let refused = plan(&["*RssBaseProcNumber=2"], &two, &[]).unwrap_err();
    assert!(matches!(refused, PlanError::WhichPart { .. }), "{refused}");
    let refused = plan(&["*RssBaseProcNumber@0042=2"], &lines, &[]).unwrap_err();
    assert!(
        matches!(&refused, PlanError::WhichPart { found, .. } if found == &["0001"]),
        "{refused}"
    );
}

/// Returns a plan with one change between the given values, to test scripts.
fn change_of(name: &str, from: Option<Value>, to: Option<Value>) -> Plan {
    let setting = Catalogue::get().named("SystemResponsiveness")[0];
    Plan {
        machine: PRO,
        changes: vec![Change {
            setting,
            place: Place::Registry {
                key: Key::new(r"HKLM\SOFTWARE\It's $(here)\`a`").unwrap(),
                name: name.to_owned(),
            },
            from,
            found: None,
            to,
            lowers: None,
            has_effect: None,
        }],
    }
}

/// Returns true if an independent PowerShell grammar parses the script.
fn parses(script: &[u8]) -> bool {
    let script = std::str::from_utf8(script).unwrap();
    let script = script.strip_prefix('\u{FEFF}').expect("marked as UTF-8");
    let mut parser = tree_sitter::Parser::new();
    let language = tree_sitter_powershell::LANGUAGE.into();
    parser.set_language(&language).unwrap();
    let tree = parser.parse(script, None).unwrap();
    !tree.root_node().has_error()
}

#[test]
fn scripts_parse_for_any_names_and_values() {
    assert!(!parses("\u{FEFF}if ( {".as_bytes()), "the test can fail");
    let nasty = "it's ‘here’ $(Remove-Item x) `n \"quoted\" #; @{";
    let values = [
        None,
        Some(Value::Text(nasty.to_owned())),
        Some(Value::Expandable(nasty.to_owned())),
        Some(Value::Dword(u32::MAX)),
        Some(Value::Qword(u64::MAX)),
        Some(Value::Binary(vec![0, 255])),
        Some(Value::Binary(Vec::new())),
        Some(Value::List(vec![nasty.to_owned(), "b".to_owned()])),
        Some(Value::None),
    ];
    for value in values {
        let plan = change_of(nasty, value.clone(), value);
        for name in ["apply.ps1", "undo.ps1", "check.ps1"] {
            let script = file(&plan, name);
            assert!(parses(&script), "{}", String::from_utf8_lossy(&script));
        }
    }
}

#[test]
fn no_text_escapes_its_quotation_marks() {
    let plan = change_of("a'b’c", None, Some(Value::Text("'; evil; '".to_owned())));
    let script = String::from_utf8(file(&plan, "apply.ps1")).unwrap();
    assert!(script.contains("'a''b’’c'"), "{script}");
    assert!(script.contains("'''; evil; '''"), "{script}");
}
