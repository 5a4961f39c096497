//! What the two ends of a run between machines say to each other: a line of JSON each, over TCP, so that
//! who asks is who it says.
//!
//! | from | line |
//! |---|---|
//! | the source | `{"laglab_throughput":1,"method":"gso_gro","size":1000,"time_ms":1000,"buffer_bytes":33554432,"port":40123}`: where its packets will come from |
//! | the counting end | `{"ready":{"buffers":{…}}}`, or `{"refused":"…"}` and no more |
//! | the source, when it has sent all | `{"sent":123456}` |
//! | the counting end | `{"counted":{"packets":123400,"bytes":123400000,"took_ns":999871234}}` |

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Stop;
use crate::net::Buffers;

/// The version of all this.
pub(super) const VERSION: u32 = 1;

/// The longest line, in bytes.
const LONGEST: usize = 4_096;

/// How long somebody may take to read what is said.
const WRITING: Duration = Duration::from_secs(2);

/// The start of a line that asks for a run, whatever else later versions say in it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Version {
    /// [`VERSION`].
    pub(super) laglab_throughput: u32,
}

/// Asks for a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    #[serde(flatten)]
    pub(super) version: Version,
    /// By which method.
    pub(super) method: String,
    /// Bytes of payload in a packet.
    pub(super) size: usize,
    /// For how long it will be sent.
    pub(super) time_ms: u64,
    /// Bytes of receive buffer to ask for.
    pub(super) buffer_bytes: Option<usize>,
    /// The port that packets will come from.
    pub(super) port: u16,
}

impl Request {
    pub(super) fn time(&self) -> Duration {
        Duration::from_millis(self.time_ms)
    }
}

/// That all was sent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SentAll {
    /// How many packets.
    pub(super) sent: u64,
}

/// What the counting end says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// It receives.
    Ready {
        /// What it was granted.
        buffers: Buffers,
    },
    /// It does not, in words.
    Refused(String),
    /// What came.
    Counted {
        /// Packets.
        packets: u64,
        /// Bytes of payload.
        bytes: u64,
        /// From the first packet to the last, in nanoseconds by its clock.
        took_ns: i64,
    },
}

/// The connection.
#[derive(Debug)]
pub(super) struct Control {
    stream: TcpStream,
    /// What has come of the next line.
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

    /// Waits for a line, for a bounded time.
    ///
    /// # Errors
    /// When none comes in time ([`io::ErrorKind::TimedOut`]), it is told to stop
    /// ([`io::ErrorKind::Interrupted`]), the other end is gone, or the line is too long.
    pub(super) fn hear(&mut self, patience: Duration, stop: Stop<'_>) -> io::Result<Vec<u8>> {
        let started = Instant::now();
        let mut room = [0; 512];
        loop {
            if let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
                let rest = self.line.split_off(end + 1);
                return Ok(std::mem::replace(&mut self.line, rest));
            }
            if self.line.len() > LONGEST {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("a line of more than {LONGEST} bytes"),
                ));
            }
            if stop() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if started.elapsed() >= patience {
                let said = format!("nothing came in {} s", patience.as_secs_f64());
                return Err(io::Error::new(io::ErrorKind::TimedOut, said));
            }
            match super::if_ready(self.stream.read(&mut room))? {
                Some(0) => {
                    let said = "it closed the connection";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, said));
                }
                Some(length) => self.line.extend_from_slice(&room[..length]),
                None => {}
            }
        }
    }
}

/// What a line says; an error if it says something else.
pub(super) fn read<T: DeserializeOwned>(line: &[u8]) -> io::Result<T> {
    serde_json::from_slice(line).map_err(|_| {
        let text = String::from_utf8_lossy(line);
        let text: String = text.trim_end().chars().take(60).collect();
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it said `{}`: is it another version?", text.escape_debug()),
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

    /// Lines as the table at the top of this file has them.
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
            "it said `HTTP/1.1 400 \\u{1b}[31m`: is it another version?"
        );
    }

    #[test]
    fn lines_are_bounded_in_length_and_time() {
        let long = Duration::from_secs(20);
        let (mut stranger, mut control) = pair();
        stranger.write_all(b"a\nbc").expect("written");
        assert_eq!(control.hear(long, &|| false).expect("a line"), b"a\n");
        let error = control.hear(Duration::from_millis(10), &|| false);
        assert_eq!(error.expect_err("no line").kind(), io::ErrorKind::TimedOut);
        let error = control.hear(long, &|| true).expect_err("stopped");
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        stranger.write_all(b"\n").expect("written");
        assert_eq!(control.hear(long, &|| false).expect("the rest"), b"bc\n");
        stranger.write_all(&[b'x'; 2 * LONGEST]).expect("written");
        let error = control.hear(long, &|| false).expect_err("no line");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let (stranger, mut control) = pair();
        drop(stranger);
        let error = control.hear(long, &|| false).expect_err("nobody");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
