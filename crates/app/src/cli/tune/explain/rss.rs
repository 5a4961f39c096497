//! Which processors serve a network adapter.

use std::fmt::Display;
use std::io::{self, Write};
use std::net::SocketAddr;

use serde::Serialize;
use tune::decode::flow::Flow;
use tune::decode::rss::{IndirectionTable, Rss, four_tuple_hash, two_tuple_hash};
use tune::decode::rss_limits::{self, Used};
use tune::decode::rss_plan::{self, Assignment};
use tune::decode::topology::{Processor, Topology};

use crate::cli::Failure;
use crate::output::{self, Columns, Side};

/// Says which processors serve an adapter with these settings and why no more, which of them a flow
/// gets; or how to spread several adapters so that they share none.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune explain rss --processors 24 --threads 2 --nodes 2 --node 0 --build 7601\n  \
    laglab tune explain rss --processors 12 --threads 2 --queues 2 --base 4\n  \
    laglab tune explain rss --processors 12 --flow 66.9.149.187:2794,161.142.100.80:1766\n  \
    laglab tune explain rss --processors 24 --threads 2 --nodes 2 --adapters 0,0,0,1,1,1\n\n\
    Hashes are by the key of Microsoft's documentation, which many drivers ship; a driver may have its \
    own, and then the processor is another.")]
pub(super) struct Args {
    /// Logical processors of the machine
    #[arg(long, value_name = "COUNT")]
    processors: u32,
    /// Hardware threads of a core
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    threads: u32,
    /// NUMA nodes
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    nodes: u16,
    /// The build of Windows, such as 17763: older ones have further limits
    #[arg(long, value_name = "BUILD")]
    build: Option<u32>,
    /// *RssBaseProcNumber
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    base: u8,
    /// *RssBaseProcGroup
    #[arg(long, value_name = "GROUP", default_value_t = 0)]
    base_group: u16,
    /// *RssMaxProcNumber [default: no limit]
    #[arg(long, value_name = "NUMBER")]
    last: Option<u8>,
    /// *RssMaxProcGroup
    #[arg(long, value_name = "GROUP", default_value_t = 0)]
    last_group: u16,
    /// *MaxRssProcessors
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    max: u16,
    /// *NumRssQueues
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    queues: u16,
    /// *NumaNodeId [default: any]
    #[arg(long, value_name = "NODE")]
    node: Option<u16>,
    /// MaxNumRssCpus, which holds for all adapters [default: that of the build]
    #[arg(long, value_name = "COUNT")]
    all_adapters: Option<u16>,
    /// A flow: where from and where to, each an address and a port; several times for several
    #[arg(long, value_name = "FROM,TO", value_parser = flow)]
    flow: Vec<Flow>,
    /// Spread adapters: the NUMA node of each, separated by commas
    #[arg(
        long,
        value_name = "NODES",
        value_delimiter = ',',
        conflicts_with_all = ["flow", "base", "base_group", "last", "last_group", "max", "queues", "node"]
    )]
    adapters: Vec<u16>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    /// What Windows makes groups of.
    const GROUP: u8 = 64;
    let wrong = |error: &dyn Display| Failure::Input(error.to_string());
    let topology = Topology::new(args.processors, args.threads, args.nodes, GROUP)
        .map_err(|error| wrong(&error))?;
    if !args.adapters.is_empty() {
        let plan = rss_plan::spread(&topology, &args.adapters).map_err(|error| wrong(&error))?;
        return tell(json, &plan, |out| write_plan(&plan, &topology, out));
    }
    let settings = Rss {
        enabled: true,
        base_group: args.base_group,
        base_processor: args.base,
        max_group: args.last_group,
        max_processor_number: args.last,
        max_processors: args.max,
        queues: args.queues,
        node: args.node,
    };
    let served = rss_limits::used(&settings, args.all_adapters, args.build, &topology)
        .map_err(|error| wrong(&error))?;
    let table = IndirectionTable::over(&served.processors);
    let flows: Vec<OfFlow> = (args.flow.iter())
        .map(|flow| OfFlow::new(flow, &table))
        .collect();
    let answer = Answer {
        served: &served,
        flows: &flows,
    };
    tell(json, &answer, |out| write_served(&served, &flows, out))
}

/// Tells it to programs or to people.
fn tell(
    json: bool,
    answer: &impl Serialize,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    if json {
        output::json(answer)?;
        return Ok(());
    }
    let mut out = output::for_people();
    write(&mut out)?;
    out.flush()?;
    Ok(())
}

/// The stable shape for programs.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    served: &'a Used,
    flows: &'a [OfFlow],
}

/// A flow and the processor that it gets.
#[derive(Serialize)]
struct OfFlow {
    flow: String,
    /// By addresses and ports, as for TCP.
    hash: u32,
    entry: usize,
    processor: usize,
    /// By addresses alone, as for UDP unless ports are asked for.
    hash_of_addresses: u32,
    entry_of_addresses: usize,
    processor_of_addresses: usize,
}

impl OfFlow {
    fn new(flow: &Flow, table: &IndirectionTable) -> OfFlow {
        let (hash, hash_of_addresses) = (four_tuple_hash(flow), two_tuple_hash(flow));
        OfFlow {
            flow: flow.to_string(),
            hash,
            entry: IndirectionTable::entry_for(hash),
            processor: table.processor_for(hash),
            hash_of_addresses,
            entry_of_addresses: IndirectionTable::entry_for(hash_of_addresses),
            processor_of_addresses: table.processor_for(hash_of_addresses),
        }
    }
}

fn write_served(served: &Used, flows: &[OfFlow], out: &mut dyn Write) -> io::Result<()> {
    let Used {
        processors,
        usable,
        limits,
    } = served;
    let count = processors.len();
    let which: Vec<String> = processors.iter().map(ToString::to_string).collect();
    output::first_heading(
        out,
        &format!("Served by {count} of {usable} usable processors"),
    )?;
    output::paragraph(out, &format!("CPU {}", which.join(", ")))?;
    output::quiet(
        out,
        "Usable is the first thread of each core in the range and node that are set: RSS does not use \
         further threads.",
    )?;
    let explains: Vec<_> = limits.iter().filter(|limit| limit.explains).collect();
    if !explains.is_empty() {
        output::heading(out, "Why no more")?;
        for limit in &explains {
            output::paragraph(out, &format!("{}.", limit.says))?;
        }
        if explains.len() > 1 {
            output::paragraph(
                out,
                "Each of these is enough to explain it alone: to change one is not enough.",
            )?;
        }
    }
    for limit in limits.iter().filter(|limit| !limit.explains) {
        output::quiet(
            out,
            &format!("{} (which would leave {}).", limit.says, limit.leaves),
        )?;
    }
    if !flows.is_empty() {
        output::heading(out, "Flows")?;
        let mut columns = Columns::new(&[
            Side::Left,
            Side::Right,
            Side::Right,
            Side::Right,
            Side::Right,
        ]);
        columns.row(["flow", "hashed by", "hash", "entry", "CPU"]);
        for flow in flows {
            columns.row([
                flow.flow.clone(),
                "addresses and ports".to_owned(),
                format!("{:#010x}", flow.hash),
                flow.entry.to_string(),
                flow.processor.to_string(),
            ]);
            columns.row([
                String::new(),
                "addresses".to_owned(),
                format!("{:#010x}", flow.hash_of_addresses),
                flow.entry_of_addresses.to_string(),
                flow.processor_of_addresses.to_string(),
            ]);
        }
        columns.write(out)?;
        output::quiet(
            out,
            "If the driver uses the key of the documentation, and Windows has not moved entries since \
             the adapter started.",
        )?;
    }
    Ok(())
}

fn write_plan(plan: &[Assignment], topology: &Topology, out: &mut dyn Write) -> io::Result<()> {
    let served: usize = plan.iter().map(|one| one.processors.len()).sum();
    let cores = topology.processors().iter().filter(|cpu| !cpu.smt_sibling);
    let cores: Vec<&Processor> = cores.collect();
    output::first_heading(
        out,
        &format!(
            "{} adapters on {served} of {} cores",
            plan.len(),
            cores.len()
        ),
    )?;
    let mut columns = Columns::new(&[
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Left,
    ]);
    columns.row([
        "adapter",
        "*NumaNodeId",
        "*RssBaseProcGroup",
        "*RssBaseProcNumber",
        "*MaxRssProcessors",
        "CPUs",
    ]);
    for (number, one) in plan.iter().enumerate() {
        let cpus: Vec<String> = one.processors.iter().map(ToString::to_string).collect();
        columns.row([
            (number + 1).to_string(),
            one.node.to_string(),
            one.base_group.to_string(),
            one.base_processor.to_string(),
            one.max_processors.to_string(),
            cpus.join(", "),
        ]);
    }
    columns.write(out)?;
    output::paragraph(
        out,
        "No processor serves two adapters. Set-NetAdapterRss sets these; an adapter restarts when they \
         change. Teams of adapters and profile Balanced take them away again.",
    )
}

/// Two endpoints, separated by a comma.
fn flow(text: &str) -> Result<Flow, String> {
    let endpoint = |text: &str| {
        let endpoint: Result<SocketAddr, _> = text.trim().parse();
        endpoint.map_err(|_| format!("\"{text}\" is no address with a port, such as 10.0.0.1:443"))
    };
    let (from, to) = text
        .split_once(',')
        .ok_or("expected where from and where to, separated by a comma")?;
    Flow::new(endpoint(from)?, endpoint(to)?).map_err(|error| error.to_string())
}
