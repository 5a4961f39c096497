//! Compares decoded WPP messages with two sources: the source code of the programs that wrote the messages
//! ("emitters"), and the output of `tracefmt`.
//!
//! The trace and the TMF files are in `../shared/data/etl`. Payloads, the source expressions and `tracefmt`'s
//! texts are from `github:guscatalano/findneedle` (MIT), commit `0734d0d3943077f73e2d9175f40506b5fc6e9260`:
//! recordings `ETWPluginTests/WppFixtures/*.etl`, emitters `tools/Wpp*Emitter`, texts
//! `ETWPluginTests/ManagedWppDecoderTests.cs`.

use std::fs;
use std::path::PathBuf;

use etl::Guid;
use events::Value;
use events::wpp::{Message, TmfSet, WppMessage, decode_payload, parse_tmf};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/etl");

/// Copy of `tools/WppEmitter/tmf/9b93a332-c452-3e71-64f7-55130c7de2e4.tmf` without the `// PDB:`
/// paths.
const EMITTER_TMF: &str = include_str!("data/wpp_emitter.tmf");

fn data(path: &str) -> PathBuf {
    let path = PathBuf::from(DATA).join(path);
    assert!(
        path.exists(),
        "../shared/data is missing: {}",
        path.display()
    );
    path
}

fn tmf_texts() -> Vec<String> {
    let files = fs::read_dir(data("tmf"))
        .unwrap()
        .map(|file| file.unwrap().path());
    files
        .map(|file| fs::read_to_string(file).unwrap())
        .collect()
}

/// Returns the messages of all TMF files. The texts of the files are joined and added as one text.
fn tmf_set() -> TmfSet {
    let mut set = TmfSet::default();
    let texts = tmf_texts();
    assert_eq!(texts.len(), 9);
    assert_eq!(set.add(&texts.concat()), Ok(22));
    assert_eq!(set.add(EMITTER_TMF), Ok(2));
    set
}

fn message<'s>(set: &'s TmfSet, guid: &str, number: u16) -> &'s Message {
    set.message(guid.parse().unwrap(), number)
        .unwrap_or_else(|| panic!("{guid} {number}"))
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// Message number, payload in hexadecimal, and expected text.
type Recorded = (u16, &'static str, &'static str);

/// All different messages of the nine recordings, by GUID. The expected texts are the output of `tracefmt`
/// with some differences. Times are in UTC. The SID is not replaced by an account name. The hex dump and the
/// NDIS codes are shown unchanged.
const RECORDED: &[(&str, &[Recorded])] = &[
    (
        "744151fd-b3f4-32e6-38eb-0fd11e3fb62d",
        &[
            (
                10,
                "616c7068610000000000",
                "strtrace name=alpha id=0 tag=END",
            ),
            (
                10,
                "627261766f0001000000",
                "strtrace name=bravo id=1 tag=END",
            ),
            (
                10,
                "636861726c69650002000000",
                "strtrace name=charlie id=2 tag=END",
            ),
            (11, "72006f006f0074000000", "widetrace user=root role=admin"),
        ],
    ),
    (
        "4857fab7-1162-3184-360b-cdd863ddf4ea",
        &[
            (
                10,
                "2a00000018fcffff000efad5feffffff",
                "sint i=42 neg=-1000 i64=-5000000000",
            ),
            (
                11,
                "00286beeefcdab00fecaefbeadde0000",
                "uint u=4000000000 hex=0xabcdef x64=0xdeadbeefcafe",
            ),
            (
                12,
                "78563412f07f00000000000000000000",
                "ptr p=00007FF012345678 null=0000000000000000",
            ),
            (13, "2a000000efbe0000", "widths z=00042 h=0000beef"),
            (
                14,
                "05000780220000c0443322116655887799aabbccddeeff00",
                "hr=0x80070005(ERROR_ACCESS_DENIED) st=0xc0000022(STATUS_ACCESS_DENIED) \
                 guid=11223344-5566-7788-99aa-bbccddeeff00",
            ),
        ],
    ),
    (
        "6033c1c6-a9fa-394c-0bc0-1581cb94150e",
        &[
            (
                10,
                "0b00436f756e746564416e7369160043006f0075006e007400650064005700690064006500",
                "counted a=CountedAnsi w=CountedWide",
            ),
            (11, "010100000000000512000000", "sid=S-1-5-18"),
            (
                12,
                "ddccbbaaffee22113344556677889900ddccbbaaffee22113344556677889900",
                "clsid=aabbccdd-eeff-1122-3344-556677889900 \
                 iid=aabbccdd-eeff-1122-3344-556677889900",
            ),
            (
                13,
                "02000000efcdab0000000000ff01000000000000",
                "werr=2(ERROR_FILE_NOT_FOUND) i64X=0xABCDEF i64o=777",
            ),
            (14, "7f0000010050", "ip=127.0.0.1 port=80"),
        ],
    ),
    (
        "d4153fff-ac08-361f-5ed7-af1d38cd1903",
        &[
            (10, "0100000002", "b=0x00000001(true) irql=0x00000002(DPC)"),
            (11, "05000000", "set=[1,3]"),
        ],
    ),
    (
        "035fd70f-a54a-3c13-f6c5-f7f2b19c92ec",
        &[(
            10,
            "0100000005000000",
            "state=StateActive flags=FlagRead | FlagExec(0x5)",
        )],
    ),
    (
        "2363c985-9b6e-3283-34a7-e8c27a60b889",
        &[
            (
                10,
                "000000000020094080f0fa0200000000",
                "dbl=3.14062 delta=5.000s",
            ),
            (
                11,
                "526177416e73690052006100770057006900640065000000",
                "raw a=RawAnsi w=RawWide",
            ),
        ],
    ),
    // The emitter logs the FILETIME 132223104000000000, which is 2020-01-01 00:00:00 UTC.
    (
        "8ff2a761-4025-3d98-c3fc-1bc40b34330d",
        &[
            (10, "0000056936c0d501", "ts=2020-01-01T00:00:00.0000000Z"),
            (11, "52474241", "cc=RGBA"),
        ],
    ),
    (
        "4305d668-552d-302b-a84c-fbcf09373bf6",
        &[
            (10, "0800deadbeef00112233", "hex=de ad be ef 00 11 22 33"),
            (11, "0000056936c0d501", "due=2020-01-01T00:00:00.0000000Z"),
        ],
    ),
    (
        "4bfa7244-5583-3195-181b-88348eb33cdb",
        &[(10, "0b00014001010100", "nst=0x4001000b noid=0x00010101")],
    ),
];

#[test]
fn recorded_messages_say_what_their_sources_say() {
    let set = tmf_set();
    let mut seen = 0;
    for (guid, messages) in RECORDED {
        for (number, payload, text) in *messages {
            let payload = bytes(payload);
            let decoded = decode_payload(message(&set, guid, *number), &payload, 8);
            assert_eq!(decoded.text, *text);
            assert!(decoded.tail.is_empty(), "{text}");
            assert!(
                decoded
                    .arguments
                    .iter()
                    .all(|(_, value)| *value != Value::Null),
                "{text}"
            );
            seen += 1;
        }
    }
    assert_eq!(seen, 24);
}

/// Checks that each argument has the value of its expression in the emitter's source code. The TMF
/// file contains the expressions.
#[test]
fn arguments_have_the_values_of_their_expressions() {
    let set = tmf_set();
    let recorded = RECORDED
        .iter()
        .flat_map(|(guid, m)| m.iter().map(move |m| (*guid, m)));
    let mut values = Vec::new();
    let payloads: Vec<_> = recorded
        .map(|(g, (number, p, _))| (g, *number, bytes(p)))
        .collect();
    for (guid, number, payload) in &payloads {
        values.extend(decode_payload(message(&set, guid, *number), payload, 8).arguments);
    }
    let value = |expression: &str| {
        let found = values.iter().find(|(e, _)| &**e == expression);
        &found.unwrap_or_else(|| panic!("{expression}")).1
    };
    assert_eq!(*value("(int)-1000"), Value::Int(-1000));
    assert_eq!(
        *value("(long long)-5000000000LL"),
        Value::Int(-5_000_000_000)
    );
    assert_eq!(*value("(unsigned)4000000000u"), Value::UInt(4_000_000_000));
    assert_eq!(*value("(unsigned)0xABCDEF"), Value::Hex(0xABCDEF));
    assert_eq!(
        *value("(unsigned long long)0xDEADBEEFCAFEULL"),
        Value::Hex(0xDEAD_BEEF_CAFE)
    );
    assert_eq!(*value("(unsigned long long)0x1FF"), Value::UInt(0x1FF));
    assert_eq!(
        *value("(void*)(ULONG_PTR)0x7ff012345678ULL"),
        Value::Pointer(0x7ff0_1234_5678)
    );
    assert_eq!(*value("(NTSTATUS)0xC0000022L"), Value::Hex(0xC000_0022));
    assert_eq!(*value("(int)0x4001000B"), Value::Hex(0x4001_000B));
    assert_eq!(*value("3.140625"), Value::Float(3.140625));
    assert_eq!(*value("(LONGLONG)50000000"), Value::Int(50_000_000));
    assert_eq!(
        *value("(LONGLONG)132223104000000000LL"),
        Value::FileTime(132_223_104_000_000_000)
    );
    assert_eq!(*value("L'root'"), Value::Text("root".into()));
    assert_eq!(
        *value("(ULONG)0x0100007F"),
        Value::Ipv4([127, 0, 0, 1].into())
    );
    assert_eq!(*value("(USHORT)0x5000"), Value::UInt(80));
    assert_eq!(*value("TRUE"), Value::Named(1, "true".into()));
    assert_eq!(*value("2 /*DPC*/"), Value::Named(2, "DPC".into()));
    assert_eq!(*value("s"), Value::Named(1, "StateActive".into()));
}

/// Returns the GUID, the number, the pointer size and the payload of each MESSAGE record, in file order. The
/// buffers of the recording are not compressed. The recording has only MESSAGE and SYSTEM records.
fn messages(trace: &[u8]) -> Vec<(Guid, u16, usize, &[u8])> {
    let u16_at = |at: usize| u16::from_le_bytes([trace[at], trace[at + 1]]);
    let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
    let mut found = Vec::new();
    let mut buffer = 0;
    while buffer + 0x48 <= trace.len() {
        let end = buffer + u32_at(buffer + 4) as usize;
        let mut at = buffer + 0x48;
        while at + 8 <= end {
            let size = match trace[at + 3] {
                0x90 => {
                    let (size, flags) = (usize::from(u16_at(at)), u16_at(at + 6));
                    // These flags mean that the header has a GUID, a time and a thread id, and that
                    // pointers have 64 bits.
                    assert_eq!(flags, 0xAA);
                    let guid = Guid::read(&trace[at + 8..]).unwrap();
                    found.push((guid, u16_at(at + 4), 8, &trace[at + 40..at + size]));
                    size
                }
                0xC0 => usize::from(u16_at(at + 4)),
                kind => panic!("{kind:#x} at {at:#x}"),
            };
            at += size.next_multiple_of(8);
        }
        buffer += u32_at(buffer) as usize;
    }
    found
}

/// Compares all messages with the program's source code. The emitter traces a work item for each `i` from 0
/// to 19. If `i` is even, it also traces a detail.
#[test]
fn every_message_of_a_recording_is_decoded() {
    let set = tmf_set();
    let trace = fs::read(data("findneedle__wppemitter-nonselfdesc.etl")).unwrap();
    let recorded = messages(&trace);
    let decoded: Vec<WppMessage<'_>> = recorded
        .iter()
        .map(|(guid, number, pointer_size, payload)| {
            decode_payload(set.message(*guid, *number).unwrap(), payload, *pointer_size)
        })
        .collect();
    // `truth.json` states 30 MESSAGE events.
    assert_eq!(decoded.len(), 30);
    let expected = (0..20).flat_map(|i| {
        let work = format!(
            "WppEmitter work item id={i} status=0x{:x} phase=startup provider=WppEmitter",
            i & 0xff
        );
        let detail = format!(
            "WppEmitter detail seq={i} note=processing-record value={} category=Detail",
            i % 7919
        );
        [Some(work), (i % 2 == 0).then_some(detail)]
            .into_iter()
            .flatten()
    });
    assert!(decoded.iter().map(|m| m.text.clone()).eq(expected));

    let first = &decoded[0];
    assert_eq!(&*first.name, "WppEmitter_cpp36");
    assert_eq!(&*first.module, "findneedle");
    assert_eq!(first.source_file.as_deref(), Some("WppEmitter.cpp"));
    assert_eq!(first.function.as_deref(), Some("main"));
    assert_eq!(first.level.as_deref(), Some("TRACE_GENERAL"));
    assert_eq!(first.flags, None);
}

#[test]
fn each_file_is_one_guid_whose_types_are_all_known() {
    for text in tmf_texts() {
        let tmfs = parse_tmf(&text).unwrap();
        assert_eq!(tmfs.len(), 1);
        let messages = tmfs[0].messages.values();
        for argument in messages.flat_map(|message| &message.arguments) {
            assert_ne!(argument.item, events::wpp::Item::Unknown, "{argument:?}");
        }
    }
}

fn one(format: &str, arguments: &str) -> Message {
    let text = format!(
        "9b93a332-c452-3e71-64f7-55130c7de2e4 m // SRC=a b.c MJ= MN=\n\
         #typev a_c1 10 \"{format}\" // LEVEL=TRACE_INFO FLAGS=NET FUNC=Map<int, x>::find\n\
         {{\n{arguments}\n}}\n"
    );
    let mut tmfs = parse_tmf(&text).unwrap_or_else(|error| panic!("{error}"));
    Message::clone(&tmfs[0].messages.remove(&10).unwrap())
}

fn text(message: &Message, payload: &[u8], pointer_size: usize) -> String {
    decode_payload(message, payload, pointer_size).text
}

#[test]
fn context_is_part_of_the_text() {
    let message = one("%0%!FUNC!: %!FILE! %!LEVEL! %!FLAGS! %!WHAT! 100%%", "");
    assert_eq!(
        text(&message, &[], 8),
        "Map<int, x>::find: a b.c TRACE_INFO NET %!WHAT! 100%"
    );
}

#[test]
fn pointers_have_the_events_width() {
    let message = one("%0%10!p! %11!d!", "p, ItemPtr -- 10\nn, ItemLong -- 11");
    assert_eq!(
        text(&message, &[0x78, 0x56, 0x34, 0x12, 7, 0, 0, 0], 4),
        "12345678 7"
    );
}

#[test]
fn expressions_and_quotes_may_hold_anything() {
    let message = one(
        r#"%0said "%10!s!" // %11!s!"#,
        "f(a, \"b -- c\"), ItemString -- 10\ng(x, (y)), ItemListByte(a(b),c) -- 11",
    );
    assert_eq!(
        text(&message, b"hi\0\x01", 8),
        r#"said "hi" // 0x00000001(c)"#
    );
    assert_eq!(&*message.arguments[0].expression, "f(a, \"b -- c\")");
    assert_eq!(&*message.arguments[1].expression, "g(x, (y))");
}

#[test]
fn a_format_may_span_lines() {
    let message = one("%0first\n\n  second %10!c!", "c, ItemChar -- 10");
    assert_eq!(text(&message, b"!", 8), "first\n\n  second !");
}

#[test]
fn what_cannot_be_read_is_shown_as_such() {
    let message = one(
        "%0%10!u! %11!s! %12!d! %13!d!",
        "a, ItemULong -- 10\nb, ItemFoo -- 11\nc, ItemLong -- 12",
    );
    let payload = [1, 0, 0, 0, 0xAB, 0xCD];
    let decoded = decode_payload(&message, &payload, 8);
    assert_eq!(decoded.text, "1 <ItemFoo? ab cd> <ItemLong?> %13!d!");
    assert_eq!(decoded.tail, [0xAB, 0xCD]);
    assert_eq!(decoded.arguments[2].1, Value::Null);
    assert_eq!(
        text(&message, &[1, 0], 8),
        "<ItemULong? 01 00> <ItemFoo?> <ItemLong?> %13!d!"
    );
}

#[test]
fn text_is_utf8_or_latin1_and_ends_with_the_payload() {
    let message = one("%10!s!|%11!s!", "a, ItemString -- 10\nb, ItemWString -- 11");
    assert_eq!(text(&message, b"\xC3\xA9\0", 8), "é|");
    assert_eq!(text(&message, b"\xE9\0\x3d\xd8\x00\xdeX", 8), "é|😀");
}

#[test]
fn errors_name_the_line_and_what_was_expected() {
    let head = "// a comment\n9b93a332-c452-3e71-64f7-55130c7de2e4 m\n";
    let cases = [
        (
            "hello".to_owned(),
            "line 1: expected a GUID and the component's name, found `hello`",
        ),
        (
            format!("{head}#typev a ten \"x\""),
            "line 3: expected `#typev NAME NUMBER \"format\"`, found `a ten \"x\"`",
        ),
        (
            format!("{head}#typev a 10 \"x\n{{\n}}"),
            "line 4: expected the end of the format, `\"`, found `{`",
        ),
        (
            format!("{head}#typev a 10 \"x\"\n{{\nn, ItemLong\n}}"),
            "line 5: expected an argument as `expression, ItemLong -- 10`, found `n, ItemLong`",
        ),
        (
            format!("{head}#typev a 10 \"x\"\n{{\n"),
            "line 5: expected `}`, found ``",
        ),
        (
            format!("{head}#enumv E\n{{\nA,one\n}}"),
            "line 5: expected an enumerator as `NAME,0x1`, found `A,one`",
        ),
        (
            format!("{head}#what"),
            "line 3: expected `#typev`, `#enumv` or a GUID and the component's name, \
             found `#what`",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(parse_tmf(&text).unwrap_err().to_string(), expected);
    }
    assert!(parse_tmf("").unwrap().is_empty());
    assert!(
        parse_tmf("\u{feff}// only a comment\r\n")
            .unwrap()
            .is_empty()
    );
}

/// Random number generator xorshift64 of Marsaglia. With it, the random changes are the same on all systems.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>, alphabet: &[u8]) {
        for _ in 0..=self.below(8) {
            let (at, byte) = (
                self.below(bytes.len()),
                alphabet[self.below(alphabet.len())],
            );
            match self.below(4) {
                0 if at < bytes.len() => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => bytes.truncate(at),
                _ => {
                    let piece = bytes[at..bytes.len().min(at + self.below(64))].to_vec();
                    let to = self.below(bytes.len());
                    bytes.splice(to..to, piece);
                }
            }
        }
    }
}

#[test]
fn mutated_files_and_payloads_stay_bounded() {
    let texts = tmf_texts();
    let payloads: Vec<_> = RECORDED
        .iter()
        .flat_map(|(_, m)| m.iter().map(|(_, p, _)| bytes(p)))
        .collect();
    let all: Vec<u8> = (0..=255).collect();
    let mut random = Random(0x1A61AB);
    let mut parsed = 0;
    for _ in 0..20_000 {
        let mut tmf = texts[random.below(texts.len())].clone().into_bytes();
        random.mutate(&mut tmf, b"%!09-+#. \"\n{},()/dsxpcfgeI64\xC3\xA9\0");
        let tmf = String::from_utf8_lossy(&tmf);
        let lines = tmf.lines().count();
        match parse_tmf(&tmf) {
            Ok(tmfs) => {
                parsed += 1;
                for message in tmfs.iter().flat_map(|tmf| tmf.messages.values()) {
                    let mut payload = payloads[random.below(payloads.len())].clone();
                    random.mutate(&mut payload, &all);
                    let pointer_size = [4, 8, 0][random.below(3)];
                    let decoded = decode_payload(message, &payload, pointer_size);
                    assert!(payload.ends_with(decoded.tail));
                    assert_eq!(decoded.arguments.len(), message.arguments.len());
                    // The text of an insert is not longer than the sum of its width, its precision and the
                    // text of its value.
                    let inserts = message.template.matches('%').count();
                    let names = tmf.len() * inserts;
                    let most = message.template.len() + inserts * (1024 + 3 * payload.len() + 400);
                    assert!(decoded.text.len() <= most + names, "{}", decoded.text.len());
                }
            }
            Err(error) => assert!((1..=lines + 1).contains(&error.line), "{error}"),
        }
    }
    assert!(parsed > 1000, "{parsed} mutated files could be read");
}

#[test]
fn a_message_cannot_ask_for_endless_text() {
    let message = one(&"%10!s!".repeat(100_000), "s, ItemHexDump -- 10");
    let mut payload = vec![0xFF, 0xFF];
    payload.resize(2 + 0xFFFF, 0);
    assert!(text(&message, &payload, 8).len() <= (1 << 20) + 3);
    let message = one(&"%10!99999999d!".repeat(100_000), "n, ItemLong -- 10");
    assert!(text(&message, &[0; 4], 8).len() <= (1 << 20) + 3);
}
