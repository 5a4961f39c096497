//! Events that map volumes to drive letters.

use events::ids::class::SYS_CONFIG_EX;
use events::kernel::Class;
use tables::Table;
use tables::import::{UnreadableEvents, Volumes};

use crate::event_buffer::BufferedEvent;
use crate::register::Reads;

/// Events of the class to which VolumeMapping events belong.
pub(crate) const EVENTS: Reads = Reads {
    classes: &[SYS_CONFIG_EX],
    ..Reads::NOTHING
};

/// Opcode of the event that maps one volume.
const VOLUME_MAPPING: u8 = 35;

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
