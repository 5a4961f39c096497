//! Checks the errors for paths that are not traces. Also checks the opening of archives and of several files.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use etl::{OpenError, open};

fn error(path: &Path) -> (OpenError, String) {
    let error = open(&[path.to_owned()]).unwrap_err();
    let text = error.to_string();
    assert!(!text.contains('\n'), "one line: {text}");
    assert!(text.contains(&path.display().to_string()), "{text}");
    (error, text)
}

#[test]
fn what_is_no_trace_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (kind, text) = error(dir.path());
    assert!(matches!(kind, OpenError::NotAFile { .. }), "{kind:?}");
    assert!(text.contains("is a directory"), "{text}");

    let missing = dir.path().join("missing.etl");
    let (kind, text) = error(&missing);
    assert!(matches!(kind, OpenError::NotFound { .. }), "{kind:?}");
    assert!(text.contains("no such file"), "{text}");

    let empty = dir.path().join("empty.etl");
    fs::write(&empty, b"").unwrap();
    assert!(matches!(error(&empty).0, OpenError::Empty { .. }));

    let file = dir.path().join("foreign.etl");
    for (bytes, what) in [
        (b"no trace at all\n".repeat(1000), "it seems to be text; "),
        ([1, 2, 3, 0xFF].repeat(1000), "begins 01 02 03 ff 01 "),
    ] {
        fs::write(&file, bytes).unwrap();
        let (kind, text) = error(&file);
        assert!(matches!(kind, OpenError::NotATrace { .. }), "{kind:?}");
        assert!(
            text.contains(&format!("{} is not an ETW trace: ", file.display())),
            "{text}"
        );
        assert!(text.contains(what), "{text}");
        assert!(text.contains("give an .etl"), "{text}");
    }

    assert!(matches!(open(&[]), Err(OpenError::NoFiles)));
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo.etl");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    assert!(error(&fifo).1.contains("is a pipe"));
    assert!(error(Path::new("/dev/null")).1.contains("is a device"));
}

#[test]
fn a_file_is_read_up_to_its_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("four");
    fs::write(&path, b"four").unwrap();
    assert_eq!(files::read_file(&path, 4).unwrap(), b"four");
    let error = files::read_file(&path, 3).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::FileTooLarge);
    let error = files::read_file(dir.path(), 4).unwrap_err();
    assert!(error.to_string().contains("is a directory"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secret.etl");
    fs::write(&path, b"secret").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        return; // The test cannot work as superuser, who may read any file.
    }
    let (kind, _) = error(&path);
    assert!(matches!(kind, OpenError::NoPermission { .. }), "{kind:?}");
}

#[test]
fn archives_are_opened_and_their_members_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.etl.zip");
    let mut zip = zip::ZipWriter::new(fs::File::create(&path).unwrap());
    let options = zip::write::SimpleFileOptions::default();
    let original = testdata::bytes("etl/perfview__primitive-types.etl");
    zip.start_file("inside.etl", options).unwrap();
    zip.write_all(&original).unwrap();
    zip.finish().unwrap();

    let trace = open(std::slice::from_ref(&path)).unwrap();
    let plain = open(&[testdata::path("etl/perfview__primitive-types.etl")]).unwrap();
    assert_eq!(
        trace.files().collect::<Vec<_>>(),
        [format!("{}: inside.etl", path.display())]
    );
    assert_eq!(trace.buffers(), plain.buffers());
    assert_eq!(trace.header(), plain.header());

    let mut zip = zip::ZipWriter::new(fs::File::create(&path).unwrap());
    zip.start_file("readme.txt", options).unwrap();
    zip.write_all(b"hello").unwrap();
    zip.finish().unwrap();
    let (kind, text) = error(&path);
    assert!(matches!(kind, OpenError::Archive { .. }), "{kind:?}");
    assert!(text.contains("readme.txt"), "{text}");
}

#[test]
fn several_files_of_one_session_are_one_trace() {
    let names = ["", ".kernel.1", ".user_injected.1", ".user_paged.1"];
    let paths: Vec<PathBuf> = names
        .iter()
        .map(|n| testdata::path(&format!("etl/perfview__diaghub__diaghub{n}.etl")))
        .collect();
    let trace = open(&paths).unwrap();
    assert_eq!(trace.files().len(), 4);
    let truth: u64 = testdata::traces()
        .iter()
        .filter(|(name, _)| name.contains("diaghub"))
        .map(|(_, truth)| truth["total_events"].as_u64().unwrap())
        .sum();
    let (mut events, mut count) = (trace.events(), 0);
    while events.next().is_some() {
        count += 1;
    }
    assert_eq!(count, truth);
}

#[test]
fn copies_and_what_is_cut_within_its_header_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let original = testdata::path("etl/perfview__primitive-types.etl");
    let copy = dir.path().join("copy.etl");
    fs::copy(&original, &copy).unwrap();
    let refused = open(&[original.clone(), copy.clone()]).unwrap_err();
    assert!(
        matches!(refused, OpenError::SameContent { .. }),
        "{refused}"
    );

    let whole = fs::read(&original).unwrap();
    fs::write(&copy, &whole[..100]).unwrap();
    let (kind, text) = error(&copy);
    assert!(
        matches!(kind, OpenError::CutOff { size: 100, .. }),
        "{kind:?}"
    );
    assert!(text.contains("copy it again"), "{text}");
}
