use std::io::{Cursor, Write as _};

use ::regf::{DataType, HiveBuilder};
use registry::bcd;
use testdata::Rng;

use super::*;
use crate::machine::Edition;
use crate::placed_value::Place;

const PRIORITY: &str = r"HKLM\SYSTEM\CurrentControlSet\Control\PriorityControl";

/// Returns the findings of an input as text, one line each.
fn lines(input: &Input) -> Vec<String> {
    let values = input.found.iter();
    values
        .map(|values| match &values.value {
            Some(value) => format!("{} = {value}", values.place),
            None => format!("{} is deleted", values.place),
        })
        .collect()
}

fn one(name: &str, bytes: &[u8]) -> Input {
    read(name, bytes).unwrap().remove(0)
}

fn error(name: &str, bytes: &[u8]) -> String {
    read(name, bytes).unwrap_err().to_string()
}

/// Builds a hive with a library that is independent of the reader.
fn hive(numbers: &[(&str, &str, u32)], texts: &[(&str, &str, &str)]) -> Vec<u8> {
    let mut hive = HiveBuilder::new().unwrap();
    for (key, ..) in numbers {
        hive.create_key(key).unwrap();
    }
    for (key, ..) in texts {
        hive.create_key(key).unwrap();
    }
    for (key, name, number) in numbers {
        hive.add_value_dword(key, Some(name), *number).unwrap();
    }
    for (key, name, text) in texts {
        hive.add_value_string(key, Some(name), text).unwrap();
    }
    hive.to_bytes().unwrap()
}

/// Returns a SYSTEM hive with two control sets. The second is in use.
fn system() -> Vec<u8> {
    let class = r"ControlSet002\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}";
    hive(
        &[
            ("Select", "Current", 2),
            (
                r"ControlSet001\Control\PriorityControl",
                "Win32PrioritySeparation",
                0x26,
            ),
            (
                r"ControlSet002\Control\PriorityControl",
                "Win32PrioritySeparation",
                0x18,
            ),
        ],
        &[
            (&format!(r"{class}\0001"), "*RSS", "1"),
            (&format!(r"{class}\0002"), "*RSS", "0"),
            (
                r"ControlSet002\Control\ProductOptions",
                "ProductType",
                "LanmanNT",
            ),
            (
                r"ControlSet002\Control\ComputerName\ComputerName",
                "ComputerName",
                "DC1",
            ),
        ],
    )
}

#[test]
fn the_control_set_in_use_is_read() {
    let input = one("SYSTEM", &system());
    assert!(lines(&input).contains(&format!(r"{PRIORITY}\Win32PrioritySeparation = 0x18")));
    assert!(!lines(&input).iter().any(|line| line.ends_with("0x26")));
    assert_eq!(input.machine.name.as_deref(), Some("DC1"));
    assert_eq!(input.machine.edition, Some(Edition::DomainController));
    assert_eq!(input.complaints.count, 0);
}

#[test]
fn software_hives_are_identified_by_their_keys() {
    let version = r"Microsoft\Windows NT\CurrentVersion";
    let software = hive(
        &[(
            &format!(r"{version}\Multimedia\SystemProfile"),
            "SystemResponsiveness",
            0,
        )],
        &[
            (version, "CurrentBuildNumber", "22631"),
            (version, "EditionID", "Professional"),
        ],
    );
    let machine = one("SOFTWARE", &software).machine;
    assert_eq!(machine.build, Some(22631));
    assert_eq!(machine.edition, Some(Edition::Pro));
    let other = one("copy", &hive(&[("A", "b", 1)], &[]));
    assert_eq!(other.complaints.count, 1);
}

#[test]
fn a_bcd_store_is_read_like_bcdedit_output() {
    let default = "{01234567-89ab-cdef-0123-456789abcdef}";
    let mut store = HiveBuilder::new().unwrap();
    let element = |store: &mut HiveBuilder, object: &str, number: &str, kind, bytes: &[u8]| {
        let key = format!(r"Objects\{object}\Elements\{number}");
        store.create_key(&key).unwrap();
        store
            .add_value_with_type(&key, Some("Element"), bytes, kind)
            .unwrap();
    };
    let text: Vec<u8> = default
        .encode_utf16()
        .chain([0])
        .flat_map(u16::to_le_bytes)
        .collect();
    let binary = DataType::Binary;
    element(
        &mut store,
        bcd::BOOT_MANAGER,
        "23000003",
        DataType::String,
        &text,
    );
    element(&mut store, default, "260000a2", binary, &[1]);
    element(&mut store, default, "250000a6", binary, &2u64.to_le_bytes());
    element(&mut store, default, "11000001", binary, &[0; 32]);
    let input = one("BCD", &store.to_bytes().unwrap());
    let lines = lines(&input);
    assert!(
        lines.contains(&"bcd {default} useplatformclock = \"Yes\"".to_owned()),
        "{lines:?}"
    );
    assert!(
        lines.contains(&"bcd {default} tscsyncpolicy = \"Enhanced\"".to_owned()),
        "{lines:?}"
    );
}

/// Sets fields of a hive's base block and updates its checksum.
fn set(bytes: &mut [u8], fields: &[(usize, u32)]) {
    for (at, field) in fields {
        bytes[*at..at + 4].copy_from_slice(&field.to_le_bytes());
    }
    let words = bytes[..508].as_chunks::<4>().0.iter();
    let checksum = words.fold(0, |sum, word| sum ^ u32::from_le_bytes(*word));
    bytes[508..512].copy_from_slice(&checksum.to_le_bytes());
}

/// Returns a hive that lacks its last change, and the transaction log with this change.
fn copied_in_use(before: u32, after: u32) -> [Vec<u8>; 2] {
    let [mut hive, changed] = [before, after].map(|number| {
        let priority = r"ControlSet001\Control\PriorityControl";
        let values = [
            ("Select", "Current", 1),
            (priority, "Win32PrioritySeparation", number),
        ];
        hive(&values, &[])
    });
    assert_eq!(hive.len(), changed.len());
    set(&mut hive, &[(4, 11), (8, 10)]);
    let sectors = || (hive[4096..].chunks(512)).zip(changed[4096..].chunks(512));
    let mut bitmap = vec![0; sectors().count().div_ceil(8)];
    let mut pages: Vec<u8> = Vec::new();
    for (number, (old, new)) in sectors().enumerate() {
        if old != new {
            bitmap[number / 8] |= 1 << (number % 8);
            pages.extend(new);
        }
    }
    let mut log = hive[..512].to_vec();
    set(&mut log, &[(4, 5), (8, 5), (28, 1)]);
    log.extend(b"DIRT");
    log.extend(bitmap);
    log.resize(log.len().next_multiple_of(512), 0);
    log.extend(pages);
    [hive, log]
}

#[test]
fn a_hive_is_read_with_its_log() {
    let [hive, log] = copied_in_use(0x18, 0x26);
    let set_to = |input: &Input| {
        assert_eq!(input.complaints.count, 1);
        let what = input.complaints.first[0].what.clone();
        (lines(input).remove(0), what)
    };
    let expected = |number: &str| format!(r"{PRIORITY}\Win32PrioritySeparation = {number}");
    let (alone, what) = set_to(&one("SYSTEM", &hive));
    assert_eq!(alone, expected("0x18"));
    assert!(what.contains("lacks its last changes"), "{what}");

    let folder = std::env::temp_dir().join(format!("laglab-tune-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name);
    std::fs::write(path("SYSTEM"), &hive).unwrap();
    // The case of file names may differ.
    std::fs::write(path("system.log1"), &log).unwrap();
    std::fs::write(path("SYSTEM.LOG2"), b"").unwrap();
    let mut read = vec![
        read_files(&[path("SYSTEM")]).unwrap(),
        read_files(&[path("SYSTEM"), path("system.log1")]).unwrap(),
        read_files(&[&folder]).unwrap(),
    ];
    let alone = read_files(&[path("system.log1")]);
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(
        matches!(alone, Err(InputError::LogOfHive { .. })),
        "{alone:?}"
    );

    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, bytes) in [("config/SYSTEM.LOG1", &log), ("config/SYSTEM", &hive)] {
        zip.start_file(name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    let zip = zip.finish().unwrap().into_inner();
    read.push(super::read("config.zip", &zip).unwrap());
    for inputs in read {
        let [input] = inputs.as_slice() else {
            panic!("{inputs:?}");
        };
        let (found, what) = set_to(input);
        assert_eq!(found, expected("0x26"), "{}", input.name);
        assert!(what.contains("its last change was read"), "{what}");
    }
}

#[test]
fn a_damaged_hive_does_not_panic() {
    let whole = system();
    let mut rng = Rng(1);
    for _ in 0..3000 {
        let mut damaged = whole.clone();
        for _ in 0..=rng.below(4) {
            let place = rng.below(damaged.len());
            damaged[place] = rng.bits() as u8;
        }
        damaged.truncate(damaged.len() - rng.below(2) * rng.below(damaged.len()));
        let _ = read("copy", &damaged);
    }
}

#[test]
fn a_hive_that_is_cut_off_is_reported_and_read() {
    let mut hive = HiveBuilder::new().unwrap();
    hive.create_key("Select").unwrap();
    hive.create_key("Other").unwrap();
    hive.add_value_dword("Select", Some("Current"), 1).unwrap();
    let many = [0; 40_000];
    hive.add_value_binary("Other", Some("Many"), &many).unwrap();
    let whole = hive.to_bytes().unwrap();
    let cut = &whole[..whole.len() - 4096];
    let input = one("copy", cut);
    let first = &input.complaints.first[0].what;
    let expected = format!(
        "the file is cut off: {} of {} bytes",
        cut.len(),
        whole.len()
    );
    assert!(first.starts_with(&expected), "{first}");
    for (place, complaint) in input.complaints.first.iter().enumerate() {
        assert!(
            !input.complaints.first[..place].contains(complaint),
            "{complaint:?}"
        );
    }
}

#[test]
fn an_archive_with_too_many_files_is_refused() {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for number in 0..20_001 {
        zip.start_file(format!("{number}.txt"), options).unwrap();
    }
    let zip = zip.finish().unwrap().into_inner();
    let error = read("baseline.zip", &zip).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("more than 20000 files"), "{error}: {cause}");
}

#[test]
fn an_archive_with_two_files_of_one_name_is_refused() {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for name in ["a.reg", "b.reg"] {
        zip.start_file(name, options).unwrap();
    }
    // The writer refuses equal names, so the second name is replaced afterwards.
    let mut zip = zip.finish().unwrap().into_inner();
    for at in 0..zip.len() - 5 {
        if zip[at..].starts_with(b"b.reg") {
            zip[at] = b'a';
        }
    }
    let error = read("baseline.zip", &zip).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        cause.contains("two of its files are called \"a.reg\""),
        "{cause}"
    );
}

#[test]
fn archives_and_folders_are_read_file_by_file() {
    let reg =
        b"Windows Registry Editor Version 5.00\r\n\r\n[HKLM\\SOFTWARE\\A]\r\n\"b\"=dword:1\r\n";
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, bytes) in [
        (
            "GPOs/{1}/DomainSysvol/GPO/User/registry.pol",
            &b"PReg\x01\0\0\0"[..],
        ),
        ("Baseline/settings.reg", reg),
        ("Documentation/read me.docx", b"PK\x03\x04"),
    ] {
        zip.start_file(name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    let zip = zip.finish().unwrap().into_inner();

    let mut cabinet = cab::CabinetBuilder::new();
    let folder = cabinet.add_folder(cab::CompressionType::MsZip);
    folder.add_file("Baseline\\settings.reg");
    let mut writer = cabinet.build(Cursor::new(Vec::new())).unwrap();
    writer.next_file().unwrap().unwrap().write_all(reg).unwrap();
    let cabinet = writer.finish().unwrap().into_inner();

    let inputs = read("baseline.zip", &zip).unwrap();
    let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "baseline.zip/GPOs/{1}/DomainSysvol/GPO/User/registry.pol",
            "baseline.zip/Baseline/settings.reg"
        ]
    );
    assert_eq!(
        inputs[0].complaints.count, 0,
        "the folder tells the target of the policy"
    );
    let inputs = read("baseline.cab", &cabinet).unwrap();
    assert_eq!(lines(&inputs[0]), [r"HKLM\SOFTWARE\A\b = 0x1"]);
    assert_eq!(
        inputs[0].found[0].origin.to_string(),
        "baseline.cab/Baseline/settings.reg:4"
    );

    let mut rng = Rng(2);
    for whole in [&zip, &cabinet] {
        for _ in 0..500 {
            let mut damaged = whole.clone();
            let place = rng.below(damaged.len());
            damaged[place] = rng.bits() as u8;
            let _ = read("damaged", &damaged);
        }
    }
}

#[test]
fn a_file_that_does_not_match_its_name_is_an_error() {
    assert_eq!(
        error("settings.reg", &system()),
        "cannot read settings.reg: the content does not match the file name: expected a .reg export, found a \
         registry hive; rename the file or give the right one"
    );
    assert_eq!(
        error("SYSTEM", b"MZ\x90\0\x03\0\0\0\x04\0"),
        "cannot read SYSTEM: the content does not match the file name: expected a registry hive, found data \
         starting with 4d 5a 90 00 03 00 00 00; rename the file or give the right one"
    );
    assert!(error("notes.txt", b"Dear diary").contains("text starting with \"Dear diary\""));
    assert!(error("empty.pol", b"").contains("found an empty file"));
}

#[test]
fn a_list_of_power_schemes_is_answered_with_the_right_command() {
    let french = testdata::bytes("settings/powercfg_list_french.txt");
    let english = "Existing Power Schemes (* Active)\r\n-----------------------------------\r\n\
        Power Scheme GUID: 381b4222-f694-41f0-9685-ff5bb260df2e  (Balanced) *\r\n";
    for text in [&french[..], english.as_bytes()] {
        assert_eq!(
            error("power.txt", text),
            "cannot read power.txt: it is a list of power schemes without their settings; give the output of \
             `powercfg /qh`"
        );
    }
}

/// The namespaces come from published reports.
#[test]
fn other_reports_of_powercfg_are_named() {
    for (namespace, name) in [
        (
            "sleepstudy/2012",
            "a sleep-study report (powercfg /sleepstudy)",
        ),
        ("battery/2012", "a battery report (powercfg /batteryreport)"),
    ] {
        let text = format!(
            "<!DOCTYPE html>\n<!-- saved from url=(0016)http://localhost -->\n<html \
             xmlns=\"http://www.w3.org/1999/xhtml\" xmlns:slp=\"http://schemas.microsoft.com/{namespace}\"><head>\
             <title>System Power Report</title></head></html>"
        );
        let error = error("report.html", text.as_bytes());
        assert!(
            error.starts_with(&format!("cannot read report.html: it is {name}")),
            "{error}"
        );
        assert!(
            error.ends_with("give the report of `powercfg /energy`"),
            "{error}"
        );
    }
}

#[test]
fn an_export_in_utf16_is_read_like_utf8() {
    let text = format!(
        "Windows Registry Editor Version 5.00\r\n\r\n[{}]\r\n\"Win32PrioritySeparation\"=dword:00000026\r\n",
        PRIORITY.replace("HKLM", "HKEY_LOCAL_MACHINE")
    );
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let expected = [format!(r"{PRIORITY}\Win32PrioritySeparation = 0x26")];
    assert_eq!(lines(&one("a.reg", text.as_bytes())), expected);
    assert_eq!(lines(&one("a.reg", &utf16)), expected);
    assert_eq!(
        lines(&one("a.reg", &[b"\xFF\xFE", &utf16[..]].concat())),
        expected
    );
    let place = &one("a.reg", &utf16).found[0].place;
    assert!(matches!(place, Place::Registry { name, .. } if name == "Win32PrioritySeparation"));
}
