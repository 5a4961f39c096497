//! Printed fields of known tracepoints, and the layouts of their data. The data is the same as that of a recording,
//! except that each number has 8 bytes.
//!
//! Source of the printed forms: the files `format` of tracefs (`print fmt`), kernels 3.10 to 6.18, and the output of
//! trace-cmd 3.1.6.

use super::line::Context;
use crate::bytes::Order;
use crate::format::{Field, Format};
use crate::thread_state::{PREEMPTED, bit_of};

/// Kind of a printed field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Decimal number, or a number with `0x`.
    Number,
    /// Hexadecimal number with or without `0x`.
    Hexadecimal,
    /// Address that is printed as a number with `0x` or as the name of a function.
    Address,
    /// Letters of the state of a thread.
    State,
    Text,
    /// Field that may be missing and that is not stored. It ends the text before it.
    Ignored,
}

/// Form in which the fields of a tracepoint are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `name=value`.
    Equals,
    /// `name=value`, or the short form of trace-cmd for `sched_switch`.
    Switch,
    /// `name=value`, or the short form of trace-cmd for wakes.
    Wake,
    /// `name: value`.
    Colons,
    /// `8,0 WS 4096 () 1234 + 8 [name]`.
    Request,
}

/// Fields of a tracepoint in the order in which they are printed.
type Fields = &'static [(&'static str, Kind)];

/// Tracepoints whose fields are read. Each entry has the subsystem, the name, the form and the fields.
const KNOWN: &[(&str, &str, Form, Fields)] = {
    use Form::{Colons, Equals, Request, Switch, Wake};
    use Kind::{Address, Hexadecimal, Ignored, Number, State, Text};
    const WOKEN: Fields = &[
        ("comm", Text),
        ("pid", Number),
        ("prio", Number),
        ("success", Ignored),
        ("target_cpu", Number),
    ];
    const REQUEST: Fields = &[
        ("dev", Number),
        ("rwbs", Text),
        ("sector", Number),
        ("nr_sector", Number),
    ];
    const FAULT: Fields = &[
        ("address", Address),
        ("ip", Address),
        ("error_code", Hexadecimal),
    ];
    &[
        (
            "sched",
            "sched_switch",
            Switch,
            &[
                ("prev_comm", Text),
                ("prev_pid", Number),
                ("prev_prio", Number),
                ("prev_state", State),
                ("next_comm", Text),
                ("next_pid", Number),
                ("next_prio", Number),
            ],
        ),
        ("sched", "sched_waking", Wake, WOKEN),
        ("sched", "sched_wakeup", Wake, WOKEN),
        ("sched", "sched_wakeup_new", Wake, WOKEN),
        (
            "sched",
            "sched_migrate_task",
            Equals,
            &[
                ("comm", Text),
                ("pid", Number),
                ("prio", Number),
                ("orig_cpu", Number),
                ("dest_cpu", Number),
            ],
        ),
        (
            "sched",
            "sched_pi_setprio",
            Equals,
            &[
                ("comm", Text),
                ("pid", Number),
                ("oldprio", Number),
                ("newprio", Number),
            ],
        ),
        (
            "sched",
            "sched_process_exec",
            Equals,
            &[("filename", Text), ("pid", Number), ("old_pid", Ignored)],
        ),
        (
            "sched",
            "sched_process_exit",
            Equals,
            &[("comm", Text), ("pid", Number), ("prio", Ignored)],
        ),
        (
            "task",
            "task_newtask",
            Equals,
            &[
                ("pid", Number),
                ("comm", Text),
                ("clone_flags", Hexadecimal),
            ],
        ),
        (
            "task",
            "task_rename",
            Equals,
            &[
                ("pid", Number),
                ("oldcomm", Text),
                ("newcomm", Text),
                ("oom_score_adj", Ignored),
            ],
        ),
        (
            "irq",
            "irq_handler_entry",
            Equals,
            &[("irq", Number), ("name", Text)],
        ),
        ("irq", "irq_handler_exit", Equals, &[("irq", Number)]),
        ("irq", "softirq_entry", Equals, &[("vec", Number)]),
        ("irq", "softirq_exit", Equals, &[("vec", Number)]),
        ("power", "cpu_idle", Equals, &[("state", Number)]),
        (
            "timer",
            "hrtimer_expire_entry",
            Equals,
            &[
                ("hrtimer", Hexadecimal),
                ("function", Address),
                ("now", Number),
            ],
        ),
        (
            "timer",
            "hrtimer_start",
            Equals,
            &[
                ("hrtimer", Hexadecimal),
                ("function", Address),
                ("expires", Number),
                ("softexpires", Number),
            ],
        ),
        (
            "syscalls",
            "sys_enter_futex",
            Colons,
            &[
                ("uaddr", Hexadecimal),
                ("op", Hexadecimal),
                ("val", Hexadecimal),
            ],
        ),
        ("block", "block_bio_queue", Request, REQUEST),
        ("block", "block_rq_issue", Request, REQUEST),
        ("block", "block_rq_complete", Request, REQUEST),
        ("exceptions", "page_fault_user", Equals, FAULT),
        ("exceptions", "page_fault_kernel", Equals, FAULT),
        (
            "cgroup",
            "cgroup_notify_frozen",
            Equals,
            &[
                ("root", Number),
                ("id", Number),
                ("path", Text),
                ("val", Number),
            ],
        ),
        (
            "cgroup",
            "cgroup_attach_task",
            Equals,
            &[
                ("dst_root", Number),
                ("dst_id", Number),
                ("dst_path", Text),
                ("pid", Number),
                ("comm", Text),
            ],
        ),
        ("vmscan", "mm_vmscan_direct_reclaim_begin", Equals, &[]),
        (
            "vmscan",
            "mm_vmscan_direct_reclaim_end",
            Equals,
            &[("nr_reclaimed", Number)],
        ),
        ("vmscan", "mm_vmscan_memcg_reclaim_begin", Equals, &[]),
        (
            "vmscan",
            "mm_vmscan_memcg_reclaim_end",
            Equals,
            &[("nr_reclaimed", Number)],
        ),
    ]
};

/// Fields of the interrupts of the machine itself, such as the timer interrupt.
const VECTOR: Fields = &[("vector", Kind::Number)];
/// Field of all other tracepoints: the printed text.
const OTHER: Fields = &[("text", Kind::Text)];

/// Size in bytes of the fields that all tracepoints have.
const COMMON: usize = 8;

/// Printed tracepoint: its subsystem and its fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    system: &'static str,
    form: Form,
    fields: Fields,
}

/// Value of a field.
enum Value<'t> {
    Number(i64),
    Text(&'t str),
}

impl Layout {
    /// Returns the layout of the tracepoint `name`. The system is `None` if the text does not contain it. Events that are
    /// not known have the printed text as their only field.
    pub(super) fn of(system: Option<&str>, name: &str, contents: &str) -> Layout {
        let known = KNOWN.iter().find(|(its_system, its_name, ..)| {
            *its_name == name && system.is_none_or(|system| system == *its_system)
        });
        if let Some((system, _, form, fields)) = known {
            return Layout {
                system,
                form: *form,
                fields,
            };
        }
        let is_vector = match system {
            Some(system) => system == "irq_vectors",
            None => name.ends_with("_entry") || name.ends_with("_exit"),
        };
        let number = contents.strip_prefix("vector=");
        if is_vector && number.is_some_and(|number| number.parse::<u32>().is_ok()) {
            return Layout {
                system: "irq_vectors",
                form: Form::Equals,
                fields: VECTOR,
            };
        }
        Layout {
            system: "",
            form: Form::Equals,
            fields: OTHER,
        }
    }

    /// Returns the description of the data of the tracepoint `name` with the number `id`. `system` is the subsystem that
    /// the text contains.
    pub(super) fn format(self, id: u16, system: Option<&str>, name: &str) -> Format {
        let field = |name: &str, kind: Kind, (offset, size): (usize, usize)| {
            let is_hexadecimal = matches!(kind, Kind::Hexadecimal | Kind::Address);
            Field {
                name: name.to_owned(),
                type_name: match kind {
                    Kind::Text => "__data_loc char[]",
                    _ if is_hexadecimal => "unsigned long",
                    _ => "long",
                }
                .to_owned(),
                offset,
                size,
                is_signed: !is_hexadecimal && kind != Kind::Text,
                is_array: false,
                is_hexadecimal,
            }
        };
        let mut fields = vec![
            field("common_type", Kind::Hexadecimal, (0, 2)),
            field("common_flags", Kind::Hexadecimal, (2, 1)),
            field("common_preempt_count", Kind::Hexadecimal, (3, 1)),
            field("common_pid", Kind::Number, (4, 4)),
        ];
        let mut at = COMMON;
        for (name, kind) in self.stored() {
            let size = if kind == Kind::Text { 4 } else { 8 };
            fields.push(field(name, kind, (at, size)));
            at += size;
        }
        Format {
            id,
            system: system.unwrap_or(self.system).to_owned(),
            name: name.to_owned(),
            fields,
            printed: String::new(),
        }
    }

    /// Returns the fields that the data contains.
    fn stored(self) -> impl Iterator<Item = (&'static str, Kind)> + Clone {
        let fields = self.fields.iter().copied();
        fields.filter(|(_, kind)| *kind != Kind::Ignored)
    }

    /// Returns the change of the numbers of interrupts and softirqs in which the CPU is after an event.
    pub(super) fn nesting(self, name: &str) -> (i32, i32) {
        let change = match name.rsplit_once('_') {
            Some((_, "entry")) => 1,
            Some((_, "exit")) => -1,
            _ => 0,
        };
        match self.system {
            "irq_vectors" => (change, 0),
            "irq" if name.starts_with("softirq_") => (0, change),
            "irq" => (change, 0),
            _ => (0, 0),
        }
    }

    /// Returns the data of an event of a thread from its printed fields. `address_of` returns the address of a function from its
    /// name. Returns `None` if a field is missing or unreadable.
    pub(super) fn data(
        self,
        id: u16,
        (thread_id, context): (u32, Context),
        contents: &str,
        address_of: &mut dyn FnMut(&str) -> Option<u64>,
    ) -> Option<Vec<u8>> {
        let values = self.values(contents, address_of)?;
        let mut data = Order::Little.of_u16(id).to_vec();
        let flags = u8::from(context.in_interrupt) << 3 | u8::from(context.in_softirq) << 4;
        data.extend([flags, 0]);
        data.extend(Order::Little.of_u32(thread_id));
        let size = |value: &Value<'_>| match value {
            Value::Number(_) => 8,
            Value::Text(_) => 4,
        };
        let mut end = COMMON + values.iter().map(size).sum::<usize>();
        let mut texts = Vec::new();
        for value in values {
            match value {
                Value::Number(number) => data.extend(number.to_le_bytes()),
                Value::Text(text) => {
                    // A line is shorter than 64 KiB, so both numbers fit.
                    let place = (text.len() as u32 + 1) << 16 | end as u32;
                    data.extend(Order::Little.of_u32(place));
                    texts.extend(text.as_bytes());
                    texts.push(0);
                    end += text.len() + 1;
                }
            }
        }
        data.extend(texts);
        Some(data)
    }

    fn values<'t>(
        self,
        contents: &'t str,
        address_of: &mut dyn FnMut(&str) -> Option<u64>,
    ) -> Option<Vec<Value<'t>>> {
        if self.fields == OTHER {
            return Some(vec![Value::Text(contents)]);
        }
        match self.form {
            Form::Request => return request(contents),
            Form::Switch if !contents.contains("prev_comm=") => return short_switch(contents),
            Form::Wake if !contents.contains("comm=") => return short_wake(contents),
            _ => {}
        }
        let end_of = |text: &str| text.find([' ', ',', ')']).unwrap_or(text.len());
        let mut values = Vec::new();
        for (index, (name, kind)) in self.fields.iter().enumerate() {
            if *kind == Kind::Ignored {
                continue;
            }
            let is_text = *kind == Kind::Text;
            let start = self.value_at(contents, name, !is_text)?;
            let rest = &contents[start..];
            let word = &rest[..end_of(rest)];
            values.push(match kind {
                Kind::Text => {
                    let mut later = self.fields[index + 1..].iter();
                    let end = later.find_map(|(next, _)| {
                        let at = self.value_at(rest, next, true)?;
                        at.checked_sub(next.len() + self.form.mark().len())
                    });
                    Value::Text(rest[..end.unwrap_or(rest.len())].trim_end())
                }
                Kind::State => Value::Number(state(word)?),
                Kind::Address => Value::Number(address(word, address_of)?.cast_signed()),
                Kind::Hexadecimal => Value::Number(hexadecimal(word)?.cast_signed()),
                _ => Value::Number(decimal(word)?),
            });
        }
        Some(values)
    }

    /// Returns the offset of the value of a field. A thread can have a name with the text of a field, so the last place
    /// counts if `is_last`, and otherwise the first one.
    fn value_at(self, contents: &str, name: &str, is_last: bool) -> Option<usize> {
        let mark = self.form.mark();
        let mut places = contents.match_indices(name).filter_map(|(at, _)| {
            let is_start = at == 0 || contents[..at].ends_with([' ', ',']);
            let value = at + name.len();
            (is_start && contents[value..].starts_with(mark)).then_some(value + mark.len())
        });
        if is_last {
            places.last()
        } else {
            places.next()
        }
    }
}

impl Form {
    /// Returns the text between the name of a field and its value.
    fn mark(self) -> &'static str {
        match self {
            Form::Colons => ": ",
            Form::Equals | Form::Switch | Form::Wake | Form::Request => "=",
        }
    }
}

/// Reads `sh:12 [120] S ==> swapper/0:0 [120]`, as trace-cmd prints `sched_switch`. It prints the letters of old kernels: `W`
/// for an idle thread.
fn short_switch(contents: &str) -> Option<Vec<Value<'_>>> {
    let (previous, next) = contents.rsplit_once(" ==> ")?;
    let (previous, letters) = previous.rsplit_once(' ')?;
    let [name, id, priority] = short_thread(previous)?;
    let [next_name, next_id, next_priority] = short_thread(next)?;
    let state = Value::Number(state(letters.replace('W', "I").as_str())?);
    Some(vec![
        name,
        id,
        priority,
        state,
        next_name,
        next_id,
        next_priority,
    ])
}

/// Reads `sh:12 [120] CPU:001`, as trace-cmd prints `sched_wakeup`. Older versions print `success=1` before the CPU.
fn short_wake(contents: &str) -> Option<Vec<Value<'_>>> {
    let (thread, cpu) = contents.rsplit_once(" CPU:")?;
    let thread = thread.strip_suffix(" success=1").unwrap_or(thread);
    let [name, id, priority] = short_thread(thread)?;
    Some(vec![name, id, priority, Value::Number(decimal(cpu)?)])
}

/// Reads the name, the id and the priority of a thread: `sh:12 [120]`.
fn short_thread(text: &str) -> Option<[Value<'_>; 3]> {
    let (thread, priority) = text.trim().strip_suffix(']')?.rsplit_once(" [")?;
    let (name, id) = thread.rsplit_once(':')?;
    Some([
        Value::Text(name),
        Value::Number(decimal(id)?),
        Value::Number(decimal(priority)?),
    ])
}

/// Reads the fields of a disk request: `8,0 WS 4096 () 1234 + 8 [name]`. Between the kind and the sector, there can be a
/// size and a command in parentheses.
fn request(contents: &str) -> Option<Vec<Value<'_>>> {
    let (device, rest) = contents.split_once(' ')?;
    let (major, minor) = device.split_once(',')?;
    let (kind, rest) = rest.trim_start().split_once(' ')?;
    let (before, after) = rest.split_once(" + ")?;
    let sector = before.rsplit(' ').next()?;
    let sectors = after.split(' ').next()?;
    let major: u32 = major.parse().ok().filter(|major| *major < 1 << 12)?;
    let minor: u32 = minor.parse().ok().filter(|minor| *minor < 1 << 20)?;
    Some(vec![
        Value::Number(i64::from(major << 20 | minor)),
        Value::Text(kind),
        Value::Number(decimal(sector)?),
        Value::Number(decimal(sectors)?),
    ])
}

fn decimal(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(_) => hexadecimal(text).map(u64::cast_signed),
        None => {
            let unsigned = || text.parse::<u64>().ok().map(u64::cast_signed);
            text.parse().ok().or_else(unsigned)
        }
    }
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// Reads an address. A function is printed with its name, or with its name and an offset.
fn address(text: &str, address_of: &mut dyn FnMut(&str) -> Option<u64>) -> Option<u64> {
    if text.starts_with("0x") {
        return hexadecimal(text);
    }
    let is_digits = text.len() >= 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_digits.then(|| hexadecimal(text)).flatten();
    number.or_else(|| address_of(text.split('+').next()?))
}

/// Reads the letters of a state and returns the bits of kernel 4.14 and later: `S`, `D|K`, `R+`. Also reads the bits
/// themselves.
fn state(text: &str) -> Option<i64> {
    if let Ok(bits) = text.parse() {
        return Some(bits);
    }
    let mut bits = 0;
    for letter in text.chars() {
        bits |= match letter {
            // An idle thread of kernels before 4.14 is `D|N`.
            'N' => return bit_of('I'),
            '+' => PREEMPTED,
            'x' => bit_of('X')?,
            'R' | '|' | 'K' | 'W' | 'n' => 0,
            letter => bit_of(letter)?,
        };
    }
    (!text.is_empty()).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::FieldValue;

    /// Returns the fields of an event as text.
    fn fields(name: &str, contents: &str) -> Vec<String> {
        let layout = Layout::of(None, name, contents);
        let context = Context {
            in_interrupt: true,
            in_softirq: false,
        };
        let mut address_of = |name: &str| (name == "hrtimer_wakeup").then_some(0xABC);
        let data = layout.data(3, (7, context), contents, &mut address_of);
        let Some(data) = data else {
            return Vec::new();
        };
        let format = layout.format(3, None, name);
        let value = |field: &Field| match field.value(&data, Order::Little).unwrap() {
            FieldValue::Signed(number) => number.to_string(),
            FieldValue::Unsigned(number) => number.to_string(),
            FieldValue::Hexadecimal(number) => format!("{number:#x}"),
            FieldValue::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
            FieldValue::Bytes(bytes) => format!("{bytes:?}"),
        };
        let (common, own) = format.fields.split_at(4);
        let common: Vec<String> = common.iter().map(value).collect();
        assert_eq!(common, ["0x3", "0x8", "0x0", "7"]);
        own.iter().map(value).collect()
    }

    #[test]
    fn fields_of_the_kernel_are_read() {
        // Lines of the file `trace` of kernel 6.18.
        assert_eq!(
            fields(
                "sched_switch",
                "prev_comm=rcu_preempt prev_pid=15 prev_prio=120 prev_state=I ==> next_comm=swapper/1 next_pid=0 \
                 next_prio=120"
            ),
            ["rcu_preempt", "15", "120", "128", "swapper/1", "0", "120"]
        );
        assert_eq!(
            fields("sched_waking", "comm=a b pid=15 prio=120 target_cpu=001"),
            ["a b", "15", "120", "1"]
        );
        assert_eq!(
            fields(
                "task_newtask",
                "pid=12959 comm=bash clone_flags=1200000 oom_score_adj=0"
            ),
            ["12959", "bash", "0x1200000"]
        );
        assert_eq!(
            fields("task_rename", "pid=5 oldcomm=a newcomm=b c oom_score_adj=0"),
            ["5", "a", "b c"]
        );
        assert_eq!(
            fields(
                "hrtimer_expire_entry",
                "hrtimer=00000000fe5ba246 function=hrtimer_wakeup now=25854280013970"
            ),
            ["0xfe5ba246", "0xabc", "25854280013970"]
        );
        assert_eq!(
            fields(
                "sys_enter_futex",
                "uaddr: 0x7f9a101490a8, op: 0x89, val: 0xffffffff, utime: 0x7ffc3ddb22c0, val3: 0)"
            ),
            ["0x7f9a101490a8", "0x89", "0xffffffff"]
        );
        assert_eq!(
            fields(
                "block_rq_issue",
                "254,0 RA 16384 () 12858344 + 32 be,0,4 [bash]"
            ),
            ["266338304", "RA", "12858344", "32"]
        );
        assert_eq!(
            fields("block_rq_complete", "254,0 RA () 12858344 + 32 be,0,4 [0]"),
            ["266338304", "RA", "12858344", "32"]
        );
        assert_eq!(
            fields("block_bio_queue", "254,0 RA 12858344 + 32 [a + b]"),
            ["266338304", "RA", "12858344", "32"]
        );
        assert_eq!(
            fields("irq_handler_entry", "irq=36 name=virtio1-req.0"),
            ["36", "virtio1-req.0"]
        );
        assert_eq!(fields("softirq_entry", "vec=9 [action=RCU]"), ["9"]);
        assert_eq!(
            fields("cpu_idle", "state=4294967295 cpu_id=0"),
            ["4294967295"]
        );
        assert_eq!(
            fields(
                "page_fault_user",
                "address=0x55b1e8a415e0 ip=0x55b1aa7943d2 error_code=0x7"
            ),
            ["0x55b1e8a415e0", "0x55b1aa7943d2", "0x7"]
        );
        assert_eq!(fields("local_timer_entry", "vector=236"), ["236"]);
        assert_eq!(fields("workqueue_entry", "vector=work"), ["vector=work"]);
        assert_eq!(fields("sched_wake_idle_without_ipi", "cpu=1"), ["cpu=1"]);
    }

    #[test]
    fn short_forms_of_trace_cmd_are_read() {
        assert_eq!(
            fields(
                "sched_switch",
                "opt cgu.00:25473 [120] D ==> swapper/0:0 [120]"
            ),
            ["opt cgu.00", "25473", "120", "2", "swapper/0", "0", "120"]
        );
        assert_eq!(
            fields(
                "sched_switch",
                "kworker/1:1:41 [120] W ==> ksoftirqd/1:22 [120]"
            ),
            [
                "kworker/1:1",
                "41",
                "120",
                "128",
                "ksoftirqd/1",
                "22",
                "120"
            ]
        );
        assert_eq!(
            fields("sched_wakeup", "kworker/1:1:47 [120] success=1 CPU:001"),
            ["kworker/1:1", "47", "120", "1"]
        );
    }

    #[test]
    fn names_of_threads_do_not_change_other_fields() {
        assert_eq!(
            fields(
                "sched_waking",
                "comm=a pid=1 prio=2 pid=15 prio=120 target_cpu=001"
            ),
            ["a pid=1 prio=2", "15", "120", "1"]
        );
    }

    #[test]
    fn states_are_those_of_the_letters() {
        let letters = ["R", "R+", "S", "D", "D|K", "D|N", "x", "Z", "2", "", "?"];
        let bits = letters.map(state);
        let expected = [0, 256, 1, 2, 2, 128, 16, 32, 2].map(Some);
        assert_eq!(bits[..9], expected);
        assert_eq!(bits[9..], [None, None]);
    }

    #[test]
    fn events_with_missing_fields_are_unreadable() {
        for contents in [
            "",
            "comm=a pid=1 prio=2",
            "comm=a pid=x prio=2 target_cpu=1",
            "a:1 [2]",
        ] {
            assert!(fields("sched_waking", contents).is_empty(), "{contents}");
        }
        assert!(fields("block_rq_issue", "9999999,0 R 1 + 2").is_empty());
    }
}
