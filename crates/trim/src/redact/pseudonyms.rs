//! Pseudonyms. Equal names get equal pseudonyms of the same length. Without the key, no reader can compute a name from
//! its pseudonym.

use super::known_words;
use crate::TrimError;

/// Generator of pseudonyms by a keyed hash (BLAKE3).
pub(crate) struct Pseudonyms {
    key: [u8; 32],
}

/// Characters from which pseudonyms are made.
const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

impl Pseudonyms {
    /// Creates a generator whose key is derived from a secret text, or is random if `secret` is `None`.
    ///
    /// # Errors
    /// Returns an error if the system provides no random numbers.
    pub(crate) fn new(secret: Option<&str>) -> Result<Pseudonyms, TrimError> {
        let mut key = [0; 32];
        match secret {
            Some(secret) => key = blake3::derive_key("laglab trim --redact", secret.as_bytes()),
            None => getrandom::fill(&mut key).map_err(TrimError::NoRandom)?,
        }
        Ok(Pseudonyms { key })
    }

    /// Returns the text with its words replaced by pseudonyms.
    pub(crate) fn of_text(&self, text: &str) -> String {
        let mut units: Vec<u16> = text.encode_utf16().collect();
        self.replace_words(&mut units);
        String::from_utf16_lossy(&units)
    }

    /// Replaces the words of a UTF-16 text by pseudonyms.
    pub(crate) fn replace_utf16(&self, bytes: &mut [u8]) {
        let (pairs, odd) = bytes.as_chunks_mut::<2>();
        let mut units: Vec<u16> = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        self.replace_words(&mut units);
        for (pair, unit) in pairs.iter_mut().zip(units) {
            *pair = unit.to_le_bytes();
        }
        odd.fill(0);
    }

    /// Replaces the words of a text of 8-bit characters by pseudonyms.
    pub(crate) fn replace_ansi(&self, bytes: &mut [u8]) {
        let mut units: Vec<u16> = bytes.iter().map(|byte| u16::from(*byte)).collect();
        self.replace_words(&mut units);
        for (byte, unit) in bytes.iter_mut().zip(units) {
            *byte = unit as u8;
        }
    }

    /// Replaces a network address by a pseudonym, except for zero and loopback addresses
    /// (127.0.0.1, ::1).
    pub(crate) fn replace_address(&self, bytes: &mut [u8]) {
        let is_own = match bytes {
            [127, 0, 0, 1] => true,
            [rest @ .., 0 | 1] => rest.iter().all(|byte| *byte == 0),
            _ => false,
        };
        if !is_own {
            self.replace_bytes("address", 0, bytes);
        }
    }

    /// Replaces the part of a security identifier that identifies a user, a machine or a package. This part is
    /// everything after the first sub-authority. Identifiers with at most two sub-authorities stay unchanged, because
    /// every machine has them (S-1-5-18, S-1-5-32-544).
    pub(crate) fn replace_sid(&self, bytes: &mut [u8]) {
        const FIRST: usize = 8;
        if bytes.len() > FIRST + 2 * 4 {
            self.replace_bytes("sid", FIRST + 4, bytes);
        }
    }

    /// Replaces the bytes from the index `from` to the end by a keyed hash of all bytes. The hash includes `what`,
    /// the kind of the value. So equal bytes of different kinds get different pseudonyms.
    fn replace_bytes(&self, what: &str, from: usize, bytes: &mut [u8]) {
        let mut hash = self.hash(what);
        hash.update(bytes);
        if let Some(bytes) = bytes.get_mut(from..) {
            hash.finalize_xof().fill(bytes);
        }
    }

    /// Replaces each word by a pseudonym, except words that Windows itself uses. Characters between words stay
    /// unchanged.
    fn replace_words(&self, units: &mut [u16]) {
        for word in units.split_mut(|unit| !is_of_word(*unit)) {
            self.replace_word(word);
        }
    }

    fn replace_word(&self, word: &mut [u16]) {
        if word.is_empty() {
            return;
        }
        let lower: String = String::from_utf16_lossy(word).to_lowercase();
        if known_words::is_known(&lower) {
            return;
        }
        let stem = known_words::stem(&lower);
        let extension = lower[stem.len()..].encode_utf16().count();
        let mut hash = self.hash("word");
        hash.update(stem.as_bytes());
        let mut letters = hash.finalize_xof();
        let stem_units = word.len().saturating_sub(extension);
        for unit in &mut word[..stem_units] {
            let mut byte = [0];
            letters.fill(&mut byte);
            *unit = LETTERS[usize::from(byte[0]) % LETTERS.len()].into();
        }
    }

    fn hash(&self, what: &str) -> blake3::Hasher {
        let mut hash = blake3::Hasher::new_keyed(&self.key);
        hash.update(what.as_bytes()).update(&[0]);
        hash
    }
}

/// Returns true if a UTF-16 unit is part of a word. Words consist of ASCII letters and digits, the characters
/// `._-$~@`, and all units beyond ASCII.
fn is_of_word(unit: u16) -> bool {
    match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii() => byte.is_ascii_alphanumeric() || b"._-$~@".contains(&byte),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pseudonym(text: &str) -> String {
        Pseudonyms::new(Some("key")).unwrap().of_text(text)
    }

    #[test]
    fn the_same_word_is_the_same_everywhere_and_as_long() {
        let path = pseudonym(r"\Device\HarddiskVolume3\Users\alice\Secret Plans.docx");
        let (prefix, rest) = path.split_at(r"\Device\HarddiskVolume3\Users\".len());
        assert_eq!(prefix, r"\Device\HarddiskVolume3\Users\");
        assert_eq!(rest.len(), r"alice\Secret Plans.docx".len());
        assert!(rest.ends_with(".docx"));
        let name = rest.split('\\').next().unwrap();
        assert_ne!(name, "alice");
        assert_eq!(pseudonym("ALICE"), name);
        assert_eq!(
            pseudonym(r#""C:\x" --user=alice"#).split('=').next_back(),
            Some(name)
        );
        let other = Pseudonyms::new(Some("other")).unwrap();
        assert_ne!(other.of_text("alice"), name);
        let (a, b) = (
            Pseudonyms::new(None).unwrap(),
            Pseudonyms::new(None).unwrap(),
        );
        assert_ne!(a.of_text("alice.bob.carol"), b.of_text("alice.bob.carol"));
    }

    #[test]
    fn what_everyone_has_is_kept() {
        for text in [
            "ntoskrnl.exe",
            r"\SystemRoot\System32\drivers\TCPIP.SYS",
            "svchost.exe",
            "",
        ] {
            assert_eq!(pseudonym(text), text);
        }
    }

    #[test]
    fn only_known_extensions_are_kept() {
        assert!(pseudonym("report.xlsx").ends_with(".xlsx"));
        assert!(!pseudonym("john.doe").ends_with(".doe"));
    }

    #[test]
    fn identifiers_that_all_machines_have_are_kept() {
        let pseudonyms = Pseudonyms::new(Some("key")).unwrap();
        let sid = |sub_authorities: &[u32]| etl::write::extended::sid(5, sub_authorities).to_vec();
        for known in [&[18][..], &[32, 544]] {
            let mut bytes = sid(known);
            pseudonyms.replace_sid(&mut bytes);
            assert_eq!(bytes, sid(known));
        }
        let user = sid(&[21, 1, 2, 3, 1001]);
        let mut bytes = user.clone();
        pseudonyms.replace_sid(&mut bytes);
        assert_eq!((bytes.len(), &bytes[..12]), (user.len(), &user[..12]));
        assert!(
            bytes[12..]
                .iter()
                .zip(&user[12..])
                .filter(|(a, b)| a == b)
                .count()
                < 4
        );
    }

    #[test]
    fn addresses_become_others() {
        let pseudonyms = Pseudonyms::new(Some("key")).unwrap();
        for own in [&[127, 0, 0, 1][..], &[0; 4], &[0; 16]] {
            let mut bytes = own.to_vec();
            pseudonyms.replace_address(&mut bytes);
            assert_eq!(bytes, own);
        }
        let mut bytes = [192, 168, 1, 1];
        pseudonyms.replace_address(&mut bytes);
        assert_ne!(bytes, [192, 168, 1, 1]);
    }
}
