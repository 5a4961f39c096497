//! Why RSS uses as few processors as it does: each limit, and whether it would be enough alone.

use serde::Serialize;

use super::rss::{NoProcessor, Rss};
use super::topology::Topology;

/// The last build that has no limits of an adapter's own but its base: Server 2008 and Vista.
const NO_KEYWORDS: u32 = 6_003;
/// The last build whose limit for all adapters is documented to hold beside each adapter's own:
/// Server 2008 R2 and Windows 7.
const MACHINE_LIMIT: u32 = 7_601;
/// `MaxNumRssCpus` unless it is set.
const MACHINE_DEFAULT: u16 = 4;

/// A rule that takes processors away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// What it says.
    pub says: String,
    /// How many processors are left by it alone of those that are usable: a power of two.
    pub leaves: usize,
    /// Whether it alone explains what is used in the end.
    pub explains: bool,
}

/// The processors that RSS uses, and why no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Used {
    /// The processors, by CPU index, lowest first.
    pub processors: Vec<usize>,
    /// Processors that RSS may choose from: of the node and range that it is set to, one for each
    /// core.
    pub usable: usize,
    /// The limits, as far as they leave fewer than are usable.
    pub limits: Vec<Limit>,
}

/// Which processors an adapter is served by on a build of Windows. `machine_limit` is
/// `MaxNumRssCpus`, if it is set.
///
/// # Errors
/// When the settings leave no processor.
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
    let mut limit = |says: String, limit: usize| {
        if limit < usable {
            let leaves = power_of_two(limit);
            limits.push(Limit {
                says,
                leaves,
                explains: leaves == processors.len(),
            });
        }
    };
    if !rss.enabled {
        limit(
            "*RSS is off: one processor handles everything".to_owned(),
            1,
        );
    } else {
        if let Some(all) = all_adapters {
            let whose = match machine_limit {
                Some(_) => "set",
                None => "the default of this build",
            };
            limit(format!("MaxNumRssCpus is {all} ({whose})"), all.into());
        }
        limit(format!("*MaxRssProcessors is {own}"), own.into());
        limit(
            format!("*NumRssQueues is {}", rss.queues),
            rss.queues.into(),
        );
        limit(
            format!("processors are used in powers of two, and {usable} are usable"),
            power_of_two(usable),
        );
    }
    Ok(Used {
        processors,
        usable,
        limits,
    })
}

/// The largest power of two that is not more.
fn power_of_two(count: usize) -> usize {
    count.checked_ilog2().map_or(0, |power| 1 << power)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A published case: Server 2008 R2 with two sockets of six cores of two threads, adapters on
    /// node 0, CPUs 0, 2, 4 and 6 busy. Powers of two explain four of six cores, and so does the
    /// default of MaxNumRssCpus.
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
        assert_eq!((old.usable, old.limits.len()), (6, 2));
        assert!(old.limits.iter().all(|limit| limit.explains));
        // Raised, powers of two still hold, and are all that is left to explain it.
        let raised = used_on(7601, Some(16));
        assert_eq!(raised.processors, [0, 2, 4, 6]);
        assert_eq!(raised.limits.len(), 1);
        assert!(raised.limits[0].says.contains("powers of two"));
        // Later builds have no default for all adapters.
        assert_eq!(used_on(17763, None).limits.len(), 1);
    }

    #[test]
    fn a_limit_that_is_no_power_of_two_explains_the_one_below() {
        let desktop = Topology::new(8, 1, 1, 64).expect("a desktop");
        let six = Rss {
            max_processors: 6,
            ..Rss::default()
        };
        let used = used(&six, None, None, &desktop).expect("processors");
        assert_eq!(used.processors, [0, 1, 2, 3]);
        assert_eq!(used.limits.len(), 1);
        assert!(used.limits[0].explains);
    }

    #[test]
    fn queues_explain_what_they_limit() {
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
