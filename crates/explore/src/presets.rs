//! Presets, which are views that are part of the program.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::View;

/// A view with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// Name of the preset.
    pub name: String,
    /// Group in the list of presets, such as `CPU`, `Interrupts`, `Disk`, `Network` or `System`.
    pub group: String,
    /// View that the preset shows.
    pub view: View,
}

/// All views that are part of the program.
static SHIPPED: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("presets.json")).expect("the shipped presets are valid")
});

/// Returns all views that are part of the program.
pub(crate) fn shipped() -> &'static [Preset] {
    &SHIPPED
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::{GraphKind, PivotRequest};

    #[test]
    fn every_preset_names_existing_columns() {
        for Preset { name, view, .. } in shipped() {
            let def = catalogue::table(&view.table).unwrap();
            let bar = view.columns.iter().position(|column| column == View::BAR);
            let (keys, aggregates) = view.columns.split_at(bar.expect("a golden bar"));
            for key in keys {
                def.key(key)
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
            }
            crate::aggregates::Aggregates::parse(def, &aggregates[1..])
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let sort = view.sort.as_ref().map(|sort| &sort.column);
            assert!(sort.is_none_or(|sort| aggregates.contains(sort)), "{name}");
            for condition in &view.filter {
                def.column(&condition.column).unwrap();
            }
            let graph = &view.graph;
            let measure = graph.measure.as_deref().unwrap_or("rows");
            assert!(
                matches!(measure, "rows")
                    || (measure == "time" && def.lasts.is_some())
                    || def.number(measure).is_ok(),
                "{name}: {measure}"
            );
            if let Some(by) = &graph.by {
                def.key(by).unwrap();
            }
            assert_eq!(
                graph.kind == GraphKind::Flame,
                graph.stack.is_some(),
                "{name}"
            );
            if let Some(stack) = &graph.stack {
                def.stack(stack).unwrap();
            }
        }
    }

    #[test]
    fn preset_names_are_unique() {
        let mut names: Vec<&str> = shipped()
            .iter()
            .map(|preset| preset.name.as_str())
            .collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }

    #[test]
    fn a_view_with_unknown_fields_is_refused() {
        let view = r#"{"table": "cpu_runs", "columns": [], "colour": "red"}"#;
        assert!(serde_json::from_str::<View>(view).is_err());
        let request = r#"{"table": "cpu_runs", "first": 1, "order": []}"#;
        assert!(serde_json::from_str::<PivotRequest>(request).is_err());
    }
}
