//! Pages of text and tables, with and without pictures.

use maud::{Markup, html};
use serde::Serialize;

use crate::document::Document;
use crate::script::{Content, Data, Script};
use crate::{CSS, DRAWN_WITH, Error, THEMES, without_script};

/// Text of a page.
pub struct TextPage<'a> {
    /// Title of the page.
    pub title: &'a str,
    /// Style sheet that is added after the report's style sheet.
    pub style: &'a str,
    /// Content of the page's header.
    pub header: Markup,
    /// Content of the page.
    pub main: Markup,
}

impl TextPage<'_> {
    /// Returns the page as HTML. It has no scripts.
    pub fn still(self) -> String {
        let TextPage { title, style, .. } = self;
        let document = Document {
            title,
            styles: &[THEMES, CSS, style],
            body: self.body(None),
            drawn: None,
        };
        document.into_html()
    }

    /// Returns the page as HTML. Its script draws each picture of the crate `prove` in the element whose attribute
    /// `data-picture` is the picture's index.
    ///
    /// # Errors
    /// Returns an error if the pictures cannot be written as JSON.
    pub fn with_runs<T: Serialize>(self, pictures: &[T]) -> Result<String, Error> {
        let TextPage { title, style, .. } = self;
        let script = Script::read();
        let data = Data::new(&Content::Runs(pictures))?;
        let themes = script.as_ref().map_or(THEMES, |script| &script.style);
        let document = Document {
            title,
            styles: &[themes, CSS, style],
            body: self.body(Some(without_script(script.is_some()))),
            drawn: Some((&data, script.as_ref())),
        };
        Ok(document.into_html())
    }

    /// Returns the body of the page. `notes` are for readers who do not see its pictures.
    fn body(self, notes: Option<Markup>) -> Markup {
        let is_drawn = notes.is_some();
        html! {
            header { (self.header) }
            main {
                @if let Some(notes) = notes { (notes) }
                (self.main)
            }
            footer { p {
                "Made by laglab " (env!("CARGO_PKG_VERSION")) "."
                @if is_drawn { " " (DRAWN_WITH) }
            } }
        }
    }
}
