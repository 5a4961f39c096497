//! Which drive letters a machine's volumes had.

use std::borrow::Cow;
use std::collections::HashMap;

use etl::Guid;
use events::kernel::Class;

use crate::Table;
use crate::kept::KeptEvent;
use crate::unreadable::UnreadableEvents;

/// Class of the events that merging adds about the machine.
pub(crate) const SYS_CONFIG_EX: Guid = Guid::new(
    0x9b79_ee91,
    0xb5fd,
    0x41c0,
    [0xa2, 0x43, 0x42, 0x48, 0xe2, 0x66, 0xe9, 0xd0],
);

/// Opcode of the event that maps one volume.
pub(crate) const VOLUME_MAPPING: u8 = 35;

/// Prefixes of NT paths end within so many components (`\Device\HarddiskVolume3\` has three
/// separators, a mapped share a few more). The bound keeps hostile paths cheap.
const MAX_SEPARATORS: usize = 8;

/// Maps NT paths (`\Device\HarddiskVolume3\Windows`) to paths with drive letters. A trace says how
/// only if it was merged on the machine that recorded it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volumes {
    /// Drive paths by NT prefixes in lower case; both end with a backslash, or the drive path is
    /// empty.
    prefixes: HashMap<String, String>,
}

impl Volumes {
    /// Reads VolumeMapping events.
    pub(crate) fn read(events: &[KeptEvent<'_>], unreadable: &mut UnreadableEvents) -> Volumes {
        let mut volumes = Volumes::default();
        for event in events {
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

    /// The path with its longest known prefix replaced; as it is if none is known.
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

fn mapping(event: &KeptEvent<'_>) -> Option<(String, String)> {
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
