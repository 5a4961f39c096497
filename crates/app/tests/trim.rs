//! `laglab trim`: a part of a trace is a trace, and has just what it should of the original.

mod program;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::Path;
use std::sync::LazyLock;

use etl::write::{KernelEvent, Payload, ProviderEvent, Session, Writer};
use etl::{Descriptor, Guid, Trace, mode};
use events::schema::Source;
use events::{Decoder, Value};
use tempfile::TempDir;

/// One event: when, where, and its bytes.
type Read = (i64, u16, Vec<u8>);

/// All events but the logs' headers.
fn events(paths: &[&Path]) -> Vec<Read> {
    let paths: Vec<_> = paths.iter().map(|path| path.to_path_buf()).collect();
    let trace = etl::open(&paths).unwrap();
    let mut walk = trace.events();
    let mut events = Vec::new();
    while let Some(event) = walk.next() {
        if event.hook() != Some(0) {
            events.push((event.time_ns(), event.cpu(), event.record().to_vec()));
        }
    }
    assert!(walk.damage().is_empty());
    events
}

fn trim(inputs: &[&str], folder: &TempDir, more: &[&str]) -> std::path::PathBuf {
    let out = folder.path().join("out.etl");
    let out_text = out.to_str().unwrap();
    let args = [&["trim"], inputs, &["-o", out_text, "--json"], more].concat();
    let report = program::json(&args);
    let size = std::fs::metadata(&out).unwrap().len();
    assert_eq!(report["bytes"], size, "{args:?}");
    assert_eq!(report["out_of_order"], 0, "{args:?}");
    out
}

#[test]
fn a_range_has_all_events_of_the_range_and_times_stay_what_they_were() {
    let folder = tempfile::tempdir().unwrap();
    for (name, from, to) in [
        ("filtrace__etw.etl", 500, 1_000),
        ("gpuvis__wintracecmd.etl", 1_000, 1_100),
        ("perfview__net.4.5.2.x64.etl", 700, 1_900),
        ("perfview__net.4.5.x86-win7.etl", 0, 500),
        ("s4__WindowsUpdate.20251008.etl", 0, 3_600_000),
        ("findneedle__wppemitter-nonselfdesc.etl", 0, 10_000),
    ] {
        let range = [&format!("{from}ms"), &format!("{to}ms")];
        let out = trim(&[name], &folder, &["--from", range[0], "--to", range[1]]);
        let original = events(&[&testdata::path("etl").join(name)]);
        let part = events(&[&out]);
        let inside = |(time, _, _): &&Read| (from * 1_000_000..=to * 1_000_000).contains(time);
        let expected: Vec<_> = original.iter().filter(inside).collect();
        let found: Vec<_> = part.iter().filter(inside).collect();
        assert!(!expected.is_empty(), "{name}");
        assert!(
            expected == found,
            "{name}: {} events, {}",
            expected.len(),
            found.len()
        );
        // What is outside was there, in the same order.
        let mut rest = original.iter();
        for event in &part {
            assert!(rest.any(|e| e == event), "{name}: {} ns", event.0);
        }
        let path = out.to_str().unwrap();
        for command in ["info", "stats", "explain"] {
            program::json(&[command, "--json", path]);
        }
        let stats = program::json(&["stats", "--json", path]);
        assert_eq!(stats["damage"]["faults"], serde_json::json!([]), "{name}");
    }
}

#[test]
fn a_part_keeps_who_recorded_what_was_lost_and_names() {
    let folder = tempfile::tempdir().unwrap();
    let name = "perfview__net.4.5.2.x64.etl";
    let out = trim(&[name], &folder, &["--from", "1s", "--to", "1.5s"]);
    let original = etl::open(&[testdata::path("etl").join(name)]).unwrap();
    let part = etl::open(std::slice::from_ref(&out)).unwrap();
    let (was, is) = (original.header().unwrap(), part.header().unwrap());
    assert_eq!((is.start, is.raw_start), (was.start, was.raw_start));
    assert_eq!((is.boot, is.os_build), (was.boot, was.os_build));
    assert_eq!(is.perf_frequency, was.perf_frequency);
    assert_eq!(
        (is.processors, is.events_lost),
        (was.processors, was.events_lost)
    );
    assert_eq!(is.end, Some(was.start + 15_000_000));
    assert_eq!(is.log_file_mode & 0x1_0000, 0x1_0000);
    // Events are named as before: their processes began before the part, their descriptions and
    // rundowns came after it.
    let range = ["--from", "1s", "--to", "1.5s"];
    let all = |path: &str| program::json_lines(&[&["events", "--json", path], &range[..]].concat());
    assert!(all(name) == all(out.to_str().unwrap()));
}

#[test]
fn several_files_of_one_system_become_one() {
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "perfview__diaghub__diaghub.kernel.1.etl",
        "perfview__diaghub__diaghub.user_injected.1.etl",
    ];
    let paths = names.map(|name| testdata::path("etl").join(name));
    let out = trim(&names, &folder, &[]);
    let [a, b] = &paths;
    let mut expected = events(&[a, b]);
    let mut found = events(&[&out]);
    // Events of one time are in the order of their CPUs then, of their files now.
    expected.sort();
    found.sort();
    assert!(
        expected == found,
        "{} events, {}",
        expected.len(),
        found.len()
    );
}

const PROVIDER: Guid = Guid([6; 16]);

fn kernel(hook: u16, version: u8, time: i64) -> KernelEvent {
    KernelEvent {
        hook,
        version,
        time,
        thread: None,
    }
}

/// Two processes: `a.exe`, 40, with thread 44, and `b.exe`, 80, with thread 84. `a.exe` runs from
/// 100 to 200, in the midst of which it readies `b.exe`.
fn two_processes(path: &Path) {
    let session = Session {
        start: 133_000_000_000_000_000,
        ..Session::default()
    };
    let mut log = Writer::new(File::create(path).unwrap(), session).unwrap();
    let mut put = |event: KernelEvent, payload: &[u8]| log.kernel(0, event, payload).unwrap();
    let mut payload = Payload::new();
    for (process, thread, name) in [(40_u32, 44_u32, "a.exe"), (80, 84, "b.exe")] {
        // Process/DCStart of version 4 and Thread/DCStart of version 3.
        payload.clear().u64(0).u32(process).u32(0).u32(0).u32(0);
        payload.u64(0).u32(0).u32(0).utf8_z(name);
        payload.utf16_z("").utf16_z("").utf16_z("");
        put(kernel(0x0303, 4, 1), &payload);
        payload.clear().u32(process).u32(thread).bytes(&[0; 64]);
        put(kernel(0x0503, 3, 1), &payload);
    }
    put(kernel(0x0524, 3, 100), &switch(44, 0));
    // A sample, with its stack; a ready event, which does not say by whom; a DPC.
    payload.clear().u64(0x1000).u32(44).u16(1).u16(0);
    put(kernel(0x0F2E, 2, 120), &payload);
    payload.clear().i64(120).u32(40).u32(44).u64(0x1000);
    put(kernel(0x1820, 2, 121), &payload);
    payload.clear().u32(84).u32(0);
    put(kernel(0x0532, 2, 150), &payload);
    payload.clear().i64(160).u64(0x2000);
    put(kernel(0x0F44, 2, 170), &payload);
    put(kernel(0x0524, 3, 200), &switch(84, 44));
    payload.clear().u64(0x1000).u32(84).u16(1).u16(0);
    put(kernel(0x0F2E, 2, 220), &payload);
    payload.clear().i64(220).u32(80).u32(84).u64(0x1000);
    put(kernel(0x1820, 2, 221), &payload);
    put(kernel(0x0524, 3, 300), &switch(0, 84));
    let event = ProviderEvent {
        provider: PROVIDER,
        descriptor: Descriptor::default(),
        time: 310,
        thread_id: 84,
        process_id: 80,
        activity: Guid::ZERO,
        extended: &[],
    };
    log.provider(0, event, b"").unwrap();
    log.finish().unwrap();
}

/// Payload of a context switch.
fn switch(new: u32, old: u32) -> Payload {
    let mut payload = Payload::new();
    payload.u32(new).u32(old).bytes(&[0; 16]);
    payload
}

fn raw_times(path: &Path) -> Vec<i64> {
    let source = std::fs::read(path).unwrap();
    let trace = Trace::from_sources(vec![("part".into(), Box::new(source))]).unwrap();
    let mut walk = trace.events();
    let mut times = Vec::new();
    while let Some(event) = walk.next() {
        if event.hook() != Some(0) {
            times.push(event.raw_time());
        }
    }
    times
}

#[test]
fn a_process_keeps_what_it_did_and_what_was_done_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("two.etl");
    two_processes(&log);
    let log = log.to_str().unwrap();
    let lives = [1, 1, 1, 1];
    for (options, expected) in [
        // Its switches, its sample and stack, that it readied another, and the DPC.
        (["--process", "a.exe"], &[100, 120, 121, 150, 170, 200][..]),
        // That it was readied, and its own events; the DPC is everybody's.
        (["--pid", "80"], &[150, 170, 200, 220, 221, 300, 310]),
        // A stack follows its event, not its process.
        (["--event", "SampledProfile"], &[120, 121, 220, 221]),
        (
            ["--provider", "06060606-0606-0606-0606-060606060606"],
            &[310],
        ),
    ] {
        let out = trim(&[log], &folder, &options);
        assert_eq!(raw_times(&out), [&lives, expected].concat(), "{options:?}");
    }
    // The stack of an event in the range comes after it.
    let out = trim(&[log], &folder, &["--from", "11us", "--to", "12us"]);
    assert_eq!(raw_times(&out), [1, 1, 1, 1, 120, 121]);
}

#[test]
fn what_cannot_be_done_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let own = path("own.etl");
    let source = testdata::path("etl/perfview__primitive-types.etl");
    std::fs::copy(source, &own).unwrap();
    let before = std::fs::read(&own).unwrap();
    let broken = path("broken.etl");
    std::fs::write(&broken, "not a trace\n".repeat(500)).unwrap();
    let headless = path("headless.etl");
    let mut bytes = before.clone();
    bytes[0x48..0x4C].copy_from_slice(&[0; 4]);
    std::fs::write(&headless, bytes).unwrap();
    let out = path("out.etl");
    let none = path("none/out.etl");
    let here = folder.path().to_str().unwrap();
    for (args, what) in [
        (&[&own, "-o", &own][..], "is the trace itself"),
        (&[&own, "-o", here], "is a directory"),
        (&[&own, "-o", &none], "its folder does not exist"),
        (&[&broken, "-o", &out], "is not an .etl trace"),
        (&[&headless, "-o", &out], "no readable header"),
        (
            &[&own, "-o", &out, "--from", "2", "--to", "1"],
            "--from is later than --to",
        ),
        (
            &[&own, "-o", &out, "--from", "1000000"],
            "no event meets these conditions",
        ),
        (
            &[&own, "-o", &out, "--process", "nobody"],
            "no event meets these conditions",
        ),
        (
            &[
                "perfview__gcevents.etl",
                "perfview__net.4.5.2.x64.etl",
                "-o",
                &out,
            ],
            "recorded by different systems",
        ),
    ] {
        let output = program::laglab(&[&["trim"], args].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(what), "{args:?}: {error}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    assert!(std::fs::read(&own).unwrap() == before);
    let mut left: Vec<_> = std::fs::read_dir(here)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["broken.etl", "headless.etl", "own.etl"]);
}

#[test]
fn damage_is_said_and_the_rest_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("damaged.etl");
    let mut bytes = testdata::bytes("etl/gpuvis__wintracecmd.etl");
    // The first record of the third buffer.
    let size = u32::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    bytes[2 * size + 0x48..][..4].copy_from_slice(&[0xEE; 4]);
    std::fs::write(&damaged, bytes).unwrap();
    let out = folder.path().join("out.etl");
    let args = [
        "trim",
        damaged.to_str().unwrap(),
        "-o",
        out.to_str().unwrap(),
    ];
    let output = program::laglab(&args);
    assert!(output.status.success());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        error,
        "laglab: 1 broken place was skipped; `laglab info` says where\n"
    );
    let whole = events(&[&testdata::path("etl/gpuvis__wintracecmd.etl")]).len();
    let kept = events(&[&out]).len();
    assert!(kept > whole * 9 / 10 && kept < whole, "{kept} of {whole}");
}

#[test]
fn it_says_what_it_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("two.etl");
    two_processes(&log);
    let out = folder.path().join("a.etl");
    let (log, out) = (log.to_str().unwrap(), out.to_str().unwrap());
    let said = program::text(&["trim", log, "-o", out, "--process", "a.exe"]);
    let said = said
        .replace(folder.path().to_str().unwrap(), "FOLDER")
        .replace('\\', "/");
    insta::assert_snapshot!(said);
}

/// What a log says: all that its kernel events and its header say in text, and the bytes in which
/// developers told of their events, which stay.
fn texts(path: &Path) -> (Vec<String>, Vec<u8>) {
    let trace = etl::open(&[path.to_owned()]).unwrap();
    let mut decoder = Decoder::new();
    let mut walk = trace.events();
    while let Some(event) = walk.next() {
        decoder.learn(&event);
    }
    decoder.finish_learning();
    let (mut texts, mut developers) = (Vec::new(), Vec::new());
    let mut walk = trace.events();
    while let Some(event) = walk.next() {
        if events::is_metadata(&event) {
            developers.extend_from_slice(event.record());
        }
        for item in event.extended_items() {
            developers.extend_from_slice(item.data);
        }
        let decoded = decoder.decode(&event);
        if decoded.source == Some(Source::Kernel) {
            for (_, value) in &decoded.fields.values {
                texts_in(value, &mut texts);
            }
        }
    }
    let header = trace.header().unwrap();
    texts.extend([header.session.clone(), header.log_file.clone()]);
    (texts, developers)
}

fn texts_in(value: &Value<'_>, texts: &mut Vec<String>) {
    match value {
        Value::Text(text) => texts.push(text.to_string()),
        Value::Array(values) => values.iter().for_each(|value| texts_in(value, texts)),
        Value::Struct(fields) => fields.iter().for_each(|(_, value)| texts_in(value, texts)),
        _ => {}
    }
}

/// The words of a text, in lower case, that could tell whose it is: not those that the
/// documentation says stay, and long enough not to be met by chance.
fn telling_words(text: &str) -> Vec<String> {
    static STAY: LazyLock<HashSet<&str>> = LazyLock::new(|| {
        let page = include_str!("../../../docs/trim.md");
        let (_, lists) = page.split_once("### Words that stay").unwrap();
        lists.split('`').collect()
    });
    let words = text.split(|c: char| !(c.is_alphanumeric() || "._-$~@".contains(c)));
    let words = words.map(|word| {
        let mut word = word.to_lowercase();
        // `csrss.exe.mui`
        while let Some((stem, extension)) = word.rsplit_once('.')
            && STAY.contains(extension)
        {
            word.truncate(stem.len());
        }
        word
    });
    // The time zone stays, too.
    let stays = |word: &str| word == "@tzres" || word.starts_with("harddisk");
    let in_one_that_stays = |word: &str| STAY.iter().any(|other| other.contains(word));
    words
        .filter(|word| word.len() >= 6 && !stays(word) && !in_one_that_stays(word))
        .collect()
}

/// Which of the words stand in the bytes, in UTF-8 or UTF-16 of either alignment, in any case.
fn found<'w>(words: &'w HashSet<String>, bytes: &[u8]) -> Vec<&'w str> {
    let mut by_start: HashMap<&[u8], Vec<&str>> = HashMap::new();
    for word in words {
        by_start
            .entry(&word.as_bytes()[..6])
            .or_default()
            .push(word);
    }
    let lower = bytes.to_ascii_lowercase();
    let half = |skip: usize| -> Vec<u8> { lower.iter().skip(skip).step_by(2).copied().collect() };
    let mut found = HashSet::new();
    for text in [lower.clone(), half(0), half(1)] {
        for (at, start) in text.windows(6).enumerate() {
            for word in by_start.get(start).into_iter().flatten() {
                if text[at..].starts_with(word.as_bytes()) {
                    found.insert(*word);
                }
            }
        }
    }
    found.into_iter().collect()
}

/// All that a log says: the file's bytes, or what they are compressed from.
fn content(path: &Path) -> Vec<u8> {
    let trace = etl::open(&[path.to_owned()]).unwrap();
    let header = trace.header().unwrap();
    if header.log_file_mode & mode::COMPRESSED == 0 {
        return std::fs::read(path).unwrap();
    }
    let records = events(&[path])
        .into_iter()
        .flat_map(|(_, _, record)| record);
    let names = [header.session.as_bytes(), header.log_file.as_bytes()].concat();
    records.chain(names).collect()
}

#[test]
fn a_redacted_trace_has_none_of_the_names() {
    let folder = tempfile::tempdir().unwrap();
    // Random pseudonyms are by chance, once in some hundred runs, a word of six letters that is
    // looked for.
    let options = ["--redact", "--redact-key", "a key"];
    for (name, least) in [
        ("filtrace__etw.etl", 300),
        ("perfview__net.4.5.2.x64.etl", 300),
        ("perfview__net.4.5.x86-win7.etl", 300),
        ("perfview__diaghub__diaghub.kernel.1.etl", 100),
        ("s4__WindowsUpdate.20251008.etl", 1),
    ] {
        let original = testdata::path("etl").join(name);
        let (texts, developers) = texts(&original);
        let words = texts.iter().flat_map(|text| telling_words(text));
        let mut words: HashSet<String> = words.collect();
        for word in found(&words.clone(), &developers) {
            words.remove(word);
        }
        assert!(words.len() >= least, "{name}: {} words", words.len());
        let out = trim(&[name], &folder, &options);
        let left = found(&words, &content(&out));
        assert_eq!(left, Vec::<&str>::new(), "{name}");
        let path = out.to_str().unwrap();
        for command in ["info", "stats", "explain"] {
            program::json(&[command, "--json", path]);
        }
    }
}

#[test]
fn a_redacted_trace_says_the_same_but_for_names() {
    let folder = tempfile::tempdir().unwrap();
    let name = "filtrace__etw.etl";
    let out = trim(&[name], &folder, &["--redact"]);
    let switches = |path: &str| {
        let fields = "NewThreadId,OldThreadId,OldThreadWaitReason,NewThreadPriority";
        let args = ["events", path, "--event", "CSwitch", "--fields", fields];
        program::json_lines(&[&args[..], &["--json"]].concat())
            .into_iter()
            .map(|mut event| (event["time_ns"].take(), event["fields"].take()))
            .collect::<Vec<_>>()
    };
    let expected = switches(name);
    assert!(expected.len() > 1_000 && expected == switches(out.to_str().unwrap()));
}

#[test]
fn a_secret_makes_the_same_pseudonyms_again() {
    let folder = tempfile::tempdir().unwrap();
    let again = |key: &[&str]| {
        let options = [&["--redact"], key].concat();
        std::fs::read(trim(&["tx__Process.etl"], &folder, &options)).unwrap()
    };
    let key = ["--redact-key", "s3cret"];
    assert!(again(&key) == again(&key));
    assert!(again(&[]) != again(&[]));
    let output = program::laglab(&["trim", "x.etl", "-o", "y.etl", "--redact-key", "s3cret"]);
    assert_eq!(output.status.code(), Some(2));
}
