//! Remedies for waits, and the driver that used the CPUs.

use tables::StoreError;
use wording::Sentence;

use super::group::Group;
use super::linux;
use super::threaded_dpcs::{self, ThreadedDpcs};
use super::weigh::Cause;
use crate::drivers::{DriverInSystem, SYSTEM};
use crate::{Case, Evidence, Finding, Name, Subject, counted, listed};

/// Remedies for the waits of a group.
#[derive(Default)]
pub(crate) struct Advice {
    pub(crate) remedies: Vec<Sentence>,
    /// Sentence about the driver that used the CPUs, if a driver used them.
    pub(crate) of_driver: Option<Sentence>,
    /// Module of this driver.
    pub(crate) module: Option<Subject>,
    /// Rows that show this driver.
    evidence: Option<Evidence>,
}

impl Advice {
    /// Returns the advice for a group of waits. `driver` is the driver whose threads of System used the CPUs.
    pub(crate) fn read(
        case: &Case<'_>,
        group: &Group<'_>,
        driver: Option<DriverInSystem>,
    ) -> Result<Advice, StoreError> {
        if let Some(threaded) = threaded_dpcs::find(case, &group.worst().waiter)? {
            return Ok(Advice::about_threaded(threaded));
        }
        if let Some(driver) = driver {
            return Ok(Advice::about_driver(driver));
        }
        let remedies = remedies(case, group).into_iter();
        Ok(Advice {
            remedies: remedies.map(Into::into).collect(),
            ..Advice::default()
        })
    }

    /// Returns the advice about a driver whose threads of System used the CPUs. Its remedy replaces those for programs.
    fn about_driver(driver: DriverInSystem) -> Advice {
        let name = Name(&driver.name).to_string();
        let remedy = format!(
            "Update {name}, or remove the program that it belongs to: threads of this driver used the CPUs. To confirm \
             the cause, record again without it"
        );
        Advice {
            remedies: vec![remedy.into()],
            of_driver: Some(driver.sentence().into()),
            module: Some(Subject::Module {
                name: driver.name.clone(),
            }),
            evidence: Some(driver.evidence),
        }
    }

    /// Returns the advice about a driver whose threaded DPCs used the CPU.
    fn about_threaded(threaded: ThreadedDpcs) -> Advice {
        let ThreadedDpcs {
            module,
            times,
            evidence,
        } = threaded;
        let sentence = format!(
            "In this time, {} of {} ran in the process System. A thread of normal priority cannot preempt a threaded \
             DPC.",
            counted(times, "threaded DPC", "threaded DPCs"),
            Name(&module)
        );
        let remedy = format!(
            "The DPCs of {name} take too long: update {name} or the firmware of its device. Other drivers \
             and threads of this CPU wait as well",
            name = Name(&module)
        );
        Advice {
            remedies: vec![remedy.into()],
            of_driver: Some(sentence.into()),
            module: Some(Subject::Module { name: module }),
            evidence: Some(evidence),
        }
    }

    pub(crate) fn add_to(self, mut finding: Finding) -> Finding {
        finding.why.extend(self.of_driver);
        finding.remedies.extend(self.remedies);
        finding.evidence.extend(self.evidence);
        finding.subjects(self.module)
    }
}

/// Names of processes that Windows needs. Users should not change the priorities of these
/// processes.
const OF_WINDOWS: [&str; 10] = [
    "system",
    "registry",
    "memory compression",
    "smss.exe",
    "csrss.exe",
    "wininit.exe",
    "winlogon.exe",
    "services.exe",
    "lsass.exe",
    "dwm.exe",
];

fn is_of_windows(case: &Case<'_>, row: Option<u32>, id: Option<u32>) -> bool {
    let process = case.names.process(row, id);
    let is_known = |name: &str| OF_WINDOWS.contains(&name.to_lowercase().as_str());
    // A trace may lack the name of System.
    process.id == Some(SYSTEM) || process.name.is_some_and(is_known)
}

fn remedies(case: &Case<'_>, group: &Group<'_>) -> Vec<String> {
    if case.is_linux() {
        return linux::remedies(case, group);
    }
    let worst = group.worst();
    if worst.waiter.process_row.is_none() && worst.waiter.process_id.is_none() {
        return vec![
            "Record processes and threads too (xperf -on PROC_THREAD, WPR keyword ProcessThread): \
             the trace does not contain the processes of these threads."
                .to_owned(),
        ];
    }
    if !worst.weighed.sampled_locks.is_empty() {
        return vec![
            "See the finding about CPUs locked by DPCs and ISRs. Record DPCs and ISRs as well, so that the trace shows \
             their drivers (xperf -on DPC+INTERRUPT, WPR keywords DPC and Interrupt)."
                .to_owned(),
        ];
    }
    remedies_for_cause(case, group)
}

/// Returns the remedies for the cause of the worst wait on Windows.
fn remedies_for_cause(case: &Case<'_>, group: &Group<'_>) -> Vec<String> {
    let worst = group.worst();
    let waiter = &worst.waiter;
    let process = &case.process(waiter.process_row, waiter.process_id);
    let most = group.who_ran.most.as_ref();
    let second = worst.weighed.second.as_ref().filter(|second| {
        (second.process_row, second.process_id) != (waiter.process_row, waiter.process_id)
    });
    let who = most.map_or("the programs that ran instead".to_owned(), |most| {
        let second = second.filter(|second| {
            (second.process_row, second.process_id) != (most.process_row, most.process_id)
        });
        let both = std::iter::once(most).chain(second);
        let both = both.map(|user| case.processes(user.process_row, user.process_id));
        listed(both.collect::<Vec<_>>())
    });
    let is_itself = most.is_some() && group.most_of_others().is_none();
    let is_windows =
        most.is_some_and(|most| is_of_windows(case, most.process_row, most.process_id));
    let is_part = is_of_windows(case, waiter.process_row, waiter.process_id);
    let remedy = match worst.weighed.cause {
        Some(Cause::Rank) => {
            let mut remedies = vec![format!(
                "Let less work compete for the CPUs ({who} used most time): a thread with a rank \
                 above 0 runs only while no thread of rank 0 is ready."
            )];
            if process.to_lowercase().starts_with("lockapp.exe") {
                remedies.push(
                    "Turn off the lock screen (NoLockScreen = 1 in \
                     HKLM\\SOFTWARE\\Policies\\Microsoft\\Windows\\Personalization): then logon \
                     does not wait for LockApp.exe. Since Windows 10 1607 only the editions \
                     Enterprise, Education and Server respect it."
                        .to_owned(),
                );
            }
            return remedies;
        }
        Some(Cause::HigherPriority | Cause::EqualPriority) if is_itself => format!(
            "Let {process} use fewer threads than there are CPUs: its threads mostly waited for \
             CPUs that its other threads used."
        ),
        Some(Cause::HigherPriority | Cause::EqualPriority) if is_windows => format!(
            "Find out what {who} did (laglab explain --process NAME): drivers and services run \
             in it, and Windows sets its priority."
        ),
        Some(Cause::HigherPriority) => format!(
            "Lower the priority of {who}, or let it use fewer threads: then {process} gets a CPU. \
             If a user waits for {process}, start it in a higher priority class."
        ),
        Some(Cause::EqualPriority) => format!(
            "Let {who} use fewer threads than there are CPUs, or run it in a lower priority class: \
             then {process} does not wait for the end of quanta."
        ),
        Some(Cause::Interrupts) if worst.weighed.locked_ideal.is_some() => {
            "See the finding about CPUs locked by DPCs and ISRs: threads whose ideal \
             processor is one of these CPUs wait like this thread."
                .to_owned()
        }
        Some(Cause::Interrupts) => {
            "Find the driver whose DPCs and ISRs used the CPUs (laglab dpcisr). Update \
             it, or distribute its interrupts over more CPUs."
                .to_owned()
        }
        Some(Cause::Affinity) if is_itself && is_part => format!(
            "Find out what {process} did on that CPU (laglab explain --process NAME): its own threads used it, and \
             Windows binds them to CPUs."
        ),
        Some(Cause::Affinity) if is_windows => format!(
            "Find out what {who} did on that CPU (laglab explain --process NAME): drivers and services run in it."
        ),
        Some(Cause::Affinity) if is_part => format!(
            "Keep {who} off that CPU: {process} is part of Windows, which binds its threads to \
             CPUs."
        ),
        Some(Cause::Affinity) => format!(
            "Let {process} run on every CPU: remove its affinity. A pinned thread waits for its \
             CPU even if others are idle."
        ),
        Some(Cause::PagedOut) => {
            "Use less memory or add memory, and move the page file to a faster disk. The flag \
             0x80000 in GlobalFlag of HKLM\\SYSTEM\\CurrentControlSet\\Control\\Session Manager \
             keeps kernel stacks in memory."
                .to_owned()
        }
        Some(Cause::LostEvents) => {
            "See the finding about the capture: record or copy the trace again.".to_owned()
        }
        Some(Cause::Suspended | Cause::Frozen | Cause::Queue | Cause::Dispatcher) | None => {
            return Vec::new();
        }
    };
    vec![remedy]
}
