//! Comparison of two machines, or of one machine at two moments.

use std::cmp::Reverse;

use crate::audit;
use crate::catalogue::{Catalogue, Datum, Setting};
use crate::inputs::Input;
use crate::machine::Machine;
use crate::placed_value::Place;
use crate::same::have_same_effect;
use crate::state::{State, States};

/// Result of a comparison.
#[derive(Debug)]
pub struct Diff {
    /// The first machine.
    pub a: Machine,
    /// The second machine.
    pub b: Machine,
    /// Settings that differ or may differ, the most important first.
    pub differences: Vec<Difference>,
    /// Number of settings that are equal.
    pub same: usize,
    /// Number of locations that store no known setting and whose values differ.
    pub others: usize,
}

/// A setting that differs or may differ.
#[derive(Debug)]
pub struct Difference {
    /// Setting that differs or may differ.
    pub setting: &'static Setting,
    /// Place of the setting.
    pub place: Place,
    /// The setting on the first machine.
    pub a: Side,
    /// The setting on the second machine.
    pub b: Side,
    /// True if the effective values differ. `None` if one of the values is unknown.
    pub differs: Option<bool>,
    /// True if the setting protects only one of the two machines.
    pub about_security: bool,
}

/// A setting on one machine.
#[derive(Debug)]
pub struct Side {
    /// State of the place according to the inputs: set, absent or unknown.
    pub state: State,
    /// Effective value: the value that is set, or the default if no value is set. `None` if the effective
    /// value is unknown.
    pub effective: Option<Datum>,
}

impl Side {
    fn new(setting: &Setting, place: &Place, state: State, machine: &Machine) -> Self {
        let effective = match (&state, state.value()) {
            (State::Unknown, _) => None,
            (_, Some(value)) => setting.read(place, value).ok(),
            (_, None) => match setting.defaults_on(machine, Some(place)).as_slice() {
                [only] => only.value.effective().cloned(),
                _ => None,
            },
        };
        Self { state, effective }
    }

    fn protects(&self, setting: &Setting) -> bool {
        let value = self.effective.as_ref();
        value.is_some_and(|value| setting.protects.contains(value))
    }
}

/// Compares the inputs of two machines. The build and edition in `asked` override the build and edition in
/// the inputs.
pub fn diff(a: &[Input], b: &[Input], asked: &Machine) -> Diff {
    let mut diff = Diff {
        a: audit::machine(a, asked),
        b: audit::machine(b, asked),
        differences: Vec::new(),
        same: 0,
        others: 0,
    };
    let (a, b) = (States::new(a), States::new(b));
    let only_in_b = b.places().filter(|place| !a.contains(place));
    for place in a.places().chain(only_in_b) {
        match Catalogue::get().at(place) {
            Some(setting) => diff.add(setting, place, a.state(place), b.state(place)),
            None => diff.others += usize::from(a.value(place) != b.value(place)),
        }
    }
    diff.differences.sort_by_key(|difference| {
        (
            difference.differs != Some(true),
            !difference.about_security,
            Reverse(difference.setting.confidence(&diff.a)),
        )
    });
    diff
}

impl Diff {
    fn add(&mut self, setting: &'static Setting, place: &Place, a: State, b: State) {
        let a = Side::new(setting, place, a, &self.a);
        let b = Side::new(setting, place, b, &self.b);
        let is_set = |side: &Side| matches!(side.state, State::Set(_));
        let differs = match (&a.effective, &b.effective) {
            (Some(a), Some(b)) => Some(!have_same_effect(setting, (a, &self.a), (b, &self.b))),
            _ if is_set(&a) == is_set(&b) && a.state.value() == b.state.value() => Some(false),
            _ => None,
        };
        if differs == Some(false) {
            self.same += 1;
            return;
        }
        self.differences.push(Difference {
            about_security: a.protects(setting) != b.protects(setting),
            setting,
            place: place.clone(),
            a,
            b,
            differs,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::inputs::read;
    use crate::machine::Edition;

    /// Checks the time for large exports. Exports of whole hives have about 100,000 values, so the time must
    /// not grow with the square of this number.
    #[test]
    fn large_exports_are_compared_in_linear_time() {
        const COUNT: usize = 100_000;
        let reg = |first: usize| {
            let mut text = String::from("Windows Registry Editor Version 5.00\r\n");
            for number in first..first + COUNT {
                if number % 10 == 0 {
                    let _ = write!(text, "[HKLM\\SOFTWARE\\Vendor\\{number}]\r\n");
                }
                let _ = write!(text, "\"Value{number}\"=dword:{number:x}\r\n");
            }
            read("a.reg", text.as_bytes()).unwrap()
        };
        let diff = diff(&reg(0), &reg(10), &Machine::default());
        assert_eq!((diff.differences.len(), diff.same, diff.others), (0, 0, 20));
    }

    #[test]
    fn effective_values_are_compared() {
        let machine = Machine {
            name: None,
            build: Some(22631),
            edition: Some(Edition::Pro),
        };
        let reg = |priority: &str, throttling: &str, bfe: u32| {
            let text = format!(
                "Windows Registry Editor Version 5.00\r\n\
                 [HKLM\\SYSTEM\\CurrentControlSet\\Control\\PriorityControl]\r\n\
                 \"Win32PrioritySeparation\"=dword:{priority}\r\n\
                 [HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Multimedia\\SystemProfile]\r\n\
                 \"Unknown\"=dword:{bfe}\r\n{throttling}\r\n\
                 [HKLM\\SYSTEM\\CurrentControlSet\\Services\\BFE]\r\n\"Start\"=dword:{bfe}\r\n"
            );
            read("a.reg", text.as_bytes()).unwrap()
        };
        // Windows ignores all but the lowest six bits, so 0xffffff02 has the effect of 2. The second machine
        // has no value for the other setting. The default of this setting is 10.
        let a = reg("2", "", 2);
        let b = reg("ffffff02", "\"NetworkThrottlingIndex\"=dword:46", 4);
        let diff = diff(&a, &b, &machine);
        let ids: Vec<&str> = (diff.differences.iter())
            .map(|difference| difference.setting.id.as_str())
            .collect();
        assert_eq!(ids, ["bfe", "netthrottling"]);
        assert_eq!((diff.same, diff.others), (1, 1));
        assert_eq!(diff.differences[1].a.effective, Some(Datum::Number(10)));
        assert_eq!(diff.differences[1].a.state, State::Absent);
    }

    /// The default of EncryptData is 0. If the command prints no value, the value is unknown: it is
    /// neither 0 nor the default.
    #[test]
    fn a_property_that_a_command_prints_empty_is_unknown() {
        let smb = |encrypts: &str| {
            let text = format!("EnableSMB1Protocol : False\nEncryptData        : {encrypts}\n");
            read("smb.txt", text.as_bytes()).unwrap()
        };
        for value in ["False", "True"] {
            let diff = diff(&smb(""), &smb(value), &Machine::default());
            assert_eq!((diff.differences.len(), diff.same), (1, 1));
            let encrypts = &diff.differences[0];
            assert_eq!(encrypts.setting.id, "smb_encrypt.data");
            assert_eq!(
                (&encrypts.a.state, encrypts.differs),
                (&State::Unknown, None)
            );
            assert_eq!(encrypts.a.effective, None);
        }
        let unknown = diff(&smb(""), &smb(""), &Machine::default());
        assert!(unknown.differences.is_empty());
    }
}
