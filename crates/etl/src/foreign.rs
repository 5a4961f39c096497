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

const OTHER: &str = "give an .etl, or an .etl.zip, .diagsession or .cab that contains one; of Linux, a perf.data or \
                     trace.dat; of packets, a .pcapng or .pcap";
const UNPACK: &str = "unpack it and give the .etl, perf.data or trace.dat inside";
const RECORD: &str =
    "of traces, laglab reads .etl of Windows, and perf.data, trace.dat and their text of Linux";
const LINUX: &str = "only event traces of Windows can be read here";
const OLD_PERF: &str = "record again with a perf that is not older than 2011";
const EVENT_LOG: &str = "open it with the Event Viewer of Windows";
const DUMP: &str =
    "save the sessions inside with WinDbg (!wmitrace.logsave), and give the .etl files";

const OLD_PERF_NAME: &str = "a perf.data of version 1, from perf before 2010";

/// Known formats. Each has the first bytes of a file, the name of the format, and advice to the user.
const MAGIC: &[(&[u8], &str, &str)] = &[
    (b"PERFILE2", "a Linux perf recording", LINUX),
    (b"2ELIFREP", "a Linux perf recording", LINUX),
    (b"PERFFILE", OLD_PERF_NAME, OLD_PERF),
    (b"ELIFFREP", OLD_PERF_NAME, OLD_PERF),
    (b"\x17\x08\x44tracing", "a trace-cmd recording", LINUX),
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
        if is_perfetto(head) {
            return Some(Foreign {
                name: "a Perfetto trace",
                advice: RECORD,
            });
        }
        let (name, advice) = text_format(head)?;
        Some(Foreign { name, advice })
    }
}

/// Returns true if a file that begins with `head` is a Perfetto trace: a protobuf message whose fields all have number 1
/// and contain messages (`packet` of `Trace` in `protos/perfetto/trace/trace.proto`).
fn is_perfetto(head: &[u8]) -> bool {
    /// Tag of field 1 with a length.
    const PACKET: u8 = 0x0A;
    let mut rest = head;
    for whole in 0.. {
        let Some((PACKET, after)) = rest.split_first().map(|(tag, after)| (*tag, after)) else {
            return rest.is_empty() && whole >= 2;
        };
        let Some((len, after)) = varint(after) else {
            return whole >= 2;
        };
        let Some((packet, after)) = usize::try_from(len)
            .ok()
            .and_then(|len| after.split_at_checked(len))
        else {
            // This packet ends after `head`.
            return whole >= 2 || whole == 1 && has_fields(after, true);
        };
        if packet.is_empty() || !has_fields(packet, false) {
            return false;
        }
        rest = after;
    }
    false
}

/// Returns true if a protobuf message consists of fields. If `is_cut` is true, the end of the message is missing.
fn has_fields(mut message: &[u8], is_cut: bool) -> bool {
    while !message.is_empty() {
        let field = varint(message).filter(|(tag, _)| tag >> 3 != 0);
        let Some((tag, after)) = field else {
            return false;
        };
        let after = match tag & 7 {
            0 => varint(after).map(|(_, after)| after),
            1 => after.get(8..),
            2 => varint(after).and_then(|(len, after)| after.get(usize::try_from(len).ok()?..)),
            5 => after.get(4..),
            _ => return false,
        };
        match after {
            Some(after) => message = after,
            None => return is_cut,
        }
    }
    true
}

/// Reads a number of protobuf. Returns the number and the bytes after it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let last = bytes.iter().take(10).position(|byte| byte & 0x80 == 0)?;
    let (number, after) = bytes.split_at(last + 1);
    let add = |all: u64, byte: &u8| all << 7 | u64::from(byte & 0x7F);
    Some((number.iter().rev().fold(0, add), after))
}

/// Returns the name of the text format of a file that begins with `head`, and advice to the user. Returns `None` if `head`
/// is not printable text.
fn text_format(head: &[u8]) -> Option<(&'static str, &'static str)> {
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
    let is_of_chrome = text.contains("\"traceEvents\"") || text.contains("\"ph\":");
    Some(match text.as_bytes()[0] {
        b'{' | b'[' if is_of_chrome => ("a Chrome trace (JSON)", RECORD),
        b'{' | b'[' => ("JSON", OTHER),
        _ if text.starts_with("# tracer:") || has_line(text, true) => {
            ("text of the kernel's tracer (ftrace)", LINUX)
        }
        _ if text.starts_with("# ========\n# captured on") || has_line(text, false) => {
            ("text of `perf script`", LINUX)
        }
        b'<' => ("XML or HTML", OTHER),
        _ => ("text", OTHER),
    })
}

/// Returns true if a line of a text has a CPU in brackets and a time in seconds, as in `[001] 12.345678: `. ftrace prints
/// flags between them, and `perf script` does not.
fn has_line(text: &str, has_flags: bool) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = |word: &str| {
        let time = word.strip_suffix(':').and_then(|time| time.split_once('.'));
        time.is_some_and(|(seconds, fraction)| is_digits(seconds) && is_digits(fraction))
    };
    text.lines().any(|line| {
        let Some((_, (cpu, rest))) =
            (line.split_once(" [")).and_then(|(task, rest)| Some((task, rest.split_once(']')?)))
        else {
            return false;
        };
        let mut words = rest.split_whitespace();
        let (first, second) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let time = if has_flags { second } else { first };
        is_digits(cpu) && is_time(time)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(head: &[u8]) -> Option<&'static str> {
        Foreign::recognise(head).map(|foreign| foreign.name)
    }

    #[test]
    fn perfetto_traces_are_packets_of_fields() {
        // Two packets: a clock snapshot (field 6) with a nested message, and a packet with a user id (field 3).
        let clock = [0x0A, 6, 0x32, 4, 0x0A, 2, 0x08, 6];
        let user = [0x0A, 5, 0x18, 0x8F, 0x4E, 0x50, 1];
        let trace = [&clock[..], &user].concat();
        assert_eq!(name(&trace), Some("a Perfetto trace"));
        let long = [&trace[..], &[0x0A, 0xFF, 0x7F, 0x32, 0xFF, 1], &[7; 600]].concat();
        assert_eq!(name(&long), Some("a Perfetto trace"));
        // A line feed is also the tag of a packet.
        assert_eq!(name(b"\n\n  text\n  with lines\n"), Some("text"));
        for other in [
            &clock[..],
            &[0x0A; 512],
            &[0x0A, 1, 7, 0x0A, 1, 7],
            &[0x0A, 0, 0x0A, 0],
        ] {
            assert_ne!(name(other), Some("a Perfetto trace"), "{other:?}");
        }
    }

    #[test]
    fn texts_of_linux_tools_are_told_apart() {
        let script = "         swapper     0 [000]  1000.000000: sched:sched_switch: prev_comm=swapper/0 prev_pid=0\n";
        let ftrace = "          <idle>-0       [001] d..2.   100.123456: sched_switch: prev_comm=swapper/1 prev_pid=0\n";
        let header =
            "# ========\n# captured on    : Sun Nov 29 10:00:00 2026\n# header version : 1\n";
        let tracer = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 3/3   #P:2\n";
        for (text, expected) in [
            (script, "text of `perf script`"),
            (header, "text of `perf script`"),
            (ftrace, "text of the kernel's tracer (ftrace)"),
            (tracer, "text of the kernel's tracer (ftrace)"),
            ("an index [a] 2.5: and more\n", "text"),
            ("[{\"name\":\"a\",\"ph\":\"X\"}]", "a Chrome trace (JSON)"),
            ("{\"traceEvents\":[]}", "a Chrome trace (JSON)"),
        ] {
            assert_eq!(name(text.as_bytes()), Some(expected), "{text}");
        }
    }

    #[test]
    fn formats_are_recognised_by_their_first_bytes() {
        assert_eq!(name(b"PERFFILE\x68\0\0\0"), Some(OLD_PERF_NAME));
        assert_eq!(name(b"ELIFFREP\0\0\0\0"), Some(OLD_PERF_NAME));
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
