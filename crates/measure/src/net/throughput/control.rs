//! Control messages between the two ends of a run on two machines. Each message is one line of JSON over TCP.
//! TCP verifies the sender's address.
//!
//! | from | line |
//! |---|---|
//! | the source | `{"laglab_throughput":1,"method":"gso_gro","size":1000,"time_ms":1000,"buffer_bytes":33554432,"port":40123}`, with the source port of its packets |
//! | the counter | `{"ready":{"buffers":{…}}}`, or `{"refused":"…"}`, which ends the run |
//! | the source, after it has sent all packets | `{"sent":123456}` |
//! | the counter | `{"counted":{"packets":123400,"bytes":123400000,"took_ns":999871234}}` |

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Stop;
use crate::net::Buffers;

/// Version of the protocol.
pub(super) const VERSION: u32 = 1;

/// Maximum length of a line in bytes.
const MAX_LINE: usize = 4_096;

/// Maximum time for writing a line.
const WRITING: Duration = Duration::from_secs(2);

/// Start of a request for a run. This start is the same in all versions of the protocol.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Version {
    /// Version of the protocol, which must be [`VERSION`].
    pub(super) laglab_throughput: u32,
}

/// Request for a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    #[serde(flatten)]
    pub(super) version: Version,
    /// Name of the method.
    pub(super) method: String,
    /// Payload size in bytes.
    pub(super) size: usize,
    /// Duration of sending in milliseconds.
    pub(super) time_ms: u64,
    /// Requested receive buffer in bytes.
    pub(super) buffer_bytes: Option<usize>,
    /// Source port of the packets.
    pub(super) port: u16,
}

impl Request {
    pub(super) fn time(&self) -> Duration {
        Duration::from_millis(self.time_ms)
    }
}

/// Message of the source that it has sent all packets.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SentAll {
    /// Number of packets sent.
    pub(super) sent: u64,
}

/// Answer of the counter.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// The counter is ready to receive.
    Ready {
        /// Requested and granted buffer sizes of the counter.
        buffers: Buffers,
    },
    /// The counter refuses the run. The text is the reason.
    Refused(String),
    /// The counter has counted the received packets.
    Counted {
        /// Number of packets received.
        packets: u64,
        /// Number of payload bytes received.
        bytes: u64,
        /// Time from the first to the last packet, in nanoseconds by the counter's clock.
        took_ns: i64,
    },
}

/// Control connection between the two ends.
#[derive(Debug)]
pub(super) struct Control {
    stream: TcpStream,
    /// Received part of the next line.
    line: Vec<u8>,
}

impl Control {
    pub(super) fn new(stream: TcpStream) -> io::Result<Control> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(super::WAIT))?;
        stream.set_write_timeout(Some(WRITING))?;
        Ok(Control {
            stream,
            line: Vec::new(),
        })
    }

    pub(super) fn say(&mut self, what: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        self.stream.write_all(&line)
    }

    /// Waits for a line, at most for `patience`.
    ///
    /// # Errors
    /// Returns an error if no line arrives in time ([`io::ErrorKind::TimedOut`]), `stop` returns
    /// true ([`io::ErrorKind::Interrupted`]), the connection was closed, or the line is too long.
    pub(super) fn read_line(&mut self, patience: Duration, stop: Stop<'_>) -> io::Result<Vec<u8>> {
        let started = Instant::now();
        let mut room = [0; 512];
        loop {
            if let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
                let rest = self.line.split_off(end + 1);
                return Ok(std::mem::replace(&mut self.line, rest));
            }
            if self.line.len() > MAX_LINE {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("a line of more than {MAX_LINE} bytes"),
                ));
            }
            if stop() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if started.elapsed() >= patience {
                let said = format!("no answer within {} s", patience.as_secs_f64());
                return Err(io::Error::new(io::ErrorKind::TimedOut, said));
            }
            match super::if_ready(self.stream.read(&mut room))? {
                Some(0) => {
                    let said = "the connection was closed";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, said));
                }
                Some(length) => self.line.extend_from_slice(&room[..length]),
                None => {}
            }
        }
    }
}

/// Parses a line of JSON.
pub(super) fn read<T: DeserializeOwned>(line: &[u8]) -> io::Result<T> {
    serde_json::from_slice(line).map_err(|_| {
        let text = String::from_utf8_lossy(line);
        let text: String = text.trim_end().chars().take(60).collect();
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "unexpected message `{}`; use the same laglab version at both ends",
                text.escape_debug()
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    fn pair() -> (TcpStream, Control) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
        let at = listener.local_addr().expect("an address");
        let stranger = TcpStream::connect(at).expect("connected");
        let (stream, _) = listener.accept().expect("accepted");
        (stranger, Control::new(stream).expect("set"))
    }

    /// Compares the messages with the table at the top of this file.
    #[test]
    fn the_lines_are_as_documented() {
        let request = br#"{"laglab_throughput":1,"method":"gso_gro","size":1000,"time_ms":1000,"buffer_bytes":33554432,"port":40123}"#;
        let read_back: Request = read(request).expect("a request");
        assert_eq!(read_back.version.laglab_throughput, VERSION);
        assert_eq!(serde_json::to_vec(&read_back).expect("JSON"), request);
        let all: SentAll = read(br#"{"sent":123456}"#).expect("a count");
        assert_eq!(all.sent, 123_456);
        let counted = br#"{"counted":{"packets":123400,"bytes":123400000,"took_ns":999871234}}"#;
        assert!(matches!(
            read(counted),
            Ok(Answer::Counted {
                packets: 123_400,
                ..
            })
        ));
        assert!(matches!(read(br#"{"refused":"no"}"#), Ok(Answer::Refused(why)) if why == "no"));
        let error = read::<Answer>(b"HTTP/1.1 400 \x1b[31m\n").expect_err("no answer");
        assert_eq!(
            error.to_string(),
            "unexpected message `HTTP/1.1 400 \\u{1b}[31m`; use the same laglab version at both ends"
        );
    }

    #[test]
    fn lines_are_bounded_in_length_and_time() {
        let long = Duration::from_secs(20);
        let (mut stranger, mut control) = pair();
        stranger.write_all(b"a\nbc").expect("written");
        assert_eq!(control.read_line(long, &|| false).expect("a line"), b"a\n");
        let error = control.read_line(Duration::from_millis(10), &|| false);
        assert_eq!(error.expect_err("no line").kind(), io::ErrorKind::TimedOut);
        let error = control.read_line(long, &|| true).expect_err("stopped");
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        stranger.write_all(b"\n").expect("written");
        assert_eq!(
            control.read_line(long, &|| false).expect("the rest"),
            b"bc\n"
        );
        stranger.write_all(&[b'x'; 2 * MAX_LINE]).expect("written");
        let error = control.read_line(long, &|| false).expect_err("no line");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let (stranger, mut control) = pair();
        drop(stranger);
        let error = control.read_line(long, &|| false).expect_err("closed");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
