//! Tests that each event has the intended values in the layout of each release of Windows.

use events::kernel;

use super::*;

#[test]
fn context_switches_of_each_release() {
    for (windows, version, size) in [
        (Windows::Seven, 2, 24),
        (Windows::Ten, 4, 24),
        (Windows::Eleven23H2, 4, 24),
        (Windows::Eleven25H2, 5, 28),
    ] {
        let seen = logged(windows, &everything(), |log| {
            log.context_switch(2, 50, &switch(), None);
            let mut from_idle = switch();
            from_idle.old.thread = 0;
            log.context_switch(2, 60, &from_idle, None);
        });
        let [of_thread, of_idle] = &seen[..] else {
            panic!("{seen:?}")
        };
        assert_eq!((of_thread.cpu, of_thread.time), (2, 50));
        assert_eq!(of_thread.kind, HeaderKind::PerfInfo64);
        assert_eq!(
            (of_thread.version, of_thread.payload.len()),
            (version, size)
        );
        let view = |seen: &LoggedEvent| {
            kernel::ContextSwitch::read(&seen.payload, seen.version, 8).unwrap()
        };
        let read = view(of_thread);
        assert_eq!((read.new_thread_id, read.old_thread_id), (7, 4));
        assert_eq!((read.new_priority, read.old_priority), (9, 8));
        assert_eq!((read.old_rank(), read.previous_c_state()), (Some(2), None));
        assert_eq!(read.new_priority_decrement, Some(0x12));
        assert_eq!(
            (read.old_wait_reason, read.old_wait_mode, read.old_state),
            (32, 1, 1)
        );
        assert_eq!(read.old_ideal_processor, 3);
        assert_eq!(read.new_wait_time, Some(5));
        assert_eq!(read.old_remaining_quantum, Some(-6));
        let qos = (windows > Windows::Seven).then_some((1, 5));
        assert_eq!(read.old_qos.zip(read.new_qos), qos);
        let read = view(of_idle);
        assert_eq!((read.old_rank(), read.previous_c_state()), (None, Some(1)));
    }
}

#[test]
fn what_the_dispatcher_does() {
    for windows in RELEASES {
        let seen = logged(windows, &everything(), |log| {
            let ready = ReadyThread {
                thread: 7,
                adjust_reason: 1,
                adjust_increment: 2,
                in_dpc: true,
                stack_not_resident: true,
                ..ReadyThread::default()
            };
            log.ready_thread(1, 10, &ready, None);
            log.sample(
                1,
                20,
                &Sample {
                    address: 0xFFFF_F801_0000_1234,
                    thread: 7,
                    in_dpc: true,
                    in_isr: false,
                    priority: 13,
                    rank: 2,
                },
                None,
            );
            log.set_priority(1, 30, 7, 8, 10, None);
            log.anti_starvation(1, 40, 7, 3, 4);
        });
        let (ready, sample) = (&seen[0], &seen[1]);
        let read = kernel::ReadyThread::read(&ready.payload, ready.version, 8).unwrap();
        assert_eq!(
            (read.thread_id, read.adjust_reason, read.adjust_increment),
            (7, 1, 2)
        );
        assert!(read.by_dpc() && read.kernel_stack_not_resident());
        assert!(!read.process_out_of_memory() && !read.direct_switch_attempt());
        let read = kernel::Sample::read(&sample.payload, sample.version, 8).unwrap();
        assert_eq!(
            (read.instruction_pointer, read.thread_id, read.count),
            (0xFFFF_F801_0000_1234, 7, 1)
        );
        // In a real trace of Windows 7 SP1 the flags are set, but every priority and rank is 0.
        let expected = match windows {
            Windows::Seven => (true, Some(0), Some(0)),
            _ => (true, Some(13), Some(2)),
        };
        assert_eq!((read.in_dpc(), read.priority(), read.rank), expected);
        let texts: Vec<_> = seen[2..].iter().map(|event| &event.text[..]).collect();
        assert_eq!(
            texts,
            [
                "Thread/SetPriority: ThreadId 7, OldPriority 8, NewPriority 10, \
                 DynamicPriority 0, Reserved 0",
                "Thread/AntiStarvationBoost: ThreadId 7, ProcessorIndex 3, OldPriority 4, Spare 0",
            ]
        );
    }
}

#[test]
fn interrupts_and_calls_are_logged_when_they_end() {
    let routine = 0xFFFF_F801_2222_0000;
    for windows in RELEASES {
        let seen = logged(windows, &everything(), |log| {
            let kinds = [DpcKind::Regular, DpcKind::Threaded, DpcKind::Timer];
            for (step, kind) in (1..).zip(kinds) {
                let dpc = Dpc {
                    kind,
                    began: 100 * step,
                    routine,
                };
                log.dpc(3, 100 * step + 70, &dpc);
            }
            for (step, message) in [(4, None), (5, Some(9))] {
                let isr = Isr {
                    began: 100 * step,
                    routine,
                    vector: 0x1B1,
                    message,
                    claimed: true,
                };
                log.isr(3, 100 * step + 70, &isr);
            }
        });
        use kernel::InterruptKind as Kind;
        let kinds = [
            Kind::Dpc,
            Kind::ThreadedDpc,
            Kind::TimerDpc,
            Kind::Isr,
            Kind::MessageIsr,
        ];
        assert_eq!(seen.len(), kinds.len());
        for (step, (event, kind)) in (1..).zip(seen.iter().zip(kinds)) {
            let opcode = event.hook.unwrap() as u8;
            let read = kernel::Interrupt::read(opcode, &event.payload, event.version, 8).unwrap();
            assert_eq!((read.kind, read.routine), (kind, routine));
            assert_eq!(read.initial_time, RAW_START as u64 + 100 * step);
            assert_eq!((event.time, event.cpu), (100 * step + 70, 3));
            let isr = kind.is_isr();
            assert_eq!(read.vector, isr.then_some(0x1B1));
            assert_eq!(read.return_value, isr.then_some(1));
            assert_eq!(read.message_number, (kind == Kind::MessageIsr).then_some(9));
        }
    }
}

#[test]
fn processes_and_threads() {
    let person = "S-1-5-21-1004336348-1177238915-682003330-1001";
    for windows in RELEASES {
        let seen = logged(windows, &everything(), |log| {
            let process = Process {
                id: 5_120,
                parent: 700,
                session: 1,
                user: User::Person,
                image: "LockApp.exe",
                command_line: r#""LockApp.exe" -ServerName:x"#,
                package: "Microsoft.LockApp_10.0_neutral",
            };
            let thread = Thread {
                who: Who {
                    process: 5_120,
                    thread: 5_124,
                },
                base_priority: 11,
                affinity: 0b1010,
                start_address: 0x7FF6_5000_1000,
                service_tag: 17,
                name: "Größe",
            };
            for (time, life) in [
                (10, Life::RundownStart),
                (20, Life::Start),
                (30, Life::End),
                (40, Life::RundownEnd),
            ] {
                log.process(0, time, life, &process, WHO);
                log.thread(0, time + 1, life, &thread, WHO);
            }
        });
        assert_eq!(
            seen.iter()
                .map(|event| event.hook.unwrap())
                .collect::<Vec<_>>(),
            [0x303, 0x503, 0x301, 0x501, 0x302, 0x502, 0x304, 0x504]
        );
        let is_seven = windows == Windows::Seven;
        for event in seen.iter().step_by(2) {
            assert_eq!(event.version, if is_seven { 3 } else { 4 });
            let read = kernel::Process::read(&event.payload, event.version, 8).unwrap();
            assert_eq!((read.process_id, read.parent_id), (5_120, 700));
            assert_eq!(read.session_id, Some(1));
            let status = if event.hook == Some(0x302) { 0 } else { 0x103 };
            assert_eq!(read.exit_status, Some(status));
            assert!(event.text.contains(person), "{}", event.text);
            assert_eq!(read.image_name.to_string(), "LockApp.exe");
            let command = read.command_line.unwrap();
            assert_eq!(command.to_string(), r#""LockApp.exe" -ServerName:x"#);
            let package = read.package_full_name.map(|name| name.to_string());
            let expected = (!is_seven).then(|| "Microsoft.LockApp_10.0_neutral".to_owned());
            assert_eq!(package, expected);
        }
        for event in seen.iter().skip(1).step_by(2) {
            assert_eq!((event.version, event.kind), (3, HeaderKind::System64));
            let read = kernel::Thread::read(&event.payload, event.version, 8).unwrap();
            assert_eq!((read.process_id, read.thread_id), (5_120, 5_124));
            assert_eq!(read.affinity, Some(0b1010));
            assert_eq!(read.win32_start_address, Some(0x7FF6_5000_1000));
            assert_eq!(
                (read.base_priority, read.sub_process_tag),
                (Some(11), Some(17))
            );
            let name = read.name.map(|name| name.to_string());
            assert_eq!(name, (!is_seven).then(|| "Größe".to_owned()));
        }
        // The headers of start and end events contain the thread that caused the start or end.
        for event in &seen[2..6] {
            assert_eq!((event.process, event.thread), (Some(40), Some(44)));
        }
    }
}

#[test]
fn services_have_well_known_users() {
    let users = [
        (User::LocalSystem, "UserSID S-1-5-18,"),
        (User::LocalService, "UserSID S-1-5-19,"),
        (User::NetworkService, "UserSID S-1-5-20,"),
    ];
    let seen = logged(Windows::Ten, &everything(), |log| {
        for (time, (user, _)) in (1..).zip(users) {
            let process = Process {
                user,
                ..Process::default()
            };
            log.process(0, time, Life::Start, &process, WHO);
        }
    });
    for (event, (_, sid)) in seen.iter().zip(users) {
        assert!(event.text.contains(sid), "{}", event.text);
    }
    assert_eq!(seen.len(), users.len());
}

#[test]
fn images_are_identified() {
    for windows in RELEASES {
        let mut modules = Vec::new();
        let seen = logged(windows, &everything(), |log| {
            for (process, frame) in [
                (None, "ndis.sys!ndisInterruptDpc"),
                (Some(40), "user32.dll!GetMessageW"),
                (Some(60), "user32.dll!GetMessageW"),
            ] {
                log.modules.function(process, frame).unwrap();
            }
            log.images(0, 10, Life::RundownStart, 0, Who::NO_THREAD);
            log.images(0, 20, Life::Start, 40, WHO);
            log.images(0, 30, Life::Start, 60, WHO);
            log.images(0, 40, Life::End, 60, WHO);
            modules = log.modules().iter().cloned().collect();
        });
        let expected = [
            (0x1403, 0, &modules[0]),
            (0x1403, 0, &modules[1]),
            (0x030A, 40, &modules[2]),
            (0x030A, 60, &modules[2]),
            (0x1402, 60, &modules[2]),
        ];
        let mut events = seen.iter();
        for (hook, process, module) in expected {
            let event = events.next().unwrap();
            assert_eq!(event.hook, Some(hook));
            let image = kernel::Image::read(&event.payload, event.version, 8).unwrap();
            assert_eq!(image.process_id, Some(process));
            assert_eq!((image.base, image.size), (module.base, module.size.into()));
            assert_eq!(image.checksum, Some(module.checksum));
            assert_eq!(image.time_date_stamp, Some(module.time_date_stamp));
            assert_eq!(image.file_name.to_string(), module.path);
            if hook == 0x1402 {
                continue;
            }
            let event = events.next().unwrap();
            let id = kernel::ImageId::read(&event.payload, event.version, 8).unwrap();
            assert_eq!((id.base, id.process_id), (module.base, process));
            assert_eq!(
                (id.size, id.time_date_stamp),
                (image.size, module.time_date_stamp)
            );
            assert_eq!(id.original_file_name.to_string(), module.file);
            let event = events.next().unwrap();
            assert!(
                event.text.starts_with("ImageId/DbgIdRSDS"),
                "{}",
                event.text
            );
            let pdb = kernel::PdbId::read(&event.payload, event.version, 8).unwrap();
            assert_eq!((pdb.base, pdb.process_id), (module.base, process));
            assert_eq!((pdb.guid, pdb.age), (module.pdb_guid, module.pdb_age));
            assert_eq!(pdb.path.to_string(), module.pdb_file);
        }
        assert!(events.next().is_none());
    }
}

#[test]
fn disks_and_faults() {
    for windows in RELEASES {
        let is_seven = windows == Windows::Seven;
        let path = r"\Device\HarddiskVolume3\pagefile.sys";
        let mut file = 0;
        let recording = everything();
        let bytes = bytes_of(windows, &recording, |log| {
            file = log.file(path);
            assert_eq!(log.file(path), file);
            let actions = [DiskAction::Read, DiskAction::Write, DiskAction::Flush];
            for (step, action) in (1..).zip(actions) {
                let request = DiskRequest {
                    action,
                    disk: 1,
                    irp: 0xFFFF_C000_0000_0100 + step,
                    by: WHO,
                    bytes: 4_096,
                    offset: 1 << 40,
                    file,
                    is_paging: true,
                    priority: 3,
                };
                log.disk_start(1, 100 * step, &request, None);
                log.disk_end(1, 100 * step + 42, &request, 100 * step);
            }
            let fault = HardFault {
                began: 400,
                thread: 44,
                address: 0x1234_5000,
                file,
                offset: 8_192,
                bytes: 4_096,
            };
            log.hard_fault(1, 450, &fault, None);
        });
        let all = read(bytes);
        let seen: Vec<_> = all
            .iter()
            .filter(|event| (1..END).contains(&event.time))
            .collect();
        let hooks: Vec<_> = seen.iter().map(|event| event.hook.unwrap()).collect();
        assert_eq!(hooks, [0x10C, 0x10A, 0x10D, 0x10B, 0x10F, 0x10E, 0x220]);
        let issuer = (!is_seven).then_some(44);
        for (step, pair) in (1..).zip(seen[..6].chunks(2)) {
            let irp = 0xFFFF_C000_0000_0100 + step;
            let [start, end] = pair else { panic!() };
            let read = kernel::DiskStart::read(&start.payload, start.version, 8).unwrap();
            assert_eq!((read.irp, read.issuing_thread_id), (irp, issuer));
            assert_eq!((start.process, start.thread), (Some(40), Some(44)));
            assert_eq!(end.version, if is_seven { 2 } else { 3 });
            assert_eq!(end.thread, is_seven.then_some(44));
            if step == 3 {
                let read = kernel::DiskFlush::read(&end.payload, end.version, 8).unwrap();
                assert_eq!((read.disk, read.irp, read.response_time), (1, irp, 42));
                assert_eq!(read.issuing_thread_id, issuer);
                continue;
            }
            let read = kernel::DiskTransfer::read(&end.payload, end.version, 8).unwrap();
            assert_eq!((read.disk, read.size, read.offset), (1, 4_096, 1 << 40));
            assert_eq!((read.file_object, read.irp), (file, Some(irp)));
            assert_eq!((read.response_time, read.io_priority()), (Some(42), 3));
            assert_eq!(read.issuing_thread_id, issuer);
        }
        let read = kernel::HardFault::read(&seen[6].payload, seen[6].version, 8).unwrap();
        assert_eq!(read.initial_time, RAW_START as u64 + 400);
        assert_eq!(
            (read.read_offset, read.virtual_address),
            (8_192, 0x1234_5000)
        );
        assert_eq!(
            (read.file_object, read.thread_id, read.size),
            (file, 44, 4_096)
        );
        let name = all.iter().find(|event| event.hook == Some(0x0424)).unwrap();
        let read = kernel::FileName::read(&name.payload, name.version, 8).unwrap();
        assert_eq!(
            (read.file_object, read.name.to_string().as_str()),
            (file, path)
        );
    }
}

#[test]
fn traffic_of_both_protocols_and_families() {
    let four: [SocketAddr; 2] = ["192.168.1.20:50000", "203.0.113.10:443"].map(parse);
    let six: [SocketAddr; 2] = ["[fe80::1]:50000", "[2001:db8::7]:443"].map(parse);
    let all = [four, six].into_iter().flat_map(|ends| {
        [(true, ends), (false, ends)]
            .into_iter()
            .flat_map(|(tcp, [local, remote])| {
                [Direction::Send, Direction::Receive].map(|direction| Traffic {
                    tcp,
                    direction,
                    process: 40,
                    bytes: 1_200,
                    local,
                    remote,
                    sequence: 77,
                    connection: 0xFFFF_C000_1111_0000,
                })
            })
    });
    let all: Vec<_> = all.collect();
    let seen = logged(Windows::Ten, &everything(), |log| {
        for (time, traffic) in (1..).zip(&all) {
            log.traffic(0, time, traffic);
        }
    });
    assert_eq!(seen.len(), all.len());
    for (event, traffic) in seen.iter().zip(&all) {
        let opcode = event.hook.unwrap() as u8;
        let read = if traffic.tcp {
            kernel::NetworkEvent::read_tcp(opcode, &event.payload, event.version, 8)
        } else {
            kernel::NetworkEvent::read_udp(opcode, &event.payload, event.version, 8)
        };
        let read = read.unwrap();
        let is_send = traffic.direction == Direction::Send;
        assert_eq!(read.action == kernel::NetworkAction::Send, is_send);
        let expected = match (traffic.tcp, is_send) {
            (false, false) => (traffic.local, traffic.remote),
            _ => (traffic.remote, traffic.local),
        };
        assert_eq!((read.destination, read.source), expected);
        assert_eq!((read.process_id, read.size), (40, 1_200));
        assert_eq!(
            (read.sequence, read.connection),
            (77, 0xFFFF_C000_1111_0000)
        );
    }
}

#[test]
fn manifest_events() {
    for windows in RELEASES {
        let frame: Vec<u8> = (0..60).collect();
        let seen = logged(windows, &everything(), |log| {
            log.focus(0, 10, WHO, 1, 40, 5_120);
            log.freeze(0, 20, WHO, 5_120, true);
            log.freeze(0, 30, WHO, 5_120, false);
            log.timer_request(0, 40, WHO, r"\Device\game.exe", 5_000, true);
            log.timer_resolution(0, 50, WHO, 5_000);
            log.sleep(0, 60, WHO, 4);
            log.resume(0, 70, WHO, 4);
            log.packet(0, 80, WHO, 12, Direction::Send, &frame);
            log.key_down(0, 90, WHO, 0x4C, "L");
        });
        for event in &seen {
            assert_eq!((event.process, event.thread), (Some(40), Some(44)));
        }
        let texts: Vec<_> = seen.iter().map(|event| event.text.as_str()).collect();
        let ignored = match windows {
            Windows::Seven | Windows::Ten => "",
            _ => ", RequestIgnored true",
        };
        let request = format!(
            r"SystemTimeResolutionChange: RequestedResolution 5000, Pid 40, AppNameLength 16, AppName \Device\game.exe, SubProcessTag 0{ignored}"
        );
        assert_eq!(
            texts[..7],
            [
                "FocusedProcessChange: SessionId 1, OldProcessId 40, NewProcessId 5120",
                "ProcessFreeze/Start: FrozenProcessID 5120",
                "ProcessFreeze/Stop: FrozenProcessID 5120",
                &request,
                "SystemTimeResolutionUpdate: NewResolution 5000",
                "PreSleepNotification: TargetState 4, EffectiveState 4",
                "PostSleepNotification: TargetState 1, EffectiveState 1, WakeFromState 4",
            ]
        );
        assert_eq!(&seen[7].payload[12..72], frame);
        assert!(
            texts[7].contains("MiniportIfIndex 12, LowerIfIndex 12, FragmentSize 60,"),
            "{}",
            texts[7]
        );
        assert_eq!(
            texts[8],
            "Keyboard/KeyDown: Virtual key code 76, Key name L, Repeat count 1, Flags 0"
        );
    }
}

#[test]
fn events_of_dotnet() {
    for windows in RELEASES {
        let seen = logged(windows, &everything(), |log| {
            log.collection_begins(0, 10, WHO, 7, 2);
            log.collection_ends(0, 20, WHO, 7, 2);
            log.pool_threads(0, 30, WHO, 9, true);
        });
        let texts: Vec<_> = seen.iter().map(|event| event.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "GC/SuspendEEStart: Reason 1, Count 7, ClrInstanceID 0",
                "GC/Start: Count 7, Depth 2, Reason 0, Type 0, ClrInstanceID 0",
                "GC/Stop: Count 7, Depth 2, ClrInstanceID 0",
                "GC/RestartEEStop: ClrInstanceID 0",
                "ThreadPoolWorkerThreadAdjustment/Adjustment: AverageThroughput 0, NewWorkerThreadCount 9, \
                 Reason 6, ClrInstanceID 0",
            ]
        );
    }
}

#[test]
fn the_machine_is_described() {
    let recording: Recording = toml::from_str("sampling_interval = 1221").unwrap();
    for windows in RELEASES {
        let bytes = bytes_of(windows, &recording, |log| {
            log.service(Service {
                process: 900,
                tag: 17,
                name: "Dhcp".into(),
                display_name: "DHCP Client".into(),
                image: "svchost.exe".into(),
            });
        });
        let trace = open(bytes.clone());
        let header = trace.header().unwrap();
        assert_eq!(header.os_build, windows.build());
        assert_eq!((header.processors, header.cpu_mhz), (4, 3_000));
        assert_eq!(header.perf_frequency, 10_000_000);
        let seen = read(bytes);
        let event = |hook: u16| {
            let mut matches = seen.iter().filter(|event| event.hook == Some(hook));
            matches.next().unwrap_or_else(|| panic!("no {hook:#06x}"))
        };
        let read = kernel::Cpu::read(&event(0x0B0A).payload, event(0x0B0A).version, 8).unwrap();
        assert_eq!(
            (read.mhz, read.processors, read.memory_mb),
            (3_000, 4, 16_384)
        );
        assert_eq!(read.computer_name.to_string(), "PC-7");
        let read = kernel::ProcessorGroups::read(&event(0x0B1A).payload, 2, 8).unwrap();
        assert_eq!(read.affinities().collect::<Vec<_>>(), [3, 3]);
        let read = kernel::ProcessorNumbers::read(&event(0x0B1B).payload, 2, 8).unwrap();
        let numbers: Vec<_> = read.numbers().collect();
        assert_eq!(numbers, [(0, 0), (0, 1), (1, 0), (1, 1)]);
        let read = kernel::Service::read(&event(0x0B0F).payload, 3, 8).unwrap();
        assert_eq!((read.process_id, read.sub_process_tag), (900, 17));
        assert_eq!(read.display_name.to_string(), "DHCP Client");
        for hook in [0x0F49, 0x0F4A] {
            assert!(
                event(hook).text.contains("NewInterval 1221"),
                "{}",
                event(hook).text
            );
        }
        // Mask 0 contains PROC_THREAD, LOADER, DISK_IO and others; mask 1 contains CSWITCH and
        // others.
        let masks = &event(0x0005).payload;
        assert_eq!(masks[..4], 0x0001_2707u32.to_le_bytes());
        assert_eq!(masks[4..8], 0x6286u32.to_le_bytes());
        let volumes: Vec<_> = seen.iter().map(|event| &event.text[..]).collect();
        assert!(
            volumes.contains(
                &r"SysConfigEx/VolumeMapping: NtPath \Device\HarddiskVolume3\, DosPath C:\"
            )
        );
        assert!(
            seen.iter()
                .any(|event| event.text.starts_with("SysConfigEx/BuildInfo"))
        );
    }
}
