//! Options that select events.

use etl::Clock;
use facts::{EventPattern, Filter, KindNames, Moment, ProviderPattern};

use super::Failure;
use super::scope::FROM_AFTER_TO;

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

    /// Returns the filter for a trace with this clock.
    ///
    /// # Errors
    /// Returns [`Failure::Input`] if --from is later than --to.
    pub(super) fn filter(&self, clock: &Clock) -> Result<Filter, Failure> {
        let filter = Filter {
            providers: self.provider.clone(),
            events: self.event.clone(),
            process_ids: self.pid.clone(),
            process_names: self.process.clone(),
            thread_ids: self.tid.clone(),
            cpus: self.cpu.clone(),
            from: self.from,
            to: self.to,
        };
        match filter.is_empty_range(clock) {
            true => Err(Failure::Input(FROM_AFTER_TO.to_owned())),
            false => Ok(filter),
        }
    }
}
