//! The finding about a group of waits.

use std::ops::Range;

use tables::StoreError;

use super::pick::Edge;
use super::thread_samples::{self, ThreadSamples};
use super::{ABOUT, Facts, Group, SHOWN, stacks, words};
use crate::chain::cpu_wait::explain_wait;
use crate::chain::disk_waits;
use crate::chain::parts::{Part, What};
use crate::chain::path::{self, Thread};
use crate::chain::starved_threads::StarvedThreads;
use crate::chain::wakers;
use crate::drivers::is_of_windows;
use crate::finding::Attention;
use crate::thresholds::{BLAME_PERCENT, is_share};
use crate::{Case, Evidence, Finding, Subject};

impl Group<'_> {
    pub(super) fn finding(
        &self,
        case: &Case<'_>,
        facts: &Facts<'_>,
    ) -> Result<Option<Finding>, StoreError> {
        let worst = self.worst();
        let Some(blamed) = worst.blamed() else {
            return Ok(None);
        };
        let delay_ns = self.delay_ns(case);
        let (wait, range) = (worst.candidate.wait, worst.candidate.range());
        let starved = self.starved(case)?;
        let starved_wait = starved.as_ref().and_then(|_| worst.starved_wait(case));
        let text = words::HangText {
            case,
            group: self,
            facts,
            starved: starved.as_ref(),
            starved_wait: match starved_wait {
                Some(wait) => Some((wait, explain_wait(case, wait)?)),
                None => None,
            },
        };
        let severity = self.severity(delay_ns, facts.noticed);
        let mut finding = Finding::new(&ABOUT, severity, text.sentence())
            .subjects(self.subjects(case))
            .during(range.clone())
            .moments(self.ranges())
            .attention(facts.noticed.attention(wait.process_row, &range))
            .delay(delay_ns, text.cost());
        finding.why = text.why().into_iter().map(Into::into).collect();
        finding.evidence = self.evidence(case);
        finding = with_blamed(finding, case, facts, blamed, &range)?;
        let computed = self.computed(case)?;
        finding = self.with_computed(finding, case, &computed);
        finding.why.extend(self.input(case, facts)?.map(Into::into));
        let remedies = text.remedies(&computed);
        finding.remedies = remedies.into_iter().map(Into::into).collect();
        finding.doubts = text.doubts().into_iter().map(Into::into).collect();
        finding = self.with_stacks(finding, case, facts, blamed)?;
        if let Some(starved) = starved {
            finding.evidence.extend(starved.evidence);
        }
        Ok(Some(finding))
    }

    /// Returns the threads that ran while threads of the worst chain were ready, if these threads were ready for a notable
    /// part of the wait.
    fn starved(&self, case: &Case<'_>) -> Result<Option<StarvedThreads>, StoreError> {
        let worst = self.worst();
        if !is_share(worst.starved_ns(), worst.awake_ns().max(1), BLAME_PERCENT) {
            return Ok(None);
        }
        let thread = Thread {
            id: worst.candidate.wait.thread_id,
            row: worst.candidate.wait.thread_row,
        };
        StarvedThreads::read(case, thread, &[worst.candidate.range()]).map(Some)
    }

    /// Returns the rows of the waits, and the chain that led to the end of the worst one.
    fn evidence(&self, case: &Case<'_>) -> Vec<Evidence> {
        let worst = self.worst();
        let mut evidence = match worst.candidate.edge {
            Edge::Start => vec![self.open_waits()],
            _ => {
                let both = [self.table(case), self.responses(case)];
                both.into_iter().flatten().collect()
            }
        };
        if !worst.legs.is_empty() {
            let title = "What led to the end of the wait, step by step, latest first";
            let shown = &worst.legs[..worst.legs.len().min(SHOWN)];
            evidence.push(path::totals(
                case,
                "Time of the wait by thread",
                &worst.legs,
            ));
            evidence.push(path::evidence(case, title, shown));
        }
        evidence
    }

    /// Returns the main parts of the worst wait in which a thread ran, with the samples of these parts.
    fn computed(&self, case: &Case<'_>) -> Result<Vec<(Part, ThreadSamples)>, StoreError> {
        let worst = self.worst();
        let mut computed = Vec::new();
        let ran = worst.main_parts().into_iter();
        for part in ran.filter(|part| part.what == What::Ran) {
            let samples = ThreadSamples::read(case, &part.who, &worst.candidate.range())?;
            computed.extend(samples.map(|samples| (*part, samples)));
        }
        Ok(computed)
    }

    /// Adds what threads of the worst chain computed.
    fn with_computed(
        &self,
        mut finding: Finding,
        case: &Case<'_>,
        computed: &[(Part, ThreadSamples)],
    ) -> Finding {
        let worst = self.worst();
        for (part, samples) in computed.iter().rev() {
            let is_own = worst.is_own(part);
            let place = usize::from(!is_own).min(finding.why.len());
            let whose = (!is_own).then_some(&part.who);
            finding
                .why
                .insert(place, samples.sentence(case, whose).into());
            let module = samples.module(case).map(str::to_owned);
            finding = finding
                .subjects(module.map(|name| Subject::Module { name }))
                .with(samples.evidence(case, &part.who, &worst.candidate.range()));
        }
        finding
    }

    /// Returns a sentence about the user's input during the worst wait, if the user probably looked at the window.
    fn input(&self, case: &Case<'_>, facts: &Facts<'_>) -> Result<Option<String>, StoreError> {
        let candidate = &self.worst().candidate;
        let attention = facts
            .noticed
            .attention(candidate.wait.process_row, &candidate.range());
        let has_focus = attention == Some(Attention::Focus);
        if !candidate.is_window || !has_focus && facts.noticed.knows_focus() {
            return Ok(None);
        }
        thread_samples::input(case, &candidate.range(), has_focus)
    }

    /// Adds what the call stacks show about the worst wait.
    fn with_stacks(
        &self,
        mut finding: Finding,
        case: &Case<'_>,
        facts: &Facts<'_>,
        blamed: &Part,
    ) -> Result<Finding, StoreError> {
        let Some(shown) = stacks::cause(case, &facts.images, self.worst())? else {
            return Ok(finding);
        };
        finding.why.push(shown.sentence.into());
        if let Some(remedy) = shown.remedy {
            // The stack says more than the DPC of a part of Windows.
            if let What::Driver(row) = blamed.what
                && case.module_label(Some(row)).is_some_and(is_of_windows)
            {
                finding.remedies.clear();
            }
            finding.remedies.insert(0, remedy.into());
        }
        finding.sources.push(shown.source);
        Ok(finding)
    }
}

/// Adds the disk, the connection or the driver for which the blamed thread waited.
fn with_blamed(
    finding: Finding,
    case: &Case<'_>,
    facts: &Facts<'_>,
    blamed: &Part,
    range: &Range<i64>,
) -> Result<Finding, StoreError> {
    Ok(match blamed.what {
        What::Disk(disk) => finding
            .subjects([Subject::Disk { number: disk }])
            .with(disk_waits::evidence(case, disk, range)?),
        What::Network(remote) => {
            let remote = &facts.wakers.remotes[remote as usize];
            finding.with(wakers::evidence(
                case,
                blamed.who.process_row,
                remote,
                range,
            )?)
        }
        What::Driver(image_row) => {
            let name = case.module_label(Some(image_row)).map(str::to_owned);
            finding.subjects(name.map(|name| Subject::Module { name }))
        }
        _ => finding,
    })
}
