//! Amounts in scenarios, fixed or drawn at random for each use: `15us`, `exp(200us)`, `normal(1ms,
//! 0.1ms)`.

use std::str::FromStr;

use serde::de::{Deserialize, Deserializer};
use thiserror::Error;

use crate::quantity::{Bytes, Nanoseconds, QuantityError, Share, TextQuantity, from_string};
use crate::random::Random;

/// An amount of [`Nanoseconds`] or [`Bytes`]: a fixed value or a random distribution.
///
/// Drawn values are integers, 0 or greater. The same seed gives the same values on every system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Amount<Q> {
    /// Constant value: `15us`.
    Fixed(Q),
    /// Exponential distribution: `exp(200us)`.
    Exponential {
        /// Mean of the distribution.
        mean: Q,
    },
    /// Uniform distribution that includes both ends: `uniform(1ms, 3ms)`, or `around(1ms, 10%)` for
    /// 0.9 to 1.1 ms.
    Uniform {
        /// Smallest value.
        low: Q,
        /// Largest value, at least `low`.
        high: Q,
    },
    /// Normal distribution with negative values replaced by 0: `normal(1ms, 0.1ms)`.
    Normal {
        /// Mean of the distribution before negative values are replaced by 0.
        mean: Q,
        /// Standard deviation before negative values are replaced by 0.
        deviation: Q,
    },
    /// Log-normal distribution: `lognormal(220us, 0.4)`.
    LogNormal {
        /// Mean of the values, not of their logarithms.
        mean: Q,
        /// Standard deviation of the natural logarithms of the values.
        sigma: f64,
    },
}

/// Error in the text of an amount.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum AmountError {
    /// A fixed quantity, or a number in a distribution, is invalid.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// The text contains `(` but is not one of the known distributions.
    #[error(
        "expected exp(mean), uniform(low, high), around(middle, share), normal(mean, deviation) or \
         lognormal(mean, sigma), found `{0}`"
    )]
    Distribution(String),
    /// The ends of a uniform distribution are in the wrong order.
    #[error("expected uniform(low, high) with low not above high, found `{0}`")]
    Ends(String),
}

/// Largest drawn value: 2^50 ns are 13 days, 2^50 bytes are a pebibyte. Because of this limit, the
/// sum of several drawn values fits into 64 bits.
const GREATEST: u64 = 1 << 50;

impl<Q: Copy + From<u64> + Into<u64>> Amount<Q> {
    /// Returns a value in the middle of the distribution: the fixed value, the mean, or the middle of the
    /// range.
    pub(crate) fn middle(&self) -> Q {
        match *self {
            Amount::Fixed(value) => value,
            Amount::Uniform { low, high } => Q::from(low.into().midpoint(high.into())),
            Amount::Exponential { mean }
            | Amount::Normal { mean, .. }
            | Amount::LogNormal { mean, .. } => mean,
        }
    }

    /// Returns the next drawn value, at most 2^50.
    pub(crate) fn sample(&self, random: &mut Random) -> Q {
        Q::from(self.draw(random).into().min(GREATEST))
    }

    fn draw(&self, random: &mut Random) -> Q {
        match *self {
            Amount::Fixed(value) => value,
            Amount::Exponential { mean } => nearest(real(mean) * random.exponential()),
            Amount::Uniform { low, high } => {
                let width = high.into().saturating_sub(low.into());
                Q::from(low.into() + random.below(width.saturating_add(1)))
            }
            Amount::Normal { mean, deviation } => {
                nearest(real(mean) + real(deviation) * random.normal())
            }
            Amount::LogNormal { mean, sigma } => {
                nearest(real(mean) * libm::exp(sigma * (random.normal() - sigma / 2.0)))
            }
        }
    }
}

fn real<Q: Into<u64>>(quantity: Q) -> f64 {
    quantity.into() as f64
}

/// Returns the quantity nearest to `value`, rounded to an integer. Returns 0 if `value` is negative.
fn nearest<Q: From<u64>>(value: f64) -> Q {
    Q::from((value + 0.5) as u64)
}

impl<Q> FromStr for Amount<Q>
where
    Q: Copy + From<u64> + Into<u64> + FromStr<Err = QuantityError>,
{
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Amount<Q>, AmountError> {
        let Some((name, arguments)) = text.trim().split_once('(') else {
            return Ok(Amount::Fixed(text.parse()?));
        };
        let unknown = || AmountError::Distribution(text.to_owned());
        let arguments = arguments.strip_suffix(')').ok_or_else(unknown)?;
        let (first, second) = match arguments.split_once(',') {
            Some((first, second)) => (first.trim(), Some(second.trim())),
            None => (arguments.trim(), None),
        };
        match (name.trim_end(), second) {
            ("exp", None) => Ok(Amount::Exponential {
                mean: first.parse()?,
            }),
            ("uniform", Some(high)) => {
                let (low, high): (Q, Q) = (first.parse()?, high.parse()?);
                if low.into() > high.into() {
                    return Err(AmountError::Ends(text.to_owned()));
                }
                Ok(Amount::Uniform { low, high })
            }
            ("around", Some(share)) => {
                let middle: Q = first.parse()?;
                let share: Share = share.parse()?;
                let reach: u64 = nearest(real(middle) * share.get());
                Ok(Amount::Uniform {
                    low: Q::from(middle.into().saturating_sub(reach)),
                    high: Q::from(middle.into().saturating_add(reach)),
                })
            }
            ("normal", Some(deviation)) => Ok(Amount::Normal {
                mean: first.parse()?,
                deviation: deviation.parse()?,
            }),
            ("lognormal", Some(sigma)) => Ok(Amount::LogNormal {
                mean: first.parse()?,
                sigma: parse_sigma(sigma)?,
            }),
            _ => Err(unknown()),
        }
    }
}

/// Parses the sigma of a log-normal distribution. A sigma above 10 is refused as a mistake, because
/// half of the values would be less than 2 · 10⁻²² of the mean.
fn parse_sigma(text: &str) -> Result<f64, QuantityError> {
    text.parse()
        .ok()
        .filter(|sigma| (0.0..=10.0).contains(sigma))
        .ok_or_else(|| QuantityError {
            expected: "a sigma from 0 to 10 such as 0.4",
            found: text.to_owned(),
        })
}

impl TextQuantity for Amount<Nanoseconds> {
    const EXPECTED: &'static str = "a duration such as 15us or a distribution such as exp(200us)";
}

impl TextQuantity for Amount<Bytes> {
    const EXPECTED: &'static str =
        "a number of bytes such as 1472 or a distribution such as uniform(64, 1472)";
}

impl<'de, Q> Deserialize<'de> for Amount<Q>
where
    Amount<Q>: TextQuantity,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Amount<Q>, D::Error> {
        from_string(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Amount<Nanoseconds> {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    fn draws(text: &str, count: usize) -> Vec<u64> {
        let amount = amount(text);
        let mut random = Random::new(1, text);
        (0..count).map(|_| amount.sample(&mut random).0).collect()
    }

    /// Compares many drawn values with the definition of their distribution: the mean and the standard
    /// deviation, in nanoseconds. The standard deviation of a log-normal distribution is
    /// `mean · √(exp(σ²) − 1)`.
    #[test]
    fn draws_have_the_mean_and_deviation_that_are_written() {
        let lognormal = 220_000.0 * (0.16_f64.exp() - 1.0).sqrt();
        for (text, mean, deviation) in [
            ("15us", 15_000.0, 0.0),
            ("exp(200us)", 200_000.0, 200_000.0),
            ("uniform(1ms, 3ms)", 2e6, 2e6 / 12_f64.sqrt()),
            ("around(1ms, 10%)", 1e6, 2e5 / 12_f64.sqrt()),
            ("normal(1ms, 0.1ms)", 1e6, 1e5),
            ("lognormal(220us, 0.4)", 220_000.0, lognormal),
            ("lognormal(220us, 0)", 220_000.0, 0.0),
        ] {
            let draws = draws(text, 200_000);
            let average = |value: &dyn Fn(f64) -> f64| {
                draws.iter().map(|&draw| value(draw as f64)).sum::<f64>() / 200_000.0
            };
            let mean_found = average(&|draw| draw);
            assert!(
                (mean_found / mean - 1.0).abs() < 0.01,
                "{text}: mean {mean_found}"
            );
            let spread = average(&|draw| (draw - mean).powi(2)).sqrt();
            assert!((spread - deviation).abs() < 0.02 * mean, "{text}: {spread}");
        }
    }

    /// A Python program computed the expected values from the definitions of the random generator
    /// and the distributions.
    #[test]
    fn draws_are_the_same_everywhere() {
        for (stream, text, expected) in [
            ("exp", "exp(200us)", [759_320, 747_497, 202_388, 295_237]),
            (
                "uniform",
                "uniform(1ms, 3ms)",
                [1_707_194, 2_703_683, 1_501_725, 2_829_515],
            ),
            (
                "normal",
                "normal(1ms, 0.1ms)",
                [917_147, 1_061_162, 919_302, 1_022_313],
            ),
            (
                "lognormal",
                "lognormal(220us, 0.4)",
                [108_517, 75_384, 124_571, 117_563],
            ),
        ] {
            let mut random = Random::new(1, stream);
            let drawn = [(); 4].map(|()| amount(text).sample(&mut random).0);
            assert_eq!(drawn, expected, "{text}");
        }
        // A thousand draws also reach the rarely used branches of the code that draws normal
        // deviates.
        let mut random = Random::new(1, "lognormal");
        let thousand = (0..1_000).map(|_| amount("lognormal(220us, 0.4)").sample(&mut random).0);
        assert_eq!(thousand.sum::<u64>(), 223_723_903);
    }

    #[test]
    fn draws_stay_in_bounds() {
        let ends = |text| {
            let draws = draws(text, 10_000);
            (*draws.iter().min().unwrap(), *draws.iter().max().unwrap())
        };
        assert_eq!(ends("uniform(3ns, 5ns)"), (3, 5));
        assert_eq!(ends("around(10ns, 20%)"), (8, 12));
        assert_eq!(ends("normal(1us, 10us)").0, 0);
        let mut random = Random::new(1, "everything");
        let everything = Amount::Uniform {
            low: Bytes(0),
            high: Bytes(GREATEST),
        };
        assert_ne!(
            everything.sample(&mut random),
            everything.sample(&mut random)
        );
        let largest = Amount::Exponential {
            mean: Bytes(u64::MAX),
        };
        assert!((0..100).any(|_| largest.sample(&mut random) == Bytes(GREATEST)));
    }

    #[test]
    fn other_text_is_refused_with_a_reason() {
        for (text, reason) in [
            (
                "15 bananas",
                "expected a duration such as 15us, 1.5ms or 3s, found `15 bananas`",
            ),
            (
                "normal(1ms, 10%)",
                "expected a duration such as 15us, 1.5ms or 3s, found `10%`",
            ),
            (
                "lognormal(1ms, inf)",
                "expected a sigma from 0 to 10 such as 0.4, found `inf`",
            ),
            (
                "around(1ms, 3)",
                "expected a share such as 2.5%, from 0% to 100%, found `3`",
            ),
            (
                "uniform(3ms, 1ms)",
                "expected uniform(low, high) with low not above high, found `uniform(3ms, 1ms)`",
            ),
        ] {
            let error = text.parse::<Amount<Nanoseconds>>().unwrap_err();
            assert_eq!(error.to_string(), reason);
        }
        for text in [
            "exp()",
            "exp(1ms",
            "exp(1ms, 2ms)",
            "zipf(3ms)",
            "(",
            "uniform(1ms)",
        ] {
            assert!(text.parse::<Amount<Nanoseconds>>().is_err(), "{text}");
        }
    }

    #[test]
    fn scenarios_give_amounts_as_strings() {
        #[derive(Debug, serde::Deserialize)]
        struct Packet {
            payload: Amount<Bytes>,
            dpc: Amount<Nanoseconds>,
        }
        let packet: Packet =
            toml::from_str("payload = 'uniform(64, 1472)'\ndpc = 'exp(15us)'").unwrap();
        let (low, high) = (Bytes(64), Bytes(1_472));
        assert_eq!(packet.payload, Amount::Uniform { low, high });
        let mean = Nanoseconds(15_000);
        assert_eq!(packet.dpc, Amount::Exponential { mean });
        let error = toml::from_str::<Packet>("payload = 64\ndpc = '1us'").unwrap_err();
        assert!(error.message().contains("number of bytes such"), "{error}");
    }
}
