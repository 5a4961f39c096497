//! `laglab tune adapters`.

use std::io::Write;

use tune::adapters::{Adapter, Address, Anomaly, Api, Kind, PrefixSource, Scope, Status};

use crate::cli::Failure;
use crate::output::{self, Columns, Side};

/// Every network adapter and address of this machine, with prefix lengths and what is odd about them. On
/// Windows all three interfaces that tell of addresses are asked and shown side by side.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune adapters\n  \
    laglab tune adapters --json")]
pub(super) struct Args {
    /// Only adapters with something odd
    #[arg(long)]
    odd: bool,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let mut adapters =
        tune::adapters::adapters().map_err(|error| Failure::Input(error.to_string()))?;
    if args.odd {
        let odd = |address: &Address| !address.anomalies.is_empty();
        adapters
            .retain(|adapter| !adapter.anomalies.is_empty() || adapter.addresses.iter().any(odd));
    }
    if json {
        output::json(&adapters)?;
        return Ok(());
    }
    let mut out = output::for_people();
    for (number, adapter) in adapters.iter().enumerate() {
        write_adapter(&mut out, number == 0, adapter)?;
    }
    out.flush()?;
    Ok(())
}

fn write_adapter(out: &mut dyn Write, first: bool, adapter: &Adapter) -> Result<(), Failure> {
    let index = adapter
        .index
        .map_or(String::new(), |index| format!("#{index} "));
    let title = format!("{index}{}", adapter.name);
    match first {
        true => output::first_heading(out, &output::Printable(&title).to_string())?,
        false => output::heading(out, &output::Printable(&title).to_string())?,
    }
    let able = |able: bool, what: &str| format!("{} {what}", if able { "can" } else { "cannot" });
    let description = adapter
        .description
        .as_deref()
        .map_or(String::new(), |text| format!("{text}; "));
    let line = format!(
        "{description}{}, {}; {}, {}",
        kind(adapter.kind),
        status(adapter.status),
        able(adapter.broadcast, "broadcast"),
        able(adapter.multicast, "multicast"),
    );
    output::paragraph(out, &line)?;
    let mut columns = Columns::new(&[Side::Left; 4]);
    for address in &adapter.addresses {
        let length = address
            .prefix
            .length
            .map_or_else(|| "?".to_owned(), |length| length.to_string());
        let zone = address
            .scope_id
            .map_or(String::new(), |id| format!("%{id}"));
        let mut more = Vec::new();
        more.extend(
            address
                .broadcast
                .map(|broadcast| format!("broadcast {broadcast}")),
        );
        more.extend(address.peer.map(|peer| format!("the other end is {peer}")));
        more.extend(address.told.iter().map(|told| {
            let length = told
                .length
                .map_or_else(|| "no prefix".to_owned(), |length| format!("/{length}"));
            format!("{} {length}", api(told.api))
        }));
        columns.row([
            format!("{}{zone}/{length}", address.address),
            scope(address.scope).to_owned(),
            source(address.prefix.source).to_owned(),
            more.join(", "),
        ]);
    }
    columns.write(out)?;
    let of_addresses = adapter.addresses.iter().flat_map(|address| {
        address
            .anomalies
            .iter()
            .map(move |anomaly| format!("{}: {}", address.address, oddity(*anomaly)))
    });
    for line in adapter
        .anomalies
        .iter()
        .map(|anomaly| oddity(*anomaly))
        .chain(of_addresses)
    {
        output::warning(out, &line)?;
    }
    Ok(())
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Ethernet => "Ethernet or alike".to_owned(),
        Kind::Wireless => "wireless".to_owned(),
        Kind::Loopback => "loopback".to_owned(),
        Kind::PointToPoint => "a link to one other end".to_owned(),
        Kind::Teredo => "a Teredo tunnel".to_owned(),
        Kind::Tunnel => "a tunnel".to_owned(),
        Kind::Other(Some(number)) => format!("of IANA's type {number}"),
        Kind::Other(None) => "of another kind".to_owned(),
    }
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Up => "up",
        Status::NoCarrier => "on, but nothing at the other end",
        Status::Down => "down",
        Status::Unknown => "nobody knows whether up or down",
    }
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Host => "host",
        Scope::Link => "link",
        Scope::Private => "private",
        Scope::Global => "global",
    }
}

fn source(source: PrefixSource) -> &'static str {
    match source {
        PrefixSource::OnLink => "by OnLinkPrefixLength",
        PrefixSource::Teredo => "corrected for Teredo",
        PrefixSource::Illegal => "for want of a legal one",
        PrefixSource::List => "by the list of prefixes",
        PrefixSource::HostOnly => "the host alone",
        PrefixSource::LinkLocal => "as of all link-local ones",
        PrefixSource::AdaptersInfo => "by GetAdaptersInfo",
        PrefixSource::Mask => "by the mask",
        PrefixSource::Unknown => "nobody tells",
    }
}

fn api(api: Api) -> &'static str {
    match api {
        Api::AdaptersAddresses => "GetAdaptersAddresses",
        Api::AdaptersInfo => "GetAdaptersInfo",
        Api::IpAddrTable => "GetIpAddrTable",
    }
}

fn oddity(anomaly: Anomaly) -> String {
    match anomaly {
        Anomaly::NotOperational => "It does not work now, and what is told of its addresses may lack something.".to_owned(),
        Anomaly::PointToPoint => "It is a link to one other end: no network, no broadcast.".to_owned(),
        Anomaly::Teredo => "Windows says a prefix of 64 bits; Teredo's has 32.".to_owned(),
        Anomaly::SelfAssigned => "a link-local address: nobody gave it another one".to_owned(),
        Anomaly::SelfAssignedBeside => "a link-local address beside another one: the adapter is listed twice by who counts addresses".to_owned(),
        Anomaly::IllegalPrefix { told } => format!("the prefix length that is told, {told}, is none"),
        Anomaly::UnknownPrefix => "nobody tells its prefix length".to_owned(),
        Anomaly::DifferentPrefixes => "the interfaces tell different prefix lengths".to_owned(),
        Anomaly::NotTold { api: which } => format!("{} does not tell of it", api(which)),
        Anomaly::OnlyTold { api: which } => format!("{} tells of it, GetAdaptersAddresses does not", api(which)),
        Anomaly::ScatteredMask => "its mask has ones after zeros".to_owned(),
    }
}
