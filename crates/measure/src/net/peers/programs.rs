//! Programs of other projects that measure the same traffic on the same test bed.
//!
//! They run as separate processes, and this program parses their output. Their code is not part of
//! this program.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Stop;
use crate::net::{Family, NetError, Side, Testbed};

/// Maximum number of bytes that are read from a peer's output.
const MAX_OUTPUT: u64 = 4 << 20;

/// Time by which a run of a peer may exceed its planned length.
const GRACE: Duration = Duration::from_secs(10);

/// Packets and distribution of round-trip times that a peer measured. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PeerRoundTrips {
    /// Number of packets sent.
    pub sent: u64,
    /// Number of packets lost.
    pub lost: u64,
    /// Median round-trip time in nanoseconds.
    pub p50_ns: i64,
    /// 90 % quantile of the round-trip times in nanoseconds.
    pub p90_ns: i64,
    /// 99 % quantile of the round-trip times in nanoseconds.
    pub p99_ns: i64,
    /// 99.9 % quantile of the round-trip times in nanoseconds.
    pub p99_9_ns: i64,
    /// Maximum round-trip time in nanoseconds.
    pub max_ns: i64,
}

/// Throughput that a peer measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct PeerThroughput {
    /// Number of packets sent.
    pub sent: u64,
    /// Number of packets lost.
    pub lost: u64,
    /// Received packets per second.
    pub packets_per_second: f64,
    /// Received payload bytes per second.
    pub bytes_per_second: f64,
}

/// Error of running a peer.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The program is not installed.
    #[error("{0} is not installed")]
    Absent(&'static str),
    /// The program failed or did not end in time.
    #[error("{program} failed: {said}")]
    Failed {
        /// Name of the program.
        program: &'static str,
        /// Last line of the program's output, or a description of the problem.
        said: String,
    },
    /// The output has an unknown format.
    #[error("the output of {program} has no {what}; it may be another version")]
    Unreadable {
        /// Name of the program.
        program: &'static str,
        /// Value that the output lacks.
        what: &'static str,
    },
    /// Error of the test bed.
    #[error(transparent)]
    Net(#[from] NetError),
}

/// Returns the path of a program on the search path or in the folders of system programs.
pub(in crate::net) fn find(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&folders)
        .chain(more)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// A running program, which is killed on drop.
pub(super) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The program may have ended already, so errors are ignored.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A peer on the test bed. Its server runs on the far side, its client on the near side.
pub(super) struct Peer<'t> {
    program: &'static str,
    path: PathBuf,
    testbed: &'t Testbed,
    family: Family,
}

impl<'t> Peer<'t> {
    pub(super) fn new(
        program: &'static str,
        testbed: &'t Testbed,
        family: Family,
    ) -> Result<Peer<'t>, PeerError> {
        Ok(Peer {
            program,
            path: find(program).ok_or(PeerError::Absent(program))?,
            testbed,
            family,
        })
    }

    pub(super) fn far_address(&self) -> String {
        self.testbed.address(Side::Far, self.family).to_string()
    }

    pub(super) fn fault(&self, said: impl ToString) -> PeerError {
        PeerError::Failed {
            program: self.program,
            said: said.to_string(),
        }
    }

    pub(super) fn unreadable(&self, what: &'static str) -> PeerError {
        PeerError::Unreadable {
            program: self.program,
            what,
        }
    }

    pub(super) fn start(&self, side: Side, args: &[String]) -> Result<Running, PeerError> {
        let mut command = Command::new(&self.path);
        command
            .args(args)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(match side {
                Side::Near => Stdio::piped(),
                Side::Far => Stdio::null(),
            })
            .stderr(Stdio::null());
        let child = self.testbed.on(side, || command.spawn())?;
        child.map(Running).map_err(|error| self.fault(error))
    }

    /// Returns a free port on the far side.
    pub(super) fn free_port(&self) -> Result<u16, PeerError> {
        let address = self.testbed.address(Side::Far, self.family);
        let port = self.testbed.on(Side::Far, || {
            Ok(UdpSocket::bind((address, 0))?.local_addr()?.port())
        })?;
        port.map_err(|error: std::io::Error| self.fault(error))
    }

    /// Starts the server and waits until it listens on its port.
    pub(super) fn serve(&self, port: u16, args: &[String]) -> Result<Running, PeerError> {
        let mut server = self.start(Side::Far, args)?;
        // A server blocks its port for the unspecified address, even if the server listens at another
        // address.
        let at: (IpAddr, u16) = match self.family {
            Family::V4 => (Ipv4Addr::UNSPECIFIED.into(), port),
            Family::V6 => (Ipv6Addr::UNSPECIFIED.into(), port),
        };
        for _ in 0..30 {
            thread::sleep(Duration::from_millis(100));
            if let Ok(Some(status)) = server.0.try_wait() {
                return Err(self.fault(format!("its server ended: {status}")));
            }
            let is_free = || UdpSocket::bind(at).is_ok() && TcpListener::bind(at).is_ok();
            if !self.testbed.on(Side::Far, is_free)? {
                return Ok(server);
            }
        }
        Err(self.fault("its server does not listen"))
    }

    /// Runs the client and returns its output.
    pub(super) fn ask(
        &self,
        args: &[String],
        time: Duration,
        stop: Stop<'_>,
    ) -> Result<String, PeerError> {
        let mut client = self.start(Side::Near, args)?;
        let Some(output) = client.0.stdout.take() else {
            return Err(self.fault("its output cannot be read"));
        };
        let reading = thread::spawn(move || {
            let mut text = Vec::new();
            let read = output.take(MAX_OUTPUT).read_to_end(&mut text);
            read.map(|_| String::from_utf8_lossy(&text).into_owned())
        });
        let started = Instant::now();
        let status = loop {
            if let Some(status) = client.0.try_wait().map_err(|error| self.fault(error))? {
                break status;
            }
            if stop() {
                return Err(self.fault("it was stopped"));
            }
            if started.elapsed() > time + GRACE {
                return Err(self.fault("it did not end in time"));
            }
            thread::sleep(Duration::from_millis(10));
        };
        let text = match reading.join() {
            Ok(text) => text.map_err(|error| self.fault(error))?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        if status.success() {
            Ok(text)
        } else {
            Err(self.fault(text.lines().last().unwrap_or("no message")))
        }
    }
}
