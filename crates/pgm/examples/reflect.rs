//! Sends each received message back to the group: `reflect INTERFACE GROUP [raw]`. A sender can use
//! this program to measure the round-trip time.

use std::{env, error::Error};

use pgm::{
    Encapsulation, Event, Interface, Received, ReceiverConfig, Socket, SocketConfig, SourceConfig,
    wire::Tsi,
};

fn main() -> Result<(), Box<dyn Error>> {
    let [interface, group, options @ ..] = &env::args().skip(1).collect::<Vec<_>>()[..] else {
        return Err("usage: reflect INTERFACE GROUP [raw]".into());
    };
    let mut config = SocketConfig::new(Interface::find(interface)?, group.parse()?);
    if options == ["raw"] {
        config.encapsulation = Encapsulation::Raw;
    }
    let address = config.address()?;
    let source = SourceConfig::new(Tsi::random(), address, config.group);
    let receiver = ReceiverConfig::new(address, config.group);
    let mut socket = Socket::open(&config, Some(source), Some(receiver))?;
    loop {
        if let Received::Event(Event::Message { payload, .. }) = socket.recv_blocking()? {
            socket.send_blocking(&payload)?;
        }
    }
}
