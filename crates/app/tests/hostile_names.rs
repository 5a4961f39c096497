//! Tests that names in a trace cannot control a terminal, another program, a page or a spreadsheet.

use crate::program;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

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

/// One of the hostile names. Its line break could forge a line, such as a verdict.
const TWO_LINES: &str = "two\r\nlines\t.exe";

/// Returns the characters of a text, except line breaks and tabs, that `wording` would escape. A line break is returned if
/// it comes from [`TWO_LINES`].
fn harmful(text: &str) -> BTreeSet<char> {
    let text = text.replace("\r\n", "\n");
    let is_forged = |line: &str| line.starts_with("lines\t") || line.starts_with("lines\\t");
    let forged = text.lines().any(is_forged).then_some('\n');
    let others = text.chars().filter(|c| {
        !matches!(c, '\n' | '\t')
            && wording::Printable(c.encode_utf8(&mut [0; 4])).to_string() != c.to_string()
    });
    others.chain(forged).collect()
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

/// Arguments of each command, separated by blanks. Words in braces stand for files and names that are hostile.
const COMMANDS: &[(&str, &[&str])] = &[
    ("explain", &["{trace} --all"]),
    ("report", &["{trace} -o {folder}/every.html"]),
    // Both run until they are stopped. Other tests have their answers.
    ("open", &[]),
    ("mcp", &[]),
    ("info", &["{trace}"]),
    ("stats", &["{trace}"]),
    ("events", &["{trace}"]),
    ("sql", &["{trace} {query}", "{trace} {name}"]),
    (
        "trim",
        &[
            "{trace} -o {folder}/every.etl",
            "{trace} -o {folder}/every.etl --process {name}",
        ],
    ),
    ("measure", &[""]),
    (
        "measure sleep",
        &[
            "--count 1 -o {dir}/{name}/m.parquet",
            "--count 2 -o {dir}/m.html",
        ],
    ),
    (
        "measure files",
        &["{dir} --rounds 1 --method {name}", "{dir} --rounds 1"],
    ),
    (
        "measure net",
        &[
            "--loopback --interface {name}",
            "--loopback --rate 1k --runs 1 --run-for 50ms",
        ],
    ),
    ("prove", &[""]),
    (
        "prove compare",
        &[
            "{csv} --value frame_ms --run run --by name",
            "{csv} --value frame_ms --by name -o {folder}/compare.html",
            "{csv} --value frame_ms --by name --before {name} --after x",
            "{csv} --value {name}",
            "{csv} --value {column} -- {csv}",
            "{dir} --value x",
            "--metric ready:{name} {trace} -- {other}",
        ],
    ),
    (
        "prove history",
        &[
            "{csv} --value frame_ms --run run --by name",
            "{csv} --value {column} --run run",
            "{csv} --value {name}",
        ],
    ),
    (
        "prove plan",
        &[
            "{csv} --value frame_ms --run run --by name",
            "{csv} --value {column} --run run --by {name}",
        ],
    ),
    (
        "prove diff",
        &[
            "{trace} -o {folder}/diff.html -- {other}",
            "{trace} --all --thread {name} -- {other}",
        ],
    ),
    ("prove verdict", &["{plan}", "{dir}"]),
    ("prove what-if", &["{trace}", "{trace} --change rank=off"]),
    ("tune", &[""]),
    ("tune explain", &["{name}"]),
    ("tune explain sleep", &["--sleep 1"]),
    ("tune explain rss", &["--processors 4"]),
    ("tune explain smb", &["--client 22631 --server 22631"]),
    ("tune explain dscp", &["{reg}"]),
    ("tune supports", &["{name} --kernel {csv}"]),
    ("tune audit", &["{reg}", "{dir}"]),
    (
        "tune plan",
        &[
            "{name}=1 --output {folder}/new --from {reg}",
            "Win32PrioritySeparation=0x28 --output {dir}/new --from {reg}",
        ],
    ),
    ("tune apply", &["{plan}"]),
    ("tune diff", &["{reg} {reg}"]),
    (
        "tune bisect",
        &[
            "--measure true {reg}",
            // The shell ends before it would print the name itself.
            "--measure exit&&{name} --log {dir}/log {reg}",
        ],
    ),
    ("tune dfsn", &[""]),
    (
        "tune dfsn rewrite",
        &["{reg} --map {name}=a.b", "{reg} --suffix {name}"],
    ),
    ("tune dfsn runbook", &["--old {name} --new b {name}"]),
    (
        "tune dfsn gate",
        &["--namespace {name} --old a --new b new-known {csv}"],
    ),
    (
        "tune replica",
        &[
            "{csv} --volume D: --rtt 2ms",
            "{trace} --volume D: --rtt 2ms",
        ],
    ),
    ("tune adapters", &["", "{name}"]),
    ("record", &["--for {name}", "--for dpc --dry-run", "--list"]),
    ("record check", &["{reg}", "{csv}"]),
    ("record input", &["{name}"]),
    ("record now", &["{name}"]),
    ("export", &["{trace} -o {folder}/every.json"]),
    ("simulate", &["{scenario} --show", "{csv}", "{name}"]),
    ("demo", &["{scenario}", "{name}"]),
    ("dpcisr", &["{trace}"]),
    ("cswitch", &["{trace}"]),
    ("readythread", &["{trace}"]),
    ("cpudisk", &["{trace}"]),
    ("profile", &["{trace}"]),
    ("stack", &["{trace}"]),
    ("diskio", &["{trace}"]),
    ("hardfault", &["{trace}"]),
    ("focuschange", &["{trace}"]),
    ("marks", &["{trace}"]),
    ("process", &["{trace}"]),
    ("cache", &["", "{name}"]),
    ("completions", &["bash", "{name}"]),
];

/// Returns the commands that the help of a command lists, and those below them.
fn commands_below(command: &str) -> BTreeSet<String> {
    let mut args: Vec<&str> = command.split_whitespace().collect();
    args.push("--help");
    let help = program::text(&args);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            // The lines of a description are further to the right.
            let name = line.strip_prefix("  ")?.split(' ').next()?;
            (!name.is_empty() && name != "help").then_some(name)
        });
    let mut all = BTreeSet::new();
    for name in names {
        let name = format!("{command} {name}").trim().to_owned();
        all.extend(commands_below(&name));
        all.insert(name);
    }
    all
}

/// Returns a name with harmful characters and a line break.
fn both_kinds() -> String {
    assert!(HOSTILE_NAMES.contains(&TWO_LINES));
    format!("{}{TWO_LINES}", HOSTILE_NAMES[2])
}

/// Measurements whose runs, things and column have hostile names.
fn table(column: &str) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    table
        .write_record(["frame_ms", "run", "name", column])
        .unwrap();
    for run in 0..12 {
        for (name, side) in [(HOSTILE_NAMES[0], "1"), (TWO_LINES, "2")] {
            let (value, run) = (format!("{side}{run}"), format!("{}{run}", both_kinds()));
            table.write_record([&value, &run, name, &value]).unwrap();
        }
    }
    String::from_utf8(table.into_inner().unwrap()).unwrap()
}

/// Registry values with hostile names and texts.
fn registry() -> String {
    let values = HOSTILE_NAMES
        .iter()
        .filter(|name| !name.contains(['\r', '\n', '"', '\\']));
    let values = values.map(|name| format!("\"{name}\"=\"{name}\"\r\n"));
    format!(
        "Windows Registry Editor Version 5.00\r\n\r\n\
         [HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Control\\PriorityControl]\r\n\
         \"Win32PrioritySeparation\"=dword:2\r\n{}",
        values.collect::<String>()
    )
}

/// A plan of `laglab tune plan` whose texts are hostile.
fn plan() -> String {
    let name = toml::Value::from(both_kinds()).to_string();
    format!(
        "version = 1\nmargin = 0.02\n\
         [[change]]\nsetting = {name}\nplace = {name}\nfrom = {name}\nto = {name}\ntakes_effect = []\n\
         [[recording]]\ntimes = \"ready\"\nrow = {name}\ntraces = 3\nseconds = 30.0\nkit = {name}\n\
         before = {name}\nafter = {name}\n\
         [[recording.reasons]]\nsetting = {name}\nwhy = {name}\nsource = {name}\n"
    )
}

/// Runs a command in a folder. Its arguments have words in braces, and `words` has the values of these words.
fn check_filled(folder: &Path, command: &str, args: &str, words: &[(&str, &str)]) {
    let fill = |word: &str| {
        (words.iter()).fold(word.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        })
    };
    let args: Vec<String> = command
        .split(' ')
        .chain(args.split_whitespace())
        .map(fill)
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = program::laglab_in(folder, &args);
    // Some commands refuse these names. An error is harmless, too.
    assert!(
        output.status.code().is_some_and(|code| code <= 2),
        "{args:?}: {output:?}"
    );
    for text in [output.stdout, output.stderr] {
        let text = String::from_utf8(text).unwrap();
        assert_eq!(harmful(&text), BTreeSet::new(), "{args:?}: {text}");
        assert!(!text.contains("panicked"), "{args:?}: {text}");
    }
}

/// Runs each command of the program with hostile traces, files and names. The program lists its commands itself, so a
/// new command needs arguments here.
#[test]
fn no_command_of_the_help_passes_a_harmful_character() {
    let known: BTreeSet<&str> = COMMANDS.iter().map(|(command, _)| *command).collect();
    let found = commands_below("");
    let missing: Vec<&String> = found
        .iter()
        .filter(|it| !known.contains(it.as_str()))
        .collect();
    assert!(
        missing.is_empty() && found.len() > 30,
        "{missing:?} of {found:?}"
    );

    let Hostile { folder, trace } = traces().remove(0);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let column = "f\u{202e}\u{9b}\u{1b}[2J\r\nlines\t_ms";
    let dir = path("a\u{202e}\u{9b}b");
    fs::create_dir_all(format!("{dir}/plan")).unwrap();
    fs::write(format!("{dir}/x.csv"), table(column)).unwrap();
    fs::write(format!("{dir}/x.reg"), registry()).unwrap();
    fs::write(format!("{dir}/plan/measure.toml"), plan()).unwrap();
    let other = path("other.etl");
    program::text(&["simulate", "healthy", "-o", &other, "--duration", "1s"]);
    let (csv, reg) = (format!("{dir}/x.csv"), format!("{dir}/x.reg"));
    let (plan, scenario, with_slash) = (format!("{dir}/plan"), path("s.toml"), path(""));
    let words = [
        ("{trace}", trace.as_str()),
        ("{other}", &other),
        ("{folder}", &with_slash),
        ("{dir}", &dir),
        ("{csv}", &csv),
        ("{reg}", &reg),
        ("{plan}", &plan),
        ("{scenario}", &scenario),
        ("{column}", column),
        ("{query}", "SELECT image_name FROM processes"),
        ("{name}", HOSTILE_NAMES[0]),
    ];
    for (command, each) in COMMANDS
        .iter()
        .filter(|(command, _)| found.contains(*command))
    {
        for args in *each {
            check_filled(folder.path(), command, args, &words);
        }
    }
    // The page of `prove diff` needs the script that `cargo xtask page` makes; the browser tests check this page.
    for page in ["every.html", "compare.html"] {
        let page = fs::read_to_string(path(page)).unwrap();
        assert_eq!(harmful(&page), BTreeSet::new());
        assert!(!page.contains("<img"));
    }
}

/// Returns the first 15 bytes of a name: Linux keeps no more of the name of a thread.
fn of_thread(name: &str) -> &[u8] {
    &name.as_bytes()[..name.len().min(15)]
}

/// Returns a copy of a record with other bytes at some offsets.
fn changed(record: &[u8], changes: &[(usize, &[u8])]) -> Vec<u8> {
    let mut record = record.to_vec();
    for (at, bytes) in changes {
        record[*at..*at + bytes.len()].copy_from_slice(bytes);
    }
    record
}

/// Returns a recording of Linux whose processes have the hostile names. Each process becomes ready, gets CPU 0 and waits.
/// Every second process has a record of its name (PERF_RECORD_COMM). Only switches and wakes name the others.
fn recording_of_linux() -> Vec<u8> {
    let mut file = testdata::bytes("linux/s02_open_at_the_ends.data");
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let (start, size) = (number(40), number(48));
    let places = 16 * number(72).count_ones() as usize;
    let (old, after) = file[start..].split_at(size);
    let (old, places) = (old.to_vec(), after[..places].to_vec());
    let mut models = Vec::new();
    let mut rest = &old[..];
    while !rest.is_empty() {
        let size = usize::from(rest[6]) | usize::from(rest[7]) << 8;
        let (record, after) = rest.split_at(size);
        models.push(record);
        rest = after;
    }
    let model = |kind: u8, size: usize| {
        let mut models = models.iter();
        let found = models.find(|it| it[0] == kind && it.len() == size);
        *found.unwrap()
    };
    let (comm, switch, waking) = (model(3, 56), model(9, 128), model(9, 104));
    let nothing = [0_u8; 8];
    let idle = b"swapper/0\0\0\0\0\0\0\0";
    let mut records = Vec::new();
    for (index, name) in (0_u32..).zip(HOSTILE_NAMES) {
        let mut text = [0_u8; 16];
        text[..of_thread(name).len()].copy_from_slice(of_thread(name));
        let id = (1001 + index).to_le_bytes();
        let ids = [id, id].concat();
        let time = |microseconds: u64| {
            let since_start = u64::from(index) * 1_000_000 + microseconds * 1_000;
            (1_000_000_000_000 + since_start).to_le_bytes()
        };
        if index % 2 == 0 {
            // The name of the model has 8 bytes. The thread, the time, the CPU and the event follow it.
            let end = changed(&comm[24..], &[(0, &ids)]);
            let record = [&comm[..8], &ids, &text, &end].concat();
            let size = u16::try_from(record.len()).unwrap();
            records.extend(changed(&record, &[(6, &size.to_le_bytes())]));
        }
        // Offsets of samples: 24 ids, 32 time. Offsets of both tracepoints: 64 running thread, 68 name, 84 thread.
        let wake: [(usize, &[u8]); 5] = [
            (24, &nothing),
            (32, &time(0)),
            (64, &nothing[..4]),
            (68, &text),
            (84, &id),
        ];
        records.extend(changed(waking, &wake));
        // Further offsets of switches: 92 state, 100 name of the next thread, 116 next thread.
        let switch_in: [(usize, &[u8]); 8] = [
            (24, &nothing),
            (32, &time(100)),
            (64, &nothing[..4]),
            (68, idle),
            (84, &nothing[..4]),
            (92, &nothing),
            (100, &text),
            (116, &id),
        ];
        records.extend(changed(switch, &switch_in));
        let switch_out: [(usize, &[u8]); 8] = [
            (24, &ids),
            (32, &time(500)),
            (64, &id),
            (68, &text),
            (84, &id),
            (92, &1_u64.to_le_bytes()),
            (100, idle),
            (116, &nothing[..4]),
        ];
        records.extend(changed(switch, &switch_out));
    }
    // The new records are at the end of the file. The places of the other sections follow them.
    let start = file.len() as u64;
    file[40..48].copy_from_slice(&start.to_le_bytes());
    file[48..56].copy_from_slice(&(records.len() as u64).to_le_bytes());
    file.extend(records);
    file.extend(places);
    file
}

/// Runs each command that reads a trace with a recording of Linux.
#[test]
fn no_command_passes_a_harmful_character_of_a_recording_of_linux() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let trace = path("t.data");
    fs::write(&trace, recording_of_linux()).unwrap();
    for command in ["process", "cswitch"] {
        let text = check(&[command, &trace]);
        for name in HOSTILE_NAMES {
            let name = String::from_utf8_lossy(of_thread(name));
            let shown = wording::Printable(&name).to_string();
            assert!(text.contains(&shown), "{command}: {shown} is not in {text}");
        }
    }
    let other = testdata::path("linux/s02_open_at_the_ends.data");
    let words = [
        ("{trace}", trace.as_str()),
        ("{other}", other.to_str().unwrap()),
        ("{folder}", &path("")),
        ("{query}", "SELECT image_name FROM processes"),
        ("{name}", HOSTILE_NAMES[0]),
    ];
    let found = commands_below("");
    for (command, each) in COMMANDS
        .iter()
        .filter(|(command, _)| found.contains(*command))
    {
        for args in each.iter().filter(|args| args.contains("{trace}")) {
            check_filled(folder.path(), command, args, &words);
        }
    }
    for report in REPORTS {
        for format in ["text", "json", "csv"] {
            check_filled(
                folder.path(),
                &report.join(" "),
                &format!("--format {format} {{trace}}"),
                &words,
            );
        }
    }
    let page = fs::read_to_string(path("every.html")).unwrap();
    assert_eq!(harmful(&page), BTreeSet::new());
    assert!(!page.contains("<img"));
}

/// Checks that each answer of `laglab prove` shows the line breaks in names as escapes.
#[test]
fn line_breaks_in_names_are_shown_as_escapes() {
    let folder = TempDir::new().unwrap();
    let csv = folder.path().join("x.csv");
    fs::write(&csv, table("other_ms")).unwrap();
    for command in ["compare", "plan", "history"] {
        let file = csv.to_str().unwrap();
        let columns = ["--value", "frame_ms", "--run", "run", "--by", "name"];
        let text = check(&[&["prove", command, file], &columns[..]].concat());
        assert!(text.contains(r"two\r\nlines\t.exe"), "{command}: {text}");
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
            check(&["export", &trace, "-o", &path(to)]);
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
        check(&["export", &trace, "-o", to, "--tables", "processes", &name]);
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
