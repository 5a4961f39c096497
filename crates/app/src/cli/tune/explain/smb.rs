//! Signing and encryption of SMB sessions.

use std::io::{self, Write};
use std::str::FromStr;

use serde::Serialize;
use tune::decode::smb::{self, Session, Side as Peer};
use tune::machine::{Edition, Machine};

use crate::cli::Failure;
use crate::output::{self, Columns, Side};

/// Explains whether the sessions of a client and a server are signed or encrypted, with which algorithm, and
/// at which cost.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune explain smb --client 26100:pro --server 17763:server\n  \
    laglab tune explain smb --client 19045:pro --server 20348:server --server-requires yes\n  \
    laglab tune explain smb --client 22631:pro --server 20348:server --encrypted")]
pub(super) struct Args {
    /// Build and edition of the client
    #[arg(long, value_name = "BUILD[:EDITION]")]
    client: Computer,
    /// Build and edition of the server
    #[arg(long, value_name = "BUILD[:EDITION]")]
    server: Computer,
    /// RequireSecuritySignature of the client [default: by build and edition]
    #[arg(long, value_name = "YES|NO", value_parser = yes_or_no)]
    client_requires: Option<bool>,
    /// RequireSecuritySignature of the server [default: by build and edition]
    #[arg(long, value_name = "YES|NO", value_parser = yes_or_no)]
    server_requires: Option<bool>,
    /// The share or the server requires encryption
    #[arg(long)]
    encrypted: bool,
}

/// Build of Windows and, if known, the edition.
#[derive(Clone, Copy, Debug)]
struct Computer {
    build: u32,
    edition: Option<Edition>,
}

impl FromStr for Computer {
    type Err = String;

    fn from_str(text: &str) -> Result<Computer, String> {
        let (build, edition) = match text.split_once(':') {
            Some((build, edition)) => {
                let edition = edition.parse::<Edition>();
                (build, Some(edition.map_err(|error| error.to_string())?))
            }
            None => (text, None),
        };
        let build = build.parse();
        let build = build.map_err(|_| "expected a build, such as 26100 or 26100:pro".to_owned())?;
        Ok(Computer { build, edition })
    }
}

/// JSON output: session between two machines that do or do not require signing. Programs rely on its fields.
#[derive(Serialize)]
struct Case {
    client_requires: bool,
    server_requires: bool,
    /// True if the two machines have these requirements; `null` if unknown.
    is_this: Option<bool>,
    #[serde(flatten)]
    session: Session,
    cost: Option<&'static str>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let client = requires(args.client, args.client_requires, "smb_cli_require");
    let server = requires(args.server, args.server_requires, "smb_srv_require");
    let cases = [(false, false), (false, true), (true, false), (true, true)];
    let cases = cases.map(|(client_requires, server_requires)| {
        let side = |computer: Computer, requires: bool| Peer {
            build: computer.build,
            requires,
        };
        let session = smb::session(
            side(args.client, client_requires),
            side(args.server, server_requires),
            args.encrypted,
        );
        let known = client.zip(server);
        Case {
            client_requires,
            server_requires,
            is_this: known.map(|known| known == (client_requires, server_requires)),
            session,
            cost: session.algorithm.map(|algorithm| algorithm.cost()),
        }
    });
    if json {
        output::json(&cases)?;
        return Ok(());
    }
    let mut out = output::for_people();
    write(&cases, &mut out)?;
    out.flush()?;
    Ok(())
}

/// Returns true if the computer requires signing: the value `given`, or else the default of its build and edition.
/// Returns `None` if the default is unknown.
fn requires(computer: Computer, given: Option<bool>, id: &str) -> Option<bool> {
    let machine = Machine {
        name: None,
        build: Some(computer.build),
        edition: computer.edition,
    };
    given.or_else(|| smb::requires_by_default(id, &machine))
}

fn write(cases: &[Case; 4], out: &mut dyn Write) -> io::Result<()> {
    output::first_heading(out, &cases[0].session.dialect.to_string())?;
    let mut columns = Columns::new(&[Side::Left; 5]);
    columns.row([
        "client requires",
        "server requires",
        "sessions are",
        "with",
        "",
    ]);
    for case in cases {
        let session = &case.session;
        let are = match (session.encrypted, session.signed) {
            (true, _) => "encrypted",
            (false, true) => "signed",
            (false, false) => "plain",
        };
        let with = session
            .algorithm
            .map_or(String::new(), |algorithm| algorithm.to_string());
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let mark = match case.is_this {
            Some(true) => "<- these machines",
            _ => "",
        };
        columns.row([
            yes(case.client_requires),
            yes(case.server_requires),
            are.to_owned(),
            with,
            mark.to_owned(),
        ]);
    }
    columns.write(out)?;
    writeln!(out)?;
    if let Some((algorithm, cost)) = cases[3].session.algorithm.zip(cases[3].cost) {
        output::paragraph(out, &format!("{algorithm}: {cost}."))?;
    }
    if cases[0].session.direct_placement && !cases[3].session.direct_placement {
        output::warning(
            out,
            "SMB Direct: before Server 2022, signed or encrypted sessions cannot use direct data \
             placement, so RDMA adapters send small messages.",
        )?;
    }
    if cases[0].is_this.is_none() {
        output::paragraph(
            out,
            "The default depends on the edition: give it (26100:pro), or give --client-requires and \
             --server-requires.",
        )?;
    }
    output::paragraph(
        out,
        "A session is signed if either side requires it. From SMB 2 on, EnableSecuritySignature \
         has no effect. Signatures protect messages from changes: measure their cost before you \
         give up this protection for speed.",
    )
}

fn yes_or_no(text: &str) -> Result<bool, &'static str> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "1" | "true" => Ok(true),
        "no" | "0" | "false" => Ok(false),
        _ => Err("expected yes or no"),
    }
}
