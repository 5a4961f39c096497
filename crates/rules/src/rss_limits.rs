//! Limits on the number of CPUs that RSS uses.
//!
//! Microsoft documents a power of two only for the size of the indirection table ("Choosing a network
//! adapter", "Understanding RSS performance"). It is an inference that the number of CPUs is also rounded
//! down to a power of two.

use serde::Serialize;

use crate::rss::{NoProcessor, Rss};
use crate::topology::Topology;

/// Last build (Server 2008 and Vista) on which the base processor is the only RSS setting of an adapter.
const NO_KEYWORDS: u32 = 6_003;
/// Last build (Server 2008 R2 and Windows 7) whose documentation has a limit for all adapters in
/// addition to the limit for each adapter.
const MACHINE_LIMIT: u32 = 7_601;
/// Default of the registry value `MaxNumRssCpus`, which limits all adapters.
const MACHINE_DEFAULT: u16 = 4;

/// A rule that limits the number of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// Sentence that states the rule.
    pub says: String,
    /// Number of usable CPUs after applying the rule.
    pub leaves: usize,
    /// True if the rule explains the number of CPUs that RSS uses.
    pub explains: bool,
    /// True if Microsoft documents the rule; false if it is an inference.
    pub documented: bool,
}

/// CPUs that RSS uses, and the rules that limit their number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Used {
    /// Indexes of the CPUs, lowest first, assuming that their number is rounded down to a power of two.
    pub processors: Vec<usize>,
    /// Number of CPUs after applying only the documented rules. RSS uses at most this number.
    pub at_most: usize,
    /// Number of CPUs that RSS may choose from: one for each core in the configured node and range.
    pub usable: usize,
    /// Rules that reduce the number of usable CPUs.
    pub limits: Vec<Limit>,
}

/// Returns the CPUs that handle packets of an adapter. `machine_limit` is the registry value `MaxNumRssCpus`,
/// if it is set.
///
/// # Errors
/// Returns an error if the settings exclude all CPUs.
pub fn used(
    rss: &Rss,
    machine_limit: Option<u16>,
    build: Option<u32>,
    topology: &Topology,
) -> Result<Used, NoProcessor> {
    let by_default = match build {
        Some(build) if build <= MACHINE_LIMIT => Some(MACHINE_DEFAULT),
        _ => None,
    };
    let all_adapters = machine_limit.or(by_default);
    let own = match build {
        Some(build) if build <= NO_KEYWORDS => u16::MAX,
        _ => rss.max_processors,
    };
    let effective = Rss {
        max_processors: own.min(all_adapters.unwrap_or(u16::MAX)),
        ..rss.clone()
    };
    let processors = effective.processors(topology)?;
    let usable = rss.usable(topology).len();
    let mut limits = Vec::new();
    let mut limit = |says: String, leaves: usize| {
        if leaves < usable {
            limits.push(Limit {
                says,
                leaves,
                explains: leaves == processors.len(),
                documented: true,
            });
        }
    };
    if !rss.enabled {
        limit(
            "*RSS is off: one processor handles all packets".to_owned(),
            1,
        );
    } else {
        if let Some(all) = all_adapters {
            let source = match machine_limit {
                Some(_) => "set",
                None => "default of this build",
            };
            limit(format!("MaxNumRssCpus is {all} ({source})"), all.into());
        }
        limit(format!("*MaxRssProcessors is {own}"), own.into());
        limit(
            format!("*NumRssQueues is {}", rss.queues),
            rss.queues.into(),
        );
    }
    let at_most = limits.iter().map(|limit| limit.leaves).min();
    let at_most = at_most.unwrap_or(usable);
    limits.extend(rounding(usable, at_most, processors.len()));
    Ok(Used {
        processors,
        at_most,
        usable,
        limits,
    })
}

/// Returns the inferred rule that rounds the number of CPUs down to a power of two. `usable` is the number of
/// usable CPUs. `at_most` is the number of CPUs that the documented rules leave. `used` is the number of CPUs
/// that RSS uses. Returns `None` if `used` is not rounded.
fn rounding(usable: usize, at_most: usize, used: usize) -> Option<Limit> {
    let total = if power_of_two(usable) == used {
        usable
    } else {
        at_most
    };
    (used < total).then(|| Limit {
        says: format!(
            "RSS may use only {used} of {total} processors, a power of two: this is an inference, not documented \
             (Microsoft documents a power of two only for the size of the indirection table)"
        ),
        leaves: used,
        explains: true,
        documented: false,
    })
}

/// Returns the largest power of two that is at most `count`.
fn power_of_two(count: usize) -> usize {
    count.checked_ilog2().map_or(0, |power| 1 << power)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A published case has Server 2008 R2, two sockets, six cores each, two hardware threads per core,
    /// adapters on NUMA node 0, and busy CPUs 0, 2, 4 and 6. Two rules explain why four of six cores are
    /// used: the documented default of MaxNumRssCpus, and rounding down to a power of two, which is not
    /// documented.
    #[test]
    fn four_of_six_cores_have_two_explanations() {
        let server = Topology::new(24, 2, 2, 64).expect("a server");
        let adapter = Rss {
            node: Some(0),
            ..Rss::default()
        };
        let used_on =
            |build, limit| used(&adapter, limit, Some(build), &server).expect("processors");
        let old = used_on(7601, None);
        assert_eq!(old.processors, [0, 2, 4, 6]);
        assert_eq!((old.usable, old.at_most, old.limits.len()), (6, 4, 2));
        assert!(old.limits.iter().all(|limit| limit.explains));
        let documented: Vec<bool> = old.limits.iter().map(|limit| limit.documented).collect();
        assert_eq!(documented, [true, false]);
        // If `MaxNumRssCpus` is 16, the documented rules allow six CPUs.
        let raised = used_on(7601, Some(16));
        assert_eq!((raised.processors.len(), raised.at_most), (4, 6));
        assert_eq!(raised.limits.len(), 1);
        assert!(!raised.limits[0].documented);
        let says = &raised.limits[0].says;
        assert!(says.starts_with("RSS may use only 4 of 6"), "{says}");
        assert!(says.contains("not documented"), "{says}");
        // Later builds have no default limit that applies to all adapters.
        assert_eq!(used_on(17763, None).limits.len(), 1);
    }

    #[test]
    fn rounding_down_is_no_part_of_a_documented_limit() {
        let desktop = Topology::new(8, 1, 1, 64).expect("a desktop");
        let six = Rss {
            max_processors: 6,
            ..Rss::default()
        };
        let used = used(&six, None, None, &desktop).expect("processors");
        assert_eq!((used.processors.len(), used.at_most), (4, 6));
        let limits: Vec<_> = (used.limits.iter())
            .map(|limit| (limit.leaves, limit.explains, limit.documented))
            .collect();
        assert_eq!(limits, [(6, false, true), (4, true, false)]);
        let says = &used.limits[1].says;
        assert!(says.starts_with("RSS may use only 4 of 6"), "{says}");
    }

    #[test]
    fn queues_limit_processors() {
        let desktop = Topology::new(16, 2, 1, 64).expect("a desktop");
        let two_queues = Rss {
            queues: 2,
            ..Rss::default()
        };
        let used = used(&two_queues, None, Some(22631), &desktop).expect("processors");
        assert_eq!(used.processors, [0, 2]);
        let explains: Vec<_> = used.limits.iter().filter(|limit| limit.explains).collect();
        assert_eq!(explains.len(), 1);
        assert_eq!(explains[0].says, "*NumRssQueues is 2");
    }
}
