//! `every_kind FOLDER [LOG…]` writes two small logs, `plain.etl` and `compressed.etl`, to the folder. The two
//! logs contain events of every header kind that the writer supports. After that, `every_kind` counts the
//! events of each kind in these two logs and in the logs `LOG…` of the folder. It writes the counts to
//! `counts.txt`, for comparison with other programs.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use etl::write::{
    ImageId, KernelEvent, Loss, PartitionInfo, ProviderEvent, Session, TraceLogging, Value, Writer,
    companion, provider_traits,
};
use etl::{Descriptor, Guid, ext_type, mode};

const CPUS: u16 = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("no folder given")?);
    std::fs::create_dir_all(&folder)?;
    write(&folder.join("plain.etl"), false)?;
    write(&folder.join("compressed.etl"), true)?;
    let own = ["plain.etl", "compressed.etl"].map(String::from);
    let mut counts = String::new();
    for name in own.into_iter().chain(arguments) {
        for (kind, count) in count(&folder.join(&name))? {
            counts += &format!("{name} {kind} {count}\n");
        }
    }
    std::fs::write(folder.join("counts.txt"), counts)?;
    Ok(())
}

fn write(path: &std::path::Path, compressed: bool) -> Result<(), Box<dyn Error>> {
    let session = Session {
        processors: CPUS,
        start: 133_000_000_000_000_000,
        boot: 132_999_000_000_000_000,
        raw_start: 1_000,
        os_build: 26_100,
        cpu_mhz: 3_000,
        name: "every kind".into(),
        log_file: "C:\\every-kind.etl".into(),
        mode: if compressed {
            mode::SEQUENTIAL | mode::RELOG
        } else {
            mode::SEQUENTIAL
        },
        flush_interval: Some(Duration::from_secs(1)),
        partition: Some(PartitionInfo::default()),
        compressed,
        ..Session::default()
    };
    let mut writer = Writer::new(File::create(path)?, session)?;
    let kernel = |hook, time, thread| KernelEvent {
        hook,
        version: 2,
        time,
        thread,
    };
    let masks = companion::extension([0x10, 0, 0, 0, 0, 0, 0, 0], 80);
    let extension = kernel(etl::ids::hook::EXTENSION, 1_000, Some((8, 4)));
    writer.kernel(0, extension, &masks)?;
    let traits = provider_traits("Every", None);
    let image = ImageId {
        base: 0x7FF0_0000_0000,
        size: 0x1000,
        process_id: 8,
        time_stamp: 7,
        file_name: "every.exe",
    };
    for i in 0..3_000_i64 {
        let time = 1_000 + i * 10_000;
        let cpu = (i % i64::from(CPUS)) as u16;
        writer.kernel(cpu, kernel(0x0F2E, time, None), &[i as u8; 16])?;
        if i % 2 == 0 {
            // This event has a thread in its header.
            writer.kernel(cpu, kernel(0x0B20, time, Some((8, 4))), &[0; 24])?;
        }
        if i % 3 == 0 {
            let mut event = TraceLogging::new("Tick");
            event.field("Number", Value::U32(i as u32));
            event.field("Text", Value::Utf16("tick"));
            let header = ProviderEvent {
                provider: Guid([7; 16]),
                descriptor: Descriptor {
                    channel: 11,
                    level: 5,
                    ..Descriptor::default()
                },
                time,
                thread_id: 8,
                process_id: 4,
                activity: Guid::ZERO,
                extended: &[
                    (ext_type::TRACELOGGING_SCHEMA, &event.schema()),
                    (ext_type::PROVIDER_TRAITS, &traits),
                ],
            };
            writer.provider(cpu, header, event.payload())?;
        }
        if i % 5 == 0 {
            let event = image.event();
            writer.classic(cpu, event.at(time, 8, 4), &event.payload)?;
        }
        if i == 1_000 {
            let loss = Loss {
                events: 9,
                buffers: 0,
            };
            writer.lose(2, loss)?;
        }
    }
    writer.finish()?;
    Ok(())
}

/// Returns the number of events of each kind of header. The events are read with the reader of this crate.
fn count(path: &std::path::Path) -> Result<BTreeMap<&'static str, u64>, Box<dyn Error>> {
    let trace = etl::open(&[path.to_owned()])?;
    let mut counts = BTreeMap::new();
    let mut events = trace.events();
    while let Some(event) = events.next() {
        *counts.entry(event.kind().name()).or_default() += 1;
    }
    Ok(counts)
}
