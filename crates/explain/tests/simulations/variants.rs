//! Tests with variants of scenarios: other seeds, releases of Windows, sizes and figures. The cause of a
//! scenario must still come first, with the numbers of the truth file. Without the cause, nothing must be
//! reported. Without the decisive events, the verdict must be *not recorded*.

use std::collections::{BTreeMap, BTreeSet};

use explain::Scope;
use serde_json::Value;
use simulated::{Simulated, column, list, number, text};

use super::explained::{Explained, during};

/// Settings that change a scenario. Each setting is one text.
type Variant = &'static [&'static str];

const SEEDS: &[Variant] = &[
    &["seed=2"],
    &["seed=3"],
    &["seed=5"],
    &["seed=8"],
    &["seed=13"],
];

const RELEASES: &[Variant] = &[
    &["machine.windows=7", "seed=21"],
    &["machine.windows=10-22H2", "seed=22"],
    &["machine.windows=11-23H2", "seed=23"],
    &["machine.windows=11-25H2", "seed=24"],
];

/// Numbers of processors of the desktop. Its devices are on CPUs 0, 2, 4 and 6.
const SIZES: &[Variant] = &[
    &["machine.processors=6", "disk.0.cpu=1", "seed=31"],
    &["machine.processors=12", "seed=32"],
    &["machine.processors=16", "seed=33"],
    &["machine.processors=32", "seed=34"],
    &["machine.processors=64", "seed=35"],
];

/// Variants with more or with less other activity on the desktop.
const AROUND: &[Variant] = &[
    &["record.compressed=true"],
    &[
        r#"process."svchost.exe".thread.service.count=40"#,
        r#"process."MsMpEng.exe".thread.scanner.count=6"#,
        r#"process."explorer.exe".thread.tray.count=12"#,
    ],
    &[
        r#"process."svchost.exe".thread.service.count=1"#,
        r#"process."MsMpEng.exe".thread.scanner.count=1"#,
    ],
];

/// All variants for desktop scenarios.
const DESKTOP: &[&[Variant]] = &[SEEDS, RELEASES, SIZES, AROUND];

/// Numbers of processors for scenarios that are not desktops.
const OTHER_SIZES: &[Variant] = &[
    &["machine.processors=8", "seed=41"],
    &["machine.processors=16", "seed=42"],
    &["machine.processors=24", "seed=43"],
    &["machine.processors=32", "seed=44"],
    &["machine.processors=64", "seed=45"],
];

/// Variant of a scenario, with the truth file of its simulation and its explanation.
struct Case {
    label: String,
    simulated: Simulated,
    explained: Explained,
}

impl Case {
    fn new(scenario: &str, base: &[&str], variant: &[&str]) -> Case {
        Case::scoped(scenario, base, variant, Scope::default())
    }

    fn scoped(scenario: &str, base: &[&str], variant: &[&str], scope: Scope) -> Case {
        let is_over = |setting: &&&str| {
            let (path, _) = setting.split_once('=').unwrap();
            variant.iter().any(|set| set.starts_with(path))
        };
        let base = base.iter().filter(|setting| !is_over(setting));
        let settings: Vec<&str> = base.chain(variant).copied().collect();
        let simulated = Simulated::new(scenario, &settings);
        let explained = Explained::with_symbols(&simulated, scope);
        Case {
            label: format!("{scenario} {variant:?}"),
            simulated,
            explained,
        }
    }

    /// Asserts that all findings are only information.
    #[track_caller]
    fn is_calm(&self) {
        assert_eq!(self.explained.complaints(), [""; 0], "{}", self.label);
    }

    /// Asserts that the first finding is from a theory and is more than information. Returns the finding.
    #[track_caller]
    fn first(&self, theory: &str) -> &Value {
        let first = &self.explained.findings()[0];
        assert_eq!(first["theory"], theory, "{}: {first:#}", self.label);
        assert_ne!(first["severity"], "information", "{}", self.label);
        first
    }

    /// Asserts that the verdict of a theory is *not recorded* and says what to record.
    #[track_caller]
    fn is_not_recorded(&self, theory: &str) {
        let theories = list(&self.explained.explanation, "theories").iter();
        let mut verdicts = theories.filter(|verdict| verdict["theory"] == theory);
        let verdict = verdicts.next().unwrap();
        assert_eq!(
            verdict["judgement"], "not_recorded",
            "{}: {verdict}",
            self.label
        );
        assert!(!text(&verdict["record"]).is_empty(), "{}", self.label);
    }

    fn watched(&self, process: &str) -> &Value {
        let mut threads = list(&self.simulated.truth, "watched_threads").iter();
        threads
            .find(|thread| thread["process"]["name"] == process)
            .unwrap()
    }
}

/// Calls `look` for each variant of a scenario. There must be at least twenty variants.
fn each(scenario: &str, base: Variant, variants: &[&[Variant]], look: impl Fn(&Case)) {
    let variants = variants.concat();
    assert!(variants.len() >= 20, "{scenario}: {}", variants.len());
    for variant in variants {
        look(&Case::new(scenario, base, variant));
    }
}

fn judgement<'f>(finding: &'f Value, theory: &str) -> &'f str {
    let mut weighed = list(finding, "weighed").iter();
    let verdict = weighed.find(|verdict| verdict["theory"] == theory);
    verdict.unwrap()["judgement"].as_str().unwrap()
}

const NO_SWITCHES: &str =
    r#"record.kernel=["PROC_THREAD","LOADER","DISPATCHER","DPC","INTERRUPT","PROFILE"]"#;
const NO_DPCS: &str = r#"record.kernel=["PROC_THREAD","LOADER","CSWITCH","DISPATCHER","PROFILE"]"#;
const ONLY_SAMPLES: &str = r#"record.kernel=["PROC_THREAD","LOADER","PROFILE"]"#;
const NO_PROVIDERS: &str = "record.providers=[]";

#[test]
fn a_healthy_machine_gives_no_alarm() {
    let less: &[Variant] = &[
        &[NO_SWITCHES],
        &[NO_DPCS],
        &[ONLY_SAMPLES],
        &[NO_PROVIDERS],
        &["record.stacks=[]"],
        &["record.sampling_interval=1221"],
        &["machine.server=true"],
        &["machine.win32_priority_separation=0x28"],
        &[r#"device.mouse.every="around(1ms, 10%)""#],
        &[r#"flow.web.every="exp(1ms)""#],
        &["duration=20s", "seed=7"],
        &["duration=200ms"],
    ];
    let variants = [DESKTOP, &[less]].concat();
    each("healthy", &["duration=5s"], &variants, Case::is_calm);
}

#[test]
fn a_machine_at_work_gives_no_alarm() {
    let more: &[Variant] = &[
        &["machine.processors=20"],
        &["record.compressed=true"],
        &["duration=300ms"],
        &["events=100000", "duration=1h"],
        &[NO_SWITCHES],
        &[r#"process."cl.exe".thread.compile.count=1"#],
        &[r#"process."chrome.exe".thread.caller.count=30"#],
    ];
    let variants = [SEEDS, RELEASES, &OTHER_SIZES[1..], more];
    each("load", &["duration=1s"], &variants, Case::is_calm);
}

/// Returns the size of the trace's buffers in bytes.
fn buffer_size(trace: &[u8]) -> usize {
    u32::from_le_bytes(trace[..4].try_into().unwrap()) as usize
}

/// Returns the trace that a ring buffer would leave: the first buffer, and all buffers after the first
/// `bytes` bytes.
fn ring(trace: &[u8], bytes: usize) -> Vec<u8> {
    /// Offset of the logging mode, which is in the log-file header after the header of the first buffer.
    const MODE: usize = 72 + 32 + 0x20;
    const CIRCULAR: [u8; 4] = [2, 0, 0, 0];
    let size = buffer_size(trace);
    let mut ring = trace[..size].to_vec();
    ring[MODE..MODE + 4].copy_from_slice(&CIRCULAR);
    ring.extend(&trace[bytes / size * size..]);
    ring
}

/// Tests traces in which the events of one CPU begin later or end earlier than the events of another CPU.
/// Some threads seem to wait although they ran. These waits must not be findings.
#[test]
fn no_wait_is_reported_if_only_some_cpus_are_recorded() {
    for scenario in ["healthy", "load"] {
        let simulated = Simulated::new(scenario, &["duration=4s"]);
        let whole = std::fs::read(&simulated.trace).unwrap();
        for tenths in [3, 5, 7, 9] {
            let bytes = whole.len() * tenths / 10 + 12_345;
            let whole_buffers = bytes / buffer_size(&whole) * buffer_size(&whole);
            for (is_ring, part) in [
                (false, whole[..bytes].to_vec()),
                (false, whole[..whole_buffers].to_vec()),
                (true, ring(&whole, bytes)),
            ] {
                std::fs::write(&simulated.trace, part).unwrap();
                let explained = Explained::new(&simulated.trace);
                let case = format!("{scenario} {tenths} {is_ring}");
                assert_eq!(
                    explained.by_theory("long-waits"),
                    [&Value::Null; 0],
                    "{case}"
                );
                let complaints = explained.complaints();
                let is_told = usize::from(!is_ring);
                assert_eq!(complaints.len(), is_told, "{case}: {complaints:?}");
                let capture = &explained.by_theory("capture")[0];
                let doubts = capture["doubts"].to_string();
                let is_said = ["All CPUs are recorded", "No events of "];
                let is_said = is_said.iter().any(|said| doubts.contains(said));
                assert!(is_said, "{case}: {doubts}");
            }
        }
    }
}

/// Asserts that the first finding is the longest wait of a watched thread, with the duration in the truth
/// file. Returns the finding.
#[track_caller]
fn longest_wait<'c>(case: &'c Case, process: &str) -> &'c Value {
    let first = case.first("long-waits");
    assert!(text(&first["sentence"]).contains(process), "{}", case.label);
    is_the_longest(case, first, process);
    first
}

/// Asserts that a finding describes the longest wait of a watched thread in the truth file.
#[track_caller]
fn is_the_longest(case: &Case, first: &Value, process: &str) {
    let told = &list(case.watched(process), "longest_ready_waits")[0];
    for (column_name, of_truth) in [
        ("ready_ns", "ready_ns"),
        ("start_ns", "ran_ns"),
        ("priority", "priority"),
    ] {
        assert_eq!(
            column(&[first], column_name)[0],
            told[of_truth],
            "{}: {column_name}",
            case.label
        );
    }
}

#[test]
fn a_pinned_thread_waits_for_its_cpu() {
    let scans: &[Variant] = &[
        &[r#"process.10.thread.scan.program.1.run="150ms""#],
        &[r#"process.10.thread.scan.program.1.run="1s""#],
        &["process.10.thread.scan.priority=31"],
        &[r#"process."game.exe".thread.render.priority=13"#],
    ];
    let variants = [DESKTOP, &[scans]].concat();
    each("affinity-pinned", &["duration=6s"], &variants, |case| {
        let first = longest_wait(case, "game.exe");
        assert_eq!(judgement(first, "affinity"), "for", "{}", case.label);
        let sentence = text(&first["sentence"]);
        assert!(sentence.contains("may run only on CPU 3"), "{sentence}");
    });
    let gone: &[Variant] = &[
        // Variants without a problem: a delay that no user notices; a delay caused by a thread of lower
        // priority; and a thread that may also run on another CPU.
        &[r#"process.10.thread.scan.program.1.run="20ms""#],
        &["process.10.thread.scan.priority=6"],
        &[r#"process."game.exe".thread.render.affinity=[3,5]"#],
    ];
    for variant in gone {
        Case::new("affinity-pinned", &["duration=6s"], variant).is_calm();
    }
    // Without process and thread events, the trace does not say on which CPUs the thread may run. So
    // `explain` must not claim that an allowed CPU was idle.
    let less: Variant =
        &[r#"record.kernel=["LOADER","CSWITCH","DISPATCHER","PRIORITY","DPC","INTERRUPT"]"#];
    let case = Case::new("affinity-pinned", &["duration=6s"], less);
    let first = case.first("long-waits");
    assert_eq!(judgement(first, "affinity"), "not_recorded");
    assert_eq!(judgement(first, "dispatcher"), "against");
}

#[test]
fn busy_waiting_drivers_come_first() {
    let stalls: &[Variant] = &[
        &["process.9.thread.0.program.1.repeat=3"],
        &[r#"process.9.thread.1.program.1.steps.0.run="200ms""#],
        &[r#"at.0.suspend="1500ms""#],
        &["record.sampling_interval=2500"],
    ];
    let variants = [DESKTOP, &[stalls]].concat();
    each("busy-wait-resume", &["duration=8s"], &variants, |case| {
        case.first("busy-waiting");
        let threads = list(&case.simulated.truth, "threads").iter();
        let mut told: Vec<(i64, String)> = threads
            .filter_map(|thread| {
                let driver = thread["name"].as_str()?.strip_prefix("power up ")?;
                Some((number(thread, "cpu_ns"), driver.to_owned()))
            })
            .collect();
        told.sort_by_key(|(ns, _)| -ns);
        let found = case.explained.by_theory("busy-waiting");
        assert_eq!(found.len(), 3, "{}", case.label);
        for (finding, (ns, driver)) in found.iter().zip(told) {
            let sentence = text(&finding["sentence"]);
            assert!(sentence.starts_with(&driver), "{}: {sentence}", case.label);
            let waited = column(&[finding], "waited_ns")[0].as_i64().unwrap();
            // The tolerance covers two samples, and some other work between two waits in a loop.
            let off = (waited - ns).abs();
            assert!(off <= ns / 50 + 2_000_000, "{}: {waited} {ns}", case.label);
        }
    });
    let short: Variant = &[
        r#"process.9.thread.0.program.1.steps.0.run="40us""#,
        r#"process.9.thread.1.program.1.steps.0.run="40us""#,
        r#"process.9.thread.2.program.1.steps.0.run="40us""#,
    ];
    let base: Variant = &["duration=7s"];
    Case::new("busy-wait-resume", base, short).is_calm();
    Case::new("busy-wait-resume", base, &["record.stacks=[]"]).is_not_recorded("busy-waiting");
}

/// Number of a CPU, the time by which its clock is ahead, and the time from which it is ahead. Times are in
/// nanoseconds.
type Skew = (i64, i64, i64);

/// Clocks of the built-in scenario.
const SKEWS: &[Skew] = &[(4, 5_000_000, 0), (5, 20_000_000, 5_000_000_000)];

/// Checks that the finding names the clock that is most ahead and overestimates no clock. Threads wake
/// periodically, so another multiple of their period may fit, too. Waits that exist only because of a wrong
/// clock must not be problems.
#[test]
fn clocks_that_disagree_are_named() {
    let more: &[(Variant, &[Skew])] = &[
        (
            &[r#"trouble.skew=[{cpu=4,ahead="1ms"}]"#],
            &[(4, 1_000_000, 0)],
        ),
        (
            &[
                r#"trouble.skew=[{cpu=4,ahead="1ms"}]"#,
                "machine.windows=11-25H2",
            ],
            &[(4, 1_000_000, 0)],
        ),
        (
            &[r#"trouble.skew=[{cpu=4,ahead="100ms"}]"#],
            &[(4, 100_000_000, 0)],
        ),
        (
            &[r#"trouble.skew=[{cpu=4,ahead="200ms"}]"#, "seed=52"],
            &[(4, 200_000_000, 0)],
        ),
        (
            &[r#"trouble.skew=[{cpu=4,ahead="1s"}]"#],
            &[(4, 1_000_000_000, 0)],
        ),
        (
            &[r#"trouble.skew=[{cpu=4,ahead="10ms",from="3s"}]"#],
            &[(4, 10_000_000, 3_000_000_000)],
        ),
        (
            &[r#"trouble.skew=[{cpu=0,ahead="5ms"}]"#],
            &[(0, 5_000_000, 0)],
        ),
        (
            &[r#"trouble.skew=[{cpu=1,ahead="1ms"},{cpu=2,ahead="3ms"},{cpu=3,ahead="2ms"}]"#],
            &[(1, 1_000_000, 0), (2, 3_000_000, 0), (3, 2_000_000, 0)],
        ),
    ];
    let shipped = [SEEDS, RELEASES, &SIZES[..1], AROUND].concat();
    let shipped = shipped.into_iter().map(|variant| (variant, &[][..], SKEWS));
    let more = more
        .iter()
        .map(|(variant, skews)| (*variant, &[][..], *skews));
    // With more processors, almost nothing runs on CPU 5, and all disk interrupts are on CPU 0. So the clock
    // of CPU 0 jumps instead.
    let jumps: &[&str] = &["trouble.skew.1.cpu=0"];
    let skews: &[Skew] = &[(4, 5_000_000, 0), (0, 20_000_000, 5_000_000_000)];
    let sizes = SIZES[1..].iter().map(|size| (*size, jumps, skews));
    for (variant, sets, skews) in shipped.chain(more).chain(sizes) {
        let base = [&["duration=8s"], sets].concat();
        let case = Case::new("clock-trouble", &base, variant);
        let first = case.first("clocks");
        let (cpu, ..) = skews
            .iter()
            .max_by_key(|(_, ahead_ns, _)| ahead_ns)
            .unwrap();
        let sentence = text(&first["sentence"]);
        let named = format!("CPU {cpu}'s clock is ahead");
        assert!(sentence.contains(&named), "{}: {sentence}", case.label);
        let ahead_ns = |of: i64, at_ns: i64| {
            let mut its = skews.iter().filter(|(cpu, ..)| *cpu == of);
            let holds = its.find(|(.., from_ns)| at_ns >= *from_ns);
            holds.map_or(0, |(_, ahead_ns, _)| *ahead_ns)
        };
        for evidence in list(first, "evidence") {
            for row in list(evidence, "rows") {
                let cell = |place: usize| row[place].as_i64().unwrap();
                let most = ahead_ns(cell(0), cell(1)) - ahead_ns(cell(2), cell(3));
                // If the row shows a run that precedes the event, the clock of the run's CPU is ahead.
                let is_before = cell(6) == cell(4) - cell(1);
                let most = if is_before { -most } else { most };
                assert!((1..=most).contains(&cell(6)), "{}: {row}", case.label);
            }
        }
        assert_eq!(case.explained.complaints().len(), 1, "{}", case.label);
    }
    let gone: &[Variant] = &[
        &["trouble.skew=[]"],
        &[r#"trouble.skew=[{cpu=4,ahead="20us"}]"#],
    ];
    for variant in gone {
        Case::new("clock-trouble", &["duration=8s"], variant).is_calm();
    }
}

#[test]
fn marks_of_packets_are_counted() {
    let own: &[Variant] = &[
        &["flow.game.dscp=0"],
        &["flow.game.dscp=8"],
        &["flow.game.dscp=63"],
        &[r#"flow.game.loss="20%""#],
        &["flow.game.tcp=true"],
        &["record.compressed=true"],
    ];
    for scenario in ["dscp-marked", "dscp-bleached"] {
        let variants = [SEEDS, RELEASES, OTHER_SIZES, own];
        each(scenario, &["duration=3s"], &variants, |case| {
            case.is_calm();
            let findings = case.explained.by_theory("packet-marking");
            let (marks, packets) = (column(&findings, "dscp"), column(&findings, "packets"));
            let marks = marks.iter().map(ToString::to_string).zip(packets);
            let found = Value::Object(marks.collect());
            let flow = &list(&case.simulated.truth, "flows")[0];
            assert_eq!(found, flow["sent_by_dscp"], "{}", case.label);
            let findings = case.explained.by_theory("network-throughput");
            for name in ["received_bytes", "sent_bytes"] {
                assert_eq!(
                    column(&findings, name)[0],
                    flow[name],
                    "{}: {name}",
                    case.label
                );
            }
        });
        Case::new(scenario, &["duration=1s"], &[NO_PROVIDERS]).is_not_recorded("packet-marking");
    }
}

/// Checks that the reported quanta match every value of the setting. A process whose threads share a CPU only
/// with each other must not be a problem.
#[test]
fn quanta_follow_the_setting() {
    let settings: &[Variant] = &[
        &["machine.win32_priority_separation=0x14"],
        &["machine.win32_priority_separation=0x15"],
        &["machine.win32_priority_separation=0x24"],
        &["machine.win32_priority_separation=0x26"],
        &["machine.win32_priority_separation=0x28"],
        &["machine.cpu_mhz=3700"],
    ];
    for scenario in [
        "foreground-boost",
        "foreground-boost-0x14",
        "foreground-boost-0x28",
    ] {
        let variants = [SEEDS, RELEASES, &SIZES[1..], AROUND, settings];
        each(scenario, &["duration=3s"], &variants, |case| {
            case.is_calm();
            let findings = case.explained.by_theory("quantum");
            let (names, units) = (column(&findings, "process"), column(&findings, "units"));
            let mut seen = BTreeMap::new();
            for (name, units) in names.iter().zip(&units) {
                seen.entry(text(name)).or_insert(units);
            }
            let mut compared = 0;
            for process in list(&case.simulated.truth["quantum"], "processes") {
                let name = format!("{} ({})", text(&process["name"]), process["id"]);
                if let Some(units) = seen.get(&name) {
                    assert_eq!(**units, process["units"], "{}: {name}", case.label);
                    compared += 1;
                }
            }
            assert!(compared >= 4, "{}: {compared}", case.label);
        });
    }
}

#[test]
fn a_frozen_program_comes_first() {
    let own: &[Variant] = &[
        &[r#"process.10.thread.taskbar.program.0.until="6s""#],
        &[r#"process.9.thread.broker.program.3.until="6s""#],
        &[
            "machine.processors=2",
            "disk.0.cpu=1",
            "device.audio.cpus=[1]",
            "device.display.cpus=[1]",
        ],
        &["duration=7s"],
    ];
    let variants = [DESKTOP, &[own]].concat();
    each("frozen", &[], &variants, |case| {
        let first = case.first("frozen");
        let moments = list(&case.simulated.truth, "moments").iter();
        let at = |what: &str| {
            let mut of_it = moments.clone().filter(|moment| moment["what"] == what);
            of_it.next().map(|moment| number(moment, "at_ns"))
        };
        assert_eq!(column(&[first], "start_ns")[0], at("freeze").unwrap());
        if let Some(thaw) = at("thaw") {
            assert_eq!(column(&[first], "end_ns")[0], thaw, "{}", case.label);
        }
        assert!(text(&first["sentence"]).starts_with("Windows froze Calculator.exe"));
        assert_eq!(case.explained.complaints().len(), 1, "{}", case.label);
    });
    // In this variant, no program waits for the frozen program.
    let unwanted: Variant = &[r#"process.10.thread.taskbar.program.0.until="9s""#];
    Case::new("frozen", &[], unwanted).is_calm();
    Case::new("frozen", &[], &[NO_PROVIDERS]).is_not_recorded("frozen");
}

#[test]
fn a_contended_lock_comes_first() {
    let own: &[Variant] = &[
        &[r#"process."catalogue.exe".thread.import.count=40"#],
        &[r#"process."catalogue.exe".thread.import.start="2s""#],
        &[r#"process."catalogue.exe".thread.import.program.0.steps.2.run="around(50ms, 20%)""#],
        &[r#"process."catalogue.exe".thread.import.program.0.steps.2.run="around(10ms, 20%)""#],
    ];
    let variants = [DESKTOP, &[own]].concat();
    each("lock-convoy", &[], &variants, |case| {
        let first = case.first("lock-convoy");
        assert_eq!(case.explained.complaints().len(), 1, "{}", case.label);
        let window = case.watched("catalogue.exe");
        let waits = list(window, "longest_waits").iter();
        let of_lock = waits.filter(|wait| wait["reason"] == "WrAlertByThreadId");
        let long = of_lock.map(|wait| number(wait, "waited_ns"));
        let told: i64 = long.filter(|ns| *ns >= 20_000_000).sum();
        let (threads, waited) = (column(&[first], "thread_id"), column(&[first], "waited_ns"));
        // The evidence has only twenty of forty threads, so the thread of the window may be missing.
        let threads = threads.iter().zip(&waited);
        for (_, waited) in threads.filter(|(thread, _)| **thread == window["thread_id"]) {
            assert_eq!(*waited, told, "{}", case.label);
        }
    });
    let gone: &[Variant] = &[
        &[r#"process."catalogue.exe".thread.import.count=1"#],
        &[
            "trouble.skew=[]",
            r#"process."catalogue.exe".thread.import.start="20s""#,
        ],
    ];
    for variant in gone {
        Case::new("lock-convoy", &[], variant).is_calm();
    }
}

#[test]
fn lost_events_come_first_and_make_no_waits() {
    let own: &[Variant] = &[
        &[r#"trouble.lose=[{from="4s",to="4100ms",cpus=[2]}]"#],
        &[r#"trouble.lose=[{from="1s",to="3s",cpus=[0]}]"#],
        &[r#"trouble.lose=[{from="2s",to="4s"}]"#],
        &[r#"trouble.lose=[{from="0s",to="1s",cpus=[1,3]}]"#],
    ];
    let variants = [DESKTOP, &[own]].concat();
    each("lost-events", &["duration=6s"], &variants, |case| {
        let first = case.first("capture");
        let lost = column(&[first], "lost");
        assert!(
            lost.contains(&case.simulated.truth["events_lost"]),
            "{}",
            case.label
        );
        assert_eq!(case.explained.complaints().len(), 1, "{}", case.label);
    });
    Case::new("lost-events", &["duration=6s"], &["trouble.lose=[]"]).is_calm();
}

#[test]
fn a_starved_thread_comes_first() {
    let own: &[Variant] = &[
        &[
            "machine.processors=12",
            r#"process."blender.exe".thread.tile.count=16"#,
        ],
        &[
            "machine.processors=16",
            r#"process."blender.exe".thread.tile.count=24"#,
        ],
        &[r#"process."archiver.exe".class="below-normal""#],
        &[r#"process."archiver.exe".thread.compress.priority=7"#],
        &["seed=55"],
        &["duration=8s"],
        &["duration=9s"],
        // This variant records no event that shows the raise of the priority at the end of the wait.
        &[r#"record.kernel=["PROC_THREAD","LOADER","CSWITCH","DISPATCHER","DPC","INTERRUPT"]"#],
    ];
    let variants = [SEEDS, RELEASES, &SIZES[..1], AROUND, own];
    each("priority-starved", &["duration=7s"], &variants, |case| {
        case.first("long-waits");
        // Other programs of a low priority class may also wait for the same program, and for longer. So the
        // scope is limited to archiver.exe.
        let scope = Scope {
            processes: vec!["archiver.exe".to_owned()],
            ..Scope::default()
        };
        let asked = Explained::scoped(&case.simulated.trace, scope);
        let waits = asked.by_theory("long-waits").into_iter();
        let mut of_it = waits.filter(|wait| text(&wait["sentence"]).contains("of archiver.exe"));
        let wait = of_it.next().unwrap();
        is_the_longest(case, wait, "archiver.exe");
        assert_eq!(judgement(wait, "higher-priority"), "for", "{}", case.label);
        assert!(
            text(&wait["sentence"]).contains("blender.exe"),
            "{}",
            case.label
        );
    });
    for variant in [SIZES[2], SIZES[3]] {
        // With these sizes there are more CPUs than threads, so no thread starves.
        Case::new("priority-starved", &["duration=7s"], variant).is_calm();
    }
}

#[test]
fn a_thread_of_a_worse_rank_waits_for_all() {
    let biases: &[Variant] = &[
        &["group.LockApp.bias=1"],
        &["group.LockApp.bias=20"],
        &["record.stacks=[]"],
        &["record.compressed=true"],
    ];
    // The wait takes more than half of the trace, so each variant takes long to simulate. Fewer variants are
    // enough.
    for variant in [&SEEDS[..2], &RELEASES[1..], biases].concat() {
        let case = Case::new("rank-stall", &["duration=50500ms"], variant);
        let first = longest_wait(&case, "LockApp.exe");
        let told = &list(case.watched("LockApp.exe"), "longest_ready_waits")[0];
        assert_eq!(column(&[first], "rank")[0], told["rank"], "{}", case.label);
        assert_eq!(judgement(first, "better-rank"), "for", "{}", case.label);
        for rejected in [
            "higher-priority",
            "equal-priority",
            "affinity",
            "machine-suspended",
        ] {
            assert_eq!(judgement(first, rejected), "against", "{}", case.label);
        }
    }
    let base: Variant = &["duration=50500ms"];
    // Windows 7 logs no ranks, so no recorded event explains the wait.
    let case = Case::new("rank-stall", base, &["machine.windows=7"]);
    let first = longest_wait(&case, "LockApp.exe");
    for theory in ["better-rank", "dispatcher"] {
        assert_eq!(judgement(first, theory), "not_recorded", "{theory}");
    }
    let sentence = text(&first["sentence"]);
    assert!(sentence.contains("ranks are not recorded"), "{sentence}");
    let case = Case::new("rank-stall", base, &["group.LockApp.bias=0"]);
    let stalled = case.explained.complaints().into_iter();
    assert_eq!(
        stalled
            .filter(|found| found.contains("LockApp.exe"))
            .count(),
        0
    );
}

#[test]
fn ranks_are_no_problem_with_idle_cpus() {
    let own: &[Variant] = &[
        &["group.Photos.bias=5"],
        &["group.Photos.weight=5"],
        &[r#"process."Microsoft.Photos.exe".thread.analysis.count=1"#],
        &[r#"scheduler.rank_step="30ms""#],
    ];
    let variants = [DESKTOP, &[own]].concat();
    each("rank-walk", &["duration=3s"], &variants, |case| {
        case.is_calm();
        if case.label.contains("machine.windows=7") {
            case.is_not_recorded("outranked");
            return;
        }
        let mut told = BTreeSet::new();
        for thread in list(&case.simulated.truth, "watched_threads") {
            if thread["process"]["name"] == "Microsoft.Photos.exe" {
                let ranks = thread["ranks_at_switch_out"].as_object().unwrap().keys();
                let ranks = ranks.map(|rank| rank.parse::<i64>().unwrap());
                told.extend(ranks.filter(|rank| *rank > 0));
            }
        }
        let ranks = column(&case.explained.by_theory("outranked"), "rank");
        let found: BTreeSet<i64> = ranks.iter().map(|rank| rank.as_i64().unwrap()).collect();
        assert_eq!(found, told, "{}", case.label);
    });
    // Many threads that wait for few CPUs are no reason to suspect a clock.
    for seed in ["seed=1", "seed=2", "seed=3"] {
        let few = [
            "machine.processors=2",
            "disk.0.cpu=1",
            "device.audio.cpus=[1]",
            "device.display.cpus=[1]",
            seed,
        ];
        let case = Case::new("rank-walk", &["duration=3s"], &few);
        assert_eq!(case.explained.judgement("clocks"), "against", "{seed}");
    }
}

#[test]
fn receiving_is_reported_by_cpu() {
    let own: &[Variant] = &[
        &["nic.ethernet.rss={queues=4,base_processor=2}"],
        &["nic.ethernet.rss={enabled=false}"],
        &["flow.game.peers=40"],
        &["nic.ethernet.coalesce=false"],
        &["record.compressed=true"],
        &["record.stacks=[]"],
    ];
    for (scenario, base) in [
        ("rss-300kbps", &["duration=3s"]),
        ("rss-1gbps", &["duration=1s"]),
    ] {
        let variants = [SEEDS, RELEASES, OTHER_SIZES, own];
        each(scenario, base, &variants, |case| {
            case.is_calm();
            let mut told = BTreeMap::new();
            for routine in list(case.simulated.window("trace"), "routines") {
                let is_receiving = routine["routine"] == "ndis.sys!ndisInterruptDpc";
                if is_receiving && routine["kind"] == "dpc" && !routine["cpu"].is_null() {
                    told.insert(number(routine, "cpu"), number(routine, "count"));
                }
            }
            let findings = case.explained.by_theory("receive-spread");
            let (cpus, dpcs) = (column(&findings, "cpu"), column(&findings, "dpcs"));
            let number = |cell: &Value| cell.as_i64().unwrap();
            let found = cpus.iter().map(number).zip(dpcs.iter().map(number));
            assert_eq!(found.collect::<BTreeMap<_, _>>(), told, "{}", case.label);
        });
        Case::new(scenario, base, &[NO_SWITCHES, ONLY_SAMPLES]).is_not_recorded("receive-spread");
    }
}

#[test]
fn signing_comes_first_if_it_limits_the_copy() {
    let own: &[Variant] = &[
        &["flow.copy.window=64"],
        &[r#"flow.copy.bytes="4 KiB""#],
        &["nic.vmxnet3.rss={queues=4}"],
        &["machine.server=false"],
        &["record.compressed=true"],
        &[r#"process."svchost.exe".thread.service.count=30"#],
    ];
    let costs: &[Variant] = &[
        &[r#"nic.vmxnet3.layer.signing.per_kib="lognormal(200us, 0.15)""#],
        &[r#"nic.vmxnet3.layer.signing.per_kib="lognormal(49us, 0.15)""#],
    ];
    let base: Variant = &["duration=3s"];
    let variants = [SEEDS, RELEASES, OTHER_SIZES, own, costs];
    each("smb-signing-on", base, &variants, |case| {
        let first = case.first("smb-security");
        let flow = &list(&case.simulated.truth, "flows")[0];
        let (moved, speed) = (
            column(&[first], "size_bytes"),
            column(&[first], "bits_per_second"),
        );
        assert_eq!(moved[0], flow["received_bytes"], "{}", case.label);
        let told = 8.0 * number(flow, "received_bytes") as f64 / 3.0;
        let speed = speed[0].as_f64().unwrap();
        assert!(
            (speed - told).abs() < 0.02 * told,
            "{}: {speed} {told}",
            case.label
        );
    });
    let variants = [SEEDS, RELEASES, OTHER_SIZES, own];
    each("smb-signing-off", base, &variants, |case| {
        case.is_calm();
        assert_eq!(
            case.explained.judgement("smb-security"),
            "against",
            "{}",
            case.label
        );
    });
    Case::new("smb-signing-on", base, &[NO_DPCS]).is_not_recorded("smb-security");
}

#[test]
fn a_stack_on_disk_comes_first() {
    let own: &[Variant] = &[
        &[r#"process."backup.exe".thread.reader.count=15"#],
        &[r#"process."backup.exe".thread.reader.count=60"#],
        &[r#"disk.0.service="uniform(12ms, 28ms)""#, "duration=8s"],
    ];
    let variants = [DESKTOP, &[own]].concat();
    each("stack-paged-out", &["duration=6500ms"], &variants, |case| {
        let first = longest_wait(case, "mail.exe");
        assert_eq!(judgement(first, "stack-paged-out"), "for", "{}", case.label);
        assert_eq!(judgement(first, "dispatcher"), "against", "{}", case.label);
    });
    let gone: &[Variant] = &[
        &[r#"disk.0.service="lognormal(90us, 0.4)""#],
        &[
            r#"disk.0.service="lognormal(90us, 0.4)""#,
            r#"process."mail.exe".thread.main.stack_paged_out=false"#,
        ],
    ];
    for variant in gone {
        Case::new("stack-paged-out", &["duration=6500ms"], variant).is_calm();
    }
}

/// Asserts that MeasureSleep.exe has long sleeps with the cause `because`, and that the durations of the
/// sleeps are the durations in the truth file.
#[track_caller]
fn slept(case: &Case, because: &str) {
    let measured = &list(&case.simulated.truth, "measured")[0];
    let findings = case.explained.by_theory("timers");
    let of_it = findings.into_iter().filter(|finding| {
        let sentence = text(&finding["sentence"]);
        sentence.starts_with("MeasureSleep.exe")
    });
    let of_it: Vec<&Value> = of_it.collect();
    assert_eq!(of_it.len(), 1, "{}: {of_it:#?}", case.label);
    let sentence = text(&of_it[0]["sentence"]);
    assert!(sentence.contains(because), "{}: {sentence}", case.label);
    let median = column(&of_it, "median_ns")[0].as_f64().unwrap();
    let told = number(measured, "median_ns") as f64;
    assert!(
        (median - told).abs() <= 1.0,
        "{}: {median} {told}",
        case.label
    );
    // The last sleep may not be complete when the trace ends, so one sleep may be missing.
    let sleeps = column(&of_it, "sleeps")[0].as_i64().unwrap();
    assert!(
        (sleeps - number(measured, "count")).abs() <= 1,
        "{}",
        case.label
    );
}

const OWN: &str = "and got it";
const FOREIGN: &str = "only for the process that made it";
const GLOBAL: &str = "lets requests count for all";
const OLD: &str = "the finest request counts for all";
const REFUSED: &str = "its request has no effect";

#[test]
fn sleeps_have_the_right_cause_on_every_release() {
    let base: Variant = &["duration=3s"];
    let own: &[Variant] = &[
        &[r#"process."MeasureSleep.exe".thread.main.program.0.resolution="1ms""#],
        &[r#"process."MeasureSleep.exe".thread.main.program.0.resolution="5ms""#],
        &[r#"process."MeasureSleep.exe".thread.main.program.2.forever.0.sleep="3ms""#],
    ];
    let others: &[Variant] = &[
        &[r#"process."chrome.exe".thread.CrBrowserMain.program.1.resolution="1ms""#],
        &[r#"process."chrome.exe".thread.CrBrowserMain.program.1.resolution="2ms""#],
        &[r#"process."chrome.exe".thread.CrBrowserMain.program.1.resolution="4ms""#],
    ];
    for (scenario, more, by_release) in [
        ("timer-own", own, [OWN, OWN, OWN, OWN]),
        ("timer-foreign", others, [OLD, FOREIGN, FOREIGN, FOREIGN]),
        ("timer-global", others, [OLD, FOREIGN, GLOBAL, GLOBAL]),
        ("timer-occluded", own, [OWN, OWN, REFUSED, REFUSED]),
    ] {
        let usual = match scenario {
            "timer-own" => OWN,
            "timer-foreign" => FOREIGN,
            "timer-global" => GLOBAL,
            _ => REFUSED,
        };
        let variants = [DESKTOP, &[more]].concat();
        each(scenario, base, &variants, |case| {
            let mut releases = ["7", "10-22H2", "11-23H2", "11-25H2"]
                .iter()
                .zip(by_release);
            let of_release = releases
                .find(|(release, _)| case.label.contains(&format!("machine.windows={release}\"")));
            let because = of_release.map_or(usual, |(_, because)| because);
            slept(case, because);
            match because {
                REFUSED => _ = case.first("timers"),
                _ => case.is_calm(),
            }
        });
        Case::new(scenario, base, &[NO_PROVIDERS]).is_not_recorded("timers");
    }
}

#[test]
fn temporarily_ignored_requests_are_reported_with_their_time() {
    let hidden: Variant = &[r#"at=[{time="2s",occlude="MeasureSleep.exe"}]"#];
    let case = Case::new("timer-occluded", &["duration=4s"], hidden);
    let first = case.first("timers");
    let sentence = text(&first["sentence"]);
    assert!(
        sentence.contains(REFUSED) && sentence.contains("from 2.0"),
        "{sentence}"
    );
    assert!(
        sentence.contains("the system's resolution was 15.625 ms"),
        "{sentence}"
    );
    // This program sleeps for 15 ms on purpose, and Windows does not ignore its timer request.
    let sleeps: Variant =
        &[r#"process."MeasureSleep.exe".thread.main.program.2.forever.0.sleep="15ms""#];
    Case::new("timer-own", &["duration=4s"], sleeps).is_calm();
}

#[test]
fn dpcs_are_a_problem_only_beyond_their_limit() {
    let own: &[Variant] = &[
        &[r#"device.usb.dpc.cost="lognormal(55us, 0.1)""#],
        &[r#"device.usb.every="normal(125us, 5us)""#],
        &["device.usb.cpus=[5]"],
        &["record.compressed=true"],
        &["record.stacks=[]"],
        &[r#"process."svchost.exe".thread.service.count=40"#],
    ];
    for scenario in ["usb-wdf01000", "usb-amdxhc31"] {
        let base: Variant = &["duration=2s"];
        let variants = [SEEDS, RELEASES, OTHER_SIZES, own];
        each(scenario, base, &variants, Case::is_calm);
        let long: Variant = &[r#"device.usb.dpc.cost="lognormal(150us, 0.1)""#];
        let case = Case::new(scenario, base, long);
        let first = case.first("long-interrupts");
        let routines = list(case.simulated.window("trace"), "routines").iter();
        let of_usb =
            routines.filter(|routine| routine["cpu"].is_null() && routine["kind"] == "dpc");
        let usb = of_usb
            .max_by_key(|routine| number(routine, "exclusive_ns"))
            .unwrap();
        assert_eq!(column(&[first], "times")[0], usb["count"], "{scenario}");
        assert_eq!(
            column(&[first], "exclusive_ns")[0],
            usb["exclusive_ns"],
            "{scenario}"
        );
        Case::new(scenario, base, &[ONLY_SAMPLES]).is_not_recorded("long-interrupts");
    }
}

/// Changes to a scenario that make its flood last for two seconds instead of ten.
struct Flood {
    scenario: &'static str,
    /// Suffixes of the names of flows before the flood. `flood` has the suffixes during the flood, and
    /// `falling` has the suffixes after the flood.
    before: &'static [&'static str],
    flood: &'static [&'static str],
    falling: &'static [&'static str],
    /// Number of interrupts of each flow during the flood.
    count: u32,
    is_locked: bool,
}

const SIX: &[&str] = &[", 1", ", 2", ", 3", ", 4", ", 5", ", 6"];

const FLOODS: [Flood; 4] = [
    Flood {
        scenario: "dpc-flood-teaming",
        before: &[", 1", ", 2"],
        flood: &[", 1", ", 2"],
        falling: &[""],
        count: 16_323,
        is_locked: true,
    },
    Flood {
        scenario: "dpc-flood-no-teaming",
        before: &[""],
        flood: &[", 1"],
        falling: &[""],
        count: 11_000,
        is_locked: true,
    },
    Flood {
        scenario: "dpc-flood-no-ids",
        before: &[""],
        flood: &[", 1"],
        falling: &[""],
        count: 25_400,
        is_locked: false,
    },
    Flood {
        scenario: "dpc-flood-scaled-out",
        before: SIX,
        flood: SIX,
        falling: SIX,
        count: 4_233,
        is_locked: false,
    },
];

impl Flood {
    fn settings(&self) -> Vec<String> {
        let mut sets: Vec<String> = Vec::new();
        let mut set = |flow: &str, ends: &[&str], what: &[&str]| {
            for end in ends {
                let sets_of = what
                    .iter()
                    .map(|what| format!(r#"flow."{flow}{end}".{what}"#));
                sets.extend(sets_of);
            }
        };
        set("before", self.before, &[r#"to="300ms""#]);
        let rising = [r#"from="300ms""#, r#"to="400ms""#, "count=10"];
        set("rising", self.before, &rising);
        let count = format!("count={}", self.count);
        let flood = [r#"from="501ms""#, r#"to="2488ms""#, &count];
        set("flood", self.flood, &flood);
        let falling = [r#"from="2501ms""#, r#"to="2590ms""#, "count=1"];
        set("falling", self.falling, &falling);
        let rest = [
            r#"device.hba-1.from="501ms""#,
            r#"device.hba-1.to="2490ms""#,
            "device.hba-1.count=12000",
            r#"device.hba-2.from="501ms""#,
            r#"device.hba-2.to="2488ms""#,
            "device.hba-2.count=40",
            r#"device."hba-1, before".to="400ms""#,
            r#"window.flood.from="500ms""#,
            r#"window.flood.to="2500ms""#,
            r#"process."dsmserv.exe".thread.session.program.0.until="400ms""#,
            "duration=2600ms",
        ];
        sets.extend(rest.map(str::to_owned));
        sets
    }
}

#[test]
fn dpc_floods_come_first_unless_spread_over_cpus() {
    let around: &[Variant] = &[
        &["machine.processors=32", "seed=61"],
        &["machine.processors=48", "seed=62"],
        &["machine.processors=64", "seed=63"],
        &["machine.threads_per_core=1", "seed=64"],
        &["machine.server=false", "seed=65"],
        &[r#"process."dsmserv.exe".thread."data mover".count=4"#],
        &[r#"process."dsmserv.exe".thread."data mover".count=40"#],
        &["record.stacks=[]"],
        &["record.sampling_interval=2500"],
        &["record.compressed=true"],
        &["machine.win32_priority_separation=0x26"],
    ];
    for flood in FLOODS {
        let sets = flood.settings();
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let variants = [SEEDS, RELEASES, around].concat();
        assert!(variants.len() >= 20);
        for variant in variants {
            let case = Case::scoped(flood.scenario, &sets, variant, during(500, 2_500));
            if !flood.is_locked {
                assert_eq!(
                    case.explained.judgement("locked-cpus"),
                    "against",
                    "{}",
                    case.label
                );
                continue;
            }
            let first = case.first("locked-cpus");
            let routines = list(case.simulated.window("flood"), "routines").iter();
            let all = routines.filter(|routine| routine["cpu"].is_null());
            let most = all
                .max_by_key(|routine| number(routine, "exclusive_ns"))
                .unwrap();
            assert_eq!(
                column(&[first], "times")[0],
                most["count"],
                "{}",
                case.label
            );
            assert_eq!(
                column(&[first], "exclusive_ns")[0],
                most["exclusive_ns"],
                "{}",
                case.label
            );
        }
        let less = Case::new(flood.scenario, &sets, &[NO_DPCS]);
        // Only samples show the flood.
        let told = less.explained.complaints();
        assert!(
            told.iter()
                .all(|told| told.contains("probably ran almost only DPCs and ISRs"))
        );
        assert_eq!(
            told.is_empty(),
            less.explained.by_theory("locked-cpus").is_empty()
        );
    }
}
