//! Steps of a migration, with their commands, their checks and instructions to undo them.

use serde::Serialize;

use super::export::Export;
use super::gate::Gate;
use super::name::ServerName;

/// Migration of a namespace to other servers and to Windows Server 2008 mode.
#[derive(Clone, Debug)]
pub struct Migration {
    /// Path of the namespace, `\\domain\namespace`.
    pub namespace: String,
    /// Old namespace servers.
    pub old: Vec<ServerName>,
    /// New namespace servers, by their full names.
    pub new: Vec<ServerName>,
    /// Local folder of the namespace roots on all servers.
    pub roots: String,
}

/// Reason why a migration is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrationError {
    /// The path is not the path of a domain namespace.
    #[error(
        "invalid path of a namespace `{}`: give domain and name, such as \\\\corp.example\\Public",
        .0.escape_debug()
    )]
    Namespace(String),
    /// The list of old or new servers is empty.
    #[error("servers are missing: give at least one old and one new namespace server")]
    Servers,
    /// A new server has a short name or an address.
    #[error(
        "{0} is not a full name: give the full names of the new servers, which clients will use"
    )]
    Short(ServerName),
    /// A server is both old and new.
    #[error("{0} is both an old and a new namespace server")]
    Both(ServerName),
    /// The folder is not a local folder, or contains characters that cannot be used in a command.
    #[error("invalid folder `{}`: give a local folder such as C:\\DFSRoots", .0.escape_debug())]
    Roots(String),
}

/// One step of a migration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Title of the step.
    pub title: String,
    /// Machine on which the commands must run, as text for the user.
    pub place: String,
    /// Commands for cmd.exe, in order.
    pub commands: Vec<String>,
    /// Checks to make before the next step.
    pub before_going_on: Vec<String>,
    /// Gate that `laglab tune dfsn gate` evaluates before the next step.
    pub gate: Option<Gate>,
    /// Instruction to undo the step.
    pub undo: Option<String>,
}

/// Returns the steps of a migration. The steps expect the export and its rewritten form in `C:\temp` on the
/// first old server.
///
/// # Errors
/// Returns an error if a name or the folder in `migration` is invalid.
pub fn runbook(migration: &Migration) -> Result<Vec<Step>, MigrationError> {
    let book = Book::new(migration)?;
    Ok(vec![
        book.export(),
        book.return_full_names(),
        book.prepare_new_servers(),
        book.add_new_servers(),
        book.gate(Gate::NewKnown),
        book.disable_old_servers(),
        book.gate(Gate::OldGone),
        book.remove_old_servers(),
        book.recreate_namespace(),
    ])
}

/// A valid migration, with the values that the commands need.
struct Book<'a> {
    old: &'a [ServerName],
    new: &'a [ServerName],
    first_old: &'a ServerName,
    first_new: &'a ServerName,
    domain: ServerName,
    /// Name of the namespace in its domain.
    name: &'a str,
    /// Path of the namespace, `\\domain\name`.
    path: String,
    /// Local folder of the namespace roots on all servers.
    roots: &'a str,
    /// Path of the roots' folder through the administrative share, such as `C$\DFSRoots`.
    roots_share: String,
}

impl<'a> Book<'a> {
    fn new(migration: &'a Migration) -> Result<Self, MigrationError> {
        let Migration {
            namespace,
            old,
            new,
            roots,
        } = migration;
        let shortened = |text: &str| text.chars().take(80).collect::<String>();
        let (domain, name) = Export::parts_of(namespace)
            .ok_or_else(|| MigrationError::Namespace(shortened(namespace)))?;
        let ([first_old, ..], [first_new, ..]) = (&old[..], &new[..]) else {
            return Err(MigrationError::Servers);
        };
        if let Some(short) = new.iter().find(|server| !server.is_full()) {
            return Err(MigrationError::Short(short.clone()));
        }
        if let Some(both) = new.iter().find(|new| old.iter().any(|old| old.may_be(new))) {
            return Err(MigrationError::Both(both.clone()));
        }
        let is_safe = |rest: &str| !rest.is_empty() && !rest.contains(['"', '%', '\n', '\r']);
        let (drive, folder) = (roots.split_once(":\\"))
            .filter(|(drive, folder)| drive.len() == 1 && is_safe(folder))
            .ok_or_else(|| MigrationError::Roots(shortened(roots)))?;
        Ok(Self {
            old,
            new,
            first_old,
            first_new,
            path: format!("\\\\{domain}\\{name}"),
            domain,
            name,
            roots: roots.trim_end_matches('\\'),
            roots_share: format!("{drive}$\\{}", folder.trim_end_matches('\\')),
        })
    }

    /// Returns a step that has no commands yet. Commands of this step run on the first old server.
    fn step(&self, title: &str) -> Step {
        Step {
            title: title.to_owned(),
            place: format!("on {}, as an administrator of the domain", self.first_old),
            ..Step::default()
        }
    }

    fn export(&self) -> Step {
        Step {
            commands: vec![
                "mkdir C:\\temp".to_owned(),
                format!("dfsutil root export \"{}\" C:\\temp\\export.xml", self.path),
                "laglab tune dfsn rewrite C:\\temp\\export.xml --suffix DOMAIN-OF-THE-TARGETS -o C:\\temp\\export-full.xml".to_owned(),
            ],
            before_going_on: vec![
                "The report of the rewrite states a reason for each unchanged server, and nslookup resolves each \
                 full name in the report.".to_owned(),
                "A copy of export.xml is stored elsewhere. It is needed for the undo.".to_owned(),
            ],
            ..self.step("Export the namespace")
        }
    }

    fn return_full_names(&self) -> Step {
        let commands = self.old.iter().flat_map(|server| {
            [full_names(server)]
                .into_iter()
                .chain(restart(server.as_str()))
        });
        let is_running = |server| format!("`sc \\\\{server} query Dfs` prints RUNNING.");
        Step {
            commands: commands.collect(),
            before_going_on: self.old.iter().map(is_running).collect(),
            undo: Some(
                "dfsutil server registry DfsDnsConfig remove \\\\SERVER, then restart its service Dfs"
                    .to_owned(),
            ),
            ..self.step("Make old namespace servers return full names")
        }
    }

    fn prepare_new_servers(&self) -> Step {
        let Self {
            first_old,
            name,
            roots,
            roots_share,
            ..
        } = self;
        const SHARES: &str = "HKLM\\System\\CurrentControlSet\\Services\\LanmanServer\\Shares";
        let commands = self.new.iter().flat_map(|server| {
            [
                format!(
                    "robocopy \"{roots}\\{name}\" \"\\\\{server}\\{roots_share}\\{name}\" /COPYALL /E /XJ"
                ),
                format!("reg copy \\\\{first_old}\\{SHARES} \\\\{server}\\{SHARES} /s /f"),
                full_names(server),
                // `sc` reaches the server through the service LanmanServer, so `sc` cannot restart this
                // service. PowerShell remoting can restart it.
                format!(
                    "powershell -Command \"Invoke-Command -ComputerName {server} {{ Restart-Service LanmanServer -Force; Start-Service Dfs }}\""
                ),
            ]
        });
        let check = |server| {
            format!(
                "`net view \\\\{server} /all` lists the share {name}. Each listed share of {first_old} has its \
                 folder on {server}."
            )
        };
        Step {
            commands: commands.collect(),
            before_going_on: self.new.iter().map(check).collect(),
            undo: Some("delete the share and the folder on the new server".to_owned()),
            ..self.step("Create the root folders and shares on new namespace servers")
        }
    }

    fn add_new_servers(&self) -> Step {
        let mut commands: Vec<String> = self.new.iter().map(|new| self.add_target(new)).collect();
        // The service Dfs on the primary domain controller is restarted, because this controller
        // sometimes does not notice new servers.
        commands.push(format!("nltest /dnsgetdc:{} /PDC", self.domain));
        commands.extend(restart("THE-DOMAIN-CONTROLLER-IT-NAMES"));
        let targets = self.old.len() + self.new.len();
        Step {
            commands,
            before_going_on: vec![
                format!("`dfsutil root \"{}\"` lists {targets} targets.", self.path),
                "One day has passed. A client that has files of the namespace open keeps its list of servers, even if the list has expired.".to_owned(),
            ],
            undo: Some(format!(
                "dfsutil target remove \"\\\\SERVER\\{}\" for each new server",
                self.name
            )),
            ..self.step("Add new namespace servers")
        }
    }

    fn gate(&self, gate: Gate) -> Step {
        let (title, name, advice) = match gate {
            Gate::NewKnown => (
                "Gate: clients know all new servers",
                "new-known",
                "If not, run `dfsutil cache referral flush` and check again. If files are open, the flush has no effect: restart the client.",
            ),
            Gate::OldGone => (
                "Gate: clients know no old server",
                "old-gone",
                "If not, restart the client: a flush is unlikely to help.",
            ),
        };
        let list = |option: &str, servers: &[ServerName]| -> String {
            let options = servers.iter().map(|server| format!(" --{option} {server}"));
            options.collect()
        };
        Step {
            title: title.to_owned(),
            place: "on each important client of the namespace".to_owned(),
            commands: vec![
                "dfsutil cache referral > referrals.txt".to_owned(),
                format!(
                    "laglab tune dfsn gate {name} referrals.txt --namespace \"{}\"{}{}",
                    self.path,
                    list("old", self.old),
                    list("new", self.new)
                ),
            ],
            before_going_on: vec![format!(
                "The gate prints proceed for every client. {advice}"
            )],
            gate: Some(gate),
            undo: None,
        }
    }

    fn disable_old_servers(&self) -> Step {
        let old: Vec<&str> = self.old.iter().map(ServerName::as_str).collect();
        Step {
            place: "in the console DFS Management (dfsutil cannot do this)".to_owned(),
            before_going_on: vec![
                format!(
                    "\"Disable Namespace Server\" is chosen for {}. Clients that use these servers can continue; new referrals list only the new servers.",
                    old.join(", ")
                ),
                "Another day has passed.".to_owned(),
            ],
            undo: Some("\"Enable Namespace Server\" in the same console".to_owned()),
            ..self.step("Remove old namespace servers from referrals")
        }
    }

    fn remove_old_servers(&self) -> Step {
        let Self { path, name, .. } = self;
        // This step uses commands instead of the console. The console would also remove the shares, but the
        // shares are needed to undo this step.
        let remove = |server| format!("dfsutil target remove \"\\\\{server}\\{name}\"");
        let targets = self.new.len();
        Step {
            commands: self.old.iter().map(remove).collect(),
            before_going_on: vec![format!(
                "`dfsutil root \"{path}\"` lists the {targets} new targets and no others."
            )],
            undo: Some(format!(
                "dfsutil target add \"\\\\SERVER\\{name}\" for each old server; their shares still exist"
            )),
            ..self.step("Remove old namespace servers")
        }
    }

    fn recreate_namespace(&self) -> Step {
        let Self {
            path,
            name,
            domain,
            first_old,
            first_new,
            ..
        } = self;
        let mut commands = vec![
            format!("dfsutil root remove \"{path}\""),
            format!("dfsutil root AddDom \"\\\\{first_new}\\{name}\" V2"),
            format!("dfsutil root import set C:\\temp\\export-full.xml \"{path}\" NoBackup"),
        ];
        commands.extend(self.new.iter().skip(1).map(|new| self.add_target(new)));
        Step {
            title: "Recreate the namespace in Windows Server 2008 mode".to_owned(),
            place: format!(
                "on {first_new} itself, after copying C:\\temp\\export-full.xml there: from another machine it takes minutes instead of seconds, and new sessions may fail during this time"
            ),
            commands,
            before_going_on: vec![
                format!(
                    "`dfsutil root export \"{path}\" C:\\temp\\after.xml` succeeds, and after.xml has the links and targets of export-full.xml."
                ),
                format!("A restarted client opens \\\\{domain}\\{name} and its links."),
            ],
            gate: None,
            undo: Some(format!(
                "dfsutil root remove, root AddDom \"\\\\{first_old}\\{name}\" V1, root import set C:\\temp\\export.xml; open sessions continue with their cached referrals"
            )),
        }
    }

    fn add_target(&self, server: &ServerName) -> String {
        format!("dfsutil target add \"\\\\{server}\\{}\"", self.name)
    }
}

/// Returns the command that makes a namespace server return full names.
fn full_names(server: &ServerName) -> String {
    format!("dfsutil server registry DfsDnsConfig set \\\\{server}")
}

/// Returns the commands that restart the service Dfs of a server.
fn restart(server: &str) -> [String; 3] {
    [
        format!("sc \\\\{server} stop Dfs"),
        "timeout /t 5 /nobreak".to_owned(),
        format!("sc \\\\{server} start Dfs"),
    ]
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

    /// Compares the steps with the commands of a real migration, in the same order. The comparison ignores
    /// quotes around arguments.
    #[test]
    fn the_steps_match_a_successful_migration() {
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
                "{expected} is missing or out of order:\n{}",
                commands.join("\n")
            );
        }
        let gates: Vec<_> = steps.iter().filter_map(|step| step.gate).collect();
        assert_eq!(gates, [Gate::NewKnown, Gate::OldGone]);
    }

    #[test]
    fn a_migration_with_invalid_names_is_refused() {
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
