//! Parser of the DFS referrals that a client has cached: the output of `dfsutil cache referral` and
//! `dfsutil /pktinfo`. A referral is the list of servers for a path.

use serde::Serialize;

use super::export::Export;
use super::name::ServerName;

/// Referrals that a client has cached.
#[derive(Clone, Debug, Serialize)]
pub struct Referrals {
    /// Referrals in the order of the output.
    pub entries: Vec<Referral>,
}

/// Referral: the list of servers (targets) for one path.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Referral {
    /// Path of the namespace or link, with one leading backslash.
    pub path: String,
    /// Line number of the referral's first line in the output, counted from 1.
    pub line: u32,
    /// Time in seconds until the referral expires. 0 if the referral has expired, and `None` if the output
    /// does not state the time.
    pub expires_s: Option<u64>,
    /// Targets, in the order in which the client tries them.
    pub listed: Vec<ReferralTarget>,
}

/// One target of a referral.
#[derive(Clone, Debug, Serialize)]
pub struct ReferralTarget {
    /// Name of the server.
    pub server: ServerName,
    /// Name of the share, and the path below it.
    pub share: String,
    /// Status (NTSTATUS) of the client's last use of the target. `None` if the client has not used the
    /// target.
    pub access_status: Option<u32>,
    /// True if the client uses this target.
    pub active: bool,
}

/// Reason why the output of `dfsutil` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferralsError {
    /// The output has no referral.
    #[error("not the English output of `dfsutil cache referral`: no line begins with `Entry:`")]
    NoEntry,
    /// A target cannot be read.
    #[error(
        "line {line}: cannot read the target `{}`: expected 0:[\\SERVER\\Share] AccessStatus: 0 ( ACTIVE TARGETSET )",
        .found.escape_debug()
    )]
    Target {
        /// Line number, counted from 1.
        line: u32,
        /// Text of the line.
        found: String,
    },
    /// A target is before the first referral.
    #[error(
        "line {line}: found a target before the first `Entry:`; the beginning of the output is missing"
    )]
    Headless {
        /// Line number of the target, counted from 1.
        line: u32,
    },
}

impl Referrals {
    /// Parses the output of `dfsutil`.
    ///
    /// # Errors
    /// Returns an error if the text is not such output, or if a target cannot be read.
    pub fn read(text: &str) -> Result<Self, ReferralsError> {
        let mut entries: Vec<Referral> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let number = u32::try_from(number).map_or(u32::MAX, |number| number.saturating_add(1));
            let line = line.trim();
            if let Some(path) = line.strip_prefix("Entry:") {
                entries.push(Referral {
                    path: path.trim().to_owned(),
                    line: number,
                    ..Referral::default()
                });
            } else if let Some(rest) = line.strip_prefix("Expires in") {
                if let Some(entry) = entries.last_mut() {
                    let seconds = rest.split_whitespace().next();
                    entry.expires_s = seconds.and_then(|seconds| seconds.parse().ok());
                }
            } else if let Some((_, target)) = numbered(line) {
                let entry = entries
                    .last_mut()
                    .ok_or(ReferralsError::Headless { line: number })?;
                let listed =
                    ReferralTarget::read(target).ok_or_else(|| ReferralsError::Target {
                        line: number,
                        found: line.chars().take(80).collect(),
                    })?;
                entry.listed.push(listed);
            }
        }
        if entries.is_empty() {
            Err(ReferralsError::NoEntry)
        } else {
            Ok(Referrals { entries })
        }
    }

    /// Returns the referrals of a namespace, under the full or the short name of its domain. The result does
    /// not contain the referrals of the namespace's links.
    pub fn of_namespace<'a>(&'a self, namespace: &str) -> impl Iterator<Item = &'a Referral> {
        let wanted = Export::parts_of(namespace).map(|(domain, name)| (domain, name.to_owned()));
        self.entries.iter().filter(
            move |entry| match (&wanted, Export::parts_of(&entry.path)) {
                (Some((domain, name)), Some((of_entry, other))) => {
                    domain.may_be(&of_entry) && name.eq_ignore_ascii_case(other)
                }
                _ => false,
            },
        )
    }
}

/// Splits a line `0:[…` into the number and the rest.
fn numbered(line: &str) -> Option<(&str, &str)> {
    let (number, rest) = line.split_once(":[")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some((number, rest))
}

impl ReferralTarget {
    fn read(text: &str) -> Option<Self> {
        let (path, rest) = text.split_once(']')?;
        let (server, share) = path.trim_start_matches('\\').split_once('\\')?;
        let status = rest.split_once("AccessStatus:").map(|(_, status)| status);
        let status = status.and_then(|status| status.split_whitespace().next());
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let words = rest.split_once('(').map_or("", |(_, words)| words);
        Some(ReferralTarget {
            server: ServerName::new(server).ok()?,
            share: share.to_owned(),
            access_status: status.and_then(number),
            active: words.split([' ', ')']).any(|word| word == "ACTIVE"),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Output as in the documentation: a namespace under two names of its domain, and a link.
    pub(crate) const SAMPLE: &str = r"
1 entries...
Entry: \child.corp.contoso.com\Testing
ShortEntry: \child\Testing
Expires in 276 seconds
UseCount: 0 Type:0x81 ( REFERRAL_SVC DFS )
   0:[\OLD-SERVER-1\Testing] AccessStatus: 0 ( ACTIVE TARGETSET )
   1:[\OLD-SERVER-3\Testing] AccessStatus: 0xc00000be ( TARGETSET )
   2:[\NEW-SERVER-2.child.corp.contoso.com\Testing]

Entry: \CHILD\Testing
ShortEntry: \CHILD\Testing
Expires in 0 seconds
UseCount: 1 Type:0x81 ( REFERRAL_SVC DFS )
   0:[\OLD-Server-2\Testing]

Entry: \child.corp.contoso.com\Testing\Software
ShortEntry: \child.corp.contoso.com\Testing\Software
Expires in 1500 seconds
UseCount: 0 Type:0x1 ( DFS )
   0:[\TARGET1\Software$] AccessStatus: 0 ( ACTIVE TARGETSET )
";

    #[test]
    fn entries_are_read_with_expiry_status_and_the_active_target() {
        let referrals = Referrals::read(SAMPLE).unwrap();
        assert_eq!(referrals.entries.len(), 3);
        let first = &referrals.entries[0];
        assert_eq!((first.line, first.expires_s), (3, Some(276)));
        let listed: Vec<_> = (first.listed.iter())
            .map(|one| (one.server.as_str(), one.access_status, one.active))
            .collect();
        let expected = [
            ("OLD-SERVER-1", Some(0), true),
            ("OLD-SERVER-3", Some(0xc000_00be), false),
            ("NEW-SERVER-2.child.corp.contoso.com", None, false),
        ];
        assert_eq!(listed, expected);
        assert_eq!(referrals.entries[2].listed[0].share, "Software$");
    }

    #[test]
    fn a_namespace_is_found_by_both_names_without_its_links() {
        let referrals = Referrals::read(SAMPLE).unwrap();
        let lines = |namespace: &str| -> Vec<u32> {
            referrals
                .of_namespace(namespace)
                .map(|entry| entry.line)
                .collect()
        };
        assert_eq!(lines(r"\\child.corp.contoso.com\testing"), [3, 11]);
        assert_eq!(lines(r"\\CHILD\Testing"), [3, 11]);
        assert!(lines(r"\\other.example\Testing").is_empty());
        assert!(lines("nonsense").is_empty());
    }

    #[test]
    fn other_text_is_refused() {
        assert_eq!(
            Referrals::read("hello").err(),
            Some(ReferralsError::NoEntry)
        );
        let headless = Referrals::read("\n  0:[\\A\\B]");
        assert_eq!(headless.err(), Some(ReferralsError::Headless { line: 2 }));
        for odd in ["0:[]", "0:[\\A", "0:[\\A]", "0:[\\a b\\c]"] {
            let text = format!("Entry: \\a\\b\n{odd}");
            assert!(
                matches!(
                    Referrals::read(&text),
                    Err(ReferralsError::Target { line: 2, .. })
                ),
                "{odd}"
            );
        }
    }
}
