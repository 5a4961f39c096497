//! Generator of `ui/src/api/types.ts`, the page's types of requests and answers.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;

use explore::{
    ButterflyAnswer, ButterflyRequest, FlameAnswer, FlameRequest, HeatAnswer, HeatRequest,
    HistogramAnswer, HistogramRequest, LanesAnswer, LanesRequest, PivotAnswer, PivotRequest,
    Preset, RowsAnswer, RowsRequest, TableInfo, TimelineAnswer, TimelineRequest,
};
use ts_rs::{Config, TS, TypeVisitor};

use crate::sql_json::{Catalogue, Question, Rows};
use crate::{api, presets, refusal, traces};

const HEADER: &str = "\
// Requests to the server and its answers. Times are nanoseconds since the trace's start. Unknown values are
// `null` or absent; comments call them `None`.
//
// Generated from the types of the server by `UPDATE_EXPECT=1 cargo test -p serve types`. Do not edit.

/** Start and end. */
export type Range = [start: number, end: number];

/** Id of a key's value, which is valid only in one trace; `null` if the value is unknown. */
export type Id = number | null;
";

/// Declarations of types, by name. If a declared type refers to other types, they are declared too.
struct Declarations {
    config: Config,
    by_name: BTreeMap<String, (TypeId, String)>,
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        // Types of the standard library have no path. They need no declaration, because TypeScript has equal types.
        if T::output_path().is_none() {
            return;
        }
        let name = T::ident(&self.config);
        match self.by_name.entry(name) {
            Entry::Occupied(other) => assert!(
                other.get().0 == TypeId::of::<T::WithoutGenerics>(),
                "two types are called {}; rename one with #[ts(rename)]",
                other.key()
            ),
            Entry::Vacant(vacant) => {
                let docs = T::docs().unwrap_or_default();
                let text = format!("\n{docs}export {}\n", T::decl(&self.config));
                vacant.insert((TypeId::of::<T::WithoutGenerics>(), text));
                T::visit_dependencies(self);
            }
        }
    }
}

/// Returns the content of the file.
fn generated() -> String {
    let mut declarations = Declarations {
        config: Config::new().with_large_int("number"),
        by_name: BTreeMap::new(),
    };
    macro_rules! declare {
        ($($type:ty),+ $(,)?) => { $(declarations.visit::<$type>();)+ };
    }
    declare!(
        refusal::ErrorJson,
        api::Session,
        api::Progress,
        api::ReportRequest,
        report::ReportData<'static>,
        presets::OwnPreset,
        diff::Comparison,
        prove::Picture,
        traces::Overview,
        traces::Findings<explain::Explanation>,
        traces::WaitRequest,
        explain::story::Story,
        Question,
        Rows,
        Catalogue,
        Preset,
        TableInfo,
        TimelineRequest,
        TimelineAnswer,
        PivotRequest,
        PivotAnswer,
        RowsRequest,
        RowsAnswer,
        FlameRequest,
        FlameAnswer,
        ButterflyRequest,
        ButterflyAnswer,
        HeatRequest,
        HeatAnswer,
        HistogramRequest,
        HistogramAnswer,
        LanesRequest,
        LanesAnswer,
    );
    let texts = declarations.by_name.into_values().map(|(_, text)| text);
    let declared = texts.collect::<String>().replace(" \n", "\n");
    HEADER.to_owned() + &declared.replace("[number, number]", "Range")
}

#[test]
fn the_page_has_the_types_of_the_server() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui/src/api/types.ts");
    let expected = generated();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(path, &expected).expect("ui/src/api/types.ts is writable");
    }
    let committed = fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == expected,
        "ui/src/api/types.ts is outdated: run UPDATE_EXPECT=1 cargo test -p serve types"
    );
}
