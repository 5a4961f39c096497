//! The steps of a migration, with what must be seen before each goes on.

use serde::Serialize;

use super::export::Export;
use super::gate::Gate;
use super::name::ServerName;

/// A namespace that moves to other servers and becomes one of Windows Server 2008 mode.
#[derive(Clone, Debug)]
pub struct Migration {
    /// Its path, `\\domain\namespace`.
    pub namespace: String,
    /// The namespace servers that it leaves.
    pub old: Vec<ServerName>,
    /// Those that it gets, by full names.
    pub new: Vec<ServerName>,
    /// Where the roots of namespaces are on the servers.
    pub roots: String,
}

/// A migration that cannot be written down.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrationError {
    /// The path.
    #[error("`{}` is no path of a domain's namespace, such as \\\\corp.example\\Public", .0.escape_debug())]
    Namespace(String),
    /// No servers.
    #[error("it takes at least one old and one new namespace server")]
    Servers,
    /// A new server by a short name or address.
    #[error("{0} is no full name, and clients shall be given full names")]
    Short(ServerName),
    /// A server that is both.
    #[error("{0} is both an old and a new namespace server")]
    Both(ServerName),
    /// A folder that would break a command.
    #[error("`{}` is no local folder such as C:\\DFSRoots", .0.escape_debug())]
    Roots(String),
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What it does.
    pub title: String,
    /// Where its commands are run.
    pub place: String,
    /// The commands, in order, for cmd.exe.
    pub commands: Vec<String>,
    /// What must be seen before the next step.
    pub before_going_on: Vec<String>,
    /// The gate that `laglab tune dfsn gate` judges before the next step.
    pub gate: Option<Gate>,
    /// How to take it back.
    pub undo: Option<String>,
}

/// The steps of a migration. `C:\temp` on the machine at hand holds the export and its rewritten form.
///
/// # Errors
/// If a name in it is none.
pub fn runbook(migration: &Migration) -> Result<Vec<Step>, MigrationError> {
    let Migration {
        namespace,
        old,
        new,
        roots,
    } = migration;
    let bad = || MigrationError::Namespace(namespace.chars().take(80).collect());
    let (domain, name) = Export::parts_of(namespace).ok_or_else(bad)?;
    let [first_old, ..] = &old[..] else {
        return Err(MigrationError::Servers);
    };
    let [first_new, more_new @ ..] = &new[..] else {
        return Err(MigrationError::Servers);
    };
    if let Some(short) = new.iter().find(|server| !server.is_full()) {
        return Err(MigrationError::Short(short.clone()));
    }
    if let Some(both) = new.iter().find(|new| old.iter().any(|old| old.may_be(new))) {
        return Err(MigrationError::Both(both.clone()));
    }
    let share_of_drive = (roots.split_once(":\\"))
        .filter(|(drive, rest)| {
            drive.len() == 1 && !rest.is_empty() && !rest.contains(['"', '%', '\n', '\r'])
        })
        .map(|(drive, rest)| format!("{drive}$\\{}", rest.trim_end_matches('\\')))
        .ok_or_else(|| MigrationError::Roots(roots.chars().take(80).collect()))?;
    let roots = roots.trim_end_matches('\\');
    let path = format!("\\\\{domain}\\{name}");

    let each = |servers: &[ServerName], commands: &dyn Fn(&ServerName) -> Vec<String>| {
        servers.iter().flat_map(commands).collect::<Vec<_>>()
    };
    let restart = |server: &dyn std::fmt::Display| {
        [
            format!("sc \\\\{server} stop Dfs"),
            "timeout /t 5 /nobreak".to_owned(),
            format!("sc \\\\{server} start Dfs"),
        ]
    };
    let gate_command = |gate: &str| {
        let list = |option: &str, servers: &[ServerName]| {
            servers
                .iter()
                .map(|server| format!(" --{option} {server}"))
                .collect::<String>()
        };
        format!(
            "laglab tune dfsn gate {gate} referrals.txt --namespace \"{path}\"{}{}",
            list("old", old),
            list("new", new)
        )
    };
    let on_clients = "on each important client of the namespace";
    let here = format!("on {first_old}, as an administrator of the domain");
    let text = str::to_owned;

    Ok(vec![
        Step {
            title: text("Keep what there is"),
            place: here.clone(),
            commands: vec![
                text("mkdir C:\\temp"),
                format!("dfsutil root export \"{path}\" C:\\temp\\export.xml"),
                text(
                    "laglab tune dfsn rewrite C:\\temp\\export.xml --suffix DOMAIN-OF-THE-TARGETS -o C:\\temp\\export-full.xml",
                ),
            ],
            before_going_on: vec![text(
                "The report of the rewriting names no server that was left without reason, and every full name in it resolves (nslookup). Keep a copy of export.xml elsewhere: it is the way back.",
            )],
            gate: None,
            undo: None,
        },
        Step {
            title: text("Old namespace servers give full names"),
            place: here.clone(),
            commands: each(old, &|server| {
                let mut commands = vec![format!(
                    "dfsutil server registry DfsDnsConfig set \\\\{server}"
                )];
                commands.extend(restart(server));
                commands
            }),
            before_going_on: old
                .iter()
                .map(|server| format!("`sc \\\\{server} query Dfs` says RUNNING."))
                .collect(),
            gate: None,
            undo: Some(text(
                "dfsutil server registry DfsDnsConfig remove \\\\SERVER, and restart its service Dfs",
            )),
        },
        Step {
            title: text("New namespace servers get the root folders and their shares"),
            place: here.clone(),
            commands: each(new, &|server| {
                vec![
                    format!(
                        "robocopy \"{roots}\\{name}\" \"\\\\{server}\\{share_of_drive}\\{name}\" /COPYALL /E /XJ"
                    ),
                    format!(
                        "reg copy \\\\{first_old}\\HKLM\\System\\CurrentControlSet\\Services\\LanmanServer\\Shares \\\\{server}\\HKLM\\System\\CurrentControlSet\\Services\\LanmanServer\\Shares /s /f"
                    ),
                    format!("dfsutil server registry DfsDnsConfig set \\\\{server}"),
                    // The server service cannot be started through itself; remote PowerShell needs it not.
                    format!(
                        "powershell -Command \"Invoke-Command -ComputerName {server} {{ Restart-Service LanmanServer -Force; Start-Service Dfs }}\""
                    ),
                ]
            }),
            before_going_on: each(new, &|server| {
                vec![format!(
                    "`net view \\\\{server} /all` lists the share {name}; it lists no share of {first_old} that has no folder there."
                )]
            }),
            gate: None,
            undo: Some(text("delete the share and the folder on the new server")),
        },
        Step {
            title: text("New namespace servers join"),
            place: here.clone(),
            commands: {
                let mut commands = each(new, &|server| {
                    vec![format!("dfsutil target add \"\\\\{server}\\{name}\"")]
                });
                // The primary domain controller has been seen not to notice new servers by itself.
                commands.push(format!("nltest /dnsgetdc:{domain} /PDC"));
                commands.extend(restart(&"THE-DOMAIN-CONTROLLER-IT-NAMES"));
                commands
            },
            before_going_on: vec![
                format!(
                    "`dfsutil root \"{path}\"` lists {} targets.",
                    old.len() + new.len()
                ),
                text(
                    "A day has passed. A client that holds files of the namespace open keeps its list of servers, however old.",
                ),
            ],
            gate: None,
            undo: Some(format!(
                "dfsutil target remove \"\\\\SERVER\\{name}\" for each new server"
            )),
        },
        Step {
            title: text("Gate: clients know all new servers"),
            place: text(on_clients),
            commands: vec![
                text("dfsutil cache referral > referrals.txt"),
                gate_command("new-known"),
            ],
            before_going_on: vec![text(
                "The gate says to proceed for every client. Else `dfsutil cache referral flush` and look again; where files are held open this does nothing and the client must be restarted.",
            )],
            gate: Some(Gate::NewKnown),
            undo: None,
        },
        Step {
            title: text("Old namespace servers are named to nobody any more"),
            place: text("in the console DFS Management (dfsutil cannot do it)"),
            commands: Vec::new(),
            before_going_on: vec![
                format!(
                    "\"Disable Namespace Server\" was chosen for {}. Who uses them still can; who asks anew is told of the new ones only.",
                    old.iter()
                        .map(ServerName::as_str)
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
                text("Another day has passed."),
            ],
            gate: None,
            undo: Some(text("\"Enable Namespace Server\" in the same place")),
        },
        Step {
            title: text("Gate: clients know no old server"),
            place: text(on_clients),
            commands: vec![
                text("dfsutil cache referral > referrals.txt"),
                gate_command("old-gone"),
            ],
            before_going_on: vec![text(
                "The gate says to proceed for every client. A flush is unlikely to help where it does not; restart the client.",
            )],
            gate: Some(Gate::OldGone),
            undo: None,
        },
        Step {
            title: text("Old namespace servers leave"),
            place: here.clone(),
            // The console would remove the shares as well, and with them the way back.
            commands: each(old, &|server| {
                vec![format!("dfsutil target remove \"\\\\{server}\\{name}\"")]
            }),
            before_going_on: vec![format!(
                "`dfsutil root \"{path}\"` lists the {} new targets and no other.",
                new.len()
            )],
            gate: None,
            undo: Some(format!(
                "dfsutil target add \"\\\\SERVER\\{name}\" for each old server: their shares are still there"
            )),
        },
        Step {
            title: text("The namespace is made anew, in Windows Server 2008 mode"),
            place: format!(
                "on {first_new} itself, with C:\\temp\\export-full.xml copied there: from elsewhere it takes minutes instead of seconds, in which new sessions may fail"
            ),
            commands: {
                let mut commands = vec![
                    format!("dfsutil root remove \"{path}\""),
                    format!("dfsutil root AddDom \"\\\\{first_new}\\{name}\" V2"),
                    format!(
                        "dfsutil root import set C:\\temp\\export-full.xml \"{path}\" NoBackup"
                    ),
                ];
                commands.extend(
                    more_new
                        .iter()
                        .map(|server| format!("dfsutil target add \"\\\\{server}\\{name}\"")),
                );
                commands
            },
            before_going_on: vec![
                format!(
                    "`dfsutil root export \"{path}\" C:\\temp\\after.xml`, and after.xml has the links and targets of export-full.xml."
                ),
                format!(
                    "A client that was restarted opens \\\\{domain}\\{name} and the links in it."
                ),
            ],
            gate: None,
            undo: Some(format!(
                "dfsutil root remove, root AddDom \"\\\\{first_old}\\{name}\" V1, root import set C:\\temp\\export.xml: sessions that are open work from what they know meanwhile"
            )),
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn migration() -> Migration {
        let names = |names: &[&str]| -> Vec<ServerName> {
            names
                .iter()
                .map(|name| ServerName::new(name).unwrap())
                .collect()
        };
        Migration {
            namespace: r"\\child.corp.contoso.com\Testing".to_owned(),
            old: names(&["FILE1"]),
            new: names(&[
                "FILE2.child.corp.contoso.com",
                "FILE3.child.corp.contoso.com",
            ]),
            roots: r"C:\DFSRoots".to_owned(),
        }
    }

    /// The commands of the migration as it was done, in its order; their arguments are quoted here.
    #[test]
    fn the_steps_are_those_of_a_migration_that_worked() {
        let steps = runbook(&migration()).unwrap();
        let commands: Vec<String> = (steps.iter())
            .flat_map(|step| &step.commands)
            .map(|command| command.replace('"', ""))
            .collect();
        let mut rest = commands.iter();
        for expected in [
            r"dfsutil server registry DfsDnsConfig set \\FILE1",
            r"sc \\FILE1 stop Dfs",
            r"sc \\FILE1 start Dfs",
            r"dfsutil server registry DfsDnsConfig set \\FILE2.child.corp.contoso.com",
            r"dfsutil target add \\FILE2.child.corp.contoso.com\Testing",
            r"nltest /dnsgetdc:child.corp.contoso.com /PDC",
            r"dfsutil cache referral > referrals.txt",
            r"dfsutil cache referral > referrals.txt",
            r"dfsutil target remove \\FILE1\Testing",
            r"dfsutil root remove \\child.corp.contoso.com\Testing",
            r"dfsutil root AddDom \\FILE2.child.corp.contoso.com\Testing V2",
            r"dfsutil root import set C:\temp\export-full.xml \\child.corp.contoso.com\Testing NoBackup",
            r"dfsutil target add \\FILE3.child.corp.contoso.com\Testing",
        ] {
            assert!(
                rest.any(|command| command == expected),
                "{expected} is not in its place:\n{}",
                commands.join("\n")
            );
        }
        let gates: Vec<_> = steps.iter().filter_map(|step| step.gate).collect();
        assert_eq!(gates, [Gate::NewKnown, Gate::OldGone]);
    }

    #[test]
    fn a_migration_with_odd_names_is_refused() {
        type Change = fn(&mut Migration);
        let changes: [Change; 7] = [
            |m| m.namespace = r"\\child.corp.contoso.com".to_owned(),
            |m| m.namespace = "\\\\a.b\\x\" & del *".to_owned(),
            |m| m.old.clear(),
            |m| m.new.clear(),
            |m| m.new[0] = ServerName::new("FILE2").unwrap(),
            |m| m.old[0] = ServerName::new("file3").unwrap(),
            |m| m.roots = "DFSRoots".to_owned(),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut migration = migration();
            change(&mut migration);
            assert!(runbook(&migration).is_err(), "{number}");
        }
    }
}
