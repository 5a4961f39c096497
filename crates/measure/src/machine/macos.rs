//! Description of a macOS machine.

use super::Machine;

pub(super) fn describe() -> Machine {
    let system = rustix::system::uname();
    Machine {
        name: Some(system.nodename().to_string_lossy().into_owned()),
        kernel: Some(format!(
            "{} {}",
            system.sysname().to_string_lossy(),
            system.release().to_string_lossy()
        )),
        cpu: Some(system.machine().to_string_lossy().into_owned()),
        is_real_time: Some(false),
        ..Machine::default()
    }
}
