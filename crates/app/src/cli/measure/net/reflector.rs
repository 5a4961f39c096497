//! The reflector, which echoes the packets of a source or counts them.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use measure::net::throughput::Counter;
use measure::net::{self, Patience, Place, RunContext, Side};
use measure::{Clock, Grant};

use super::{Args, carriers, group, has_stopped, in_group, sockets};
use crate::cli::Failure;
use crate::output;
use crate::output::say;

/// Echoes packets until the user presses Ctrl-C or the time of --for is over.
pub(super) fn reflect(args: &Args, json: bool) -> Result<(), Failure> {
    let [carrier] = carriers(args)[..] else {
        let what = "a reflector supports one transport; start one for each";
        return Err(Failure::Input(what.to_owned()));
    };
    let place = match group(args) {
        Some(group) => in_group(args, group)?,
        None => Place::Answering(listen_at(args)),
    };
    let scheduling = args.scheduling.scheduling();
    let (mut end, granted) = carrier.open(Side::Far, &place, &sockets(args), &scheduling)?;
    say(&format!("reflecting at {place}; press Ctrl-C to end"));
    let (reflected, grants) =
        scheduling.run(|_| net::reflect(&mut *end, patience(args), &has_stopped))?;
    let reflected = reflected?;
    if json {
        output::json(&reflected)?;
        return Ok(());
    }
    let counts = format!(
        "echoed {} of {}; ignored {}; the system refused to send {}",
        wording::counted(reflected.echoes, "packet", "packets"),
        wording::counted(reflected.runs, "run", "runs"),
        wording::counted(reflected.strangers, "foreign packet", "foreign packets"),
        wording::counted(reflected.not_sent, "echo", "echoes"),
    );
    print(grants.iter().chain(&granted.others), &counts)
}

/// Counts the packets that a source on another machine sends.
pub(super) fn count(args: &Args, json: bool) -> Result<(), Failure> {
    let counter = Counter::open(listen_at(args))?;
    let at = counter.local_address()?;
    say(&format!("counting at {at}; press Ctrl-C to end"));
    let scheduling = args.scheduling.scheduling();
    let context = RunContext {
        clock: &Clock::best(),
        scheduling: &scheduling,
        stop: &has_stopped,
    };
    let (counted, grants) = scheduling.run(|_| counter.count(patience(args), context))?;
    let counted = counted?;
    if json {
        output::json(&counted)?;
        return Ok(());
    }
    let counts = format!(
        "counted {} ({}) of {}; {} without a complete run",
        wording::counted(counted.packets, "packet", "packets"),
        output::size(counted.bytes),
        wording::counted(counted.runs, "run", "runs"),
        wording::counted(counted.others, "connection", "connections"),
    );
    print(grants.iter(), &counts)
}

/// Returns the time limits of a reflector.
fn patience(args: &Args) -> Patience {
    Patience {
        in_all: args.time,
        idle: None,
    }
}

/// Prints whether the system granted the requested settings, then `counts`.
fn print<'g>(grants: impl Iterator<Item = &'g Grant>, counts: &str) -> Result<(), Failure> {
    let mut out = output::for_people();
    for grant in grants {
        output::paragraph(&mut out, &grant.to_string())?;
    }
    output::paragraph(&mut out, counts)?;
    out.flush()?;
    Ok(())
}

/// Returns the address on which a reflector without a multicast group listens.
fn listen_at(args: &Args) -> SocketAddr {
    let any = if args.ipv6 {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    } else {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    };
    (args.bind.unwrap_or(any), args.port).into()
}
