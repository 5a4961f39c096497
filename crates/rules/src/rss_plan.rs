//! Assignment of CPUs to network adapters, so that adapters share no CPU.

use serde::Serialize;
use thiserror::Error;

use crate::rss::Rss;
use crate::topology::{Processor, Topology};

/// RSS settings of an adapter, and the CPUs that handle its packets with these settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assignment {
    /// Keyword `*NumaNodeId`.
    pub node: u16,
    /// Keyword `*RssBaseProcGroup`.
    pub base_group: u16,
    /// Keyword `*RssBaseProcNumber`.
    pub base_processor: u8,
    /// Keyword `*MaxRssProcessors`.
    pub max_processors: u16,
    /// Indexes of the CPUs that handle the packets of the adapter.
    pub processors: Vec<usize>,
}

impl Assignment {
    /// Returns the RSS settings of the adapter.
    pub fn settings(&self) -> Rss {
        Rss {
            base_group: self.base_group,
            base_processor: self.base_processor,
            max_group: self.base_group,
            max_processors: self.max_processors,
            queues: self.max_processors,
            node: Some(self.node),
            ..Rss::default()
        }
    }
}

/// Reason why adapters cannot be assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The NUMA node does not exist.
    #[error("there is no NUMA node {0}: the first node is node 0")]
    NoNode(u16),
    /// The NUMA node has fewer cores than adapters.
    #[error(
        "NUMA node {node} has {adapters} adapters for {cores} cores: move some adapters to another node, or \
         let them share processors"
    )]
    TooMany {
        /// Number of the NUMA node.
        node: u16,
        /// Number of adapters on the node.
        adapters: usize,
        /// Number of cores of the node.
        cores: usize,
    },
}

/// Assigns cores to adapters. `nodes` has the NUMA node of each adapter's slot. All adapters of a node get
/// the same number of cores: the largest power of two for which the node has enough cores. The number is a
/// power of two, because RSS may round other numbers down. This rounding is an inference and is not
/// documented. Cores are assigned in ascending order.
///
/// If a node has several processor groups, only the first group is used, because the range from the base CPU
/// to the maximum CPU lies in one group.
///
/// # Errors
/// Returns an error if a node does not exist or has too few cores.
pub fn assign(topology: &Topology, nodes: &[u16]) -> Result<Vec<Assignment>, PlanError> {
    let mut counts = vec![0; nodes.len()];
    let mut plan = Vec::new();
    for &node in nodes {
        let cores = first_threads(topology, node);
        let Some((_, first)) = cores.first() else {
            return Err(PlanError::NoNode(node));
        };
        let adapters = nodes.iter().filter(|other| **other == node).count();
        let cores: Vec<_> = cores
            .iter()
            .filter(|(_, core)| core.group == first.group)
            .collect();
        let Some(power) = (cores.len() / adapters).checked_ilog2() else {
            return Err(PlanError::TooMany {
                node,
                adapters,
                cores: cores.len(),
            });
        };
        let each = 1 << power;
        let before = nodes.iter().position(|other| *other == node).unwrap_or(0);
        let own = &cores[counts[before]..][..each];
        counts[before] += each;
        plan.push(Assignment {
            node,
            base_group: own[0].1.group,
            base_processor: own[0].1.number,
            max_processors: each as u16,
            processors: own.iter().map(|(index, _)| *index).collect(),
        });
    }
    Ok(plan)
}

/// Returns the first hardware thread of each core of a NUMA node, with its CPU index.
fn first_threads(topology: &Topology, node: u16) -> Vec<(usize, Processor)> {
    let processors = topology.processors().iter().copied().enumerate();
    processors
        .filter(|(_, processor)| processor.node == node && !processor.smt_sibling)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    /// A published case has three adapters on each of two NUMA nodes. A node has six cores with two
    /// hardware threads each. The case advises to give each adapter two of the cores 0, 2, 4, 6, 8 and
    /// 10 of its node.
    #[test]
    fn six_adapters_get_two_cores_each() {
        let server = Topology::new(24, 2, 2, 64).expect("a server");
        let plan = assign(&server, &[0, 0, 0, 1, 1, 1]).expect("a plan");
        let first_cores: Vec<u32> = plan
            .iter()
            .map(|one| server.processors()[one.processors[0]].core)
            .collect();
        assert_eq!(first_cores, [0, 2, 4, 6, 8, 10]);
        assert!(plan.iter().all(|one| one.max_processors == 2));
        assert_eq!(plan[4].base_processor, 16);
    }

    /// RSS with the planned settings must use the planned CPUs, and no two adapters may share a CPU.
    #[test]
    fn settings_give_the_planned_processors() {
        let mut rng = Rng(11);
        let mut plans = 0;
        for _ in 0..3_000 {
            let (threads, nodes) = (1 + rng.below(2) as u32, 1 + rng.below(3) as u16);
            let processors = threads * u32::from(nodes) * (1 + rng.below(50) as u32);
            let topology = Topology::new(processors, threads, nodes, 64).expect("a machine");
            let count = 1 + rng.below(8);
            let adapters: Vec<u16> = (0..count)
                .map(|_| rng.below(usize::from(nodes)) as u16)
                .collect();
            let Ok(plan) = assign(&topology, &adapters) else {
                continue;
            };
            plans += 1;
            let mut used: Vec<usize> = Vec::new();
            for one in &plan {
                let processors = one.settings().processors(&topology).expect("processors");
                assert_eq!(processors, one.processors);
                used.extend(processors);
            }
            let all = used.len();
            used.sort_unstable();
            used.dedup();
            assert_eq!(used.len(), all, "{adapters:?} on {processors}");
        }
        assert!(plans > 1_000);
    }

    #[test]
    fn too_many_adapters_are_refused() {
        let small = Topology::new(4, 2, 1, 64).expect("a desktop");
        assert_eq!(
            assign(&small, &[0, 0, 0]),
            Err(PlanError::TooMany {
                node: 0,
                adapters: 3,
                cores: 2
            })
        );
        assert_eq!(assign(&small, &[1]), Err(PlanError::NoNode(1)));
    }
}
