//! Theory: signing or encryption slowed file sharing (SMB).

use tables::{StoreError, Table};

use crate::chain::floods::{Flood, floods};
use crate::chain::smb_cost::{Cost, PORT, SmbTraffic};
use crate::chain::traffic::{Traffic, rate};
use crate::ranges::overlap;
use crate::survey::cpu_names;
use crate::thresholds::{SMB_CPU_PERCENT, is_share};
use crate::{
    About, Case, Evidence, Finding, Name, Outcome, Severity, Source, Subject, Theory, duration,
    grouped, listed, percent, size,
};

/// Theory about the CPU time of SMB's signing and encryption.
pub(crate) struct SmbSecurity;

static ABOUT: About = About {
    id: "smb-security",
    name: "SMB signing",
    question: "Did signing or encryption slow file sharing (SMB)?",
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
            url: None,
        },
        Source {
            title: "Microsoft: Overview of Server Message Block signing",
            url: Some(
                "https://learn.microsoft.com/windows-server/storage/file-server/smb-signing-overview",
            ),
        },
    ],
};

impl Theory for SmbSecurity {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let Some(traffic) = Traffic::read(case)? else {
            let missing = "the trace records no sent or received data".to_owned();
            return Ok(Outcome::NotRecorded(missing));
        };
        let Some(copied) = SmbTraffic::from_traffic(&traffic) else {
            let because = format!("nothing was sent or received through port {PORT} (SMB)");
            return Ok(Outcome::Against(because, Vec::new()));
        };
        if !case.has(Table::Samples)? {
            let missing = "the trace has no CPU samples".to_owned();
            return Ok(Outcome::NotRecorded(missing));
        }
        if case.names.images.base_address.is_empty() {
            let missing = "the trace does not record images, so the modules that sign are unknown";
            return Ok(Outcome::NotRecorded(missing.to_owned()));
        }
        let cost = Cost::read(case, &copied.during)?;
        let mut evidence = vec![copied.evidence(), cost.inside_dpcs(case, &copied.during)];
        let speed = format!(
            "SMB transferred {} in {}{}",
            size(copied.moved.bytes()),
            duration(copied.moved.lasted_ns()),
            (copied.moved.bits_per_second())
                .map_or_else(String::new, |bits| format!(", {}", rate(bits)))
        );
        if cost.samples == 0 {
            let because = format!("{speed}, and no CPU sample was in SMB signing or encryption");
            return Ok(Outcome::Against(because, evidence));
        }
        evidence.push(cost.by_function(case, &copied.during));
        if !cost.is_plausible(&copied.moved) {
            let because = format!(
                "{speed}, but {} took {} of CPU time. This is more than SMB needs for this amount of \
                 data, and without stacks the samples do not show the caller",
                listed(cost.modules.iter().map(|name| Name(name))),
                duration(cost.ns)
            );
            return Ok(Outcome::Hint(because, evidence));
        }
        let finding = finding(case, &copied, &cost, &speed, evidence)?;
        Ok(match finding.severity {
            Severity::Information => {
                let because = format!(
                    "{speed}, and signing and encryption took too little CPU \
                    time to slow it"
                );
                Outcome::Noted(because, vec![finding])
            }
            _ => Outcome::For(vec![finding]),
        })
    }
}

fn finding(
    case: &Case<'_>,
    copied: &SmbTraffic,
    cost: &Cost,
    speed: &str,
    evidence: Vec<Evidence>,
) -> Result<Finding, StoreError> {
    let lasted_ns = copied.moved.lasted_ns();
    let floods = floods(case).into_iter();
    let floods: Vec<Flood> = floods.filter(|flood| copied.meets(flood)).collect();
    let is_flood = cost.rules_dpcs() && !floods.is_empty();
    let severity = match (is_flood, is_share(cost.ns, lasted_ns, SMB_CPU_PERCENT)) {
        (true, _) => Severity::Problem,
        (false, true) => Severity::Warning,
        (false, false) => Severity::Information,
    };
    let mebibytes = copied.moved.bytes() as f64 / f64::from(1 << 20);
    let modules = listed(cost.modules.iter().map(|name| Name(name)));
    let mut sentence = format!(
        "{speed}. Its signing or encryption ({modules}) took {} of CPU time, according to {} \
         samples: {:.1} ms per MiB.",
        duration(cost.ns),
        grouped(cost.samples.unsigned_abs()),
        cost.ns as f64 / 1e6 / mebibytes
    );
    if cost.dpcs > 0 {
        sentence += &format!(
            " These are {} of the samples inside DPCs.",
            percent(cost.of_dpcs, cost.dpcs)
        );
    }
    let modules = cost.modules.iter();
    let modules = modules.map(|name| Subject::Module { name: name.clone() });
    let mut finding = Finding::new(&ABOUT, severity, String::new())
        .subjects(modules)
        .during(copied.during.clone());
    if severity == Severity::Problem {
        let mut cpus: Vec<u16> = floods.iter().flat_map(|flood| flood.cpus.clone()).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let locked = floods.iter().map(|flood| match &case.scope.during {
            None => flood.locked_ns,
            Some(asked) => overlap(&flood.during, asked)
                .map_or(0, |both| flood.locked_ns.min(both.end - both.start)),
        });
        let delay_ns = locked.sum();
        finding = finding.subjects(cpus.iter().map(|cpu| Subject::Cpu { number: *cpu }));
        let cpus = cpu_names(&cpus);
        sentence += &format!(" It locked {cpus}: the copy waited for the CPU.");
        let how = format!("during which the copy waited for {cpus}, which ran DPCs");
        finding = finding.delay(delay_ns, how);
    }
    finding.sentence = sentence.into();
    finding.evidence = evidence;
    if !cost.has_stacks {
        finding = finding
            .doubt("Samples have no stacks: the traffic suggests that the cryptography is SMB's");
    }
    let build = case.machine()?.os_build;
    if severity != Severity::Information {
        finding = finding
            .remedy(format!(
                "Let both ends negotiate a cheaper algorithm, but keep the protection: {}",
                algorithm(build)
            ))
            .remedy(
                "Use more than one CPU: SMB Multichannel (SMB 3) distributes the load over the \
                 CPUs that serve the adapter. CPUs with AES and SHA instructions sign and encrypt \
                 several times faster; in a virtual machine, check that the hypervisor offers these \
                 instructions.",
            )
            .remedy(
                "Find out which side requires signing (RequireSecuritySignature): a session is signed if either side \
                 requires it. Encryption replaces signing. Baselines and domain policies set this value.",
            );
    }
    Ok(finding.doubt(
        "The trace does not show whether data was signed or encrypted, or which SMB dialect was used. \
         The possible algorithms are known only from the Windows version of this end",
    ))
}

/// Returns a text about the signing algorithms that a build of Windows supports.
fn algorithm(build: Option<u32>) -> &'static str {
    match build {
        Some(0..9_200) => {
            "this build of Windows supports SMB 2.1 at most and signs with HMAC-SHA256. Windows 8 \
             and Server 2012 (SMB 3) sign with AES-128-CMAC, and with AES-128-GMAC if both ends \
             are Windows 11, Server 2022 or later."
        }
        Some(9_200..20_348) => {
            "this build of Windows signs with AES-128-CMAC (SMB 3) or HMAC-SHA256 (SMB 2). \
             AES-128-GMAC needs Windows 11 or Server 2022 at both ends."
        }
        Some(_) => {
            "this build of Windows can sign with AES-128-GMAC if the other end is Windows 11, \
             Server 2022 or later too; if it is older, upgrade it."
        }
        None => {
            "AES-128-GMAC (Windows 11, Server 2022 or later at both ends) is the cheapest, then \
             AES-128-CMAC (SMB 3), then HMAC-SHA256 (SMB 2)."
        }
    }
}
