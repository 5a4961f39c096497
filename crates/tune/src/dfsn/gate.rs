//! Whether a client is ready for the next step.

use serde::Serialize;

use super::name::ServerName;
use super::referrals::Referrals;

/// What clients must have come to before the migration goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Before old namespace servers are disabled: clients know all new ones.
    NewKnown,
    /// Before old namespace servers are removed: clients know none of them.
    OldGone,
}

/// Whether to go on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// Whether the client is ready.
    pub proceed: bool,
    /// Otherwise, in how many seconds after the output was saved to look again: when the last of the
    /// referrals in the way has expired. Unknown if the client holds none of the namespace.
    pub wait_s: Option<u64>,
    /// What is in the way.
    pub reasons: Vec<Reason>,
    /// What is worth knowing but in nobody's way.
    pub notes: Vec<Reason>,
}

/// Something that a client's referrals show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Reason {
    /// It holds no referral of the namespace.
    NoReferral,
    /// It holds one without any target.
    Empty {
        /// Where in the output, from 1 on.
        line: u32,
    },
    /// An old server is listed.
    OldListed {
        /// Where in the output its entry begins, from 1 on.
        line: u32,
        /// The server.
        server: ServerName,
        /// Whether the client uses it.
        active: bool,
    },
    /// A new server is not.
    NewMissing {
        /// Where in the output the entry begins, from 1 on.
        line: u32,
        /// The server.
        server: ServerName,
    },
    /// A new server is listed by its short name, so its service gives no full ones.
    NewByShortName {
        /// Where in the output its entry begins, from 1 on.
        line: u32,
        /// As it is listed.
        server: ServerName,
    },
    /// A server is listed that is neither old nor new.
    Unknown {
        /// Where in the output its entry begins, from 1 on.
        line: u32,
        /// The server.
        server: ServerName,
    },
    /// The last use of a server failed.
    Failed {
        /// Where in the output its entry begins, from 1 on.
        line: u32,
        /// The server.
        server: ServerName,
        /// How (NTSTATUS).
        status: u32,
    },
}

impl Gate {
    /// Judges what a client holds of a namespace.
    pub fn judge(
        self,
        referrals: &Referrals,
        namespace: &str,
        old: &[ServerName],
        new: &[ServerName],
    ) -> Judgement {
        let (mut reasons, mut notes) = (Vec::new(), Vec::new());
        let mut wait_s = None;
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
                // A new server may have an old one's short name in another domain: the full one counts.
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
                wait_s = wait_s.max(entry.expires_s);
            }
        }
        if !known {
            reasons.push(Reason::NoReferral);
        }
        Judgement {
            proceed: reasons.is_empty(),
            wait_s,
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
    fn old_servers_are_disabled_once_clients_know_all_new_ones() {
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
    fn old_servers_are_removed_once_no_client_knows_any() {
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

    /// The longest referral in the way decides; one under the domain's short name counts too.
    #[test]
    fn all_entries_of_the_namespace_must_be_ready() {
        let referrals = Referrals::read(crate::dfsn::referrals::tests::SAMPLE).unwrap();
        let old = names(&["OLD-SERVER-1", "OLD-SERVER-2", "OLD-SERVER-3"]);
        let judgement = Gate::OldGone.judge(&referrals, NAMESPACE, &old, &[]);
        assert_eq!((judgement.reasons.len(), judgement.wait_s), (3, Some(276)));
        let elsewhere = Gate::OldGone.judge(&referrals, r"\\other\Testing", &old, &[]);
        assert_eq!(elsewhere.reasons, [Reason::NoReferral]);
        assert_eq!((elsewhere.proceed, elsewhere.wait_s), (false, None));
    }
}
