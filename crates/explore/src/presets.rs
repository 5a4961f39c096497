//! Views that are asked for often.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::View;

/// A view with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// What it belongs to: `CPU`, `Interrupts`, `Disk`, `Network`, `System`, …
    pub group: String,
    /// The view.
    pub view: View,
}

/// The views that ship.
static SHIPPED: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("presets.json")).expect("what ships is well-formed")
});

/// The views that ship.
pub(crate) fn shipped() -> &'static [Preset] {
    &SHIPPED
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::{GraphKind, PivotRequest};

    #[test]
    fn every_preset_names_columns_that_there_are() {
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
    fn names_are_used_once() {
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
