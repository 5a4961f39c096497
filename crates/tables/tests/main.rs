//! All tests of the public interface in one program: linking many programs would take minutes.

mod apart;
mod event_kinds;
mod events;
mod files;
mod forged;
mod hostile;
mod linux;
mod linux_files;
mod linux_memory;
mod linux_schedstat;
mod linux_task_events;
mod linux_text;
mod linux_timehist;
mod linux_waits;
mod machine;
mod memory;
mod packets;
mod providers;
mod real_traces;
mod reference;
mod rules;
mod runs;
mod samples;
mod stacks;
mod store;
mod trace_dat;
