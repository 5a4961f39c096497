//! Sends each line of its input as a message: `send INTERFACE GROUP [raw]`.

use std::{
    env,
    error::Error,
    io::{self, BufRead},
};

use pgm::{Encapsulation, Interface, Received, Socket, SocketConfig, SourceConfig, wire::Tsi};

fn main() -> Result<(), Box<dyn Error>> {
    let [interface, group, options @ ..] = &env::args().skip(1).collect::<Vec<_>>()[..] else {
        return Err("usage: send INTERFACE GROUP [raw]".into());
    };
    let mut config = SocketConfig::new(Interface::find(interface)?, group.parse()?);
    config.loopback = true;
    if options == ["raw"] {
        config.encapsulation = Encapsulation::Raw;
    }
    let source = SourceConfig::new(Tsi::random(), config.address()?, config.group);
    let mut socket = Socket::open(&config, Some(source), None)?;
    for line in io::stdin().lock().lines() {
        socket.send_blocking(line?.as_bytes())?;
        // Sends the repairs that receivers have requested so far.
        while !matches!(
            socket.recv()?,
            Received::WouldBlock | Received::TimerPending(_)
        ) {}
    }
    socket.close();
    while !matches!(socket.recv_blocking()?, Received::End) {}
    Ok(())
}
