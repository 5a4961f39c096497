//! Names of Windows' status and error codes.
//!
//! The tables have one line per code, such as `c0000022 STATUS_ACCESS_DENIED`, sorted by code. They contain
//! the constants of type `NTSTATUS`, `HRESULT` and `WIN32_ERROR` in `Windows::Win32::Foundation` of
//! Microsoft's `windows-sys` 0.61.2 (MIT or Apache-2.0). If a code has several names, the table has the name
//! that starts with `STATUS_` or `ERROR_`. The names for the start or the end of a range are left out.

use std::sync::LazyLock;

type Table = LazyLock<Vec<(u32, &'static str)>>;

static NTSTATUS: Table = LazyLock::new(|| parse(include_str!("status/ntstatus.txt")));
static HRESULT: Table = LazyLock::new(|| parse(include_str!("status/hresult.txt")));
static WIN32: Table = LazyLock::new(|| parse(include_str!("status/win32.txt")));

/// Returns the name of an NTSTATUS. For example, the name of 0xC0000022 is `STATUS_ACCESS_DENIED`.
pub(crate) fn ntstatus_name(code: u32) -> Option<&'static str> {
    find(&NTSTATUS, code)
}

/// Returns the name of a Win32 error code. For example, the name of 2 is `ERROR_FILE_NOT_FOUND`.
pub(crate) fn win32_error_name(code: u32) -> Option<&'static str> {
    find(&WIN32, code)
}

/// Returns the name of an HRESULT. For example, the name of 0x80004001 is `E_NOTIMPL`. An HRESULT 0x8007xxxx
/// contains a Win32 error. In this case, returns the name of the Win32 error, as in the output of `tracefmt`.
/// For example, the name of 0x80070005 is `ERROR_ACCESS_DENIED`.
pub(crate) fn hresult_name(code: u32) -> Option<&'static str> {
    let wrapped = (code >> 16 == 0x8007)
        .then(|| win32_error_name(code & 0xFFFF))
        .flatten();
    wrapped.or_else(|| find(&HRESULT, code))
}

fn find(table: &[(u32, &'static str)], code: u32) -> Option<&'static str> {
    let at = table.binary_search_by_key(&code, |(code, _)| *code).ok()?;
    table.get(at).map(|(_, name)| *name)
}

fn parse(text: &'static str) -> Vec<(u32, &'static str)> {
    let line = |line: &'static str| {
        let (code, name) = line.split_once(' ')?;
        Some((u32::from_str_radix(code, 16).ok()?, name))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_complete_and_sorted() {
        for (table, text) in [
            (&NTSTATUS, include_str!("status/ntstatus.txt")),
            (&HRESULT, include_str!("status/hresult.txt")),
            (&WIN32, include_str!("status/win32.txt")),
        ] {
            assert_eq!(table.len(), text.lines().count());
            assert!(table.is_sorted_by(|a, b| a.0 < b.0));
        }
    }

    /// Compares codes and names with Microsoft's [MS-ERREF].
    #[test]
    fn well_known_codes_have_their_names() {
        assert_eq!(ntstatus_name(0), Some("STATUS_SUCCESS"));
        assert_eq!(ntstatus_name(0x0000_0102), Some("STATUS_TIMEOUT"));
        assert_eq!(ntstatus_name(0xC000_0005), Some("STATUS_ACCESS_VIOLATION"));
        assert_eq!(
            ntstatus_name(0xC000_0034),
            Some("STATUS_OBJECT_NAME_NOT_FOUND")
        );
        assert_eq!(ntstatus_name(0xDEAD_BEEF), None);
        assert_eq!(win32_error_name(0), Some("ERROR_SUCCESS"));
        assert_eq!(win32_error_name(2), Some("ERROR_FILE_NOT_FOUND"));
        assert_eq!(hresult_name(0), Some("S_OK"));
        assert_eq!(hresult_name(1), Some("S_FALSE"));
        assert_eq!(hresult_name(0x8000_4001), Some("E_NOTIMPL"));
        assert_eq!(hresult_name(0x8007_0005), Some("ERROR_ACCESS_DENIED"));
    }
}
