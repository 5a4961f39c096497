//! Arithmetic in the finite field GF(2⁸) modulo x⁸+x⁴+x³+x²+1. The powers of 2 are all elements
//! except 0.

const MODULUS: u16 = 0x11d;

/// Powers of 2. The sequence of 255 powers is stored twice, so that the sum of two logarithms can
/// be used as an index.
const POWERS: [u8; 510] = {
    let mut powers = [0; 510];
    let mut value = 1u16;
    let mut at = 0;
    while at < powers.len() {
        powers[at] = value as u8;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= MODULUS;
        }
        at += 1;
    }
    powers
};

/// Logarithms to base 2 of all elements. The entry of 0 has no meaning.
const LOGARITHMS: [u8; 256] = {
    let mut logarithms = [0; 256];
    let mut at = 0;
    while at < 255 {
        logarithms[POWERS[at] as usize] = at as u8;
        at += 1;
    }
    logarithms
};

/// Returns 2 to the power of `exponent`, which must be below 255.
pub(super) fn power_of_two(exponent: usize) -> u8 {
    POWERS[exponent]
}

pub(super) fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    let logarithm = |x: u8| usize::from(LOGARITHMS[usize::from(x)]);
    POWERS[logarithm(a) + logarithm(b)]
}

/// Returns the inverse of `a`, which must not be 0.
pub(super) fn inverse(a: u8) -> u8 {
    POWERS[255 - usize::from(LOGARITHMS[usize::from(a)])]
}

/// Adds `factor` times `input` to the start of `sum`. `sum` must be at least as long as `input`.
///
/// A product is the sum of some of the values `factor` × 1, 2, 4, … 128: each bit of the input byte
/// selects one of these values. The compiler can vectorise this loop because it uses no tables and
/// works on adjacent bytes.
pub(super) fn add_scaled(sum: &mut [u8], factor: u8, input: &[u8]) {
    const LANES: usize = 32;
    if factor == 0 {
        return;
    }
    let mut doubles = [factor; 8];
    for bit in 1..8 {
        doubles[bit] = multiply(doubles[bit - 1], 2);
    }
    let product = |x: u8| {
        let mut product = 0;
        for (bit, double) in doubles.iter().enumerate() {
            product ^= double & 0u8.wrapping_sub(x >> bit & 1);
        }
        product
    };
    let sum = &mut sum[..input.len()];
    let (sums, sum_rest) = sum.as_chunks_mut::<LANES>();
    let (inputs, input_rest) = input.as_chunks::<LANES>();
    for (sum, input) in sums.iter_mut().zip(inputs) {
        for lane in 0..LANES {
            sum[lane] ^= product(input[lane]);
        }
    }
    for (sum, input) in sum_rest.iter_mut().zip(input_rest) {
        *sum ^= product(*input);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplies two polynomials and reduces the product bit by bit.
    fn by_definition(a: u8, b: u8) -> u8 {
        let mut product = 0u16;
        for bit in 0..8 {
            if b >> bit & 1 != 0 {
                product ^= u16::from(a) << bit;
            }
        }
        for bit in (8..15).rev() {
            if product >> bit & 1 != 0 {
                product ^= MODULUS << (bit - 8);
            }
        }
        product as u8
    }

    #[test]
    fn products_and_inverses_match_the_definition() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(multiply(a, b), by_definition(a, b), "{a} times {b}");
            }
            if a != 0 {
                assert_eq!(by_definition(a, inverse(a)), 1);
            }
        }
    }

    #[test]
    fn slices_are_multiplied_byte_by_byte() {
        let input: Vec<u8> = (0..=255).chain(0..100).collect();
        for factor in 0..=255 {
            let mut sum = vec![0x5a; input.len() + 1];
            add_scaled(&mut sum, factor, &input);
            for (sum, x) in sum.iter().zip(&input) {
                assert_eq!(*sum, 0x5a ^ by_definition(factor, *x));
            }
            assert_eq!(sum.last(), Some(&0x5a));
        }
    }
}
