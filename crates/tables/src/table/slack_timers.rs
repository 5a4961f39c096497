//! `slack_timers`: timers of threads of Linux that may expire late.

use rustc_hash::FxHashMap;

use crate::column::Nullable;
use crate::register::{EventTable, Reader, Register};
use crate::schema::table;
use crate::table::Table;
use crate::timed_values::TimedValues;
use crate::trackers::{ThreadFinder, Trackers};

table! {
    /// One row per timer of a sleeping thread of Linux that may expire late (timer slack), so that it can share an
    /// interrupt with other timers.
    SlackTimers, SlackTimersView = "slack_timers" sorted by time_ns
        title "Timers with Slack"
        record "timers (perf record -e timer:hrtimer_start,timer:hrtimer_expire_entry)"
        lasts start_ns to time_ns
    {
        /// Time at which the timer expired.
        time_ns: Vec<i64> = "Linux timer: hrtimer_expire_entry",
        /// Time at which the thread started the timer.
        start_ns: Vec<i64> = "Linux timer: hrtimer_start",
        /// CPU on which the thread ran.
        cpu: Vec<u16> = "CPU of the event",
        /// Thread that sleeps.
        thread_id: Vec<u32> = "common_pid",
        /// Row of the thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Process of the thread.
        process_id: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// Time by which the timer may be late.
        slack_ns: Vec<i64> = "expires - softexpires",
        /// Time by which the timer was late.
        late_ns: Vec<i64> = "now - softexpires",
    }
}

/// Start or end of a timer, with its address.
#[derive(Clone, Copy, Debug)]
pub enum TimerEvent {
    /// A thread starts the timer.
    Starts(u64, TimerStart),
    /// The timer expires, at this time of its clock in nanoseconds.
    Expires(u64, i64),
}

/// Timer that a thread started.
#[derive(Clone, Copy, Debug)]
pub struct TimerStart {
    /// Time at which the timer is due.
    pub due_ns: i64,
    /// Maximum time by which the kernel may delay the timer.
    pub slack_ns: i64,
    /// CPU that logged the event.
    pub cpu: u16,
    /// Id of the thread.
    pub thread_id: u32,
}

/// State that is kept from one slice to the next while rows are made.
#[derive(Debug, Default)]
pub struct SlackState {
    threads: ThreadFinder,
    /// Timers with slack that have not expired, by their addresses, with the time of the start.
    open: FxHashMap<u64, (i64, TimerStart)>,
}

impl Register for SlackTimers {
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
    ];
}

impl EventTable for SlackTimers {
    type Raw = TimedValues<TimerEvent>;
    type State = SlackState;

    fn join(
        raw: &mut TimedValues<TimerEvent>,
        state: &mut SlackState,
        trackers: &Trackers<'_>,
    ) -> SlackTimers {
        let mut rows = SlackTimers::default();
        for (time_ns, event) in std::mem::take(raw).0 {
            match event {
                // A timer without slack makes no row. But its start shows that an older timer at the same address is
                // over.
                TimerEvent::Starts(timer, started) if started.slack_ns <= 0 => {
                    state.open.remove(&timer);
                }
                TimerEvent::Starts(timer, started) => {
                    state.open.insert(timer, (time_ns, started));
                }
                TimerEvent::Expires(timer, now_ns) => {
                    if let Some((start_ns, started)) = state.open.remove(&timer) {
                        rows.time_ns.push(time_ns);
                        rows.start_ns.push(start_ns);
                        rows.cpu.push(started.cpu);
                        rows.thread_id.push(started.thread_id);
                        rows.slack_ns.push(started.slack_ns);
                        rows.late_ns.push(now_ns.saturating_sub(started.due_ns));
                    }
                }
            }
        }
        (rows.thread_row, rows.process_id, rows.process_row) =
            (state.threads).find_columns(trackers, &rows.thread_id, &rows.time_ns);
        rows
    }
}
