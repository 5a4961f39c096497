use std::io::Cursor;

use files::free_space::RESERVE;

use super::*;

/// Returns a fixed sequence of bytes that cannot be compressed.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(length)
    .collect()
}

fn data_file(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    assert!(
        std::path::Path::new(folder).is_dir(),
        "../shared/data is missing"
    );
    std::fs::read(format!("{folder}/etl/{name}")).unwrap()
}

fn extract_bytes(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, ArchiveError> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let members = extract(file)?;
    Ok(members
        .into_iter()
        .map(|Member { name, data }| match data {
            MemberData::Memory(bytes) => (name, bytes),
            MemberData::File(mut file) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).unwrap();
                (name, bytes)
            }
        })
        .collect())
}

fn zip_of(members: &[(&str, &[u8])], method: zip::CompressionMethod) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(method);
    for (name, data) in members {
        writer.start_file(*name, options).unwrap();
        writer.write_all(data).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn deflated(members: &[(&str, &[u8])]) -> Vec<u8> {
    zip_of(members, zip::CompressionMethod::Deflated)
}

fn cabinet_of(members: &[(&str, &[u8])], compression: cab::CompressionType) -> Vec<u8> {
    let mut builder = cab::CabinetBuilder::new();
    let folder = builder.add_folder(compression);
    for (name, _) in members {
        folder.add_file(*name);
    }
    let mut writer = builder.build(Cursor::new(Vec::new())).unwrap();
    let mut data = members.iter();
    while let Some(mut file) = writer.next_file().unwrap() {
        file.write_all(data.next().unwrap().1).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn owned(members: &[(&str, &[u8])]) -> Vec<(String, Vec<u8>)> {
    members
        .iter()
        .map(|(name, data)| ((*name).to_owned(), data.to_vec()))
        .collect()
}

#[test]
fn takes_traces_out_of_a_zip() {
    let trace = data_file("perfview__gcevents.etl");
    let other = data_file("perfview__smallEtlFile.etl");
    for method in [
        zip::CompressionMethod::Deflated,
        zip::CompressionMethod::Stored,
    ] {
        let archive = zip_of(
            &[
                ("[Content_Types].xml", b"<Types/>"),
                ("folder/", b""),
                ("trace.ETL", &trace),
                // A member of a .diagsession can lack the suffix `.etl`.
                ("6F2F8CB4/0001", &other),
                ("../../etc/passwd.etl", &other),
                ("inner.zip", &deflated(&[("trace.etl", &trace)])),
            ],
            method,
        );
        assert!(is_archive(&archive));
        assert_eq!(
            extract_bytes(&archive).unwrap(),
            owned(&[
                ("trace.ETL", &trace),
                ("6F2F8CB4/0001", &other),
                ("../../etc/passwd.etl", &other)
            ])
        );
    }
}

#[test]
fn members_of_one_name_are_refused_in_a_zip_and_read_from_a_cabinet() {
    let trace = data_file("perfview__gcevents.etl");
    let other = data_file("perfview__smallEtlFile.etl");
    let same = [("a.etl", &trace[..]), ("a.etl", &other)];
    // The writer of zip archives refuses equal names, so the second name is replaced afterwards.
    let mut archive = zip_of(
        &[("x", b""), ("a.etl", &trace), ("b.etl", &other)],
        zip::CompressionMethod::Stored,
    );
    for at in 0..archive.len() - 5 {
        if archive[at..].starts_with(b"b.etl") {
            archive[at] = b'a';
        }
    }
    let error = extract_bytes(&archive).unwrap_err();
    assert!(
        matches!(&error, ArchiveError::SameName { name } if name == "a.etl"),
        "{error}"
    );
    let cabinet = cabinet_of(&same, cab::CompressionType::None);
    assert_eq!(extract_bytes(&cabinet).unwrap(), owned(&same));
}

#[test]
fn large_members_go_to_a_file() {
    let trace = vec![7; MAX_IN_MEMORY as usize + 1];
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&deflated(&[("a.etl", &trace), ("b.etl", &trace[1..])]))
        .unwrap();
    let members = extract(file).unwrap();
    let MemberData::File(large) = &members[0].data else {
        panic!("in memory")
    };
    assert_eq!(large.metadata().unwrap().len(), MAX_IN_MEMORY + 1);
    assert!(matches!(&members[1].data, MemberData::Memory(bytes) if *bytes == trace[1..]));
}

#[test]
fn says_what_is_inside_instead() {
    let error = extract_bytes(&deflated(&[("notes.txt", b"hello"), ("a\nb", b"")])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the archive contains no trace (.etl); inside: \"notes.txt\", \"a\\nb\""
    );
    let names: Vec<String> = (0..30).map(|number| format!("{number}.txt")).collect();
    let many: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
    let error = extract_bytes(&deflated(&many)).unwrap_err();
    assert!(
        error.to_string().ends_with("\"19.txt\" and 10 more"),
        "{error}"
    );
    let error = extract_bytes(&deflated(&[])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the archive contains no trace (.etl); it is empty"
    );
    for bytes in [
        &b""[..],
        b"PK",
        b"regf....",
        &data_file("perfview__smallEtlFile.etl"),
    ] {
        assert!(!is_archive(bytes));
        assert!(matches!(
            extract_bytes(bytes),
            Err(ArchiveError::NotAnArchive)
        ));
    }
}

/// Returns the offset of the last occurrence of `needle` in `bytes`.
fn last_place(bytes: &[u8], needle: &[u8]) -> usize {
    bytes
        .windows(needle.len())
        .rposition(|window| window == needle)
        .unwrap()
}

const FREE: &dyn Fn() -> Option<u64> = &|| None;

fn read(
    traces: &mut Traces<'_>,
    name: &str,
    data: &[u8],
    declared: u64,
) -> Result<(), ArchiveError> {
    traces.read_member(name.to_owned(), data, declared)
}

#[test]
fn stops_at_archives_that_expand_too_far() {
    // A short trace may have almost empty buffers. Such buffers compress a thousand times.
    let zeros = vec![0; 10 << 20];
    assert_eq!(
        extract_bytes(&deflated(&[("a.etl", &zeros)])).unwrap()[0].1,
        zeros
    );
    assert_eq!(expansion_limit(5 << 20), 1 << 30);
    assert_eq!(expansion_limit(50 << 20), 10_000 << 20);

    // Some zip bombs have several directory entries for the same data. Here, two such entries share one limit
    // of the expanded size.
    let size = zeros.len() as u64;
    let mut limited = Traces::new(15 << 20, FREE);
    read(&mut limited, "a.etl", &zeros, size).unwrap();
    let error = read(&mut limited, "b.etl", &zeros, size).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the archive expands to more than 15 MiB; \"b.etl\" exceeded this limit; only damaged or hostile \
         archives expand so much; if you trust the archive, unpack it and give the .etl file"
    );

    // If a member's data is longer than its stated size, the expansion stops, both in memory and in a file.
    let mut honest = Traces::new(u64::MAX, FREE);
    for declared in [1 << 20, MAX_IN_MEMORY + 1] {
        let error = honest.read_member("a.etl".to_owned(), io::repeat(0), declared);
        assert!(
            matches!(error, Err(ArchiveError::Understated { declared: found, .. }) if found == declared)
        );
    }
}

#[test]
fn temporary_files_leave_space() {
    let large = MAX_IN_MEMORY + 1;
    let free = std::cell::Cell::new(large + RESERVE - 1);
    let checks = std::cell::Cell::new(0);
    let free_space = || {
        checks.set(checks.get() + 1);
        Some(free.get())
    };
    // The disk has too little free space from the start, so nothing is read.
    let mut traces = Traces::new(u64::MAX, &free_space);
    let error = traces.read_member("a.etl".to_owned(), io::repeat(0), large);
    let error = error.unwrap_err();
    assert!(
        matches!(&error, ArchiveError::NoSpace { lack, .. }
            if (lack.needed, lack.free) == (large, large + RESERVE - 1)),
        "{error}"
    );
    let text = error.to_string();
    let folder = std::env::temp_dir();
    for part in [
        "needs 65 MiB",
        folder.to_str().unwrap(),
        "320 MiB are free and 256 MiB must stay free",
        if cfg!(windows) {
            "set TMP to"
        } else {
            "set TMPDIR to"
        },
    ] {
        assert!(text.contains(part), "{text}");
    }
    // With one more byte of free space, the member fits. Small members stay in memory, so they need no free
    // space.
    free.set(large + RESERVE);
    read(&mut traces, "b.etl", &vec![0; large as usize], large).unwrap();
    free.set(0);
    read(&mut traces, "c.etl", b"short", 5).unwrap();
    assert_eq!(traces.members.len(), 2);

    // Another program fills the disk while the member is expanded.
    checks.set(0);
    let filling = || {
        checks.set(checks.get() + 1);
        Some(if checks.get() == 1 { u64::MAX } else { RESERVE })
    };
    let mut traces = Traces::new(u64::MAX, &filling);
    let error = traces.read_member("d.etl".to_owned(), io::repeat(0), 10 * BETWEEN_CHECKS);
    assert!(
        matches!(error, Err(ArchiveError::NoSpace { lack, .. }) if lack.needed == 9 * BETWEEN_CHECKS)
    );
}

#[test]
fn names_the_member_that_is_damaged() {
    let trace = noise(5000);
    let archive = zip_of(&[("a.etl", &trace)], zip::CompressionMethod::Stored);
    let mut damaged = archive.clone();
    damaged[1000] ^= 1;
    let error = extract_bytes(&damaged).unwrap_err();
    assert!(
        matches!(&error, ArchiveError::Member { name, .. } if name == "a.etl"),
        "{error}"
    );

    // Compression method 99 means an encryption that is not supported.
    let mut encrypted = archive.clone();
    let directory = last_place(&archive, b"PK\x01\x02");
    encrypted[directory + 10] = 99;
    let error = extract_bytes(&encrypted).unwrap_err();
    assert!(
        matches!(
            error,
            ArchiveError::Member { .. } | ArchiveError::Unreadable(_)
        ),
        "{error}"
    );

    let error = extract_bytes(&archive[..4000]).unwrap_err();
    assert!(matches!(error, ArchiveError::Unreadable(_)), "{error}");
}

#[test]
fn takes_traces_out_of_a_cabinet() {
    let trace = data_file("perfview__gcevents.etl");
    let other = data_file("perfview__smallEtlFile.etl");
    let members: &[(&str, &[u8])] = &[
        ("report.html", b"<html>"),
        ("report.etl", &trace),
        ("empty.xml", b""),
        ("adapter\\0001", &other),
    ];
    let wanted = owned(&[("report.etl", &trace), ("adapter\\0001", &other)]);
    for compression in [cab::CompressionType::None, cab::CompressionType::MsZip] {
        let archive = cabinet_of(members, compression);
        assert!(is_archive(&archive));
        assert_eq!(extract_bytes(&archive).unwrap(), wanted);

        let error = extract_bytes(&archive[..archive.len() - 9]).unwrap_err();
        // The archive ends inside its last block. This block also contains the end of report.etl. So the
        // error names report.etl.
        assert!(matches!(&error, ArchiveError::Member { name, .. } if name == "report.etl"));
        let mut damaged = archive.clone();
        let middle = archive.len() / 2;
        damaged[middle] ^= 1;
        let error = extract_bytes(&damaged).unwrap_err();
        assert!(matches!(&error, ArchiveError::Member { name, .. } if name == "report.etl"));
        assert!(error.to_string().contains("checksum"), "{error}");
    }
}

const HI: &[u8] = b"Hello, world!\r\n";
const BYE: &[u8] = b"See you later!\r\n";

/// Returns a cabinet with hi.etl and bye.etl in one LZX folder. The cabinet is built field by field from
/// [MS-CAB].
fn lzx_cabinet() -> Vec<u8> {
    // The LZX data begins with these bits: one bit 0 (no x86 translation), 3 bits for an uncompressed LZX
    // block, 24 bits for the size of the block, and 4 bits that fill the word. Words are little-endian. The
    // highest bit of a word comes first. After these bits come three recent match distances.
    let mut lzx = vec![0x00, 0x30, 0xF0, 0x01, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0];
    lzx.extend([HI, BYE].concat());
    lzx.push(0);

    let mut cabinet = b"MSCF\0\0\0\0".to_vec();
    let u32s = |bytes: &mut Vec<u8>, values: &[u32]| {
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    let u16s = |bytes: &mut Vec<u8>, values: &[u16]| {
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    // These fields are the size of the cabinet (which no code reads), a reserved field, the offset of the
    // file list, and another reserved field.
    u32s(&mut cabinet, &[0, 0, 44, 0]);
    // These fields are the version, the number of folders, the number of files, the flags, the id of the set,
    // and the index of the cabinet in the set.
    u16s(&mut cabinet, &[0x0103, 1, 2, 0, 0, 0]);
    // The entry of the folder has the offset of its first block, the number of blocks, and the method: LZX
    // with a window of 2^19 bytes.
    u32s(&mut cabinet, &[91]);
    u16s(&mut cabinet, &[1, 0x1303]);
    for (name, size, start) in [(&b"hi.etl\0"[..], 15, 0), (b"bye.etl\0", 16, 15)] {
        u32s(&mut cabinet, &[size, start]);
        // These fields are the index of the folder, the date, the time and the attributes of the file.
        u16s(&mut cabinet, &[0, 0, 0, 0x20]);
        cabinet.extend(name);
    }
    assert_eq!(cabinet.len(), 91);
    // A block starts with its checksum (0 means none), its compressed size and its expanded size.
    u32s(&mut cabinet, &[0]);
    u16s(&mut cabinet, &[lzx.len() as u16, 31]);
    cabinet.extend(lzx);
    cabinet
}

#[test]
fn takes_traces_out_of_an_lzx_cabinet() {
    assert_eq!(
        extract_bytes(&lzx_cabinet()).unwrap(),
        owned(&[("hi.etl", HI), ("bye.etl", BYE)])
    );
}

#[test]
fn damaged_archives_are_errors_or_traces() {
    let trace = [&noise(3000)[..], &[0; 70_000], &noise(3000)].concat();
    let members: &[(&str, &[u8])] = &[("a.txt", &trace[..99]), ("b.etl", &trace), ("c", &trace)];
    let archives = [
        deflated(members),
        cabinet_of(members, cab::CompressionType::None),
        cabinet_of(members, cab::CompressionType::MsZip),
        lzx_cabinet(),
    ];
    let changes = noise(400 * 8);
    for archive in archives {
        for change in changes.as_chunks::<8>().0 {
            let mut archive = archive.clone();
            for [high, low, value, kind] in change.as_chunks::<4>().0 {
                let place = usize::from(*high) << 8 | usize::from(*low);
                // Two thirds of the changes are near the start or the end of the archive, because the headers
                // are there.
                let at = match kind % 3 {
                    0 => place % archive.len(),
                    1 => place % archive.len().min(200),
                    _ => archive.len() - 1 - place % archive.len().min(200),
                };
                archive[at] = if kind & 64 == 0 {
                    *value
                } else {
                    archive[at] ^ 1 << (value % 8)
                };
            }
            let _ = extract_bytes(&archive);
        }
    }
}

#[test]
fn a_cabinet_may_point_past_its_data() {
    // In this archive, hi.etl starts far after the end of the folder's data.
    let mut archive = lzx_cabinet();
    archive[48..52].copy_from_slice(&[0xFF, 0, 0, 0]);
    assert!(matches!(
        extract_bytes(&archive),
        Err(ArchiveError::Member { .. })
    ));
    archive[48..52].copy_from_slice(&[0xFF; 4]);
    assert!(matches!(
        extract_bytes(&archive),
        Err(ArchiveError::TooLarge { .. })
    ));
    // In this archive, the folder has no blocks.
    let mut archive = lzx_cabinet();
    archive[40] = 0;
    assert!(matches!(
        extract_bytes(&archive),
        Err(ArchiveError::Member { .. })
    ));
    // In this archive, bye.etl starts before the end of hi.etl.
    let mut archive = lzx_cabinet();
    archive[71] = 14;
    assert!(matches!(
        extract_bytes(&archive),
        Err(ArchiveError::Unreadable(_))
    ));
}
