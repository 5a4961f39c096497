//! Devices behind softirqs of Linux. No event of a usual recording says what raised a softirq, but a softirq runs right
//! behind the interrupt that raised it.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::{InterruptsView, StoreError, Table};

use crate::thresholds::{CAUSE_PERCENT, LOCAL_PERCENT, RAISED_NS, RAISED_RUNS, is_share};
use crate::{Case, Column, Evidence, Finding, Name, Subject, Unit, counted, grouped};

/// Number of the softirq that handles received packets (`include/linux/interrupt.h`).
pub(crate) const NET_RX: u64 = 3;
/// Number of the softirq that frees packets after they were sent.
const NET_TX: u64 = 2;
/// Smallest number in the table `interrupts` of an interrupt of the machine itself, such as the timer interrupt. Interrupts
/// of devices have smaller numbers.
const OF_MACHINE: u64 = 1 << 32;
/// Maximum number of routines that are kept for one CPU. More interrupts hardly run inside one softirq.
const KEPT: usize = 1024;
/// Maximum number of rows of evidence.
const SHOWN: usize = 10;

/// Interrupt of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Device {
    number: u64,
    /// Number and name, such as `irq 36 eth0`.
    name: String,
    /// Number of the softirq's runs that began right behind this interrupt.
    runs: u64,
}

/// Devices whose interrupts ran right before the runs of one softirq, and the number of all these runs.
pub(crate) struct Raisers {
    softirq: u64,
    during: Range<i64>,
    cpus: Option<Vec<u16>>,
    /// Number of runs outside of threads that ended in the range on these CPUs.
    runs: u64,
    /// Devices whose interrupts ran right before such runs, the most frequent first.
    devices: Vec<Device>,
    /// Number of runs outside of threads in the whole recording on all CPUs, and of those right behind a device's interrupt.
    all: [u64; 2],
    /// True if the recording has an interrupt of a device.
    knows_devices: bool,
}

/// Routine that ended: its start and end, and whether it is the interrupt of a device.
type Ended = (i64, i64, Option<(u64, String)>);

impl Raisers {
    /// Reads what ran before the runs of a softirq that ended in the range on these CPUs, or on all if `cpus` is `None`.
    pub(crate) fn read(
        case: &Case<'_>,
        softirq: u64,
        during: Range<i64>,
        cpus: Option<&[u16]>,
    ) -> Result<Raisers, StoreError> {
        let mut devices: FxHashMap<u64, (String, u64)> = FxHashMap::default();
        let mut raisers = Raisers {
            softirq,
            during,
            cpus: cpus.map(<[u16]>::to_vec),
            runs: 0,
            devices: Vec::new(),
            all: [0; 2],
            knows_devices: false,
        };
        let mut ended: FxHashMap<u16, Vec<Ended>> = FxHashMap::default();
        let table = case.table(Table::Interrupts)?;
        for batch in case.batches(&table, i64::MIN..i64::MAX, &COLUMNS) {
            let batch = batch?;
            let view = InterruptsView::new(&batch)?;
            for row in 0..view.len() {
                let (kind, number) = (view.kind.get(row), view.routine[row]);
                let Some(start_ns) = view.start_ns.get(row) else {
                    continue;
                };
                let (end_ns, cpu) = (view.end_ns[row], view.cpu[row]);
                let before = ended.entry(cpu).or_default();
                let device = (kind == Some("isr") && number < OF_MACHINE)
                    .then(|| (number, view.name.get(row).unwrap_or_default().to_owned()));
                raisers.knows_devices |= device.is_some();
                if kind == Some("dpc") && number == softirq {
                    let raiser = raiser(before, start_ns, end_ns);
                    raisers.all[0] += 1;
                    raisers.all[1] += u64::from(raiser.is_some());
                    let is_of_cpus = cpus.is_none_or(|cpus| cpus.contains(&cpu));
                    if is_of_cpus && raisers.during.contains(&end_ns) {
                        raisers.runs += 1;
                        if let Some((number, name)) = raiser {
                            let known = devices.entry(*number);
                            known.or_insert_with(|| (name.clone(), 0)).1 += 1;
                        }
                    }
                }
                add(before, (start_ns, end_ns, device));
            }
        }
        let devices = devices.into_iter();
        raisers.devices = devices
            .map(|(number, (name, runs))| Device { number, name, runs })
            .collect();
        raisers
            .devices
            .sort_by_key(|device| (Reverse(device.runs), device.number));
        Ok(raisers)
    }

    /// Returns the device whose interrupts ran right before most runs.
    fn device(&self) -> Option<&Device> {
        let first = self.devices.first()?;
        let is_most = is_share(first.runs as i64, self.runs as i64, CAUSE_PERCENT);
        (is_most && first.runs >= RAISED_RUNS).then_some(first)
    }

    /// Returns true if received packets probably come from programs of the same machine: on no CPU, the interrupt of a
    /// device ran right before a notable part of the softirqs. Softirqs in threads do not count, because a device needs
    /// no interrupts while the kernel asks it for packets.
    pub(crate) fn are_local(&self) -> bool {
        let [all, behind_devices] = self.all.map(|runs| runs as i64);
        self.softirq == NET_RX
            && self.knows_devices
            && self.runs >= RAISED_RUNS
            && !is_share(behind_devices, all, LOCAL_PERCENT)
    }

    /// Returns sentences about the device, or about its absence.
    fn why(&self) -> Option<String> {
        if let Some(device) = self.device() {
            return Some(format!(
                "The interrupt {} ran right before {} of {}: they serve its device.",
                Name(&device.name),
                grouped(device.runs),
                counted(self.runs, "such softirq", "such softirqs")
            ));
        }
        self.are_local().then(|| {
            "Hardly any of these softirqs ran right behind the interrupt of a device, on whatever CPU: so programs of this \
             machine probably sent the packets, over the loopback device or a virtual one such as veth."
                .to_owned()
        })
    }

    fn remedy(&self) -> Option<String> {
        if let Some(device) = self.device() {
            let number = device.number;
            let network = match self.softirq {
                NET_RX | NET_TX => {
                    ", divide the device's packets among more interrupts (ethtool -L), or let it interrupt less often \
                     (ethtool -C)"
                }
                _ => "",
            };
            return Some(format!(
                "Let other CPUs serve the device: echo LIST_OF_CPUS > /proc/irq/{number}/smp_affinity_list (irqbalance may \
                 change it again){network}."
            ));
        }
        self.are_local().then(|| {
            "Let the programs that send the packets send less, or run them on other CPUs (taskset): packets to the same \
             machine are handled on the CPU of their sender, or on the CPUs in rps_cpus of the virtual device."
                .to_owned()
        })
    }

    /// Adds the device behind the softirqs, or its absence, to a finding.
    pub(crate) fn add_to(&self, mut finding: Finding) -> Finding {
        let Some(why) = self.why() else {
            return finding;
        };
        if let Some(device) = self.device() {
            finding = finding.subjects([Subject::Routine {
                name: device.name.clone(),
            }]);
        }
        finding = finding.because(why).with(self.evidence()).doubt(
            "No event says what raised a softirq: the order of interrupts and softirqs on a CPU shows it",
        );
        if self.device().is_none() {
            finding = finding.doubt(
                "The kernel can also ask a device for packets after a time, without an interrupt (gro_flush_timeout of the device)",
            );
        }
        match self.remedy() {
            Some(remedy) => finding.remedy(remedy),
            None => finding,
        }
    }

    fn evidence(&self) -> Evidence {
        let columns = [
            Column::new("device", "interrupt right before", Unit::None),
            Column::new("runs", "softirqs", Unit::Count),
        ];
        let cpus = self.cpus.as_ref().map_or(String::new(), |cpus| {
            let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
            format!(" AND cpu IN ({})", cpus.join(", "))
        });
        let Range { start, end } = self.during;
        // A window function of the query engine cannot return columns of texts, so the names are cast.
        let query = format!(
            "SELECT device, count(*) AS runs FROM (SELECT *, CASE WHEN lag(number) OVER w < {OF_MACHINE} AND start_ns - \
             lag(end_ns) OVER w BETWEEN 0 AND {RAISED_NS} THEN lag(label) OVER w END AS device FROM (SELECT cpu, kind, routine, \
             start_ns, end_ns, CASE WHEN kind = 'isr' THEN routine END AS number, CAST(name AS VARCHAR) AS label FROM interrupts \
             WHERE start_ns IS NOT NULL) WINDOW w AS (PARTITION BY cpu ORDER BY start_ns, end_ns)) WHERE kind = 'dpc' AND \
             routine = {} AND end_ns >= {start} AND end_ns < {end}{cpus} GROUP BY device ORDER BY runs DESC, device LIMIT {SHOWN}",
            self.softirq
        );
        let others = self.runs - self.devices.iter().map(|device| device.runs).sum::<u64>();
        let devices = self.devices.iter();
        let mut rows: Vec<(Option<&str>, u64)> = devices
            .map(|device| (Some(device.name.as_str()), device.runs))
            .collect();
        rows.extend((others > 0).then_some((None, others)));
        rows.sort_by_key(|(name, runs)| (Reverse(*runs), name.is_none(), *name));
        let title = "Softirqs outside of threads, by the device's interrupt right before them";
        let evidence = Evidence::new(title, query, &columns);
        rows.into_iter()
            .take(SHOWN)
            .fold(evidence, |evidence, (name, runs)| {
                evidence.row([name.map(Into::into), Some(runs.into())])
            })
    }
}

const COLUMNS: [&str; 6] = ["start_ns", "end_ns", "cpu", "kind", "routine", "name"];

/// Returns the interrupt of a device that ended right before a softirq began, if no other routine of the CPU began between
/// them.
fn raiser(ended: &[Ended], start_ns: i64, end_ns: i64) -> Option<&(u64, String)> {
    // The starts increase, but two of them may be equal.
    let latest = ended.iter().rev();
    let earlier = latest.filter(|(start, end, _)| (*start, *end) < (start_ns, end_ns));
    let (_, end, device) = earlier
        .take(2)
        .max_by_key(|(start, end, _)| (*start, *end))?;
    device
        .as_ref()
        .filter(|_| (0..=RAISED_NS).contains(&(start_ns - end)))
}

/// Adds a routine that ended to those of its CPU. Of the routines that ran inside it, only the last one can be the last
/// before a later routine.
fn add(ended: &mut Vec<Ended>, routine: Ended) {
    let mut inside: Option<Ended> = None;
    while let Some(last) = ended.pop_if(|(start, ..)| *start >= routine.0) {
        if inside
            .as_ref()
            .is_none_or(|inside| (inside.0, inside.1) < (last.0, last.1))
        {
            inside = Some(last);
        }
    }
    ended.push(routine);
    ended.extend(inside);
    if ended.len() > KEPT {
        ended.drain(..KEPT / 2);
    }
}
