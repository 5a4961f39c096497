//! Tests of the reader of program files: version, PDB and names. The tests make the files.

use tune::image::{Image, ImageError, Mention, Version, mention};

/// Returns a 64-bit program file with one section. The section contains a version resource, a reference to a
/// PDB, and `names`. The layout follows the PE specification.
fn program(version: [u16; 4], names: &[u8]) -> Vec<u8> {
    const SECTION: u32 = 0x1000;
    const FILE_AT: usize = 0x400;
    let mut section = Vec::new();
    let put = |to: &mut Vec<u8>, numbers: &[u32]| {
        to.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    };
    // Write three directories with one numbered entry each: type 16 (version), name 1, language 1033.
    for (id, next) in [(16, 24), (1, 48)] {
        put(&mut section, &[0, 0, 0, 1 << 16, id, 0x8000_0000 | next]);
    }
    put(&mut section, &[0, 0, 0, 1 << 16, 1033, 72]);
    // Write the address of the resource's data: 0x100 in the section, 6 bytes before the fixed part.
    put(&mut section, &[SECTION + 0x100, 0x40, 0, 0]);
    section.resize(0x106, 0);
    let [major, minor, build, revision] = version.map(u32::from);
    put(
        &mut section,
        &[
            0xFEEF_04BD,
            0x1_0000,
            major << 16 | minor,
            build << 16 | revision,
        ],
    );
    // Write the debug directory at 0x200. It has one entry of type 2 (CodeView), whose data is at 0x240.
    section.resize(0x200, 0);
    put(
        &mut section,
        &[0, 0, 0, 2, 24 + 13, SECTION + 0x240, FILE_AT as u32 + 0x240],
    );
    section.resize(0x240, 0);
    section.extend(b"RSDS");
    section.extend((0..16).collect::<Vec<u8>>());
    put(&mut section, &[3]);
    section.extend(b"ntkrnlmp.pdb\0");
    section.resize(0x300, 0);
    section.extend(names);
    section.resize(section.len().next_multiple_of(0x200), 0);

    let mut file = vec![0; 0x80];
    file[..2].copy_from_slice(b"MZ");
    file[0x3c] = 0x80;
    file.extend(b"PE\0\0");
    file.extend(0x8664_u16.to_le_bytes());
    file.extend(1_u16.to_le_bytes());
    file.extend([0; 12]);
    file.extend(240_u16.to_le_bytes());
    file.extend(0x22_u16.to_le_bytes());
    let mut optional = vec![0; 240];
    optional[..2].copy_from_slice(&0x20b_u16.to_le_bytes());
    optional[32..36].copy_from_slice(&0x1000_u32.to_le_bytes());
    optional[36..40].copy_from_slice(&0x200_u32.to_le_bytes());
    optional[108..112].copy_from_slice(&16_u32.to_le_bytes());
    let mut directory = |number: usize, at: u32, size: u32| {
        let place = 112 + 8 * number;
        optional[place..place + 4].copy_from_slice(&at.to_le_bytes());
        optional[place + 4..place + 8].copy_from_slice(&size.to_le_bytes());
    };
    directory(2, SECTION, 0x200);
    directory(6, SECTION + 0x200, 28);
    file.extend(optional);
    file.extend(b".rsrc\0\0\0");
    put(
        &mut file,
        &[
            section.len() as u32,
            SECTION,
            section.len() as u32,
            FILE_AT as u32,
            0,
            0,
            0,
            0x4000_0040,
        ],
    );
    file.resize(FILE_AT, 0);
    file.extend(section);
    file
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn a_program_says_its_version_and_its_pdb() {
    let image = Image::read(&program([10, 0, 22621, 1928], &[])).expect("a program");
    assert_eq!(image.version, Some(Version([10, 0, 22621, 1928])));
    assert_eq!(image.version.map(Version::build), Some(22621));
    let pdb = image.pdb.expect("a PDB");
    assert_eq!((pdb.path.as_str(), pdb.age), ("ntkrnlmp.pdb", 3));
    assert_eq!(pdb.guid, std::array::from_fn(|place| place as u8));
}

#[test]
fn a_name_is_found_as_a_whole_word() {
    let name = "GlobalTimerResolutionRequests";
    let found = |names: &[u8]| mention(&program([10, 0, 0, 0], names), name);
    let mut terminated = wide(name);
    terminated.extend([0, 0]);
    assert_eq!(found(&terminated), Some(Mention::Utf16 { offset: 0x700 }));
    assert_eq!(
        found(name.as_bytes()),
        Some(Mention::Ascii { offset: 0x700 })
    );
    // A part of a longer name is not a match.
    assert_eq!(found(&wide("KiGlobalTimerResolutionRequests")), None);
    assert_eq!(found(b"GlobalTimerResolutionRequestsEx\0"), None);
    assert_eq!(found(&[]), None);
}

#[test]
fn what_is_no_program_or_a_damaged_one_is_said_to_be() {
    assert!(matches!(Image::read(b"regf"), Err(ImageError::NotPe)));
    assert!(matches!(Image::read(&[]), Err(ImageError::NotPe)));
    let whole = program([10, 0, 22621, 1], &wide("x"));
    for length in 0..whole.len() {
        let _ = Image::read(&whole[..length]);
    }
    let mut rng = testdata::Rng(5);
    for _ in 0..20_000 {
        let mut damaged = whole.clone();
        let place = rng.below(0x700);
        damaged[place] = rng.bits() as u8;
        let _ = Image::read(&damaged);
    }
}
