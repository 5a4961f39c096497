//! Canvas that produces a PNG file.

use font8x8::legacy::{BASIC_LEGACY, LATIN_LEGACY};

use super::{Canvas, INK, LETTER, PAPER, Rgb};

/// Image with 3 bytes per pixel, stored row by row.
pub(super) struct Raster {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Raster {
    pub(super) fn new((width, height): (usize, usize)) -> Raster {
        Raster {
            width,
            height,
            pixels: PAPER.repeat(width * height),
        }
    }

    pub(super) fn png(&self) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder
            .write_header()
            .and_then(|mut writer| writer.write_image_data(&self.pixels))
            .expect("a picture of at least one pixel is written to memory");
        file
    }
}

impl Canvas for Raster {
    fn rectangle(&mut self, (x, y): (usize, usize), (w, h): (usize, usize), colour: Rgb) {
        for y in y.min(self.height)..(y + h).min(self.height) {
            for x in x.min(self.width)..(x + w).min(self.width) {
                let at = (y * self.width + x) * 3;
                self.pixels[at..at + 3].copy_from_slice(&colour);
            }
        }
    }

    fn text(&mut self, (x, y): (usize, usize), text: &str) {
        for (place, letter) in text.chars().enumerate() {
            for (row, bits) in glyph(letter).iter().enumerate() {
                for column in (0..LETTER).filter(|column| bits & 1 << column != 0) {
                    self.rectangle((x + place * LETTER + column, y + row), (1, 1), INK);
                }
            }
        }
    }
}

/// Returns the rows of a letter from the top. The lowest bit of a row is its left pixel. Unknown
/// letters are drawn as a question mark.
fn glyph(letter: char) -> &'static [u8; 8] {
    match letter as usize {
        code @ 0..0x80 => &BASIC_LEGACY[code],
        code @ 0xA0..0x100 => &LATIN_LEGACY[code - 0xA0],
        _ => &BASIC_LEGACY['?' as usize],
    }
}
