//! Processors that serve a network adapter.

use std::io::{self, Write};
use std::net::SocketAddr;

use rules::flow::Flow;
use rules::rss::{IndirectionTable, Rss, four_tuple_hash, two_tuple_hash};
use rules::rss_limits::{self, Used};
use rules::rss_plan::{self, Assignment};
use rules::topology::{Processor, Topology};
use serde::Serialize;

use crate::cli::Failure;
use crate::cli::tune::failure;
use crate::output::{self, Columns, Side, counted};

/// Computes which processors serve an adapter, which rules limit them, and which processor a flow gets. For
/// several adapters, it assigns processors to each adapter without overlap.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune explain rss --processors 24 --threads 2 --nodes 2 --node 0 --build 7601\n  \
    laglab tune explain rss --processors 12 --threads 2 --queues 2 --base 4\n  \
    laglab tune explain rss --processors 12 --flow 66.9.149.187:2794,161.142.100.80:1766\n  \
    laglab tune explain rss --processors 24 --threads 2 --nodes 2 --adapters 0,0,0,1,1,1\n\n\
    Hashes use the key of Microsoft's documentation, as many drivers do. With another key, a flow gets \
    another processor.")]
pub(super) struct Args {
    /// Number of logical processors
    #[arg(long, value_name = "COUNT")]
    processors: u32,
    /// Hardware threads per core
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    threads: u32,
    /// Number of NUMA nodes
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    nodes: u16,
    /// Build of Windows, such as 17763: older builds have more limits
    #[arg(long, value_name = "BUILD")]
    build: Option<u32>,
    /// Value of *RssBaseProcNumber
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    base: u8,
    /// Value of *RssBaseProcGroup
    #[arg(long, value_name = "GROUP", default_value_t = 0)]
    base_group: u16,
    /// Value of *RssMaxProcNumber [default: no limit]
    #[arg(long, value_name = "NUMBER")]
    last: Option<u8>,
    /// Value of *RssMaxProcGroup
    #[arg(long, value_name = "GROUP", default_value_t = 0)]
    last_group: u16,
    /// Value of *MaxRssProcessors
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    max: u16,
    /// Value of *NumRssQueues
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    queues: u16,
    /// Value of *NumaNodeId [default: any]
    #[arg(long, value_name = "NODE")]
    node: Option<u16>,
    /// Value of MaxNumRssCpus, the limit for all adapters [default: by build]
    #[arg(long, value_name = "COUNT")]
    all_adapters: Option<u16>,
    /// Flow: source and destination, each an address and a port; may be repeated
    #[arg(long, value_name = "FROM,TO", value_parser = flow)]
    flow: Vec<Flow>,
    /// Assign processors to adapters: NUMA node of each adapter, separated by commas
    #[arg(
        long,
        value_name = "NODES",
        value_delimiter = ',',
        conflicts_with_all = ["flow", "base", "base_group", "last", "last_group", "max", "queues", "node"]
    )]
    adapters: Vec<u16>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    /// Number of processors in a processor group.
    const GROUP: u8 = 64;
    let topology = Topology::new(args.processors, args.threads, args.nodes, GROUP)
        .map_err(|error| failure(&error))?;
    if !args.adapters.is_empty() {
        let plan = rss_plan::assign(&topology, &args.adapters).map_err(|error| failure(&error))?;
        return print(json, &plan, |out| write_plan(&plan, &topology, out));
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
        .map_err(|error| failure(&error))?;
    let table = IndirectionTable::over(&served.processors);
    let flows: Vec<FlowJson> = (args.flow.iter())
        .map(|flow| FlowJson::new(flow, &table))
        .collect();
    let answer = Answer {
        served: &served,
        flows: &flows,
    };
    print(json, &answer, |out| write_served(&served, &flows, out))
}

/// Prints an answer as JSON or as text.
fn print(
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

/// JSON output of `laglab tune explain rss`. Programs rely on its fields.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    served: &'a Used,
    flows: &'a [FlowJson],
}

/// Network flow with the processor that serves it.
#[derive(Serialize)]
struct FlowJson {
    flow: String,
    /// Hash of the addresses and ports, as Windows computes it for TCP.
    hash: u32,
    entry: usize,
    processor: usize,
    /// Hash of the addresses only, which is the default for UDP.
    hash_of_addresses: u32,
    entry_of_addresses: usize,
    processor_of_addresses: usize,
}

impl FlowJson {
    fn new(flow: &Flow, table: &IndirectionTable) -> FlowJson {
        let (hash, hash_of_addresses) = (four_tuple_hash(flow), two_tuple_hash(flow));
        FlowJson {
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

fn write_served(served: &Used, flows: &[FlowJson], out: &mut dyn Write) -> io::Result<()> {
    let Used {
        processors,
        at_most,
        usable,
        limits,
    } = served;
    let count = processors.len();
    let which: Vec<String> = processors.iter().map(ToString::to_string).collect();
    let title = if count == *at_most {
        format!("Served by {count} of {usable} usable processors")
    } else {
        format!(
            "Served by at most {at_most} of {usable} usable processors, perhaps only by {count}"
        )
    };
    output::first_heading(out, &title)?;
    output::paragraph(out, &format!("CPU {}", which.join(", ")))?;
    output::quiet(
        out,
        "Usable processors are the first thread of each core in the configured range and node. RSS does not use \
         other threads.",
    )?;
    let explains: Vec<_> = limits.iter().filter(|limit| limit.explains).collect();
    if !explains.is_empty() {
        output::heading(out, "Limits")?;
        for limit in &explains {
            output::paragraph(out, &format!("{}.", limit.says))?;
        }
        if explains.len() > 1 {
            output::paragraph(
                out,
                "Each of these limits alone leads to this number, so changing only one of them may \
                 have no effect.",
            )?;
        }
    }
    for limit in limits.iter().filter(|limit| !limit.explains) {
        output::quiet(
            out,
            &format!(
                "{} (this limit alone would leave {}).",
                limit.says, limit.leaves
            ),
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
            "This assumes that RSS uses the processors above, that the driver uses the documented key, and that \
             Windows has not moved entries since the adapter started.",
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
            "{} on {served} of {}",
            counted(plan.len() as u64, "adapter", "adapters"),
            counted(cores.len() as u64, "core", "cores")
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
        "No processor serves two adapters. The number of processors of each adapter is a power of \
         two, because RSS may round other numbers down (this is inferred, not documented). \
         Set-NetAdapterRss sets these values and restarts the adapter. Adapter teams and the \
         profile Balanced override them.",
    )
}

/// Parses a network flow: two endpoints, separated by a comma.
fn flow(text: &str) -> Result<Flow, String> {
    let endpoint = |text: &str| {
        let endpoint: Result<SocketAddr, _> = text.trim().parse();
        endpoint.map_err(|_| {
            format!("invalid endpoint \"{text}\": give address and port, such as 10.0.0.1:443")
        })
    };
    let (from, to) = text
        .split_once(',')
        .ok_or("expected source and destination, separated by a comma")?;
    Flow::new(endpoint(from)?, endpoint(to)?).map_err(|error| error.to_string())
}
