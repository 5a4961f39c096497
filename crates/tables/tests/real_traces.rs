//! Tests of tables of real traces. The tables are compared with ground truth (independently determined
//! values): the counts in `truth.json`, and the first events of each kind in the dump of another trace
//! reader.

use std::collections::BTreeMap;
use std::fs::File;

use etl::Trace;
use files::{FileSource, Source};
use serde_json::Value;
use tables::{DiskIoKind, ImageTracker, Options, ProcessTracker, Table, Tables, ThreadTracker};

fn read(relative: &str) -> Tables {
    let source = FileSource::new(File::open(testdata::path(relative)).unwrap()).unwrap();
    let source: Box<dyn Source> = Box::new(source);
    let trace = Trace::from_sources(vec![(relative.into(), source)]).unwrap();
    let tables = import_windows::build(&trace, Table::ALL, Options::default()).unwrap();
    assert_eq!(tables.unreadable, [], "{relative}");
    tables
}

/// Returns the number of events of a kernel class by opcode, according to the ground truth.
fn counts(truth: &Value, class: &str) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    let mut add = |name: &Value, event: &Value| {
        if *name == *class {
            let count = event["count"].as_u64().unwrap() as usize;
            *counts.entry(event["opcode"].as_u64().unwrap()).or_default() += count;
        }
    };
    for event in truth["kernel_events"].as_array().into_iter().flatten() {
        add(&event["cls"], event);
    }
    for event in truth["classic_events"].as_array().into_iter().flatten() {
        add(&event["name"], event);
    }
    counts
}

#[test]
fn every_event_becomes_a_row() {
    for (name, truth) in testdata::traces() {
        let tables = read(&name);
        let count = |class, opcodes: &[u64]| -> usize {
            let counts = counts(&truth, class);
            opcodes.iter().filter_map(|opcode| counts.get(opcode)).sum()
        };
        macro_rules! rows {
            ($table:ident) => {
                tables.$table.iter().map(|t| t.len()).sum::<usize>()
            };
        }
        assert_eq!(rows!(context_switches), count("Thread", &[36]), "{name}");
        assert_eq!(rows!(ready_threads), count("Thread", &[50]), "{name}");
        assert_eq!(rows!(samples), count("PerfInfo", &[46]), "{name}");
        let interrupts = count("PerfInfo", &[50, 66, 67, 68, 69, 70, 95]);
        assert_eq!(rows!(interrupts), interrupts, "{name}");
        assert_eq!(rows!(disk_io), count("DiskIo", &[10, 11, 14]), "{name}");
        assert_eq!(rows!(hard_faults), count("PageFault", &[32]), "{name}");

        let (t, p, i) = (&tables.threads, &tables.processes, &tables.images);
        let known = |column: &tables::Nullable<i64>| column.iter().flatten().count();
        assert_eq!(known(&p.start_ns), count("Process", &[1]), "{name}");
        assert!(known(&p.end_ns) >= count("Process", &[2]), "{name}");
        assert!(p.len() >= count("Process", &[3]), "{name}");
        assert!(p.len() <= count("Process", &[1, 2, 3, 4, 39]), "{name}");
        assert_eq!(known(&t.start_ns), count("Thread", &[1]), "{name}");
        assert_eq!(known(&t.end_ns), count("Thread", &[2]), "{name}");
        assert!(t.len() >= count("Thread", &[3]), "{name}");
        // Opcode 10 of the process group is also an image load.
        let loads = count("Process", &[10]) + count("Image", &[10]);
        assert_eq!(known(&i.load_ns), loads, "{name}");
        assert_eq!(known(&i.unload_ns), count("Image", &[2]), "{name}");
        assert!(i.len() >= count("Image", &[3]), "{name}");
    }
}

#[test]
fn batches_hold_all_rows_in_order_of_time() {
    let mut tables = read("etl/perfview__net.4.5.2.x64.etl");
    for table in Table::ALL {
        let sorted_by = table.schema().sorted_by;
        for batch in tables.take_batches(*table) {
            let times = batch.column_by_name(sorted_by).unwrap().to_data();
            assert!(times.buffers()[0].typed_data::<i64>().is_sorted());
        }
        assert!(tables.take_batches(*table).is_empty());
    }
}

/// Line of the dump of another trace reader.
struct Line {
    time_ms: f64,
    event: String,
    fields: BTreeMap<String, String>,
}

impl Line {
    fn parse(line: &str) -> Option<Line> {
        let (time, rest) = line.strip_prefix("EVENT ")?.split_once(": ")?;
        let (event, rest) = rest.split_once(" PID=")?;
        let fields = format!("PID={rest}");
        Some(Line {
            time_ms: time.replace(',', "").parse().ok()?,
            event: event.into(),
            fields: fields
                .split("; ")
                .filter_map(|field| field.split_once('='))
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        })
    }

    fn text(&self, name: &str) -> &str {
        &self.fields[name]
    }

    /// Returns the number in a field. In the dump, the number is decimal with commas, or hexadecimal.
    fn number(&self, name: &str) -> i128 {
        let text = self.text(name).replace(',', "");
        match text.strip_prefix("0x") {
            Some(hex) => i128::from_str_radix(hex, 16).unwrap(),
            None => text.parse().unwrap(),
        }
    }

    /// Returns the number in a field. Returns `None` for -1, because the dump prints -1 for missing values.
    fn id(&self, name: &str) -> Option<u32> {
        u32::try_from(self.number(name)).ok()
    }

    /// Returns true if the time of the line is `ns`. The dump rounds times to microseconds.
    fn at(&self, ns: impl Into<Option<i64>>) -> bool {
        ns.into()
            .is_some_and(|ns| (self.time_ms - ns as f64 / 1e6).abs() < 0.000_51)
    }

    fn lasts(&self, ns: Option<i64>) -> bool {
        let ms: f64 = self
            .text("ElapsedTimeMSec")
            .replace(',', "")
            .parse()
            .unwrap();
        ns.is_some_and(|ns| (ms - ns as f64 / 1e6).abs() < 0.000_51)
    }

    /// Returns true if the field `name` has the text `text`. The dump may shorten a text.
    fn says(&self, name: &str, text: Option<&str>) -> bool {
        let (dumped, text) = (self.text(name), text.unwrap_or_default());
        match dumped.strip_suffix("...") {
            Some(start) => text.starts_with(start),
            None => text == dumped,
        }
    }
}

fn baseline(name: &str) -> (Vec<Line>, BTreeMap<String, usize>) {
    let text = String::from_utf8(testdata::bytes(name)).unwrap();
    let counts = text
        .lines()
        .filter_map(|line| line.strip_prefix("COUNT ")?.rsplit_once(':'))
        .map(|(event, count)| (event.into(), count.parse().unwrap()))
        .collect();
    (text.lines().filter_map(Line::parse).collect(), counts)
}

/// Calls `row_is` for each line. If `row_is` recognises the line, it must return `Some(true)`. Returns the
/// number of recognised lines by event.
fn check(lines: &[Line], mut row_is: impl FnMut(&Line) -> Option<bool>) -> BTreeMap<&str, usize> {
    let mut checked = BTreeMap::new();
    for line in lines {
        if let Some(found) = row_is(line) {
            assert!(
                found,
                "{} at {} ms: {:?}",
                line.event, line.time_ms, line.fields
            );
            *checked.entry(line.event.as_str()).or_default() += 1;
        }
    }
    checked
}

fn check_samples(tables: &Tables, line: &Line) -> bool {
    tables.samples.iter().any(|t| {
        (0..t.len()).any(|i| {
            line.at(t.time_ns[i])
                && line.number("ProceNum") == t.cpu.get(i).unwrap().into()
                && line.number("InstructionPointer") == t.address[i].into()
                && line.number("TID") == t.thread_id[i].into()
                && line.number("Count") == t.count[i].into()
                && t.in_dpc
                    .get(i)
                    .is_none_or(|dpc| (line.text("ExecutingDPC") == "True") == dpc)
                && t.in_isr
                    .get(i)
                    .is_none_or(|isr| (line.text("ExecutingISR") == "True") == isr)
                && t.priority
                    .get(i)
                    .is_none_or(|p| line.number("Priority") == p.into())
                && t.rank
                    .get(i)
                    .is_none_or(|rank| line.number("Rank") == rank.into())
        })
    })
}

fn check_disk(tables: &Tables, line: &Line) -> Option<bool> {
    let (_, what) = line.event.split_once("DiskIO/")?;
    let any = |is: &dyn Fn(&tables::DiskIo, usize) -> bool| {
        tables
            .disk_io
            .iter()
            .any(|t| (0..t.len()).any(|i| is(t, i)))
    };
    let irp = |t: &tables::DiskIo, i| t.irp.get(i).map(i128::from) == Some(line.number("Irp"));
    let kind = match what.trim_end_matches("Init").trim_end_matches("Buffers") {
        "Read" => DiskIoKind::Read,
        "Write" => DiskIoKind::Write,
        _ => DiskIoKind::Flush,
    };
    Some(any(&|t, i| {
        if what.ends_with("Init") {
            return t.kind.0[i] == kind && irp(t, i) && line.at(t.init_ns.get(i));
        }
        t.kind.0[i] == kind
            && irp(t, i)
            && line.at(t.time_ns[i])
            && line.lasts(t.response_ns.get(i))
            && line.number("ProceNum") == t.cpu[i].into()
            && line.number("DiskNumber") == t.disk[i].into()
            && (kind == DiskIoKind::Flush || {
                let names = ["Notset", "Verylow", "Low", "Normal", "High", "Critical"];
                line.text("Priority") == names[usize::from(t.priority.get(i).unwrap())]
                    && t.size_bytes.get(i).map(i128::from) == Some(line.number("TransferSize"))
                    && t.offset_bytes.get(i).map(i128::from) == Some(line.number("ByteOffset"))
                    && t.file_object.get(i).map(i128::from) == Some(line.number("FileKey"))
                    && t.thread_id.get(i) == line.id("TID")
            })
    }))
}

fn check_fault(tables: &Tables, line: &Line) -> bool {
    tables.hard_faults.iter().any(|t| {
        (0..t.len()).any(|i| {
            line.at(t.time_ns[i])
                && line.lasts(t.duration_ns.get(i))
                && line.number("ProceNum") == t.cpu.get(i).unwrap().into()
                && line.number("TID") == t.thread_id[i].into()
                && line.number("ReadOffset") == t.offset_bytes.get(i).unwrap().into()
                && line.number("VirtualAddress") == t.address[i].into()
                && line.number("FileKey") == t.file_object.get(i).unwrap().into()
                && line.number("ByteCount") == t.size_bytes.get(i).unwrap().into()
        })
    })
}

fn check_process(tables: &Tables, line: &Line) -> Option<bool> {
    let t = &tables.processes;
    let (_, what) = line.event.split_once("Kernel/Process/")?;
    let time: &dyn Fn(usize) -> Option<i64> = match what {
        "Start" => &|i| t.start_ns.get(i),
        "Stop" => &|i| t.end_ns.get(i),
        "DCStart" => &|i| Some(t.first_seen_ns[i]),
        "DCStop" | "Defunct" => &|_| None,
        _ => return None,
    };
    Some((0..t.len()).any(|i| {
        (line.at(time(i)) || matches!(what, "DCStop" | "Defunct"))
            && line.number("ProcessID") == t.process_id[i].into()
            && line.number("ParentID") == t.parent_id[i].into()
            && line.id("SessionID") == t.session_id.get(i)
            && line.says("ImageFileName", t.image_name.get(i))
            && line.says("CommandLine", t.command_line.get(i))
            && line.says("PackageFullName", t.package_full_name.get(i))
            && line.says("ApplicationID", t.application_id.get(i))
            && t.unique_key.get(i).map(i128::from) == Some(line.number("UniqueProcessKey"))
            && t.directory_table_base.get(i).map(i128::from)
                == Some(line.number("PageDirectoryBase"))
            && (what != "Stop"
                || t.exit_status.get(i).map(i128::from) == Some(line.number("ExitStatus")))
            && match line.text("Flags") {
                "None" => t.flags.get(i).is_none_or(|flags| flags == 0),
                "Protected" => t.flags.get(i) == Some(4),
                _ => true,
            }
    }))
}

fn check_thread(tables: &Tables, line: &Line) -> Option<bool> {
    let t = &tables.threads;
    let (_, what) = line.event.split_once("Kernel/Thread/")?;
    let time = match what {
        "Start" => &t.start_ns,
        "Stop" => &t.end_ns,
        _ => return None,
    };
    Some((0..t.len()).any(|i| {
        let is = |name, column: &tables::Nullable<u64>| {
            column.get(i).map(i128::from) == Some(line.number(name))
        };
        line.at(time.get(i))
            && line.number("TID") == t.thread_id[i].into()
            && t.process_id.get(i).map(i128::from) == Some(line.number("PID"))
            && is("StackBase", &t.stack_base)
            && is("StackLimit", &t.stack_limit)
            && is("StartAddr", &t.affinity)
            && is("Win32StartAddr", &t.win32_start_address)
            && is("TebBase", &t.teb)
            && t.sub_process_tag.get(i).map(i128::from) == Some(line.number("SubProcessTag"))
            // The end event of a thread can report other values than the start event of the same thread.
            && (what == "Stop"
                || is("UserStackBase", &t.user_stack_base)
                    && is("UserStackLimit", &t.user_stack_limit)
                    && t.base_priority.get(i).map(i128::from) == Some(line.number("BasePriority"))
                    && t.page_priority.get(i).map(i128::from) == Some(line.number("PagePriority"))
                    && t.io_priority.get(i).map(i128::from) == Some(line.number("IoPriority"))
                    && t.creator_thread_id.get(i) == line.id("ParentThreadID")
                    && t.creator_process_id.get(i) == line.id("ParentProcessID"))
    }))
}

fn check_image(tables: &Tables, line: &Line) -> Option<bool> {
    let t = &tables.images;
    let rows = 0..t.len();
    if let Some((_, what)) = line.event.split_once("Kernel/Image/") {
        let time: &dyn Fn(usize) -> Option<i64> = match what {
            "Load" => &|i| t.load_ns.get(i),
            "Unload" => &|i| t.unload_ns.get(i),
            "DCStart" => &|i| Some(t.first_seen_ns[i]),
            _ => return None,
        };
        // The dump shows link times as signed numbers. It shows 0 if the page with the link time was not in
        // memory.
        let stamp = line.number("TimeDateStamp") as i32 as u32;
        return Some(rows.into_iter().any(|i| {
            line.at(time(i))
                && line.number("PID") == t.process_id.get(i).map_or(-1, i128::from)
                && line.number("ImageBase") == t.base_address[i].into()
                && line.number("ImageSize") == t.size_bytes[i].into()
                && (stamp == 0 || t.time_date_stamp.get(i) == Some(stamp))
                && (line.says("FileName", t.path.get(i))
                    // The reader that made the dump assumes drive C: if the volume is unknown.
                    || line.says("FileName", t.path.get(i).map(|p| format!("C:{p}")).as_deref()))
                // When an image is unloaded, the header of the image can be paged out.
                && (what == "Unload"
                    || t.checksum.get(i).map(i128::from) == Some(line.number("ImageChecksum"))
                        && t.default_base.get(i).map(i128::from)
                            == Some(line.number("DefaultBase")))
        }));
    }
    let (_, what) = line.event.split_once("KernelTraceControl/ImageID")?;
    let seen = |i: usize| {
        line.at(t.first_seen_ns[i]) || line.at(t.unload_ns.get(i)) || line.at(t.load_ns.get(i))
    };
    Some(rows.into_iter().any(|i| {
        seen(i)
            && match what {
                "" => {
                    line.number("ImageBase") == t.base_address[i].into()
                        && line.says("OriginalFileName", t.original_file_name.get(i))
                        && t.time_date_stamp.get(i).map(i128::from)
                            == Some(i128::from(line.number("TimeDateStamp") as i32 as u32))
                }
                "/DbgID_RSDS" => {
                    line.number("ImageBase") == t.base_address[i].into()
                        && line.says("GuidSig", t.pdb_guid.get(i))
                        && t.pdb_age.get(i).map(i128::from) == Some(line.number("Age"))
                        && line.says("PDBFileName", t.pdb_path.get(i))
                }
                "/FileVersion" => {
                    line.number("ImageSize") == t.size_bytes[i].into()
                        && line.says("FileVersion", t.file_version.get(i))
                        && line.says("ProductVersion", t.product_version.get(i))
                        && line.says("ProductName", t.product_name.get(i))
                        && line.says("CompanyName", t.company_name.get(i))
                        && line.says("FileDescription", t.file_description.get(i))
                }
                _ => true,
            }
    }))
}

fn rows_are_what_another_reader_dumped(trace: &str, golden: &str) {
    let tables = read(trace);
    let (lines, counts) = baseline(golden);
    let checked = check(&lines, |line| match line.event.as_str() {
        "Windows Kernel/PerfInfo/Sample" => Some(check_samples(&tables, line)),
        "Windows Kernel/Memory/HardFault" => Some(check_fault(&tables, line)),
        _ => check_disk(&tables, line)
            .or_else(|| check_process(&tables, line))
            .or_else(|| check_thread(&tables, line))
            .or_else(|| check_image(&tables, line)),
    });
    for event in [
        "PerfInfo/Sample",
        "Memory/HardFault",
        "DiskIO/Write",
        "DiskIO/WriteInit",
        "Process/DCStart",
        "Process/Stop",
        "Thread/Start",
        "Thread/Stop",
        "Image/DCStart",
        "Image/Unload",
    ] {
        let name = format!("Windows Kernel/{event}");
        assert!(
            checked.contains_key(name.as_str()),
            "no {event} was checked"
        );
    }
    // The other reader omits the samples of idle threads, but not the samples in DPCs and ISRs.
    let samples: usize = tables
        .samples
        .iter()
        .map(|t| {
            let busy = |i: &usize| {
                t.thread_id[*i] != 0
                    || t.in_dpc.get(*i) == Some(true)
                    || t.in_isr.get(*i) == Some(true)
            };
            (0..t.len()).filter(busy).count()
        })
        .sum();
    assert_eq!(samples, counts["Windows Kernel/PerfInfo/Sample"], "{trace}");
}

#[test]
fn windows_8() {
    rows_are_what_another_reader_dumped(
        "etl/perfview__net.4.5.2.x64.etl",
        "etl/golden/net.4.5.2.x64.baseline.txt",
    );
}

#[test]
fn windows_7() {
    rows_are_what_another_reader_dumped(
        "etl/perfview__net.4.5.x86-win7.etl",
        "etl/golden/net.4.5.x86-win7.baseline.txt",
    );
}

/// Compares the results of trackers with the dump. The dump gives the process id and the process name of each
/// sample and hard fault.
#[test]
fn trackers_agree_with_another_reader() {
    for (trace, golden) in [
        (
            "etl/perfview__net.4.5.2.x64.etl",
            "etl/golden/net.4.5.2.x64.baseline.txt",
        ),
        (
            "etl/perfview__net.4.5.x86-win7.etl",
            "etl/golden/net.4.5.x86-win7.baseline.txt",
        ),
    ] {
        let tables = read(trace);
        let threads = ThreadTracker::new(&tables.threads);
        let processes = ProcessTracker::new(&tables.processes);
        let (lines, _) = baseline(golden);
        let checked = check(&lines, |line| {
            let of_thread = ["PerfInfo/Sample", "Memory/HardFault"];
            if !of_thread.iter().any(|event| line.event.ends_with(event)) {
                return None;
            }
            let time = (line.time_ms * 1e6) as i64;
            let process = threads.process_id(line.id("TID")?, time);
            let name = processes.name(process?, time)?;
            // The dump omits the extension of the file name.
            let name = name.strip_suffix(".exe").unwrap_or(name);
            Some(process == line.id("PID") && line.text("PName") == name)
        });
        assert_eq!(checked.len(), 2, "{checked:?}");
    }
}

/// Tests the image that the tracker finds for a sample. The address of the sample must be in the range of the
/// image. More than 90 % of the samples must be in an image.
#[test]
fn samples_lie_in_images() {
    let tables = read("etl/perfview__net.4.5.x86-win7.etl");
    let images = ImageTracker::new(&tables.images);
    let threads = ThreadTracker::new(&tables.threads);
    let (mut found, mut all) = (0, 0);
    for t in &tables.samples {
        for i in 0..t.len() {
            let Some(process) = threads.process_id(t.thread_id[i], t.time_ns[i]) else {
                continue;
            };
            all += 1;
            let Some(row) = images.lookup(process, t.address[i], t.time_ns[i]) else {
                continue;
            };
            let base = tables.images.base_address[row];
            assert!((base..base + tables.images.size_bytes[row]).contains(&t.address[i]));
            found += 1;
        }
    }
    assert!(all > 16_000 && found * 10 > all * 9, "{found} of {all}");
}

/// Tests that images are joined with their identities across files. The trace is one session in four files.
/// The images and their identities are in different files.
#[test]
fn identities_are_joined_across_files() {
    let parts = ["", ".kernel.1", ".user_injected.1", ".user_paged.1"];
    let sources = parts.map(|part| {
        let name = format!("etl/perfview__diaghub__diaghub{part}.etl");
        let source = FileSource::new(File::open(testdata::path(&name)).unwrap()).unwrap();
        let source: Box<dyn Source> = Box::new(source);
        (name, source)
    });
    let trace = Trace::from_sources(sources.into()).unwrap();
    let tables = import_windows::build(&trace, &[Table::Images], Options::default()).unwrap();
    // The ground truth counts 15,423 image ids: 15,076 with a PDB and 347 without.
    let with_pdb = tables.images.pdb_guid.iter().flatten().count();
    let named = tables.images.original_file_name.iter().flatten().count();
    assert!(with_pdb * 100 > tables.images.len() * 95, "{with_pdb}");
    assert!(named * 100 > tables.images.len() * 95, "{named}");
    assert!((15_017..=15_423).contains(&tables.images.len()));
    let drives = tables.images.path.iter().flatten();
    let on_drives = drives.filter(|path| path.starts_with("C:\\")).count();
    assert!(on_drives * 100 > tables.images.len() * 95, "{on_drives}");
}

/// Compares the pauses of .NET with the events that PerfView printed. The dump has the first events of each kind.
#[test]
fn pauses_of_dotnet_are_those_of_another_reader() {
    for name in ["gcevents", "net.4.5.2.x64", "net.4.5.x86-win7"] {
        let dump = testdata::path(&format!("etl/golden/{name}.baseline.txt"));
        let dump = std::fs::read_to_string(dump).unwrap();
        let of_event = |event: &str| -> Vec<(i64, u32)> {
            let event = format!("Microsoft-Windows-DotNETRuntime/GC/{event} ");
            let lines = dump.lines().filter(|line| line.contains(&event));
            let read = lines.map(|line| {
                let (time, rest) = line
                    .strip_prefix("EVENT ")
                    .unwrap()
                    .split_once(": ")
                    .unwrap();
                let id = rest
                    .split_once(" PID=")
                    .unwrap()
                    .1
                    .split_once(';')
                    .unwrap()
                    .0;
                let us = time.replace([',', '.'], "");
                (us.parse().unwrap(), id.parse().unwrap())
            });
            read.collect()
        };
        let (stops, restarts) = (of_event("SuspendEEStart"), of_event("RestartEEStop"));
        assert!(!stops.is_empty() && stops.len() == restarts.len(), "{name}");
        let count = dump.lines().find_map(|line| {
            let count =
                line.strip_prefix("COUNT Microsoft-Windows-DotNETRuntime/GC/SuspendEEStart:");
            count?.parse::<usize>().ok()
        });
        let pauses = read(&format!("etl/perfview__{name}.etl")).dotnet_pauses;
        assert_eq!(Some(pauses.len()), count, "{name}");
        for (row, (stop, restart)) in stops.into_iter().zip(restarts).enumerate() {
            assert_eq!(pauses.process_id[row], stop.1, "{name}");
            // The dump has whole microseconds.
            assert!(
                (pauses.start_ns[row] - stop.0 * 1000).abs() <= 1000,
                "{name} {row}"
            );
            assert!(
                (pauses.end_ns[row] - restart.0 * 1000).abs() <= 1000,
                "{name} {row}"
            );
        }
    }
}
