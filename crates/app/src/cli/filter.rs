//! Options that select events.

use facts::Moment;
use raw_events::{EventPattern, Filter, KindNames, ProviderPattern};
use session::TraceTables;
use tables::{Identities, RecordingInfo, Table};
use xperf::Recording;

use super::Failure;
use super::scope::{
    FROM_AFTER_TO, check_cpus, check_process_id, check_thread, check_time, since_start,
    unknown_process,
};

/// Conditions for events. An event must meet all conditions. A condition with several values is met if one
/// value matches.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Which events")]
pub(super) struct FilterArgs {
    /// Select events of this provider: its GUID or a part of its name (case-insensitive)
    #[arg(long, value_name = "NAME|GUID")]
    provider: Vec<ProviderPattern>,
    /// Select events with this name or id. For kernel and classic events, the id is the opcode. The part of
    /// the name before or after the / is enough; * matches any text (case-insensitive)
    #[arg(long, value_name = "NAME|ID")]
    event: Vec<EventPattern>,
    /// Select events logged by, or about, the process with this id
    #[arg(long)]
    pid: Vec<u32>,
    /// Select events logged by, or about, processes with this text in their name (case-insensitive)
    #[arg(long, value_name = "NAME")]
    process: Vec<String>,
    /// Select events logged by, or about, the thread with this id
    #[arg(long)]
    tid: Vec<u32>,
    /// Select events logged on this CPU
    #[arg(long)]
    cpu: Vec<u16>,
    /// Start at this time: a time since the trace's start (for example 1.5, 1.5s, 20ms or 7us), or UTC (ISO
    /// 8601)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<Moment>,
    /// End at this time, inclusive
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<Moment>,
}

impl FilterArgs {
    /// Returns the names that are most like the names of events and providers in the options.
    pub(super) fn near<'n>(&self, names: &'n KindNames) -> Vec<&'n str> {
        let texts = self.event.iter().filter_map(|event| match event {
            EventPattern::Text(text) => Some((text, &names.events)),
            EventPattern::Number(_) => None,
        });
        let providers = self.provider.iter().filter_map(|provider| match provider {
            ProviderPattern::Name(text) => Some((text, &names.providers)),
            ProviderPattern::Guid(_) => None,
        });
        let each = texts.chain(providers);
        each.flat_map(|(text, known)| wording::closest(text, known.iter().map(|it| &**it), 3))
            .collect()
    }

    /// Returns the reason why no event meets the conditions, if the trace lacks a time, process, thread or CPU in them.
    /// `tables` opens the tables of the trace. They cost a pass over the trace, so they are made only if a condition needs
    /// them.
    ///
    /// # Errors
    /// Returns an error if the tables cannot be opened or made.
    pub(super) fn absent(
        &self,
        info: &RecordingInfo,
        tables: impl FnOnce() -> Result<TraceTables, Failure>,
    ) -> Result<Option<String>, Failure> {
        let reason = |checked: Result<(), Failure>| match checked {
            Ok(()) => Ok(None),
            Err(Failure::Input(reason)) => Ok(Some(reason)),
            Err(other) => Err(other),
        };
        let outside = reason(self.check_range(info))?;
        let needs_tables = !(self.process.is_empty()
            && self.pid.is_empty()
            && self.tid.is_empty()
            && self.cpu.is_empty());
        if outside.is_some() || !needs_tables {
            return Ok(outside);
        }
        let tables = tables()?;
        tables.make(&[&Identities::TABLES[..], &[Table::Cpus]].concat())?;
        let recording = Recording {
            names: tables.identities()?,
            tables,
            range: i64::MIN..i64::MAX,
            filter: xperf::Filter::default(),
        };
        reason(self.check_names(&recording))
    }

    /// Returns an error if the time range is outside the trace.
    fn check_range(&self, info: &RecordingInfo) -> Result<(), Failure> {
        let option = match (self.from, self.to) {
            (Some(_), Some(_)) => "--from and --to",
            (None, Some(_)) => "--to",
            _ => "--from",
        };
        let (from, to) = self.filter(info)?.range();
        check_time(option, &(from..to.saturating_add(1)), info)
    }

    /// Returns an error if the trace does not contain a process, thread or CPU of the conditions.
    fn check_names(&self, trace: &Recording) -> Result<(), Failure> {
        let names = &trace.names;
        for part in &self.process {
            check_part(names, part)?;
        }
        // Without events of processes and threads, only the ids in other events are known.
        if names.processes().next().is_some() {
            for id in &self.pid {
                check_process_id("--pid", names, *id)?;
            }
        }
        if names.thread_rows() > 0 {
            for id in &self.tid {
                check_thread("--tid", names, *id)?;
            }
        }
        check_cpus(&self.cpu, trace)
    }

    /// Returns the filter for a recording.
    ///
    /// # Errors
    /// Returns [`Failure::Input`] if --from is later than --to, or if they are in UTC and the recording has no time of
    /// day.
    pub(super) fn filter(&self, info: &RecordingInfo) -> Result<Filter, Failure> {
        let ns = |moment: Option<Moment>| since_start("--from and --to", moment, info);
        let filter = Filter {
            providers: self.provider.clone(),
            events: self.event.clone(),
            process_ids: self.pid.clone(),
            process_names: self.process.clone(),
            thread_ids: self.tid.clone(),
            cpus: self.cpu.clone(),
            from_ns: ns(self.from)?,
            to_ns: ns(self.to)?,
        };
        if filter.is_empty_range() {
            Err(Failure::Input(FROM_AFTER_TO.to_owned()))
        } else {
            Ok(filter)
        }
    }
}

/// Returns an error if no process of the trace has this text in its name.
fn check_part(names: &Identities, part: &str) -> Result<(), Failure> {
    let in_lower_case = part.to_lowercase();
    let mut known = names.processes().filter_map(|process| process.name);
    if known.any(|name| name.to_lowercase().contains(&in_lower_case)) {
        return Ok(());
    }
    let id: Option<u32> = part.parse().ok();
    if id.is_some() && names.processes().any(|process| process.id == id) {
        return Err(Failure::Input(format!(
            "--process: no name of a process contains {part}; for the process with this id, give --pid {part}"
        )));
    }
    Err(unknown_process(names, part))
}
