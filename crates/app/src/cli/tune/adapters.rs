//! `laglab tune adapters`.

use std::io::Write;

use adapters::{Adapter, Address, Anomaly, Api, Kind, PrefixSource, Scope, Status};

use super::failure;
use crate::cli::Failure;
use crate::output::{self, Columns, Side};

/// Lists the network adapters and addresses of this machine, with prefix lengths and anomalies. Windows has
/// three interfaces that list addresses; the command compares their results.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune adapters\n  \
    laglab tune adapters --json")]
pub(super) struct Args {
    /// List only adapters with anomalies
    #[arg(long)]
    odd: bool,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let mut adapters = adapters::adapters().map_err(|error| failure(&error))?;
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
    if first {
        output::first_heading(out, &title)?
    } else {
        output::heading(out, &title)?
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
        more.extend(address.peer.map(|peer| format!("peer {peer}")));
        more.extend(address.reports.iter().map(|report| {
            let length = report
                .length
                .map_or_else(|| "no prefix".to_owned(), |length| format!("/{length}"));
            format!("{} {length}", api(report.api))
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
            .map(move |anomaly| format!("{}: {}", address.address, sentence(*anomaly)))
    });
    for line in adapter
        .anomalies
        .iter()
        .map(|anomaly| sentence(*anomaly))
        .chain(of_addresses)
    {
        output::warning(out, &line)?;
    }
    Ok(())
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Ethernet => "Ethernet or similar".to_owned(),
        Kind::Wireless => "wireless".to_owned(),
        Kind::Loopback => "loopback".to_owned(),
        Kind::PointToPoint => "point-to-point link".to_owned(),
        Kind::Teredo => "Teredo tunnel".to_owned(),
        Kind::Tunnel => "tunnel".to_owned(),
        Kind::Other(Some(number)) => format!("IANA type {number}"),
        Kind::Other(None) => "other kind".to_owned(),
    }
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Up => "up",
        Status::NoCarrier => "up, but no link",
        Status::Down => "down",
        Status::Unknown => "unknown status",
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
        PrefixSource::OnLink => "prefix from OnLinkPrefixLength",
        PrefixSource::Teredo => "prefix corrected for Teredo",
        PrefixSource::Illegal => "no valid prefix",
        PrefixSource::List => "prefix from the prefix list",
        PrefixSource::HostOnly => "only the host",
        PrefixSource::LinkLocal => "prefix of link-local addresses",
        PrefixSource::AdaptersInfo => "prefix from GetAdaptersInfo",
        PrefixSource::Mask => "prefix from the mask",
        PrefixSource::Unknown => "unknown prefix",
    }
}

fn api(api: Api) -> &'static str {
    match api {
        Api::AdaptersAddresses => "GetAdaptersAddresses",
        Api::AdaptersInfo => "GetAdaptersInfo",
        Api::IpAddrTable => "GetIpAddrTable",
    }
}

fn sentence(anomaly: Anomaly) -> String {
    match anomaly {
        Anomaly::NotOperational => "The adapter is not up: prefixes of its addresses may be missing.".to_owned(),
        Anomaly::PointToPoint => "Point-to-point link: no network, no broadcast.".to_owned(),
        Anomaly::Teredo => "Windows reports a prefix of 64 bits; Teredo has 32".to_owned(),
        Anomaly::SelfAssigned => "link-local address: no other address is configured".to_owned(),
        Anomaly::SelfAssignedBeside => "link-local address in addition to another one: programs that count addresses list the adapter twice".to_owned(),
        Anomaly::IllegalPrefix { length } => format!("the reported prefix length {length} is invalid"),
        Anomaly::UnknownPrefix => "no interface reports the prefix length".to_owned(),
        Anomaly::DifferentPrefixes => "the interfaces report different prefix lengths".to_owned(),
        Anomaly::NotListed { api: which } => format!("{} does not list it", api(which)),
        Anomaly::OnlyListed { api: which } => format!("{} lists it, GetAdaptersAddresses does not", api(which)),
        Anomaly::ScatteredMask => "invalid mask: ones follow zeros".to_owned(),
    }
}
