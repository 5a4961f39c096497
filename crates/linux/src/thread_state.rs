//! States of threads that leave a CPU. The bits of the field `prev_state` of `sched_switch` differ between kernels: in
//! kernel 3.10, 1,024 means preempted and 64 dead, and since 4.14, 256 and 16. The description of the tracepoint in the
//! recording has the letter of each bit.

/// State of a thread that leaves a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// Ready to run, because the thread was preempted or gave its turn away (R).
    Ready,
    /// Ended, dead or a zombie (X, x, Z).
    Ended,
    /// Waits for an event or a signal (S).
    Interruptible,
    /// Waits for an event, mostly of a device, and ignores signals (D).
    Uninterruptible,
    /// Stopped by a signal (T).
    Stopped,
    /// Stopped by a debugger (t).
    Traced,
    /// Kernel thread that has nothing to do (I; D and N in older kernels).
    Idle,
    /// Kernel thread that is parked (P).
    Parked,
    /// Waits in a state that this crate does not know.
    Unknown,
}

/// Meaning of the bits of `prev_state` in one recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StateBits {
    /// Bits that must all be set, and the state that they mean. The first entry that fits decides.
    states: Vec<(i64, ThreadState)>,
}

/// Letters of the states. The first ones decide if a thread has several. In kernels before 4.14, `DN` are the two bits of an
/// idle kernel thread.
const LETTERS: [(&str, ThreadState); 10] = [
    ("X", ThreadState::Ended),
    ("x", ThreadState::Ended),
    ("Z", ThreadState::Ended),
    ("I", ThreadState::Idle),
    ("DN", ThreadState::Idle),
    ("P", ThreadState::Parked),
    ("T", ThreadState::Stopped),
    ("t", ThreadState::Traced),
    ("D", ThreadState::Uninterruptible),
    ("S", ThreadState::Interruptible),
];

/// Bits since kernel 4.14 (`TASK_REPORT` in `include/linux/sched.h`).
const BITS: [(i64, char); 8] = [
    (0x01, 'S'),
    (0x02, 'D'),
    (0x04, 'T'),
    (0x08, 't'),
    (0x10, 'X'),
    (0x20, 'Z'),
    (0x40, 'P'),
    (0x80, 'I'),
];

/// Bit of a preempted thread since kernel 4.14.
pub(crate) const PREEMPTED: i64 = 0x100;

/// Returns the bit of a state since kernel 4.14 from its letter.
pub(crate) fn bit_of(letter: char) -> Option<i64> {
    let bit = BITS.iter().find(|(_, its_letter)| *its_letter == letter);
    bit.map(|(bit, _)| *bit)
}

/// Greatest bit that can have a letter. The bit of preempted threads comes after it.
const GREATEST: i64 = 1 << 40;

impl StateBits {
    /// Reads the bits from the description of `sched_switch`: `printed` is the text after `print fmt:`. It lists the
    /// letters as `{ 1, "S" }` or `{ 0x00000001, "S" }`. If it lists none, the bits are those of kernel 4.14.
    pub(crate) fn read(printed: &str) -> StateBits {
        let lists = printed.split('{').skip(1);
        let bits = lists.filter_map(|list| {
            let (number, text) = list.split_once('}')?.0.split_once(',')?;
            let number = number.trim();
            let number = match number.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(digits, 16).ok()?,
                None => number.parse().ok()?,
            };
            let letter = text.trim().strip_prefix('"')?.strip_suffix('"')?;
            let letter = letter.chars().next()?;
            (1..=GREATEST).contains(&number).then_some((number, letter))
        });
        let mut bits: Vec<(i64, char)> = bits.collect();
        if bits.is_empty() {
            bits = BITS.to_vec();
        }
        let greatest = bits.iter().map(|(bit, _)| *bit).max().unwrap_or(0);
        let preempted = 1 << (i64::BITS - greatest.leading_zeros());
        let bit = |letter| Some(bits.iter().find(|it| it.1 == letter)?.0);
        let states = LETTERS.iter().filter_map(|(letters, state)| {
            let bits = letters.chars().map(bit).sum::<Option<i64>>()?;
            Some((bits, *state))
        });
        StateBits {
            states: [(preempted, ThreadState::Ready)]
                .into_iter()
                .chain(states)
                .collect(),
        }
    }

    /// Returns the state for a value of `prev_state`.
    pub(crate) fn state(&self, previous_state: i64) -> ThreadState {
        if previous_state == 0 {
            return ThreadState::Ready;
        }
        let mut states = self.states.iter();
        let state = states.find(|(bits, _)| previous_state & bits == *bits);
        state.map_or(ThreadState::Unknown, |(_, state)| *state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ThreadState::{
        Ended, Idle, Interruptible, Parked, Ready, Stopped, Traced, Uninterruptible, Unknown,
    };

    /// Ends of the descriptions of `sched_switch` in kernels 3.10, 4.4 and 6.1.
    const KERNEL_3_10: &str = r#"REC->prev_state & (1024-1) ? __print_flags(REC->prev_state & (1024-1), "|", { 1, "S"} , { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "Z" }, { 32, "X" }, { 64, "x" }, { 128, "K" }, { 256, "W" }, { 512, "P" } ) : "R", REC->prev_state & 1024 ? "+" : """#;
    const KERNEL_4_4: &str = r#"REC->prev_state & (2048-1) ? __print_flags(REC->prev_state & (2048-1), "|", { 1, "S"} , { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "Z" }, { 32, "X" }, { 64, "x" }, { 128, "K" }, { 256, "W" }, { 512, "P" }, { 1024, "N" } ) : "R", REC->prev_state & 2048 ? "+" : """#;
    const KERNEL_6_1: &str = r#"__print_flags(REC->prev_state & 255, "|", { 0x00000001, "S" }, { 0x00000002, "D" }, { 0x00000004, "T" }, { 0x00000008, "t" }, { 0x00000010, "X" }, { 0x00000020, "Z" }, { 0x00000040, "P" }, { 0x00000080, "I" }) : "R""#;

    #[test]
    fn each_kernel_has_its_own_bits() {
        let states = |printed: &str, numbers: &[i64]| -> Vec<ThreadState> {
            let bits = StateBits::read(printed);
            numbers.iter().map(|number| bits.state(*number)).collect()
        };
        // perf prints these letters: R, S, D, T, t, Z, X, x, P, R+ and D|K.
        assert_eq!(
            states(KERNEL_3_10, &[0, 1, 2, 4, 8, 16, 32, 64, 512, 1024, 130]),
            [
                Ready,
                Interruptible,
                Uninterruptible,
                Stopped,
                Traced,
                Ended,
                Ended,
                Ended,
                Parked,
                Ready,
                Uninterruptible
            ]
        );
        // TASK_IDLE is D|N.
        assert_eq!(
            states(KERNEL_4_4, &[1, 64, 1026, 2048, 2049, 128]),
            [Interruptible, Ended, Idle, Ready, Ready, Unknown]
        );
        let since_4_14 = [
            Ready,
            Interruptible,
            Uninterruptible,
            Stopped,
            Traced,
            Ended,
            Ended,
            Parked,
            Idle,
            Ready,
        ];
        let numbers = [0, 1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x100];
        assert_eq!(states(KERNEL_6_1, &numbers), since_4_14);
        for nothing in [
            "",
            "{",
            "{ x, \"S\" }",
            "{ 0, \"S\" }",
            "{ 99999999999999, \"S\" }",
        ] {
            assert_eq!(states(nothing, &numbers), since_4_14, "{nothing}");
        }
    }
}
