//! Network namespaces that exist only while open files refer to them.

use std::fs::File;
use std::io;
use std::net::{Ipv6Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, setns, unshare};

use super::testbed::{Family, Side, end_of_cable};
use super::{NetError, peers};

/// Names of the network interfaces at the two ends of the virtual cable.
const LINKS: [&str; 2] = ["near0", "far0"];

/// Two network namespaces, connected by a `veth` pair. After the drop, the namespaces vanish as soon as no
/// thread or program runs in them.
#[derive(Debug)]
pub(super) struct Namespaces {
    near: File,
    far: File,
}

impl Namespaces {
    pub(super) fn new() -> Result<Namespaces, NetError> {
        let namespaces = Namespaces {
            near: new_namespace()?,
            far: new_namespace()?,
        };
        namespaces.join()?;
        for side in [Side::Near, Side::Far] {
            namespaces.within(side, settle)?;
        }
        Ok(namespaces)
    }

    /// Creates the virtual cable and configures the interfaces at its ends.
    fn join(&self) -> Result<(), NetError> {
        // The path refers to the open file of this process, because the program `ip` does not inherit the
        // open file.
        let far = format!("/proc/{}/fd/{}", std::process::id(), self.far.as_raw_fd());
        let [near_link, far_link] = LINKS;
        self.ip(
            Side::Near,
            &format!("link add {near_link} type veth peer name {far_link} netns {far}"),
        )?;
        for (side, link) in [(Side::Near, near_link), (Side::Far, far_link)] {
            let v4 = end_of_cable(side, Family::V4);
            let v6 = end_of_cable(side, Family::V6);
            for line in [
                "link set lo up".to_owned(),
                format!("addr add {v4}/24 dev {link}"),
                // Duplicate address detection takes a second and is not needed here.
                format!("addr add {v6}/64 dev {link} nodad"),
                format!("link set {link} up"),
                format!("route add 224.0.0.0/4 dev {link}"),
            ] {
                self.ip(side, &line)?;
            }
        }
        Ok(())
    }

    /// Runs `work` on a thread in the namespace of a side. Threads and programs that `work` starts
    /// run in the same namespace.
    pub(super) fn within<T: Send>(
        &self,
        side: Side,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, NetError> {
        let namespace = match side {
            Side::Near => &self.near,
            Side::Far => &self.far,
        };
        thread::scope(|scope| {
            let working = scope.spawn(|| {
                setns(namespace, CloneFlags::CLONE_NEWNET)
                    .map_err(|errno| fault("entering one", errno))?;
                Ok(work())
            });
            match working.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    fn ip(&self, side: Side, line: &str) -> Result<(), NetError> {
        let mut ip = Command::new(peers::find("ip").unwrap_or_else(|| "ip".into()));
        ip.args(line.split(' '));
        let doing = format!("ip {line}");
        let output = self
            .within(side, || ip.output())?
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => {
                    fault("looking for the program `ip`", "install iproute2")
                }
                _ => fault(&doing, error),
            })?;
        if output.status.success() {
            Ok(())
        } else {
            Err(fault(
                &doing,
                String::from_utf8_lossy(&output.stderr).trim(),
            ))
        }
    }
}

/// Waits until a new link has a route for IPv6 groups. The system adds this route a moment after it creates
/// the link.
fn settle() {
    let any_group: (Ipv6Addr, u16) = (Ipv6Addr::new(0xff18, 0, 0, 0, 0, 0, 0, 1), 9);
    let is_unreachable = || {
        let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0));
        let connected = socket.and_then(|socket| socket.connect(any_group));
        connected.is_err_and(|error| error.kind() == io::ErrorKind::NetworkUnreachable)
    };
    for _ in 0..100 {
        if !is_unreachable() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Creates a namespace and returns an open file that refers to it.
fn new_namespace() -> Result<File, NetError> {
    // The thread that creates a namespace also enters it. A separate thread therefore creates the namespace.
    thread::scope(|scope| {
        let making = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| match errno {
                nix::errno::Errno::EPERM => fault("creating one", "this needs root"),
                errno => fault("creating one", errno),
            })?;
            File::open("/proc/thread-self/ns/net").map_err(|error| fault("opening one", error))
        });
        making.join().expect("creating a namespace does not panic")
    })
}

fn fault(doing: &str, why: impl std::fmt::Display) -> NetError {
    NetError::Namespaces {
        doing: doing.to_owned(),
        why: why.to_string(),
    }
}
