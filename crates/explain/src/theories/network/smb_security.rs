//! Does signing or encryption hold up file sharing?

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use tables::{SamplesView, StoreError, Table};

use super::super::interrupts::{Flood, floods};
use super::{Moved, Traffic, rate};
use crate::ranges::overlap;
use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, duration,
    grouped, listed, percent, size,
};

/// CPU time of signing and encrypting SMB.
pub(crate) struct SmbSecurity;

static ABOUT: About = About {
    id: "smb-security",
    question: "Did signing or encryption hold up file sharing (SMB)?",
    tables: &[
        Table::Network,
        Table::Samples,
        Table::Stacks,
        Table::Interrupts,
        Table::Sessions,
    ],
    sources: &[
        Source {
            title: "Low throughput when copying files (400 Mb/s without signing, 80 Mb/s with it)",
            url: "",
        },
        Source {
            title: "Microsoft: Overview of Server Message Block signing",
            url: "https://learn.microsoft.com/windows-server/storage/file-server/smb-signing-overview",
        },
    ],
};

/// The port of SMB.
const PORT: u16 = 445;

/// Modules that sign and encrypt.
pub(in crate::theories) const CRYPTOGRAPHY: [&str; 2] = ["cng.sys", "ksecdd.sys"];

/// Modules of SMB's client and server.
const SMB: [&str; 7] = [
    "srv.sys",
    "srv2.sys",
    "srvnet.sys",
    "mrxsmb.sys",
    "mrxsmb10.sys",
    "mrxsmb20.sys",
    "rdbss.sys",
];

impl Theory for SmbSecurity {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let Some(traffic) = Traffic::read(case)? else {
            let missing = "the trace tells of no data sent or received".to_owned();
            return Ok(Outcome::NotRecorded(missing));
        };
        let Some(copied) = Copied::of(&traffic) else {
            let because = format!("nothing was sent or received through port {PORT} (SMB)");
            return Ok(Outcome::Against(because, Vec::new()));
        };
        if !case.has(Table::Samples)? {
            let missing = "the trace has no samples of what CPUs executed".to_owned();
            return Ok(Outcome::NotRecorded(missing));
        }
        if case.names.images.base_address.is_empty() {
            let missing =
                "the trace does not tell which drivers there are: what signs is not known";
            return Ok(Outcome::NotRecorded(missing.to_owned()));
        }
        let cost = Cost::read(case, &copied.during)?;
        let mut evidence = vec![copied.evidence(), cost.inside_dpcs(case, &copied.during)];
        let speed = format!(
            "SMB moved {} from {} to {}, {}",
            size(copied.moved.bytes()),
            duration(copied.during.start),
            duration(copied.during.end),
            rate(copied.moved.bits_per_second())
        );
        if cost.samples == 0 {
            let because = format!("{speed}, and no sample was within its signing or encryption");
            return Ok(Outcome::Against(because, evidence));
        }
        evidence.push(cost.by_function(case, &copied.during));
        let found = found(case, &copied, &cost, &speed, evidence)?;
        Ok(match found.severity {
            Severity::Information => {
                let because = format!("{speed}, and they took too little CPU time to hold that up");
                Outcome::Noted(because, vec![found])
            }
            _ => Outcome::For(vec![found]),
        })
    }
}

/// Whether a flood of DPCs is signing or encryption of SMB, so that [`SmbSecurity`] finds it a problem.
pub(in crate::theories) fn floods_cpus(case: &Case<'_>, flood: &Flood) -> Result<bool, StoreError> {
    let traffic = Traffic::read(case)?;
    let copied = traffic.as_ref().and_then(Copied::of);
    Ok(match copied.filter(|copied| copied.meets(flood)) {
        Some(copied) => Cost::read(case, &copied.during)?.rules_dpcs(),
        None => false,
    })
}

fn found(
    case: &Case<'_>,
    copied: &Copied,
    cost: &Cost,
    speed: &str,
    evidence: Vec<Evidence>,
) -> Result<Finding, StoreError> {
    let lasted_ns = copied.moved.lasted_ns();
    let floods = floods(case).into_iter();
    let floods: Vec<Flood> = floods.filter(|flood| copied.meets(flood)).collect();
    let is_flood = cost.rules_dpcs() && !floods.is_empty();
    let severity = match (is_flood, cost.ns * 2 >= lasted_ns) {
        (true, _) => Severity::Problem,
        (false, true) => Severity::Warning,
        (false, false) => Severity::Information,
    };
    let mebibytes = copied.moved.bytes() as f64 / f64::from(1 << 20);
    let modules = listed(&cost.modules);
    let mut sentence = format!(
        "{speed}, and its signing or encryption ({modules}) took {} of CPU time meanwhile, by {} \
         samples: {:.1} ms for each MiB.",
        duration(cost.ns),
        grouped(cost.samples.unsigned_abs()),
        cost.ns as f64 / 1e6 / mebibytes
    );
    if cost.dpcs > 0 {
        sentence += &format!(
            " Of the samples inside DPCs {} were there.",
            percent(cost.of_dpcs, cost.dpcs)
        );
    }
    let mut finding = Finding::new(&ABOUT, severity, String::new()).during(copied.during.clone());
    if severity == Severity::Problem {
        let mut cpus: Vec<u16> = floods.iter().flat_map(|flood| flood.cpus.clone()).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let locked = floods.iter().map(|flood| match &case.asked.during {
            None => flood.locked_ns,
            Some(asked) => overlap(&flood.during, asked)
                .map_or(0, |both| flood.locked_ns.min(both.end - both.start)),
        });
        let lost_ns = locked.sum();
        let (noun, verb) = match cpus.len() {
            1 => ("CPU", "was"),
            _ => ("CPUs", "were"),
        };
        let cpus = listed(cpus);
        sentence += &format!(" {noun} {cpus} {verb} locked by it: the copy waits for the CPU.");
        let how = format!("during which the copy waited for {noun} {cpus}, full of DPCs");
        finding = finding.costing(lost_ns, how);
    }
    finding.sentence = sentence;
    finding.evidence = evidence;
    if !cost.has_stacks {
        finding = finding.doubt(
            "Samples have no stacks: that the cryptography was SMB's is inferred from the traffic",
        );
    }
    let build = case.machine()?.os_build;
    if severity != Severity::Information {
        finding = finding
            .remedy(format!(
                "Let both ends negotiate a cheaper algorithm: {} Keep the protection itself.",
                algorithm(build)
            ))
            .remedy(
                "Let more than one CPU do it: SMB Multichannel from SMB 3 on spreads the load over the \
                 CPUs that serve the adapter. A CPU with AES and SHA instructions, or in a virtual \
                 machine one that passes them on, makes it several times cheaper.",
            )
            .remedy(
                "Find out what asks for it: a session is signed if either side requires it \
                 (RequireSecuritySignature); encryption takes its place. Baselines and domain \
                 policies set it.",
            );
    }
    Ok(finding.doubt(
        "Whether data was signed or encrypted, and by which dialect, is not in the trace: the \
         algorithm is inferred from the version of Windows at this end",
    ))
}

/// What signs and encrypts between machines of that build or later.
fn algorithm(build: Option<u32>) -> &'static str {
    match build {
        Some(0..9_200) => {
            "this build of Windows speaks SMB 2.1 at most and signs with HMAC-SHA256; from Windows 8 \
             and Server 2012 on (SMB 3) it is AES-128-CMAC, and AES-128-GMAC if both ends are \
             Windows 11 or Server 2022 or later."
        }
        Some(9_200..20_348) => {
            "this build of Windows signs with AES-128-CMAC (SMB 3) or HMAC-SHA256 (SMB 2); \
             AES-128-GMAC comes with Windows 11 and Server 2022 at both ends."
        }
        Some(_) => {
            "this build of Windows can sign with AES-128-GMAC, if the other end is Windows 11 or \
             Server 2022 or later too; if it is older, bring it up to date."
        }
        None => {
            "AES-128-GMAC, with Windows 11 or Server 2022 or later at both ends, costs least; then \
             come AES-128-CMAC (SMB 3) and HMAC-SHA256 (SMB 2)."
        }
    }
}

/// What SMB moved.
struct Copied {
    /// Which rows of `network` are of it, in SQL.
    condition: String,
    during: Range<i64>,
    moved: Moved,
}

impl Copied {
    fn of(traffic: &Traffic) -> Option<Copied> {
        let is_smb = |local: u16, remote: u16| local == PORT || remote == PORT;
        let mut flows = traffic.flows.iter().filter_map(|(flow, moved)| {
            let is_smb = flow.transport == "tcp" && is_smb(flow.local_port, flow.remote_port);
            is_smb.then_some(moved)
        });
        let mut moved = *flows.next()?;
        flows.for_each(|other| moved.add(other));
        let copied = Copied {
            condition: traffic.condition(),
            during: moved.first_ns..moved.last_ns,
            moved,
        };
        Some(copied).filter(|copied| copied.moved.bytes() > 0)
    }

    fn meets(&self, flood: &Flood) -> bool {
        overlap(&self.during, &flood.during).is_some()
    }

    fn evidence(&self) -> Evidence {
        let columns = [
            Column::new("events", "events", Unit::Count),
            Column::new("size_bytes", "data", Unit::Bytes),
            Column::new("first_ns", "first", Unit::Moment),
            Column::new("last_ns", "last", Unit::Moment),
            Column::new("bits_per_second", "speed", Unit::BitsPerSecond),
        ];
        let query = format!(
            "SELECT count(*) AS events, sum(size_bytes) AS size_bytes, min(time_ns) AS first_ns, \
             max(time_ns) AS last_ns, 8e9 * sum(size_bytes) / greatest(max(time_ns) - \
             min(time_ns), 1) AS bits_per_second FROM network WHERE {} AND transport = 'tcp' AND \
             (local_port = {PORT} OR remote_port = {PORT})",
            self.condition
        );
        Evidence::new("Data that SMB moved", query, &columns).row([
            Some(self.moved.events.into()),
            Some(self.moved.bytes().into()),
            Some(self.during.start.into()),
            Some(self.during.end.into()),
            Some(self.moved.bits_per_second().into()),
        ])
    }
}

/// CPU time of SMB's cryptography, by samples.
struct Cost {
    /// Rows in `images` of the modules that sign and encrypt.
    images: Vec<u32>,
    /// Their names, as far as they were seen.
    modules: Vec<String>,
    /// Addresses of SMB's modules.
    smb: Vec<Range<u64>>,
    has_stacks: bool,
    samples: i64,
    ns: i64,
    /// By address.
    functions: Vec<(u32, u64, i64, i64)>,
    /// All samples inside DPCs, and those of them inside SMB's cryptography.
    dpcs: i64,
    of_dpcs: i64,
    /// Samples inside DPCs by module.
    inside: FxHashMap<Option<u32>, (i64, i64)>,
}

impl Cost {
    fn read(case: &Case<'_>, during: &Range<i64>) -> Result<Cost, StoreError> {
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

    /// Whether it is at least half of what DPCs did.
    fn rules_dpcs(&self) -> bool {
        self.of_dpcs * 2 >= self.dpcs && self.of_dpcs > 0
    }

    /// Samples in the modules that sign and encrypt, by place and stack. Counts all samples inside
    /// DPCs on the way.
    fn candidates(
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

    /// Samples inside DPCs by module.
    fn inside_dpcs(&self, case: &Case<'_>, during: &Range<i64>) -> Evidence {
        const SHOWN: usize = 12;
        let columns = [
            Column::new("module", "module", Unit::None),
            Column::new("samples", "samples", Unit::Count),
            Column::new("weight_ns", "time", Unit::Duration),
            Column::new("share", "share", Unit::Percent),
        ];
        let query = format!(
            "SELECT module(image_row) AS module, count(*) AS samples, sum(weight_ns) AS weight_ns, \
             100.0 * count(*) / sum(count(*)) OVER () AS share FROM samples WHERE in_dpc AND \
             time_ns BETWEEN {} AND {} GROUP BY image_row ORDER BY samples DESC, image_row NULLS \
             LAST LIMIT {SHOWN}",
            during.start, during.end
        );
        let mut modules: Vec<_> = self.inside.iter().collect();
        modules.sort_unstable_by_key(|(image, (samples, _))| {
            (Reverse(*samples), image.map_or(i64::MAX, i64::from))
        });
        let title = "Where CPUs were inside DPCs meanwhile, by samples";
        let mut evidence = Evidence::new(title, query, &columns);
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

    /// The places in the modules that sign and encrypt, called by SMB.
    fn by_function(&self, case: &Case<'_>, during: &Range<i64>) -> Evidence {
        const SHOWN: usize = 5;
        let columns = [
            Column::new("function", "function", Unit::None),
            Column::new("samples", "samples", Unit::Count),
            Column::new("weight_ns", "time", Unit::Duration),
            Column::new("all_samples", "samples of all", Unit::Count),
            Column::new("all_weight_ns", "time of all", Unit::Duration),
        ];
        let images: Vec<String> = self.images.iter().map(u32::to_string).collect();
        let called_by_smb = match self.has_stacks {
            false => String::new(),
            true => {
                let ranges = self
                    .smb
                    .iter()
                    .map(|range| format!("address >= {} AND address < {}", range.start, range.end));
                format!(
                    " AND stack_id IN (SELECT stack_id FROM (SELECT stack_id, unnest(addresses) AS \
                     address FROM stacks) WHERE {})",
                    ranges.collect::<Vec<_>>().join(" OR ")
                )
            }
        };
        let query = format!(
            "SELECT symbol(image_row, address) AS function, count(*) AS samples, sum(weight_ns) AS \
             weight_ns, sum(count(*)) OVER () AS all_samples, sum(sum(weight_ns)) OVER () AS \
             all_weight_ns FROM samples WHERE image_row IN ({}) AND time_ns BETWEEN {} AND \
             {}{called_by_smb} GROUP BY image_row, address ORDER BY samples DESC, address, image_row \
             LIMIT {SHOWN}",
            images.join(", "),
            during.start,
            during.end
        );
        let title = "Signing and encrypting called by SMB, by samples";
        let mut evidence = Evidence::new(title, query, &columns);
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

/// Where samples were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    image_row: u32,
    address: u64,
    stack_id: Option<u32>,
}

/// How many there were.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    samples: i64,
    in_dpc: i64,
    ns: i64,
}
