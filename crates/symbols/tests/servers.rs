//! Tests of symbol servers. The server runs in the test process, on the loopback interface.
#![cfg(feature = "network")]

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use etl::Guid;
use symbols::write::write_pdb;
use symbols::{Outcome, PdbError, PdbId, PdbSource, Stores, in_store};

fn id(age: u32) -> PdbId {
    PdbId::new("made.pdb", Guid::new(1, 2, 3, [4; 8]), age).unwrap()
}

fn pdb(id: &PdbId) -> Vec<u8> {
    write_pdb(id, "made.obj", &[]).unwrap()
}

/// Starts a server of files. `files` has the content of each path. Returns the address of the server and the
/// list of requested paths. The server runs until the process ends.
fn server(files: HashMap<String, Vec<u8>>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().map(Result::unwrap) {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let Some(request) = lines.next() else {
                continue;
            };
            let _ = lines.by_ref().take_while(|line| !line.is_empty()).count();
            let path = request.split(' ').nth(1).unwrap().to_owned();
            let head = |status: &str, length: usize| {
                format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
                )
            };
            let (head, body) = match files.get(&path) {
                Some(body) => (head("200 OK", body.len()), &body[..]),
                None => (head("404 Not Found", 0), &[][..]),
            };
            log.lock().unwrap().push(path);
            let _ = (&stream).write_all(head.as_bytes());
            let _ = (&stream).write_all(body);
        }
    });
    (address, asked)
}

/// Starts a server that answers each request with `head` and then with zeros without end. Returns the address of the
/// server, and the number of bytes that it sent.
fn endless_server(head: Vec<u8>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map(Result::unwrap) {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let _ = lines.by_ref().take_while(|line| !line.is_empty()).count();
            let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let chunk = |bytes: &[u8]| {
                [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
            };
            let mut next = [answer.as_bytes(), &chunk(&head)].concat();
            while stream.write_all(&next).is_ok() {
                count.fetch_add(next.len(), Ordering::Relaxed);
                next = chunk(&[0; 1 << 16]);
            }
        }
    });
    (address, sent)
}

fn path_of(id: &PdbId) -> String {
    format!("/made.pdb/{}/made.pdb", id.key())
}

fn online(path: &str) -> Stores {
    Stores::online(path.parse().unwrap())
}

fn is_empty(folder: &Path) -> bool {
    let file = |entry: fs::DirEntry| match entry.path() {
        path if path.is_dir() => !is_empty(&path),
        _ => true,
    };
    !fs::read_dir(folder).unwrap().map(Result::unwrap).any(file)
}

#[test]
fn a_download_is_kept_in_the_first_store_that_can_be_written() {
    let id = id(1);
    let (address, asked) = server(HashMap::from([(path_of(&id), pdb(&id))]));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a file, so no store");
    fs::write(&file, "").unwrap();
    let store = folder.path().join("store");
    let path = format!("srv*{}*{}*{address}", file.display(), store.display());
    assert!(online(&path).find(&id).is_ok());
    assert_eq!(fs::read(store.join(in_store(&id))).unwrap(), pdb(&id));
    assert_eq!(asked.lock().unwrap().len(), 1);
    // After the download, the file is also available without the network.
    assert!(Stores::offline(path.parse().unwrap()).find(&id).is_ok());
    assert_eq!(asked.lock().unwrap().len(), 1);
    // A download also works without a store.
    assert!(online(&format!("srv*{address}")).find(&id).is_ok());
}

#[test]
fn what_a_server_does_not_have_is_asked_for_once() {
    let (address, asked) = server(HashMap::new());
    let mut stores = online(&format!("srv*{address}"));
    for _ in 0..3 {
        let missing = stores.find(&id(1)).unwrap_err();
        assert!(matches!(missing.attempts[0].outcome, Outcome::Absent));
        assert_eq!(missing.attempts[0].place, address);
    }
    let file = path_of(&id(1));
    let compressed = file
        .replace("/made.pdb/", "/")
        .replace("made.pdb", "made.pd_");
    let compressed = format!("/made.pdb{compressed}");
    assert_eq!(*asked.lock().unwrap(), [file, compressed]);
}

#[test]
fn what_is_not_the_right_pdb_is_not_kept() {
    let wanted = id(1);
    for wrong in [pdb(&id(2)), b"<html>Sign in</html>".to_vec()] {
        let (address, _) = server(HashMap::from([(path_of(&wanted), wrong)]));
        let store = tempfile::tempdir().unwrap();
        let missing = online(&format!("srv*{}*{address}", store.path().display()))
            .find(&wanted)
            .unwrap_err();
        let refused = |outcome: &Outcome| {
            matches!(
                outcome,
                Outcome::Refused(PdbError::OtherBuild { .. } | PdbError::Unreadable(_))
            )
        };
        assert!(
            missing.attempts.iter().any(|a| refused(&a.outcome)),
            "{missing}"
        );
        assert!(is_empty(store.path()));
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_told() {
    // Nothing listens on this port, because the listener was closed.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let missing = online(&format!("srv*{address}")).find(&id(1)).unwrap_err();
    assert!(matches!(missing.attempts[0].outcome, Outcome::Failed(_)));
}

#[test]
fn a_response_without_end_is_stopped_at_the_size_that_its_header_states() {
    let id = id(1);
    let mut cabinet = b"MSCF\0\0\0\0".to_vec();
    cabinet.extend(1_000_u32.to_le_bytes());
    for (head, cause) in [
        (pdb(&id), "header states"),
        (vec![0; 100], "does not start as PDBs do"),
        (cabinet, "cabinet"),
    ] {
        let (address, sent) = endless_server(head);
        let store = tempfile::tempdir().unwrap();
        let path = format!("srv*{}*{address}", store.path().display());
        let missing = online(&path).find(&id).unwrap_err().to_string();
        assert!(missing.contains(cause), "{missing}");
        assert!(is_empty(store.path()));
        // The system buffers some megabytes.
        let sent = sent.load(Ordering::Relaxed);
        assert!(sent < 64 << 20, "{sent}");
    }
}

#[test]
fn files_of_a_killed_download_are_deleted_at_the_next_start() {
    let id = id(1);
    let (address, _) = server(HashMap::from([(path_of(&id), pdb(&id))]));
    let store = tempfile::tempdir().unwrap();
    let [left, used, other] = [".laglab-left", ".laglab-used", "other"].map(|name| {
        let path = store.path().join(name);
        fs::write(&path, "part of a PDB").unwrap();
        path
    });
    // A running program holds a lock on its file.
    let running = fs::File::open(&used).unwrap();
    running.lock().unwrap();
    let path = format!("srv*{}*{address}", store.path().display());
    assert!(online(&path).find(&id).is_ok());
    assert!(!left.exists());
    assert!(used.exists() && other.exists());
}
