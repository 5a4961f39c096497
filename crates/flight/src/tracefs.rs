//! Descriptions of tracepoints in tracefs.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::StartError;

/// Folder with the files of tracefs.
#[derive(Debug)]
pub(crate) struct Tracefs {
    folder: PathBuf,
    /// Mount of tracefs that only this program sees; `None` if the system has mounted tracefs.
    _own: Option<OwnedFd>,
}

/// Tracepoint, with the text that describes its fields.
#[derive(Clone, Debug)]
pub(crate) struct DescribedTracepoint {
    pub(crate) system: &'static str,
    pub(crate) id: u64,
    pub(crate) format: Vec<u8>,
}

impl Tracefs {
    /// Finds the folder of tracefs. If tracefs is not mounted, mounts it without a place in the file tree, so that
    /// other programs do not see it. This needs a privilege.
    pub(crate) fn find() -> Result<Tracefs, StartError> {
        let mut last = None;
        for folder in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
            match fs::metadata(Path::new(folder).join("events")) {
                Ok(_) => {
                    return Ok(Tracefs {
                        folder: folder.into(),
                        _own: None,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(StartError::Rights(format!("{folder}/events")));
                }
                Err(error) => last = Some(error),
            }
        }
        match mount() {
            Ok(own) => Ok(Tracefs {
                folder: format!("/proc/self/fd/{}", own.as_raw_fd()).into(),
                _own: Some(own),
            }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(StartError::Rights("mounting tracefs".to_owned()))
            }
            Err(error) => Err(StartError::NoTracefs(last.unwrap_or(error))),
        }
    }

    /// Reads the id and the description of a tracepoint.
    pub(crate) fn tracepoint(
        &self,
        system: &'static str,
        name: &str,
    ) -> io::Result<DescribedTracepoint> {
        let folder = self.folder.join("events").join(system).join(name);
        let id = fs::read_to_string(folder.join("id"))?;
        let id = id.trim().parse().map_err(io::Error::other)?;
        let format = fs::read(folder.join("format"))?;
        Ok(DescribedTracepoint { system, id, format })
    }

    /// Reads the descriptions of the pages of tracing buffers, because readers of `perf.data` expect them.
    pub(crate) fn pages(&self) -> [Vec<u8>; 2] {
        ["header_page", "header_event"]
            .map(|name| fs::read(self.folder.join("events").join(name)).unwrap_or_default())
    }
}

fn mount() -> io::Result<OwnedFd> {
    let tracefs = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&tracefs)?;
    let mounted = fsmount(
        &tracefs,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_RDONLY,
    )?;
    Ok(mounted)
}
