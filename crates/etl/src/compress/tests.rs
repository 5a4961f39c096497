use super::*;
use crate::event::{HeaderKind, Record};
use crate::guid::Guid;
use crate::le;

/// Generator of a fixed sequence of pseudo-random numbers (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Returns data that can be compressed. It consists of runs of a byte, repetitions of earlier bytes from
    /// short and long distances, and noise.
    fn data(&mut self, length: usize) -> Vec<u8> {
        let mut data = Vec::new();
        while data.len() < length {
            let scale = 1 << self.below(12);
            let run = 1 + self.below(scale);
            match self.below(4) {
                0 => data.extend((0..run.min(64)).map(|_| self.next() as u8)),
                1 => data.extend(std::iter::repeat_n(self.next() as u8, run)),
                _ if data.is_empty() => {}
                _ => {
                    let scale = 2 << self.below(16);
                    let distance = 1 + self.below(data.len().min(scale));
                    for _ in 0..run {
                        data.push(data[data.len() - distance]);
                    }
                }
            }
        }
        data.truncate(length);
        data
    }
}

fn decompressed(
    format: Compression,
    input: &[u8],
    length: usize,
) -> Result<Vec<u8>, DecompressError> {
    let mut output = vec![0xA5; length];
    decompress(format, input, &mut output).map(|()| output)
}

fn data_file(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    assert!(
        std::path::Path::new(folder).is_dir(),
        "../shared/data is missing"
    );
    std::fs::read(format!("{folder}/etl/{name}")).unwrap()
}

/// Returns the number of events in a file of `../shared/data`, according to other programs.
fn events_in(name: &str) -> u64 {
    let files: serde_json::Value = serde_json::from_slice(&data_file("truth.json")).unwrap();
    let file = files
        .as_array()
        .unwrap()
        .iter()
        .find(|file| file["file"] == name);
    file.unwrap_or_else(|| panic!("truth.json does not name {name}"))["truth"]["total_events"]
        .as_u64()
        .unwrap()
}

struct Buffer<'a> {
    compressed: bool,
    data: &'a [u8],
    /// Number of valid bytes after decompression, without the buffer header.
    length: usize,
}

/// Returns the buffers of a trace.
fn buffers(file: &[u8]) -> Vec<Buffer<'_>> {
    let mut buffers = Vec::new();
    let mut at = 0;
    while at < file.len() {
        let size = le::u32(file, at).unwrap() as usize;
        let compressed = file[at + 0x34] & 0x40 != 0;
        let saved = le::u32(file, at + 4).unwrap() as usize;
        // When a trace is merged, an event can be added to the first buffer. In this case, only the field
        // `Offset` includes the added event.
        let offset = le::u32(file, at + 0x30).unwrap() as usize;
        let valid = if compressed { saved } else { saved.max(offset) };
        buffers.push(Buffer {
            compressed,
            data: &file[at + 0x48..at + size],
            length: valid - 0x48,
        });
        at += size;
    }
    buffers
}

/// Returns the records in a buffer's event data. Panics if the records do not fill the data exactly.
fn records(data: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    let mut at = 0;
    while at < data.len() {
        let record = Record::read(data, at, 0).unwrap();
        at += usize::from(record.size).next_multiple_of(8);
        records.push(record);
    }
    // The valid bytes can end at the end of the last event or at the next multiple of 8.
    assert!(at < data.len() + 8);
    records
}

const MUSIC: &[u8] = b"F# F# G A A G F# E D D E F# F# E E F# F# G A A G F# E D D E F# E D D \
    E E F# D E F# G F# D E F# G F# E D E A F# F# G A A G F# E D D E F# E D D\0";

/// Returns the 256 bytes with the code lengths of a Huffman block. `bytes` has the offset and the value of
/// each byte that is not 0.
fn code_lengths(bytes: &[(usize, u8)]) -> Vec<u8> {
    let mut lengths = vec![0; 256];
    for &(at, byte) in bytes {
        lengths[at] = byte;
    }
    lengths
}

/// Returns the examples of [MS-XCA] section 3. Each has the format, the compressed data and the plain data.
fn examples() -> Vec<(Compression, Vec<u8>, Vec<u8>)> {
    let alphabet: Vec<u8> = (b'a'..=b'z').collect();
    let mut alphabet_codes = vec![
        (0x30, 0x50),
        (0x3B, 0x45),
        (0x3C, 0x44),
        (0x3D, 4),
        (0x80, 4),
    ];
    alphabet_codes.extend((0x31..0x3B).map(|at| (at, 0x55)));
    let mut alphabet_huffman = code_lengths(&alphabet_codes);
    alphabet_huffman.extend([
        0xD8, 0x52, 0x3E, 0xD7, 0x94, 0x11, 0x5B, 0xE9, 0x19, 0x5F, 0xF9, 0xD6, 0x7C, 0xDF, 0x8D,
        0x04, 0x00, 0x00, 0x00, 0x00,
    ]);
    let mut abc_huffman = code_lengths(&[(0x30, 0x30), (0x31, 0x23), (0x80, 2), (0x8F, 0x20)]);
    abc_huffman.extend([0xA8, 0xDC, 0x00, 0x00, 0xFF, 0x26, 0x01]);
    vec![
        (
            Compression::Xpress,
            [&[0x3F, 0, 0, 0], alphabet.as_slice()].concat(),
            alphabet.clone(),
        ),
        (
            Compression::Xpress,
            b"\xFF\xFF\xFF\x1Fabc\x17\x00\x0F\xFF\x26\x01".to_vec(),
            b"abc".repeat(100),
        ),
        (Compression::XpressHuffman, alphabet_huffman, alphabet),
        (Compression::XpressHuffman, abc_huffman, b"abc".repeat(100)),
        (
            Compression::Lznt1,
            vec![
                0x38, 0xB0, 0x88, 0x46, 0x23, 0x20, 0x00, 0x20, 0x47, 0x20, 0x41, 0x00, 0x10, 0xA2,
                0x47, 0x01, 0xA0, 0x45, 0x20, 0x44, 0x00, 0x08, 0x45, 0x01, 0x50, 0x79, 0x00, 0xC0,
                0x45, 0x20, 0x05, 0x24, 0x13, 0x88, 0x05, 0xB4, 0x02, 0x4A, 0x44, 0xEF, 0x03, 0x58,
                0x02, 0x8C, 0x09, 0x16, 0x01, 0x48, 0x45, 0x00, 0xBE, 0x00, 0x9E, 0x00, 0x04, 0x01,
                0x18, 0x90, 0x00,
            ],
            MUSIC.to_vec(),
        ),
    ]
}

#[test]
fn decodes_the_examples_of_the_specification() {
    for (format, compressed, plain) in examples() {
        assert_eq!(
            decompressed(format, &compressed, plain.len()),
            Ok(plain),
            "{format}"
        );
    }
}

#[test]
fn decodes_prefixes_and_ignores_what_follows() {
    for (format, mut compressed, plain) in examples() {
        compressed.extend([0xFF; 40]);
        for length in 0..=plain.len() {
            assert_eq!(
                decompressed(format, &compressed, length).unwrap(),
                plain[..length]
            );
        }
    }
}

#[test]
fn says_where_the_input_ends() {
    for (format, compressed, plain) in examples() {
        for length in 0..compressed.len() - 4 {
            let input = &compressed[..length];
            let mut output = vec![0; plain.len()];
            let Err(error) = decompress(format, input, &mut output) else {
                continue;
            };
            assert_eq!(error.fault, DecompressFault::InputEnds, "{format} {length}");
            assert!(error.input <= length && error.output < plain.len());
            assert_eq!(output[..error.output], plain[..error.output]);
        }
        let error = decompressed(format, &compressed, plain.len() + 100_000).unwrap_err();
        assert_eq!(error.format, format);
    }
    let error = decompressed(Compression::Xpress, b"\x3F\0\0\0abc", 26).unwrap_err();
    assert_eq!(
        error.to_string(),
        "XPRESS block, at input byte 7 and output byte 3: \
         the input ends before the output is full"
    );
}

#[test]
fn refuses_what_the_specification_forbids() {
    use Compression::{Lznt1, Xpress, XpressHuffman};
    let fault =
        |format, input: &[u8], length| decompressed(format, input, length).unwrap_err().fault;
    // The first item is a match. No output comes before it, so the distance of the match is too far.
    assert_eq!(
        fault(Xpress, b"\0\0\0\x80\x08\0", 9),
        DecompressFault::DistanceTooFar { distance: 2 }
    );
    // All bits of the first length fields (3 bits, half a byte, a byte) are set. A 16-bit length follows. Its
    // value would fit into the shorter form, so it is invalid.
    assert_eq!(
        fault(Xpress, b"\0\0\0\x40a\x07\0\x0F\xFF\x15\0", 100),
        DecompressFault::LengthTooSmall {
            stored: 21,
            least: 22
        }
    );
    assert_eq!(
        fault(XpressHuffman, &[0; 300], 9),
        DecompressFault::IncompleteCode
    );
    assert_eq!(
        fault(XpressHuffman, &[0x11; 300], 9),
        DecompressFault::IncompleteCode
    );
    assert_eq!(
        fault(Lznt1, b"\x02\x20abc", 3),
        DecompressFault::NotAChunk(0x2002)
    );
    assert_eq!(
        fault(Lznt1, b"\x02\x30abc\x02\x30abc", 6),
        DecompressFault::ChunkSize(3)
    );
    assert_eq!(
        fault(Lznt1, b"\x02\x30abc\0\0", 6),
        DecompressFault::ChunkSize(3)
    );
    assert_eq!(
        fault(Lznt1, b"\x03\xB0\x02a\x00\x10", 9),
        DecompressFault::DistanceTooFar { distance: 2 }
    );
}

#[test]
fn long_lengths_of_both_kinds() {
    // [MS-XCA] 2.3.4: a 16-bit length of 0 means that a 32-bit length follows.
    let xpress = b"\xFF\xFF\xFF\x7Fa\x07\0\x0F\xFF\0\0\x00\x00\x01\x00";
    let expected = vec![b'a'; 1 + 0x1_0000 + 3];
    assert_eq!(
        decompressed(Compression::Xpress, xpress, expected.len()),
        Ok(expected)
    );
    let endless = b"\xFF\xFF\xFF\x7Fa\x07\0\x0F\xFF\0\0\xFF\xFF\xFF\xFF";
    assert_eq!(
        decompressed(Compression::Xpress, endless, 1000),
        Ok(vec![b'a'; 1000])
    );
}

#[test]
fn decodes_the_buffers_of_real_traces() {
    for name in [
        "filtrace__etw.etl",
        "perfview__net.4.5.2.x64.etl",
        "perfview__SelfDescribingSingleEvent.etl",
        "perfview__smallEtlFile.etl",
    ] {
        let file = data_file(name);
        let mut events = 0;
        let mut compressed = 0;
        for buffer in buffers(&file) {
            if !buffer.compressed {
                events += records(&buffer.data[..buffer.length]).len();
                continue;
            }
            let data = decompressed(Compression::Xpress, buffer.data, buffer.length).unwrap();
            events += records(&data).len();
            compressed += 1;

            // The start of the block is enough to decode the first event.
            let head = &buffer.data[..buffer.data.len().min(160)];
            assert_eq!(
                decompressed(Compression::Xpress, head, 64).unwrap(),
                data[..64]
            );
        }
        assert!(compressed > 0, "{name} is not compressed");
        assert_eq!(events as u64, events_in(name), "{name}");
    }
}

#[test]
fn decodes_the_lznt1_payloads_of_a_real_trace() {
    // The classic events of WinSAT have a state, the size of the data, and an XML document
    // compressed with LZNT1.
    let winsat: Guid = "ed54dff8-c409-4cf6-bf83-05e1e61a09c4".parse().unwrap();
    let file = data_file("etwanalyzer__TraceLoggingTester.etl");
    let mut documents = 0;
    for buffer in buffers(&file) {
        let data = &buffer.data[..buffer.length];
        for record in records(data) {
            let event = &data[record.offset as usize..][..usize::from(record.size)];
            if record.kind != HeaderKind::Full64 || Guid::read(&event[24..]) != Some(winsat) {
                continue;
            }
            let length = le::u32(event, 52).unwrap() as usize;
            let text = decompressed(Compression::Lznt1, &event[56..], length).unwrap();
            let units: Vec<u16> = text
                .as_chunks()
                .0
                .iter()
                .map(|pair| u16::from_le_bytes(*pair))
                .collect();
            let text = String::from_utf16(&units).unwrap();
            let text = text
                .trim_start_matches('\u{FEFF}')
                .trim_end_matches(['\0', '\r', '\n']);
            assert!(text.starts_with('<') && text.ends_with('>'), "{text}");
            documents += 1;
        }
    }
    assert_eq!(documents, 3);
}

#[test]
fn xpress_round_trip() {
    let mut numbers = Numbers(1);
    let mut inputs: Vec<Vec<u8>> = (0..80).map(|length| numbers.data(length)).collect();
    inputs.extend((0..60).map(|step| numbers.data(997 * step)));
    inputs.push(vec![0; 300_000]);
    inputs.push((0..200_000).map(|_| numbers.next() as u8).collect());
    for input in inputs {
        let mut block = b"before".to_vec();
        compress_xpress(&input, &mut block);
        let block = block.strip_prefix(b"before").unwrap();
        assert!(block.len() <= input.len() + input.len() / 8 + 8);
        assert_eq!(
            decompressed(Compression::Xpress, block, input.len()),
            Ok(input)
        );
    }
}

#[test]
fn xpress_compresses_a_real_trace_about_as_well_as_windows() {
    let (mut ours, mut windows) = (Vec::new(), 0);
    for buffer in buffers(&data_file("perfview__net.4.5.2.x64.etl")) {
        if buffer.compressed {
            windows += buffer.data.len();
            let data = decompressed(Compression::Xpress, buffer.data, buffer.length).unwrap();
            compress_xpress(&data, &mut ours);
        }
    }
    assert!(
        ours.len() < windows / 100 * 105,
        "{} bytes, Windows makes {windows}",
        ours.len()
    );
}

/// Returns the items of an LZ77 coding of `input`: literals, and matches with distance and length.
fn items(input: &[u8], window: usize, longest: usize) -> Vec<Result<u8, (usize, usize)>> {
    let mut places = std::collections::HashMap::new();
    let mut items = Vec::new();
    let mut at = 0;
    while at < input.len() {
        let rest = &input[at..];
        let place = rest
            .first_chunk::<3>()
            .and_then(|head| places.insert(*head, at));
        match place {
            Some(from) if at - from <= window => {
                let length = rest
                    .iter()
                    .zip(&input[from..])
                    .take_while(|(a, b)| a == b)
                    .count();
                items.push(Err((at - from, length.min(longest))));
                at += length.min(longest);
            }
            _ => {
                items.push(Ok(input[at]));
                at += 1;
            }
        }
    }
    items
}

/// Returns the code lengths of a random complete code for all 512 symbols. No code has more than 15
/// bits.
fn complete_code(numbers: &mut Numbers) -> Vec<u8> {
    let mut lengths = vec![1_u8, 1];
    while lengths.len() < 512 {
        let leaf = numbers.below(lengths.len());
        if lengths[leaf] < 15 {
            lengths[leaf] += 1;
            lengths.push(lengths[leaf]);
        }
    }
    for at in (1..512).rev() {
        lengths.swap(at, numbers.below(at + 1));
    }
    lengths
}

/// Encodes `input` as [MS-XCA] 2.1.4.3 describes, with a separate random code for each 64 KiB.
fn encode_huffman(input: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut output = Vec::new();
    for block in input.chunks(1 << 16) {
        let lengths = complete_code(numbers);
        output.extend(
            lengths
                .as_chunks()
                .0
                .iter()
                .map(|[low, high]| low | high << 4),
        );
        let mut symbols: Vec<usize> = (0..512).collect();
        symbols.sort_by_key(|&symbol| (lengths[symbol], symbol));
        let mut codes = vec![0; 512];
        let (mut code, mut bits) = (0_u32, 0);
        for symbol in symbols {
            code <<= lengths[symbol] - bits;
            bits = lengths[symbol];
            codes[symbol] = code;
            code += 1;
        }

        // These are the offsets of the next two 16-bit words. Continuation bytes of lengths are written after
        // these words.
        let mut words = [output.len(), output.len() + 2];
        output.extend([0; 4]);
        let (mut free, mut word) = (16, 0_u32);
        let mut write = |output: &mut Vec<u8>, count: u32, bits: u32| {
            if free >= count {
                free -= count;
                word = word << count | bits;
            } else {
                let full = word << free | bits >> (count - free);
                output[words[0]..][..2].copy_from_slice(&(full as u16).to_le_bytes());
                words = [words[1], output.len()];
                output.extend([0; 2]);
                free = 16 + free - count;
                word = bits & ((1 << (16 - free)) - 1);
            }
        };
        for item in items(block, 65_535, 65_538) {
            match item {
                Ok(literal) => {
                    let symbol = usize::from(literal);
                    write(&mut output, lengths[symbol].into(), codes[symbol]);
                }
                Err((distance, length)) => {
                    let length = length - 3;
                    let distance_bits = distance.ilog2();
                    let symbol = 256 + ((distance_bits as usize) << 4) + length.min(15);
                    write(&mut output, lengths[symbol].into(), codes[symbol]);
                    if length >= 15 {
                        output.push((length - 15).min(255) as u8);
                        if length - 15 >= 255 {
                            output.extend((length as u16).to_le_bytes());
                        }
                    }
                    write(
                        &mut output,
                        distance_bits,
                        distance as u32 - (1 << distance_bits),
                    );
                }
            }
        }
        // These bits only fill the last word. Their value does not matter.
        write(&mut output, 15, 0);
        write(&mut output, 1, 0);
    }
    output
}

#[test]
fn huffman_round_trip() {
    let mut numbers = Numbers(2);
    for length in [1, 2, 30, 1000, 65_535, 65_536] {
        let input = numbers.data(length);
        let block = encode_huffman(&input, &mut numbers);
        assert_eq!(
            decompressed(Compression::XpressHuffman, &block, length),
            Ok(input),
            "{length}"
        );
    }
}

/// Encodes `input` as chunks of [MS-XCA] 2.5, with all matches that `items` finds.
fn encode_lznt1(input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    for plain in input.chunks(4096) {
        let header_at = output.len();
        output.extend([0; 2]);
        let mut position = 0_usize;
        let mut flags_at = 0;
        // A length has only 4 bits at the end of a chunk. So a match has at most 18 bytes.
        for (index, item) in items(plain, 4096, 18).into_iter().enumerate() {
            if index % 8 == 0 {
                flags_at = output.len();
                output.push(0);
            }
            match item {
                Ok(literal) => {
                    output.push(literal);
                    position += 1;
                }
                Err((distance, length)) => {
                    let bits = (4..=12)
                        .rev()
                        .find(|m| 1 << (m - 1) < position)
                        .unwrap_or(4);
                    let word = (distance - 1) << (16 - bits) | (length - 3);
                    output.extend((word as u16).to_le_bytes());
                    output[flags_at] |= 1 << (index % 8);
                    position += length;
                }
            }
        }
        let size = output.len() - header_at - 3;
        if size < 4096 {
            output[header_at..][..2].copy_from_slice(&(0xB000 | size as u16).to_le_bytes());
        } else {
            output.truncate(header_at);
            output.extend((0x3000 | (plain.len() - 1) as u16).to_le_bytes());
            output.extend(plain);
        }
    }
    output
}

#[test]
fn lznt1_round_trip() {
    let mut numbers = Numbers(3);
    for length in [1, 2, 30, 4095, 4096, 4097, 50_000] {
        let input = numbers.data(length);
        let block = encode_lznt1(&input);
        assert_eq!(
            decompressed(Compression::Lznt1, &block, length),
            Ok(input),
            "{length}"
        );
    }
    let noise: Vec<u8> = (0..9000).map(|_| numbers.next() as u8).collect();
    assert_eq!(
        decompressed(Compression::Lznt1, &encode_lznt1(&noise), 9000),
        Ok(noise)
    );
}

#[test]
fn damaged_blocks_are_errors_or_data() {
    let mut numbers = Numbers(4);
    let input = numbers.data(10_000);
    let mut xpress = Vec::new();
    compress_xpress(&input, &mut xpress);
    let blocks = [
        (Compression::Xpress, xpress),
        (
            Compression::XpressHuffman,
            encode_huffman(&input, &mut numbers),
        ),
        (Compression::Lznt1, encode_lznt1(&input)),
    ];
    let mut output = vec![0; 2 * input.len()];
    for (format, block) in &blocks {
        for _ in 0..4000 {
            let mut block = block.clone();
            for _ in 0..1 + numbers.below(4) {
                let at = numbers.below(block.len());
                block[at] = match numbers.below(3) {
                    0 => 0xFF,
                    1 => block[at] ^ 1 << numbers.below(8),
                    _ => numbers.next() as u8,
                };
            }
            block.truncate(numbers.below(2 * block.len()));
            let length = numbers.below(output.len());
            check_error(*format, &block, &mut output[..length]);
        }
    }
    for _ in 0..4000 {
        let noise: Vec<u8> = (0..numbers.below(600))
            .map(|_| numbers.next() as u8)
            .collect();
        let length = numbers.below(output.len());
        for (format, _) in &blocks {
            check_error(*format, &noise, &mut output[..length]);
        }
    }
}

/// Decodes `input`. If the decoding fails, checks that the error's positions are inside the input and the
/// output.
fn check_error(format: Compression, input: &[u8], output: &mut [u8]) {
    if let Err(error) = decompress(format, input, output) {
        assert_eq!(error.format, format);
        assert!(error.input <= input.len(), "{error}");
        assert!(error.output < output.len(), "{error}");
    }
}
