//! `laglab profile`: CPU use by process and module, from samples of the profile timer.

use std::sync::Arc;

use tables::{MAX_WEIGHT_NS, SamplesView, Table};

use crate::layout::Fold::Share;
use crate::layout::Format::{Module, Plain, Process, Time};
use crate::layout::{Column, Layout};
use crate::place::PlaceOptions;
use crate::rows::Times;
use crate::{Error, Recording, Report, Writer};

static BY_PROCESS: Layout<Sample> = Layout {
    name: "profile",
    columns: &[
        Column::new("Process Name ( PID)", "", Process),
        Column::new("    Weight", "weight_ns", Time).sum(|sample| sample.weight_ns.into()),
        Column::new("% Usage", "cpu_percent", Plain).fold(Share),
        Column::new("     Count", "samples", Plain).sum(|sample| sample.count.into()),
    ],
};

static BY_MODULE: Layout<Sample> = Layout {
    name: "profile_detail",
    columns: &[
        Column::new("Process Name ( PID)", "", Process),
        Column::new("    Weight", "weight_ns", Time).sum(|sample| sample.weight_ns.into()),
        Column::new("% Usage", "cpu_percent", Plain).fold(Share),
        Column::new("Module!Function", "module", Module)
            .value(|sample| sample.place.as_deref().into()),
        Column::new("", "samples", Plain).sum(|sample| sample.count.into()),
    ],
};

/// Options of `laglab profile`.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// True to show the modules or functions of each process.
    pub detail: bool,
    /// Grouping of addresses.
    pub places: PlaceOptions,
}

/// Values of a sample that the report computes.
struct Sample {
    count: u16,
    weight_ns: Option<i64>,
    /// Name of the module or function.
    place: Option<Arc<str>>,
}

impl Report for Profile {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Samples, Table::Cpus, Table::Damages]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        let samples = trace.rows(Table::Samples, Times::At("time_ns"))?;
        let mut places = self.places.places(trace)?;
        // After lost samples, the weight of the next sample includes the time of all lost samples. Such a weight is too
        // large, so it is limited.
        let most_ns = if trace.is_damaged()? {
            MAX_WEIGHT_NS
        } else {
            i64::MAX
        };
        let layout = if self.detail { &BY_MODULE } else { &BY_PROCESS };
        let columns = ["address", "image_row", "weight_ns", "count"];
        samples.sums_with(
            layout,
            &["weight_ns", "samples"],
            out,
            &columns,
            |batch, rows| {
                let view = SamplesView::new(batch)?;
                let samples = rows.iter().map(|&row| {
                    let (image, address) = (view.image_row.get(row), view.address[row]);
                    let place = self.detail.then(|| places.place(image, address));
                    let sample = Sample {
                        // If a row has the count 0, it is still one interrupt of the timer.
                        count: view.count[row].max(1),
                        weight_ns: view.weight_ns.get(row).map(|ns| ns.min(most_ns)),
                        place: place.and_then(|place| places.name(place).cloned()),
                    };
                    (row, sample)
                });
                Ok(samples.collect())
            },
        )?;
        if self.detail {
            places.warn_of_missing_symbols(out);
        }
        Ok(())
    }
}
