//! Loss of events as the cause of a wait: the thread may have run unseen.

use std::ops::Range;

use selection::{Condition, Expression, Order, Selection};
use tables::Table;

use super::weigh::{DamageRow, Facts, LOST, Scales};
use crate::chain::waiter::Waiter;
use crate::{Evidence, Unit, Value, Verdict, grouped};

/// Maximum number of rows of evidence.
const SHOWN: usize = 12;

/// Returns the verdict on lost events during a wait.
pub(crate) fn judge(
    facts: &Facts,
    waiter: &Waiter,
    is_doubtful: bool,
    scales: &Scales<'_>,
) -> Verdict {
    let mut damage: Vec<&DamageRow> = facts
        .damage
        .iter()
        .filter(|damage| damage.may_lie_in(&waiter.range))
        .collect();
    damage.sort_by_key(|damage| {
        let (end_ns, cpu) = (
            damage.end_ns.unwrap_or(i64::MAX),
            damage.cpu.map_or(u32::MAX, u32::from),
        );
        (
            damage.start_ns,
            damage.kind.clone(),
            end_ns,
            cpu,
            damage.count.unwrap_or(u64::MAX),
        )
    });
    let faults = match damage.len() {
        0 if waiter.ran_unseen || is_doubtful => {
            "No loss or damage is recorded for this time".to_owned()
        }
        0 => "The trace is complete at this time".to_owned(),
        1 => "One loss or damage may be from this time".to_owned(),
        n => format!(
            "{} losses or damages may be from this time",
            grouped(n as u64)
        ),
    };
    let (is_cause, because) = cause(facts, waiter, is_doubtful);
    let explains_ns = if is_cause { scales.ready_ns } else { 0 };
    let and = if damage.is_empty() && is_doubtful {
        "but"
    } else {
        "and"
    };
    let mut verdict = scales.explains(&LOST, explains_ns, format!("{faults}, {and} {because}."));
    if !damage.is_empty() {
        verdict.evidence.push(evidence(&waiter.range, &damage));
    }
    verdict
}

/// Returns true if the thread may have run unseen during the wait, and the reason for this answer.
fn cause(facts: &Facts, waiter: &Waiter, is_doubtful: bool) -> (bool, &'static str) {
    match (waiter.ran_unseen, is_doubtful) {
        (true, _) => (
            true,
            "switches contradict each other during the wait, or the switches of a CPU are missing: the thread may \
             have run unseen",
        ),
        (false, true) if facts.may_be_of_run_before(waiter) => (
            true,
            "the clocks disagree by more than the time between the thread's previous run and the event that readied \
             it: the event may belong to that run",
        ),
        (false, true) if facts.clocks_disagree() => (
            true,
            "CPUs were idle during the wait, and clocks disagree: the thread probably ran at once",
        ),
        (false, true) if waiter.wait.is_none() => (
            true,
            "CPUs were idle during the wait: the thread probably ran, but the end of the trace lacks that \
             run",
        ),
        (false, true) if waiter.ticks_before.is_some() => (
            true,
            "CPUs were idle during the wait: the trace probably lacks the event that readied the thread",
        ),
        (false, true) => (
            true,
            "CPUs were idle during the wait: the thread probably ran unseen",
        ),
        (false, false) if waiter.certain.is_some() => (
            false,
            "after the last loss, switches and samples of all CPUs are complete",
        ),
        (false, false) => (false, "no switches contradict each other during the wait"),
    }
}

fn evidence(Range { start, end }: &Range<i64>, damage: &[&DamageRow]) -> Evidence {
    let selection = Selection::new(Table::Damages)
        .filter(Condition::Below("start_ns", *end))
        .filter(Condition::Any(vec![
            Condition::IsUnknown("end_ns"),
            Condition::AtLeast("end_ns", start.saturating_add(1)),
        ]))
        .order(&[
            Order::ascending("start_ns"),
            Order::ascending("kind"),
            Order::ascending("end_ns"),
            Order::ascending("cpu"),
            Order::ascending("count"),
        ])
        .limit(SHOWN);
    let kinds = Selection::new(Table::Damages).column("kind", Expression::Column("kind"));
    let evidence = Evidence::from_selection("Losses and damage during the wait", selection)
        .about(kinds)
        .stored("kind", "what", Unit::None)
        .stored("cpu", "CPU", Unit::None)
        .stored("start_ns", "from", Unit::Moment)
        .stored("end_ns", "to", Unit::Moment)
        .stored("count", "how many", Unit::Count);
    let shown = damage.iter().take(SHOWN);
    shown.fold(evidence, |evidence, damage| {
        evidence.row([
            damage.kind.as_deref().map(Value::from),
            damage.cpu.map(Value::from),
            Some(damage.start_ns.into()),
            damage.end_ns.map(Value::from),
            damage.count.map(Value::from),
        ])
    })
}
