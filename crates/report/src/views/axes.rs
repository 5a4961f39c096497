//! Frame and axes of a picture in a report.

use maud::{Markup, html};

/// Width of a picture. The unit of all lengths in a picture is arbitrary, because the page scales pictures.
pub(super) const WIDTH: f64 = 900.0;

/// Left margin of a picture.
pub(super) const LEFT: f64 = 72.0;

/// Right margin of a picture.
const RIGHT: f64 = 10.0;

/// Top margin of a picture.
const TOP: f64 = 8.0;

/// Bottom margin of a picture.
const BOTTOM: f64 = 20.0;

/// Approximate width of a letter, in the unit of `WIDTH`.
const LETTER: f64 = 5.9;

/// Area of a plot with the given height. Its horizontal axis spans a range of numbers, usually times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axes {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) height: f64,
    /// True to draw a horizontal line at each value of the left axis.
    pub(super) ruled: bool,
}

/// Position on an axis, and the label at this position.
pub(super) type Tick = (f64, String);

impl Axes {
    /// Returns the horizontal position of a number.
    pub(super) fn x(&self, number: i64) -> f64 {
        let span = (self.to as f64 - self.from as f64).max(1.0);
        let share = (number as f64 - self.from as f64) / span;
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    /// Returns the vertical position of a share of the height. A share of 0 is the bottom, and a share of 1
    /// is the top.
    pub(super) fn y(&self, share: f64) -> f64 {
        TOP + self.height * (1.0 - share.clamp(0.0, 1.0))
    }

    /// Returns a picture with the given labels at its left axis, and times at the lower axis.
    pub(super) fn over_time(&self, shows: &str, values: &[Tick], inside: Markup) -> Markup {
        let step = step(self.to as f64 - self.from as f64, 8).max(1.0) as i64;
        let first = self.from.div_euclid(step).saturating_mul(step);
        // The step determines the number of decimals in the labels.
        let decimals = 9usize.saturating_sub(step.ilog10() as usize);
        let ticks = (0..=10).map(|place| first.saturating_add(step.saturating_mul(place)));
        let ticks = ticks.filter(|at| (self.from..=self.to).contains(at));
        let ticks = ticks.map(|at| (self.x(at), format!("{:.decimals$} s", at as f64 / 1e9)));
        self.framed(shows, values, &ticks.collect::<Vec<Tick>>(), inside)
    }

    /// Returns a picture with the given labels at its left and lower axes.
    pub(super) fn framed(
        &self,
        shows: &str,
        left: &[Tick],
        below: &[Tick],
        inside: Markup,
    ) -> Markup {
        let base = TOP + self.height;
        html! {
            svg viewBox={ "0 0 " (WIDTH) " " (units(base + BOTTOM)) } role="img" aria-label=(shows) {
                @for (y, text) in left {
                    @if self.ruled { path.grid d={ "M" (LEFT) "," (units(*y)) "H" (WIDTH - RIGHT) } {} }
                    text.left x=(LEFT - 6.0) y=(units(y + 3.5)) { (text) }
                }
                (inside)
                path.grid d={ "M" (LEFT) "," (units(base)) "H" (WIDTH - RIGHT) } {}
                @for (x, text) in below {
                    path.grid d={ "M" (units(*x)) "," (units(base)) "v4" } {}
                    @let wide = text.chars().count() as f64 * LETTER;
                    // If the right edge would cut a label, the label is moved to the left.
                    text x=(units(x.min(WIDTH - wide / 2.0))) y=(units(base + 15.0)) text-anchor="middle" { (text) }
                }
            }
        }
    }

    /// Returns a rectangle as a command of an SVG path.
    pub(super) fn rectangle(from: f64, top: f64, wide: f64, high: f64) -> String {
        let [from, top, wide, high] = [from, top, wide, high].map(units);
        format!("M{from},{top}h{wide}v{high}h-{wide}z")
    }
}

/// Formats a length with at most one decimal.
pub(super) fn units(length: f64) -> String {
    let text = format!("{length:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Returns the number of letters that fit into a width.
pub(super) fn letters(wide: f64) -> usize {
    (wide / LETTER).max(0.0) as usize
}

/// Returns a step (1, 2 or 5 times a power of ten) that divides a span into about `about` parts.
pub(super) fn step(span: f64, about: u32) -> f64 {
    let rough = (span / f64::from(about)).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|part| part * power);
    let fits = steps.into_iter().find(|step| *step >= rough * 0.999);
    fits.unwrap_or(10.0 * power)
}

/// Returns labelled values from 0 to the maximum. The position of a value is its share of the maximum.
pub(super) fn values(most: f64, text: impl Fn(f64) -> String) -> Vec<Tick> {
    if most <= 0.0 {
        return Vec::new();
    }
    let step = step(most, 4);
    let values = (0..=5).map(|place| f64::from(place) * step);
    let values = values.take_while(|value| *value <= most * 1.001);
    values.map(|value| (value / most, text(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        assert_eq!(step(100.0, 8), 20.0);
        assert_eq!(step(4.0, 4), 1.0);
        assert_eq!(step(31.0, 4), 10.0);
        assert!((step(0.37, 4) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn what_is_outside_is_at_the_edge() {
        let axes = Axes {
            from: 100,
            to: 200,
            height: 50.0,
            ruled: true,
        };
        assert_eq!(axes.x(0), LEFT);
        assert_eq!(axes.x(150), (LEFT + WIDTH - RIGHT) / 2.0);
        assert_eq!(axes.x(i64::MAX), WIDTH - RIGHT);
        assert_eq!((axes.y(0.0), axes.y(1.0)), (TOP + 50.0, TOP));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(units(12.0), "12");
        assert_eq!(units(12.34), "12.3");
        assert_eq!(Axes::rectangle(1.0, 2.0, 3.5, 4.0), "M1,2h3.5v4h-3.5z");
    }
}
