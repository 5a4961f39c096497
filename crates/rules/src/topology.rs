//! Numbers of logical processors, and their groups, cores and NUMA nodes.

use thiserror::Error;

/// Maximum number of logical processors that Windows supports.
const MAX_PROCESSORS: u32 = 2048;

/// Maximum number of processors in a group, which is the number of bits of an affinity mask.
pub const MAX_GROUP_SIZE: u8 = 64;

/// One logical processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Number of the processor group.
    pub group: u16,
    /// Number within the group, from 0.
    pub number: u8,
    /// Number of the physical core, counted over the whole machine.
    pub core: u32,
    /// Number of the NUMA node.
    pub node: u16,
    /// True if this is not the first hardware thread of its core.
    pub smt_sibling: bool,
}

/// Logical processors of a machine, ordered by CPU index. Traces number CPUs by this index, over all
/// groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    processors: Vec<Processor>,
}

/// Error: Windows cannot run on a machine with these numbers of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// There are too few or too many processors.
    #[error("invalid number of processors {0}: give 1 to {MAX_PROCESSORS}")]
    Processors(u32),
    /// The processors cannot be divided into equal NUMA nodes of whole cores.
    #[error(
        "cannot divide {processors} processors into NUMA nodes of equal size: the number of nodes is {nodes}, and \
         each core has {threads_per_core} threads"
    )]
    Uneven {
        /// Number of logical processors.
        processors: u32,
        /// Number of hardware threads per core.
        threads_per_core: u32,
        /// Number of NUMA nodes.
        nodes: u16,
    },
    /// The group size is out of range or would split a core.
    #[error(
        "invalid group size {size}: give at most {MAX_GROUP_SIZE} processors, and a multiple of \
         {threads_per_core}, the number of threads per core"
    )]
    GroupSize {
        /// Number of processors per group.
        size: u8,
        /// Number of hardware threads per core.
        threads_per_core: u32,
    },
}

impl TopologyError {
    /// Returns the name of the invalid field: `processors` or `group_size`.
    pub fn field(&self) -> &'static str {
        match self {
            TopologyError::Processors(_) | TopologyError::Uneven { .. } => "processors",
            TopologyError::GroupSize { .. } => "group_size",
        }
    }
}

impl Topology {
    /// Numbers the processors like Windows. The hardware threads of a core have successive numbers (0 and 1
    /// share a core). Nodes are contiguous, and groups contain whole nodes ("Processor Groups" in the Win32
    /// documentation). A node that is larger than a group fills the group and continues in the next group
    /// under the same node number, as on Windows 11. Older releases split such a node into several nodes,
    /// which the model does not do.
    ///
    /// # Errors
    /// Returns an error if the processors cannot be divided into equal nodes of whole cores, or the group
    /// size is invalid.
    pub fn new(
        processors: u32,
        threads_per_core: u32,
        nodes: u16,
        group_size: u8,
    ) -> Result<Topology, TopologyError> {
        if !(1..=MAX_PROCESSORS).contains(&processors) {
            return Err(TopologyError::Processors(processors));
        }
        let threads_per_node = u64::from(threads_per_core) * u64::from(nodes);
        if threads_per_node == 0 || !u64::from(processors).is_multiple_of(threads_per_node) {
            return Err(TopologyError::Uneven {
                processors,
                threads_per_core,
                nodes,
            });
        }
        if !(1..=MAX_GROUP_SIZE).contains(&group_size)
            || !u32::from(group_size).is_multiple_of(threads_per_core)
        {
            return Err(TopologyError::GroupSize {
                size: group_size,
                threads_per_core,
            });
        }
        let node_size = processors / u32::from(nodes);
        let (mut group, mut number) = (0, 0_u8);
        let mut numbered = Vec::new();
        for index in 0..processors {
            let starts_node = index.is_multiple_of(node_size);
            let node_fits = u32::from(number) + node_size <= u32::from(group_size);
            if number == group_size || (number > 0 && starts_node && !node_fits) {
                (group, number) = (group + 1, 0);
            }
            numbered.push(Processor {
                group,
                number,
                core: index / threads_per_core,
                node: (index / node_size) as u16,
                smt_sibling: !index.is_multiple_of(threads_per_core),
            });
            number += 1;
        }
        Ok(Topology {
            processors: numbered,
        })
    }

    /// Returns the processors, indexed by CPU index.
    pub fn processors(&self) -> &[Processor] {
        &self.processors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    #[test]
    fn siblings_are_neighbours_and_nodes_are_contiguous() {
        let machine = Topology::new(24, 2, 2, 64).expect("a two-socket server");
        let columns = |column: fn(&Processor) -> u32| -> Vec<u32> {
            machine.processors().iter().map(column).collect()
        };
        assert_eq!(columns(|cpu| cpu.core)[..6], [0, 0, 1, 1, 2, 2]);
        assert_eq!(columns(|cpu| cpu.smt_sibling.into())[..4], [0, 1, 0, 1]);
        assert_eq!(columns(|cpu| cpu.node.into())[11..13], [0, 1]);
        assert_eq!(columns(|cpu| cpu.number.into())[22..], [22, 23]);
    }

    #[test]
    fn groups_hold_whole_nodes() {
        let groups = |processors, nodes| {
            let machine = Topology::new(processors, 2, nodes, 64).expect("a large server");
            let mut sizes = vec![0; 1];
            for cpu in machine.processors() {
                sizes.resize(usize::from(cpu.group) + 1, 0);
                sizes[usize::from(cpu.group)] += 1;
            }
            sizes
        };
        assert_eq!(groups(64, 2), [64]);
        assert_eq!(groups(72, 2), [36, 36]);
        assert_eq!(groups(128, 4), [64, 64]);
        assert_eq!(groups(96, 1), [64, 32]);
        assert_eq!(groups(192, 2), [64, 32, 64, 32]);
    }

    #[test]
    fn any_machine_is_numbered_without_gaps_or_refused() {
        let mut rng = Rng(3);
        let mut count = 0;
        for _ in 0..5_000 {
            let threads = rng.below(4) as u32;
            let nodes = rng.below(5) as u16;
            let processors = rng.below(700) as u32;
            let Ok(machine) = Topology::new(processors, threads, nodes, rng.below(70) as u8) else {
                continue;
            };
            count += 1;
            assert_eq!(machine.processors().len(), processors as usize);
            for pair in machine.processors().windows(2) {
                let next_in_group =
                    pair[1].group == pair[0].group && pair[1].number == pair[0].number + 1;
                let first_of_group = pair[1].group == pair[0].group + 1 && pair[1].number == 0;
                assert!(next_in_group || first_of_group);
                assert_eq!(pair[1].smt_sibling, pair[1].core == pair[0].core);
                assert!(!pair[1].smt_sibling || next_in_group);
            }
        }
        assert!(count > 100);
    }

    #[test]
    fn impossible_machines_are_refused() {
        assert_eq!(
            Topology::new(0, 1, 1, 64),
            Err(TopologyError::Processors(0))
        );
        assert_eq!(
            Topology::new(6, 4, 1, 64).unwrap_err().to_string(),
            "cannot divide 6 processors into NUMA nodes of equal size: the number of nodes is 1, and each core \
             has 4 threads"
        );
        assert!(Topology::new(8, 2, 0, 64).is_err());
        assert!(Topology::new(8, 2, 1, 65).is_err());
        assert!(Topology::new(8, 2, 1, 3).is_err());
    }
}
