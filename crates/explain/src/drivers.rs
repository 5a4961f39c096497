//! Drivers: which modules are parts of Windows, and which driver the threads of System ran.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{SamplesView, StoreError, Table};

use crate::survey::is_inside_routine;
use crate::thresholds::{DRIVER_PERCENT, is_share};
use crate::{Evidence, Name, Reader, Unit, counted, percent};

/// Id of the process System, which contains the threads of Windows and of drivers.
pub(crate) const SYSTEM: u32 = 4;

/// Maximum number of rows of evidence.
const SHOWN: usize = 12;

/// Drivers of disks and their adapters that are parts of Windows, in lower case. Their DPCs end requests to disks.
const OF_DISKS: [&str; 7] = [
    "ataport.sys",
    "classpnp.sys",
    "disk.sys",
    "spaceport.sys",
    "storahci.sys",
    "stornvme.sys",
    "storport.sys",
];

/// Returns true if the module is a driver of disks that is a part of Windows.
pub(crate) fn is_of_disks(module: &str) -> bool {
    OF_DISKS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(module))
}

/// Drivers that are parts of Windows, in lower case. Drivers of other vendors call them, or are called by them: class
/// and port drivers, file systems, network protocols, frameworks.
const OF_WINDOWS: [&str; 48] = [
    "acpi.sys",
    "afd.sys",
    "bthport.sys",
    "classpnp.sys",
    "cng.sys",
    "disk.sys",
    "dxgkrnl.sys",
    "dxgmms1.sys",
    "dxgmms2.sys",
    "exfat.sys",
    "fastfat.sys",
    "fltmgr.sys",
    "fwpkclnt.sys",
    "hal.dll",
    "hdaudbus.sys",
    "hidclass.sys",
    "hidusb.sys",
    "http.sys",
    "intelppm.sys",
    "ks.sys",
    "ksecdd.sys",
    "mrxsmb.sys",
    "mrxsmb20.sys",
    "msrpc.sys",
    "mup.sys",
    "ndis.sys",
    "netio.sys",
    "npfs.sys",
    "ntfs.sys",
    "ntkrnlmp.exe",
    "ntkrnlpa.exe",
    "ntoskrnl.exe",
    "pci.sys",
    "portcls.sys",
    "rdbss.sys",
    "refs.sys",
    "srv2.sys",
    "srvnet.sys",
    "stornvme.sys",
    "storport.sys",
    "tcpip.sys",
    "usbhub3.sys",
    "usbxhci.sys",
    "vmbus.sys",
    "wdf01000.sys",
    "wfplwfs.sys",
    "win32k.sys",
    "win32kfull.sys",
];

/// Returns true if a module of the kernel is a part of Windows. An update of it comes with Windows, so the cause of a
/// delay inside it is usually another driver, or the device.
pub(crate) fn is_of_windows(module: &str) -> bool {
    let module = module.to_ascii_lowercase();
    OF_WINDOWS.binary_search(&module.as_str()).is_ok()
}

/// Driver in which threads of System spent much of their time.
pub(crate) struct DriverInSystem {
    /// File name of the driver.
    pub(crate) name: String,
    samples: u64,
    all: u64,
    pub(crate) evidence: Evidence,
}

impl DriverInSystem {
    /// Returns a sentence that says how much of the time was spent in the driver.
    pub(crate) fn sentence(&self) -> String {
        format!(
            "{} of the {} of threads of System in this time are in {}: a driver's threads run in System.",
            percent(self.samples as i64, self.all as i64),
            counted(self.all, "sample", "samples"),
            Name(&self.name)
        )
    }
}

impl Reader<'_> {
    /// Returns the driver of another vendor in which threads of System spent most of their sampled time in the range.
    /// Only the given CPUs count; `None` stands for all CPUs. Returns `None` if no such driver has a large share.
    ///
    /// # Errors
    /// Returns an error if the samples cannot be read.
    pub(crate) fn driver_in_system(
        &self,
        range: &Range<i64>,
        cpus: Option<&[u16]>,
    ) -> Result<Option<DriverInSystem>, StoreError> {
        let table = self.table(Table::Samples)?;
        let columns = [
            "time_ns",
            "cpu",
            "thread_id",
            "process_id",
            "image_row",
            "count",
            "in_dpc",
            "in_isr",
        ];
        let mut images: FxHashMap<Option<u32>, u64> = FxHashMap::default();
        for batch in self.batches(&table, range.clone(), &columns) {
            let batch = batch?;
            let view = SamplesView::new(&batch)?;
            for row in 0..view.len() {
                let is_inside = is_inside_routine(&view, row);
                if !is_inside
                    && view.thread_id[row] != 0
                    && view.process_id.get(row) == Some(SYSTEM)
                    && range.contains(&view.time_ns[row])
                    && cpus
                        .is_none_or(|cpus| view.cpu.get(row).is_some_and(|cpu| cpus.contains(&cpu)))
                {
                    *images.entry(view.image_row.get(row)).or_default() +=
                        u64::from(view.count[row]);
                }
            }
        }
        let all: u64 = images.values().sum();
        let mut images: Vec<(Option<u32>, u64)> = images.into_iter().collect();
        images.sort_by_key(|(image, samples)| (Reverse(*samples), *image));
        let foreign = images.iter().find_map(|(image, samples)| {
            let module = self.module_label(*image)?;
            (!is_of_windows(module)).then_some((module, *samples))
        });
        let Some((name, samples)) = foreign else {
            return Ok(None);
        };
        if !is_share(samples as i64, all as i64, DRIVER_PERCENT) {
            return Ok(None);
        }
        let selection = Selection::new(Table::Samples)
            .within("time_ns", range.clone())
            .filter(Condition::is("process_id", SYSTEM))
            .filter(Condition::is_not("thread_id", 0))
            .filter(Condition::IsTrue("in_dpc").negated())
            .filter(Condition::IsTrue("in_isr").negated())
            .filters(cpus.map(|cpus| Condition::is_one_of("cpu", cpus)))
            .group_by(&["image_row"])
            .order(&[
                Order::descending("samples"),
                Order::ascending("image_row").unknown_first(),
            ])
            .limit(SHOWN);
        let title = "Samples of threads of System in this time, by module";
        let module = Expression::Module("image_row");
        let evidence = Evidence::from_selection(title, selection)
            .column("module", "module", Unit::None, module)
            .column("samples", "samples", Unit::Count, Expression::Sum("count"));
        let shown = images.iter().take(SHOWN);
        let evidence = shown.fold(evidence, |evidence, (image, samples)| {
            evidence.row([
                self.module_label(*image).map(Into::into),
                Some((*samples).into()),
            ])
        });
        Ok(Some(DriverInSystem {
            name: name.to_owned(),
            samples,
            all,
            evidence,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_of_windows_are_sorted() {
        assert!(OF_WINDOWS.is_sorted());
        assert!(is_of_windows("NTOSKRNL.EXE"));
        assert!(!is_of_windows("vpnflt.sys"));
    }
}
