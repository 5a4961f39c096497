//! Text of the report in xperf's layout.

use std::io::{self, Write};
use std::sync::Arc;

use wording::Printable;

use super::{CLASSES, DpcIsr, Figures, Kind, OverTime, Sum};
use crate::percent;

const LINE: &str = "--------------------------";

pub(super) fn write(out: &mut dyn Write, figures: &Figures, shown: &DpcIsr) -> io::Result<()> {
    for (kind, modules) in &figures.by_module {
        let title = match kind {
            Kind::Dpc => "DPC Info",
            Kind::Isr => "Interrupt Info",
        };
        writeln!(out, "{LINE}\n{title}\n")?;
        if shown.summary {
            usage(out, figures, modules.iter())?;
        }
        if shown.histogram {
            let mut all = Sum::default();
            for sum in modules.values() {
                all.merge(sum);
            }
            histogram(out, &all, "")?;
            for (module, sum) in modules {
                histogram(out, sum, &format!(" for module {}", name(module)))?;
            }
            let count = all.count;
            writeln!(out, "All Module = {count},  Total = {count},   EQUAL\n")?;
        }
        if let Some(over_time) = &figures.over_time {
            intervals(out, figures, over_time, *kind)?;
        }
    }
    match &figures.buckets {
        Some(buckets) => distribution(out, figures, buckets),
        None => Ok(()),
    }
}

/// Returns the name of a module as xperf prints it.
fn name(module: &Option<Arc<str>>) -> Printable<'_> {
    Printable(module.as_deref().unwrap_or("\"Unknown\""))
}

fn microseconds(ns: i64) -> i64 {
    ns.div_euclid(1000)
}

fn usage<'s>(
    out: &mut dyn Write,
    figures: &Figures,
    modules: impl Iterator<Item = (&'s Option<Arc<str>>, &'s Sum)>,
) -> io::Result<()> {
    let (from, to) = (
        microseconds(figures.span.start),
        microseconds(figures.span.end),
    );
    writeln!(
        out,
        "{LINE}\nCPU Usage Summing By Module For the Whole Trace\n"
    )?;
    writeln!(out, "CPU Usage from {from} us to {to} us:\n")?;
    for cpu in &figures.cpus {
        write!(out, "{:>16},", format!("CPU {cpu} Usage"))?;
    }
    writeln!(out)?;
    for _ in &figures.cpus {
        write!(out, "{:>9} {:>6},", "usec", "%")?;
    }
    writeln!(out, " Module")?;
    for (module, sum) in modules {
        for cpu in &figures.cpus {
            let used = sum.exclusive_ns.get(cpu).copied().unwrap_or(0);
            let share = percent(used, figures.length());
            write!(out, "{:>9} {share:>6.2},", microseconds(used))?;
        }
        writeln!(out, " {}", name(module))?;
    }
    writeln!(out)
}

fn histogram(out: &mut dyn Write, sum: &Sum, of: &str) -> io::Result<()> {
    writeln!(out, "Total = {}{of}", sum.count)?;
    for (over, up_to, count) in sum.classes() {
        let share = percent(count as i64, sum.count as i64);
        let (over, up_to) = (over / 1000, up_to / 1000);
        writeln!(
            out,
            "Elapsed Time, > {over:>8} usecs AND <= {up_to:>8} usecs, {count:>6}, or {share:>6.2}%"
        )?;
    }
    let known: u64 = sum.histogram.iter().sum();
    if known < sum.count {
        writeln!(
            out,
            "Elapsed Time unknown,                        {:>6}",
            sum.count - known
        )?;
    }
    writeln!(
        out,
        "Total,                                              {:>6}\n",
        sum.count
    )
}

fn intervals(
    out: &mut dyn Write,
    figures: &Figures,
    over_time: &OverTime,
    kind: Kind,
) -> io::Result<()> {
    let count = over_time.intervals.count();
    let ms = |ns: i64| ns.div_euclid(1_000_000);
    let (from, to) = (ms(figures.span.start), ms(figures.span.end));
    let length = over_time.intervals.length() as f64 / 1e9;
    writeln!(out, "{LINE}")?;
    writeln!(
        out,
        "Usage From {from} ms to {to} ms, Summing In {length} second intervals. Intervals={count}\n"
    )?;
    write!(out, "{:>23}", "")?;
    for cpu in &figures.cpus {
        write!(out, ",{:>17} ", format!("CPU {cpu} Usage"))?;
    }
    writeln!(out)?;
    write!(out, "Start (ms) End (ms)    ")?;
    for _ in &figures.cpus {
        write!(out, ",{:>10} {:>6} ", "(usec)", "%")?;
    }
    writeln!(out)?;
    let used: Vec<Vec<i64>> = figures
        .cpus
        .iter()
        .map(|cpu| over_time.finish(kind, *cpu))
        .collect();
    for index in 0..count {
        let bounds = over_time.intervals.bounds(index);
        let label = format!("{:>10}-{}", ms(bounds.start), ms(bounds.end));
        write!(out, "{label:<22}:")?;
        for used in &used {
            let share = percent(used[index], bounds.end - bounds.start);
            write!(out, ",{:>10} {share:>6.2} ", microseconds(used[index]))?;
        }
        writeln!(out)?;
    }
    writeln!(out)
}

fn distribution(out: &mut dyn Write, figures: &Figures, buckets: &OverTime) -> io::Result<()> {
    let length = buckets.intervals.length() / 1_000_000;
    writeln!(
        out,
        "Distribution of number of {length} ms intervals w.r.t. DPC/ISR usage:\n"
    )?;
    write!(out, "{:>16}", "")?;
    for cpu in &figures.cpus {
        write!(out, ",{:>27}", format!("CPU {cpu}"))?;
    }
    writeln!(out)?;
    write!(out, " DPC/ISR Usage %")?;
    for _ in &figures.cpus {
        write!(out, ",{:>9}{:>9}{:>9}", "DPC", "ISR", "Combined")?;
    }
    writeln!(out)?;
    let counts: Vec<[[u64; CLASSES.len()]; 3]> = figures
        .cpus
        .iter()
        .map(|cpu| {
            let dpc = buckets.finish(Kind::Dpc, *cpu);
            let isr = buckets.finish(Kind::Isr, *cpu);
            let both: Vec<i64> = dpc.iter().zip(&isr).map(|(dpc, isr)| dpc + isr).collect();
            [dpc, isr, both].map(|used| figures.distribution(&used, &buckets.intervals))
        })
        .collect();
    let mut over = 0;
    for (class, up_to) in CLASSES.iter().enumerate() {
        let sign = if class == 0 { ">=" } else { "> " };
        write!(out, "{sign} {over:>2} AND <= {up_to:>3}")?;
        over = *up_to;
        for [dpc, isr, both] in &counts {
            write!(
                out,
                ",{:>9},{:>8},{:>8}",
                dpc[class], isr[class], both[class]
            )?;
        }
        writeln!(out)?;
    }
    write!(out, "---\nTotal:          ")?;
    for [dpc, isr, both] in &counts {
        let sum = |counts: &[u64]| counts.iter().sum::<u64>();
        write!(out, ",{:>9},{:>8},{:>8}", sum(dpc), sum(isr), sum(both))?;
    }
    writeln!(out)
}
