//! Checks that the views of frequent kernel events agree with the table of layouts.

use std::fmt::Display;

use events::kernel::{self, Class};
use events::{Ansi, Fields, Utf16, Value, decode};

use crate::vectors;

use vectors::vectors;

/// Conversion of a view's field into text. The text is `-` if the field is absent.
trait Seen {
    fn seen(&self) -> String;
}

macro_rules! seen_as_displayed {
    ($($ty:ty),*) => {$(
        impl Seen for $ty {
            fn seen(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

seen_as_displayed!(
    u8,
    i8,
    u16,
    i16,
    u32,
    i32,
    u64,
    i64,
    Utf16<'_>,
    Ansi<'_>,
    std::net::IpAddr,
    etl::Guid
);

impl<T: Seen> Seen for Option<T> {
    fn seen(&self) -> String {
        self.as_ref().map_or("-".to_owned(), Seen::seen)
    }
}

impl Seen for &[u8] {
    fn seen(&self) -> String {
        Value::Sid(self).to_string()
    }
}

impl Seen for bool {
    fn seen(&self) -> String {
        u8::from(*self).to_string()
    }
}

fn joined<T: Display>(values: impl Iterator<Item = T>) -> String {
    values
        .map(|value| value.to_string())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns a decoded field as text. `names` are alternative names of the field.
fn table(fields: &Fields<'_>, names: &str) -> String {
    let Some(value) = names.split('|').find_map(|name| fields.get(name)) else {
        return "-".to_owned();
    };
    match value {
        Value::Null => "-".to_owned(),
        Value::Array(values) => joined(values.iter().filter_map(Value::as_u64)),
        Value::Int(value) => value.to_string(),
        value => value
            .as_u64()
            .map_or_else(|| value.to_string(), |number| number.to_string()),
    }
}

/// Returns one named bit field of a decoded field as text.
fn bit(fields: &Fields<'_>, name: &str, bit: &str) -> String {
    match fields.get(name) {
        Some(Value::Struct(bits)) => bits
            .iter()
            .find(|(name, _)| &**name == bit)
            .map_or("-".to_owned(), |(_, value)| value.to_string()),
        _ => "-".to_owned(),
    }
}

/// Name of a field, the value that the table of layouts gives, and the value in the view.
type Pairs = Vec<(&'static str, String, String)>;

macro_rules! pairs {
    ($fields:ident; $($name:literal => $value:expr),* $(,)?) => {
        vec![$(($name, table(&$fields, $name), Seen::seen(&$value))),*]
    };
}

/// Reads a payload with the table of layouts and with the view of the event. Returns `None` if the event has
/// no view.
#[expect(clippy::too_many_lines, reason = "a table")]
fn read(
    class: &'static Class,
    opcode: u8,
    version: u8,
    payload: &[u8],
    width: usize,
) -> Option<Pairs> {
    let layout = class.layout(opcode, version)?;
    let f = decode(&layout.fields, payload, width);
    let args = (payload, version, width);
    macro_rules! view {
        ($view:ident) => {
            kernel::$view::read(args.0, args.1, args.2).unwrap()
        };
    }
    Some(match (class.name, opcode) {
        ("Thread", 36) => {
            let v = view!(ContextSwitch);
            let mut pairs = pairs![f;
                "NewThreadId" => v.new_thread_id, "OldThreadId" => v.old_thread_id,
                "NewThreadPriority" => v.new_priority, "OldThreadPriority" => v.old_priority,
                "OldThreadWaitReason" => v.old_wait_reason, "OldThreadState" => v.old_state,
                "OldThreadIdealProcessor" => v.old_ideal_processor,
                "NewThreadQuantum" => v.new_quantum, "OldThreadQuantum" => v.old_quantum,
                "NewThreadPriorityDecrement" => v.new_priority_decrement.map(|p| p as i8),
                "NewThreadWaitTime" => v.new_wait_time,
                "OldThreadRemainingQuantum" => v.old_remaining_quantum,
                "Unknown24" => v.unknown_flags,
                "PreviousCStateOrOldThreadRank" => v.old_rank().or(v.previous_c_state()),
            ];
            let flags = |name: &str| bit(&f, "ThreadFlags", name);
            if version < 3 {
                pairs.extend(pairs![f; "OldThreadWaitMode" => v.old_wait_mode as i8]);
            } else {
                let mode = v.old_wait_mode.to_string();
                pairs.push(("OldThreadWaitMode", flags("OldThreadWaitMode"), mode));
            }
            if version == 3 {
                let (old, new) = v.bam_important.unwrap();
                pairs.push(("Old…", flags("OldThreadBamEppImportant"), old.seen()));
                pairs.push(("New…", flags("NewThreadBamEppImportant"), new.seen()));
            }
            if version >= 4 {
                let bam = if version == 4 { "Bam" } else { "" };
                let (old, new) = (
                    format!("OldThread{bam}QosLevel"),
                    format!("NewThread{bam}QosLevel"),
                );
                pairs.push(("Old…", flags(&old), v.old_qos.seen()));
                pairs.push(("New…", flags(&new), v.new_qos.seen()));
            }
            pairs
        }
        ("Thread", 1..=4) => {
            let v = view!(Thread);
            pairs![f;
                "ProcessId" => v.process_id, "TThreadId" => v.thread_id,
                "StackBase" => v.stack_base, "StackLimit" => v.stack_limit,
                "UserStackBase" => v.user_stack_base, "UserStackLimit" => v.user_stack_limit,
                "StartAddr" => v.start_address, "Affinity" => v.affinity,
                "Win32StartAddr" => v.win32_start_address, "TebBase" => v.teb,
                "SubProcessTag" => v.sub_process_tag, "BasePriority" => v.base_priority,
                "PagePriority" => v.page_priority, "IoPriority" => v.io_priority,
                "ThreadFlags" => v.flags, "ThreadName" => v.name,
            ]
        }
        ("Thread", 72) => {
            let v = view!(ThreadName);
            pairs![f; "ProcessId" => v.process_id, "ThreadId" => v.thread_id, "ThreadName" => v.name]
        }
        ("Thread", 48 | 49 | 51 | 52) => {
            let v = view!(SetPriority);
            pairs![f;
                "ThreadId" => v.thread_id, "OldPriority" => v.old, "NewPriority" => v.new,
                "DynamicPriority" => v.dynamic,
            ]
        }
        ("Thread", 50) => {
            let v = view!(ReadyThread);
            let mut pairs = pairs![f;
                "TThreadId" => v.thread_id, "AdjustReason" => v.adjust_reason,
                "AdjustIncrement" => v.adjust_increment,
            ];
            for (name, flag) in [
                ("ExecutingDpc", v.by_dpc()),
                ("KernelStackNotResident", v.kernel_stack_not_resident()),
                ("ProcessOutOfMemory", v.process_out_of_memory()),
                ("DirectSwitchAttempt", v.direct_switch_attempt()),
            ] {
                pairs.push((name, bit(&f, "Flags", name), flag.seen()));
            }
            pairs
        }
        ("Thread", 53) => {
            let v = view!(SetAffinity);
            pairs![f; "Affinity" => v.affinity, "ThreadId" => v.thread_id, "Group" => v.group]
        }
        ("Thread", 60) => {
            let v = view!(AntiStarvationBoost);
            pairs![f;
                "ThreadId" => v.thread_id, "ProcessorIndex" => v.cpu,
                "OldPriority" => v.old_priority,
            ]
        }
        ("Thread", 61) => {
            let v = view!(ThreadMigration);
            pairs![f;
                "ThreadId" => v.thread_id, "SourceProcessorIndex" => v.source_cpu,
                "TargetProcessorIndex" => v.target_cpu, "Priority" => v.priority,
                "IdealProcessorAdjust" => v.ideal_processor_adjusted,
                "OldIdealProcessorIndex" => v.old_ideal_cpu,
            ]
        }
        ("Thread", 66) => {
            let v = view!(AutoBoostSetFloor);
            let mut pairs = pairs![f;
                "Lock" => v.lock, "ThreadId" => v.thread_id,
                "NewCpuPriorityFloor" => v.new_cpu_floor, "OldCpuPriority" => v.old_cpu_priority,
            ];
            let io = |name| bit(&f, "IoPriorities", name);
            pairs.push(("NewIo…", io("NewIoPriorityFloor"), v.new_io_floor.seen()));
            pairs.push(("OldIo…", io("OldIoPriority"), v.old_io_priority.seen()));
            pairs.push((
                "Dpc",
                bit(&f, "Flags", "ExecutingDpc"),
                (v.flags & 1).seen(),
            ));
            pairs
        }
        ("Thread", 67) => {
            let v = view!(AutoBoostClearFloor);
            let mut pairs = pairs![f; "Lock" => v.lock, "ThreadId" => v.thread_id];
            pairs.push((
                "Io",
                bit(&f, "BoostBitmap", "IoBoost"),
                (v.boosts & 1).seen(),
            ));
            pairs
        }
        ("Process", 1..=4 | 39) => {
            let v = view!(Process);
            let mut pairs = pairs![f;
                "UniqueProcessKey" => v.unique_key, "SessionId" => v.session_id,
                "ExitStatus" => v.exit_status, "UserSID" => v.user_sid,
                "DirectoryTableBase|PageDirectoryBase" => v.directory_table_base,
                "Flags" => v.flags, "ImageFileName" => v.image_name,
                "CommandLine" => v.command_line, "PackageFullName" => v.package_full_name,
                "ApplicationId" => v.application_id, "ExitTime" => v.exit_time,
            ];
            pairs.push(wide_id(&f, "ProcessId", v.process_id));
            pairs.push(wide_id(&f, "ParentId", v.parent_id));
            pairs
        }
        ("Process", 11) => pairs![f; "ProcessId" => view!(ProcessTerminate).process_id],
        ("Image", 2 | 3 | 4 | 10) => {
            let v = view!(Image);
            pairs![f;
                "ImageBase|BaseAddress" => v.base, "ImageSize|ModuleSize" => v.size,
                "ProcessId" => v.process_id, "ImageChecksum" => v.checksum,
                "TimeDateStamp" => v.time_date_stamp, "SignatureLevel" => v.signature_level,
                "SignatureType" => v.signature_type, "DefaultBase" => v.default_base,
                "FileName|ImageFileName" => v.file_name,
            ]
        }
        ("ImageId", 0) => {
            let v = view!(ImageId);
            pairs![f;
                "ImageBase" => v.base, "ImageSize" => v.size, "ProcessId" => v.process_id,
                "TimeDateStamp" => v.time_date_stamp,
                "OriginalFileName" => v.original_file_name,
            ]
        }
        ("ImageId", 36 | 37) => {
            let v = view!(PdbId);
            pairs![f;
                "ImageBase" => v.base, "ProcessId" => v.process_id, "GuidSig" => v.guid,
                "Age" => v.age, "PdbFileName" => v.path,
            ]
        }
        ("PerfInfo", 46) => {
            let v = view!(Sample);
            let mut pairs = pairs![f;
                "InstructionPointer" => v.instruction_pointer, "ThreadId" => v.thread_id,
                "Count" => v.count, "Rank" => v.rank,
            ];
            if version >= 2 {
                for (name, value) in [
                    ("ExecutingDpc", v.in_dpc().seen()),
                    ("ExecutingIsr", v.in_isr().seen()),
                    ("Priority", v.priority().seen()),
                ] {
                    pairs.push((name, bit(&f, "Flags", name), value));
                }
            }
            pairs
        }
        ("PerfInfo", 47) => {
            let v = view!(CounterSample);
            pairs![f;
                "InstructionPointer" => v.instruction_pointer, "ThreadId" => v.thread_id,
                "ProfileSource" => v.source,
            ]
        }
        ("PerfInfo", _) if kernel::InterruptKind::of_opcode(opcode).is_some() => {
            let v = kernel::Interrupt::read(opcode, payload, version, width).unwrap();
            pairs![f;
                "InitialTime" => v.initial_time, "Routine" => v.routine,
                "ReturnValue" => v.return_value, "Vector" => v.vector,
                "MessageNumber" => v.message_number,
            ]
        }
        ("StackWalk", 32) => {
            let v = view!(Stack);
            let mut pairs = pairs![f;
                "EventTimeStamp" => v.event_time, "StackProcess" => v.process_id,
                "StackThread" => v.thread_id,
            ];
            assert_eq!(v.addresses.len(), v.addresses.count());
            pairs.push(("Addresses", table(&f, "Addresses"), joined(v.addresses)));
            pairs
        }
        ("StackWalk", 34..=36) => {
            let v = view!(StackDefinition);
            let mut pairs = pairs![f; "StackKey" => v.key];
            pairs.push(("Addresses", table(&f, "Addresses"), joined(v.addresses)));
            pairs
        }
        ("StackWalk", 37 | 38) => {
            let v = view!(StackReference);
            pairs![f;
                "EventTimeStamp" => v.event_time, "StackProcess" => v.process_id,
                "StackThread" => v.thread_id, "StackKey" => v.key,
            ]
        }
        ("DiskIo", 10 | 11 | 55 | 56) => {
            let v = view!(DiskTransfer);
            pairs![f;
                "DiskNumber" => v.disk, "IrpFlags" => v.irp_flags, "TransferSize" => v.size,
                "ByteOffset" => v.offset, "FileObject" => v.file_object, "Irp" => v.irp,
                "HighResResponseTime" => v.response_time,
                "IssuingThreadId" => v.issuing_thread_id,
            ]
        }
        ("DiskIo", 12 | 13 | 15 | 58..=60) => {
            let v = view!(DiskStart);
            pairs![f; "Irp" => v.irp, "IssuingThreadId" => v.issuing_thread_id]
        }
        ("DiskIo", 14 | 57) => {
            let v = view!(DiskFlush);
            pairs![f;
                "DiskNumber" => v.disk, "IrpFlags" => v.irp_flags,
                "HighResResponseTime" => v.response_time, "Irp" => v.irp,
                "IssuingThreadId" => v.issuing_thread_id,
            ]
        }
        ("FileIo", 0 | 32 | 35 | 36) => {
            let v = view!(FileName);
            pairs![f; "FileObject" => v.file_object, "FileName" => v.name]
        }
        ("FileIo", 64 | 78) => {
            let v = view!(FileCreate);
            pairs![f;
                "IrpPtr" => v.irp, "FileObject" => v.file_object,
                "CreateOptions" => v.create_options, "FileAttributes" => v.file_attributes,
                "ShareAccess" => v.share_access, "OpenPath" => v.path,
            ]
            .into_iter()
            .chain([wide_id(&f, "TTID", v.thread_id)])
            .collect()
        }
        ("FileIo", 65 | 66 | 73) => operation(&f, view!(FileOperation)),
        ("FileIo", 67 | 68) => {
            let v = view!(FileTransfer);
            let mut pairs = operation(&f, v.operation);
            pairs.extend(pairs![f;
                "Offset" => v.offset, "IoSize" => v.size, "IoFlags" => v.io_flags,
                "ExtraFlags" => v.extra_flags,
            ]);
            pairs
        }
        ("FileIo", 69..=71 | 74 | 75 | 79..=81) => {
            let v = view!(FileInfo);
            let mut pairs = operation(&f, v.operation);
            pairs.extend(pairs![f; "ExtraInfo" => v.extra_info, "InfoClass" => v.info_class]);
            pairs
        }
        ("FileIo", 76) => {
            let v = view!(FileEnd);
            pairs![f; "IrpPtr" => v.irp, "ExtraInfo" => v.extra_info, "NtStatus" => v.status]
        }
        ("PageFault", 32) => {
            let v = view!(HardFault);
            pairs![f;
                "InitialTime" => v.initial_time, "ReadOffset" => v.read_offset,
                "VirtualAddress" => v.virtual_address, "FileObject" => v.file_object,
                "TThreadId" => v.thread_id, "ByteCount" => v.size,
            ]
        }
        ("TcpIp" | "UdpIp", _) => {
            let read = match class.name {
                "TcpIp" => kernel::NetworkEvent::read_tcp,
                _ => kernel::NetworkEvent::read_udp,
            };
            let v = read(opcode, payload, version, width)?;
            pairs![f;
                "PID" => v.process_id, "size" => v.size, "daddr" => v.destination.ip(),
                "saddr" => v.source.ip(), "dport" => v.destination.port(),
                "sport" => v.source.port(), "seqnum" => v.sequence, "connid" => v.connection,
                "startime" => v.send_times.map(|times| times.0),
                "endtime" => v.send_times.map(|times| times.1),
            ]
        }
        ("SystemConfig", 10) => {
            let v = view!(Cpu);
            pairs![f;
                "MHz" => v.mhz, "NumberOfProcessors" => v.processors, "MemSize" => v.memory_mb,
                "PageSize" => v.page_size, "AllocationGranularity" => v.allocation_granularity,
                "ComputerName" => v.computer_name,
            ]
        }
        ("SystemConfig", 11) => {
            let v = view!(PhysicalDisk);
            let mut pairs = pairs![f;
                "DiskNumber" => v.disk, "BytesPerSector" => v.bytes_per_sector,
                "Manufacturer" => v.manufacturer, "PartitionCount" => v.partitions,
            ];
            let enabled = f.get("WriteCacheEnabled").unwrap().as_u64() != Some(0);
            pairs.push((
                "WriteCacheEnabled",
                enabled.seen(),
                v.write_cache_enabled.seen(),
            ));
            pairs
        }
        ("SystemConfig", 13) if version >= 2 => {
            let v = view!(NetworkInterface);
            pairs![f;
                "Ipv4Index" => v.ipv4_index, "Ipv6Index" => v.ipv6_index,
                "NICDescription" => v.description, "IpAddresses" => v.ip_addresses,
                "DnsServerAddresses" => v.dns_servers,
            ]
        }
        ("SystemConfig", 15) if version >= 2 => {
            let v = view!(Service);
            pairs![f;
                "ProcessId" => v.process_id, "ServiceState" => v.state,
                "SubProcessTag" => v.sub_process_tag, "ServiceName" => v.name,
                "DisplayName" => v.display_name, "ProcessName" => v.process_name,
            ]
        }
        ("SystemConfig", 26) => {
            let affinities = joined(view!(ProcessorGroups).affinities());
            vec![("Affinity", table(&f, "Affinity"), affinities)]
        }
        ("SystemConfig", 27) => {
            let numbers = view!(ProcessorNumbers).numbers();
            let Some(Value::Array(known)) = f.get("ProcessorNumber") else {
                panic!("{f:?}")
            };
            let known = known.iter().map(|number| match number {
                Value::Struct(parts) => format!("{}:{}", parts[0].1, parts[1].1),
                other => panic!("{other:?}"),
            });
            let numbers = numbers.map(|(group, number)| format!("{group}:{number}"));
            vec![("ProcessorNumber", joined(known), joined(numbers))]
        }
        ("SystemConfig", 35) => {
            let v = view!(Processor);
            pairs![f;
                "ProcessorIndex" => v.index, "FeatureSet" => v.feature_set,
                "ProcessorSpeed" => v.mhz, "ProcessorName" => v.name,
                "ProcessorIdentifier" => v.identifier, "VendorIdentifier" => v.vendor,
            ]
        }
        _ => return None,
    })
}

/// Returns the name of an id field, the id in the table of layouts, and the id in the view. In some versions,
/// the id has the size of a pointer in the payload.
fn wide_id(fields: &Fields<'_>, name: &'static str, id: u32) -> (&'static str, String, String) {
    let wide = fields.get(name).and_then(Value::as_u64).unwrap();
    (name, (wide as u32).to_string(), id.to_string())
}

fn operation(f: &Fields<'_>, v: kernel::FileOperation) -> Pairs {
    let mut pairs = pairs![f;
        "IrpPtr" => v.irp, "FileObject" => v.file_object, "FileKey" => v.file_key,
    ];
    pairs.push(wide_id(f, "TTID", v.thread_id));
    pairs
}

fn compare(what: &str, pairs: Pairs) -> usize {
    for (name, table, view) in &pairs {
        assert_eq!(view, table, "{what}: {name}");
    }
    pairs.len()
}

#[test]
fn views_of_real_payloads_agree_with_the_table() {
    let (mut compared, mut fields) = (0, 0);
    for v in vectors() {
        if let Some(pairs) = read(v.class, v.opcode, v.version, &v.payload, v.pointer_size) {
            fields += compare(&v.test, pairs);
            compared += 1;
        }
    }
    assert_eq!((compared, fields), (123, 942));
}

#[test]
fn views_of_every_layout_agree_with_the_table() {
    // The payload has pseudo-random bytes. So a field that is read at a wrong offset has a wrong value. The
    // payload also has NULs, because they end texts.
    let mut state = 1u32;
    let mut payload: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(8192)
    .collect();
    payload[64..]
        .chunks_mut(61)
        .for_each(|chunk| chunk.iter_mut().take(4).for_each(|b| *b = 0));
    let mut compared = 0;
    for class in kernel::classes() {
        for (opcode, version, layout) in class.layouts() {
            for width in [4, 8] {
                let what = format!("{} {} v{version} {width}", class.name, layout.name);
                // Thread/End of version 1 has only ids. Only the length of the payload shows this. So the
                // payload is cut here.
                let is_ids_alone = (class.name, opcode, version) == ("Thread", 2, 1);
                let payload = if is_ids_alone {
                    &payload[..8]
                } else {
                    &payload
                };
                if let Some(pairs) = read(class, opcode, version, payload, width) {
                    compare(&what, pairs);
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, 418);
}

#[test]
fn nothing_panics_on_cut_or_senseless_payloads() {
    let mut payloads = vec![vec![0; 96], vec![0xff; 96], vec![1; 96]];
    payloads.extend(vectors().into_iter().map(|v| v.payload));
    macro_rules! read_all {
        ($args:ident, $opcode:ident; $($view:ident),*) => {
            $(let _ = kernel::$view::read($args.0, $args.1, $args.2);)*
            let _ = kernel::Interrupt::read($opcode, $args.0, $args.1, $args.2);
            let _ = kernel::NetworkEvent::read_tcp($opcode, $args.0, $args.1, $args.2);
            let _ = kernel::NetworkEvent::read_udp($opcode, $args.0, $args.1, $args.2);
        };
    }
    for payload in &payloads {
        for size in (0..payload.len()).take(128) {
            for (version, opcode) in (0..7).zip([10, 26, 12, 0x32, 0x43, 0x44, 31]) {
                for width in [0, 4, 8, 16] {
                    let args = (&payload[..size], version, width);
                    read_all!(args, opcode;
                        AntiStarvationBoost, AutoBoostClearFloor, AutoBoostSetFloor, ContextSwitch,
                        CounterSample, Cpu, DiskFlush, DiskStart, DiskTransfer, FileCreate, FileEnd,
                        FileInfo, FileName, FileOperation, FileTransfer, HardFault, Image, ImageId,
                        NetworkInterface, PdbId, PhysicalDisk, Process, ProcessTerminate, Processor,
                        ReadyThread, Sample, Service, SetAffinity, SetPriority, StackReference,
                        Thread, ThreadMigration, ThreadName
                    );
                    let (p, v, w) = args;
                    kernel::Stack::read(p, v, w).map(|view| view.addresses.count());
                    kernel::StackDefinition::read(p, v, w).map(|view| view.addresses.count());
                    kernel::CompactContextSwitches::read(p, v, w)
                        .map(|view| view.switches().count());
                    kernel::ProcessorGroups::read(p, v, w).map(|view| view.affinities().count());
                    kernel::ProcessorNumbers::read(p, v, w).map(|view| view.numbers().count());
                }
            }
        }
    }
    for (_, _, layout) in kernel::classes().iter().flat_map(Class::layouts) {
        for payload in &payloads {
            for size in [0, 1, 7, 31, payload.len() / 2] {
                let payload = &payload[..size.min(payload.len())];
                for width in [4, 8] {
                    let fields = decode(&layout.fields, payload, width);
                    assert!(payload.ends_with(fields.tail));
                }
            }
        }
    }
}
