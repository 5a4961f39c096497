//! Functions by address, and readable forms of their names.

/// Maximum length in bytes of a name that is made readable, and of its readable form.
const LONGEST: usize = 4096;

/// Functions of a file or of a kernel, sorted by address.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    /// Functions. Each has a start, an end, and the place of its name in `names`.
    functions: Vec<Function>,
    names: String,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    start: u64,
    /// End of the function; `None` if the function extends to the next function.
    end: Option<u64>,
    /// Place of the name in [`Functions::names`].
    name: (usize, usize),
    preference: Preference,
}

/// Preference among several names of the same address. The name with the greatest preference is used, as in perf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Preference {
    pub(crate) has_size: bool,
    pub(crate) is_strong: bool,
    pub(crate) is_global: bool,
}

impl Functions {
    /// Adds a function. If `size` is 0, the function extends to the next function.
    pub(crate) fn push(&mut self, start: u64, size: u64, name: &str, preference: Preference) {
        let place = (self.names.len(), self.names.len() + name.len());
        self.names.push_str(name);
        self.functions.push(Function {
            start,
            end: (size > 0).then(|| start.saturating_add(size)),
            name: place,
            preference,
        });
    }

    /// Sorts the functions. If an address has several names, keeps the name with the greatest preference.
    pub(crate) fn sort(&mut self) {
        let names = &self.names;
        // Names with fewer leading underscores are preferred. Among them, longer names are preferred.
        let rank = |it: &Function| {
            let name = &names[it.name.0..it.name.1];
            let underscores = name.len() - name.trim_start_matches('_').len();
            (it.preference, std::cmp::Reverse(underscores), name.len())
        };
        (self.functions).sort_by(|a, b| a.start.cmp(&b.start).then_with(|| rank(b).cmp(&rank(a))));
        self.functions.dedup_by_key(|it| it.start);
    }

    /// Returns the name of the function that contains an address, and the start of the function. The last function
    /// without a size ends at `end`.
    pub(crate) fn find(&self, address: u64, end: u64) -> Option<(&str, u64)> {
        let next = self.functions.partition_point(|it| it.start <= address);
        let it = self.functions[..next].last()?;
        let after = self.functions.get(next).map_or(end, |next| next.start);
        let name = &self.names[it.name.0..it.name.1];
        (address < it.end.unwrap_or(after)).then_some((name, it.start))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }
}

/// Returns the readable form of a name of Rust or C++. Returns other names unchanged.
pub(crate) fn readable(name: &str) -> String {
    if name.len() > LONGEST {
        return name.to_owned();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let options = cpp_demangle::DemangleOptions::new()
        .no_params()
        .no_return_type();
    let mut text = LimitedText(String::new());
    let symbol = cpp_demangle::Symbol::new(name).ok();
    let symbol = symbol.filter(|_| name.starts_with("_Z"));
    match symbol.map(|symbol| symbol.structured_demangle(&mut text, &options)) {
        Some(Ok(())) => text.0,
        _ => name.to_owned(),
    }
}

/// Text that is not longer than [`LONGEST`]. Parts of a name can refer to each other, so a short name can have a very
/// long readable form.
struct LimitedText(String);

impl std::fmt::Write for LimitedText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() <= LONGEST {
            self.0.push_str(text);
            Ok(())
        } else {
            Err(std::fmt::Error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_compilers_become_readable() {
        for (name, expected) in [
            // These examples are from the Itanium C++ ABI and from Rust's RFC 2603.
            ("_ZN3foo3barEv", "foo::bar"),
            ("_ZNKSt3mapIiiE4sizeEv", "std::map<int, int>::size"),
            ("_RNvNtC7mycrate3foo3bar", "mycrate::foo::bar"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("main", "main"),
            ("_Z", "_Z"),
        ] {
            assert_eq!(readable(name), expected, "{name}");
        }
    }

    #[test]
    fn an_address_belongs_to_one_function() {
        let strong = Preference {
            has_size: true,
            is_strong: true,
            is_global: true,
        };
        let weak = Preference {
            is_strong: false,
            ..strong
        };
        let mut functions = Functions::default();
        functions.push(30, 0, "open_end", strong);
        functions.push(10, 5, "weak", weak);
        functions.push(10, 5, "__name", strong);
        functions.push(10, 5, "name", strong);
        functions.sort();
        for (address, expected) in [
            (9, None),
            (10, Some(("name", 10))),
            (14, Some(("name", 10))),
            (15, None),
            (30, Some(("open_end", 30))),
            (99, Some(("open_end", 30))),
            (100, None),
        ] {
            assert_eq!(functions.find(address, 100), expected, "{address}");
        }
        assert!(!functions.is_empty());
    }
}
