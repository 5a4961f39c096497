//! Kernel flags that a logging session enabled: the group masks of `Extension` events.
//!
//! Mask 0 is the public `EnableFlags` (`evntrace.h`). The names of the other masks are from System Informer's
//! `ntwmi.h`. The three highest bits of a flag are the number of the flag's mask.

/// Flags, in the order of their masks, with their names.
const FLAGS: &[(u32, &str)] = &[
    (0x1, "process"),
    (0x2, "thread"),
    (0x4, "image"),
    (0x8, "process counters"),
    (0x10, "context switch"),
    (0x20, "DPC"),
    (0x40, "interrupt"),
    (0x80, "system call"),
    (0x100, "disk I/O"),
    (0x200, "disk file I/O"),
    (0x400, "disk I/O init"),
    (0x800, "dispatcher"),
    (0x1000, "page faults"),
    (0x2000, "hard faults"),
    (0x4000, "virtual alloc"),
    (0x8000, "VA map"),
    (0x1_0000, "TCP/IP"),
    (0x2_0000, "registry"),
    (0x4_0000, "debug print"),
    (0x8_0000, "job"),
    (0x10_0000, "ALPC"),
    (0x20_0000, "split I/O"),
    (0x40_0000, "debug events"),
    (0x80_0000, "driver"),
    (0x100_0000, "profile"),
    (0x200_0000, "file I/O"),
    (0x400_0000, "file I/O init"),
    (0x1000_0000, "no system configuration"),
    (0x2000_0002, "profile"),
    (0x2000_0004, "context switch"),
    (0x2000_0080, "DPC"),
    (0x2000_0100, "compact context switch"),
    (0x2000_0200, "dispatcher"),
    (0x2000_0400, "PMC profile"),
    (0x2000_1000, "affinity"),
    (0x2000_2000, "priority"),
    (0x2000_4000, "interrupt"),
    (0x2000_8000, "virtual alloc"),
    (0x2001_0000, "spin lock"),
    (0x2002_0000, "sync objects"),
    (0x2004_0000, "DPC queue"),
    (0x2008_0000, "memory info"),
    (0x2040_0000, "session"),
    (0x2080_0000, "working-set info"),
    (0x2100_0000, "kernel queue"),
    (0x2200_0000, "interrupt steering"),
    (0x2400_0000, "should yield"),
    (0x4000_0001, "anti-starvation"),
    (0x4000_0002, "process freeze"),
    (0x4000_0020, "heap"),
    (0x4000_0040, "system call"),
    (0x4000_0400, "objects"),
    (0x4000_2000, "DFSS"),
    (0x4000_8000, "processor idle"),
    (0x4001_0000, "CPU configuration"),
    (0x4002_0000, "timer"),
    (0x4004_0000, "clock interrupt"),
    (0x4008_0000, "load balancer"),
    (0x4020_0000, "idle selection"),
    (0x4040_0000, "IPI"),
    (0x4080_0000, "I/O timer"),
    (0x4100_0000, "registry hive"),
    (0x4200_0000, "registry notify"),
    (0x4400_0000, "PPM exit latency"),
    (0x4800_0000, "worker thread"),
    (0x8000_0001, "optical I/O"),
    (0x8000_0002, "optical I/O init"),
    (0x8000_0040, "handles"),
    (0x8000_0080, "objects"),
    (0x8000_8000, "power"),
    (0x8002_0000, "cache manager"),
    (0x8100_0000, "WDF DPC"),
    (0x8200_0000, "WDF interrupt"),
    (0xC000_0001, "system configuration"),
    (0xC000_0002, "graphics configuration"),
    (0xC000_0004, "storage configuration"),
    (0xC000_0008, "network configuration"),
    (0xC000_0010, "services configuration"),
    (0xC000_0020, "PnP configuration"),
    (0xC000_0040, "optical configuration"),
];

/// Returns the names of the set flags without duplicates. Bits without a name are returned as text
/// such as `mask 2: 0x10`.
pub(crate) fn enabled(masks: &[u32; 8]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (number, mask) in (0u32..).zip(masks) {
        let mut unnamed = *mask & 0x1FFF_FFFF;
        for (flag, name) in FLAGS.iter().filter(|(flag, _)| flag >> 29 == number) {
            let bit = flag & 0x1FFF_FFFF;
            if mask & bit != 0 && !names.iter().any(|n| n == name) {
                names.push((*name).to_owned());
            }
            unnamed &= !bit;
        }
        if unnamed != 0 {
            names.push(format!("mask {number}: {unnamed:#x}"));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_names() {
        let masks = [0x1 | 0x10, 0x2 | 0x4 | 0x1000_0000, 0, 0, 0, 0, 0x1, 0];
        assert_eq!(
            enabled(&masks),
            [
                "process",
                "context switch",
                "profile",
                "mask 1: 0x10000000",
                "system configuration"
            ]
        );
        assert!(enabled(&[0; 8]).is_empty());
    }
}
