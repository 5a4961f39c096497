//! Flame graphs: the weight of stacks by function.

use explore::{FlameAnswer, Number};
use maud::{Markup, html};
use wording::Printable;

use super::axes::{WIDTH, letters, units};
use super::{SERIES, colour, figure, measured};

/// Height of a call.
const ROW: f64 = 15.0;
/// Maximum depth of drawn calls.
const DEEPEST: usize = 80;
/// Minimum width of drawn calls.
const NARROWEST: f64 = 0.8;

/// Call in the drawn flame graph.
struct Call {
    node: usize,
    from: f64,
    wide: f64,
    depth: usize,
}

pub(super) fn picture(flame: &FlameAnswer, inverted: bool) -> Markup {
    let calls = layout(flame);
    let deepest = calls.iter().map(|call| call.depth + 1).max().unwrap_or(0);
    let rows = deepest.min(DEEPEST);
    let height = rows as f64 * ROW;
    let differences = differences(flame);
    let greatest = differences.iter().flatten().copied();
    let greatest = greatest.fold(0.0f64, |most, one| most.max(one.abs()));
    let top = |depth: usize| {
        if inverted {
            depth as f64 * ROW
        } else {
            (rows - 1 - depth) as f64 * ROW
        }
    };
    let share = |weight: i64, of: i64| 100.0 * weight as f64 / of.max(1) as f64;
    let label = |node: usize| {
        let name = name(flame, node);
        let total = flame.nodes.total[node];
        let mut label = format!(
            "{name}: {} ({:.2} %)",
            measured(Number::Integer(total), &flame.unit),
            share(total, flame.total)
        );
        if let Some(differences) = &differences {
            label += &format!("; {:+.2} percentage points", 100.0 * differences[node]);
        }
        label
    };
    let fill = |node: usize| match &differences {
        Some(differences) => {
            let strength = (differences[node].abs() / greatest.max(f64::MIN_POSITIVE)).sqrt();
            let towards = if differences[node] > 0.0 {
                "more"
            } else {
                "less"
            };
            format!(
                "color-mix(in srgb,var(--{towards}) {:.0}%,var(--idle))",
                100.0 * strength
            )
        }
        None => {
            let colour = colour(place_of(module(name(flame, node))));
            format!("color-mix(in srgb,{colour} 45%,var(--card))")
        }
    };
    let caption = match (flame.total, calls.is_empty()) {
        (0, _) => "No weight is recorded".to_owned(),
        (_, true) => "No stacks are recorded".to_owned(),
        (total, false) => {
            let mut caption = format!(
                "{} in total, {:.1} % of it with a stack; {}",
                measured(Number::Integer(total), &flame.unit),
                100.0 * flame.known,
                if inverted {
                    "innermost calls are at the top, their callers below"
                } else {
                    "outermost calls are at the bottom, their callees above"
                }
            );
            if differences.is_some() {
                caption += "; red: more than in the compared data; blue: less";
            }
            if deepest > rows {
                caption += &format!("; {} deeper rows are not drawn", deepest - rows);
            }
            caption
        }
    };
    let picture = html! {
        @if !calls.is_empty() {
            svg viewBox={ "0 0 " (WIDTH) " " (units(height)) } role="img" aria-label=(caption) {
                @for call in calls.iter().filter(|call| call.depth < rows) {
                    g {
                        title { (Printable(&label(call.node))) }
                        rect x=(units(call.from)) y=(units(top(call.depth))) width=(units((call.wide - 0.4).max(0.4)))
                            height=(ROW - 1.0) style={ "fill:" (fill(call.node)) } {}
                        @if let Some(text) = fitting(name(flame, call.node), letters(call.wide - 5.0)) {
                            text.call x=(units(call.from + 3.0)) y=(units(top(call.depth) + 10.5)) { (Printable(&text)) }
                        }
                    }
                }
            }
        }
    };
    figure(picture, &caption, &[])
}

/// Lays out the callees of each call next to each other, above their caller. The width of a call is its
/// weight.
fn layout(flame: &FlameAnswer) -> Vec<Call> {
    let nodes = &flame.nodes;
    let count = nodes.frame.len();
    let outermost = (0..count).filter(|node| nodes.parent[*node].is_none());
    let all: f64 = outermost.map(|node| nodes.total[node] as f64).sum();
    let mut froms = vec![0.0; count];
    let mut taken = vec![0.0; count];
    let mut depths = vec![0; count];
    let mut next = 0.0;
    let mut calls = Vec::new();
    for node in 0..count {
        let wide = nodes.total[node] as f64 / all.max(1.0) * WIDTH;
        // A caller precedes its callees in `nodes`.
        let caller = nodes.parent[node].map(|caller| caller as usize);
        let caller = caller.filter(|caller| *caller < node);
        match caller {
            Some(caller) => {
                froms[node] = taken[caller];
                taken[caller] += wide;
                depths[node] = depths[caller] + 1;
            }
            None => {
                froms[node] = next;
                next += wide;
            }
        }
        taken[node] = froms[node];
        if wide >= NARROWEST {
            calls.push(Call {
                node,
                from: froms[node],
                wide,
                depth: depths[node],
            });
        }
    }
    calls
}

/// Returns the share of each call minus its share in the compared data. Returns `None` if there are no
/// compared data.
fn differences(flame: &FlameAnswer) -> Option<Vec<f64>> {
    let compared = flame.nodes.compared.as_ref()?;
    let share = |weight: i64, of: i64| match of {
        ..=0 => 0.0,
        of => weight as f64 / of as f64,
    };
    let there = flame.compared_total.unwrap_or(0);
    let both = flame.nodes.total.iter().zip(compared);
    Some(
        both.map(|(here, other)| share(*here, flame.total) - share(*other, there))
            .collect(),
    )
}

fn name(flame: &FlameAnswer, node: usize) -> &str {
    let frame = flame.nodes.frame[node] as usize;
    flame.frames.get(frame).map_or("?", String::as_str)
}

/// Returns the module of a frame: `ntoskrnl.exe` for `ntoskrnl.exe!KiSwapThread` and
/// `ntoskrnl.exe+0x12`.
fn module(frame: &str) -> &str {
    let end = frame.find('!').or_else(|| frame.find("+0x"));
    end.map_or(frame, |end| &frame[..end])
}

/// Returns the index of the colour for a name. A name always has the same colour.
fn place_of(name: &str) -> usize {
    let sum = name.bytes().fold(7u32, |sum, byte| {
        sum.wrapping_mul(31)
            .wrapping_add(u32::from(byte.to_ascii_lowercase()))
    });
    sum as usize % SERIES
}

/// Shortens a frame to at most `most` letters. First removes the module. If the function is still too long,
/// cuts its end. Returns `None` if too few letters fit.
fn fitting(frame: &str, most: usize) -> Option<String> {
    let function = match frame.split_once('!') {
        // A function with an unknown name is shown as its module.
        Some((module, "?")) => module,
        Some((_, function)) => function,
        None => frame,
    };
    let fits = |text: &str| text.chars().count() <= most;
    if fits(frame) {
        return Some(frame.to_owned());
    }
    if fits(function) {
        return Some(function.to_owned());
    }
    let cut: String = function.chars().take(most.saturating_sub(1)).collect();
    (most >= 4).then(|| cut + "…")
}

#[cfg(test)]
mod tests {
    use super::*;
    use explore::Nodes;

    /// Returns a flame graph with two outermost calls, A and D, each with a weight of 100. A calls B (30) and
    /// C (10), so the own weight of A is 60. D has no callees.
    fn flame() -> FlameAnswer {
        FlameAnswer {
            total: 200,
            compared_total: Some(100),
            known: 1.0,
            frames: ["m!A", "m!B", "n+0x12", "m!D"].map(str::to_owned).into(),
            nodes: Nodes {
                parent: vec![None, Some(0), Some(0), None],
                frame: vec![0, 1, 2, 3],
                own: vec![60, 30, 10, 100],
                total: vec![100, 30, 10, 100],
                compared: Some(vec![100, 0, 10, 0]),
            },
            cut: 0,
            unit: String::new(),
            sql: None,
        }
    }

    #[test]
    fn calls_are_as_wide_as_their_weight_over_their_callers() {
        let calls = layout(&flame());
        let places: Vec<(f64, f64, usize)> = calls
            .iter()
            .map(|call| (call.from, call.wide, call.depth))
            .collect();
        assert_eq!(
            places,
            [
                (0.0, 450.0, 0),
                (0.0, 135.0, 1),
                (135.0, 45.0, 1),
                (450.0, 450.0, 0)
            ]
        );
    }

    #[test]
    fn differences_are_of_shares() {
        assert_eq!(differences(&flame()), Some(vec![-0.5, 0.15, -0.05, 0.5]));
    }

    #[test]
    fn names_are_cut_to_what_fits() {
        assert_eq!(fitting("m!Function", 20).as_deref(), Some("m!Function"));
        assert_eq!(fitting("m!Function", 8).as_deref(), Some("Function"));
        assert_eq!(fitting("m!Function", 5).as_deref(), Some("Func…"));
        assert_eq!(fitting("m!Function", 3), None);
        assert_eq!(fitting("module.dll!?", 10).as_deref(), Some("module.dll"));
        assert_eq!((module("n+0x12"), module("m!A")), ("n", "m"));
    }
}
