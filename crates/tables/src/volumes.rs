//! Drive letters of the machine's volumes.

use std::borrow::Cow;
use std::collections::HashMap;

use events::ids::class::SYS_CONFIG_EX;
use events::kernel::Class;

use crate::Table;
use crate::event_buffer::BufferedEvent;
use crate::register::Reads;
use crate::unreadable::UnreadableEvents;

/// Events of the class to which VolumeMapping events belong.
pub(crate) const EVENTS: Reads = Reads {
    classes: &[SYS_CONFIG_EX],
    ..Reads::NOTHING
};

/// Opcode of the event that maps one volume.
const VOLUME_MAPPING: u8 = 35;

/// Maximum number of backslashes in a prefix. `\Device\HarddiskVolume3\` has three backslashes. A mapped
/// network share has a few more. Without this limit, hostile paths could take much time.
const MAX_SEPARATORS: usize = 8;

/// Map from NT paths (`\Device\HarddiskVolume3\Windows`) to paths with drive letters. Only traces that were
/// merged on the recorded machine have the data for this map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Volumes {
    /// Drive path of each NT prefix. The prefixes are in lower case and end with a backslash. A drive path
    /// ends with a backslash or is empty.
    prefixes: HashMap<String, String>,
}

impl Volumes {
    /// Reads the VolumeMapping events from the buffered events of [`EVENTS`].
    pub(crate) fn read(events: &[BufferedEvent<'_>], unreadable: &mut UnreadableEvents) -> Volumes {
        let mut volumes = Volumes::default();
        let mappings = events
            .iter()
            .filter(|event| event.opcode() == VOLUME_MAPPING);
        for event in mappings {
            match mapping(event) {
                Some((nt, dos)) => volumes.add(&nt, &dos),
                None => unreadable.add(Table::Images, event.place),
            }
        }
        volumes
    }

    fn add(&mut self, nt: &str, dos: &str) {
        if nt.ends_with('\\') {
            self.prefixes
                .insert(nt.to_ascii_lowercase(), dos.to_owned());
        }
    }

    /// Replaces the longest known prefix of a path by its drive path. Returns the path unchanged if no prefix
    /// is known.
    pub(crate) fn to_dos<'p>(&self, nt_path: &'p str) -> Cow<'p, str> {
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

/// Returns the NT path and the drive path of a volume.
fn mapping(event: &BufferedEvent<'_>) -> Option<(String, String)> {
    let schema = Class::of_guid(SYS_CONFIG_EX)?.layout(event.opcode(), event.version)?;
    let fields = events::decode(&schema.fields, event.payload, event.pointer_size);
    let text = |name| Some(fields.get(name)?.as_str()?.to_owned());
    Some((text("NtPath")?, text("DosPath")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_is_replaced() {
        let mut volumes = Volumes::default();
        volumes.add(r"\Device\HarddiskVolume2\", r"C:\");
        volumes.add(r"\Device\HarddiskVolume2\Mount\", r"M:\");
        volumes.add(r"\SystemRoot\", r"C:\Windows\");
        volumes.add(r"\??\", "");
        let is = |nt, dos: &str| assert_eq!(volumes.to_dos(nt), dos);
        is(r"\Device\HarddiskVolume2\a\b.dll", r"C:\a\b.dll");
        is(r"\device\harddiskvolume2\mount\B.dll", r"M:\B.dll");
        is(r"\SystemRoot\system32\x.sys", r"C:\Windows\system32\x.sys");
        is(r"\??\D:\x", r"D:\x");
        is(r"\Device\HarddiskVolume22\a", r"\Device\HarddiskVolume22\a");
        is("", "");
    }
}
