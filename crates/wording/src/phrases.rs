//! Functions that format parts of sentences.

use crate::grouped;

/// Formats a count with its noun, such as `1 turn` or `2,000 turns`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{} {many}", grouped(count)),
    }
}

/// Joins items to an enumeration, such as `0, 2 and 4`.
pub fn listed<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let mut items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    match (items.pop(), items.is_empty()) {
        (None, _) => String::new(),
        (Some(last), true) => last,
        (Some(last), false) => format!("{} and {last}", items.join(", ")),
    }
}

/// Returns the text with its first letter in upper case.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_agree_with_their_nouns() {
        let turns = [0, 1, 2_000].map(|count| counted(count, "turn", "turns"));
        assert_eq!(turns, ["0 turns", "1 turn", "2,000 turns"]);
    }

    #[test]
    fn items_are_enumerated() {
        assert_eq!(listed([0, 2, 4]), "0, 2 and 4");
        assert_eq!(listed(["a", "b"]), "a and b");
        assert_eq!(listed(["a"]), "a");
        assert_eq!(listed([""; 0]), "");
    }

    #[test]
    fn only_the_first_letter_changes() {
        assert_eq!(capitalized("élan of DPCs"), "Élan of DPCs");
        assert_eq!(capitalized(""), "");
    }
}
