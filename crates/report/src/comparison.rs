//! Page of a comparison of traces. The page of `laglab open` has the same pictures: both are drawn by the same
//! components of `ui/src/comparison`.

use maud::{DOCTYPE, PreEscaped, html};
use rust_embed::Embed;
use serde::Serialize;
use wording::Printable;

use crate::{Error, data_with_policy};

/// Script and style sheet of the comparison. Release builds embed them. Development builds read them at run time.
#[derive(Embed)]
#[folder = "../../ui/dist-report"]
struct Files;

/// Returns a comparison as a self-contained HTML page. The page's script draws `comparison`, which is a
/// comparison of the crate `diff`. `title` names the compared traces.
///
/// # Errors
/// Returns an error if the program was built without the script, or the comparison cannot be written as JSON.
pub fn comparison_page(title: &str, comparison: &impl Serialize) -> Result<String, Error> {
    let file = |name| {
        let file = Files::get(name).ok_or(Error::NoScript)?;
        String::from_utf8(file.data.into_owned()).map_err(|_| Error::NoScript)
    };
    let json = serde_json::to_string(comparison)?;
    Ok(page(
        title,
        &json,
        &file("comparison.js")?,
        &file("comparison.css")?,
    ))
}

fn page(title: &str, json: &str, script: &str, style: &str) -> String {
    let (data, nonce, policy) = data_with_policy(json);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                meta name="generator" content=(concat!("laglab ", env!("CARGO_PKG_VERSION")));
                title { (Printable(title)) " – what changed" }
                style { (PreEscaped(style)) }
            }
            body {
                div #page {}
                noscript { p { "The pictures cannot be drawn: scripts are disabled here. " code { "laglab prove diff" } " prints the tables." } }
                script #data type="application/json" nonce=(nonce) { (PreEscaped(data)) }
                script nonce=(nonce) { (PreEscaped(script)) }
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
        let page = page(name, &json, "run()", "p {}");
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
