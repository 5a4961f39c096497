//! Tests of the errors for wrong scenarios: position, problem and remedy.

use std::io::Cursor;

use sim::{Override, Scenario};
use testdata::Rng;

/// A valid scenario that contains at least one item of each kind.
const WHOLE: &str = include_str!("data/whole.toml");

fn read(text: &str) -> Result<Scenario, String> {
    Scenario::read("s.toml", text, &|_| None, &[]).map_err(|e| e.to_string())
}

fn set(settings: &[&str]) -> Result<Scenario, String> {
    let settings: Result<Vec<Override>, _> = settings.iter().map(|s| Override::parse(s)).collect();
    let settings = settings.map_err(|e| e.to_string())?;
    Scenario::read("s.toml", WHOLE, &|_| None, &settings).map_err(|e| e.to_string())
}

#[test]
fn the_whole_scenario_is_valid() {
    let scenario = read(WHOLE).expect("right");
    assert_eq!(
        (scenario.name(), scenario.title()),
        ("s", "One of everything")
    );
}

/// Tests the entries of `WRONG`. An entry replaces a part of the whole scenario and has the expected error.
/// The line of the error is the line of the replaced part. The column of the error is in the entry.
#[test]
fn each_error_says_where_and_what() {
    let mut others = Vec::new();
    for (right, wrong, column, said) in WRONG {
        assert_eq!(WHOLE.matches(right).count(), 1, "{right}");
        let at = WHOLE.find(right).expect("there");
        let text = WHOLE.replacen(right, wrong, 1);
        let line = text[..at].matches('\n').count() + 1;
        let found = read(&text).expect_err(wrong);
        let place = format!("s.toml:{line}:{column}: ");
        if !found.starts_with(&format!("{place}{said}")) {
            others.push(format!("{wrong}\nexpected {place}{said}\nfound    {found}"));
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n\n"));
}

/// Entries: replaced part of the whole scenario, replacement, column of the error, message.
const WRONG: [(&str, &str, usize, &str); 51] = [
    // Wrong types and fields.
    (
        "duration = \"2s\"",
        "duration = 2",
        12,
        "invalid type: integer `2`, expected a duration such as 15us",
    ),
    (
        "duration = \"2s\"",
        "duration = \"2 moons\"",
        12,
        "expected a duration such as 15us, 1.5ms or 3s, found `2 moons`",
    ),
    (
        "processors = 4",
        "processor = 4",
        1,
        "unknown field `processor`",
    ),
    (
        "windows = \"10-22H2\"",
        "windows = \"95\"",
        11,
        "unknown release of Windows `95`, expected `7`",
    ),
    (
        "class = \"high\"",
        "class = \"huge\"",
        9,
        "unknown variant `huge`",
    ),
    (
        "kernel = [\"CSWITCH\"",
        "kernel = [\"SWITCH\"",
        11,
        "unknown variant `SWITCH`",
    ),
    (
        "{ run = \"1ms\" }",
        "{ run = \"exp(1ms\" }",
        11,
        "expected exp(mean)",
    ),
    (
        "{ run = \"1ms\" }",
        "{ walk = \"1ms\" }",
        5,
        "unknown field `walk`",
    ),
    (
        "{ run = \"1ms\" }",
        "{ run = \"1ms\", sleep = \"1ms\" }",
        3,
        "a step can have only one action, found `run` and `sleep`",
    ),
    (
        "[[at]]\ntime = \"1s\"\nkey = 65",
        "[[at]]\ntime = \"1s\"",
        1,
        "an `at` needs exactly one action",
    ),
    // Names of missing items.
    (
        "group = \"background\"",
        "group = \"foreground\"",
        9,
        "there is no group `foreground`",
    ),
    (
        "{ post = \"app.exe\" }",
        "{ post = \"ape.exe\" }",
        12,
        "there is no process `ape.exe`",
    ),
    (
        "{ send = \"pings\" }",
        "{ send = \"pongs\" }",
        12,
        "there is no flow `pongs`",
    ),
    (
        "nic = \"net\"\nwindow",
        "nic = \"not\"\nwindow",
        7,
        "there is no adapter `not`",
    ),
    (
        "{ wait = \"ready\" }",
        "{ wait = \"raedy\" }",
        12,
        "nothing sets the object `raedy`",
    ),
    (
        "{ wait = \"ready\" }",
        "{ wait = \"lock\" }",
        12,
        "`lock` is used both as a lock and as another object",
    ),
    (
        "{ read = \"4KiB\" }",
        "{ read = \"4KiB\", disk = 7 }",
        27,
        "there is no disk 7",
    ),
    (
        "focus = \"app.exe\"",
        "focus = \"ape.exe\"",
        9,
        "there is no process `ape.exe`",
    ),
    (
        "in = [\"app.exe!Work\"]",
        "in = [\"Work\"]",
        23,
        "`Work` is not a frame: expected `module!function`",
    ),
    (
        "in = [\"usb.sys!Isr\"]",
        "in = [\"game.exe!Isr\"]",
        14,
        "`game.exe` is a user module",
    ),
    (
        "in = [\"usb.sys!Dpc\"]",
        "in = []",
        14,
        "a routine needs its frames",
    ),
    // Impossible machines.
    (
        "processors = 4",
        "processors = 0",
        14,
        "`processors` must be 1 to 256, found 0",
    ),
    (
        "processors = 4",
        "processors = 65535",
        14,
        "`processors` must be 1 to 256, found 65535",
    ),
    (
        "processors = 4",
        "processors = 5",
        14,
        "cannot divide 5 processors into NUMA nodes of equal size: the number of nodes is 1, and each core has 2 threads",
    ),
    (
        "clock_hz = 10000000",
        "clock_hz = 1",
        12,
        "`clock_hz` must be 1000 to 10000000000, found 1",
    ),
    (
        "affinity = [0, 1]",
        "affinity = [0, 4]",
        12,
        "there is no processor 4: the machine has processors 0 to 3",
    ),
    (
        "affinity = [0, 1]",
        "affinity = []",
        12,
        "`affinity` needs at least one processor",
    ),
    ("ideal = 1", "ideal = 9", 9, "there is no processor 9"),
    ("cpus = [2]", "cpus = [4]", 8, "there is no processor 4"),
    ("target = 3", "target = 4", 10, "there is no processor 4"),
    (
        "rss = { base_processor = 1 }",
        "rss = { base_processor = 7 }",
        7,
        "adapter `net`: no processor for RSS: the settings exclude all 4 processors",
    ),
    (
        "skew = [{ cpu = 1",
        "skew = [{ cpu = 4",
        17,
        "there is no processor 4",
    ),
    // Numbers beyond their limits.
    (
        "duration = \"2s\"",
        "duration = \"0s\"",
        12,
        "`duration` must be at least 1 ns, found 0 ns",
    ),
    (
        "duration = \"2s\"",
        "duration = \"25h\"",
        12,
        "`duration` must be at most 86400000000000 ns",
    ),
    (
        "generation = \"150ms\"",
        "generation = \"0s\"",
        14,
        "`generation` must be at least 1000000 ns, found 0 ns",
    ),
    (
        "weight = 5",
        "weight = 4000000000",
        10,
        "`weight` must be 1 to 9, found 4000000000",
    ),
    (
        "count = 2",
        "count = 4000000000",
        9,
        "a scenario can have at most 20000 threads, found 4000000000",
    ),
    (
        "count = 2",
        "count = 0",
        9,
        "`count` must be 1 to 4294967295, found 0",
    ),
    (
        "priority = 9",
        "priority = 32",
        12,
        "`priority` must be 1 to 31, found 32",
    ),
    (
        "every = \"1ms\"",
        "every = \"0ns\"",
        9,
        "`every` must be at least 1000 ns, found 0 ns",
    ),
    (
        "every = \"1ms\"",
        "count = 1000000000000000000",
        9,
        "1000000000000000000 is more than one per microsecond",
    ),
    (
        "packets = 3",
        "packets = 70000",
        11,
        "`packets` must be 1 to 65536, found 70000",
    ),
    (
        "peers = 5",
        "bytes = \"1GiB\"",
        9,
        "`bytes` must be 0 to 357913941, found 1073741824",
    ),
    (
        "window = 2",
        "window = 4000000000",
        10,
        "`window` must be 0 to 65536, found 4000000000",
    ),
    (
        "peers = 5",
        "peers = 0",
        9,
        "`peers` must be 1 to 65536, found 0",
    ),
    (
        "to = \"1.5s\"",
        "to = \"0.1s\"",
        6,
        "window `middle` contains no part of the trace",
    ),
    (
        "buffer_kib = 64",
        "buffer_kib = 65",
        14,
        "`buffer_kib` must be a power of two, found 65",
    ),
    (
        "{ read = \"4KiB\" }",
        "{ read = \"2GiB\" }",
        12,
        "`read` must be 0 to 1073741824, found 2147483648",
    ),
    (
        "every = \"10ms\"",
        "every = \"1ns\"",
        9,
        "`every` must be at least 1000 ns, found 1 ns",
    ),
    // Programs that never let time pass, and impossible loops.
    (
        "{ forever = [{ yield = true }, { sleep = \"5ms\" }] }",
        "{ forever = [{ yield = true }] }",
        15,
        "these steps never let time pass",
    ),
    (
        "{ repeat = 2, steps = [{ run = \"1us\" }] }",
        "{ repeat = 2 }",
        3,
        "`repeat` needs `steps`",
    ),
];

#[test]
fn bases_are_there_and_end() {
    let files = |name: &str| match name {
        "whole" => Some(WHOLE.to_owned()),
        "round" => Some("extends = 'about'".to_owned()),
        "about" => Some("extends = 'round'".to_owned()),
        _ => None,
    };
    let said = |text: &str| match Scenario::read("s.toml", text, &files, &[]) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    assert_eq!(said("extends = 'whole'\n[machine]\nprocessors = 8"), "");
    assert_eq!(
        said("extends = 'hole'"),
        "s.toml:1:11: there is no scenario `hole` to extend"
    );
    assert_eq!(
        said("extends = 3"),
        "s.toml:1:11: `extends` must be the name of a scenario"
    );
    assert!(
        said("extends = 'round'")
            .ends_with("more than 4 scenarios extend one another, or they form a circle")
    );
    // The error is in one of two files: a scenario that extends a base, or the base. The error names the file
    // that causes it.
    assert_eq!(
        said("extends = 'whole'\n[process.'app.exe'.thread.main]\npriority = 0"),
        "s.toml:3:12: `priority` must be 1 to 31, found 0"
    );
    assert!(
        said("extends = 'whole'\n[machine]\nprocessor = 0")
            .starts_with("s.toml:3:13: unknown field")
    );
    assert_eq!(
        said("extends = 'whole'\n[process.'ape.exe']\nclass = 'high'"),
        "s.toml, after applying the overrides: `process` has no `ape.exe`"
    );
    // If an error is caused only by the combination with the base, it has no position in a file.
    assert_eq!(
        said("extends = 'whole'\n[machine]\nprocessors = 1"),
        "s.toml, after applying the overrides: there is no processor 1: the machine has processors 0 to 0 \
         (in `cpu = 1`)"
    );
}

#[test]
fn override_errors_quote_the_override() {
    for (setting, said) in [
        (
            "windows",
            "`windows`: expected `path=value`, such as `machine.processors=16`",
        ),
        ("=7", "`=7`: `` is not a path"),
        ("a b=7", "`a b=7`: `a b` is not a path"),
        ("#x=7", "`#x=7`: `#x` is not a path"),
        (
            "machine.windows=98SE",
            "`machine.windows=98SE`: unknown release of Windows `98SE`",
        ),
        (
            "machine.windows=7\nseed=3",
            "`machine.windows=7\nseed=3`: unknown release of Windows",
        ),
        (
            "machine.processors=6000",
            "`machine.processors=6000`: `processors` must be 1 to 256",
        ),
        (
            "process.'app.exe'.thread.9.count=1",
            "`process.'app.exe'.thread.9.count=1`: `thread` has no `9`",
        ),
        (
            "process.'app.exe'.thread.main.count=0",
            "`process.'app.exe'.thread.main.count=0`: `count` must be 1",
        ),
    ] {
        let found = set(&[setting]).map(|_| ()).expect_err(setting);
        assert!(found.starts_with(said), "expected {said}\nfound    {found}");
    }
    let set = set(&[
        "duration=3s",
        "machine.windows = \"7\"",
        "machine.windows=7",
        "trouble={}",
        "scheduler={ dpc_rate = 4 }",
    ]);
    assert!(set.is_ok(), "{set:?}");
}

/// Tests broken texts. Each text must give a scenario or an error. The simulation of a scenario must end
/// without a panic.
#[test]
fn broken_scenarios_do_no_harm() {
    let mut rng = Rng(17);
    let mut right = 0;
    const PIECES: [&str; 24] = [
        "0",
        "-1",
        "4294967296",
        "18446744073709551615",
        "\"\"",
        "\"0ns\"",
        "\"500000h\"",
        "\"exp(500000h)\"",
        "\"lognormal(500000h, 10)\"",
        "[]",
        "{}",
        "true",
        "\n",
        "]",
        "\"app.exe\"",
        "\"ready\"",
        "\"lock\"",
        "\"µ\"",
        "= ",
        "[[process]]",
        "\"16777216TiB\"",
        "\"99%\"",
        "nan",
        "1979-05-27",
    ];
    let rounds = testdata::rounds(3_000);
    for _ in 0..rounds {
        let mut text = WHOLE.to_owned();
        for _ in 0..1 + rng.below(2) {
            // Replaces a value, or some other part of the text.
            let starts: Vec<usize> = text.match_indices("= ").map(|(at, _)| at + 2).collect();
            let from = starts[rng.below(starts.len())];
            let ends = text[from..].find([',', '\n', ' ', ']']).unwrap_or(0);
            text.replace_range(from..from + ends, PIECES[rng.below(PIECES.len())]);
        }
        let Ok(scenario) = read(&text) else { continue };
        right += 1;
        let mut looks = 0;
        // The scenario may be long, so the test cancels it after a few steps.
        let go_on = |_| {
            looks += 1;
            looks < 2
        };
        let _ = sim::simulate(&scenario, None, Cursor::new(Vec::new()), go_on);
    }
    assert!(
        right * 60 > rounds,
        "only {right} of {rounds} texts were scenarios"
    );
}

#[test]
fn programs_that_never_let_time_pass_are_stopped() {
    for program in [
        "{ forever = [{ wait = 'a' }, { set = 'a' }] }, { set = 'a' }",
        "{ repeat = 4000000000, steps = [{ repeat = 4000000000, steps = [{ mark = 'x' }] }] }",
    ] {
        let text = format!(
            "title = 't'\nduration = '1s'\n[machine]\n[[process]]\nname = 'a.exe'\n\
             [[process.thread]]\nprogram = [{{ set = 'a' }}, {{ wait = 'a', timeout = '1ms' }}, {program}]"
        );
        let text = text.replacen(
            "{ set = 'a' }, { wait",
            "{ set = 'a' }, { set = 'a' }, { wait",
            1,
        );
        let scenario = read(&text).expect("its text is right");
        let run = sim::simulate(&scenario, None, Cursor::new(Vec::new()), |_| true);
        if let Err(error) = run {
            assert!(
                error.to_string().contains("would never let time pass"),
                "{error}"
            );
        } else {
            assert!(program.starts_with("{ forever"), "{program}");
        }
    }
}

#[test]
fn floods_are_stopped() {
    let flood = "title = 't'\nduration = '1h'\n[machine]\n[record]\nkernel = []\nproviders = []\n\
         [[device]]\nname = 'd'\nevery = '1us'\nisr = { in = ['d.sys!Isr'], cost = '1s' }";
    let scenario = read(flood).expect("its text is right");
    let error = sim::simulate(&scenario, None, Cursor::new(Vec::new()), |_| true)
        .expect_err("more than the processor can serve");
    assert!(
        error
            .to_string()
            .contains("they arrive faster than it can serve them"),
        "{error}"
    );
}
