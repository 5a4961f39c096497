//! Checks that reading damaged traces never panics, and that all damage is reported.

use std::io;
use std::sync::Arc;

use etl::{BufferReader, OpenError, Trace};
use files::Source;
use testdata::Rng;

/// A file with a cut-off end and some flipped bits. The changes are made while the file is read, so the bytes
/// need not be copied.
struct Damaged {
    bytes: Arc<[u8]>,
    len: usize,
    flips: Vec<(usize, u8)>,
}

impl Source for Damaged {
    fn len(&self) -> u64 {
        self.len as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = (offset as usize).min(self.len);
        let n = into.len().min(self.len - from);
        into[..n].copy_from_slice(&self.bytes[from..from + n]);
        for (at, bit) in &self.flips {
            if (from..from + n).contains(at) {
                into[at - from] ^= bit;
            }
        }
        Ok(n)
    }
}

/// Opens the damaged file, reads all its events and returns the number of events and the number of faults.
/// Also checks that the walk in time order returns the same number of events. For files of 1 MiB or more, the
/// walk is checked only in a tenth of the cases.
fn walk(source: Damaged) -> Result<(usize, u64), OpenError> {
    let merge = source.bytes.len() < 1 << 20
        || (source.len + source.flips.iter().map(|f| f.0).sum::<usize>()).is_multiple_of(10);
    let trace = Trace::from_sources(vec![("damaged".into(), Box::new(source))])?;
    let mut reader = BufferReader::new(&trace);
    let mut count = 0;
    let mut bytes = 0;
    for buffer in trace.buffers() {
        for event in reader.read(buffer) {
            count += 1;
            bytes += event.payload().len() + event.extended_items().count();
        }
    }
    std::hint::black_box(bytes);
    if merge {
        let mut events = trace.events();
        let mut merged = 0;
        while events.next().is_some() {
            merged += 1;
        }
        assert_eq!(merged, count, "the merge loses or invents events");
    }
    let damage = trace.damage().counts().values().sum::<u64>()
        + reader.damage().counts().values().sum::<u64>();
    Ok((count, damage))
}

/// Runs `case` for every data file in parallel.
fn for_every_file(case: impl Fn(&str, Arc<[u8]>) + Sync) {
    let files = testdata::traces();
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, |n| n.get()) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some((name, _)) = files.get(i) else { break };
                    case(name, testdata::bytes(name).into());
                }
            });
        }
    });
}

#[test]
fn truncated_anywhere() {
    for_every_file(|name, bytes| {
        let full = walk(Damaged {
            bytes: bytes.clone(),
            len: bytes.len(),
            flips: vec![],
        })
        .unwrap();
        assert_eq!(full.1, 0, "{name} is undamaged");
        let mut rng = Rng(bytes.len() as u64);
        for _ in 0..testdata::rounds(200) {
            let len = rng.below(bytes.len());
            match walk(Damaged {
                bytes: bytes.clone(),
                len,
                flips: vec![],
            }) {
                Ok((count, damage)) => {
                    assert!(
                        count <= full.0,
                        "{name} cut at {len} has more events than whole"
                    );
                    assert!(
                        count == full.0 || damage > 0 || ends_at_a_buffer(&bytes, len),
                        "{name} cut at {len} lost {} events silently",
                        full.0 - count
                    );
                }
                // An error is correct only if the cut removed the first event.
                Err(error) => assert!(len < 0x48 + 600, "{name} cut at {len}: {error}"),
            }
        }
    });
}

/// Returns true if a buffer of the undamaged file ends at `len`. If the file is cut at such an offset, the
/// chain of buffers does not show the cut.
fn ends_at_a_buffer(bytes: &Arc<[u8]>, len: usize) -> bool {
    let whole = Damaged {
        bytes: bytes.clone(),
        len: bytes.len(),
        flips: vec![],
    };
    let trace = Trace::from_sources(vec![("whole".into(), Box::new(whole))]).unwrap();
    trace
        .buffers()
        .iter()
        .any(|b| b.offset + u64::from(b.stored_size) == len as u64)
}

#[test]
fn flipped_bits() {
    for_every_file(|name, bytes| {
        let mut rng = Rng(!(bytes.len() as u64));
        let mut noticed = 0;
        // Reading a large file takes long. One flipped bit affects only one of its many buffers. So several
        // bits are flipped at once in large files.
        let at_once = (bytes.len() >> 20).clamp(1, 8);
        for _ in 0..testdata::rounds(1000) as usize / at_once {
            // Half of the flipped bits are in the first bytes of a buffer. Damage there has the greatest
            // effect.
            let flips: Vec<(usize, u8)> = (0..at_once)
                .map(|_| {
                    let at = match rng.below(2) {
                        0 => rng.below(bytes.len()),
                        _ => {
                            let buffers = 1 + bytes.len() / 65_536;
                            (rng.below(buffers) * 65_536 + rng.below(0x80)).min(bytes.len() - 1)
                        }
                    };
                    (at, 1u8 << rng.below(8))
                })
                .collect();
            match walk(Damaged {
                bytes: bytes.clone(),
                len: bytes.len(),
                flips: flips.clone(),
            }) {
                Ok((_, damage)) => noticed += u64::from(damage > 0),
                Err(OpenError::NotATrace { .. }) => noticed += 1,
                Err(error) => panic!("{name} flipped at {flips:?}: {error}"),
            }
        }
        assert!(noticed > 0, "{name}: no flip was noticed");
    });
}

#[test]
fn noise_is_not_a_trace() {
    let mut rng = Rng(9);
    for size in [1, 71, 72, 100, 4_096, 1 << 20] {
        let bytes: Vec<u8> = (0..size).map(|_| rng.bits() as u8).collect();
        let result = Trace::from_sources(vec![("noise".into(), Box::new(bytes))]);
        assert!(
            matches!(result, Err(OpenError::NotATrace { .. })),
            "{size} bytes of noise"
        );
        let zeros = vec![0u8; size];
        assert!(Trace::from_sources(vec![("zeros".into(), Box::new(zeros))]).is_err());
    }
    let empty = Trace::from_sources(vec![("empty".into(), Box::new(Vec::new()))]);
    assert!(matches!(empty, Err(OpenError::Empty { .. })));
    assert!(matches!(
        Trace::from_sources(vec![]),
        Err(OpenError::NoFiles)
    ));
}

#[test]
fn a_damaged_buffer_does_not_hide_its_neighbours() {
    // In an uncompressed file whose buffers have the same size, damage to the buffer with index 10
    // must not affect the other buffers.
    let name = "etl/gpuvis__wintracecmd.etl";
    let bytes: Arc<[u8]> = testdata::bytes(name).into();
    let whole = walk(Damaged {
        bytes: bytes.clone(),
        len: bytes.len(),
        flips: vec![],
    })
    .unwrap();
    for at in 0..0x48 {
        for bit in 0..8 {
            let flips = vec![(10 * 65_536 + at, 1 << bit)];
            let (count, _) = walk(Damaged {
                bytes: bytes.clone(),
                len: bytes.len(),
                flips,
            })
            .unwrap();
            let lost = whole.0.abs_diff(count);
            assert!(
                lost < 1_500,
                "bit {bit} of header byte {at} cost {lost} events"
            );
        }
    }
}
