//! Tests that names in a trace cannot control a terminal, another program, a page or a spreadsheet.

use crate::program;

use std::collections::BTreeSet;
use std::fs;

use tempfile::TempDir;
use testdata::HOSTILE_NAMES;

/// Programs of the scenario `healthy`.
const PROGRAMS: &[&str] = &[
    "dwm.exe",
    "audiodg.exe",
    "explorer.exe",
    "firefox.exe",
    "MsMpEng.exe",
];

/// A trace whose programs have hostile names.
struct Hostile {
    folder: TempDir,
    trace: String,
}

/// Simulates traces. Each trace has some of the hostile names, and together they have all of them.
fn traces() -> Vec<Hostile> {
    let healthy = program::text(&["simulate", "healthy", "--show"]);
    let of = |names: &'static [&'static str]| {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let mut text = healthy.clone();
        for (program, name) in PROGRAMS.iter().zip(names) {
            let quoted = toml::Value::from(*name).to_string();
            let replaced = text.replace(&format!("\"{program}\""), &quoted);
            assert_ne!(replaced, text, "{program}");
            text = replaced;
        }
        fs::write(path("s.toml"), text).unwrap();
        let trace = path("t.etl");
        program::text(&[
            "simulate",
            &path("s.toml"),
            "-o",
            &trace,
            "--duration",
            "1s",
        ]);
        Hostile { folder, trace }
    };
    HOSTILE_NAMES.chunks(PROGRAMS.len()).map(of).collect()
}

/// Returns the characters of a text, except line breaks, that `wording` would escape.
fn harmful(text: &str) -> BTreeSet<char> {
    let lines = text.replace(['\n', '\r', '\t'], "");
    lines
        .chars()
        .filter(|c| wording::Printable(c.encode_utf8(&mut [0; 4])).to_string() != c.to_string())
        .collect()
}

fn check(args: &[&str]) -> String {
    let output = program::laglab(args);
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8(bytes.clone()).unwrap());
    assert!(
        output.status.code().is_some_and(|code| code < 2),
        "{args:?}: {err}"
    );
    for text in [&out, &err] {
        assert_eq!(harmful(text), BTreeSet::new(), "{args:?}");
        // A sentence marks its names with U+FDD0 and U+FDD1 until they are formatted.
        assert!(
            !text.contains("fdd0") && !text.contains("fdd1"),
            "{args:?}: {text}"
        );
    }
    out
}

const REPORTS: &[&[&str]] = &[
    &["process"],
    &["process", "--tree"],
    &["cswitch"],
    &["cpudisk"],
    &["profile"],
    &["stack"],
    &["diskio"],
    &["hardfault"],
    &["focuschange"],
    &["dpcisr", "--summary"],
    &["readythread"],
    &["marks"],
];

#[test]
fn no_command_passes_a_harmful_character() {
    for Hostile { trace, .. } in traces() {
        let trace = trace.as_str();
        for command in ["info", "stats", "explain"] {
            check(&[command, trace]);
            if command == "explain" {
                check(&[command, trace, "--evidence"]);
            }
            let json: serde_json::Value =
                serde_json::from_str(&check(&[command, trace, "--json"])).unwrap();
            assert!(!json.is_null());
        }
        for report in REPORTS {
            for format in ["text", "json", "csv"] {
                check(&[*report, &["--format", format, trace]].concat());
            }
        }
        for format in ["text", "json", "csv"] {
            check(&["events", trace, "--format", format, "--provider", "Process"]);
        }
    }
}

/// Checks that JSON contains the exact names, and that no cell of CSV is a formula.
#[cfg(feature = "sql")]
#[test]
fn programs_read_the_names_without_harm() {
    let mut found = BTreeSet::new();
    for Hostile { trace, .. } in traces() {
        let query = "SELECT image_name FROM processes";
        check(&["sql", &trace, query]);
        for row in check(&["sql", &trace, query, "--format", "jsonl"]).lines() {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            found.extend(row["image_name"].as_str().map(str::to_owned));
        }
        let cells = check(&["sql", &trace, query, "--format", "csv"]);
        let mut cells = csv::Reader::from_reader(cells.as_bytes());
        for cell in cells.records().map(|record| record.unwrap()[0].to_owned()) {
            assert!(
                !cell.starts_with(['=', '+', '-', '@', '\t', '\r']),
                "{cell}"
            );
        }
    }
    for name in HOSTILE_NAMES {
        assert!(found.contains(*name), "{name:?}: {found:?}");
    }
}

/// Returns the length-delimited fields of a Protocol Buffers message: the number and the bytes of each field.
#[cfg(feature = "export")]
fn fields(mut message: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(message: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = message.split_off_first().unwrap();
            value |= u64::from(byte & 0x7F) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return value;
            }
        }
    }
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        match tag & 7 {
            0 => {
                varint(&mut message);
            }
            1 => message = &message[8..],
            2 => {
                let length = varint(&mut message) as usize;
                let (value, rest) = message.split_at(length);
                fields.push((tag >> 3, value));
                message = rest;
            }
            5 => message = &message[4..],
            other => panic!("wire type {other}"),
        }
    }
    fields
}

/// Follows a path of field numbers through nested messages. Returns the bytes of the fields at the end of the
/// path.
#[cfg(feature = "export")]
fn below<'m>(message: &'m [u8], path: &[u64]) -> Vec<&'m [u8]> {
    path.iter().fold(vec![message], |messages, number| {
        let all = messages.into_iter().flat_map(fields);
        all.filter(|(found, _)| found == number)
            .map(|(_, value)| value)
            .collect()
    })
}

/// Checks that exports contain the exact names, because exports are data for programs.
#[cfg(feature = "export")]
#[test]
fn exports_keep_the_names() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    let [mut firefox, mut perfetto, mut tables] = [(); 3].map(|()| BTreeSet::new());
    for Hostile { folder, trace } in traces() {
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let export = |to: &str| {
            check(&["export", &trace, "--to", &path(to)]);
        };
        export("p.json");
        let text = fs::read_to_string(path("p.json")).unwrap();
        assert_eq!(harmful(&text), BTreeSet::new());
        let profile: serde_json::Value = serde_json::from_str(&text).unwrap();
        let threads = profile["threads"].as_array().unwrap().iter();
        firefox.extend(threads.map(|thread| thread["processName"].as_str().unwrap().to_owned()));

        export("p.pftrace");
        let written = fs::read(path("p.pftrace")).unwrap();
        // The path of fields is Trace.packet, TracePacket.process_tree, ProcessTree.processes,
        // Process.cmdline.
        for name in below(&written, &[1, 2, 1, 3]) {
            perfetto.insert(String::from_utf8(name.to_vec()).unwrap());
        }

        export("tables");
        let file = fs::File::open(path("tables/processes/trace=t/part-0.parquet")).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let mut columns = row.get_column_iter();
            let name = columns.find(|(column, _)| *column == "image_name");
            if let Some((_, Field::Str(name))) = name {
                tables.insert(name.clone());
            }
        }
    }
    for name in HOSTILE_NAMES {
        for (format, found) in [
            ("Firefox", &firefox),
            ("Perfetto", &perfetto),
            ("Parquet", &tables),
        ] {
            assert!(found.contains(*name), "{format}: {name:?}: {found:?}");
        }
    }
}

/// Checks that an export stays in its folder, although the name of the trace becomes the name of a folder.
#[cfg(feature = "export")]
#[test]
fn exports_stay_in_their_folder() {
    let Hostile { folder, trace } = traces().remove(0);
    let to = folder.path().join("a").join("b");
    for name in HOSTILE_NAMES {
        let (to, name) = (to.to_str().unwrap(), format!("--name={name}"));
        check(&["export", &trace, "--to", to, "--tables", "processes", &name]);
    }
    let names = |path: &std::path::Path| -> BTreeSet<String> {
        let entries = fs::read_dir(path).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    };
    let only = |name: &str| BTreeSet::from([name.to_owned()]);
    assert_eq!(names(&folder.path().join("a")), only("b"));
    assert_eq!(names(&to), only("processes"));
    let partitions = names(&to.join("processes"));
    assert_eq!(partitions.len(), HOSTILE_NAMES.len());
    for partition in partitions {
        let is_safe = |c: char| c.is_ascii_alphanumeric() || "=_-.%".contains(c);
        assert!(partition.chars().all(is_safe), "{partition}");
        let files = names(&to.join("processes").join(&partition));
        assert_eq!(files, only("part-0.parquet"));
    }
}

#[test]
fn no_page_passes_a_harmful_character() {
    for Hostile { folder, trace, .. } in traces() {
        let page = folder.path().join("r.html");
        check(&["report", &trace, "-o", page.to_str().unwrap()]);
        let page = fs::read_to_string(page).unwrap();
        assert_eq!(harmful(&page), BTreeSet::new());
        assert!(!page.contains("<img"));
    }
}
