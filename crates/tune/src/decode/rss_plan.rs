//! Several adapters spread over processors so that none shares one with another.

use serde::Serialize;
use thiserror::Error;

use super::rss::Rss;
use super::topology::{Processor, Topology};

/// What to set for an adapter, and which processors serve it then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assignment {
    /// `*NumaNodeId`.
    pub node: u16,
    /// `*RssBaseProcGroup`.
    pub base_group: u16,
    /// `*RssBaseProcNumber`.
    pub base_processor: u8,
    /// `*MaxRssProcessors`.
    pub max_processors: u16,
    /// The processors, by CPU index.
    pub processors: Vec<usize>,
}

impl Assignment {
    /// The settings of the adapter.
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

/// Why adapters cannot be spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// There is no such node.
    #[error("there is no NUMA node {0}: nodes are counted from 0")]
    NoNode(u16),
    /// A node has fewer cores than adapters.
    #[error(
        "node {node} has {adapters} adapters for {cores} cores: give some of them to another node, \
         or let them share processors"
    )]
    TooMany {
        /// The node.
        node: u16,
        /// Adapters on it.
        adapters: usize,
        /// Cores of it.
        cores: usize,
    },
}

/// Spreads adapters, each given by the NUMA node that its slot is on, over the cores of their nodes:
/// as many each as the largest power of two that all adapters of the node can have, one after the
/// other from the lowest.
///
/// A node of several processor groups is used as far as its first group goes: a range that is set by
/// base and maximum is in one group.
///
/// # Errors
/// When a node does not exist or has too few cores.
pub fn spread(topology: &Topology, nodes: &[u16]) -> Result<Vec<Assignment>, PlanError> {
    let mut taken = vec![0; nodes.len()];
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
        let own = &cores[taken[before]..][..each];
        taken[before] += each;
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

/// The first hardware thread of each core of a node, with its CPU index.
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

    /// The advice of a published case: three adapters on each of two nodes of six cores with two
    /// threads have two cores each, from the cores 0, 2, 4, 6, 8 and 10.
    #[test]
    fn six_adapters_have_two_cores_each() {
        let server = Topology::new(24, 2, 2, 64).expect("a server");
        let plan = spread(&server, &[0, 0, 0, 1, 1, 1]).expect("a plan");
        let first_cores: Vec<u32> = plan
            .iter()
            .map(|one| server.processors()[one.processors[0]].core)
            .collect();
        assert_eq!(first_cores, [0, 2, 4, 6, 8, 10]);
        assert!(plan.iter().all(|one| one.max_processors == 2));
        assert_eq!(plan[4].base_processor, 16);
    }

    /// What RSS makes of each adapter's settings is what the plan says, and nothing is shared.
    #[test]
    fn settings_give_what_the_plan_says() {
        let mut rng = Rng(11);
        let mut made = 0;
        for _ in 0..3_000 {
            let (threads, nodes) = (1 + rng.below(2) as u32, 1 + rng.below(3) as u16);
            let processors = threads * u32::from(nodes) * (1 + rng.below(50) as u32);
            let topology = Topology::new(processors, threads, nodes, 64).expect("a machine");
            let count = 1 + rng.below(8);
            let adapters: Vec<u16> = (0..count)
                .map(|_| rng.below(usize::from(nodes)) as u16)
                .collect();
            let Ok(plan) = spread(&topology, &adapters) else {
                continue;
            };
            made += 1;
            let mut used: Vec<usize> = Vec::new();
            for one in &plan {
                let found = one.settings().processors(&topology).expect("processors");
                assert_eq!(found, one.processors);
                used.extend(found);
            }
            let all = used.len();
            used.sort_unstable();
            used.dedup();
            assert_eq!(used.len(), all, "{adapters:?} on {processors}");
        }
        assert!(made > 1_000);
    }

    #[test]
    fn too_many_adapters_are_refused() {
        let small = Topology::new(4, 2, 1, 64).expect("a desktop");
        assert_eq!(
            spread(&small, &[0, 0, 0]),
            Err(PlanError::TooMany {
                node: 0,
                adapters: 3,
                cores: 2
            })
        );
        assert_eq!(spread(&small, &[1]), Err(PlanError::NoNode(1)));
    }
}
