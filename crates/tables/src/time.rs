//! Conversion of times.

/// Formats a time in nanoseconds since 1970 as ISO 8601 in UTC. The resolution is 100 ns.
pub fn utc(unix_ns: i64) -> String {
    let ticks = unix_ns.div_euclid(100);
    let time = jiff::Timestamp::from_nanosecond(i128::from(ticks) * 100);
    time.map_or_else(|_| String::new(), |time| format!("{time:.7}"))
}
