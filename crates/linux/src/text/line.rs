//! Lines of a text of events. Each program prints the fields of an event in the same order, but separates them in its own
//! way:
//!
//! ```text
//! bash-12   (   12) [000] d..2. 25.266925: sched_switch: prev_comm=…     trace of the kernel
//! bash-12   [000] 25.266925: sched_switch:         bash:12 [120] S ==> … trace-cmd report
//! bash    12/12    [000] 25.266925:  1 sched:sched_switch: prev_comm=…   perf script
//! ```

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventLine<'t> {
    /// Name of the thread; `None` if the program did not know it.
    pub(super) thread_name: Option<&'t str>,
    /// Id of the process; `None` if the line does not contain it.
    pub(super) process_id: Option<u32>,
    /// Id of the thread; `None` if the thread was ending.
    pub(super) thread_id: Option<u32>,
    /// CPU; `None` if the line does not contain it.
    pub(super) cpu: Option<u32>,
    /// Interrupt and softirq that the CPU handled; `None` if the line has no flags.
    pub(super) context: Option<Context>,
    pub(super) time: Time,
    /// Number of events since the previous sample; `None` if the line does not contain it.
    pub(super) period: Option<u64>,
    /// Subsystem of the tracepoint; `None` if the line does not contain it.
    pub(super) system: Option<&'t str>,
    pub(super) name: &'t str,
    /// Text after the name of the event.
    pub(super) contents: &'t str,
    /// True if the line has the form of `perf script`.
    pub(super) is_of_perf: bool,
}

/// Work of a CPU while it logged an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) in_interrupt: bool,
    pub(super) in_softirq: bool,
}

/// Time of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time {
    /// Time in nanoseconds.
    pub(super) ns: u64,
    /// Distance in nanoseconds of two times with consecutive last digits: 1000 for microseconds.
    pub(super) step_ns: u64,
}

/// Thread that is written before the CPU or the time.
struct Task<'t> {
    name: &'t str,
    process_id: Option<u32>,
    thread_id: Option<u32>,
    is_of_perf: bool,
}

impl<'t> EventLine<'t> {
    /// Reads a line. Returns `None` if it is not the line of an event.
    pub(super) fn read(line: &'t str) -> Option<EventLine<'t>> {
        // The name of a thread can contain all that follows it, so the first time with a thread before it counts.
        let mut from = 0;
        loop {
            let at = from + line.get(from..)?.find(": ")?;
            from = at + 1;
            let start = line[..at].rfind([' ', '\t', ']']).map_or(0, |it| it + 1);
            let time = Time::read(&line[start..at]);
            if let Some(time) = time
                && let Some(event) = EventLine::parse(&line[..start], time, line[at + 1..].trim())
            {
                return Some(event);
            }
        }
    }

    /// Reads a line from its parts before and after the time.
    fn parse(before: &'t str, time: Time, after: &'t str) -> Option<EventLine<'t>> {
        let mut before = before.trim_end();
        let mut flags = None;
        let is_cpu = |text: &str| text.ends_with(']');
        if !is_cpu(before)
            && let Some((rest, last)) = before.rsplit_once(' ')
            && is_cpu(rest.trim_end())
        {
            (before, flags) = (rest.trim_end(), Some(last));
        }
        let mut cpu = None;
        if let Some((rest, number)) = before.strip_suffix(']').and_then(|it| it.rsplit_once('[')) {
            cpu = Some(number.parse().ok()?);
            before = rest.trim_end();
        }
        let task = Task::read(before)?;
        if cpu.is_none() && !task.is_of_perf {
            return None;
        }
        let (name, contents, period) = if task.is_of_perf {
            let (period, rest) = match after.split_once(char::is_whitespace) {
                Some((first, rest)) if first.parse::<u64>().is_ok() => (first.parse().ok(), rest),
                _ => (None, after),
            };
            let rest = rest.trim_start();
            let (name, contents) = match rest.split_once(": ") {
                Some((name, contents)) if !name.contains(' ') => (name, contents),
                _ => (rest.trim_end().strip_suffix(':')?, ""),
            };
            (name, contents, period)
        } else {
            let (name, contents) = printed_name(after);
            (name, contents, None)
        };
        let system = name.split_once(':');
        let system = system.filter(|(_, name)| !is_modifier(name));
        Some(EventLine {
            thread_name: (task.name != "<...>").then_some(task.name),
            process_id: task.process_id,
            thread_id: task.thread_id,
            cpu,
            context: flags.map(|flags| Context {
                in_interrupt: flags.contains(['h', 'H', 'z', 'Z']),
                in_softirq: flags.contains(['s', 'H']),
            }),
            time,
            period,
            system: system.map(|(system, _)| system),
            name: system.map_or(name, |(_, name)| name),
            contents: contents.trim(),
            is_of_perf: task.is_of_perf,
        })
    }
}

/// Splits the text after the time into the name of the event and its contents, as the kernel and trace-cmd print them. The
/// kernel prints a system call as `sys_futex(…)` or `sys_futex -> 0x0`; for other events without a name, the result is the
/// name `function` of the kernel's function tracer.
fn printed_name(text: &str) -> (&str, &str) {
    let is_name = |name: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
        !name.is_empty() && name.chars().all(is_part)
    };
    match text.split_once(": ") {
        Some((name, contents)) if is_name(name) => return (name, contents),
        _ => {}
    }
    match text.strip_suffix(':') {
        Some(name) if is_name(name) => return (name, ""),
        _ => {}
    }
    match text.split_once('(') {
        Some((name, contents)) if name.starts_with("sys_") && is_name(name) => (name, contents),
        _ => ("function", text),
    }
}

/// Returns true if the text after the colon of an event's name is a modifier, as in `cycles:u`, and not a tracepoint.
fn is_modifier(text: &str) -> bool {
    text.chars().all(|c| "ukhpPGHISDWebR".contains(c))
}

impl<'t> Task<'t> {
    /// Reads `NAME-12`, `NAME-12 (  12)`, `NAME 12` or `NAME 12/12`.
    fn read(text: &'t str) -> Option<Task<'t>> {
        let text = text.trim();
        let in_brackets = text.strip_suffix(')').and_then(|it| it.rsplit_once('('));
        let (text, process) = match in_brackets {
            Some((text, process)) => (text.trim_end(), Some(process.trim())),
            None => (text, None),
        };
        let process_id = match process {
            Some(process) if process.bytes().all(|byte| byte == b'-') => None,
            Some(process) => Some(process.parse().ok()?),
            None => None,
        };
        if let Some((name, ids)) = text.rsplit_once(' ')
            && let Some((process_id, thread_id)) = perf_ids(ids)
        {
            return Some(Task {
                name: name.trim(),
                process_id,
                thread_id,
                is_of_perf: true,
            });
        }
        let (name, thread_id) = text.rsplit_once('-')?;
        Some(Task {
            name,
            process_id,
            thread_id: Some(thread_id.parse().ok()?),
            is_of_perf: false,
        })
    }
}

/// Reads the ids that perf prints: `12` is a thread, and `12/13` is a process and a thread. An ending thread has the id −1.
fn perf_ids(text: &str) -> Option<(Option<u32>, Option<u32>)> {
    let id = |text: &str| match text {
        "-1" => Some(None),
        _ => text.parse().ok().map(Some),
    };
    match text.split_once('/') {
        Some((process, thread)) => Some((id(process)?, id(thread)?)),
        None => Some((None, id(text)?)),
    }
}

impl Time {
    /// Reads seconds with a fraction of 1 to 9 digits.
    fn read(text: &str) -> Option<Time> {
        let (seconds, fraction) = text.split_once('.')?;
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(seconds) || !is_number(fraction) || fraction.len() > 9 {
            return None;
        }
        let step_ns = 10_u64.pow(9 - fraction.len() as u32);
        let fraction: u64 = fraction.parse().ok()?;
        let seconds: u64 = seconds.parse().ok()?;
        let ns = seconds.checked_mul(1_000_000_000)?;
        Some(Time {
            ns: ns.checked_add(fraction * step_ns)?,
            step_ns,
        })
    }
}

/// Reads a line about lost events: `CPU:1 [LOST 57 EVENTS]` of the kernel, `CPU:1 [57 EVENTS DROPPED]` of trace-cmd.
/// Returns the CPU and the number of lost events. If the number is unknown, it is 1.
pub(super) fn lost(line: &str) -> Option<(u32, u64)> {
    let (cpu, rest) = line.strip_prefix("CPU:")?.split_once(" [")?;
    let rest = rest.trim_end().strip_suffix(']')?;
    let count = match rest {
        "LOST EVENTS" | "EVENTS DROPPED" => 1,
        _ => {
            let count = rest
                .strip_prefix("LOST ")
                .and_then(|it| it.strip_suffix(" EVENTS"));
            let count = count.or_else(|| rest.strip_suffix(" EVENTS DROPPED"))?;
            count.parse().ok()?
        }
    };
    Some((cpu.parse().ok()?, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> EventLine<'_> {
        EventLine::read(line).unwrap_or_else(|| panic!("{line}"))
    }

    #[test]
    fn lines_of_each_program_are_read() {
        let kernel = read(
            " memfd:sealed-91-11778   (  11770) [001] d.h2. 25854.301697: sched_waking: comm=a b pid=1",
        );
        assert_eq!(kernel.thread_name, Some("memfd:sealed-91"));
        assert_eq!(kernel.process_id, Some(11770));
        assert_eq!(kernel.thread_id, Some(11778));
        assert_eq!(kernel.cpu, Some(1));
        let interrupt = Context {
            in_interrupt: true,
            in_softirq: false,
        };
        assert_eq!(kernel.context, Some(interrupt));
        assert_eq!(
            (kernel.time.ns, kernel.time.step_ns),
            (25_854_301_697_000, 1000)
        );
        assert_eq!(
            (kernel.name, kernel.contents),
            ("sched_waking", "comm=a b pid=1")
        );
        let idle = read(
            "          <idle>-0       (-------) [000] ..s1. 1.000001: softirq_entry: vec=9 [action=RCU]",
        );
        assert_eq!((idle.thread_id, idle.process_id), (Some(0), None));
        assert!(idle.context.is_some_and(|context| context.in_softirq));
        let unknown =
            read("           <...>-77      [003] .... 1.000001: cpu_idle: state=1 cpu_id=3");
        assert_eq!((unknown.thread_name, unknown.thread_id), (None, Some(77)));

        let trace_cmd =
            read("      opt cgu.00-25473 [001]  1834.028031: local_timer_entry:    vector=236");
        assert_eq!(trace_cmd.thread_name, Some("opt cgu.00"));
        assert_eq!(trace_cmd.context, None);
        assert_eq!(
            (trace_cmd.name, trace_cmd.contents),
            ("local_timer_entry", "vector=236")
        );

        let perf = read("my app 5  12/13    [000] 25854.489592859:     250000   cpu-clock:u: ");
        assert_eq!(perf.thread_name, Some("my app 5"));
        assert_eq!((perf.process_id, perf.thread_id), (Some(12), Some(13)));
        assert_eq!((perf.system, perf.name), (None, "cpu-clock:u"));
        assert_eq!(perf.period, Some(250_000));
        assert_eq!((perf.time.ns, perf.time.step_ns), (25_854_489_592_859, 1));
        let perf = read("perf 9 1.000002: sched:sched_switch: prev_comm=x: y 1.5: z");
        assert_eq!((perf.cpu, perf.thread_id), (None, Some(9)));
        assert_eq!((perf.system, perf.name), (Some("sched"), "sched_switch"));
        assert_eq!(perf.contents, "prev_comm=x: y 1.5: z");
        assert_eq!(read(":-1 -1 [001] 1.0: cycles: ").thread_id, None);
    }

    #[test]
    fn events_without_a_name_before_a_colon_are_system_calls_or_functions() {
        let name = |line| {
            let line = read(line);
            (line.name, line.contents)
        };
        assert_eq!(
            name("a-1 [000] ..... 1.000000: sys_futex(uaddr: 0x7f, op: 0x89)"),
            ("sys_futex", "uaddr: 0x7f, op: 0x89)")
        );
        assert_eq!(
            name("a-1 [000] ..... 1.000000: mutex_unlock <-rb_simple_write"),
            ("function", "mutex_unlock <-rb_simple_write")
        );
        assert_eq!(
            name("a-1 [000] ..... 1.000000: sys_futex -> 0x0"),
            ("function", "sys_futex -> 0x0")
        );
    }

    #[test]
    fn other_lines_are_no_events() {
        for line in [
            "",
            "# tracer: nop",
            "cpus=2",
            "\tffffffff814281e8 __traceiter_hrtimer_start+0x38 ([kernel.kallsyms])",
            " => schedule",
            "a-1 [0x0] 1.0: b: c",
            "a-1 1.0: b: c",
            "a-x [000] 1.0: b: c",
            "a-1 [000] 99999999999999999999.0: b: c",
            "a-1 [000] 99999999999.0000000001: b: c",
            "[000] 1.0: b: c",
            ": ",
        ] {
            assert_eq!(EventLine::read(line), None, "{line}");
        }
    }

    #[test]
    fn numbers_of_lost_events_are_read() {
        assert_eq!(lost("CPU:1 [LOST 57 EVENTS]"), Some((1, 57)));
        assert_eq!(lost("CPU:12 [LOST EVENTS]"), Some((12, 1)));
        assert_eq!(lost("CPU:1 [278 EVENTS DROPPED]"), Some((1, 278)));
        assert_eq!(lost("CPU:1 [278 EVENTS]"), None);
    }
}
