//! Selection of the groups before and after a change.

use std::collections::HashMap;

use statistics::Design;

use crate::columns::shown;
use crate::{Error, Group, Run};

/// Runs of one thing before and after a change.
#[derive(Clone, Debug)]
pub struct Sides {
    /// Name of the measured thing. If the names of both sides differ, it contains both names.
    pub name: String,
    /// Relation between the runs of both sides: paired or unpaired.
    pub design: Design,
    /// Runs before the change. If the runs are paired, both sides have the same number of runs, and runs with
    /// the same index form a pair.
    pub before: Group,
    /// Runs after the change.
    pub after: Group,
    /// Number of runs before and after the change that were left out because they have no partner.
    pub alone: [usize; 2],
    /// Number of runs that have the same name as a run of the other side, although the runs are unpaired. 0 if the
    /// caller knows that there are no pairs.
    pub same_names: usize,
    /// True if the runs are pairs of a measurement that could end as soon as its result was sure
    /// (`laglab measure --until-sure`). Such a measurement tests its data several times, so its intervals are wider.
    pub has_looks: bool,
}

/// Rule for the pairs of the runs of one measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairing {
    /// Runs with the same name form pairs, if all runs of the side with fewer runs have a partner, and if the runs of
    /// each pair were measured next to each other. Otherwise, the runs are unpaired.
    #[default]
    Found,
    /// Runs with the same name form pairs. Runs without a partner are left out.
    ByName,
    /// Runs form no pairs.
    Unpaired,
}

/// Selects two groups of one measurement. `before` and `after` must each select exactly one
/// group by its whole name, the start of its name, or a part of its name. If both are `None`, the measurement must
/// have exactly two groups. Then the first group is the side before the change.
///
/// # Errors
/// Returns an error that lists the groups if the names do not select two different groups. Also returns an error if
/// `pairing` asks for pairs, but no runs have the same name.
pub fn within(
    mut groups: Vec<Group>,
    before: Option<&str>,
    after: Option<&str>,
    pairing: Pairing,
) -> Result<Sides, Error> {
    let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
    let select = |part: &str| {
        // The order of preference is: a group whose whole name is `part`; a group whose name begins with `part`; a
        // group whose name contains `part`.
        let kinds: [fn(&str, &str) -> bool; 3] = [
            |name, part| name == part,
            |name, part| name.starts_with(part),
            |name, part| name.contains(part),
        ];
        let of_kind = |is_like: &fn(&str, &str) -> bool| -> Vec<usize> {
            let all = 0..names.len();
            all.filter(|at| is_like(&names[*at], part)).collect()
        };
        let like = kinds.iter().map(of_kind).find(|like| !like.is_empty());
        match like.as_deref() {
            Some([at]) => Ok(*at),
            None => Err(Error::Sides(format!(
                "nothing measured is called `{part}`; give a part of one of these names: {}",
                listed(&names)
            ))),
            Some(several) => {
                let several: Vec<String> = several.iter().map(|at| names[*at].clone()).collect();
                Err(Error::Sides(format!(
                    "`{part}` is a part of several names; give a longer part of one of these names: {}",
                    listed(&several)
                )))
            }
        }
    };
    let (before, after) = match (before, after, names.len()) {
        (Some(before), Some(after), _) => (select(before)?, select(after)?),
        (None, None, 2) => (0, 1),
        _ => {
            return Err(Error::Sides(format!(
                "cannot compare within one measurement of {}: {}; choose two with --before and --after",
                wording::counted(names.len() as u64, "thing", "things"),
                listed(&names)
            )));
        }
    };
    if before == after {
        return Err(Error::Sides(format!(
            "cannot compare `{}` with itself; give another name with --after",
            shown(&names[before])
        )));
    }
    let take = |groups: &mut Vec<Group>, at: usize| {
        let empty = Group {
            name: String::new(),
            column: None,
            unit: groups[at].unit,
            runs: Vec::new(),
        };
        std::mem::replace(&mut groups[at], empty)
    };
    let (before, after) = (take(&mut groups, before), take(&mut groups, after));
    let name = format!("{} → {}", before.name, after.name);
    by_name(name, before, after, pairing)
}

/// Matches the groups of two measurements by name. If each measurement has exactly one group, these groups
/// are compared even if their names differ. If `paired` is true, the first run before the change is paired
/// with the first run after it, and so on.
///
/// # Errors
/// Returns an error if no groups match, or if `paired` is true and the numbers of runs differ.
pub fn between(
    before: Vec<Group>,
    mut after: Vec<Group>,
    paired: bool,
) -> Result<Vec<Sides>, Error> {
    let design = if paired {
        Design::Paired
    } else {
        Design::Unpaired
    };
    let names = |groups: &[Group]| -> Vec<String> {
        groups.iter().map(|group| group.name.clone()).collect()
    };
    let (names_before, names_after) = (names(&before), names(&after));
    let is_single = before.len() == 1 && after.len() == 1;
    let mut all = Vec::new();
    for group in before {
        let same = after.iter().position(|other| other.name == group.name);
        let Some(at) = same.or(is_single.then_some(0)) else {
            continue;
        };
        let other = after.remove(at);
        if paired && group.runs.len() != other.runs.len() {
            return Err(Error::Sides(format!(
                "cannot pair {} of `{}` before the change with {} after it; leave out --paired",
                wording::counted(group.runs.len() as u64, "run", "runs"),
                shown(&group.name),
                other.runs.len()
            )));
        }
        all.push(Sides {
            name: if group.name == other.name {
                group.name.clone()
            } else {
                format!("{} → {}", group.name, other.name)
            },
            design,
            before: group,
            after: other,
            alone: [0, 0],
            same_names: 0,
            has_looks: false,
        });
    }
    if all.is_empty() {
        Err(Error::Sides(format!(
            "nothing was measured on both sides: before the change there is {}, after it {}; measure the \
             same methods and settings",
            listed(&names_before),
            listed(&names_after)
        )))
    } else {
        Ok(all)
    }
}

/// Joins the groups of several files of one side. If there are several files, the number of the file becomes part of
/// the name of each run.
pub fn joined(files: Vec<Vec<Group>>) -> Vec<Group> {
    let mut all: Vec<Group> = Vec::new();
    let is_single = files.len() == 1;
    for (number, file) in files.into_iter().enumerate() {
        for mut group in file {
            for run in &mut group.runs {
                if !is_single {
                    run.name = format!("{} of file {}", run.name, number + 1);
                }
                // Different measurements have different clocks, so the order of runs from different files is unknown.
                run.began = None;
                run.file = number;
            }
            match all.iter_mut().find(|known| known.name == group.name) {
                Some(known) => known.runs.append(&mut group.runs),
                None => all.push(group),
            }
        }
    }
    all
}

/// Pairs the runs of two groups by name, if `pairing` allows it. Leaves out runs without a partner, and puts both groups
/// in the same order. Without pairs, keeps all runs.
fn by_name(
    name: String,
    mut before: Group,
    mut after: Group,
    pairing: Pairing,
) -> Result<Sides, Error> {
    let places: HashMap<&str, usize> = (after.runs.iter().enumerate())
        .map(|(place, run)| (run.name.as_str(), place))
        .collect();
    let pair = |run: &Run| places.get(run.name.as_str()).copied();
    let pairs: Vec<Option<usize>> = before.runs.iter().map(pair).collect();
    let counts = [before.runs.len(), after.runs.len()];
    let count = pairs.iter().flatten().count();
    let is_paired = match pairing {
        Pairing::Unpaired => false,
        Pairing::ByName if count == 0 => {
            return Err(Error::Sides(format!(
                "cannot pair the runs of {}: no run before the change has the name of a run after it; name the column \
                 of the run with --run, or leave out --paired",
                shown(&name)
            )));
        }
        Pairing::ByName => true,
        Pairing::Found => {
            let both = before.runs.iter().zip(&pairs);
            let both = both.filter_map(|(run, place)| Some((run, &after.runs[(*place)?])));
            // If the order is unknown, only complete pairs are evidence that the runs were measured in pairs.
            count > 0
                && count == counts[0].min(counts[1])
                && are_neighbours(both).unwrap_or(counts[0] == counts[1])
        }
    };
    let mut alone = [0, 0];
    if is_paired {
        let mut others: Vec<Option<Run>> = after.runs.into_iter().map(Some).collect();
        let partners = pairs.iter().flatten().map(|place| others[*place].take());
        after.runs = partners.flatten().collect();
        let mut has_pair = pairs.iter().map(Option::is_some);
        before.runs.retain(|_| has_pair.next() == Some(true));
        alone = counts.map(|all| all - count);
    }
    Ok(Sides {
        name,
        design: if is_paired {
            Design::Paired
        } else {
            Design::Unpaired
        },
        before,
        after,
        alone,
        same_names: match pairing {
            Pairing::Found if !is_paired => count,
            _ => 0,
        },
        has_looks: false,
    })
}

/// Returns true if the runs of each pair were measured next to each other. Returns `None` if the order of the runs is
/// unknown, or if there is only one pair.
pub(crate) fn are_neighbours<'r>(pairs: impl Iterator<Item = (&'r Run, &'r Run)>) -> Option<bool> {
    let mut order = Vec::new();
    for (pair, (before, after)) in pairs.enumerate() {
        order.extend([(before.began?, pair), (after.began?, pair)]);
    }
    order.sort_unstable();
    let mut pairs = order.chunks_exact(2);
    (pairs.len() > 1).then(|| pairs.all(|pair| pair[0].1 == pair[1].1))
}

/// Returns true if runs without pairs alternated: at most two successive runs are of the same side, and the side changes
/// more than once. Returns false if the order of the runs is unknown.
pub(crate) fn take_turns(before: &[Run], after: &[Run]) -> bool {
    let values_of = |side: &[Run], is_after: bool| -> Option<Vec<(i64, bool)>> {
        let runs = side.iter();
        runs.map(|run| Some((run.began?, is_after))).collect()
    };
    let order = values_of(before, false).zip(values_of(after, true));
    let Some((before, after)) = order else {
        return false;
    };
    let mut order = [before, after].concat();
    order.sort_unstable();
    let is_clear = order.windows(2).all(|two| two[0].0 != two[1].0);
    // In the order old, new, new, old, two successive runs are of the same side.
    let sides: Vec<&[(i64, bool)]> = order.chunk_by(|one, next| one.1 == next.1).collect();
    is_clear && sides.len() > 2 && sides.iter().all(|runs| runs.len() <= 2)
}

/// Lists names for an error message.
fn listed(names: &[String]) -> String {
    const MOST: usize = 12;
    let shown: Vec<String> = names
        .iter()
        .take(MOST)
        .map(|name| format!("`{}`", shown(name)))
        .collect();
    match names.len() {
        0 => "nothing".to_owned(),
        count if count > MOST => format!("{} and {} more", shown.join(", "), count - MOST),
        _ => shown.join(", "),
    }
}
