//! Tests of `laglab tune explain`.

use crate::program;

use program::{json, laglab, text};

/// Compares rows of the printed table with the table of Win32PrioritySeparation that PC-Tuning publishes.
#[test]
fn the_table_of_quanta_matches_the_published_one() {
    let shown = text(&["tune", "explain", "--table"]);
    let named = text(&["tune", "explain", "Win32PrioritySeparation", "--table"]);
    assert_eq!(shown, named, "only one setting has a table");
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    for row in [
        "0x14 20 010100 Long Variable 12 12 62.50 62.50",
        "0x15 21 010101 Long Variable 24 12 125.00 62.50",
        "0x16 22 010110 Long Variable 36 12 187.50 62.50",
        "0x18 24 011000 Long Fixed 36 36 187.50 187.50",
        "0x24 36 100100 Short Variable 6 6 31.25 31.25",
        "0x25 37 100101 Short Variable 12 6 62.50 31.25",
        "0x26 38 100110 Short Variable 18 6 93.75 31.25",
        "0x28 40 101000 Short Fixed 18 18 93.75 93.75",
    ] {
        let cells: Vec<&str> = row.split(' ').collect();
        assert!(rows.contains(&cells), "{row} in\n{shown}");
    }
}

#[test]
fn a_value_is_decoded_for_client_and_server() {
    let decoded = |args: &[&str]| {
        let explained = json(&[&["--json", "tune", "explain", "win32prioritysep"], args].concat());
        explained[0]["value"]["quantum"].clone()
    };
    let odd = decoded(&["0xffff3f91"]);
    assert_eq!(
        (&odd["bits"], &odd["client"]["ratio"]),
        (&0x11.into(), &2.into())
    );
    assert_eq!(odd["client"]["foreground_ms"], 125.0);
    // The bits for interval and length are 0 in this value, which means the default. The default depends on
    // the edition.
    let default = decoded(&["2", "--edition", "server"]);
    assert_eq!(default["server"]["foreground_units"], 36);
    assert!(default["client"].is_null());
    assert!(decoded(&["2", "--build", "22631"])["doubt"].is_null());
    assert!(decoded(&["2", "--build", "26100"])["doubt"].is_string());
}

/// Checks the values that are decoded from debugger output. PC-Tuning publishes this output for the default
/// value and for the value 0xffff3f91.
#[test]
fn debugger_output_is_decoded() {
    for (shown, ratio, units) in [("2:060c12", 3, 18), ("1:0c 18 24", 2, 24)] {
        let decoded = json(&[
            "--json",
            "tune",
            "explain",
            "Win32PrioritySeparation",
            "--kernel",
            shown,
        ]);
        assert_eq!(decoded["kernel"]["ratio"], ratio);
        assert_eq!(decoded["kernel"]["foreground_units"], units);
    }
    let other = laglab(&[
        "tune",
        "explain",
        "Win32PrioritySeparation",
        "--kernel",
        "2:010203",
    ]);
    assert_eq!(other.status.code(), Some(1));
}

#[test]
fn an_unknown_name_is_answered_with_similar_ones() {
    let output = laglab(&["tune", "explain", "GlobalTimerResolutionRequest"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("GlobalTimerResolutionRequests"), "{error}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_shared_name_explains_all_its_settings() {
    let explained = json(&[
        "--json",
        "tune",
        "explain",
        "requiresecuritysignature",
        "--build",
        "26100",
        "--edition",
        "server",
    ]);
    let defaults: Vec<_> = explained
        .as_array()
        .expect("a list")
        .iter()
        .map(|setting| {
            (
                setting["id"].as_str(),
                setting["defaults"][0]["value"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        defaults,
        [
            (Some("smb_srv_require"), Some("0")),
            (Some("smb_cli_require"), Some("1"))
        ]
    );
}

#[test]
fn a_value_that_is_not_allowed_is_refused_with_the_allowed_ones() {
    for (name, value, allowed) in [
        ("SystemResponsiveness", "badvalue", "0 to 100"),
        ("SystemResponsiveness", "101", "0 to 100"),
        ("Win32PrioritySeparation", "badvalue", "0 to 63"),
        ("MaxNumRssCpus", "many", "1 or more"),
    ] {
        let output = laglab(&["tune", "explain", name, value]);
        assert_eq!(output.status.code(), Some(2), "{name} {value}");
        assert!(output.stdout.is_empty(), "{name} {value}");
        let error = String::from_utf8_lossy(&output.stderr);
        let asked = format!("{name}={value}");
        assert!(error.contains(&asked) && error.contains(allowed), "{error}");
    }
}

#[test]
fn a_value_without_effect_is_reported() {
    let shown = text(&["tune", "explain", "SystemResponsiveness", "0"]);
    assert!(
        shown.contains("No effect here. Values below 10 act as 20"),
        "{shown}"
    );
    let shown = text(&[
        "tune",
        "explain",
        "GlobalTimerResolutionRequests",
        "1",
        "--build",
        "19045",
    ]);
    assert!(shown.contains("this build does not support it"), "{shown}");
}

#[test]
fn without_a_name_every_setting_is_listed() {
    let listed = json(&["--json", "tune", "explain"]);
    assert!(listed.as_array().expect("a list").len() > 120);
    let shown = text(&["tune", "explain"]);
    assert!(shown.contains("Receive side scaling") && shown.contains("*NumRssQueues"));
}

/// Compares the computed durations of Sleep(1) with the durations that PC-Tuning publishes: 1.496 ms, 15.62
/// ms and about 15.5 ms.
#[test]
fn sleeps_match_published_durations() {
    let takes = |args: &[&str]| {
        let answers = json(
            &[
                &[
                    "--json", "tune", "explain", "sleep", "--other", "0.5", "--global",
                ],
                args,
            ]
            .concat(),
        );
        answers[0]["sleep_ms"].as_f64().expect("a length")
    };
    assert_eq!(takes(&["--build", "22621"]), 1.5);
    assert_eq!(takes(&["--build", "22621", "--hidden"]), 15.625);
    assert_eq!(takes(&["--build", "22621", "--hidden", "--opted-out"]), 1.5);
    assert_eq!(takes(&["--build", "19044"]), 15.625);
}

/// Tests the backup server of a published case. It has 24 processors and two nodes, and CPUs 0, 2, 4 and 6
/// are busy.
#[test]
fn four_processors_have_both_explanations() {
    let server = [
        "--json",
        "tune",
        "explain",
        "rss",
        "--processors",
        "24",
        "--threads",
        "2",
        "--nodes",
        "2",
    ];
    let served = json(&[&server[..], &["--node", "0", "--build", "7601"]].concat());
    assert_eq!(served["processors"], serde_json::json!([0, 2, 4, 6]));
    let explains: Vec<(bool, &str)> = served["limits"]
        .as_array()
        .expect("limits")
        .iter()
        .filter(|limit| limit["explains"] == true)
        .map(|limit| {
            let documented = limit["documented"].as_bool().expect("yes or no");
            (documented, limit["says"].as_str().expect("text"))
        })
        .collect();
    let [(true, limit), (false, rounding)] = explains[..] else {
        panic!("{explains:?}")
    };
    assert!(limit.contains("MaxNumRssCpus is 4"), "{limit}");
    assert!(rounding.contains("only 4 of 6"), "{rounding}");
    assert!(rounding.contains("not documented"), "{rounding}");
    // For later builds of Windows, a limit of four processors is not documented.
    let later = json(&[&server[..], &["--node", "0", "--build", "17763"]].concat());
    assert_eq!(later["at_most"], 6);
    let text = text(&[&server[1..], &["--node", "0", "--build", "17763"]].concat());
    assert!(text.contains("at most 6 of 6"), "{text}");
    assert!(text.contains("perhaps only by 4"), "{text}");
    let plan = json(&[&server[..], &["--adapters", "0,0,0,1,1,1"]].concat());
    assert_eq!(plan[5]["processors"], serde_json::json!([20, 22]));
}

/// Checks a test vector from Microsoft's page "Verifying the RSS hash calculation".
#[test]
fn a_flow_is_hashed_and_mapped() {
    let served = json(&[
        "--json",
        "tune",
        "explain",
        "rss",
        "--processors",
        "8",
        "--flow",
        "66.9.149.187:2794,161.142.100.80:1766",
    ]);
    let flow = &served["flows"][0];
    assert_eq!(flow["hash"], 0x51cc_c178_u32);
    assert_eq!(flow["hash_of_addresses"], 0x323e_8fc2_u32);
    // The table has 128 entries, which are assigned to the 8 processors in turn. The last 7 bits of the hash
    // (0x78) select entry 120.
    assert_eq!(
        (&flow["entry"], &flow["processor"]),
        (&120.into(), &0.into())
    );
}

#[test]
fn settings_that_leave_no_processor_are_refused() {
    let output = laglab(&["tune", "explain", "rss", "--processors", "8", "--base", "9"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_pair_of_machines_signs_by_its_defaults() {
    let cases = json(&[
        "--json",
        "tune",
        "explain",
        "smb",
        "--client",
        "26100:pro",
        "--server",
        "17763:server",
    ]);
    let this = cases
        .as_array()
        .expect("four cases")
        .iter()
        .find(|case| case["is_this"] == true)
        .expect("a case");
    assert_eq!(
        (&this["signed"], &this["algorithm"]),
        (&true.into(), &"AES-128-CMAC".into())
    );
    assert_eq!(this["client_requires"], true);
}

/// The values of a QoS policy are documented as REG_SZ. For another type, the effect is not documented, so it
/// is doubtful.
#[test]
fn a_policy_of_another_type_is_doubtful() {
    let policies = json(&[
        "--json",
        "tune",
        "explain",
        "dscp",
        "--value",
        "DSCP Value=dword:46",
        "--domain",
    ]);
    assert_eq!(policies[0]["mark"], 46);
    assert_eq!(policies[0]["faults"], serde_json::json!([]));
    let doubts = policies[0]["doubts"].to_string();
    assert!(doubts.contains("documented as REG_SZ"), "{doubts}");
}

#[test]
fn policies_of_an_export_are_judged() {
    let folder = tempfile::tempdir().expect("a folder");
    let export = folder.path().join("qos.reg");
    let text = "Windows Registry Editor Version 5.00\r\n\r\n\
        [HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Microsoft\\Windows\\QoS\\Game]\r\n\
        \"Version\"=\"1.0\"\r\n\"Application Name\"=\"game.exe\"\r\n\"DSCP Value\"=\"46\"\r\n";
    std::fs::write(&export, text).expect("written");
    let path = export.to_str().expect("a path");
    let judged = |more: &[&str]| {
        let args = [
            "--json",
            "tune",
            "explain",
            "dscp",
            path,
            "--program",
            "game.exe",
            "--workgroup",
        ];
        json(&[&args, more].concat())[0].clone()
    };
    let client = judged(&["--edition", "pro"]);
    assert_eq!(
        (&client["name"], &client["mark"]),
        (&"Game".into(), &46.into())
    );
    let names_switch = |reasons: &serde_json::Value| reasons.to_string().contains("Do not use NLA");
    assert!(names_switch(&client["faults"]), "{client}");
    // Servers apply policies on all networks. If the edition is unknown, the reason is therefore only a
    // doubt.
    let unknown = judged(&[]);
    assert!(!names_switch(&unknown["faults"]), "{unknown}");
    assert!(names_switch(&unknown["doubts"]), "{unknown}");
    let server = judged(&["--edition", "server"]);
    assert!(!names_switch(&server), "{server}");
}
