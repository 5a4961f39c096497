//! Public names of builds of Windows.
//!
//! Source: Microsoft's release-information pages for Windows client and Windows Server.

/// Returns the public name of a build, such as `Windows 11 24H2`. If a client and a server have the same
/// build number, returns both names. Returns `None` for unknown builds and for builds between releases
/// (previews).
pub fn windows_release(build: u32) -> Option<&'static str> {
    Some(match build {
        2195 => "Windows 2000",
        2600 => "Windows XP",
        3790 => "Windows Server 2003 or XP x64",
        6000 => "Windows Vista",
        6001 => "Windows Vista SP1 or Server 2008",
        6002 | 6003 => "Windows Vista SP2 or Server 2008 SP2",
        7600 => "Windows 7 or Server 2008 R2",
        7601 => "Windows 7 SP1 or Server 2008 R2 SP1",
        9200 => "Windows 8 or Server 2012",
        9600 => "Windows 8.1 or Server 2012 R2",
        10240 => "Windows 10 1507",
        10586 => "Windows 10 1511",
        14393 => "Windows 10 1607 or Server 2016",
        15063 => "Windows 10 1703",
        16299 => "Windows 10 1709",
        17134 => "Windows 10 1803",
        17763 => "Windows 10 1809 or Server 2019",
        18362 => "Windows 10 1903",
        18363 => "Windows 10 1909",
        19041 => "Windows 10 2004",
        19042 => "Windows 10 20H2",
        19043 => "Windows 10 21H1",
        19044 => "Windows 10 21H2",
        19045 => "Windows 10 22H2",
        20348 => "Windows Server 2022",
        22000 => "Windows 11 21H2",
        22621 => "Windows 11 22H2",
        22631 => "Windows 11 23H2",
        25398 => "Windows Server 23H2",
        26100 => "Windows 11 24H2 or Server 2025",
        26200 => "Windows 11 25H2",
        _ => return None,
    })
}
