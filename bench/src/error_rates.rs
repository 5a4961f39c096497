//! Error rates of the methods of the crate `statistics`, by simulation.

use std::fmt::Write as _;

use statistics::looks::Spending;

use crate::Outcome;

#[path = "../../crates/statistics/tests/study/mod.rs"]
mod study;

/// Number of simulated comparisons of each row.
const ROUNDS: u32 = 2_000;

/// Writes the error rates of all methods. They should be at most 6.5 %.
pub(crate) fn all(report: &mut String) -> Outcome<()> {
    writeln!(
        report,
        "\n## Errors of the statistics\n\nSimulated: {ROUNDS} comparisons a row, in percent; the standard error \
         is 0.5. A method may err in 5 %. *Wrong*: a change is shown between equal variants. *Missed*: the 95 % \
         interval does not contain a change of 5 %.\n\n\
         | machine (10 runs of 200 samples) | pairs: wrong | missed | no pairs: wrong | missed | shift function: wrong |\n\
         |---|---|---|---|---|---|"
    )?;
    for machine in &study::MACHINES {
        let errors = study::errors(machine, ROUNDS, 1);
        writeln!(
            report,
            "| {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
            machine.name,
            errors.pairs,
            errors.pairs_missed,
            errors.unpaired,
            errors.unpaired_missed,
            errors.shifts
        )?;
    }
    writeln!(
        report,
        "\n| method | wrong | last interval misses |\n|---|---|---|"
    )?;
    for (name, spending) in [
        ("looks, little spent at first", Spending::Late),
        ("looks, evenly spent (`--until-sure`)", Spending::Even),
    ] {
        let [wrong, missed] = study::errors_of_looks(spending, ROUNDS, 2);
        writeln!(report, "| {name} | {wrong:.1} | {missed:.1} |")?;
    }
    let counts = study::errors_of_counts(ROUNDS, 3);
    writeln!(report, "| counts of 20 | {counts:.1} | {counts:.1} |")?;
    writeln!(
        report,
        "\n| pilot, pairs | half width of 48 pairs within 30 % of the forecast | in the range of the forecast (aim: 90) |\n|---|---|---|"
    )?;
    for pilot in [6, 12, 24, 32, 48] {
        let forecasts = study::forecasts(pilot, ROUNDS, 5);
        writeln!(
            report,
            "| {pilot} | {:.1} | {:.1} |",
            forecasts.near, forecasts.in_range
        )?;
    }
    let power = study::power(ROUNDS, 4);
    writeln!(
        report,
        "\n12 pairs that scatter by 5 % show a change of 10 % in {power:.1} % of comparisons (aim: 95 %)."
    )?;
    Ok(())
}
