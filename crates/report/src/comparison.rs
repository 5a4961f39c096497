//! Page of a comparison of traces. The page of `laglab open` has the same pictures: both are drawn by the same
//! components of `ui/src/comparison`.

use maud::html;
use serde::Serialize;

use crate::Error;
use crate::document::Document;
use crate::script::{Content, Data, Script};

/// Returns a comparison as a self-contained HTML page. The page's script draws `comparison`, which is a
/// comparison of the crate `diff`. `title` names the compared traces.
///
/// # Errors
/// Returns an error if the program was built without the script, or the comparison cannot be written as JSON.
pub fn comparison_page(title: &str, comparison: &impl Serialize) -> Result<String, Error> {
    let script = Script::read().ok_or(Error::NoScript)?;
    let data = Data::new(&Content::Comparison(comparison))?;
    Ok(page(title, &data, &script))
}

fn page(title: &str, data: &Data, script: &Script) -> String {
    let document = Document {
        title: &format!("{title} – what changed"),
        styles: &[&script.style],
        body: html! {
            div #page {}
            noscript { p { "The pictures cannot be drawn: scripts are disabled here. " code { "laglab prove diff" } " prints the tables." } }
        },
        drawn: Some((data, Some(script))),
    };
    document.into_html()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_text() {
        let name = "</script><img src=x onerror=alert(1)>\u{202e}gpj.etl";
        let script = Script {
            code: "run()".to_owned(),
            style: "p {}".to_owned(),
        };
        let page = page(
            name,
            &Data::new(&Content::Comparison([name])).unwrap(),
            &script,
        );
        assert!(!page.contains("<img"), "{page}");
        assert_eq!(page.matches("</script>").count(), 2, "{page}");
        assert!(!page.contains('\u{202e}'), "{page}");
        assert!(page.contains("\\u{202e}gpj.etl – what changed"), "{page}");
        // The script reads the name as it was recorded.
        let (_, data) = page.split_once("<script id=\"data\"").unwrap();
        let (_, data) = data.split_once('>').unwrap();
        let (data, _) = data.split_once("</script>").unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["comparison"][0], name);
    }
}
