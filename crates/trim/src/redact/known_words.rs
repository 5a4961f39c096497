//! Words that exist on every Windows machine. They identify no machine and no user. `docs/trim.md` lists
//! them.

/// Names of programs, drivers and libraries of Windows, without extension. They stay readable, because symbols and
/// explanations need them. They also stay readable if they have an extension of [`EXTENSIONS`].
const MODULES: &[&str] = &[
    "acpi",
    "advapi32",
    "afd",
    "ataport",
    "audiodg",
    "bfe",
    "bindflt",
    "cdd",
    "ci",
    "cldflt",
    "clfs",
    "clipsp",
    "combase",
    "conhost",
    "csrss",
    "d3d10warp",
    "d3d11",
    "d3d12",
    "dbghelp",
    "disk",
    "dllhost",
    "dnsapi",
    "dwm",
    "dwmcore",
    "dxgi",
    "dxgkrnl",
    "dxgmms1",
    "dxgmms2",
    "explorer",
    "fileinfo",
    "fltmgr",
    "fontdrvhost",
    "fwpkclnt",
    "gdi32",
    "gdi32full",
    "hal",
    "hdaudbus",
    "hidclass",
    "hidusb",
    "http",
    "i8042prt",
    "intelppm",
    "iorate",
    "kbdclass",
    "kbdhid",
    "kernel32",
    "kernelbase",
    "ks",
    "ksecdd",
    "ksecpkg",
    "lsass",
    "lsm",
    "mouclass",
    "mouhid",
    "mountmgr",
    "msrpc",
    "msvcrt",
    "mpsdrv",
    "mssmbios",
    "mswsock",
    "mup",
    "ndis",
    "ndiswan",
    "netbios",
    "netbt",
    "netio",
    "npfs",
    "nsiproxy",
    "ntdll",
    "ntfs",
    "ntkrnlmp",
    "ntkrnlpa",
    "ntkrpamp",
    "ntoskrnl",
    "ole32",
    "oleaut32",
    "pacer",
    "partmgr",
    "pci",
    "pcw",
    "portcls",
    "powershell",
    "rdbss",
    "rdyboost",
    "refs",
    "registry",
    "rpcrt4",
    "rundll32",
    "runtimebroker",
    "searchindexer",
    "sechost",
    "secd",
    "services",
    "shell32",
    "shlwapi",
    "sihost",
    "smss",
    "spaceport",
    "spoolsv",
    "srv2",
    "storahci",
    "stornvme",
    "storport",
    "storqosflt",
    "svchost",
    "system",
    "idle",
    "taskhostw",
    "tcpip",
    "tdx",
    "tm",
    "tpm",
    "trustedinstaller",
    "ucrtbase",
    "ucx01000",
    "ufx01000",
    "umbus",
    "usbaudio",
    "usbccgp",
    "usbehci",
    "usbhub",
    "usbhub3",
    "usbport",
    "usbxhci",
    "user32",
    "userinit",
    "vdrvroot",
    "volmgr",
    "volsnap",
    "volume",
    "wcifs",
    "wdf01000",
    "wdfilter",
    "wfplwfs",
    "win32k",
    "win32kbase",
    "win32kfull",
    "win32u",
    "wininit",
    "winlogon",
    "wmiprvse",
    "wof",
    "wow64",
    "wow64cpu",
    "wow64win",
    "ws2_32",
    "xboxgip",
];

/// Words in paths and session names that stay readable.
const WORDS: &[&str] = &[
    "circular",
    "context",
    "device",
    "driverstore",
    "drivers",
    "files",
    "kernel",
    "logger",
    "machine",
    "microsoft",
    "microsoft.net",
    "mup",
    "nt",
    "program",
    "programdata",
    "relogger",
    "session",
    "software",
    "system",
    "system32",
    "systemroot",
    "syswow64",
    "temp",
    "user",
    "users",
    "windows",
    "winsxs",
    "x86",
];

/// File name extensions that stay readable.
const EXTENSIONS: &[&str] = &[
    "bat", "bin", "cab", "cat", "cmd", "com", "config", "cpl", "cur", "dat", "db", "dll", "doc",
    "docx", "drv", "edb", "etl", "evtx", "exe", "fon", "gif", "htm", "html", "ico", "inf", "ini",
    "jpg", "js", "json", "lnk", "log", "manifest", "mp3", "mp4", "msi", "mui", "mum", "nls", "ocx",
    "pdb", "pdf", "pf", "png", "ps1", "pri", "scr", "sdb", "sys", "tlb", "tmp", "ttf", "txt",
    "vhdx", "winmd", "wav", "xls", "xlsx", "xml", "zip",
];

/// Returns true if the word (in lower case) exists on every Windows machine.
pub(super) fn is_known(word: &str) -> bool {
    let volume = word
        .strip_prefix("harddiskvolume")
        .or_else(|| word.strip_prefix("harddisk"));
    if volume.is_some_and(|n| n.len() <= 3 && n.bytes().all(|b| b.is_ascii_digit())) {
        return true;
    }
    WORDS.contains(&word) || MODULES.contains(&stem(word))
}

/// Returns the word without its extension. Removes only an extension that stays readable.
pub(super) fn stem(word: &str) -> &str {
    match word.rsplit_once('.') {
        Some((stem, extension)) if EXTENSIONS.contains(&extension) => stem,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_them() {
        let page = include_str!("../../../../docs/trim.md");
        let listed: Vec<&str> = page.split(['`', ' ', '\n', ',']).collect();
        for word in [MODULES, WORDS, EXTENSIONS].concat() {
            assert!(
                listed.contains(&word),
                "docs/trim.md does not list `{word}`"
            );
        }
    }
}
