//! CPU time of signing and encryption of file sharing (SMB).

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use selection::{Condition, Expression, Order, Selection};
use tables::{SamplesView, StoreError, Table};

use super::floods::Flood;
use super::traffic::{BITS_PER_SECOND, Traffic, TrafficSum};
use crate::ranges::overlap;
use crate::thresholds::{SMB_COST_NS, SMB_DPC_PERCENT, is_share};
use crate::{Case, Evidence, Unit};

/// TCP port of SMB.
pub(crate) const PORT: u16 = 445;

/// Modules of Windows that sign and encrypt data.
pub(crate) const CRYPTOGRAPHY: [&str; 2] = ["cng.sys", "ksecdd.sys"];

/// Modules of SMB's client and server.
pub(crate) const SMB: [&str; 7] = [
    "srv.sys",
    "srv2.sys",
    "srvnet.sys",
    "mrxsmb.sys",
    "mrxsmb10.sys",
    "mrxsmb20.sys",
    "rdbss.sys",
];

/// Returns true if a flood of DPCs is caused by SMB's signing or encryption, so that
/// [`SmbSecurity`] reports a problem.
pub(crate) fn floods_cpus(case: &Case<'_>, flood: &Flood) -> Result<bool, StoreError> {
    let traffic = Traffic::read(case)?;
    let copied = traffic.as_ref().and_then(SmbTraffic::from_traffic);
    Ok(match copied.filter(|copied| copied.meets(flood)) {
        Some(copied) => {
            let cost = Cost::read(case, &copied.during)?;
            cost.rules_dpcs() && cost.is_plausible(&copied.moved)
        }
        None => false,
    })
}

/// Data that all SMB conversations moved.
pub(crate) struct SmbTraffic {
    /// Selection of the rows of `network` with the data of all conversations, not only SMB.
    pub(crate) rows: Selection,
    pub(crate) during: Range<i64>,
    pub(crate) moved: TrafficSum,
}

impl SmbTraffic {
    pub(crate) fn from_traffic(traffic: &Traffic) -> Option<SmbTraffic> {
        let is_smb = |local: u16, remote: u16| local == PORT || remote == PORT;
        let mut flows = traffic.flows.iter().filter_map(|(flow, moved)| {
            let is_smb = flow.transport == "tcp" && is_smb(flow.local_port, flow.remote_port);
            is_smb.then_some(moved)
        });
        let mut moved = *flows.next()?;
        flows.for_each(|other| moved.add(other));
        let copied = SmbTraffic {
            rows: traffic.rows(),
            during: moved.first_ns..moved.last_ns,
            moved,
        };
        Some(copied).filter(|copied| copied.moved.bytes() > 0)
    }

    pub(crate) fn meets(&self, flood: &Flood) -> bool {
        overlap(&self.during, &flood.during).is_some()
    }

    pub(crate) fn evidence(&self) -> Evidence {
        let port = |column| Condition::is(column, PORT);
        let selection = self
            .rows
            .clone()
            .filter(Condition::is_text("transport", &["tcp"]))
            .filter(Condition::Any(vec![
                port("local_port"),
                port("remote_port"),
            ]));
        let speed = Expression::Formula(BITS_PER_SECOND.to_owned());
        let (bytes, first, last) = (
            Expression::Sum("size_bytes"),
            Expression::Min("time_ns"),
            Expression::Max("time_ns"),
        );
        let evidence = Evidence::from_selection("Data that SMB moved", selection)
            .column("events", "events", Unit::Count, Expression::Count)
            .column("size_bytes", "data", Unit::Bytes, bytes)
            .column("first_ns", "first", Unit::Moment, first)
            .column("last_ns", "last", Unit::Moment, last)
            .column("bits_per_second", "speed", Unit::BitsPerSecond, speed);
        evidence.row([
            Some(self.moved.events.into()),
            Some(self.moved.bytes().into()),
            Some(self.during.start.into()),
            Some(self.during.end.into()),
            self.moved.bits_per_second().map(Into::into),
        ])
    }
}

/// CPU time of SMB's signing and encryption, measured by samples.
pub(crate) struct Cost {
    /// Rows in `images` of the modules that sign and encrypt.
    pub(crate) images: Vec<u32>,
    /// Names of the modules of `images` that have samples.
    pub(crate) modules: Vec<String>,
    /// Address ranges of SMB's modules.
    pub(crate) smb: Vec<Range<u64>>,
    pub(crate) has_stacks: bool,
    pub(crate) samples: i64,
    pub(crate) ns: i64,
    /// Functions in the samples. Each entry has the row in `images`, the address, the number of samples and
    /// their time in nanoseconds.
    pub(crate) functions: Vec<(u32, u64, i64, i64)>,
    /// Number of all samples inside DPCs. The field `of_dpcs` counts only those in SMB's signing or encryption.
    pub(crate) dpcs: i64,
    pub(crate) of_dpcs: i64,
    /// Samples inside DPCs, by row in `images`. Each value has the number of samples and their time in
    /// nanoseconds.
    pub(crate) inside: FxHashMap<Option<u32>, (i64, i64)>,
}

impl Cost {
    /// Returns true if SMB probably called the modules that sign and encrypt. With stacks, the samples
    /// already show the caller. Without stacks, the CPU time must be plausible for the amount of moved data.
    pub(crate) fn is_plausible(&self, moved: &TrafficSum) -> bool {
        let mebibytes = i64::try_from(moved.bytes() >> 20)
            .unwrap_or(i64::MAX)
            .max(1);
        self.has_stacks || self.ns / mebibytes <= SMB_COST_NS
    }

    pub(crate) fn read(case: &Case<'_>, during: &Range<i64>) -> Result<Cost, StoreError> {
        let rows_of = |names: &[&str]| -> Vec<u32> {
            let is_named = |row: &u32| {
                let module = case.module_label(Some(*row));
                module.is_some_and(|module| names.iter().any(|n| n.eq_ignore_ascii_case(module)))
            };
            let all = 0..case.names.images.base_address.len() as u32;
            all.filter(is_named).collect()
        };
        let images = rows_of(&CRYPTOGRAPHY);
        let smb = rows_of(&SMB).into_iter().map(|row| {
            let base = case.names.images.base_address[row as usize];
            base..base.saturating_add(case.names.images.size_bytes[row as usize])
        });
        let mut cost = Cost {
            images,
            modules: Vec::new(),
            smb: smb.collect(),
            has_stacks: false,
            samples: 0,
            ns: 0,
            functions: Vec::new(),
            dpcs: 0,
            of_dpcs: 0,
            inside: FxHashMap::default(),
        };
        let candidates = cost.candidates(case, during)?;
        let ids: FxHashSet<u32> = candidates.keys().filter_map(|key| key.stack_id).collect();
        let stacks = case.stacks(&ids)?;
        cost.has_stacks = !stacks.is_empty();
        let mut functions: FxHashMap<(u32, u64), (i64, i64)> = FxHashMap::default();
        for (key, sum) in candidates {
            let is_of_smb = match key.stack_id.and_then(|id| stacks.get(&id)) {
                Some(addresses) => addresses
                    .iter()
                    .any(|address| cost.smb.iter().any(|range| range.contains(address))),
                None => !cost.has_stacks,
            };
            if !is_of_smb {
                continue;
            }
            cost.samples += sum.samples;
            cost.ns = cost.ns.saturating_add(sum.ns);
            cost.of_dpcs += sum.in_dpc;
            let function = functions.entry((key.image_row, key.address)).or_default();
            function.0 += sum.samples;
            function.1 = function.1.saturating_add(sum.ns);
            let module = case.module_label(Some(key.image_row)).unwrap_or("?");
            if !cost.modules.iter().any(|known| known == module) {
                cost.modules.push(module.to_owned());
            }
        }
        cost.modules.sort();
        cost.functions = functions
            .into_iter()
            .map(|((image, address), (samples, ns))| (image, address, samples, ns))
            .collect();
        cost.functions
            .sort_unstable_by_key(|(image, address, samples, _)| {
                (Reverse(*samples), *address, *image)
            });
        Ok(cost)
    }

    /// Returns true if SMB's signing and encryption has at least half of the samples inside DPCs.
    pub(crate) fn rules_dpcs(&self) -> bool {
        self.of_dpcs > 0 && is_share(self.of_dpcs, self.dpcs, SMB_DPC_PERCENT)
    }

    /// Returns the samples in the modules that sign and encrypt, by address and call stack. Also
    /// counts all samples inside DPCs.
    pub(crate) fn candidates(
        &mut self,
        case: &Case<'_>,
        during: &Range<i64>,
    ) -> Result<FxHashMap<Place, Sum>, StoreError> {
        let columns = [
            "time_ns",
            "address",
            "image_row",
            "weight_ns",
            "stack_id",
            "in_dpc",
        ];
        let table = case.table(Table::Samples)?;
        let mut candidates: FxHashMap<Place, Sum> = FxHashMap::default();
        let until = during.start..during.end.saturating_add(1);
        for batch in case.batches(&table, until.clone(), &columns) {
            let batch = batch?;
            let view = SamplesView::new(&batch)?;
            for row in 0..view.len() {
                if !until.contains(&view.time_ns[row]) {
                    continue;
                }
                let is_in_dpc = view.in_dpc.get(row) == Some(true);
                let image_row = view.image_row.get(row);
                let ns = view.weight_ns.get(row).unwrap_or(0);
                if is_in_dpc {
                    self.dpcs += 1;
                    let (samples, sum_ns) = self.inside.entry(image_row).or_default();
                    *samples += 1;
                    *sum_ns = sum_ns.saturating_add(ns);
                }
                let Some(image_row) = image_row.filter(|row| self.images.contains(row)) else {
                    continue;
                };
                let place = Place {
                    image_row,
                    address: view.address[row],
                    stack_id: view.stack_id.get(row),
                };
                let sum = candidates.entry(place).or_default();
                sum.samples += 1;
                sum.in_dpc += i64::from(is_in_dpc);
                sum.ns = sum.ns.saturating_add(ns);
            }
        }
        Ok(candidates)
    }

    /// Returns evidence with the samples inside DPCs by module.
    pub(crate) fn inside_dpcs(&self, case: &Case<'_>, during: &Range<i64>) -> Evidence {
        const SHOWN: usize = 12;
        let mut modules: Vec<_> = self.inside.iter().collect();
        modules.sort_unstable_by_key(|(image, (samples, _))| {
            (Reverse(*samples), image.map_or(i64::MAX, i64::from))
        });
        let title = "Modules inside DPCs during the copy, by samples";
        let selection = Selection::new(Table::Samples)
            .within("time_ns", during.start..during.end.saturating_add(1))
            .filter(Condition::IsTrue("in_dpc"))
            .group_by(&["image_row"])
            .order(&[Order::descending("samples"), Order::ascending("image_row")])
            .limit(SHOWN);
        let share = "100.0 * count(*) / sum(count(*)) OVER ()".to_owned();
        let module = Expression::Module("image_row");
        let weight = Expression::Sum("weight_ns");
        let mut evidence = Evidence::from_selection(title, selection)
            .column("module", "module", Unit::None, module)
            .column("samples", "samples", Unit::Count, Expression::Count)
            .column("weight_ns", "time", Unit::Duration, weight)
            .column("share", "share", Unit::Percent, Expression::Formula(share));
        for (image, (samples, ns)) in modules.into_iter().take(SHOWN) {
            evidence = evidence.row([
                case.module_label(*image).map(Into::into),
                Some((*samples).into()),
                Some((*ns).into()),
                Some((100.0 * *samples as f64 / self.dpcs as f64).into()),
            ]);
        }
        evidence
    }

    /// Returns evidence with the addresses in the modules that sign and encrypt, from samples with
    /// SMB on the call stack.
    pub(crate) fn by_function(&self, case: &Case<'_>, during: &Range<i64>) -> Evidence {
        const SHOWN: usize = 5;
        let selection = Selection::new(Table::Samples)
            .within("time_ns", during.start..during.end.saturating_add(1))
            .filter(Condition::is_one_of("image_row", &self.images))
            .filters(
                self.has_stacks
                    .then(|| Condition::StackReaches(self.smb.clone())),
            )
            .group_by(&["image_row", "address"])
            .order(&[
                Order::descending("samples"),
                Order::ascending("address"),
                Order::ascending("image_row"),
            ])
            .limit(SHOWN);
        let function = Expression::Function {
            image_row: "image_row",
            address: "address",
        };
        let weight = Expression::Sum("weight_ns");
        let all_samples = Expression::Count.over_all();
        let title = "Signing and encrypting called by SMB, by samples";
        let mut evidence = Evidence::from_selection(title, selection)
            .column("function", "function", Unit::None, function)
            .column("samples", "samples", Unit::Count, Expression::Count)
            .column("weight_ns", "time", Unit::Duration, weight.clone())
            .column("all_samples", "samples in total", Unit::Count, all_samples)
            .column(
                "all_weight_ns",
                "time in total",
                Unit::Duration,
                weight.over_all(),
            );
        for (image, address, samples, ns) in self.functions.iter().take(SHOWN) {
            evidence = evidence.row([
                Some(case.symbol(Some(*image), *address).into()),
                Some((*samples).into()),
                Some((*ns).into()),
                Some(self.samples.into()),
                Some(self.ns.into()),
            ]);
        }
        evidence
    }
}

/// Address and call stack that samples have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    image_row: u32,
    address: u64,
    stack_id: Option<u32>,
}

/// Sums over samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    samples: i64,
    in_dpc: i64,
    ns: i64,
}
