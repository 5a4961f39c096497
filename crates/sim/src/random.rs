//! Chance that is the same everywhere: a seeded stream of its own for each thing that needs one, so
//! that adding one to a scenario does not change what happens to the others.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::ziggurat;

/// One stream of random numbers: xoshiro256++.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream that belongs to `name` in a run with this seed.
    pub fn new(seed: u64, name: &str) -> Random {
        let bytes = seed.to_le_bytes().into_iter().chain(name.bytes());
        Random(Xoshiro256PlusPlus::seed_from_u64(fnv_1a(bytes)))
    }

    /// A whole number below `limit`, each as likely as the others (to one part in 2⁶⁴ / `limit`);
    /// 0 when `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    /// A number from 0 up to, but not including, 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Whether something happens that has this probability: never at 0, always at 1.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// An exponential deviate of mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }

    /// A normal deviate of mean 0 and deviation 1.
    pub fn normal(&mut self) -> f64 {
        ziggurat::normal(self)
    }

    /// The next 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// The 64-bit FNV-1a hash.
fn fnv_1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of the FNV hash's authors.
    #[test]
    fn hashes_names_with_fnv_1a() {
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(fnv_1a(text.bytes()), hash, "{text}");
        }
    }

    /// Pins what every system must draw. Computed by a Python program from the definitions of
    /// FNV-1a, SplitMix64 (which spreads the hash over the state) and xoshiro256++.
    #[test]
    fn streams_are_the_same_everywhere() {
        let mut disk = Random::new(1, "disk");
        let drawn: [u64; 6] = std::array::from_fn(|_| disk.below(1_000));
        assert_eq!(drawn, [456, 170, 865, 808, 255, 781]);
        let mut ndis = Random::new(42, "ndis");
        assert_eq!(ndis.unit(), 0.109_263_955_481_259_44);
        assert_eq!(ndis.unit(), 0.846_554_525_219_260_8);
    }

    #[test]
    fn streams_are_their_names_own() {
        let first = |seed, name| Random::new(seed, name).below(u64::MAX);
        assert_eq!(first(1, "disk"), first(1, "disk"));
        assert_ne!(first(1, "disk"), first(1, "nic"));
        assert_ne!(first(1, "disk"), first(2, "disk"));
    }

    #[test]
    fn below_gives_each_number_as_often() {
        let mut random = Random::new(1, "below");
        let mut seen = [0; 6];
        for _ in 0..60_000 {
            seen[random.below(6) as usize] += 1;
        }
        // Five deviations of a binomial count of mean 10,000 are 456.
        assert!(seen.iter().all(|count| (9_544..10_456).contains(count)));
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn chance_keeps_its_probability() {
        let mut random = Random::new(1, "chance");
        let happened = (0..100_000).filter(|_| random.chance(0.3)).count();
        // Five deviations are 725.
        assert!((29_275..30_725).contains(&happened), "{happened}");
        assert!((0..1_000).all(|_| !random.chance(0.0) && random.chance(1.0)));
    }

    /// The first four moments of the normal distribution are 0, 1, 0 and 3, its neighbours
    /// independent; an exponential one has mean 1 and deviation 1.
    #[test]
    fn deviates_have_their_moments() {
        let count = 400_000;
        let mut random = Random::new(1, "deviates");
        let normal: Vec<f64> = (0..count).map(|_| random.normal()).collect();
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / f64::from(count);
        for (power, moment, tolerance) in [
            (1, 0.0, 0.01),
            (2, 1.0, 0.02),
            (3, 0.0, 0.05),
            (4, 3.0, 0.1),
        ] {
            let found = mean(&mut normal.iter().map(|x| x.powi(power)));
            assert!((found - moment).abs() < tolerance, "{power}: {found}");
        }
        let together = mean(&mut normal.windows(2).map(|pair| pair[0] * pair[1]));
        assert!(together.abs() < 0.01, "{together}");

        let exponential: Vec<f64> = (0..count).map(|_| random.exponential()).collect();
        assert!((mean(&mut exponential.iter().copied()) - 1.0).abs() < 0.01);
        assert!((mean(&mut exponential.iter().map(|x| x * x)) - 2.0).abs() < 0.05);
    }
}
