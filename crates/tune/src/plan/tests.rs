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
    let files = plan.files().into_iter();
    let mut named = files.filter(|(known, _)| *known == name);
    named.next().unwrap().1
}

#[test]
fn the_undo_brings_back_what_was_and_deletes_what_was_not() {
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
fn what_lowers_protection_is_refused_until_it_is_accepted() {
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
fn what_nobody_knows_cannot_be_undone_and_is_refused() {
    let lines = "[HKLM\\SOFTWARE\\Other]\r\n\"a\"=dword:1";
    let refused = plan(&["SystemResponsiveness=10"], lines, &[]).unwrap_err();
    assert!(matches!(refused, PlanError::UnknownNow(_)), "{refused}");
}

#[test]
fn of_several_adapters_one_has_to_be_named() {
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
    // RSS is kept as text.
    assert_eq!(plan.changes[0].to, Some(Value::Text("0".to_owned())));
}

#[test]
fn a_value_that_is_none_is_refused() {
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

/// A change of any value, for looking at scripts.
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

/// Whether a grammar of PowerShell that is not ours takes the script.
fn parses(script: &[u8]) -> bool {
    let script = std::str::from_utf8(script).unwrap();
    let script = script.strip_prefix('\u{FEFF}').unwrap();
    let mut parser = tree_sitter::Parser::new();
    let language = tree_sitter_powershell::LANGUAGE.into();
    parser.set_language(&language).unwrap();
    let tree = parser.parse(script, None).unwrap();
    !tree.root_node().has_error()
}

#[test]
fn scripts_parse_whatever_names_and_values_hold() {
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
fn no_text_leaves_its_quotation_marks() {
    let plan = change_of("a'b’c", None, Some(Value::Text("'; evil; '".to_owned())));
    let script = String::from_utf8(file(&plan, "apply.ps1")).unwrap();
    assert!(script.contains("'a''b’’c'"), "{script}");
    assert!(script.contains("'''; evil; '''"), "{script}");
}
