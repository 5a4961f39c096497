//! Writes each received message as a line until a source has ended: `receive INTERFACE GROUP
//! [raw]`.

use std::{
    env,
    error::Error,
    io::{self, Write},
};

use pgm::{Encapsulation, Event, Interface, Received, ReceiverConfig, Socket, SocketConfig};

fn main() -> Result<(), Box<dyn Error>> {
    let [interface, group, options @ ..] = &env::args().skip(1).collect::<Vec<_>>()[..] else {
        return Err("usage: receive INTERFACE GROUP [raw]".into());
    };
    let mut config = SocketConfig::new(Interface::find(interface)?, group.parse()?);
    if options == ["raw"] {
        config.encapsulation = Encapsulation::Raw;
    }
    let receiver = ReceiverConfig {
        late_join: true,
        ..ReceiverConfig::new(config.address()?, config.group)
    };
    let mut socket = Socket::open(&config, None, Some(receiver))?;
    let (mut out, mut log) = (io::stdout(), io::stderr());
    loop {
        match socket.recv_blocking()? {
            Received::Event(Event::Message { payload, .. }) => {
                out.write_all(&payload)?;
                out.write_all(b"\n")?;
                out.flush()?;
            }
            Received::Event(Event::Finished { source }) => {
                writeln!(log, "{source} has ended: {:?}", socket.statistics(source))?;
                return Ok(());
            }
            other => writeln!(log, "{other:?}")?,
        }
    }
}
