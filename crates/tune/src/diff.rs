//! Two machines, or one at two moments: which settings are in effect here and not there.

use crate::audit;
use crate::catalogue::{Catalogue, Confidence, Datum, Setting};
use crate::found::Place;
use crate::inputs::Input;
use crate::known::{Known, State};
use crate::machine::Machine;
use crate::same::do_the_same;

/// What differs.
#[derive(Debug)]
pub struct Diff {
    /// The first machine.
    pub a: Machine,
    /// The second.
    pub b: Machine,
    /// Settings that differ, or may: what matters most first.
    pub differences: Vec<Difference>,
    /// How many settings are the same.
    pub same: usize,
    /// How many values that are no known setting's differ.
    pub others: usize,
}

/// A setting that differs.
#[derive(Debug)]
pub struct Difference {
    /// The setting.
    pub setting: &'static Setting,
    /// Where it is kept.
    pub place: Place,
    /// What it is on the first machine.
    pub a: Side,
    /// What it is on the second.
    pub b: Side,
    /// Whether what is in effect differs; `None` where one side does not tell.
    pub differs: Option<bool>,
    /// Whether one of the two protects its machine less than the other.
    pub about_security: bool,
}

/// What a setting is on one machine.
#[derive(Debug)]
pub struct Side {
    /// What the inputs say.
    pub state: State,
    /// What is in effect: what is set, or the default where nothing is; `None` where that is unknown.
    pub effective: Option<Datum>,
}

/// Compares what inputs say of two machines. What `asked` says counts before what they tell of
/// themselves.
pub fn diff(a: &[Input], b: &[Input], asked: &Machine) -> Diff {
    let machines = (audit::machine(a, asked), audit::machine(b, asked));
    let (known_a, known_b) = (Known::of(a), Known::of(b));
    let mut differences = Vec::new();
    let (mut same, mut others) = (0, 0);
    for place in places(&known_a, &known_b) {
        let Some(setting) = Catalogue::get().at(&place) else {
            let value = |state| match state {
                State::Said(found) => found.value,
                State::Absent | State::Unknown => None,
            };
            if value(known_a.state(&place)) != value(known_b.state(&place)) {
                others += 1;
            }
            continue;
        };
        let a = side(setting, &place, known_a.state(&place), &machines.0);
        let b = side(setting, &place, known_b.state(&place), &machines.1);
        let differs = match (&a.effective, &b.effective) {
            (Some(a), Some(b)) => Some(!do_the_same(setting, (a, &machines.0), (b, &machines.1))),
            _ if is_said(&a.state) == is_said(&b.state) && said(&a.state) == said(&b.state) => {
                Some(false)
            }
            _ => None,
        };
        if differs == Some(false) {
            same += 1;
            continue;
        }
        let protects = |side: &Side| {
            let value = side.effective.as_ref();
            value.is_some_and(|value| setting.protects.contains(value))
        };
        differences.push(Difference {
            about_security: protects(&a) != protects(&b),
            setting,
            place,
            a,
            b,
            differs,
        });
    }
    differences.sort_by_key(|difference| {
        let confidence = difference.setting.confidence(&machines.0);
        (
            difference.differs != Some(true),
            !difference.about_security,
            std::cmp::Reverse::<Confidence>(confidence),
        )
    });
    Diff {
        a: machines.0,
        b: machines.1,
        differences,
        same,
        others,
    }
}

/// All places that either tells of, in the order of the first, then of the second.
fn places(a: &Known<'_>, b: &Known<'_>) -> Vec<Place> {
    let mut seen = std::collections::HashSet::new();
    let words = a.words().iter().chain(b.words());
    words
        .filter(|found| seen.insert(found.place.to_string().to_lowercase()))
        .map(|found| found.place.clone())
        .collect()
}

fn is_said(state: &State) -> bool {
    matches!(state, State::Said(_))
}

fn said(state: &State) -> Option<&crate::registry::Value> {
    match state {
        State::Said(found) => found.value.as_ref(),
        State::Absent | State::Unknown => None,
    }
}

fn side(setting: &Setting, place: &Place, state: State, machine: &Machine) -> Side {
    let effective = match (&state, said(&state)) {
        (State::Unknown, _) => None,
        (_, Some(value)) => setting.read(place, value).ok(),
        (_, None) => match setting.defaults_on(machine, Some(place)).as_slice() {
            [only] => only.value.effective().cloned(),
            _ => None,
        },
    };
    Side { state, effective }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::read;
    use crate::machine::Edition;

    #[test]
    fn what_is_in_effect_is_compared_not_what_is_written() {
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
        // 0xffffff02 is 2, and 10 the default of what is absent.
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
}
