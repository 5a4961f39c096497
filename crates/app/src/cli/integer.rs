//! Parser of integers in arguments.

/// Returns a parser of integers from `min` to `max`. The error message of the parser names both limits.
pub(super) fn integer<N: TryFrom<i64> + 'static>(
    min: i64,
    max: i64,
) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse::<i64>().ok();
        let within = number.filter(|number| (min..=max).contains(number));
        within
            .and_then(|number| N::try_from(number).ok())
            .ok_or_else(|| format!("give an integer from {min} to {max}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_within_the_limits_are_accepted() {
        let parse = integer::<i8>(-20, 19);
        assert_eq!(parse("-20"), Ok(-20));
        assert_eq!(parse("19"), Ok(19));
        let refused = Err("give an integer from -20 to 19".to_owned());
        for text in ["-21", "20", "1.5", "", "99999999999999999999"] {
            assert_eq!(parse(text), refused, "{text}");
        }
    }
}
