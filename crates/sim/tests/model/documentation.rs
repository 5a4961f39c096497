//! Checks that the user documentation names every field of scenarios and of the truth.

use std::io::Cursor;

use sim::Scenario;

/// Source files that define the schema of scenarios.
const SCHEMA: [&str; 6] = [
    include_str!("../../src/scenario/mod.rs"),
    include_str!("../../src/scenario/machine.rs"),
    include_str!("../../src/scenario/program.rs"),
    include_str!("../../src/scenario/world.rs"),
    include_str!("../../src/log/recording.rs"),
    include_str!("../../../rules/src/rss.rs"),
];

/// Returns the fields of the structs that are read from TOML, with their TOML names.
fn fields(source: &str) -> Vec<&str> {
    let mut fields = Vec::new();
    let (mut is_read, mut inside, mut renamed) = (false, false, None);
    for line in source.lines() {
        let text = line.trim();
        if line.starts_with("#[derive(") {
            is_read = text.contains("Deserialize");
        } else if line.contains("struct ") && line.ends_with('{') {
            inside = is_read;
        } else if line == "}" {
            (inside, is_read) = (false, false);
        } else if let Some((_, name)) = text.split_once("rename = \"") {
            renamed = name.split('"').next();
        } else if inside
            && !text.starts_with("//")
            && let Some((name, _)) = text.split_once(": ")
        {
            let name = name.rsplit(' ').next().unwrap_or(name);
            fields.push(renamed.take().unwrap_or(name));
        }
    }
    fields
}

#[test]
fn every_field_of_a_scenario_is_explained() {
    let page = include_str!("../../../../docs/scenarios.md");
    let fields: Vec<&str> = SCHEMA.iter().flat_map(|source| fields(source)).collect();
    assert!(fields.len() > 120, "found only {}", fields.len());
    for field in fields {
        let is_named = [
            format!("`{field}`"),
            format!("`{field} ="),
            format!("[{field}]"),
            format!(".{field}]"),
            format!(" {field} = "),
        ]
        .iter()
        .any(|text| page.contains(text.as_str()));
        assert!(is_named, "docs/scenarios.md does not name `{field}`");
    }
}

#[test]
fn the_page_s_scenario_runs_and_every_field_of_its_truth_is_explained() {
    let page = include_str!("../../../../docs/scenarios.md");
    let example = page
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let scenario = Scenario::read("page.toml", example.expect("an example"), &|_| None, &[]);
    let scenario = scenario.expect("the example is right");
    let (_, truth) = sim::simulate(&scenario, None, Cursor::new(Vec::new()), |_| true)
        .expect("the example runs");
    let page = include_str!("../../../../docs/truth.md");
    let truth = serde_json::to_value(truth).expect("the truth is JSON");
    let mut names = Vec::new();
    collect(&truth, &mut names);
    assert!(names.len() > 50, "found only {}", names.len());
    for name in names {
        let is_named = page.contains(&format!("`{name}`")) || page.contains(&format!("`{name}[]`"));
        assert!(is_named, "docs/truth.md does not name `{name}`");
    }
}

/// Collects the names of all fields. In a map that holds counts by name or number, the keys are not
/// collected.
fn collect(value: &serde_json::Value, names: &mut Vec<String>) {
    const MAPS: [&str; 4] = [
        "events_by_kind",
        "ranks_at_switch_out",
        "priorities_at_switch_out",
        "received_by_cpu",
    ];
    match value {
        serde_json::Value::Object(members) => {
            for (name, member) in members {
                names.push(name.clone());
                if !MAPS.contains(&name.as_str()) {
                    collect(member, names);
                }
            }
        }
        serde_json::Value::Array(list) => list.iter().for_each(|member| collect(member, names)),
        _ => {}
    }
}
