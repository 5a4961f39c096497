//! Random scenarios, with facts about their traces that follow from their construction.

use std::collections::BTreeMap;
use std::fmt::Write;

use testdata::Rng;

/// Text of a scenario, and properties that its trace must have.
pub(crate) struct Made {
    pub(crate) text: String,
    pub(crate) cpus: usize,
    pub(crate) clock_hz: u64,
    /// Threads by their unique names.
    pub(crate) threads: BTreeMap<String, Thread>,
    /// True for each group that has a cap.
    pub(crate) capped: Vec<bool>,
    /// Maximum time in nanoseconds until an idle processor runs a ready thread, without the time of DPCs. It is twice
    /// the sum of four times: the inter-processor interrupt, the waking of the processor, the unlogged work of clock
    /// interrupts, and a reserve of 5 µs. The sum contains the work of one clock interrupt per thread, because all
    /// threads can cause this work at the same moment. The sum is doubled, because the thread can be moved to another
    /// processor during this time.
    pub(crate) slack_ns: i64,
}

/// Properties of a thread in the scenario.
pub(crate) struct Thread {
    pub(crate) affinity: Vec<u16>,
    pub(crate) ideal: u16,
    pub(crate) priority: u8,
    pub(crate) group: Option<usize>,
}

const RELEASES: [&str; 4] = ["7", "10-22H2", "11-23H2", "11-25H2"];
const CLOCKS: [u64; 6] = [
    10_000_000,
    3_579_545,
    1_193_182,
    24_000_000,
    2_999_999_999,
    1_000_003,
];
const CPUS: [(usize, usize); 8] = [
    (1, 1),
    (2, 1),
    (3, 1),
    (4, 2),
    (8, 1),
    (12, 2),
    (24, 2),
    (64, 4),
];

impl Made {
    /// Returns the scenario with this number. Scenarios with consecutive numbers differ in size.
    pub(crate) fn new(number: u64) -> Made {
        let mut maker = Maker {
            rng: Rng(number),
            cpus: 0,
            made: Made {
                text: String::new(),
                cpus: 0,
                clock_hz: CLOCKS[number as usize % CLOCKS.len()],
                threads: BTreeMap::new(),
                capped: Vec::new(),
                slack_ns: 0,
            },
        };
        maker.make(number);
        maker.made
    }
}

struct Maker {
    rng: Rng,
    cpus: usize,
    made: Made,
}

impl Maker {
    fn say(&mut self, line: &str) {
        writeln!(self.made.text, "{line}").expect("text can be written");
    }

    fn below(&mut self, limit: usize) -> usize {
        self.rng.below(limit)
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.rng.below(of.len())]
    }

    /// Returns the text of a random duration or distribution. Its mean is at most `us` µs.
    fn amount(&mut self, us: usize) -> String {
        let mean = 1 + self.below(us);
        match self.below(5) {
            0 => format!("exp({mean}us)"),
            1 => format!("uniform({}us, {mean}us)", mean / 2),
            2 => format!("normal({mean}us, {}us)", mean / 3),
            3 => format!("lognormal({mean}us, 0.7)"),
            _ => format!("{mean}us"),
        }
    }

    fn make(&mut self, number: u64) {
        let (cpus, cores) = CPUS[number as usize % CPUS.len()];
        let threads_per_core = if cpus % (2 * cores) == 0 && self.below(2) == 0 {
            2
        } else {
            1
        };
        self.cpus = cpus;
        self.made.cpus = cpus;
        // Scenarios with few processors run for a longer time, so that starvation boosts occur.
        let duration_ms = if cpus <= 2 { 6_500 } else { 1_300 };
        let windows = RELEASES[(number as usize / 3) % RELEASES.len()];
        let (ipi_us, wake_us, expiry_us) = (
            1 + self.below(4),
            self.pick(&[0, 30, 100]),
            1 + self.below(3),
        );
        self.say(&format!(
            "title = \"made {number}\"\nduration = \"{duration_ms}ms\"\n\
             [machine]\nwindows = \"{windows}\"\nprocessors = {cpus}\nnodes = {cores}\n\
             threads_per_core = {threads_per_core}\nclock_hz = {}\n\
             c_states = [{{ residency = \"0s\", latency = \"0s\" }}, \
             {{ residency = \"100us\", latency = \"{wake_us}us\" }}]",
            self.made.clock_hz
        ));
        let separation = self.pick(&[2, 0x14, 0x18, 0x26, 0x28]);
        self.say(&format!("win32_priority_separation = {separation}"));
        self.say(&format!(
            "[scheduler]\nipi_delay = \"{ipi_us}us\"\ntimer_expiry = \"{expiry_us}us\"\n\
             generation = \"40ms\"\nrank_step = \"1ms\""
        ));
        self.devices();
        self.groups();
        self.processes();
        self.actions(duration_ms);
        let threads = self.made.threads.len();
        self.made.slack_ns = 2_000 * (ipi_us + wake_us + expiry_us * (threads + 2) + 5) as i64;
    }

    fn devices(&mut self) {
        for n in 0..self.below(4) {
            let (every, isr, dpc) = (400 + self.below(4_000), self.amount(8), self.amount(150));
            let cpu = self.below(self.cpus);
            let importance = self.pick(&["low", "medium", "medium-high", "high"]);
            let line = self.below(2) == 0;
            self.say(&format!(
                "[[device]]\nname = \"device {n}\"\nevery = \"exp({every}us)\"\ncpus = [{cpu}, 0]\n\
                 line = {line}\nimportance = \"{importance}\"\n\
                 isr = {{ in = [\"dev{n}.sys!Isr\"], cost = \"{isr}\" }}\n\
                 dpc = {{ in = [\"dev{n}.sys!Inner\", \"dev{n}.sys!Dpc\"], cost = \"{dpc}\" }}"
            ));
            if self.below(2) == 0 {
                let target = self.below(self.cpus);
                self.say(&format!("target = {target}"));
            }
            if n == 0 {
                self.say("sets = \"done\"");
            }
        }
        self.say(
            "[[disk]]\nnumber = 0\nqueue_depth = 2\nservice = \"exp(700us)\"\n\
             isr = { in = [\"storport.sys!Isr\"], cost = \"4us\" }\n\
             dpc = { in = [\"storport.sys!Dpc\"], cost = \"15us\" }\n\
             [[nic]]\nname = \"net\"\nmoderation = \"50us\"\n\
             isr = { in = [\"nic.sys!Isr\"], cost = \"3us\" }\n\
             [[nic.layer]]\nin = [\"nic.sys!Dpc\"]\nper_dpc = \"10us\"\n\
             [[nic.layer]]\nin = [\"tcpip.sys!Receive\"]\nper_packet = \"exp(4us)\"\n\
             [[flow]]\nname = \"stream\"\nnic = \"net\"\nevery = \"exp(900us)\"\npeers = 40\n\
             [[flow]]\nname = \"pings\"\nnic = \"net\"\necho = true\ndelay = \"exp(1ms)\"\nloss = \"5%\"\nsend_cost = \"8us\"",
        );
    }

    fn groups(&mut self) {
        for n in 0..self.below(3) {
            let (bias, weight, capped) = (self.below(4), 1 + self.below(9), self.below(3) == 0);
            self.say(&format!(
                "[[group]]\nname = \"group {n}\"\nbias = {bias}\nweight = {weight}"
            ));
            if capped {
                self.say("rate_cap = \"20%\"");
            }
            self.made.capped.push(capped);
        }
    }

    fn processes(&mut self) {
        let processes = 2 + self.below(4);
        for p in 0..processes {
            let groups = self.made.capped.len();
            // The first process never has a group.
            let group = (p > 0 && groups > 0 && self.below(2) == 0).then(|| self.below(groups));
            let (class, base) = self.pick(&[
                ("idle", 4),
                ("below-normal", 6),
                ("normal", 8),
                ("high", 13),
                ("realtime", 24),
            ]);
            self.say(&format!(
                "[[process]]\nname = \"p{p}.exe\"\nclass = \"{class}\"\nfocus = {}",
                p == 1
            ));
            if let Some(group) = group {
                self.say(&format!("group = \"group {group}\""));
            }
            for _ in 0..1 + self.below(4 + self.cpus.min(24) / 2) {
                let program = self.program(p == 0);
                self.thread(base, group, &program);
            }
            if p == 0 {
                for program in PARTNERS {
                    self.thread(base, group, program);
                }
            }
        }
    }

    fn thread(&mut self, base: u8, group: Option<usize>, program: &str) {
        let name = format!("t{}", self.made.threads.len());
        let priority = match self.below(3) {
            0 => 1 + self.below(15) as u8,
            _ => base,
        };
        let affinity: Vec<u16> = match self.below(3) {
            0 => {
                let first = self.below(self.cpus) as u16;
                let further = self.below(self.cpus) as u16;
                if first == further {
                    vec![first]
                } else {
                    vec![first, further]
                }
            }
            _ => (0..self.cpus as u16).collect(),
        };
        let wished = self.below(self.cpus) as u16;
        self.say(&format!(
            "[[process.thread]]\nname = \"{name}\"\npriority = {priority}\naffinity = {affinity:?}\n\
             ideal = {wished}\nwatch = {}\nprogram = [{program}]",
            self.made.threads.len().is_multiple_of(4)
        ));
        // If a thread may not use the ideal processor that the scenario requests, its ideal
        // processor is the first one that it may use.
        let ideal = if affinity.contains(&wished) {
            wished
        } else {
            affinity.iter().copied().min().expect("not empty")
        };
        self.made.threads.insert(
            name,
            Thread {
                affinity,
                ideal,
                priority,
                group,
            },
        );
    }

    /// Returns a program that never ends.
    fn program(&mut self, may_freeze: bool) -> String {
        let mut steps = Vec::new();
        for _ in 0..1 + self.below(5) {
            let run = self.amount(4_000);
            steps.push(match self.below(if may_freeze { 16 } else { 14 }) {
                0..4 => format!("{{ run = \"{run}\", in = [\"app.exe!Work\"] }}"),
                4 | 5 => format!("{{ sleep = \"{}\", measure = \"nap\" }}", self.amount(20_000)),
                6 => format!("{{ set = \"e{}\", boost = 2 }}", self.below(2)),
                7 => format!(
                    "{{ wait = \"e{}\", timeout = \"{}\" }}",
                    self.below(2),
                    self.amount(9_000)
                ),
                8 => format!("{{ acquire = \"lock\" }}, {{ run = \"{run}\" }}, {{ release = \"lock\" }}"),
                9 => "{ read = \"64KiB\", file = \"C:\\\\data\" }".to_owned(),
                10 => "{ fault = \"4KiB\", file = \"C:\\\\app.exe\" }".to_owned(),
                11 => "{ yield = true }".to_owned(),
                12 => "{ send = \"pings\" }, { run = \"5us\" }".to_owned(),
                13 => format!("{{ priority = {} }}", 1 + self.below(20)),
                14 => "{ resolution = \"1ms\" }".to_owned(),
                _ => "{ freeze = \"p1.exe\" }, { sleep = \"8ms\" }, { thaw = \"p1.exe\" }, { sleep = \"30ms\" }"
                    .to_owned(),
            });
        }
        // Each program sleeps at times, so that other threads can run. Some programs sleep rarely.
        let rest = self.pick(&["1ms", "exp(10ms)", "40ms"]);
        let run = self.pick(&["100us", "exp(2ms)", "60ms"]);
        format!(
            "{{ forever = [{}, {{ run = \"{run}\" }}, {{ sleep = \"{rest}\" }}] }}",
            steps.join(", ")
        )
    }

    fn actions(&mut self, duration_ms: usize) {
        let length = duration_ms / 10;
        for (at, what) in [
            (1, "focus = \"p0.exe\""),
            (2, "key = 65\nevery = \"70ms\"\ntimes = 9"),
            (3, "background = \"p1.exe\""),
            (4, "suspend = \"50ms\""),
            (5, "foreground = \"p1.exe\""),
            (6, "focus = \"p1.exe\""),
            (7, "set = \"e0\""),
            (7, "mark = \"seven\""),
        ] {
            if self.below(3) > 0 {
                let moment = at * length + self.below(length);
                self.say(&format!("[[at]]\ntime = \"{moment}ms\"\n{what}"));
            }
        }
        self.say(&format!(
            "[[window]]\nname = \"middle\"\nfrom = \"{length}ms\"\nto = \"{}ms\"",
            4 * length
        ));
    }
}

/// Programs of threads that set, and wait for, every object that other programs may name.
const PARTNERS: [&str; 6] = [
    "{ forever = [{ wait = \"e0\" }, { run = \"exp(300us)\" }] }",
    "{ forever = [{ wait = \"e1\", reason = \"WrQueue\" }, { run = \"50us\" }, { set = \"e0\" }] }",
    "{ forever = [{ sleep = \"exp(5ms)\" }, { set = \"e1\" }, { set = \"done\" }] }",
    "{ forever = [{ wait = \"done\" }, { run = \"20us\" }, { acquire = \"lock\" }, { run = \"1ms\" }, { release = \"lock\" }] }",
    "{ forever = [{ receive = \"stream\" }, { run = \"30us\" }] }",
    "{ forever = [{ message = true }, { run = \"400us\" }, { receive = \"pings\" }] }",
];
