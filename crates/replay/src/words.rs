//! Sentences about predictions.

use wording::{Name, Sentence, duration, listed};

use crate::predict::{Bar, Metric, PredictedMetric, Prediction, Row};

/// Metrics in the order in which a sentence prefers them.
const TOLD: [Metric; 6] = [
    Metric::ReadyP99,
    Metric::ReadyTotal,
    Metric::ReadyMedian,
    Metric::ResponseP99,
    Metric::ResponseMedian,
    Metric::Cpu,
];

impl Prediction {
    /// Returns the answer in one sentence. It is about the first row if the user asked for it, else about the process
    /// whose waits change most.
    pub fn sentence(&self, is_asked: bool) -> Sentence {
        Sentence::from(self.marked(is_asked))
    }

    fn marked(&self, is_asked: bool) -> String {
        let changes = listed(
            self.changes
                .iter()
                .map(|change| format!("`{}`", Name(change))),
        );
        let predicted = |row: &&Row| row.refused.is_none() && !row.metrics.is_empty();
        let row = if is_asked {
            self.rows.first()
        } else {
            // Of several rows with the same change, the first is chosen: `max_by` returns the last.
            let rows = self.rows.iter().rev();
            let rows: Vec<&Row> = rows
                .filter(|row| row.thread_id.is_none())
                .filter(predicted)
                .collect();
            if !rows.is_empty() && !rows.iter().any(|row| differs(row)) {
                return format!(
                    "{changes} would have no effect on a program that is larger than the error bar."
                );
            }
            let rows = rows.into_iter().filter(|row| differs(row));
            rows.max_by(|a, b| gain(a).total_cmp(&gain(b)))
        };
        let Some(row) = row else {
            return format!(
                "No prediction for {changes}: the replay reproduces no process of the record."
            );
        };
        let name = row.marked_name();
        if let Some(why) = &row.refused {
            return format!("No prediction for {name} with {changes}: {why}.");
        }
        let first = TOLD.iter().find_map(|metric| {
            let metric = row.get(*metric)?;
            metric.differs().then_some(metric)
        });
        let Some(prediction) = first else {
            return format!(
                "{changes} would have no effect on {name} that is larger than the error bar."
            );
        };
        let Bar {
            low_ns, high_ns, ..
        } = prediction.bar;
        let (metric, recorded) = (prediction.metric.text(), text(prediction.recorded_ns));
        match prediction.bound_ns {
            Some(far_ns) => format!(
                "With {changes}, the {metric} of {name} would be between {} and the recorded {recorded}.",
                text(far_ns),
            ),
            None => format!(
                "With {changes}, the {metric} of {name} would be {} instead of {recorded} (bar {} to {}).",
                text(prediction.predicted_ns),
                text(low_ns),
                text(high_ns),
            ),
        }
    }
}

/// Returns true if a number of the row would differ from the record.
fn differs(row: &Row) -> bool {
    row.metrics.iter().any(PredictedMetric::differs)
}

/// Returns the size of the predicted change of a row's waits.
fn gain(row: &Row) -> f64 {
    let change = |metric: &PredictedMetric| (metric.recorded_ns - metric.predicted_ns).abs();
    let metric = row
        .get(Metric::ReadyTotal)
        .filter(|metric| metric.differs());
    metric.map_or(0.0, change)
}

fn text(ns: f64) -> String {
    duration(ns.round() as i64)
}

impl Row {
    /// Returns the name of the thread or process.
    pub fn name(&self) -> Sentence {
        Sentence::from(self.marked_name())
    }

    fn marked_name(&self) -> String {
        let process = match &self.process {
            Some(name) => format!("{} ({})", Name(name), self.process_id),
            None => format!("process {}", self.process_id),
        };
        match (self.thread_id, &self.thread) {
            (None, _) => process,
            (Some(id), Some(name)) if !name.is_empty() => {
                format!("thread {} ({id}) of {process}", Name(name))
            }
            (Some(id), _) => format!("thread {id} of {process}"),
        }
    }
}
