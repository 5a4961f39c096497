//! Pairs of simulations, before and after a true change, and the predictions of the change from the first one. The
//! truth is the second trace. The same code extracts its numbers, but does not replay them.
#![allow(dead_code, reason = "each test uses a part")]

use std::path::PathBuf;

use replay::{Bar, Change, Metric, Prediction, RecordedWorkload, Refusal, Scope, extract, predict};
use simulated::Simulated;
use tables::{Cache, Options};

/// Machine on which programs compete.
pub(crate) const OFFICE: &str = include_str!("office.toml");

/// Scenario, with settings before and after a change.
#[derive(Debug)]
pub(crate) struct Pair {
    /// Name of the scenario.
    pub(crate) scenario: &'static str,
    /// Texts of the scenario before and after the change.
    pub(crate) texts: [String; 2],
    /// Settings before and after the change.
    pub(crate) settings: [Vec<String>; 2],
    /// Change, as a user writes it.
    pub(crate) change: String,
    /// Seed of both simulations.
    pub(crate) seed: u64,
}

/// Predicted number with its truth.
#[derive(Debug)]
pub(crate) struct Judged {
    /// Process.
    pub(crate) process: String,
    /// Metric.
    pub(crate) metric: Metric,
    /// Numbers in nanoseconds.
    pub(crate) recorded_ns: f64,
    pub(crate) replayed_ns: f64,
    pub(crate) changed_ns: f64,
    pub(crate) predicted_ns: f64,
    pub(crate) true_ns: f64,
    /// Difference that does not count.
    pub(crate) floor_ns: f64,
    /// True if the output states an effect.
    pub(crate) is_stated: bool,
    /// Error bar of the prediction.
    pub(crate) bar: Bar,
    /// True if the prediction is a bound.
    pub(crate) is_bound: bool,
}

impl Judged {
    /// Returns the logarithm of the ratio of prediction and truth.
    pub(crate) fn error(&self) -> f64 {
        distance(self.predicted_ns, self.true_ns, self.floor_ns)
    }

    /// Returns the logarithm of the ratio of the record and the truth.
    pub(crate) fn effect(&self) -> f64 {
        distance(self.recorded_ns, self.true_ns, self.floor_ns)
    }

    /// Returns true if the change moves the number, or is predicted to move it, by more than the difference that does
    /// not count.
    pub(crate) fn moves(&self) -> bool {
        [self.true_ns, self.predicted_ns]
            .iter()
            .any(|ns| (ns - self.recorded_ns).abs() > self.floor_ns)
    }

    /// Returns true if the bar has the truth. For a bound: if the truth is between the bar and the record.
    pub(crate) fn is_inside(&self) -> bool {
        let Bar {
            low_ns, high_ns, ..
        } = self.bar;
        if self.is_bound {
            (low_ns.min(self.recorded_ns)..=high_ns.max(self.recorded_ns)).contains(&self.true_ns)
        } else {
            (low_ns..=high_ns).contains(&self.true_ns)
        }
    }
}

/// Returns the distance of two durations as the logarithm of their ratio. Differences below the floor do not count.
pub(crate) fn distance(a: f64, b: f64, floor_ns: f64) -> f64 {
    if (a - b).abs() < floor_ns {
        0.0
    } else {
        (a.max(floor_ns) / b.max(floor_ns)).ln().abs()
    }
}

/// Extracts the workload of a simulation.
pub(crate) fn workload(simulated: &Simulated) -> Result<RecordedWorkload, Refusal> {
    let store =
        imports::open_store(&[PathBuf::from(&simulated.trace)], Cache::Off).expect("a trace");
    extract(&store, None, Options::default()).expect("tables")
}

/// Simulates a scenario and extracts its workload.
pub(crate) fn record(name: &str, text: &str, settings: &[String]) -> RecordedWorkload {
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let simulated = Simulated::of_text(name, text, &settings);
    workload(&simulated).unwrap_or_else(|refusal| panic!("{name}: {refusal}"))
}

/// Predicts changes for all processes.
pub(crate) fn predicted(
    recorded: &RecordedWorkload,
    changes: &[&str],
    replays: usize,
) -> Prediction {
    let parse = |text: &&str| text.parse::<Change>().expect("a change");
    let changes: Vec<Change> = changes.iter().map(parse).collect();
    predict(recorded, &changes, &Scope::default(), replays, &|| true).expect("a prediction")
}

impl Pair {
    /// Predicts the change, and compares the numbers of each process with the truth. Also returns the number of
    /// processes for which nothing is predicted.
    pub(crate) fn judge(&self, replays: usize) -> (Vec<Judged>, usize) {
        let [before, after] = [0, 1].map(|n| {
            let mut settings = self.settings[n].clone();
            settings.push(format!("seed={}", self.seed));
            record(self.scenario, &self.texts[n], &settings)
        });
        let prediction = predicted(&before, &[&self.change], replays);
        let truth = predicted(&after, &[], 0);
        let mut judged = Vec::new();
        let mut refused = 0;
        for row in prediction.rows.iter().filter(|row| row.thread_id.is_none()) {
            if row.refused.is_some() {
                refused += 1;
                continue;
            }
            let twin = truth.rows.iter().find(|of| {
                of.thread_id.is_none()
                    && (&of.process, of.process_id) == (&row.process, row.process_id)
            });
            let Some(twin) = twin else { continue };
            for metric in Metric::ALL {
                let (Some(of), Some(true_ns)) = (row.get(metric), twin.recorded(metric)) else {
                    continue;
                };
                judged.push(Judged {
                    process: row.process.clone().unwrap_or_default(),
                    metric,
                    recorded_ns: of.recorded_ns,
                    replayed_ns: of.replayed_ns,
                    changed_ns: of.changed_ns,
                    predicted_ns: of.predicted_ns,
                    true_ns,
                    floor_ns: row.floor_ns(metric),
                    is_stated: of.differs(),
                    bar: of.bar,
                    is_bound: prediction.is_bound,
                });
            }
        }
        (judged, refused)
    }
}

/// Returns the text of a shipped scenario.
pub(crate) fn shipped(name: &str) -> &'static str {
    sim::shipped::text(name).expect("a shipped scenario")
}

/// Returns all pairs of a seed.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(crate) fn all(seed: u64) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mut add =
        |scenario: &'static str, texts: [&str; 2], settings: [&[&str]; 3], change: &str| {
            let [both, before, after] = settings;
            let of = |own: &[&str]| {
                [both, own]
                    .concat()
                    .into_iter()
                    .map(str::to_owned)
                    .collect()
            };
            pairs.push(Pair {
                scenario,
                texts: texts.map(str::to_owned),
                settings: [of(before), of(after)],
                change: change.to_owned(),
                seed,
            });
        };
    // The focus changes, so that a recording has it.
    let quanta = shipped("foreground-boost")
        .replace("[process.\"winword.exe\"]\nfocus = false\n", "")
        .replace(
            "name = \"game.exe\"\nfocus = true\n",
            "name = \"game.exe\"\n",
        )
        + "\n[[at]]\ntime = \"2ms\"\nfocus = \"game.exe\"\n";
    for (from, to) in [
        (0x2, 0x28),
        (0x2, 0x14),
        (0x28, 0x2),
        (0x28, 0x14),
        (0x14, 0x2),
        (0x14, 0x28),
    ] {
        let set = |value: u32| format!("machine.win32_priority_separation={value}");
        let settings: [&[&str]; 3] = [&["duration=3s"], &[&set(from)], &[&set(to)]];
        add(
            "foreground-boost",
            [&quanta; 2],
            settings,
            &format!("priority-separation={to:#x}"),
        );
    }
    let load = shipped("load");
    let short = &["duration=0.25s"][..];
    for (process, class) in [
        ("game.exe", "below-normal"),
        ("game.exe", "high"),
        ("cl.exe", "normal"),
    ] {
        let after = format!("process.\"{process}\".class={class}");
        let change = format!("priority:{process}={class}");
        add(
            "load",
            [load; 2],
            [&["duration=0.25s", "machine.processors=12"], &[], &[&after]],
            &change,
        );
    }
    for (factor, service) in [
        ("0.5", "lognormal(45us, 0.4)"),
        ("0.1", "lognormal(9us, 0.4)"),
    ] {
        let after = format!("disk.0.service={service}");
        add(
            "load",
            [load; 2],
            [short, &[], &[&after]],
            &format!("disk:{factor}x"),
        );
    }
    // A third of the seeds has the rules of a recent build.
    let windows = if seed.is_multiple_of(3) {
        "machine.windows=11-25H2"
    } else {
        "machine.windows=10-22H2"
    };
    let both = &[windows][..];
    for (process, class) in [
        ("game.exe", "above-normal"),
        ("game.exe", "high"),
        ("build.exe", "below-normal"),
        ("backup.exe", "normal"),
    ] {
        let after = format!("process.\"{process}\".class={class}");
        let change = format!("priority:{process}={class}");
        add("office", [OFFICE; 2], [both, &[], &[&after]], &change);
    }
    let pinned = "process.\"build.exe\".thread.compile.affinity=[0,1,2,3]";
    add(
        "office",
        [OFFICE; 2],
        [both, &[], &[pinned]],
        "affinity:build.exe=0-3",
    );
    add(
        "office",
        [OFFICE; 2],
        [both, &[pinned], &[]],
        "affinity:build.exe=0-7",
    );
    let costs = |isr: &str, dpc: &str| {
        [
            format!("device.raid.isr.cost={isr}"),
            format!("device.raid.dpc.cost={dpc}"),
        ]
    };
    let none = costs("0us", "0us");
    add(
        "office",
        [OFFICE; 2],
        [both, &[], &[&none[0], &none[1]]],
        "remove:raid.sys",
    );
    let half = costs("2500ns", "lognormal(80us, 0.4)");
    add(
        "office",
        [OFFICE; 2],
        [both, &[], &[&half[0], &half[1]]],
        "dpc:raid.sys*0.5",
    );
    add(
        "office",
        [OFFICE; 2],
        [
            both,
            &[],
            &[
                "disk.0.service=lognormal(45us, 0.4)",
                "disk.0.bytes_per_second=4GB",
            ],
        ],
        "disk:0.5x",
    );
    // The programs of a group in the background.
    let group = "\n[[group]]\nname = \"Build\"\nbias = 2\nbackground = true\n";
    let ranked = OFFICE.replace(
        "name = \"build.exe\"\n",
        "name = \"build.exe\"\ngroup = \"Build\"\n",
    ) + group;
    add("office", [&ranked, OFFICE], [both, &[], &[]], "rank:off");
    pairs
}
