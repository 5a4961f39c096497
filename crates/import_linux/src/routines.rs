//! Rows of interrupts and softirqs of Linux. The routines of one CPU are read from the events of their starts and ends.

use linux::{Meaning, Tracepoint};

use tables::{InterruptKind, Interrupts};

/// Maximum number of open routines of a CPU. The kernel nests only a few routines.
const DEEPEST: usize = 64;

/// Number that is added to the tracepoint id of an interrupt of the machine itself, such as the timer interrupt. The
/// kernel gives such interrupts no number. Other interrupts have numbers of 32 bits, so the sum is unique.
const OF_MACHINE: u64 = 1 << 32;

/// Names of softirqs, by number (`include/linux/interrupt.h`).
const SOFTIRQS: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// Open routines of a CPU: the routines that have started but have not ended, innermost routine last.
#[derive(Debug, Default)]
pub(crate) struct Routines {
    open: Vec<OpenRoutine>,
    /// True while a thread `ksoftirqd` runs on the CPU. Such a thread only runs softirqs.
    in_ksoftirqd: bool,
}

#[derive(Debug)]
struct OpenRoutine {
    start_ns: i64,
    kind: InterruptKind,
    number: u64,
    name: String,
}

impl Routines {
    /// Takes an event of the CPU. Adds a row if a routine ends.
    pub(crate) fn add(
        &mut self,
        cpu: u16,
        time_ns: i64,
        tracepoint: &Tracepoint<'_>,
        rows: &mut Interrupts,
    ) {
        match tracepoint.meaning {
            Meaning::Switch(switch) => {
                self.in_ksoftirqd = switch.next.name.bytes().starts_with(b"ksoftirqd/");
                // All routines end before the CPU switches threads. So if a routine is still open, its end event was
                // lost.
                self.open.clear();
            }
            Meaning::InterruptEntry { number, name } => {
                let name = String::from_utf8_lossy(name);
                let name = format!("irq {number} {name}");
                self.begin(time_ns, InterruptKind::Isr, number.into(), name);
            }
            Meaning::InterruptExit { number } => {
                let number = u64::from(number);
                self.end(cpu, time_ns, rows, |open| {
                    (open.kind, open.number) == (InterruptKind::Isr, number)
                });
            }
            Meaning::VectorEntry { id, name } => {
                let number = OF_MACHINE + u64::from(id);
                self.begin(
                    time_ns,
                    InterruptKind::Isr,
                    number,
                    format!("{name} interrupt"),
                );
            }
            Meaning::VectorExit { name } => {
                let name = format!("{name} interrupt");
                self.end(cpu, time_ns, rows, |open| open.name == name);
            }
            Meaning::SoftirqEntry { vector } => {
                let name = SOFTIRQS.get(vector as usize);
                let name =
                    name.map_or_else(|| format!("softirq {vector}"), |it| format!("softirq {it}"));
                self.begin(time_ns, self.softirq(), vector.into(), name);
            }
            Meaning::SoftirqExit { vector } => {
                let vector = u64::from(vector);
                self.end(cpu, time_ns, rows, |open| {
                    open.kind != InterruptKind::Isr && open.number == vector
                });
            }
            _ => {}
        }
    }

    fn softirq(&self) -> InterruptKind {
        if self.in_ksoftirqd {
            InterruptKind::ThreadedDpc
        } else {
            InterruptKind::Dpc
        }
    }

    fn begin(&mut self, start_ns: i64, kind: InterruptKind, number: u64, name: String) {
        if self.open.len() < DEEPEST {
            self.open.push(OpenRoutine {
                start_ns,
                kind,
                number,
                name,
            });
        }
    }

    fn end(
        &mut self,
        cpu: u16,
        end_ns: i64,
        rows: &mut Interrupts,
        is_it: impl Fn(&OpenRoutine) -> bool,
    ) {
        let Some(at) = self.open.iter().rposition(is_it) else {
            return;
        };
        // The routines after index `at` are nested in this routine. They are removed too, because their end events were
        // lost.
        let Some(open) = self.open.drain(at..).next() else {
            return;
        };
        rows.start_ns.push(Some(open.start_ns));
        rows.end_ns.push(end_ns);
        rows.cpu.push(cpu);
        rows.kind.0.push(open.kind);
        rows.routine.push(open.number);
        rows.duration_ns
            .push(Some(end_ns.saturating_sub(open.start_ns)));
        rows.vector.push(None);
        rows.return_value.push(None);
        rows.message_number.push(None);
        rows.name.push(Some(&open.name));
    }
}
