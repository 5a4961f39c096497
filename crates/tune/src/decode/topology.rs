//! How a machine's logical processors are numbered: groups, cores and NUMA nodes.

use thiserror::Error;

/// Windows supports no more logical processors than this.
const MAX_PROCESSORS: u32 = 2048;

/// A processor group holds no more logical processors than this: the bits of an affinity mask.
pub const MAX_GROUP_SIZE: u8 = 64;

/// One logical processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// The processor group it is in.
    pub group: u16,
    /// Its number in that group.
    pub number: u8,
    /// The physical core it is on, counted through the machine.
    pub core: u32,
    /// The NUMA node it is on.
    pub node: u16,
    /// Whether it is a further hardware thread of a core whose first one has a lower number.
    pub smt_sibling: bool,
}

/// The logical processors of a machine, in the order of their CPU index: the number by which a trace
/// names them, counted through all groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    processors: Vec<Processor>,
}

/// A machine that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// Too few or too many processors.
    #[error("a machine has 1 to {MAX_PROCESSORS} processors, found {0}")]
    Processors(u32),
    /// The processors do not make whole cores and equal nodes.
    #[error(
        "{processors} processors do not make equal NUMA nodes (found {nodes}) of whole cores (found \
         {threads_per_core} threads each)"
    )]
    Uneven {
        /// Logical processors asked for.
        processors: u32,
        /// Hardware threads of a core asked for.
        threads_per_core: u32,
        /// NUMA nodes asked for.
        nodes: u16,
    },
    /// A group of a size that Windows does not make, or that would tear a core apart.
    #[error(
        "a processor group holds up to {MAX_GROUP_SIZE} processors and whole cores: \
         found a size of {size} with {threads_per_core} threads per core"
    )]
    GroupSize {
        /// Processors of a group asked for.
        size: u8,
        /// Hardware threads of a core asked for.
        threads_per_core: u32,
    },
}

impl TopologyError {
    /// The number that is wrong: `processors` or `group_size`.
    pub fn field(&self) -> &'static str {
        match self {
            TopologyError::Processors(_) | TopologyError::Uneven { .. } => "processors",
            TopologyError::GroupSize { .. } => "group_size",
        }
    }
}

impl Topology {
    /// Numbers the processors as Windows does: the threads of a core are neighbours (0 and 1 share
    /// a core), nodes are contiguous, and groups hold whole nodes ("Processor Groups" in the Win32
    /// documentation). A node larger than a group fills it and continues in the next one, under the
    /// same node number as on Windows 11; older releases make several nodes of it, which the model
    /// does not.
    ///
    /// # Errors
    /// When the numbers do not make a machine of equal nodes with whole cores.
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

    /// The processors, by their CPU index.
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
        let mut made = 0;
        for _ in 0..5_000 {
            let threads = rng.below(4) as u32;
            let nodes = rng.below(5) as u16;
            let processors = rng.below(700) as u32;
            let Ok(machine) = Topology::new(processors, threads, nodes, rng.below(70) as u8) else {
                continue;
            };
            made += 1;
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
        assert!(made > 100);
    }

    #[test]
    fn impossible_machines_are_refused() {
        assert_eq!(
            Topology::new(0, 1, 1, 64),
            Err(TopologyError::Processors(0))
        );
        assert_eq!(
            Topology::new(6, 4, 1, 64).unwrap_err().to_string(),
            "6 processors do not make equal NUMA nodes (found 1) of whole cores (found 4 threads each)"
        );
        assert!(Topology::new(8, 2, 0, 64).is_err());
        assert!(Topology::new(8, 2, 1, 65).is_err());
        assert!(Topology::new(8, 2, 1, 3).is_err());
    }
}
