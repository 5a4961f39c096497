//! What a client holds of namespaces: the output of `dfsutil cache referral` and `dfsutil /pktinfo`.

use serde::Serialize;

use super::export::Export;
use super::name::ServerName;

/// The referrals that a client holds.
#[derive(Clone, Debug, Serialize)]
pub struct Referrals {
    /// In the order of the output.
    pub entries: Vec<Referral>,
}

/// What a client was told of one path.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Referral {
    /// The path, with one backslash before it.
    pub path: String,
    /// Where the entry begins, counted from 1.
    pub line: u32,
    /// In how many seconds it expires; 0 if it has.
    pub expires_s: Option<u64>,
    /// Where it leads, in the order in which the client tries.
    pub listed: Vec<Listed>,
}

/// One target of a referral.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    /// The server.
    pub server: ServerName,
    /// The share and what is below it.
    pub share: String,
    /// How its last use ended (NTSTATUS), if it was used.
    pub access_status: Option<u32>,
    /// Whether the client uses this one.
    pub active: bool,
}

/// A text is no such output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferralsError {
    /// It holds no entry.
    #[error(
        "no line begins with `Entry:`, so this is no output of `dfsutil cache referral` (in English)"
    )]
    NoEntry,
    /// A target cannot be read.
    #[error("line {line}: `{}` is no target; one looks like 0:[\\SERVER\\Share] AccessStatus: 0 ( ACTIVE TARGETSET )", .found.escape_debug())]
    Target {
        /// Where, from 1 on.
        line: u32,
        /// What stands there.
        found: String,
    },
    /// Targets before any entry.
    #[error("line {line}: a target before the first `Entry:`; the output's beginning is missing")]
    Headless {
        /// Where, from 1 on.
        line: u32,
    },
}

impl Referrals {
    /// Reads the output.
    ///
    /// # Errors
    /// If it is none, or has targets that cannot be read.
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
                let listed = Listed::read(target).ok_or_else(|| ReferralsError::Target {
                    line: number,
                    found: line.chars().take(80).collect(),
                })?;
                entry.listed.push(listed);
            }
        }
        match entries.is_empty() {
            true => Err(ReferralsError::NoEntry),
            false => Ok(Referrals { entries }),
        }
    }

    /// What the client holds of a namespace, by its full domain name, its short one, or both.
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

/// `0:[` and what comes after it.
fn numbered(line: &str) -> Option<(&str, &str)> {
    let (number, rest) = line.split_once(":[")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some((number, rest))
}

impl Listed {
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
        Some(Listed {
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

    /// In the form of the documentation: a namespace under two names, and a link.
    pub(in crate::dfsn) const SAMPLE: &str = r"
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
    fn a_namespace_is_found_by_both_its_names_and_without_its_links() {
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
    fn what_is_no_output_is_refused() {
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
