//! How much of the CPUs' time went to DPCs and interrupt service routines.

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use serde::Serialize;
use tables::Tables;

use super::largest;
use super::names::Names;

/// Longest that Microsoft's driver guidance allows a DPC routine to run, in nanoseconds.
const DPC_LIMIT_NS: i64 = 100_000;
/// The same for an interrupt service routine.
const ISR_LIMIT_NS: i64 = 25_000;

/// DPCs and service routines.
#[derive(Debug, Serialize)]
pub(crate) struct Interrupts {
    /// From their own events, exact; `None` if the trace has none.
    pub(crate) recorded: Option<Recorded>,
    /// From the flags of samples; `None` before Windows 7 or without samples.
    pub(crate) sampled: Option<Sampled>,
}

/// Exact figures.
#[derive(Debug, Serialize)]
pub(crate) struct Recorded {
    /// DPCs of all sorts.
    pub(crate) dpc: Kind,
    /// Service routines of all sorts.
    pub(crate) isr: Kind,
    /// The modules that used most.
    pub(crate) modules: Vec<ModuleTime>,
    /// Per CPU, those with most first.
    pub(crate) cpus: Vec<CpuShare>,
}

/// All DPCs, or all service routines.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Kind {
    /// How many ran.
    pub(crate) count: u64,
    /// Those whose times make no sense; they are missing from the sums.
    pub(crate) without_duration: u64,
    /// Their time without what interrupted them.
    pub(crate) exclusive_ns: i64,
    /// The longest, with what interrupted it.
    pub(crate) longest_ns: i64,
    /// How many ran longer than the limit for drivers.
    pub(crate) over_limit: u64,
    /// That limit.
    pub(crate) limit_ns: i64,
}

/// What one module's routines used.
#[derive(Debug, Serialize)]
pub(crate) struct ModuleTime {
    /// Its file name, or the routine's address if no image covers it.
    pub(crate) module: String,
    /// How many of its routines ran.
    pub(crate) count: u64,
    /// Their time without what interrupted them.
    pub(crate) exclusive_ns: i64,
    /// The longest.
    pub(crate) longest_ns: i64,
}

/// What went to interrupts on one CPU.
#[derive(Debug, Serialize)]
pub(crate) struct CpuShare {
    /// The CPU.
    pub(crate) cpu: u16,
    /// Time in DPCs and service routines.
    pub(crate) exclusive_ns: i64,
}

/// Figures from samples.
#[derive(Debug, Serialize)]
pub(crate) struct Sampled {
    /// All samples, of idle threads too.
    pub(crate) samples: u64,
    /// Samples in a DPC.
    pub(crate) in_dpc: u64,
    /// Samples in a service routine.
    pub(crate) in_isr: u64,
}

pub(super) fn read(tables: &Tables, names: &Names<'_>) -> Option<Interrupts> {
    let (recorded, sampled) = (recorded(tables, names), sampled(tables));
    (recorded.is_some() || sampled.is_some()).then_some(Interrupts { recorded, sampled })
}

fn recorded(tables: &Tables, names: &Names<'_>) -> Option<Recorded> {
    let mut dpc = Kind {
        limit_ns: DPC_LIMIT_NS,
        ..Kind::default()
    };
    let mut isr = Kind {
        limit_ns: ISR_LIMIT_NS,
        ..Kind::default()
    };
    let mut routines: FxHashMap<u64, (u64, i64, i64, i64)> = FxHashMap::default();
    let mut cpus: HashMap<u16, i64> = HashMap::new();
    for table in &tables.interrupts {
        for row in 0..table.len() {
            let kind = if table.kind.0[row].is_isr() {
                &mut isr
            } else {
                &mut dpc
            };
            let exclusive = table.exclusive_ns.get(row).unwrap_or(0);
            let inclusive = table.duration_ns.get(row).unwrap_or(0);
            kind.count += 1;
            kind.without_duration += u64::from(table.duration_ns.get(row).is_none());
            kind.exclusive_ns = kind.exclusive_ns.saturating_add(exclusive);
            kind.longest_ns = kind.longest_ns.max(inclusive);
            kind.over_limit += u64::from(inclusive > kind.limit_ns);
            let cpu = cpus.entry(table.cpu[row]).or_default();
            *cpu = cpu.saturating_add(exclusive);
            let routine = routines.entry(table.routine[row]).or_default();
            *routine = (
                routine.0 + 1,
                routine.1.saturating_add(exclusive),
                routine.2.max(inclusive),
                table.end_ns[row],
            );
        }
    }
    if dpc.count + isr.count == 0 {
        return None;
    }
    let mut modules: HashMap<String, ModuleTime> = HashMap::new();
    for (address, (count, exclusive, longest, time)) in routines {
        let module = names
            .kernel_module(address, time)
            .map_or_else(|| format!("{address:#x}"), str::to_owned);
        let of = modules.entry(module.clone()).or_insert(ModuleTime {
            module,
            count: 0,
            exclusive_ns: 0,
            longest_ns: 0,
        });
        of.count += count;
        of.exclusive_ns = of.exclusive_ns.saturating_add(exclusive);
        of.longest_ns = of.longest_ns.max(longest);
    }
    let cpus = cpus
        .into_iter()
        .map(|(cpu, exclusive_ns)| CpuShare { cpu, exclusive_ns })
        .collect();
    Some(Recorded {
        dpc,
        isr,
        modules: largest(modules.into_values().collect(), |m| {
            (m.exclusive_ns, std::cmp::Reverse(m.module.clone()))
        }),
        cpus: largest(cpus, |c: &CpuShare| {
            (c.exclusive_ns, std::cmp::Reverse(c.cpu))
        }),
    })
}

fn sampled(tables: &Tables) -> Option<Sampled> {
    let mut sum = Sampled {
        samples: 0,
        in_dpc: 0,
        in_isr: 0,
    };
    for samples in &tables.samples {
        for row in 0..samples.len() {
            let count = u64::from(samples.count[row].max(1));
            let (Some(dpc), Some(isr)) = (samples.in_dpc.get(row), samples.in_isr.get(row)) else {
                continue;
            };
            sum.samples += count;
            sum.in_dpc += count * u64::from(dpc);
            sum.in_isr += count * u64::from(isr);
        }
    }
    (sum.samples > 0).then_some(sum)
}
