//! Description of the measured machine.

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

/// Properties of the measured machine. A property is `None` if the system does not report it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    /// Name of the computer.
    pub name: Option<String>,
    /// Name of the CPU.
    pub cpu: Option<String>,
    /// Number of CPUs available to this program.
    pub cpus: Option<usize>,
    /// Name and release of the operating system.
    pub kernel: Option<String>,
    /// True if the kernel is a real-time kernel (PREEMPT_RT).
    pub is_real_time: Option<bool>,
    /// True if the program runs under Wine. In this case, the scheduler and timers belong to the host system,
    /// not to Windows.
    pub is_wine: bool,
    /// Virtualisation.
    pub virtualised: Virtualised,
    /// Load average: the mean number of threads that used or waited for a CPU in the last minute.
    pub load: Option<f64>,
    /// Name of the clock source that the kernel uses.
    pub clock_source: Option<String>,
    /// Number of timer ticks of the kernel per second.
    pub hz: Option<u32>,
}

/// Virtualisation of the machine. A host can take the CPU away at any moment, and no setting of the
/// guest can prevent it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Virtualised {
    /// The machine reports no hypervisor. It may still be virtual, because a host may hide itself.
    #[default]
    NotSaid,
    /// The machine is virtual. The text is the name of the hypervisor.
    By(String),
}

impl Machine {
    /// Returns a description of this machine.
    pub fn detect() -> Machine {
        let mut machine = system::describe();
        machine.cpus = std::thread::available_parallelism().ok().map(usize::from);
        if machine.virtualised == Virtualised::NotSaid {
            machine.virtualised = hypervisor().map_or(Virtualised::NotSaid, Virtualised::By);
        }
        machine
    }
}

/// Returns the name of the hypervisor from CPUID. Bit 31 of ECX in leaf 1 reports that there is a hypervisor.
/// Leaf 4000_0000h contains the name of the hypervisor. AMD and Intel reserve this leaf for hypervisors.
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
    fn the_description_matches_the_system() {
        let machine = Machine::detect();
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
