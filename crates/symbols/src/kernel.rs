//! Symbols of a Linux kernel and its modules.

use crate::functions::{Functions, Preference};

/// Maximum size of the last function in bytes. The list of symbols does not contain the end of this function.
const LAST: u64 = 4096;

/// Symbols of a running kernel, and of the programs in the text of a recording, from the text of `/proc/kallsyms`.
#[derive(Debug, Default)]
pub struct KernelSymbols {
    functions: Functions,
    end: u64,
    /// Addresses of `_text` and `_stext`. The kernel's code begins at one of them.
    starts: [Option<u64>; 2],
}

impl KernelSymbols {
    /// Reads lines such as `ffffffff81000000 T _stext` and `ffffffffc0001000 t xfs_open\t[xfs]`. Ignores other lines.
    /// The name of a function of a program can contain spaces. A line without a name ends the function before it. Also ignores lines with the address 0: the system shows this address to users without the necessary rights.
    pub fn parse(text: &[u8]) -> KernelSymbols {
        let mut symbols = KernelSymbols::default();
        for line in text.split(|byte| *byte == b'\n') {
            let line = std::str::from_utf8(line).unwrap_or_default();
            let mut words = line.splitn(3, ' ');
            let Some(((address, kind), name)) = words.next().zip(words.next()).zip(words.next())
            else {
                continue;
            };
            // The name of a module follows the name of the function.
            let name = name.split('\t').next().unwrap_or(name).trim_end();
            let address = u64::from_str_radix(address, 16).ok().filter(|it| *it != 0);
            let Some(address) = address.filter(|_| matches!(kind, "t" | "T" | "w" | "W")) else {
                continue;
            };
            match name {
                "_text" => symbols.starts[0] = Some(address),
                "_stext" => symbols.starts[1] = Some(address),
                _ => {}
            }
            let preference = Preference {
                has_size: false,
                is_strong: !matches!(kind, "w" | "W"),
                is_global: matches!(kind, "T" | "W"),
            };
            symbols.functions.push(address, 0, name, preference);
            symbols.end = symbols.end.max(address.saturating_add(LAST));
        }
        symbols.functions.sort();
        symbols
    }

    /// Returns true if the symbols belong to a kernel whose code begins at `start`. If the kernel is loaded at a random
    /// address, `start` differs after each boot.
    pub fn are_of(&self, start: u64) -> bool {
        self.starts.contains(&Some(start))
    }

    /// Returns the function that contains an address, and the offset in the function.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        let (name, start) = self.functions.find(address, self.end)?;
        (!name.is_empty()).then_some((name, address - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_kallsyms_are_read_and_others_ignored() {
        let text = b"ffffffff81000000 T _stext\n\
            ffffffff81000000 T _text\n\
            ffffffff81000100 t do_one\n\
            ffffffff81000200 D data\n\
            ffffffffc0001000 t xfs_open\t[xfs]\n\
            10000000000fb t operator new(unsigned long)\n\
            1000000000110 t \n\
            /proc/1/task/1/status:Cpus_allowed_list:\t0-1\n\
            0000000000000000 T hidden\n\xFF\xFE\n";
        let symbols = KernelSymbols::parse(text);
        assert!(symbols.are_of(0xFFFF_FFFF_8100_0000) && !symbols.are_of(0xFFFF_FFFF_8200_0000));
        assert_eq!(symbols.find(0xFFFF_FFFF_8100_0110), Some(("do_one", 0x10)));
        assert_eq!(
            symbols.find(0xFFFF_FFFF_C000_1FFF),
            Some(("xfs_open", 0xFFF))
        );
        assert_eq!(symbols.find(0xFFFF_FFFF_C000_2000), None);
        assert_eq!(
            symbols.find(0x1_0000_0000_0100),
            Some(("operator new(unsigned long)", 5))
        );
        assert_eq!(symbols.find(0x1_0000_0000_0118), None);
        assert_eq!(symbols.find(0x1000), None);
        assert!(!KernelSymbols::parse(b"").are_of(0));
    }
}
