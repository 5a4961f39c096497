//! Other people's programs that measure the same, run on the same test bed in the same minute.
//!
//! They run as programs of their own, and what they print is read; nothing of them is part of this
//! one.

mod iperf3;
mod sockperf;

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Family, NetError, Side, Testbed};
use crate::Stop;

pub use iperf3::throughput;
pub use sockperf::round_trips;

/// The most that is read of what a peer prints.
const MOST_OUTPUT: u64 = 4 << 20;

/// How long a peer may take beyond the time that it is told to run.
const GRACE: Duration = Duration::from_secs(10);

/// How a peer's round trips are spread, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PeerRoundTrips {
    /// Packets that it sent and counts.
    pub sent: u64,
    /// Those of them that it says were lost.
    pub lost: u64,
    /// Half were faster.
    pub p50_ns: i64,
    /// Nine tenths were faster.
    pub p90_ns: i64,
    /// 99 % were faster.
    pub p99_ns: i64,
    /// 99.9 % were faster.
    pub p99_9_ns: i64,
    /// The slowest.
    pub max_ns: i64,
}

/// What a peer got through.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct PeerThroughput {
    /// Packets that it sent.
    pub sent: u64,
    /// Those of them that it says were lost.
    pub lost: u64,
    /// Packets a second that came.
    pub packets_per_second: f64,
    /// Bytes of payload a second that came.
    pub bytes_per_second: f64,
}

/// Why there is nothing of a peer.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// It is not installed.
    #[error("{0} is not installed")]
    Absent(&'static str),
    /// It ended badly, or not in time.
    #[error("{program} did not end well: {said}")]
    Failed {
        /// Its name.
        program: &'static str,
        /// Its last words, or what happened.
        said: String,
    },
    /// It printed something else than expected.
    #[error("{program} printed no {what}: is it another version?")]
    Unreadable {
        /// Its name.
        program: &'static str,
        /// What was looked for.
        what: &'static str,
    },
    /// The test bed failed.
    #[error(transparent)]
    Net(#[from] NetError),
}

/// Where a program is, of those on the search path.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&folders)
        .chain(more)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// A program that runs until it is told otherwise, or until this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One peer on the test bed: its server on the far side, its client on the near one.
struct Peer<'t> {
    program: &'static str,
    path: PathBuf,
    testbed: &'t Testbed,
    family: Family,
}

impl<'t> Peer<'t> {
    fn new(
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

    fn far_address(&self) -> String {
        self.testbed.address(Side::Far, self.family).to_string()
    }

    fn fault(&self, said: impl ToString) -> PeerError {
        PeerError::Failed {
            program: self.program,
            said: said.to_string(),
        }
    }

    fn unreadable(&self, what: &'static str) -> PeerError {
        PeerError::Unreadable {
            program: self.program,
            what,
        }
    }

    fn start(&self, side: Side, args: &[String]) -> Result<Running, PeerError> {
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

    /// A port on the far side that nobody has.
    fn free_port(&self) -> Result<u16, PeerError> {
        let address = self.testbed.address(Side::Far, self.family);
        let port = self.testbed.on(Side::Far, || {
            Ok(UdpSocket::bind((address, 0))?.local_addr()?.port())
        })?;
        port.map_err(|error: std::io::Error| self.fault(error))
    }

    /// Starts the server and waits until it has its port: when nobody else can have it.
    fn serve(&self, port: u16, args: &[String]) -> Result<Running, PeerError> {
        let mut server = self.start(Side::Far, args)?;
        // Whether it listens at its address, at all or at a group's, it has the port of all.
        let at: (IpAddr, u16) = match self.family {
            Family::V4 => (Ipv4Addr::UNSPECIFIED.into(), port),
            Family::V6 => (Ipv6Addr::UNSPECIFIED.into(), port),
        };
        for _ in 0..30 {
            thread::sleep(Duration::from_millis(100));
            if let Ok(Some(status)) = server.0.try_wait() {
                return Err(self.fault(format!("its server ended with {status}")));
            }
            let is_free = || UdpSocket::bind(at).is_ok() && TcpListener::bind(at).is_ok();
            if !self.testbed.on(Side::Far, is_free)? {
                return Ok(server);
            }
        }
        Err(self.fault("its server does not listen"))
    }

    /// Runs the client and gives what it printed.
    fn ask(&self, args: &[String], time: Duration, stop: Stop<'_>) -> Result<String, PeerError> {
        let mut client = self.start(Side::Near, args)?;
        let Some(output) = client.0.stdout.take() else {
            return Err(self.fault("its output cannot be read"));
        };
        let reading = thread::spawn(move || {
            let mut text = Vec::new();
            let read = output.take(MOST_OUTPUT).read_to_end(&mut text);
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
        match status.success() {
            true => Ok(text),
            false => Err(self.fault(text.lines().last().unwrap_or("without a word"))),
        }
    }
}
