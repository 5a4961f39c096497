//! Random numbers from the normal distribution, drawn by the ziggurat method of Marsaglia and Tsang
//! (2000), in the form of Doornik (2005). The method covers the bell curve with a pile of boxes of
//! equal area. Most draws need only one multiplication.

use std::sync::LazyLock;

use crate::random::Random;

/// Number of boxes. The lowest box also represents the tail of the curve.
const BOXES: usize = 128;

/// Value of x at which the tail starts if there are 128 boxes.
const TAIL: f64 = 3.442_619_855_899;

/// Area of each box if 128 boxes cover the right half of the bell curve exp(−x² / 2).
const AREA: f64 = 9.912_563_035_262_17e-3;

/// Right edge of each box from the lowest to the highest, followed by 0.
static EDGES: LazyLock<[f64; BOXES + 1]> = LazyLock::new(|| {
    let mut edges = [0.0; BOXES + 1];
    edges[0] = AREA / bell(TAIL);
    edges[1] = TAIL;
    for i in 2..BOXES {
        let height = AREA / edges[i - 1] + bell(edges[i - 1]);
        edges[i] = libm::sqrt(-2.0 * libm::log(height));
    }
    edges
});

/// Returns a random number from the normal distribution with mean 0 and standard deviation 1.
pub(crate) fn normal(random: &mut Random) -> f64 {
    let edges = &*EDGES;
    loop {
        // Different bits of one random number choose the box and the position in the box.
        let bits = random.bits();
        let level = bits as usize % BOXES;
        let x = ((bits >> 10) as f64 / (1_u64 << 53) as f64 - 1.0) * edges[level];
        if x.abs() < edges[level + 1] {
            return x;
        }
        if level == 0 {
            return beyond(TAIL, random).copysign(x);
        }
        let (bottom, top) = (bell(edges[level]), bell(edges[level + 1]));
        if bottom + random.unit() * (top - bottom) < bell(x) {
            return x;
        }
    }
}

/// Returns a normally distributed random number above `start`, by Marsaglia's method for tails
/// (1964).
fn beyond(start: f64, random: &mut Random) -> f64 {
    loop {
        let x = random.exponential() / start;
        if 2.0 * random.exponential() > x * x {
            return start + x;
        }
    }
}

fn bell(x: f64) -> f64 {
    libm::exp(-0.5 * x * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The constants are correct if two conditions hold: the rectangle and the tail of the lowest
    /// box together have the area of a box, and the highest box ends at the top of the bell curve.
    #[test]
    fn boxes_fill_the_bell() {
        let half_pi_root = (std::f64::consts::PI / 2.0).sqrt();
        let tail = half_pi_root * libm::erfc(TAIL / 2.0_f64.sqrt());
        assert!((TAIL * bell(TAIL) + tail - AREA).abs() < 1e-13);
        let last = EDGES[BOXES - 1];
        assert!((last * (1.0 - bell(last)) - AREA).abs() < 1e-9);
    }

    /// Checks the share of drawn values above each point. It must be the share that the normal distribution
    /// has above this point.
    #[test]
    fn draws_are_normal_up_to_the_tails() {
        let count = 2_000_000;
        let mut random = Random::new(1, "tails");
        let draws: Vec<f64> = (0..count).map(|_| normal(&mut random)).collect();
        for point in [-4.0, -3.5, -2.0, -0.5, 0.0, 0.3, 1.0, 2.5, 3.4, 3.5, 4.0] {
            let share = 0.5 * libm::erfc(point / 2.0_f64.sqrt());
            let expected = share * f64::from(count);
            let deviation = (expected * (1.0 - share)).sqrt();
            let count = draws.iter().filter(|&&draw| draw > point).count() as f64;
            assert!(
                (count - expected).abs() < 4.5 * deviation,
                "{count} draws beyond {point}, expected {expected}"
            );
        }
    }
}
