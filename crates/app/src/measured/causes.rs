//! Causes of late samples: the output of `laglab measure --why`.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "only the recorder of Linux finds causes")
)]

use std::io::{self, Write};

use explain::late::Lateness;
use serde::Serialize;
use wording::{Name, Sentence};

use super::table::Table;
use crate::output::{self, Columns, Side, counted, duration, grouped, percent, size};

/// Causes of the late samples of a measurement, and the cost of the recording.
#[derive(Debug, Serialize)]
pub(crate) struct Causes {
    /// Limit in nanoseconds. Samples with a larger latency are late.
    pub(crate) over_ns: i64,
    /// Number of samples of the pilot from which the limit was computed; `None` if the user gave the limit.
    pub(crate) pilot_samples: Option<u64>,
    /// Number of late samples.
    pub(crate) late: u64,
    /// Causes. The cause with the largest sum of latencies comes first.
    pub(crate) causes: Vec<Cause>,
    /// Explained late samples. The sample with the largest latency comes first.
    pub(crate) samples: Vec<ExplainedSample>,
    /// Cost of the recording; `None` if the user may not record events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recorder: Option<RecorderCost>,
    /// Medians of each method and setting, without and with the recorder.
    pub(crate) medians: Vec<Medians>,
    /// Events and facts that were not recorded, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_out: Vec<(String, String)>,
}

/// One cause of late samples.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cause {
    pub(crate) cause: String,
    /// Process that held the CPU; `None` if no process did, or if the process is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) process: Option<String>,
    pub(crate) samples: u64,
    /// Sum of the latencies of the samples with this cause, in nanoseconds.
    pub(crate) late_ns: i64,
    /// Share of `late_ns` in the latencies of all explained samples, from 0 to 1.
    pub(crate) share: f64,
    /// Largest latency in nanoseconds.
    pub(crate) worst_ns: i64,
    /// File with the recording around the sample with the largest latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recording: Option<String>,
}

/// Late sample with its cause and the parts of its delay.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ExplainedSample {
    pub(crate) method: String,
    pub(crate) setting: String,
    pub(crate) run: u32,
    /// Number of the sample in its run, from 0.
    pub(crate) sequence: u64,
    pub(crate) latency_ns: i64,
    /// Part of the latency, in nanoseconds, that passed before the thread had finished the earlier samples.
    pub(crate) began_late_ns: i64,
    /// Parts of the latency after `began_late_ns`; `None` if the recording does not show the thread.
    pub(crate) parts: Option<Lateness>,
    pub(crate) cause: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) process: Option<String>,
    pub(crate) sentence: String,
    /// File with the recording around the sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recording: Option<String>,
    /// Start and end of the latency after `began_late_ns`, in nanoseconds since the start of the recording.
    pub(crate) during_ns: [i64; 2],
}

/// Cost of a recording.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct RecorderCost {
    /// CPU time of the recorder's thread, in nanoseconds.
    pub(crate) cpu_ns: u64,
    /// Share of one CPU that the recorder's thread used, from 0 to 1.
    pub(crate) cpu_share: f64,
    pub(crate) records: u64,
    pub(crate) records_per_second: f64,
    pub(crate) lost: u64,
    pub(crate) bytes: u64,
    /// Size in bytes of the records that were dropped because the memory was full.
    pub(crate) dropped_bytes: u64,
}

/// Median latencies of a method and setting, in nanoseconds, without and with the recorder.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Medians {
    pub(crate) method: String,
    pub(crate) setting: String,
    /// Median in the pilot, which ran without the recorder.
    pub(crate) without_ns: Option<i64>,
    pub(crate) with_ns: Option<i64>,
}

/// Maximum number of late samples that the text describes.
const SHOWN: usize = 5;

/// Event for which the thread of a probe waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakes {
    /// Expiry of a timer.
    Timer,
    /// Arrival of a packet, or completion of a disk request.
    Other,
}

/// Returns true if a sample began late: at least half of its latency passed before it began.
fn is_begun_late(began_late_ns: i64, latency_ns: i64) -> bool {
    began_late_ns.saturating_mul(2) >= latency_ns
}

/// Returns the main cause of a sample's delay as text, and the process that held the CPU. The main cause is the largest
/// part of the delay.
pub(crate) fn main_cause(
    parts: Option<&Lateness>,
    began_late_ns: i64,
    latency_ns: i64,
    wakes: Wakes,
) -> (String, Option<String>) {
    if is_begun_late(began_late_ns, latency_ns) {
        return (
            "began late, because earlier samples were late".to_owned(),
            None,
        );
    }
    let Some(parts) = parts else {
        return ("not recorded".to_owned(), None);
    };
    let own_ns = parts.ran_ns - parts.interrupted_ns;
    let most = parts
        .ready_ns
        .max(parts.waited_ns)
        .max(own_ns)
        .max(parts.interrupted_ns)
        .max(parts.unknown_ns);
    if most == parts.ready_ns {
        let wait = parts.wait.as_ref();
        let cause = wait.and_then(|wait| wait.cause);
        let process = wait.and_then(|wait| wait.by.as_ref().map(|(name, _)| name.clone()));
        let cause = match cause {
            Some(cause) => format!("waited for a CPU ({cause})"),
            None => "waited for a CPU".to_owned(),
        };
        return (cause, process);
    }
    let cause = if most == parts.waited_ns {
        match wakes {
            Wakes::Timer => "was woken late (timer)".to_owned(),
            Wakes::Other => "waited for something other than a CPU".to_owned(),
        }
    } else if most == parts.interrupted_ns {
        match &parts.interrupted_by {
            Some(name) => format!("was interrupted ({})", Name(name)),
            None => "was interrupted".to_owned(),
        }
    } else if most == own_ns {
        "ran itself, or its virtual machine had no CPU".to_owned()
    } else {
        "not recorded".to_owned()
    };
    (Sentence::from(cause).to_string(), None)
}

impl ExplainedSample {
    /// Describes the sample and the parts of its delay in one sentence. `wakes` is the event for which the thread of
    /// the probe waited.
    pub(crate) fn in_words(&self, wakes: Wakes) -> String {
        let late = match wakes {
            Wakes::Timer => "was",
            Wakes::Other => "took",
        };
        let late_by = match wakes {
            Wakes::Timer => " late",
            Wakes::Other => "",
        };
        let mut text = format!(
            "Sample {} of run {} ({}) {late} {}{late_by}",
            grouped(self.sequence),
            self.run,
            self.method,
            duration(self.latency_ns),
        );
        let mut parts = Vec::new();
        if self.began_late_ns > 0 {
            let ns = duration(self.began_late_ns);
            parts.push(format!(
                "{ns} had passed when it began, because earlier samples were late"
            ));
        }
        match &self.parts {
            None => parts.push("the recording does not show its thread".to_owned()),
            Some(of) => {
                if of.waited_ns > 0 {
                    let until = match wakes {
                        Wakes::Timer => "until the timer woke it",
                        Wakes::Other => "waiting for something other than a CPU",
                    };
                    parts.push(format!("{} {until}", duration(of.waited_ns)));
                }
                if of.ready_ns > 0 {
                    parts.push(ready(of));
                }
                if of.interrupted_ns > 0 {
                    let by = of.interrupted_by.as_ref();
                    let by = by.map_or(String::new(), |by| format!(", mostly {}", Name(by)));
                    parts.push(format!("{} in interrupts{by}", duration(of.interrupted_ns)));
                }
                let own_ns = of.ran_ns - of.interrupted_ns;
                if own_ns > 0 {
                    parts.push(format!("{} running", duration(own_ns)));
                }
                if of.unknown_ns > 0 {
                    parts.push(format!("{} not recorded", duration(of.unknown_ns)));
                }
            }
        }
        if !parts.is_empty() {
            text += &format!(": {}", parts.join(", "));
        }
        Sentence::from(text + ".").to_string()
    }
}

/// Describes the time that the thread was ready without a CPU, and the process that held the CPU.
fn ready(lateness: &Lateness) -> String {
    let mut text = format!("{} waiting for ", duration(lateness.ready_ns));
    match &lateness.wait {
        None => text += "a CPU",
        Some(wait) => {
            text += &format!("CPU {}", wait.cpu);
            if let Some((name, id)) = &wait.by {
                text += &format!(", held by {}", Name(name));
                if let Some(id) = id {
                    text += &format!(" ({id})");
                }
            }
            if let Some(cause) = wait.cause {
                text += &format!(" ({cause})");
            }
        }
    }
    text
}

impl Causes {
    /// Stores the explained samples, and sums them by cause.
    pub(crate) fn explain_with(&mut self, mut samples: Vec<ExplainedSample>) {
        Causes::inherit(&mut samples);
        samples.sort_by_key(|sample| std::cmp::Reverse(sample.latency_ns));
        self.causes = Causes::sum_up(&samples);
        self.samples = samples;
    }

    /// Replaces the cause of each sample that began late by the cause of the previous sample, because the previous
    /// sample ended too late. So all samples of a chain have the cause of its first sample. If the previous sample is
    /// not in `samples`, the cause stays "began late".
    fn inherit(samples: &mut [ExplainedSample]) {
        let place = |sample: &ExplainedSample| {
            let series = (sample.method.clone(), sample.setting.clone(), sample.run);
            (series, sample.sequence)
        };
        samples.sort_by_cached_key(place);
        for at in 1..samples.len() {
            let (before, from) = samples.split_at_mut(at);
            let (Some(before), Some(sample)) = (before.last(), from.first_mut()) else {
                continue;
            };
            let ((series, sequence), own) = (place(before), place(sample));
            if is_begun_late(sample.began_late_ns, sample.latency_ns)
                && own == (series, sequence + 1)
            {
                sample.cause.clone_from(&before.cause);
                sample.process.clone_from(&before.process);
            }
        }
    }

    /// Sums the samples by cause and process. The cause with the largest sum of latencies comes first.
    fn sum_up(samples: &[ExplainedSample]) -> Vec<Cause> {
        let mut causes: Vec<Cause> = Vec::new();
        for sample in samples {
            let is_it =
                |cause: &&mut Cause| cause.cause == sample.cause && cause.process == sample.process;
            let cause = match causes.iter_mut().find(is_it) {
                Some(cause) => cause,
                None => {
                    causes.push(Cause {
                        cause: sample.cause.clone(),
                        process: sample.process.clone(),
                        samples: 0,
                        late_ns: 0,
                        share: 0.0,
                        worst_ns: i64::MIN,
                        recording: None,
                    });
                    let last = causes.len() - 1;
                    &mut causes[last]
                }
            };
            cause.samples += 1;
            cause.late_ns = cause.late_ns.saturating_add(sample.latency_ns);
            if sample.latency_ns > cause.worst_ns {
                cause.worst_ns = sample.latency_ns;
                cause.recording.clone_from(&sample.recording);
            }
        }
        let all: i64 = causes.iter().map(|cause| cause.late_ns).sum();
        for cause in &mut causes {
            cause.share = cause.late_ns as f64 / all.max(1) as f64;
        }
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.late_ns));
        causes
    }

    /// Returns the number of late samples and the main cause, in one sentence.
    pub(crate) fn answer(&self) -> String {
        let bound = match self.pilot_samples {
            Some(samples) => format!(
                "{}, the p99.9 of a pilot of {}",
                duration(self.over_ns),
                counted(samples, "sample", "samples")
            ),
            None => duration(self.over_ns),
        };
        let late = counted(self.late, "sample was", "samples were");
        match self.causes.first() {
            None => format!("{late} later than {bound}."),
            Some(most) => {
                let by = most.process.as_ref();
                let by = by.map_or(String::new(), |by| format!(", held by {}", Name(by)));
                let text = format!(
                    "{late} later than {bound}; {} of the delay: {}{by}.",
                    percent(most.share),
                    most.cause
                );
                Sentence::from(text).to_string()
            }
        }
    }

    /// Returns the table of causes.
    pub(super) fn table(&self) -> Table {
        let row = |cause: &Cause| {
            vec![
                cause.cause.clone(),
                cause.process.clone().unwrap_or_else(|| "-".to_owned()),
                grouped(cause.samples),
                percent(cause.share),
                duration(cause.worst_ns),
                cause.recording.clone().unwrap_or_else(|| "-".to_owned()),
            ]
        };
        Table {
            title: Some("Why samples were late".to_owned()),
            columns: vec![
                ("the thread", Side::Left),
                ("CPU held by", Side::Left),
                ("samples", Side::Right),
                ("of the delay", Side::Right),
                ("worst", Side::Right),
                ("recording", Side::Left),
            ],
            rows: self.causes.iter().map(row).collect(),
        }
    }

    /// Returns sentences about the samples with the largest latencies, the samples without an explanation, and the cost
    /// of the recording.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = (self.samples.iter().take(SHOWN))
            .map(|sample| sample.sentence.clone())
            .collect();
        let open = self.late.saturating_sub(self.samples.len() as u64);
        if open > 0 {
            remarks.push(format!(
                "{} not explained: only the latest are; give a larger --why-over.",
                counted(open, "late sample is", "late samples are")
            ));
        }
        let first = self.samples.first();
        if let Some((first, recording)) =
            first.and_then(|sample| Some((sample, sample.recording.as_ref()?)))
        {
            let [from, to] = first.during_ns.map(|ns| format!("{}", ns as f64 / 1e9));
            let thread = first.parts.as_ref();
            let thread = thread.map(|parts| format!(" --thread {}", parts.thread_id));
            remarks.push(format!(
                "More about the latest one: laglab explain {recording}{} --from {from} --to {to}",
                thread.unwrap_or_default()
            ));
        }
        if let Some(cost) = &self.recorder {
            let lost = match cost.lost {
                0 => "none lost".to_owned(),
                lost => format!("{} lost", grouped(lost)),
            };
            remarks.push(format!(
                "The recording took {} of a CPU for the recorder: {} records per second, {lost}, {}.",
                percent(cost.cpu_share),
                grouped(cost.records_per_second.round() as u64),
                size(cost.bytes)
            ));
        }
        if let Some(dropped) = self
            .recorder
            .map(|cost| cost.dropped_bytes)
            .filter(|it| *it > 0)
        {
            remarks.push(format!(
                "{} of events were dropped because the memory was full; give a larger --why-over.",
                size(dropped)
            ));
        }
        for of in &self.medians {
            if let (Some(without), Some(with)) = (of.without_ns, of.with_ns) {
                remarks.push(format!(
                    "{} ({}): median {} in the pilot without the recorder, {} with it.",
                    of.method,
                    of.setting,
                    duration(without),
                    duration(with)
                ));
            }
        }
        for (event, why) in &self.left_out {
            remarks.push(format!("Not recorded: {event}: {why}."));
        }
        remarks
    }
}

/// Writes the causes of late samples.
pub(super) fn write(causes: &Causes, out: &mut dyn Write) -> io::Result<()> {
    let table = causes.table();
    output::heading(out, table.title.as_deref().unwrap_or_default())?;
    output::paragraph(out, &causes.answer())?;
    if !table.rows.is_empty() {
        let (headings, sides): (Vec<_>, Vec<_>) = table.columns.iter().copied().unzip();
        let mut columns = Columns::new(&sides);
        columns.row(headings);
        table.rows.into_iter().for_each(|row| columns.row(row));
        columns.write(out)?;
    }
    for remark in causes.remarks() {
        output::paragraph(out, &remark)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use explain::late::CpuWait;

    use super::*;

    fn parts() -> Lateness {
        Lateness {
            thread_id: 7,
            waited_ns: 60_000,
            ready_ns: 20_816_000,
            ran_ns: 4_000,
            wait: Some(CpuWait {
                ready_ns: 20_816_000,
                cpu: 1,
                cause: Some("higher priority"),
                by: Some(("kworker/1:1".to_owned(), Some(57))),
                because: "threads of higher priority used 100 %".to_owned().into(),
            }),
            ..Lateness::default()
        }
    }

    fn sample(latency_ns: i64, began_late_ns: i64, parts: Option<Lateness>) -> ExplainedSample {
        let (cause, process) = main_cause(parts.as_ref(), began_late_ns, latency_ns, Wakes::Timer);
        ExplainedSample {
            method: "nanosleep".to_owned(),
            setting: "usual".to_owned(),
            run: 2,
            sequence: 5_123,
            latency_ns,
            began_late_ns,
            parts,
            cause,
            process,
            sentence: String::new(),
            recording: Some(format!("late-{latency_ns}.data")),
            during_ns: [0, latency_ns],
        }
    }

    #[test]
    fn a_sample_is_described_by_its_parts() {
        let late = sample(20_880_000, 0, Some(parts()));
        assert_eq!(
            late.in_words(Wakes::Timer),
            "Sample 5,123 of run 2 (nanosleep) was 20.9 ms late: 60.0 µs until the timer woke it, 20.8 ms waiting \
             for CPU 1, held by kworker/1:1 (57) (higher priority), 4.0 µs running."
        );
        assert_eq!(late.process.as_deref(), Some("kworker/1:1"));
    }

    #[test]
    fn the_largest_part_is_the_cause() {
        let timer = Lateness {
            waited_ns: 5_000,
            ready_ns: 10,
            ..Lateness::default()
        };
        assert_eq!(
            sample(5_010, 0, Some(timer)).cause,
            "was woken late (timer)"
        );
        let softirq = Lateness {
            ran_ns: 9_000,
            interrupted_ns: 8_000,
            interrupted_by: Some("NET_RX".to_owned()),
            ..Lateness::default()
        };
        assert_eq!(
            sample(9_000, 0, Some(softirq)).cause,
            "was interrupted (NET_RX)"
        );
        assert_eq!(sample(9_000, 0, None).cause, "not recorded");
        let follower = sample(9_000, 8_000, Some(parts()));
        assert_eq!(follower.process, None);
        assert!(follower.cause.starts_with("began late"));
    }

    #[test]
    fn samples_that_began_late_have_the_cause_of_the_first_of_them() {
        let at = |sequence: u64, began_late_ns: i64, parts| ExplainedSample {
            sequence,
            ..sample(9_000 - began_late_ns / 10, began_late_ns, parts)
        };
        // The samples 7 and 8 follow the late sample 6. The sample before sample 20 was not explained.
        let mut samples = vec![
            at(20, 8_000, None),
            at(8, 7_000, None),
            at(6, 0, Some(parts())),
            at(7, 8_000, None),
            at(9, 0, None),
        ];
        Causes::inherit(&mut samples);
        let causes: Vec<(u64, Option<&str>)> = (samples.iter())
            .map(|sample| (sample.sequence, sample.process.as_deref()))
            .collect();
        let hog = Some("kworker/1:1");
        assert_eq!(
            causes,
            [(6, hog), (7, hog), (8, hog), (9, None), (20, None)]
        );
        assert!(samples[1].cause.starts_with("waited for a CPU"));
        assert!(samples[4].cause.starts_with("began late"));
    }

    #[test]
    fn causes_are_summed_up_by_process() {
        let samples = [
            sample(10, 0, Some(parts())),
            sample(30, 0, Some(parts())),
            sample(5, 0, None),
        ];
        let causes = Causes::sum_up(&samples);
        assert_eq!(causes.len(), 2);
        let first = &causes[0];
        assert_eq!((first.samples, first.late_ns, first.worst_ns), (2, 40, 30));
        assert_eq!(first.recording.as_deref(), Some("late-30.data"));
        assert!((first.share - 40.0 / 45.0).abs() < 1e-9);
    }
}
