//! Recognition of files with other formats, so that an error message can name the format.

/// Number of bytes at a file's start that [`Foreign::recognise`] needs.
pub(crate) const HEAD_SIZE: usize = 512;

/// A format that is not an event trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Name of the format with its article, such as "a Linux perf recording".
    pub name: &'static str,
    /// Advice to the user about the next step.
    pub advice: &'static str,
}

const OTHER: &str = "give an .etl, or an .etl.zip, .diagsession or .cab that contains one";
const UNPACK: &str = "unpack it and give the .etl inside";
const RECORD: &str = "only event traces of Windows can be read";
const EVENT_LOG: &str = "open it with the Event Viewer of Windows";
const DUMP: &str =
    "save the sessions inside with WinDbg (!wmitrace.logsave), and give the .etl files";

/// Known formats. Each has the first bytes of a file, the name of the format, and advice to the user.
const MAGIC: &[(&[u8], &str, &str)] = &[
    (b"PERFILE2", "a Linux perf recording", RECORD),
    (b"2ELIFREP", "a Linux perf recording", RECORD),
    (b"\xC1\x1F\xFC\xC1", "a Common Trace Format stream", RECORD),
    (b"\xC1\xFC\x1F\xC1", "a Common Trace Format stream", RECORD),
    (b"Nettrace", "a .NET EventPipe trace (.nettrace)", RECORD),
    (b"PML_", "a Process Monitor log", OTHER),
    (b"ElfFile\0", "a Windows event log (.evtx)", EVENT_LOG),
    (b"LfLe", "a Windows event log (.evt)", EVENT_LOG),
    (b"\x7FELF", "a program or library for Linux (ELF)", OTHER),
    (b"MZ", "a program or library for Windows (PE)", OTHER),
    (b"\xCF\xFA\xED\xFE", "a program for macOS (Mach-O)", OTHER),
    (b"\xCA\xFE\xBA\xBE", "a program for macOS or Java", OTHER),
    (b"MDMP", "a Windows minidump", DUMP),
    (b"PAGEDU64", "a Windows kernel dump", DUMP),
    (b"PAGEDUMP", "a Windows kernel dump", DUMP),
    (b"regf", "a registry hive", OTHER),
    (b"SQLite format 3\0", "a SQLite database", OTHER),
    (b"PAR1", "a Parquet file", OTHER),
    (b"ARROW1", "an Arrow file", OTHER),
    (b"Microsoft C/C++", "a program database (.pdb)", OTHER),
    (b"\xD4\xC3\xB2\xA1", "a packet capture (pcap)", OTHER),
    (b"\xA1\xB2\xC3\xD4", "a packet capture (pcap)", OTHER),
    (b"\x4D\x3C\xB2\xA1", "a packet capture (pcap)", OTHER),
    (b"\xA1\xB2\x3C\x4D", "a packet capture (pcap)", OTHER),
    (b"\x0A\x0D\x0D\x0A", "a packet capture (pcapng)", OTHER),
    (b"GMBU", "a Network Monitor capture", OTHER),
    (b"PK\x03\x04", "a zip archive", UNPACK),
    (b"PK\x05\x06", "an empty zip archive", OTHER),
    (b"MSCF", "a cabinet archive", UNPACK),
    (b"\x1F\x8B", "a gzip archive", UNPACK),
    (b"BZh", "a bzip2 archive", UNPACK),
    (b"\xFD7zXZ\0", "an xz archive", UNPACK),
    (b"\x28\xB5\x2F\xFD", "a Zstandard archive", UNPACK),
    (b"7z\xBC\xAF\x27\x1C", "a 7-Zip archive", UNPACK),
    (b"Rar!\x1A\x07", "a RAR archive", UNPACK),
    (b"%PDF-", "a PDF document", OTHER),
    (b"\x89PNG\r\n\x1A\n", "a PNG image", OTHER),
    (b"\xFF\xFE", "text (UTF-16)", OTHER),
    (b"\xFE\xFF", "text (UTF-16)", OTHER),
];

impl Foreign {
    /// Returns the format of a file that begins with `head`, if the format is known.
    pub(crate) fn recognise(head: &[u8]) -> Option<Foreign> {
        let head = &head[..head.len().min(HEAD_SIZE)];
        if let Some((_, name, advice)) = MAGIC.iter().find(|(magic, ..)| head.starts_with(magic)) {
            return Some(Foreign { name, advice });
        }
        let name = text_format(head)?;
        Some(Foreign {
            name,
            advice: OTHER,
        })
    }
}

/// Returns the name of the text format of a file that begins with `head`. Returns `None` if `head`
/// is not printable text.
fn text_format(head: &[u8]) -> Option<&'static str> {
    let text = match str::from_utf8(head) {
        Ok(text) => text,
        // `head` may end inside a UTF-8 character.
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_printable = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\x0C');
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.is_empty() || !text.chars().all(is_printable) {
        return None;
    }
    Some(match text.as_bytes()[0] {
        b'{' | b'[' => "JSON",
        b'<' => "XML or HTML",
        _ => "text",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(head: &[u8]) -> Option<&'static str> {
        Foreign::recognise(head).map(|foreign| foreign.name)
    }

    #[test]
    fn formats_are_recognised_by_their_first_bytes() {
        assert_eq!(name(b"PERFILE2\x68\0\0\0"), Some("a Linux perf recording"));
        assert_eq!(name(b"ElfFile\0\0"), Some("a Windows event log (.evtx)"));
        assert_eq!(name(b"MDMP\x93\xA7"), Some("a Windows minidump"));
        assert_eq!(name(b"PAR1\x15\0"), Some("a Parquet file"));
        // The magic number 0xC1FC1FC1 can be in either byte order.
        let ctf = 0xC1FC_1FC1_u32;
        assert_eq!(name(&ctf.to_le_bytes()), name(&ctf.to_be_bytes()));
        assert!(name(&ctf.to_le_bytes()).is_some());
    }

    #[test]
    fn text_is_recognised_even_if_cut_inside_a_character() {
        assert_eq!(name(b"  {\"a\": 1}\n"), Some("JSON"));
        assert_eq!(name(b"\xEF\xBB\xBF<?xml version"), Some("XML or HTML"));
        assert_eq!(name("plain tex\u{e9}".as_bytes()), Some("text"));
        assert_eq!(name(&"caf\u{e9}".as_bytes()[..4]), Some("text"));
        assert_eq!(name(b"\x01\x02\x03"), None);
        assert_eq!(name(b"text with a \0 byte"), None);
        assert_eq!(name(b""), None);
    }
}
