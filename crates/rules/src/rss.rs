//! Receive side scaling (RSS), which selects the CPU that handles a received packet.
//!
//! The adapter hashes the addresses (and ports) of a packet. The low bits of the hash select an entry of
//! the indirection table, and the entry names a CPU. So all packets of a connection are handled by one
//! CPU. Source: Windows driver documentation, "Receive Side Scaling".

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::flow::{Addresses, Flow};
use crate::topology::{Processor, Topology};

/// Hash key in Microsoft's page "Verifying the RSS Hash Calculation". Many drivers use it.
const KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// Number of entries in the indirection table: the maximum that Windows uses.
const TABLE_ENTRIES: usize = 128;

/// RSS settings of an adapter. The fields correspond to standardized keywords.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rss {
    /// Keyword `*RSS`. If false, the first CPU that RSS could use handles all packets.
    pub enabled: bool,
    /// Keyword `*RssBaseProcGroup`: processor group of the first CPU that RSS may use.
    pub base_group: u16,
    /// Keyword `*RssBaseProcNumber`: number, within its group, of the first CPU that RSS may use.
    pub base_processor: u8,
    /// Keyword `*RssMaxProcGroup`: processor group of the last CPU that RSS may use.
    pub max_group: u16,
    /// Keyword `*RssMaxProcNumber`: number, within its group, of the last CPU that RSS may use. `None` for no
    /// limit.
    pub max_processor_number: Option<u8>,
    /// Keyword `*MaxRssProcessors`: maximum number of CPUs that RSS may use. On Server 2008 R2,
    /// `MaxNumRssCpus` (default 4) also limits all adapters. The caller must then set the lower of both
    /// numbers.
    pub max_processors: u16,
    /// Keyword `*NumRssQueues`: number of receive queues.
    pub queues: u16,
    /// Keyword `*NumaNodeId`: NUMA node whose CPUs RSS may use. `None` for all nodes.
    pub node: Option<u16>,
}

impl Default for Rss {
    /// Defaults of the keywords.
    fn default() -> Rss {
        Rss {
            enabled: true,
            base_group: 0,
            base_processor: 0,
            max_group: 0,
            max_processor_number: None,
            max_processors: 16,
            queues: 16,
            node: None,
        }
    }
}

/// Error: the settings exclude all CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "no processor for RSS: the settings exclude all {processors} processors; check the base processor, the \
     maximum processor and the NUMA node, and set the number of queues and of processors to at least 1"
)]
pub struct NoProcessor {
    processors: usize,
}

impl Rss {
    /// Returns the indexes of the CPUs that handle packets, lowest first. They are the first of the
    /// [usable](Self::usable) CPUs. The number of CPUs is the largest power of two that does not exceed the
    /// number of usable CPUs, the number of queues and `max_processors`.
    ///
    /// The power of two is an inference. The documentation states it only for the size of the table. A published
    /// case, in which RSS uses four of six cores, does not prove it, because there are other explanations. RSS takes
    /// the lowest CPUs in the profile `ClosestProcessor`, which is the only profile of Windows 7.
    ///
    /// # Errors
    /// Returns an error if the settings exclude all CPUs.
    pub fn processors(&self, topology: &Topology) -> Result<Vec<usize>, NoProcessor> {
        let mut usable = self.usable(topology);
        let limit = if self.enabled {
            usable
                .len()
                .min(usize::from(self.max_processors.min(self.queues)))
        } else {
            usable.len().min(1)
        };
        match limit.checked_ilog2() {
            Some(power) => usable.truncate(1 << power),
            None => {
                return Err(NoProcessor {
                    processors: topology.processors().len(),
                });
            }
        }
        Ok(usable)
    }

    /// Returns the indexes of the CPUs that RSS may choose from: the first hardware thread of each core
    /// in the configured range and node.
    pub fn usable(&self, topology: &Topology) -> Vec<usize> {
        let processors = topology.processors().iter().enumerate();
        processors
            .filter(|(_, processor)| self.may_use(processor))
            .map(|(index, _)| index)
            .collect()
    }

    fn may_use(&self, processor: &Processor) -> bool {
        let place = (processor.group, processor.number);
        !processor.smt_sibling
            && place >= (self.base_group, self.base_processor)
            && self
                .max_processor_number
                .is_none_or(|last| place <= (self.max_group, last))
            && self.node.is_none_or(|node| processor.node == node)
    }

    /// Returns the indirection table that distributes hashes evenly over [the CPUs](Rss::processors).
    ///
    /// # Errors
    /// Returns an error if the settings exclude all CPUs.
    pub fn indirection_table(&self, topology: &Topology) -> Result<IndirectionTable, NoProcessor> {
        Ok(IndirectionTable::over(&self.processors(topology)?))
    }
}

/// Indirection table, which maps hashes to CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndirectionTable {
    entries: [usize; TABLE_ENTRIES],
}

impl IndirectionTable {
    /// Makes a table that assigns its entries to these CPUs in turn.
    ///
    /// # Panics
    /// Panics if `processors` is empty.
    pub fn over(processors: &[usize]) -> IndirectionTable {
        IndirectionTable {
            entries: std::array::from_fn(|entry| processors[entry % processors.len()]),
        }
    }

    /// Returns the index of the CPU that handles packets with this hash.
    pub fn processor_for(&self, hash: u32) -> usize {
        self.entries[Self::entry_for(hash)]
    }

    /// Returns the index of the table entry for a hash, which is the low bits of the hash.
    pub fn entry_for(hash: u32) -> usize {
        hash as usize % TABLE_ENTRIES
    }
}

/// Returns the hash of the addresses of a flow (`NDIS_HASH_IPV4`, `NDIS_HASH_IPV6`). Adapters use it for
/// UDP by default.
pub fn two_tuple_hash(flow: &Flow) -> u32 {
    hash(&flow.addresses, &[])
}

/// Returns the hash of the addresses and ports of a flow (`NDIS_HASH_TCP_IPV4`, `NDIS_HASH_UDP_IPV6` and
/// so on).
pub fn four_tuple_hash(flow: &Flow) -> u32 {
    let ports = [flow.source_port, flow.destination_port].map(u16::to_be_bytes);
    hash(&flow.addresses, ports.as_flattened())
}

fn hash(addresses: &Addresses, ports: &[u8]) -> u32 {
    match addresses {
        Addresses::V4 {
            source,
            destination,
        } => toeplitz(
            [source.octets(), destination.octets()].as_flattened(),
            ports,
        ),
        Addresses::V6 {
            source,
            destination,
        } => toeplitz(
            [source.octets(), destination.octets()].as_flattened(),
            ports,
        ),
    }
}

/// Computes the Toeplitz hash (`NdisHashFunctionToeplitz`). For each set bit of the input, it XORs the
/// 32 bits of the key that start at the position of this bit.
fn toeplitz(addresses: &[u8], ports: &[u8]) -> u32 {
    let (first, rest) = KEY.split_at(8);
    let mut rest = rest.iter();
    let mut window = first
        .iter()
        .fold(0, |window, &byte| window << 8 | u64::from(byte));
    let mut hash = 0;
    for &byte in addresses.iter().chain(ports) {
        for bit in (0..8).rev() {
            if byte >> bit & 1 == 1 {
                hash ^= (window >> 32) as u32;
            }
            window <<= 1;
        }
        window |= u64::from(*rest.next().unwrap_or(&0));
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(source: &str, destination: &str) -> Flow {
        let endpoint = |text: &str| text.parse().expect("an endpoint");
        Flow::new(endpoint(source), endpoint(destination)).expect("one family")
    }

    /// Test vectors of Microsoft's "Verifying the RSS Hash Calculation". A row has the source, the
    /// destination, the hash of the addresses, and the hash of the addresses and ports.
    #[test]
    fn published_hashes_match() {
        for (source, destination, addresses, ports) in [
            (
                "66.9.149.187:2794",
                "161.142.100.80:1766",
                0x323e_8fc2,
                0x51cc_c178,
            ),
            (
                "199.92.111.2:14230",
                "65.69.140.83:4739",
                0xd718_262a,
                0xc626_b0ea,
            ),
            (
                "24.19.198.95:12898",
                "12.22.207.184:38024",
                0xd2d0_a5de,
                0x5c2b_394a,
            ),
            (
                "38.27.205.30:48228",
                "209.142.163.6:2217",
                0x8298_9176,
                0xafc7_327f,
            ),
            (
                "153.39.163.191:44251",
                "202.188.127.2:1303",
                0x5d18_09c5,
                0x10e8_28a2,
            ),
            (
                "[3ffe:2501:200:1fff::7]:2794",
                "[3ffe:2501:200:3::1]:1766",
                0x2cc1_8cd5,
                0x4020_7d3d,
            ),
            (
                "[3ffe:501:8::260:97ff:fe40:efab]:14230",
                "[ff02::1]:4739",
                0x0f0c_461c,
                0xdde5_1bbf,
            ),
            (
                "[3ffe:1900:4545:3:200:f8ff:fe21:67cf]:44251",
                "[fe80::200:f8ff:fe21:67cf]:38024",
                0x4b61_e985,
                0x02d1_feef,
            ),
        ] {
            let flow = flow(source, destination);
            assert_eq!(two_tuple_hash(&flow), addresses, "{source}");
            assert_eq!(four_tuple_hash(&flow), ports, "{source}");
        }
    }

    /// Returns a machine with two sockets. Each socket has six cores with two hardware threads each.
    fn two_sockets() -> Topology {
        Topology::new(24, 2, 2, 64).expect("a server")
    }

    /// A published case of a backup server has four busy CPUs of 24: "0, 2, 4 and 6 … located on NUMA node
    /// 0". The case advises to give two CPUs to each of several adapters, from different base CPUs.
    #[test]
    fn six_cores_of_a_node_make_four_processors() {
        let on_node = |node| Rss {
            node: Some(node),
            ..Rss::default()
        };
        let processors = |rss: &Rss| rss.processors(&two_sockets()).expect("processors");
        assert_eq!(processors(&on_node(0)), [0, 2, 4, 6]);
        assert_eq!(processors(&on_node(1)), [12, 14, 16, 18]);
        let third_adapter = Rss {
            base_processor: 8,
            max_processors: 2,
            ..on_node(0)
        };
        assert_eq!(processors(&third_adapter), [8, 10]);
        // Documentation explains this case without a power of two: Server 2008 R2 uses four CPUs by default.
        let by_default = Rss {
            max_processors: 4,
            ..Rss::default()
        };
        assert_eq!(processors(&by_default), [0, 2, 4, 6]);
    }

    #[test]
    fn two_queues_from_base_0_use_cpus_0_and_1() {
        let desktop = Topology::new(6, 1, 1, 64).expect("a desktop");
        let rss = Rss {
            queues: 2,
            ..Rss::default()
        };
        let table = rss.indirection_table(&desktop).expect("processors");
        let mut used = [0; 6];
        for hash in 0..1_280 {
            used[table.processor_for(hash)] += 1;
        }
        assert_eq!(used, [640, 640, 0, 0, 0, 0]);
        // All packets of a connection have the same hash, so one CPU handles them.
        assert_eq!(table.processor_for(0x51cc_c178), 0);
        assert_eq!(table.processor_for(0x2cc1_8cd5), 1);
    }

    #[test]
    fn limits_hold_across_groups() {
        let large = Topology::new(72, 2, 2, 64).expect("two groups");
        let rss = Rss {
            base_group: 1,
            base_processor: 4,
            max_group: 1,
            max_processor_number: Some(8),
            ..Rss::default()
        };
        // Group 1 begins at CPU 36. RSS may use one CPU of each core: the numbers 4, 6 and 8 in this group. The
        // number of CPUs must be a power of two, so RSS uses only the first two.
        assert_eq!(rss.processors(&large).expect("processors"), [40, 42]);
    }

    #[test]
    fn without_rss_one_cpu_handles_all_packets() {
        let off = Rss {
            enabled: false,
            base_processor: 3,
            ..Rss::default()
        };
        assert_eq!(off.processors(&two_sockets()).expect("processors"), [4]);
    }

    #[test]
    fn settings_that_leave_no_processor_are_refused() {
        for nothing in [
            Rss {
                node: Some(2),
                ..Rss::default()
            },
            Rss {
                base_processor: 24,
                ..Rss::default()
            },
            Rss {
                queues: 0,
                ..Rss::default()
            },
        ] {
            let error = nothing.indirection_table(&two_sockets()).unwrap_err();
            assert!(error.to_string().contains("no processor"), "{error}");
        }
    }
}
