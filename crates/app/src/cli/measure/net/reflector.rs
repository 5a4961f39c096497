//! The end that answers, or counts.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use measure::net::throughput::Counter;
use measure::net::{self, Around, Patience, Place, Side};
use measure::{Clock, Grant};

use super::{Args, carriers, group, has_stopped, in_group, sockets};
use crate::cli::{Failure, say};
use crate::output;

/// Sends back what comes.
pub(super) fn reflect(args: &Args, json: bool) -> Result<(), Failure> {
    let [carrier] = carriers(args)[..] else {
        let what = "a reflector speaks one transport: start one for each";
        return Err(Failure::Input(what.to_owned()));
    };
    let place = match group(args) {
        Some(group) => in_group(args, group)?,
        None => Place::Answering(listen_at(args)),
    };
    let scheduling = args.scheduling.scheduling();
    let (mut end, granted) = carrier.open(Side::Far, &place, &sockets(args), &scheduling)?;
    say(&format!("reflecting at {place}; Ctrl-C ends it"));
    let (reflected, grants) =
        scheduling.run(|_| net::reflect(&mut *end, patience(args), &has_stopped))?;
    let reflected = reflected?;
    if json {
        output::json(&reflected)?;
        return Ok(());
    }
    let counts = format!(
        "{} packets of {} runs sent back, {} of strangers left unanswered, {} answers refused by the \
         system",
        output::grouped(reflected.echoes),
        output::grouped(reflected.runs),
        output::grouped(reflected.strangers),
        output::grouped(reflected.not_sent),
    );
    tell(grants.iter().chain(&granted.others), &counts)
}

/// Counts what a source on another machine sends.
pub(super) fn count(args: &Args, json: bool) -> Result<(), Failure> {
    let counter = Counter::open(listen_at(args))?;
    let at = counter.local_address()?;
    say(&format!("counting at {at}; Ctrl-C ends it"));
    let scheduling = args.scheduling.scheduling();
    let around = Around {
        clock: &Clock::best(),
        scheduling: &scheduling,
        stop: &has_stopped,
    };
    let (counted, grants) = scheduling.run(|_| counter.count(patience(args), around))?;
    let counted = counted?;
    if json {
        output::json(&counted)?;
        return Ok(());
    }
    let counts = format!(
        "{} packets, {}, of {} runs counted; {} connections brought none",
        output::grouped(counted.packets),
        output::size(counted.bytes),
        output::grouped(counted.runs),
        output::grouped(counted.others),
    );
    tell(grants.iter(), &counts)
}

/// For how long an end works.
fn patience(args: &Args) -> Patience {
    Patience {
        in_all: args.time,
        idle: None,
    }
}

/// Tells what was granted and what came.
fn tell<'g>(grants: impl Iterator<Item = &'g Grant>, counts: &str) -> Result<(), Failure> {
    let mut out = output::for_people();
    for grant in grants {
        output::paragraph(&mut out, &grant.to_string())?;
    }
    output::paragraph(&mut out, counts)?;
    out.flush()?;
    Ok(())
}

/// Where a reflector listens that is in no group.
fn listen_at(args: &Args) -> SocketAddr {
    let any = match args.ipv6 {
        true => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        false => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    };
    (args.bind.unwrap_or(any), args.port).into()
}
