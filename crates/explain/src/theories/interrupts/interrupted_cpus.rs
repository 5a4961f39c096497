//! Theory: interrupts and softirqs of Linux locked CPUs.

use std::ops::Range;

use tables::{StoreError, Table};

use super::victims::Victims;
use crate::chain::cpu_wait::linux::SPREAD;
use crate::chain::floods::{Flood, floods};
use crate::chain::raisers::Raisers;
use crate::chain::routine_times::RoutineTimes;
use crate::survey::cpu_names;
use crate::{
    About, Case, Finding, Name, Outcome, Severity, Source, Subject, Theory, counted, duration,
    moment, percent,
};

/// Theory about CPUs of Linux that run interrupts and softirqs and hardly any thread.
pub(crate) struct InterruptedCpus;

static ABOUT: About = About {
    id: "locked-cpus",
    name: "locked CPUs",
    question: "Were CPUs locked by interrupts and softirqs?",
    tables: &[Table::Interrupts, Table::CpuRuns],
    sources: &[Source {
        title: "Linux kernel documentation: Scaling in the Linux Networking Stack",
        url: Some("https://docs.kernel.org/networking/scaling.html"),
    }],
};

/// Maximum number of findings.
const FINDINGS: usize = 5;

impl Theory for InterruptedCpus {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, is_linux: bool) -> bool {
        is_linux
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if case.survey.interrupts.routines.is_empty() {
            let missing = "the recording has no interrupts and softirqs";
            return Ok(Outcome::NotRecorded(missing.to_owned()));
        }
        let mut floods = floods(case);
        if floods.is_empty() {
            let because =
                "no CPU spent 80 % of a second in interrupts and softirqs (without ksoftirqd)";
            return Ok(Outcome::Against(because.to_owned(), Vec::new()));
        }
        floods.sort_by_key(|flood| std::cmp::Reverse(flood.locked_ns));
        let floods = floods.iter().take(FINDINGS);
        let findings = floods.map(|flood| finding(case, flood));
        Ok(Outcome::For(findings.collect::<Result<_, _>>()?))
    }
}

fn finding(case: &Case<'_>, flood: &Flood) -> Result<Finding, StoreError> {
    let Range { start, end } = flood.during;
    let cpus = cpu_names(&flood.cpus);
    let times = RoutineTimes::read(case, flood.during.clone(), Some(&flood.cpus), false)?;
    let victims = Victims::read(case, flood)?;
    let locked_ns: i64 = times.routines.iter().map(|routine| routine.ns).sum();
    let all_ns = end
        .saturating_sub(start)
        .saturating_mul(flood.cpus.len() as i64);
    let its = if flood.cpus.len() == 1 {
        "its"
    } else {
        "their"
    };
    let mut sentence = format!(
        "{cpus} ran almost only interrupts and softirqs from {} to {}: {} of {its} time.",
        moment(start),
        moment(end),
        percent(locked_ns, all_ns)
    );
    let most = times.routines.first();
    if let Some(most) = most {
        sentence += &format!(
            " {} of {} took {} of CPU time.",
            counted(most.runs, "run", "runs"),
            Name(&most.name),
            duration(most.ns)
        );
    }
    sentence += &victims.sentence(case);
    let victims_subjects = victims.subjects(case);
    let severity = if victims_subjects.is_empty() {
        Severity::Warning
    } else {
        Severity::Problem
    };
    let how = format!("during which threads could hardly use {cpus}");
    let mut finding = Finding::new(&ABOUT, severity, sentence)
        .delay(flood.locked_ns, how)
        .during(flood.during.clone())
        .subjects(flood.cpus.iter().map(|cpu| Subject::Cpu { number: *cpu }))
        .subjects(most.map(|most| Subject::Routine {
            name: most.name.clone(),
        }))
        .subjects(victims_subjects)
        .with(times.evidence("Softirqs and interrupts that ended in this time"));
    finding.evidence.extend(victims.evidence(case, flood));
    if let Some(softirq) = most.and_then(|most| most.softirq) {
        let raisers = Raisers::read(case, softirq, flood.during.clone(), Some(&flood.cpus))?;
        finding = raisers.add_to(finding);
    }
    Ok(finding.remedy(format!("{SPREAD}.")))
}
