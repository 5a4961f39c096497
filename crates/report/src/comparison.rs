//! Page of a comparison of traces. The page of `laglab open` has the same pictures: both are drawn by the same
//! components of `ui/src/comparison`.

use maud::{DOCTYPE, PreEscaped, html};
use serde::Serialize;
use wording::Printable;

use crate::Error;
use crate::script::{Data, Script};

/// Returns a comparison as a self-contained HTML page. The page's script draws `comparison`, which is a
/// comparison of the crate `diff`. `title` names the compared traces.
///
/// # Errors
/// Returns an error if the program was built without the script, or the comparison cannot be written as JSON.
pub fn comparison_page(title: &str, comparison: &impl Serialize) -> Result<String, Error> {
    let script = Script::read().ok_or(Error::NoScript)?;
    let data = Data::new(&serde_json::to_string(&Content { comparison })?);
    Ok(page(title, &data, &script))
}

/// Data of the page's script.
#[derive(Serialize)]
struct Content<'a, T> {
    comparison: &'a T,
}

fn page(title: &str, data: &Data, script: &Script) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(data.policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                meta name="generator" content=(concat!("laglab ", env!("CARGO_PKG_VERSION")));
                title { (Printable(title)) " – what changed" }
                style { (PreEscaped(&script.style)) }
            }
            body {
                div #page {}
                noscript { p { "The pictures cannot be drawn: scripts are disabled here. " code { "laglab prove diff" } " prints the tables." } }
                script #data type="application/json" nonce=(data.nonce) { (PreEscaped(&data.json)) }
                script nonce=(data.nonce) { (PreEscaped(&script.code)) }
            }
        }
    };
    page.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_text() {
        let name = "</script><img src=x onerror=alert(1)>\u{202e}gpj.etl";
        let json = serde_json::to_string(&[name]).unwrap();
        let script = Script {
            code: "run()".to_owned(),
            style: "p {}".to_owned(),
        };
        let page = page(name, &Data::new(&json), &script);
        assert!(!page.contains("<img"), "{page}");
        assert_eq!(page.matches("</script>").count(), 2, "{page}");
        assert!(!page.contains('\u{202e}'), "{page}");
        assert!(page.contains("\\u{202e}gpj.etl – what changed"), "{page}");
        // The script reads the name as it was recorded.
        let (_, data) = page.split_once("<script id=\"data\"").unwrap();
        let (_, data) = data.split_once('>').unwrap();
        let (data, _) = data.split_once("</script>").unwrap();
        assert_eq!(serde_json::from_str::<[String; 1]>(data).unwrap(), [name]);
    }
}
