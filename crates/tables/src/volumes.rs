//! Drive letters of the machine's volumes.

use std::borrow::Cow;
use std::collections::HashMap;

/// Maximum number of backslashes in a prefix. `\Device\HarddiskVolume3\` has three backslashes. A mapped
/// network share has a few more. Without this limit, hostile paths could take much time.
const MAX_SEPARATORS: usize = 8;

/// Map from NT paths (`\Device\HarddiskVolume3\Windows`) to paths with drive letters. Only traces that were
/// merged on the recorded machine have the data for this map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volumes {
    /// Drive path of each NT prefix. The prefixes are in lower case and end with a backslash. A drive path
    /// ends with a backslash or is empty.
    prefixes: HashMap<String, String>,
}

impl Volumes {
    /// Adds the NT path of a volume and its drive path. Ignores an NT path that does not end with a backslash.
    pub fn add(&mut self, nt: &str, dos: &str) {
        if nt.ends_with('\\') {
            self.prefixes
                .insert(nt.to_ascii_lowercase(), dos.to_owned());
        }
    }

    /// Replaces the longest known prefix of a path by its drive path. Returns the path unchanged if no prefix
    /// is known.
    pub fn to_dos<'p>(&self, nt_path: &'p str) -> Cow<'p, str> {
        if self.prefixes.is_empty() {
            return nt_path.into();
        }
        let ends: Vec<usize> = nt_path
            .match_indices('\\')
            .map(|(at, _)| at + 1)
            .take(MAX_SEPARATORS)
            .collect();
        let lower = nt_path[..ends.last().copied().unwrap_or(0)].to_ascii_lowercase();
        for end in ends.into_iter().rev() {
            if let Some(dos) = self.prefixes.get(&lower[..end]) {
                return format!("{dos}{}", &nt_path[end..]).into();
            }
        }
        nt_path.into()
    }
}
