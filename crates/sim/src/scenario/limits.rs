//! Limits of a scenario. The machine must be possible. The memory and the time that the simulation needs must
//! be proportionate to the length of the scenario.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::{Amount, Device, Disk, Document, Fault, Flow, Process, Step, ThreadSpec, Verb};
use crate::quantity::Nanoseconds;

/// Maximum length of a trace: a day.
const LONGEST: Nanoseconds = Nanoseconds(24 * 3_600 * 1_000_000_000);

/// Maximum number of processors.
pub(crate) const MAX_CPUS: u16 = 256;

/// Maximum number of threads.
const MOST_THREADS: u64 = 20_000;

/// Maximum number of watched threads in one `[[process.thread]]`. More would make the model slow,
/// because it updates the ready time of every watched thread at every event.
const MOST_WATCHED: u32 = 64;

/// Maximum number of bytes of a disk transfer, and of all packets of one interrupt together.
const MOST_BYTES: u64 = 1 << 30;

/// Maximum number of characters of a text that becomes part of an event. An event has at most 64
/// KiB.
const LONGEST_TEXT: usize = 8_000;

/// Minimum average time between two repetitions of an interrupt, an arrival of packets or an
/// action.
const LEAST_GAP: Nanoseconds = Nanoseconds(1_000);

/// Checks the limits of all fields. References between items are checked when the model is built.
pub(crate) fn check(document: &Document) -> Result<(), Fault> {
    at_least("duration", document.duration, Nanoseconds(1))?;
    at_most("duration", document.duration, LONGEST)?;
    if let Some(events) = document.events {
        within("events", events, 1..=u64::MAX)?;
    }
    machine(document).map_err(|fault| fault.inside("machine"))?;
    scheduler(document).map_err(|fault| fault.inside("scheduler"))?;
    record(document).map_err(|fault| fault.inside("record"))?;
    trouble(document).map_err(|fault| fault.inside("trouble"))?;
    lists(document)?;
    for (n, group) in document.groups.iter().enumerate() {
        within("weight", group.weight, 1..=9)
            .and_then(|()| within("bias", group.bias, 0..=63))
            .and_then(|()| {
                new(
                    "name",
                    &group.name,
                    document.groups[..n].iter().map(|g| &g.name),
                )
            })
            .map_err(|fault| fault.member("group", n))?;
    }
    let mut threads = 0;
    for (n, spec) in document.processes.iter().enumerate() {
        process(document, spec, &mut threads).map_err(|fault| fault.member("process", n))?;
    }
    for (n, spec) in document.disks.iter().enumerate() {
        disk(document, spec)
            .and_then(|()| {
                let earlier = document.disks[..n].iter().map(|disk| &disk.number);
                new("number", &spec.number, earlier)
            })
            .map_err(|fault| fault.member("disk", n))?;
    }
    for (n, nic) in document.nics.iter().enumerate() {
        new(
            "name",
            &nic.name,
            document.nics[..n].iter().map(|nic| &nic.name),
        )
        .map_err(|fault| fault.member("nic", n))?;
    }
    for (n, spec) in document.devices.iter().enumerate() {
        device(document, spec).map_err(|fault| fault.member("device", n))?;
    }
    for (n, spec) in document.flows.iter().enumerate() {
        flow(document, spec)
            .and_then(|()| {
                let earlier = document.flows[..n].iter().map(|flow| &flow.name);
                new("name", &spec.name, earlier)
            })
            .map_err(|fault| fault.member("flow", n))?;
    }
    for (n, action) in document.actions.iter().enumerate() {
        if action.times > 1 {
            at_least("every", action.every, LEAST_GAP).map_err(|fault| fault.member("at", n))?;
        }
    }
    Ok(())
}

fn machine(document: &Document) -> Result<(), Fault> {
    /// Start of the years 1970 and 2400, as FILETIME.
    const DATES: RangeInclusive<u64> = 116_444_736_000_000_000..=252_139_392_000_000_000;
    let machine = &document.machine;
    within("processors", machine.processors, 1..=MAX_CPUS)?;
    within("clock_hz", machine.clock_hz, 1_000..=10_000_000_000)?;
    within("cpu_mhz", machine.cpu_mhz, 1..=20_000)?;
    within("start", machine.start, DATES)?;
    within("c_states", machine.c_states.len(), 0..=16).map_err(|mut fault| {
        fault.message.push_str(" states");
        fault
    })?;
    short("name", &machine.name)
}

fn scheduler(document: &Document) -> Result<(), Fault> {
    let scheduler = &document.scheduler;
    if let Some(slice) = scheduler.short_slice {
        at_least("short_slice", slice, Nanoseconds(10_000))?;
    }
    at_least("generation", scheduler.generation, Nanoseconds(1_000_000))?;
    at_least("rank_step", scheduler.rank_step, Nanoseconds(10_000))?;
    within("ungrouped_weight", scheduler.ungrouped_weight, 0..=1_000)?;
    within("highest_rank", scheduler.highest_rank, 1..=127)
}

fn record(document: &Document) -> Result<(), Fault> {
    let record = &document.record;
    if record.sampling_interval > 0 {
        within(
            "sampling_interval",
            record.sampling_interval,
            1_000..=10_000_000,
        )?;
    }
    within("buffer_kib", record.buffer_kib, 4..=16_384)?;
    if !record.buffer_kib.is_power_of_two() {
        let message = format!(
            "`buffer_kib` must be a power of two, found {}",
            record.buffer_kib
        );
        return Err(Fault::of("buffer_kib", message));
    }
    Ok(())
}

fn trouble(document: &Document) -> Result<(), Fault> {
    for (n, loss) in document.trouble.lose.iter().enumerate() {
        in_order(loss.from, loss.to)
            .and_then(|()| cpus(document, "cpus", loss.cpus.as_deref().unwrap_or_default()))
            .map_err(|fault| fault.member("lose", n))?;
    }
    for (n, skew) in document.trouble.skew.iter().enumerate() {
        cpus(document, "cpu", &[skew.cpu]).map_err(|fault| fault.member("skew", n))?;
    }
    Ok(())
}

fn lists(document: &Document) -> Result<(), Fault> {
    for (name, length, most) in [
        ("group", document.groups.len(), 64),
        ("process", document.processes.len(), 4_096),
        ("disk", document.disks.len(), 64),
        ("nic", document.nics.len(), 64),
        ("device", document.devices.len(), 4_096),
        ("flow", document.flows.len(), 4_096),
        ("at", document.actions.len(), 60_000),
        ("window", document.windows.len(), 1_000),
    ] {
        if length > most {
            let message =
                format!("a scenario can have at most {most} of `[[{name}]]`, found {length}");
            return Err(Fault::of(name, message));
        }
    }
    Ok(())
}

fn process(document: &Document, process: &Process, threads: &mut u64) -> Result<(), Fault> {
    short("name", &process.name)?;
    short("path", process.path.as_deref().unwrap_or_default())?;
    short("service", process.service.as_deref().unwrap_or_default())?;
    short(
        "command_line",
        process.command_line.as_deref().unwrap_or_default(),
    )?;
    for (n, spec) in process.threads.iter().enumerate() {
        thread(document, spec)
            .and_then(|()| {
                *threads += u64::from(spec.count);
                if *threads > MOST_THREADS {
                    Err(Fault::of(
                        "count",
                        format!(
                            "a scenario can have at most {MOST_THREADS} threads, found {threads}"
                        ),
                    ))
                } else {
                    Ok(())
                }
            })
            .map_err(|fault| fault.member("thread", n))?;
    }
    Ok(())
}

fn thread(document: &Document, thread: &ThreadSpec) -> Result<(), Fault> {
    short("name", &thread.name)?;
    let most = if thread.watch { MOST_WATCHED } else { u32::MAX };
    within("count", thread.count, 1..=most)?;
    if let Some(priority) = thread.priority {
        within("priority", priority, 1..=31)?;
    }
    if let Some(affinity) = &thread.affinity {
        some_cpus(document, "affinity", affinity)?;
    }
    cpus(document, "ideal", thread.ideal.as_slice())?;
    steps("program", &thread.program)
}

fn steps(field: &str, list: &[Step]) -> Result<(), Fault> {
    for (n, step) in list.iter().enumerate() {
        let checked = match &step.verb {
            Verb::Transfer { write, bytes, .. } => {
                let field = if *write { "write" } else { "read" };
                within(field, bytes.0, 0..=MOST_BYTES)
            }
            Verb::Set { boost, .. } => within("boost", *boost, 0..=15),
            Verb::Fault { bytes, .. } => within("fault", bytes.0, 0..=MOST_BYTES),
            Verb::Send {
                bytes: Some(bytes), ..
            } => within("bytes", bytes.0, 0..=MOST_BYTES),
            Verb::Mark(text) => short("mark", text),
            Verb::Repeat {
                times: Some(_),
                steps: inner,
                ..
            } => steps("steps", inner),
            Verb::Repeat {
                times: None,
                steps: inner,
                ..
            } if !inner.iter().any(takes_time) => Err(Fault::of(
                "forever",
                "these steps never let time pass; add one that runs, sleeps or waits",
            )),
            Verb::Repeat {
                times: None,
                steps: inner,
                ..
            } => steps("forever", inner),
            _ => Ok(()),
        };
        checked.map_err(|fault| fault.member(field, n))?;
    }
    Ok(())
}

/// Returns true if a step may let time pass, or ends the thread.
fn takes_time(step: &Step) -> bool {
    match &step.verb {
        Verb::Run(_)
        | Verb::Sleep(_)
        | Verb::Wait { .. }
        | Verb::Acquire { .. }
        | Verb::Transfer { .. }
        | Verb::Fault { .. }
        | Verb::Flush(_)
        | Verb::Send { .. }
        | Verb::Receive(_)
        | Verb::Message
        | Verb::Exit => true,
        Verb::Repeat { steps, .. } => steps.iter().any(takes_time),
        _ => false,
    }
}

fn disk(document: &Document, disk: &Disk) -> Result<(), Fault> {
    within("queue_depth", disk.queue_depth, 1..=65_536)?;
    within("bytes_per_second", disk.bytes_per_second.0, 1..=u64::MAX)?;
    cpus(document, "cpu", &[disk.cpu])
}

fn device(document: &Document, device: &Device) -> Result<(), Fault> {
    some_cpus(document, "cpus", &device.cpus)?;
    cpus(document, "target", device.target.as_slice())?;
    if device.every.is_none() && device.count.is_none() {
        return Err(Fault::of("name", "a device needs `every` or `count`"));
    }
    pace(document, device.every, device.count, device.from, device.to)
}

fn flow(document: &Document, flow: &Flow) -> Result<(), Fault> {
    within("peers", flow.peers, 1..=65_536)?;
    within("dscp", flow.dscp, 0..=63)?;
    within("packets", flow.packets, 1..=65_536)?;
    within(
        "bytes",
        flow.bytes.0,
        0..=MOST_BYTES / u64::from(flow.packets),
    )?;
    within("window", flow.window.unwrap_or(0), 0..=65_536)?;
    if flow.window.is_some() && flow.loss.is_some() {
        let message = "a flow with a `window` cannot have a `loss`: lost blocks are not sent again";
        return Err(Fault::of("loss", message));
    }
    if flow.peers > 1 && (flow.window.is_some() || flow.echo) {
        let message = "`peers` needs packets that arrive by `every` or `count`; it cannot be \
                       combined with `window` or `echo`";
        return Err(Fault::of("peers", message));
    }
    if flow.local.is_ipv4() != flow.remote.is_ipv4() {
        let message = format!(
            "`remote` and `local` must have the same address family, found {} and {}",
            flow.remote, flow.local
        );
        return Err(Fault::of("remote", message));
    }
    pace(document, flow.every, flow.count, flow.from, flow.to)
}

/// Checks the rate of events that occur without a request: interrupts of a device or packets of a
/// flow.
fn pace(
    document: &Document,
    every: Option<Amount>,
    count: Option<u64>,
    from: Nanoseconds,
    to: Option<Nanoseconds>,
) -> Result<(), Fault> {
    let to = to.unwrap_or(document.duration.max(from));
    in_order(from, to)?;
    if let Some(every) = every {
        if count.is_some() {
            let message = "`every` and `count` exclude each other; remove one";
            return Err(Fault::of("count", message));
        }
        at_least("every", every.middle(), LEAST_GAP)?;
    }
    let most = (to.0 - from.0) / LEAST_GAP.0;
    match count {
        Some(count) if count > most => Err(Fault::of(
            "count",
            format!(
                "{count} is more than one per microsecond between `from` and `to`; at most {most} fit"
            ),
        )),
        _ => Ok(()),
    }
}

fn in_order(from: Nanoseconds, to: Nanoseconds) -> Result<(), Fault> {
    if from <= to {
        Ok(())
    } else {
        Err(Fault::of("to", "`to` is before `from`"))
    }
}

fn within<T: PartialOrd + Display>(
    field: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), Fault> {
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = range.into_inner();
    Err(Fault::of(
        field,
        format!("`{field}` must be {least} to {most}, found {value}"),
    ))
}

fn at_least(field: &str, value: Nanoseconds, least: Nanoseconds) -> Result<(), Fault> {
    if value >= least {
        Ok(())
    } else {
        Err(Fault::of(
            field,
            format!(
                "`{field}` must be at least {} ns, found {} ns",
                least.0, value.0
            ),
        ))
    }
}

fn at_most(field: &str, value: Nanoseconds, most: Nanoseconds) -> Result<(), Fault> {
    if value <= most {
        Ok(())
    } else {
        Err(Fault::of(
            field,
            format!(
                "`{field}` must be at most {} ns, found {} ns",
                most.0, value.0
            ),
        ))
    }
}

fn short(field: &str, text: &str) -> Result<(), Fault> {
    match text.chars().count() {
        0..=LONGEST_TEXT => Ok(()),
        length => Err(Fault::of(
            field,
            format!("`{field}` can have at most {LONGEST_TEXT} characters, found {length}"),
        )),
    }
}

/// Checks that no earlier item has the same name or number.
fn new<'a, T: PartialEq + Display + 'a>(
    field: &str,
    value: &T,
    mut earlier: impl Iterator<Item = &'a T>,
) -> Result<(), Fault> {
    if earlier.any(|other| other == value) {
        Err(Fault::of(field, format!("{field} `{value}` exists twice")))
    } else {
        Ok(())
    }
}

fn some_cpus(document: &Document, field: &str, list: &[u16]) -> Result<(), Fault> {
    if list.is_empty() {
        return Err(Fault::of(
            field,
            format!("`{field}` needs at least one processor"),
        ));
    }
    cpus(document, field, list)
}

fn cpus(document: &Document, field: &str, list: &[u16]) -> Result<(), Fault> {
    let count = document.machine.processors;
    match list.iter().find(|cpu| **cpu >= count) {
        None => Ok(()),
        Some(cpu) => Err(Fault::of(
            field,
            format!(
                "there is no processor {cpu}: the machine has processors 0 to {}",
                count - 1
            ),
        )),
    }
}
