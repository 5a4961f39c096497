//! Ids of findings, and their addresses as resources. Neither of them contains names from a trace.

use std::fmt;

use explain::Scope;

use crate::open_traces::OpenTrace;

/// Id of a finding: the trace, the scope of the explanation, and the number of the finding in the explanation, such as
/// `t-0123abcd/1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FindingId {
    /// Handle of the trace.
    pub(crate) trace: String,
    /// Id of the scope; `None` for the whole trace.
    pub(crate) scope: Option<String>,
    /// Number in the explanation, from 1.
    pub(crate) number: usize,
}

impl FindingId {
    pub(crate) fn new(trace: &OpenTrace, scope: &Scope, number: usize) -> FindingId {
        FindingId {
            trace: trace.file.handle.clone(),
            scope: OpenTrace::scope_id(scope),
            number,
        }
    }

    pub(crate) fn parse(text: &str) -> Option<FindingId> {
        let parts: Vec<&str> = text.split('/').collect();
        let (trace, scope, number) = match parts.as_slice() {
            [trace, number] => (trace, None, number),
            [trace, scope, number] => (trace, Some((*scope).to_owned()), number),
            _ => return None,
        };
        let number = number.parse().ok().filter(|number| *number > 0)?;
        Some(FindingId {
            trace: (*trace).to_owned(),
            scope,
            number,
        })
    }

    /// Returns the address of the finding.
    pub(crate) fn uri(&self) -> String {
        let scope = self
            .scope
            .as_deref()
            .map_or(String::new(), |scope| format!("{scope}/"));
        format!(
            "laglab://trace/{}/{scope}finding/{}",
            self.trace, self.number
        )
    }

    /// Returns the address of evidence of the finding. `number` counts from 1.
    pub(crate) fn evidence_uri(&self, number: usize) -> String {
        format!("{}/evidence/{number}", self.uri())
    }

    /// Parses the address of a finding, or of evidence of a finding. For evidence, also returns its number, from 1.
    pub(crate) fn parse_uri(uri: &str) -> Option<(FindingId, Option<usize>)> {
        let below = uri.strip_prefix("laglab://trace/")?;
        let (below, evidence) = match below.split_once("/evidence/") {
            Some((below, number)) => (below, Some(number.parse().ok()?)),
            None => (below, None),
        };
        let (place, number) = below.split_once("/finding/")?;
        let id = FindingId::parse(&format!("{place}/{number}"))?;
        (id.uri() == format!("laglab://trace/{below}")).then_some((id, evidence))
    }
}

impl fmt::Display for FindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.trace)?;
        if let Some(scope) = &self.scope {
            write!(f, "{scope}/")?;
        }
        write!(f, "{}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_addresses_are_read_back() {
        for text in ["t-0123abcd/1", "t-0123abcd/s89abcdef/12"] {
            let id = FindingId::parse(text).unwrap();
            assert_eq!(id.to_string(), text);
            assert_eq!(FindingId::parse_uri(&id.uri()), Some((id.clone(), None)));
            let evidence = FindingId::parse_uri(&id.evidence_uri(3));
            assert_eq!(evidence, Some((id, Some(3))));
        }
        for text in ["", "t/0", "t", "t/x", "t/a/b/1", "t/-1"] {
            assert_eq!(FindingId::parse(text), None, "{text}");
        }
        for uri in [
            "",
            "laglab://trace/t/1",
            "laglab://trace/t/finding/1/finding/1",
            "laglab://trace/t/finding/1/evidence/x",
            "laglab://trace/../finding/01",
            "file:///etc/passwd",
        ] {
            assert_eq!(FindingId::parse_uri(uri), None, "{uri}");
        }
    }
}
