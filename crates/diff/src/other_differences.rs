//! Differences between the recorded machines and between the recordings, in addition to the measured
//! differences.

use std::collections::{BTreeMap, BTreeSet};

use explain::{Reader, Subject};
use serde::Serialize;
use tables::{ImagesView, StoreError, Table, module_name};
use wording::{Name, Sentence, counted, listed};

use crate::{Kind, Recording};

/// Differences between the machines and between the recordings.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OtherDifferences {
    /// Facts about the machines and the recordings whose values differ.
    pub facts: Vec<Difference>,
    /// Drivers that were added or removed, or that have another version.
    pub drivers: Vec<Driver>,
    /// Kinds of rows that only the recording before the change has. They are not compared.
    pub recorded_before_only: Vec<Kind>,
    /// Kinds of rows that only the recording after the change has. They are not compared.
    pub recorded_after_only: Vec<Kind>,
    /// True if only one recording has DPCs or ISRs. In the other recording, the time of DPCs or ISRs is part of the CPU
    /// time of threads, so the CPU time of threads is not compared.
    pub own_time_unknown: bool,
}

/// Fact whose values differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Name of the fact.
    pub fact: &'static str,
    /// Value before the change; `None` if unknown.
    pub before: Option<String>,
    /// Value after the change; `None` if unknown.
    pub after: Option<String>,
}

/// Driver whose versions differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Driver {
    /// File name of the driver.
    pub name: String,
    /// Version before the change; `None` if the driver was not loaded.
    pub before: Option<String>,
    /// Version after the change; `None` if the driver was not loaded.
    pub after: Option<String>,
}

/// Name and version of each driver of a recording. The keys are driver names in lower case.
#[derive(Debug, Default)]
pub(crate) struct Drivers(BTreeMap<String, (String, String)>);

impl Drivers {
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Drivers, StoreError> {
        let table = reader.table(Table::Images)?;
        let mut drivers = Drivers::default();
        let columns = [
            "path",
            "original_file_name",
            "file_version",
            "time_date_stamp",
        ];
        for batch in reader.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let images = ImagesView::new(&batch)?;
            for row in 0..images.len() {
                let name = module_name(images.path.get(row), images.original_file_name.get(row));
                let Some(name) = name.filter(|name| name.to_lowercase().ends_with(".sys")) else {
                    continue;
                };
                let linked = |stamp| format!("link time {stamp:08x}");
                let version = match images.file_version.get(row) {
                    Some(version) => version.to_owned(),
                    None => (images.time_date_stamp.get(row)).map_or("unknown".into(), linked),
                };
                drivers
                    .0
                    .insert(name.to_lowercase(), (name.to_owned(), version));
            }
        }
        Ok(drivers)
    }
}

/// Ratio of the longer recording to the shorter one. From this ratio on, the lengths are listed as a difference.
const LENGTHS: f64 = 1.1;

impl OtherDifferences {
    /// Returns a sentence about facts and drivers that differ and may be the reason for a change. Drivers in `except`
    /// are left out. Returns `None` if nothing else differs.
    pub fn other_reasons(&self, except: &[&Subject]) -> Option<Sentence> {
        /// Maximum number of names.
        const NAMED: usize = 6;
        let is_except = |name: &str| {
            except.iter().any(|subject| match subject {
                Subject::Module { name: other } => other.eq_ignore_ascii_case(name),
                _ => false,
            })
        };
        let drivers = self.drivers.iter().map(|it| it.name.as_str());
        let drivers = drivers.filter(|name| !is_except(name));
        let facts = self.facts.iter().map(|it| it.fact.to_owned());
        let mut names: Vec<String> = facts
            .chain(drivers.map(|name| Name(name).to_string()))
            .collect();
        let more = names.len().saturating_sub(NAMED) as u64;
        names.truncate(NAMED);
        names.extend((more > 0).then(|| counted(more, "more thing", "more things")));
        (!names.is_empty()).then(|| {
            let text = "Other things differ, too, and may be the reason";
            format!("{text}: {}", listed(names)).into()
        })
    }

    pub(crate) fn new(before: &Recording, after: &Recording) -> OtherDifferences {
        let (old, new) = (&before.info, &after.info);
        let mut facts = Vec::new();
        let mut fact = |fact, before: Option<String>, after: Option<String>| {
            if before != after {
                facts.push(Difference {
                    fact,
                    before,
                    after,
                });
            }
        };
        let text = |number: Option<u64>| number.map(|number| number.to_string());
        fact("Windows", Some(old.system.name()), Some(new.system.name()));
        fact(
            "edition",
            old.system.product.clone(),
            new.system.product.clone(),
        );
        fact(
            "computer",
            old.system.computer.clone(),
            new.system.computer.clone(),
        );
        fact("BIOS", old.system.bios.clone(), new.system.bios.clone());
        fact("processor", old.system.cpu.clone(), new.system.cpu.clone());
        let mhz = |mhz: Option<u32>| text(mhz.map(u64::from));
        fact("MHz", mhz(old.system.cpu_mhz), mhz(new.system.cpu_mhz));
        fact(
            "MiB of memory",
            text(old.system.memory_mib),
            text(new.system.memory_mib),
        );
        let cpus = |cpus: Option<u32>| text(cpus.map(u64::from));
        fact("CPUs", cpus(old.cpus.stated), cpus(new.cpus.stated));
        let lost = |lost: u64| text(Some(lost));
        fact(
            "lost events",
            lost(old.damage.events_lost),
            lost(new.damage.events_lost),
        );
        let flags = |flags: &[String], others: &[String]| {
            let flags: Vec<&str> = (flags.iter())
                .filter(|flag| !others.contains(flag))
                .map(String::as_str)
                .collect();
            (!flags.is_empty()).then(|| flags.join(", "))
        };
        if !old.kernel_flags.is_empty() && !new.kernel_flags.is_empty() {
            fact(
                "enabled only there",
                flags(&old.kernel_flags, &new.kernel_flags),
                flags(&new.kernel_flags, &old.kernel_flags),
            );
        }
        let marks = |recording: &Recording| {
            let marks = recording.marked.keys().map(u8::to_string);
            let marks: Vec<String> = marks.collect();
            (!marks.is_empty()).then(|| marks.join(", "))
        };
        if !before.marked.is_empty() && !after.marked.is_empty() {
            fact("marks of sent packets (DSCP)", marks(before), marks(after));
        }
        let ratio = before.seconds / after.seconds;
        if !(1.0 / LENGTHS..=LENGTHS).contains(&ratio) {
            let seconds = |recording: &Recording| {
                Some(wording::duration((recording.seconds * 1e9).round() as i64))
            };
            fact("length", seconds(before), seconds(after));
        }
        let only = |one: &Recording, other: &Recording| -> Vec<Kind> {
            one.recorded.difference(&other.recorded).copied().collect()
        };
        let is_on_one_side =
            |kind: &Kind| before.recorded.contains(kind) != after.recorded.contains(kind);
        OtherDifferences {
            facts,
            drivers: drivers(&before.drivers, &after.drivers),
            recorded_before_only: only(before, after),
            recorded_after_only: only(after, before),
            own_time_unknown: [Kind::Dpc, Kind::Isr].iter().any(is_on_one_side),
        }
    }
}

fn drivers(before: &Drivers, after: &Drivers) -> Vec<Driver> {
    // If one side has no images, its drivers are unknown.
    if before.0.is_empty() || after.0.is_empty() {
        return Vec::new();
    }
    let all: BTreeSet<&String> = before.0.keys().chain(after.0.keys()).collect();
    let differing = all.into_iter().filter_map(|key| {
        let (old, new) = (before.0.get(key), after.0.get(key));
        let name = &old.or(new)?.0;
        let version =
            |driver: Option<&(String, String)>| driver.map(|(_, version)| version.clone());
        (version(old) != version(new)).then(|| Driver {
            name: name.clone(),
            before: version(old),
            after: version(new),
        })
    });
    differing.collect()
}
