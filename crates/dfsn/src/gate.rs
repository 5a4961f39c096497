//! Decision whether a client is ready for the next step of a migration.

use serde::Serialize;

use super::name::ServerName;
use super::referrals::Referrals;

/// Condition on clients before the next step of the migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Condition before old namespace servers are disabled: clients know all new servers.
    NewKnown,
    /// Condition before old namespace servers are removed: clients know none of the old servers.
    OldGone,
}

/// Decision for a client.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// True if the client is ready.
    pub proceed: bool,
    /// Time in seconds until the last blocking referral expires. The time counts from the moment when the
    /// client's output was made. `None` if no referral blocks, or if a blocking referral does not state its
    /// time.
    pub wait_s: Option<u64>,
    /// Reasons why the client is not ready. Empty if `proceed` is true.
    pub reasons: Vec<Reason>,
    /// Observations that do not affect the decision.
    pub notes: Vec<Reason>,
}

/// Observation in a client's referrals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Reason {
    /// The client has no referral for the namespace.
    NoReferral,
    /// A referral contains no target.
    Empty {
        /// Number of the referral's first line, counted from 1.
        line: u32,
    },
    /// An old server is listed.
    OldListed {
        /// Number of the referral's first line, counted from 1.
        line: u32,
        /// Name of the server.
        server: ServerName,
        /// True if the client currently uses this server.
        active: bool,
    },
    /// A new server is not listed.
    NewMissing {
        /// Number of the referral's first line, counted from 1.
        line: u32,
        /// Name of the server.
        server: ServerName,
    },
    /// A new server is listed by its short name, so the Dfs service that returned the referral does not use
    /// full names.
    NewByShortName {
        /// Number of the referral's first line, counted from 1.
        line: u32,
        /// Name of the server as it is listed in the referral.
        server: ServerName,
    },
    /// A listed server is neither old nor new.
    Unknown {
        /// Number of the referral's first line, counted from 1.
        line: u32,
        /// Name of the server.
        server: ServerName,
    },
    /// The client's last use of a server failed.
    Failed {
        /// Number of the referral's first line, counted from 1.
        line: u32,
        /// Name of the server.
        server: ServerName,
        /// NTSTATUS code of the client's last use of the server.
        status: u32,
    },
}

impl Gate {
    /// Evaluates the referrals that a client has for a namespace.
    pub fn judge(
        self,
        referrals: &Referrals,
        namespace: &str,
        old: &[ServerName],
        new: &[ServerName],
    ) -> Judgement {
        let (mut reasons, mut notes) = (Vec::new(), Vec::new());
        let mut waits: Vec<Option<u64>> = Vec::new();
        let mut known = false;
        for entry in referrals.of_namespace(namespace) {
            known = true;
            let line = entry.line;
            let before = reasons.len();
            if entry.listed.is_empty() {
                reasons.push(Reason::Empty { line });
            }
            for listed in &entry.listed {
                let server = listed.server.clone();
                let is = |one: &&ServerName| one.may_be(&server);
                // A new server can have the same short name as an old server of another domain. In this case,
                // the full name decides.
                let is_new = new.iter().find(is);
                let is_old = new.iter().all(|one| *one != server) && old.iter().any(|one| is(&one));
                if is_old {
                    let reason = Reason::OldListed {
                        line,
                        server: server.clone(),
                        active: listed.active,
                    };
                    match self {
                        Gate::OldGone => reasons.push(reason),
                        Gate::NewKnown => notes.push(reason),
                    }
                } else if let Some(one) = is_new {
                    if one.is_full() && !server.is_full() {
                        let server = server.clone();
                        notes.push(Reason::NewByShortName { line, server });
                    }
                } else {
                    let server = server.clone();
                    notes.push(Reason::Unknown { line, server });
                }
                if let Some(status) = listed.access_status.filter(|status| *status != 0) {
                    notes.push(Reason::Failed {
                        line,
                        server,
                        status,
                    });
                }
            }
            for server in new {
                if !entry
                    .listed
                    .iter()
                    .any(|listed| server.may_be(&listed.server))
                {
                    let server = server.clone();
                    reasons.push(Reason::NewMissing { line, server });
                }
            }
            if reasons.len() > before {
                waits.push(entry.expires_s);
            }
        }
        if !known {
            reasons.push(Reason::NoReferral);
        }
        let waits: Option<Vec<u64>> = waits.into_iter().collect();
        Judgement {
            proceed: reasons.is_empty(),
            wait_s: waits.and_then(|waits| waits.into_iter().max()),
            reasons,
            notes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMESPACE: &str = r"\\child.corp.contoso.com\Testing";

    fn names(names: &[&str]) -> Vec<ServerName> {
        names
            .iter()
            .map(|name| ServerName::new(name).unwrap())
            .collect()
    }

    fn judge(gate: Gate, listed: &[&str]) -> Judgement {
        let mut text =
            "Entry: \\child.corp.contoso.com\\Testing\nExpires in 276 seconds\n".to_owned();
        for (place, target) in listed.iter().enumerate() {
            text += &format!("   {place}:[\\{target}\\Testing]\n");
        }
        let referrals = Referrals::read(&text).unwrap();
        let old = names(&["OLD-SERVER-1", "OLD-SERVER-2"]);
        let new = names(&[
            "new-server-1.child.corp.contoso.com",
            "new-server-2.child.corp.contoso.com",
        ]);
        gate.judge(&referrals, NAMESPACE, &old, &new)
    }

    const NEW: [&str; 2] = [
        "NEW-SERVER-1.child.corp.contoso.com",
        "NEW-SERVER-2.child.corp.contoso.com",
    ];

    #[test]
    fn old_servers_may_be_disabled_once_clients_know_all_new_ones() {
        let before = judge(Gate::NewKnown, &["OLD-SERVER-1", "OLD-Server-2"]);
        assert_eq!((before.proceed, before.wait_s), (false, Some(276)));
        assert_eq!(before.reasons.len(), 2);
        assert!(!judge(Gate::NewKnown, &["OLD-SERVER-1", NEW[0]]).proceed);
        let both = judge(
            Gate::NewKnown,
            &["OLD-SERVER-1", NEW[1], "OLD-SERVER-2", NEW[0]],
        );
        assert_eq!((both.proceed, both.wait_s), (true, None));
    }

    #[test]
    fn old_servers_may_be_removed_once_clients_know_none() {
        let one_left = judge(
            Gate::OldGone,
            &[NEW[0], NEW[1], "old-server-2.child.corp.contoso.com"],
        );
        assert_eq!((one_left.proceed, one_left.wait_s), (false, Some(276)));
        let server = ServerName::new("OLD-SERVER-2.child.corp.contoso.com").unwrap();
        let expected = Reason::OldListed {
            line: 1,
            server,
            active: false,
        };
        assert_eq!(one_left.reasons, [expected]);
        assert!(judge(Gate::OldGone, &NEW).proceed);
        assert!(!judge(Gate::OldGone, &[]).proceed);
    }

    #[test]
    fn a_short_name_of_a_new_server_is_noted() {
        let short = judge(Gate::OldGone, &["NEW-SERVER-1", NEW[1], "OTHER"]);
        assert!(short.proceed);
        assert!(matches!(
            &short.notes[..],
            [Reason::NewByShortName { .. }, Reason::Unknown { .. }]
        ));
    }

    /// Checks two facts about the waiting time. The blocking referral with the longest time determines the
    /// waiting time. If a blocking referral states no time, the waiting time is unknown. Referrals under the
    /// short name of the domain count too.
    #[test]
    fn all_entries_of_the_namespace_must_be_ready() {
        let referrals = Referrals::read(crate::referrals::tests::SAMPLE).unwrap();
        let old = names(&["OLD-SERVER-1", "OLD-SERVER-2", "OLD-SERVER-3"]);
        let judgement = Gate::OldGone.judge(&referrals, NAMESPACE, &old, &[]);
        assert_eq!((judgement.reasons.len(), judgement.wait_s), (3, Some(276)));
        let blank = crate::referrals::tests::SAMPLE.replace("in 0 seconds", "in  seconds");
        let blank = Referrals::read(&blank).unwrap();
        assert_eq!(blank.entries[1].expires_s, None);
        let judgement = Gate::OldGone.judge(&blank, NAMESPACE, &old, &[]);
        assert_eq!((judgement.proceed, judgement.wait_s), (false, None));
        let elsewhere = Gate::OldGone.judge(&referrals, r"\\other\Testing", &old, &[]);
        assert_eq!(elsewhere.reasons, [Reason::NoReferral]);
        assert_eq!((elsewhere.proceed, elsewhere.wait_s), (false, None));
    }
}
