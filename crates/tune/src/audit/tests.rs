use super::*;
use crate::inputs::read;
use crate::machine::Edition;

const PRO: Machine = Machine {
    name: None,
    build: Some(22631),
    edition: Some(Edition::Pro),
};

fn on(build: u32) -> Machine {
    Machine {
        build: Some(build),
        ..PRO
    }
}

/// Audits a `.reg` file with these lines.
fn audit_reg(lines: &str, machine: &Machine) -> Audit {
    let text = format!("Windows Registry Editor Version 5.00\r\n{lines}\r\n");
    audit(&read("a.reg", text.as_bytes()).unwrap(), machine)
}

/// Returns the kinds of all remarks on a setting.
fn kinds(audit: &Audit, id: &str) -> Vec<Kind> {
    let findings = audit
        .findings
        .iter()
        .filter(|finding| finding.setting.id == id);
    findings
        .flat_map(|finding| finding.remarks.iter().map(|remark| remark.kind))
        .collect()
}

const PROFILE: &str =
    r"[HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Multimedia\SystemProfile]";

#[test]
fn a_value_with_the_effect_of_the_default_does_not_differ() {
    let priority = "[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Control\\PriorityControl]\r\n";
    let at = |number: &str| {
        let lines = format!("{priority}\"Win32PrioritySeparation\"=dword:{number}");
        audit_reg(&lines, &PRO).findings.remove(0).differs
    };
    assert_eq!(at("00000002"), Some(false));
    assert_eq!(at("00000018"), Some(true));
    // The value 0x26 means short and variable quanta, which are three times as long in the foreground. This
    // is the default of clients.
    assert_eq!(at("00000026"), Some(false));
    // Windows uses only the lowest six bits.
    assert_eq!(at("ffffff02"), Some(false));
}

#[test]
fn a_value_under_the_misspelt_key_fails_and_one_that_windows_rounds_does_not() {
    let misspelt = PROFILE.replace("Windows NT", "WindowsNT");
    let lines = format!("{misspelt}\r\n\"NetworkThrottlingIndex\"=dword:ffffffff");
    let misspelt = audit_reg(&lines, &PRO);
    assert_eq!(kinds(&misspelt, "netthrottling"), [Kind::Misspelt]);
    assert!(misspelt.findings[0].fails());

    let lines = format!("{PROFILE}\r\n\"SystemResponsiveness\"=dword:0");
    let zero = audit_reg(&lines, &PRO);
    assert!(kinds(&zero, "mmcss_responsiveness").contains(&Kind::NoEffect));
    assert!(!zero.findings[0].fails());
}

#[test]
fn similar_names_are_found_but_not_names_that_differ_in_digits() {
    let lines = format!("{PROFILE}\r\n\"NetworkThrotlingIndex\"=dword:1");
    let audit = audit_reg(&lines, &PRO);
    assert_eq!(kinds(&audit, "netthrottling"), [Kind::PerhapsMisspelt]);
    assert!(!audit.findings[0].fails());
    let adapter = r"[HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}\0001]";
    let audit = audit_reg(&format!("{adapter}\r\n\"*LsoV1IPv4\"=\"1\""), &PRO);
    assert_eq!((audit.findings.len(), audit.others), (0, 1));
}

#[test]
fn a_number_in_a_policy_has_the_wrong_type() {
    let policy = r"[HKLM\SOFTWARE\Policies\Microsoft\Windows\QoS\Game]";
    let audit = audit_reg(&format!("{policy}\r\n\"DSCP Value\"=dword:2e"), &PRO);
    assert_eq!(kinds(&audit, "qos_dscp"), [Kind::WrongType]);
    assert!(audit.findings[0].fails());
    let audit = audit_reg(&format!("{policy}\r\n\"DSCP Value\"=\"46\""), &PRO);
    assert!(!kinds(&audit, "qos_dscp").contains(&Kind::WrongType));
}

/// Source: "Manage QoS policy", wizard page 1: a mark is a number from 0 to 63.
#[test]
fn a_text_that_is_no_number_is_not_allowed_where_a_number_is_asked() {
    let bytes = testdata::bytes("settings/reg_text_that_looks_like_hex.reg");
    let findings = audit(&read("a.reg", &bytes).unwrap(), &PRO);
    assert_eq!(kinds(&findings, "qos_dscp"), [Kind::NotAllowed]);
    let policy = r"[HKLM\SOFTWARE\Policies\Microsoft\Windows\QoS\Game]";
    for (value, expected) in [
        ("64", &[Kind::NotAllowed][..]),
        ("-2", &[Kind::NotAllowed]),
        ("46", &[]),
        ("-1", &[]),
    ] {
        let findings = audit_reg(&format!("{policy}\r\n\"DSCP Value\"=\"{value}\""), &PRO);
        assert_eq!(kinds(&findings, "qos_dscp"), expected, "{value}");
    }
    // A mask of 9 bytes is a text in the catalogue, but a valid value.
    let kernel = r"[HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\kernel]";
    let mask = "\"ReservedCpuSets\"=hex:ff,0,0,0,0,0,0,0,1";
    let findings = audit_reg(&format!("{kernel}\r\n{mask}"), &PRO);
    assert!(!kinds(&findings, "reservedcpusets").contains(&Kind::NotAllowed));
}

/// Source: "smb-signing", first section. Windows 11 24H2 Pro requires signatures by default, earlier builds do not.
#[test]
fn a_default_that_only_some_builds_have_is_no_failure_if_the_build_is_unknown() {
    let lines = "[HKLM\\SYSTEM\\CurrentControlSet\\Services\\LanmanServer\\Parameters]\r\n\
                 \"RequireSecuritySignature\"=dword:0";
    let pro_of_unknown_build = Machine { build: None, ..PRO };
    for (machine, given) in [
        (Machine::default(), "give --build and --edition."),
        (pro_of_unknown_build, "give --build."),
    ] {
        let findings = audit_reg(lines, &machine);
        assert_eq!(kinds(&findings, "smb_srv_require"), [Kind::Doubtful]);
        assert!(!findings.findings[0].fails());
        let says = &findings.findings[0].remarks[0].says;
        assert!(says.ends_with(given), "{says}");
    }
    let known = audit_reg(lines, &on(26100));
    assert_eq!(kinds(&known, "smb_srv_require"), [Kind::Unprotected]);
    assert_eq!(kinds(&audit_reg(lines, &on(22631)), "smb_srv_require"), []);
}

#[test]
fn an_unsupported_setting_has_no_effect() {
    let kernel = r"[HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\kernel]";
    let lines = format!("{kernel}\r\n\"GlobalTimerResolutionRequests\"=dword:1");
    assert!(kinds(&audit_reg(&lines, &on(19045)), "globaltimer").contains(&Kind::NoEffect));
    assert!(!kinds(&audit_reg(&lines, &on(22631)), "globaltimer").contains(&Kind::NoEffect));
}

#[test]
fn less_protection_fails_and_undocumented_settings_never_do() {
    let lines = "[HKLM\\SYSTEM\\CurrentControlSet\\Services\\BFE]\r\n\"Start\"=dword:4";
    let bfe = audit_reg(lines, &PRO);
    // A rule of this setting has the same text as its risk. The audit must show the text only once.
    assert_eq!(kinds(&bfe, "bfe"), [Kind::Unprotected]);
    assert!(bfe.findings[0].fails());
    let lines = "[HKLM\\SYSTEM\\CurrentControlSet\\Control\\KernelVelocity]\r\n\
                 \"DisableFGBoostDecay\"=\"x\"";
    let audit = audit_reg(lines, &PRO);
    assert_eq!(kinds(&audit, "kernelvelocity_fgboost"), [Kind::WrongType]);
    assert!(!audit.findings[0].fails());
}

#[test]
fn the_legacy_timestamps_contradict_the_effective_value() {
    let reg = "Windows Registry Editor Version 5.00\r\n\
        [HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters]\r\n\"Tcp1323Opts\"=dword:2\r\n";
    let netsh = "Receive-Side Scaling State : enabled\nReceive Window Auto-Tuning Level : normal\n\
        ECN Capability : disabled\nRFC 1323 Timestamps : disabled\n";
    let inputs = [
        read("a.reg", reg.as_bytes()).unwrap(),
        read("tcp.txt", netsh.as_bytes()).unwrap(),
    ]
    .concat();
    let audit = audit(&inputs, &PRO);
    assert!(kinds(&audit, "tcp1323opts").contains(&Kind::Contradiction));
}

#[test]
fn the_last_value_counts_and_a_deleted_key_deletes_its_values() {
    let reg = |lines: &str| {
        let text = format!("Windows Registry Editor Version 5.00\r\n{lines}\r\n");
        text.into_bytes()
    };
    let first = reg(&format!("{PROFILE}\r\n\"SystemResponsiveness\"=dword:0"));
    let second = reg(&format!("{PROFILE}\r\n\"SystemResponsiveness\"=dword:14"));
    let third = reg(&PROFILE.replace("[HKEY", "[-HKEY"));
    let mut inputs = read("1.reg", &first).unwrap();
    inputs.extend(read("2.reg", &second).unwrap());
    let finding = audit(&inputs, &PRO).findings.remove(0);
    assert_eq!(finding.value, Some(Datum::Number(20)));
    assert_eq!(finding.before.len(), 1);
    inputs.extend(read("3.reg", &third).unwrap());
    let finding = audit(&inputs, &PRO).findings.remove(0);
    assert_eq!((finding.found.value, finding.differs), (None, Some(false)));
}

#[test]
fn a_deleted_key_deletes_the_values_before_it_in_the_same_file() {
    let set = format!("{PROFILE}\r\n\"SystemResponsiveness\"=dword:0\r\n");
    let delete = PROFILE.replace("[HKEY", "[-HKEY") + "\r\n";
    for (lines, expected) in [
        (format!("{set}{delete}"), None),
        (format!("{delete}{set}"), Some(Datum::Number(0))),
        (format!("{delete}{set}{delete}"), None),
    ] {
        let text = format!("Windows Registry Editor Version 5.00\r\n{lines}");
        let inputs = read("1.reg", text.as_bytes()).unwrap();
        let finding = audit(&inputs, &PRO).findings.remove(0);
        assert_eq!(finding.value, expected, "{lines}");
    }
}

#[test]
fn given_builds_override_those_of_inputs() {
    let version = "[HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion]\r\n\
                   \"CurrentBuildNumber\"=\"19045\"\r\n\"EditionID\"=\"Core\"";
    let machine = audit_reg(version, &Machine::default()).machine;
    assert_eq!(
        (machine.build, machine.edition),
        (Some(19045), Some(Edition::Home))
    );
    let machine = audit_reg(version, &PRO).machine;
    assert_eq!(
        (machine.build, machine.edition),
        (Some(22631), Some(Edition::Pro))
    );
}

#[test]
fn only_machine_wide_places_contradict() {
    let device = |number: &str, supported: u32| {
        format!(
            "[HKLM\\SYSTEM\\CurrentControlSet\\Enum\\PCI\\VEN_8086\\{number}\\Device Parameters\\\
             Interrupt Management\\MessageSignaledInterruptProperties]\r\n\"MSISupported\"=dword:{supported}\r\n"
        )
    };
    let lines = device("1", 1) + &device("2", 0);
    let devices = audit_reg(&lines, &PRO);
    assert_eq!(devices.findings.len(), 2);
    assert!(!kinds(&devices, "msi").contains(&Kind::Contradiction));
    let server = "[HKLM\\SYSTEM\\CurrentControlSet\\Services\\LanmanServer\\Parameters]\r\n\
                  \"RequireSecuritySignature\"=dword:0";
    let text = format!("Windows Registry Editor Version 5.00\r\n{server}\r\n");
    let mut inputs = read("a.reg", text.as_bytes()).unwrap();
    let answer = b"EnableSMB1Protocol       : False\nRequireSecuritySignature : True\n";
    inputs.extend(read("smb.txt", answer).unwrap());
    let contrary = kinds(&audit(&inputs, &PRO), "smb_srv_require");
    let contradictions = contrary.iter().filter(|kind| **kind == Kind::Contradiction);
    assert_eq!(contradictions.count(), 2, "both places get a remark");
}
