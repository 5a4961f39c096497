//! Advice for the user on what to record: kinds of events, and the command-line options of the recorders.

use std::collections::HashSet;
use std::fmt;

use crate::needs::TableNeeds;
use crate::{Capture, Investigation, Kind, Needs};

/// Formats kinds of events with the options of WPR and xperf that record them. The text can follow the word
/// "record": `threads made ready (wpr -start CPU; or xperf -on DISPATCHER or WPR keyword ReadyThread)`.
pub fn advice(kinds: &[Kind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    format!("{} ({})", listed(&names), recorders(kinds))
}

/// Formats the kinds of events that a theory needs, with the options that record all of them. The text can
/// follow the word "record".
impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&merged(&[self]))
    }
}

/// Formats the kinds of events that several theories need, each kind once, with the options that record all
/// of them. The text can follow the word "record".
pub(crate) fn merged(all: &[&Needs]) -> String {
    let names = names(all);
    let mut remarks: Vec<&str> = Vec::new();
    let mut kinds: Vec<Kind> = Vec::new();
    for needs in all {
        kinds.extend(needs.kinds());
        remarks.push(needs.remark);
    }
    let mut once = HashSet::from([""]);
    remarks.retain(|remark| once.insert(*remark));
    if names.is_empty() {
        return remarks.join("; ");
    }
    let kits: Vec<String> = (kits(all).iter())
        .map(|kit| format!("laglab record --for {}", kit.name()))
        .collect();
    let capture = Capture::from_kinds(kinds);
    let recorders = if kits.is_empty() {
        capture.to_string()
    } else {
        format!("{}; or {capture}", listed(&kits))
    };
    let text = format!("{} ({recorders})", listed(&names));
    [text.as_str()]
        .into_iter()
        .chain(remarks)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Returns the names of the kinds that theories need, each once. Kinds of which one is enough have one name.
fn names(all: &[&Needs]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for any in all.iter().flat_map(|needs| needs.each_of) {
        let kinds: Vec<&str> = any.iter().map(|kind| kind.name()).collect();
        let name = kinds.join(" or ");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Formats the data that theories need, with one command that records all of it. The text can follow the word "record".
pub(crate) fn command(all: &[&Needs]) -> String {
    let kits = kits(all);
    let kit = match kits.as_slice() {
        [kit] => *kit,
        _ => Investigation::Full,
    };
    format!(
        "{}: laglab record --for {}",
        listed(&names(all)),
        kit.name()
    )
}

/// Returns a small set of investigations that together answer the questions of the theories.
/// Theories that belong to no investigation are ignored.
fn kits(all: &[&Needs]) -> Vec<Investigation> {
    let mut open: Vec<&str> = all.iter().map(|needs| needs.theory).collect();
    let mut kits = Vec::new();
    loop {
        let answers = |kit: &Investigation| {
            let theories = kit.theories();
            open.iter()
                .filter(|theory| theories.contains(theory))
                .count()
        };
        // If several investigations answer the same number of theories, the first of them is
        // chosen.
        let best = Investigation::ALL.into_iter().rev().max_by_key(answers);
        let Some(kit) = best.filter(|kit| answers(kit) > 0) else {
            return kits;
        };
        open.retain(|theory| !kit.theories().contains(theory));
        kits.push(kit);
    }
}

/// Formats the rows of a table with the options that record them. The text can follow the word "record".
impl fmt::Display for TableNeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kinds, self.remark) {
            ([], remark) => write!(f, "{} ({remark})", self.rows),
            (kinds, "") => write!(f, "{} ({})", self.rows, recorders(kinds)),
            (kinds, remark) => write!(f, "{} ({}; {remark})", self.rows, recorders(kinds)),
        }
    }
}

/// Formats the options of xperf and the keywords of WPR that record a capture, either of which is enough, and the
/// providers that are needed in addition.
impl fmt::Display for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kernel: Vec<String> = Vec::new();
        kernel.extend(self.xperf_flags().map(|flags| format!("xperf -on {flags}")));
        let keywords: Vec<&str> = self.keywords().map(|keyword| keyword.wpr()).collect();
        if !keywords.is_empty() {
            let word = match keywords.len() {
                1 => "keyword",
                _ => "keywords",
            };
            kernel.push(format!("WPR {word} {}", listed(&keywords)));
        }
        let providers = self.providers().iter().map(|enabled| {
            let name = enabled.provider.name();
            match enabled.keywords {
                0 => format!("the provider {name}"),
                keywords => format!("the provider {name} with keywords {keywords:#x}"),
            }
        });
        let providers: Vec<String> = providers.collect();
        let with = match (kernel.len(), providers.len()) {
            (0, _) | (_, 0) => "",
            (1, _) => ", with ",
            _ => ", each with ",
        };
        write!(f, "{}{with}{}", kernel.join(" or "), listed(&providers))
    }
}

/// Formats the options of both recorders. If built-in profiles of WPR record all kinds, the text starts with
/// them.
fn recorders(kinds: &[Kind]) -> String {
    let capture = Capture::from_kinds(kinds.iter().copied());
    match wpr_profiles(kinds) {
        Some(profiles) => format!("wpr -start {}; or {capture}", profiles.join(" -start ")),
        None => capture.to_string(),
    }
}

/// Returns the names of built-in profiles of WPR that together record these kinds, without
/// repetition. Returns `None` if one of the kinds is in no built-in profile, or if all kinds are in
/// every profile.
fn wpr_profiles(kinds: &[Kind]) -> Option<Vec<&'static str>> {
    let mut profiles = Vec::new();
    // Every built-in profile records processes, images and the CPU configuration, so these kinds need no particular
    // profile.
    let special = |kind: &&Kind| !matches!(kind, Kind::Processes | Kind::Images | Kind::CpuConfig);
    for kind in kinds.iter().filter(special) {
        let profile = kind.wpr_profile()?;
        if !profiles.contains(&profile) {
            profiles.push(profile);
        }
    }
    (!profiles.is_empty()).then_some(profiles)
}

/// Joins items as in a sentence, such as `a`, `a and b` or `a, b and c`.
pub(crate) fn listed(things: &[impl AsRef<str>]) -> String {
    let things: Vec<&str> = things.iter().map(AsRef::as_ref).collect();
    match things.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::needs::{for_table, for_theory};

    #[test]
    fn needs_name_the_switches_of_both_recorders() {
        assert_eq!(
            for_theory("saturation").unwrap().to_string(),
            "context switches (laglab record --for long-wait; or xperf -on PROC_THREAD+CSWITCH or \
             WPR keywords ProcessThread, CpuConfig and CSwitch)"
        );
        assert_eq!(
            for_theory("process-frozen").unwrap().to_string(),
            "processes frozen and thawed (the provider Microsoft-Windows-Kernel-Process with \
             keywords 0x200)"
        );
        let busy = for_theory("busy-waiting").unwrap().to_string();
        assert!(
            busy.contains("xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk Profile"),
            "{busy}"
        );
        assert!(busy.ends_with("; symbols of ntoskrnl.exe help"), "{busy}");
    }

    #[test]
    fn merged_needs_name_each_kind_once() {
        let needs = ["saturation", "long-waits", "outranked", "better-rank"];
        let needs = needs.map(|theory| for_theory(theory).unwrap());
        let merged = merged(&needs);
        let start = "context switches and threads made ready (laglab record --for ";
        assert!(merged.starts_with(start), "{merged}");
        assert_eq!(merged.matches("xperf -on ").count(), 1, "{merged}");
        for once in [
            "CSWITCH",
            "DISPATCHER",
            "; only Windows 10 1709 and later record ranks",
        ] {
            assert_eq!(merged.matches(once).count(), 1, "{once}: {merged}");
        }
    }

    #[test]
    fn kits_together_answer_all_questions_that_kits_can_answer() {
        let all: Vec<&Needs> = crate::needs::THEORIES.iter().collect();
        let answered = kits(&all);
        for needs in all {
            let answers = |kit: &Investigation| kit.theories().contains(&needs.theory);
            let can_be = Investigation::ALL.iter().any(answers);
            assert_eq!(answered.iter().any(answers), can_be, "{}", needs.theory);
        }
    }

    #[test]
    fn advice_names_a_built_in_profile_if_one_records_all_kinds() {
        assert_eq!(
            advice(&[Kind::ReadyThreads]),
            "threads made ready (wpr -start CPU; or xperf -on DISPATCHER or WPR keyword ReadyThread)"
        );
        assert_eq!(
            advice(&[Kind::Processes]),
            "processes and threads (xperf -on PROC_THREAD or WPR keyword ProcessThread)"
        );
        assert_eq!(
            advice(&[Kind::Samples, Kind::Priorities]),
            "samples and changes of priorities (xperf -on PRIORITY+PROFILE or WPR keywords \
             ThreadPriority and SampledProfile)"
        );
    }

    #[test]
    fn table_needs_name_rows_switches_and_remark() {
        assert_eq!(
            for_table("file_io").unwrap().to_string(),
            "file operations (wpr -start FileIO; or xperf -on FILENAME+FILE_IO+FILE_IO_INIT or WPR \
             keywords Filename, FileIO and FileIOInit)"
        );
        assert_eq!(
            for_table("marks").unwrap().to_string(),
            "marks (wpr -marker TEXT or xperf -m TEXT writes one while a recording runs)"
        );
        assert_eq!(
            for_table("priorities").unwrap().to_string(),
            "priority changes (xperf -on PRIORITY or WPR keyword ThreadPriority; the provider \
             Microsoft-Windows-Kernel-Process logs them too)"
        );
    }
}
