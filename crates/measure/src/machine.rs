//! The machine that is measured.

#[cfg(target_os = "linux")]
#[path = "machine/linux.rs"]
mod system;
#[cfg(target_os = "macos")]
#[path = "machine/macos.rs"]
mod system;
#[cfg(windows)]
#[path = "machine/windows.rs"]
mod system;

use serde::Serialize;

/// What a measurement was taken on. What the system does not say is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    /// The CPU's name.
    pub cpu: Option<String>,
    /// CPUs that this program may use.
    pub cpus: Option<usize>,
    /// The system and its release.
    pub kernel: Option<String>,
    /// Whether the kernel is one for real time (PREEMPT_RT).
    pub is_real_time: Option<bool>,
    /// Whether Wine stands in for Windows: a program that looks like Windows to others, on another
    /// system whose scheduler and timers are what is measured.
    pub is_wine: bool,
    /// Whether it is a virtual machine.
    pub virtualised: Virtualised,
    /// How many threads want a CPU, as an average of the last minute.
    pub load: Option<f64>,
    /// What the kernel itself keeps time by.
    pub clock_source: Option<String>,
    /// Ticks of the kernel's timer in a second.
    pub hz: Option<u32>,
}

/// Whether a machine is a virtual one. In one, the host may take the CPU away at any moment, which
/// no setting of the guest prevents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Virtualised {
    /// It does not say; a host may hide itself.
    #[default]
    NotSaid,
    /// It says so; the host's name if it has one.
    By(String),
}

impl Machine {
    /// This one, now.
    pub fn here() -> Machine {
        let mut machine = system::describe();
        machine.cpus = std::thread::available_parallelism().ok().map(usize::from);
        if machine.virtualised == Virtualised::NotSaid {
            machine.virtualised = hypervisor().map_or(Virtualised::NotSaid, Virtualised::By);
        }
        machine
    }
}

/// The hypervisor, as it introduces itself to CPUID: leaf 1, ECX bit 31 and leaf 4000_0000h, which
/// AMD and Intel reserve for it.
#[cfg(target_arch = "x86_64")]
fn hypervisor() -> Option<String> {
    use crate::cpu::cpuid;

    let [_, _, ecx, _] = cpuid(1);
    if ecx & 1 << 31 == 0 {
        return None;
    }
    let [_, name @ ..] = cpuid(0x4000_0000);
    let name: Vec<u8> = name
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .filter(u8::is_ascii_graphic)
        .collect();
    let name = String::from_utf8(name).unwrap_or_default();
    Some(match name.as_str() {
        "KVMKVMKVM" => "KVM".to_owned(),
        "MicrosoftHv" => "Hyper-V".to_owned(),
        "VMwareVMware" => "VMware".to_owned(),
        "XenVMMXenVMM" => "Xen".to_owned(),
        "" => "an unnamed hypervisor".to_owned(),
        _ => name,
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_what_the_system_says_it_is() {
        let machine = Machine::here();
        assert!(machine.cpus.is_some_and(|cpus| cpus > 0));
        assert!(machine.kernel.is_some());
        #[cfg(target_os = "linux")]
        {
            let read = |path: &str| std::fs::read_to_string(path).ok();
            let release = read("/proc/sys/kernel/osrelease").unwrap();
            assert_eq!(machine.kernel, Some(format!("Linux {}", release.trim())));
            if let Some(cpu) = &machine.cpu {
                assert!(read("/proc/cpuinfo").unwrap().contains(cpu.as_str()));
            }
            assert!(machine.load.is_some_and(|load| load >= 0.0));
            if let Some(hz) = machine.hz {
                assert!([100, 250, 300, 1000].contains(&hz), "{hz}");
            }
        }
    }
}
