//! Tests of rings with a stand-in for the system functions (`standin/lib.rs`), which cargo builds
//! with the tests. Unsafe code is allowed to load the stand-in. Systems without rings have one
//! test, which expects an error.

#[cfg(not(all(windows, target_pointer_width = "64")))]
#[test]
fn other_systems_have_no_rings() {
    let error = ioring::Library::system().expect_err("not available");
    assert!(matches!(error, ioring::Error::NotAvailable(_)), "{error}");
}

#[cfg(all(windows, target_pointer_width = "64"))]
mod windows {
    use std::fs::{self, File};
    use std::sync::Arc;

    use ioring::{
        Buffer, Completion, Error, FlushMode, Interface, Library, Memory, Operation, Ring, Target,
        Version,
    };

    const BOTH: [Interface; 2] = [Interface::KernelBase, Interface::Nt];

    /// File offset from which the stand-in keeps a read in flight until the read is cancelled.
    const HELD: u64 = 1 << 62;

    #[expect(unsafe_code, reason = "the stand-in is trusted")]
    fn standin() -> Library {
        let mut path = std::env::current_exe().expect("a running program has a path");
        path.pop();
        path.pop();
        path.push("examples/standin.dll");
        assert!(
            path.exists(),
            "{} is missing; build it for this target with `cargo build -p ioring --examples`",
            path.display()
        );
        // SAFETY: the stand-in upholds the contract of the system functions.
        unsafe { Library::from_dll(&path) }.expect("the stand-in has every function")
    }

    fn ring(interface: Interface) -> Ring {
        Ring::new(&standin(), interface, 8).expect("the stand-in makes rings")
    }

    fn file(folder: &tempfile::TempDir, name: &str, content: &[u8]) -> Arc<File> {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("written");
        let file = File::options().read(true).write(true).open(path);
        Arc::new(file.expect("opened"))
    }

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    fn fetch_all(ring: &mut Ring) -> Vec<Completion> {
        ring.submit_and_wait(1, None).expect("submitted");
        let mut done = Vec::new();
        while let Some(completion) = ring.pop().expect("fetched") {
            done.push(completion);
        }
        done.sort_by_key(|completion| completion.user_data);
        done
    }

    fn bytes(completion: &Completion) -> &[u8] {
        let length = completion.result.expect("it worked");
        match &completion.memory {
            Some(Memory::Owned(buffer)) => &buffer[..length],
            other => panic!("{other:?} instead of the buffer"),
        }
    }

    fn owned(length: usize) -> Memory {
        Memory::Owned(Buffer::new(length))
    }

    #[test]
    fn the_system_has_rings_or_says_that_it_has_none() {
        match Library::system() {
            Err(Error::NotAvailable(_)) => {}
            Err(other) => panic!("{other}"),
            Ok(library) => {
                let found = library
                    .capabilities(Interface::KernelBase)
                    .expect("queried");
                assert!(found.newest >= Version::V1, "{found:?}");
            }
        }
    }

    #[test]
    fn reads_give_what_is_in_the_files_whatever_the_order() {
        let folder = folder();
        for interface in BOTH {
            let mut ring = ring(interface);
            for number in 0..8_u8 {
                let content = vec![number; 100 + usize::from(number)];
                let target = Target::File(file(&folder, &format!("{number}"), &content));
                ring.read(&target, owned(4096), 4096, 0, u64::from(number))
                    .expect("queued");
            }
            let done = fetch_all(&mut ring);
            assert_eq!(done.len(), 8);
            for (number, completion) in (0..8_u8).zip(&done) {
                let content = vec![number; 100 + usize::from(number)];
                assert_eq!(bytes(completion), content, "{interface}");
            }
            assert_eq!(ring.in_flight(), 0);
        }
    }

    #[test]
    fn reads_honour_offset_and_length_and_stop_at_the_end() {
        let folder = folder();
        for interface in BOTH {
            let mut ring = ring(interface);
            let target = Target::File(file(&folder, "digits", b"0123456789"));
            for (user_data, length, offset) in [(0, 3, 4), (1, 64, 8), (2, 64, 10), (3, 64, 99)] {
                ring.read(&target, owned(64), length, offset, user_data)
                    .expect("queued");
            }
            let done = fetch_all(&mut ring);
            let read: Vec<_> = done.iter().map(bytes).collect();
            assert_eq!(read, [&b"456"[..], b"89", b"", b""], "{interface}");
        }
    }

    #[test]
    fn registered_files_and_buffers_are_used_by_index() {
        let folder = folder();
        for interface in BOTH {
            let mut ring = ring(interface);
            let files = ["a", "b"].map(|name| file(&folder, name, name.as_bytes()));
            ring.register_files(files.to_vec()).expect("registered");
            ring.register_buffers(vec![Buffer::new(16), Buffer::new(16)])
                .expect("registered");
            let (first, second) = (Target::Registered(0), Target::Registered(1));
            ring.read(&first, Memory::Registered(1), 16, 0, 10)
                .expect("queued");
            ring.read(&second, Memory::Registered(0), 16, 0, 11)
                .expect("queued");
            assert!(matches!(ring.buffer(0), Err(Error::InUse { index: 0 })));
            let again = ring.read(&first, Memory::Registered(0), 16, 0, 12);
            let refused = again.expect_err("its buffer is in use");
            assert!(matches!(refused.error, Error::InUse { index: 0 }));
            assert!(matches!(refused.memory, Memory::Registered(0)));
            assert_eq!(fetch_all(&mut ring).len(), 2);
            assert_eq!(ring.buffer(0).expect("free")[..1], *b"b", "{interface}");
            assert_eq!(ring.buffer(1).expect("free")[..1], *b"a", "{interface}");
        }
    }

    #[test]
    fn what_is_not_registered_is_refused() {
        let mut ring = ring(Interface::KernelBase);
        let missing = ring.read(&Target::Registered(0), owned(1), 1, 0, 0);
        let refused = missing.expect_err("no such file");
        assert!(matches!(
            refused.error,
            Error::NotRegistered { what: "file", .. }
        ));
        assert!(matches!(refused.memory, Memory::Owned(buffer) if buffer.len() == 1));
        assert!(matches!(ring.buffer(7), Err(Error::NotRegistered { .. })));
    }

    #[test]
    fn more_bytes_than_the_memory_has_are_refused() {
        let folder = folder();
        let mut ring = ring(Interface::Nt);
        let target = Target::File(file(&folder, "x", b"x"));
        let refused = ring
            .read(&target, owned(16), 17, 0, 0)
            .expect_err("it would write past the buffer");
        assert!(matches!(refused.error, Error::TooLong { length: 17, .. }));
        assert_eq!(ring.in_flight(), 0);
    }

    #[test]
    fn a_full_queue_gives_the_memory_back_and_works_again() {
        let folder = folder();
        for interface in BOTH {
            let mut ring = ring(interface);
            let target = Target::File(file(&folder, "x", b"x"));
            for user_data in 0..8 {
                ring.read(&target, owned(16), 16, 0, user_data)
                    .expect("queued");
            }
            let refused = ring
                .read(&target, owned(99), 16, 0, 8)
                .expect_err("eight entries are full");
            assert!(matches!(refused.error, Error::Full), "{}", refused.error);
            assert!(matches!(&refused.memory, Memory::Owned(buffer) if buffer.len() == 99));
            assert_eq!(fetch_all(&mut ring).len(), 8);
            ring.read(&target, refused.memory, 16, 0, 8)
                .expect("queued");
            assert_eq!(bytes(&fetch_all(&mut ring)[0]), b"x", "{interface}");
        }
    }

    #[test]
    fn the_queues_go_round() {
        let folder = folder();
        for interface in BOTH {
            let mut ring = ring(interface);
            let target = Target::File(file(&folder, "digits", b"0123456789"));
            for user_data in 0..100 {
                ring.read(&target, owned(1), 1, user_data % 10, user_data)
                    .expect("queued");
                let done = fetch_all(&mut ring);
                let expected = b'0' + (user_data % 10) as u8;
                assert_eq!(bytes(&done[0]), [expected], "{interface}");
            }
        }
    }

    #[test]
    fn writes_and_flushes_reach_the_file() {
        let folder = folder();
        for interface in BOTH {
            let mut ring = ring(interface);
            let target = Target::File(file(&folder, "out", b"______"));
            let mut buffer = Buffer::new(4);
            buffer.copy_from_slice(b"ring");
            ring.write(&target, Memory::Owned(buffer), 4, 1, 0)
                .expect("queued");
            assert_eq!(fetch_all(&mut ring)[0].result, Ok(4));
            ring.flush(&target, FlushMode::Default, 1).expect("queued");
            let done = fetch_all(&mut ring);
            assert_eq!(done[0].result, Ok(0));
            assert!(done[0].memory.is_none());
            let content = fs::read(folder.path().join("out")).expect("read");
            assert_eq!(content, b"_ring_", "{interface}");
        }
    }

    #[test]
    fn a_version_1_ring_does_not_write() {
        let folder = folder();
        for interface in BOTH {
            let mut ring = Ring::with_version(&standin(), interface, Version::V1, 8).expect("made");
            assert_eq!(ring.version(), Version::V1);
            assert!(ring.supports(Operation::Read));
            assert!(!ring.supports(Operation::Write));
            let target = Target::File(file(&folder, "x", b"x"));
            let refused = ring.write(&target, owned(1), 1, 0, 0).expect_err("too old");
            assert!(matches!(refused.error, Error::Unsupported { .. }));
            let flush = ring.flush(&target, FlushMode::Data, 0);
            assert!(matches!(flush, Err(Error::Unsupported { .. })));
        }
    }

    #[test]
    fn a_version_that_does_not_exist_is_refused_by_the_system() {
        let made = Ring::with_version(&standin(), Interface::KernelBase, Version(77), 8);
        let error = made.expect_err("there is no such version");
        assert!(error.to_string().contains("0x80460003"), "{error}");
    }

    #[test]
    fn a_cancelled_read_gives_its_memory_back() {
        let folder = folder();
        for interface in BOTH {
            let mut ring = ring(interface);
            let target = Target::File(file(&folder, "x", b"x"));
            let ticket = ring.read(&target, owned(16), 16, HELD, 1).expect("queued");
            assert_eq!(fetch_all(&mut ring).len(), 0, "it is held");
            assert_eq!(ring.in_flight(), 1);
            assert!(matches!(
                ring.register_files(Vec::new()),
                Err(Error::Busy { in_flight: 1 })
            ));
            ring.cancel(ticket, 2).expect("queued");
            let done = fetch_all(&mut ring);
            let code = done[0].result.expect_err("cancelled");
            assert!(code.is_cancelled(), "{code}");
            assert!(matches!(done[0].memory, Some(Memory::Owned(_))));
            assert_eq!(done[1].result, Ok(0));
            assert!(matches!(ring.cancel(ticket, 3), Err(Error::NotInFlight)));
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_fails_alone() {
        let folder = folder();
        for interface in BOTH {
            let mut ring = ring(interface);
            let path = folder.path().join("write-only");
            let write_only = Arc::new(File::create(path).expect("created"));
            let readable = file(&folder, "x", b"x");
            for (user_data, file) in [(0, write_only), (1, readable)] {
                ring.read(&Target::File(file), owned(16), 16, 0, user_data)
                    .expect("queued");
            }
            let done = fetch_all(&mut ring);
            assert!(done[0].result.is_err());
            assert_eq!(bytes(&done[1]), b"x", "{interface}");
        }
    }

    #[test]
    fn dropping_a_ring_keeps_what_the_kernel_may_still_use() {
        let folder = folder();
        for interface in BOTH {
            let (held, queued) = (file(&folder, "held", b"x"), file(&folder, "queued", b"x"));
            let mut ring = ring(interface);
            ring.read(&Target::File(held.clone()), owned(16), 16, HELD, 0)
                .expect("queued");
            ring.submit().expect("submitted");
            ring.read(&Target::File(queued.clone()), owned(16), 16, 0, 1)
                .expect("queued");
            drop(ring);
            // The ring holds the file and the memory of an operation together. The reference count
            // of the file therefore shows whether both are still held.
            assert_eq!(Arc::strong_count(&held), 2, "leaked, not freed");
            assert_eq!(Arc::strong_count(&queued), 1, "never submitted: freed");
        }
    }

    #[test]
    fn dropping_a_ring_frees_what_is_complete() {
        let folder = folder();
        for interface in BOTH {
            let file = file(&folder, "x", b"x");
            let mut ring = ring(interface);
            ring.read(&Target::File(file.clone()), owned(16), 16, 0, 0)
                .expect("queued");
            ring.submit().expect("submitted");
            drop(ring);
            assert_eq!(Arc::strong_count(&file), 1);
        }
    }

    #[test]
    fn nt_structures_that_are_not_as_expected_are_refused() {
        // The stand-in simulates faults for certain numbers of entries. For 3 entries, it returns a wrong
        // mask. For 5 entries, it returns a wrong token. For 7 entries, its reads return zeros.
        for (entries, says) in [
            (3, "the queues do not have the requested size"),
            (5, "an entry without effect did not complete"),
            (7, "a read returned other bytes than an ordinary read"),
        ] {
            let error = Ring::new(&standin(), Interface::Nt, entries).expect_err("it is wrong");
            assert!(matches!(error, Error::LayoutUnknown { .. }), "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn capabilities_are_those_of_the_library() {
        for interface in BOTH {
            let found = standin().capabilities(interface).expect("it says");
            assert_eq!(found.newest, Version::V4);
            assert_eq!(found.submission_entries, 0x1_0000);
            assert_eq!(found.completion_entries, 0x2_0000);
            assert!(found.has_completion_event && !found.is_emulated);
        }
    }
}
