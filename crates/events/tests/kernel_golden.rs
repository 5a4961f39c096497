//! Kernel events of real traces say what TraceEvent, an unrelated reader, says of them.
//!
//! Its baselines print the first events of each kind with all their fields. Each line is found
//! again by time, class and payload length, and each of its fields compared.

use etl::{FileSource, Trace};
use events::{Fields, Value, decode, kernel};

/// Their name of a class, and ours.
const CLASSES: &[(&str, &str)] = &[
    ("DiskIO", "DiskIo"),
    ("Memory", "PageFault"),
    ("SysConfig", "SysConfigEx"),
];

/// Their name of a field, and ours; where there are several, whichever the event has.
const FIELDS: &[(&str, &[&str])] = &[
    ("ProcessID", &["ProcessId"]),
    ("PageDirectoryBase", &["DirectoryTableBase"]),
    ("MemoryCount", &["PageFaultCount"]),
    // They keep the old name; since version 3 the field is the affinity.
    ("StartAddr", &["StartAddr", "Affinity"]),
    ("FileKey", &["FileObject"]),
    ("SampleSource", &["Source"]),
    ("Value", &["NtPath"]),
];

/// Fields of theirs that are not in the payload as printed: what they look up in other events,
/// names of flags, and times in their own form.
const NOT_IN_PAYLOAD: &[&str] = &[
    "PID",
    "TID",
    "PName",
    "ProceNum",
    "DataLen",
    "BuildTime",
    "FileName",
    "ElapsedTimeMSec",
    "DiskServiceTimeMSec",
    "IrpFlags",
    "Flags",
    "ProcessorNumber",
    "ParentThreadID",
    "ParentProcessID",
    "UtcOffsetMinutes",
    "EndTime",
    "BootTime",
    "StartTime",
    "InstallDate",
    "ProcessName",
];

/// Fields that they may read otherwise than the payload has them, and why.
const THEIRS_MAY_DIFFER: &[(&str, &str)] = &[
    ("DiskIo", "Priority"),           // a part of IrpFlags
    ("EventTrace", "Version"),        // four fields of ours
    ("SystemConfig", "PhysicalAddr"), // a number cut in the middle
    ("SystemConfig", "PdoName"),      // not read from version 3, which has it
    ("SystemConfig", "IRQNum"),       // read from where version 2 had it: the group of version 3
    ("UdpIp", "context"),             // version 0 read for version 2: process id and size
    ("UdpIp", "dsize"),               // version 0 read for version 2
];

fn field<'v, 'a>(fields: &'v Fields<'a>, theirs: &str) -> Option<&'v Value<'a>> {
    let names = FIELDS
        .iter()
        .find(|(name, _)| *name == theirs)
        .map(|(_, ours)| *ours);
    let names = names.unwrap_or(&[]).iter().copied().chain([theirs]);
    let members = fields.values.iter().flat_map(|(name, value)| {
        let bits = match value {
            Value::Struct(bits) => bits.as_slice(),
            _ => &[],
        };
        bits.iter()
            .map(|(name, value)| (name, value))
            .chain([(name, value)])
    });
    let members: Vec<_> = members.collect();
    names.into_iter().find_map(|wanted| {
        members
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| *value)
    })
}

/// Whether a value is what they print: numbers with thousands separators and as signed, hexadecimal
/// addresses, text cut with three dots.
fn is_printed_as(value: &Value<'_>, printed: &str) -> bool {
    if let Value::Int(value) = value {
        return printed.replace(',', "").parse() == Ok(*value);
    }
    if let Some(number) = value.as_u64() {
        if let Some(hex) = printed.strip_prefix("0x") {
            return u64::from_str_radix(hex, 16) == Ok(number);
        }
        return match printed {
            "False" => number == 0,
            "True" => number == 1,
            _ => match printed.replace(',', "").parse::<i64>() {
                Ok(signed) => signed as u64 == number || signed as u32 as u64 == number,
                Err(_) => false,
            },
        };
    }
    let text = value.to_string();
    match printed.strip_suffix("...") {
        Some(start) => text.starts_with(start),
        None => text == printed,
    }
}

/// Compares the kernel lines of a baseline; returns how many lines there were, how many fields
/// were equal, and how many differ for a known reason.
fn compare(trace: &str, baseline: &str) -> (usize, usize, usize) {
    let file = std::fs::File::open(testdata::path(trace)).unwrap();
    let source = FileSource::new(file).unwrap();
    let trace = Trace::from_sources(vec![(trace.into(), Box::new(source))]).unwrap();
    let baseline = String::from_utf8(testdata::bytes(baseline)).unwrap();
    let lines: Vec<&str> = baseline
        .lines()
        .filter(|l| l.starts_with("EVENT") && l.contains("Windows Kernel/"))
        .collect();
    let mut found = vec![None::<Result<(usize, usize), String>>; lines.len()];
    let parsed: Vec<_> = lines.iter().map(|line| parse(line)).collect();

    let mut events = trace.events();
    while let Some(event) = events.next() {
        let Some(class) = kernel::class_name(&event) else {
            continue;
        };
        let time_ms = event.time_ns() as f64 / 1e6;
        for (i, (their_ms, their_class, length, fields)) in parsed.iter().enumerate() {
            if *their_class != class
                || *length != event.payload().len()
                || (their_ms - time_ms).abs() > 0.0011
                || matches!(found[i], Some(Ok(_)))
            {
                continue;
            }
            let schema = kernel::schema(&event).unwrap();
            let ours = decode(&schema.fields, event.payload(), event.pointer_size());
            let (mut equal, mut known) = (0, 0);
            let different = fields
                .iter()
                .find_map(|(name, printed)| match field(&ours, name) {
                    Some(value) if is_printed_as(value, printed) => {
                        equal += 1;
                        None
                    }
                    // They print fields that a version lacks as empty.
                    None if printed.is_empty() => None,
                    _ if THEIRS_MAY_DIFFER.contains(&(class, name)) => {
                        known += 1;
                        None
                    }
                    value => Some(format!("{name}: {printed}, we read {value:?}")),
                });
            found[i] = Some(different.map_or(Ok((equal, known)), Err));
        }
    }
    let (mut equal, mut known) = (0, 0);
    for (line, found) in lines.iter().zip(&found) {
        match found {
            Some(Ok(fields)) => (equal, known) = (equal + fields.0, known + fields.1),
            Some(Err(different)) => panic!("{different}\nin {line}"),
            None => panic!("no such event: {line}"),
        }
    }
    (lines.len(), equal, known)
}

/// Time in milliseconds, class, payload length, and the fields that the payload holds.
fn parse(line: &str) -> (f64, &str, usize, Vec<(&str, &str)>) {
    let line = line.strip_prefix("EVENT ").unwrap();
    let (time, rest) = line.split_once(": Windows Kernel/").unwrap();
    let (name, rest) = rest.split_once(' ').unwrap();
    let class = name.split('/').next().unwrap();
    let class = CLASSES
        .iter()
        .find(|(name, _)| *name == class)
        .map_or(class, |(_, ours)| ours);
    let fields = rest.split("; ").filter_map(|field| field.split_once('='));
    let length = fields
        .clone()
        .find(|(name, _)| *name == "DataLen")
        .unwrap()
        .1;
    (
        time.replace(',', "").parse().unwrap(),
        class,
        length.replace(',', "").parse().unwrap(),
        fields
            .filter(|(name, _)| !NOT_IN_PAYLOAD.contains(name))
            .collect(),
    )
}

#[test]
fn windows_8() {
    let trace = "etl/perfview__net.4.5.2.x64.etl";
    assert_eq!(
        compare(trace, "etl/golden/net.4.5.2.x64.baseline.txt"),
        (149, 926, 24)
    );
}

#[test]
fn windows_7() {
    let trace = "etl/perfview__net.4.5.x86-win7.etl";
    assert_eq!(
        compare(trace, "etl/golden/net.4.5.x86-win7.baseline.txt"),
        (163, 980, 41)
    );
}
