//! Canvas that produces an SVG document.

use std::fmt::Write;

use super::{Canvas, INK, LETTER, PAPER, Rgb};

/// An SVG document.
pub(super) struct Svg(String);

impl Svg {
    pub(super) fn new((width, height): (usize, usize)) -> Svg {
        let mut svg = Svg(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" font-family=\"monospace\" font-size=\"10\">\n"
        ));
        svg.rectangle((0, 0), (width, height), PAPER);
        svg
    }

    pub(super) fn finish(self) -> String {
        self.0 + "</svg>\n"
    }
}

fn hex([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

impl Canvas for Svg {
    fn rectangle(&mut self, (x, y): (usize, usize), (w, h): (usize, usize), colour: Rgb) {
        let colour = hex(colour);
        let _ = writeln!(
            self.0,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" fill=\"{colour}\"/>"
        );
    }

    fn text(&mut self, (x, y): (usize, usize), text: &str) {
        let base = y + LETTER;
        let colour = hex(INK);
        let text = text
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        let _ = writeln!(
            self.0,
            "<text x=\"{x}\" y=\"{base}\" fill=\"{colour}\">{text}</text>"
        );
    }
}
