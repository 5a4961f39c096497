//! Processes or threads that used an id, over time. Windows reuses ids.

use std::collections::HashMap;

/// Event that shows when the owner of an id existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// The owner started at the time of the event.
    Start,
    /// The owner ended at the time of the event.
    End,
    /// The owner already existed when the recording started.
    ThereAtBegin,
    /// The owner still existed when the recording ended.
    ThereAtEnd,
}

/// Owners of ids, by id and time.
#[derive(Debug)]
pub(crate) struct Lives<T> {
    signs: HashMap<u32, Vec<(i64, Sign, T)>>,
    lives: HashMap<u32, Vec<Life<T>>>,
}

#[derive(Debug)]
struct Life<T> {
    from_ns: i64,
    to_ns: i64,
    thing: T,
}

impl<T> Default for Lives<T> {
    fn default() -> Lives<T> {
        Lives {
            signs: HashMap::new(),
            lives: HashMap::new(),
        }
    }
}

impl<T: Clone + PartialEq> Lives<T> {
    /// Adds an event about the owner of an id. Events can be added in any order.
    pub(crate) fn note(&mut self, id: u32, time_ns: i64, sign: Sign, thing: T) {
        self.signs
            .entry(id)
            .or_default()
            .push((time_ns, sign, thing));
    }

    /// Computes the lifetimes of the owners from all added events.
    pub(crate) fn settle(&mut self) {
        for (id, mut signs) in self.signs.drain() {
            signs.sort_by_key(|(time, ..)| *time);
            let lives = self.lives.entry(id).or_default();
            for (time_ns, sign, thing) in signs {
                let from_ns = match sign {
                    Sign::Start => time_ns,
                    _ => i64::MIN,
                };
                match lives.last_mut() {
                    // The last owner has not ended. So this event belongs to the same owner.
                    Some(life) if life.to_ns == i64::MAX && sign != Sign::Start => {
                        if life.thing != thing && sign == Sign::ThereAtBegin {
                            life.thing = thing;
                        }
                    }
                    Some(life) => {
                        life.to_ns = life.to_ns.min(time_ns);
                        let from_ns = from_ns.max(life.to_ns);
                        lives.push(Life {
                            from_ns,
                            to_ns: i64::MAX,
                            thing,
                        });
                    }
                    None => lives.push(Life {
                        from_ns,
                        to_ns: i64::MAX,
                        thing,
                    }),
                }
                if let (Sign::End, Some(life)) = (sign, lives.last_mut()) {
                    life.to_ns = time_ns;
                }
            }
        }
    }

    /// Returns the owner of the id at that time. An owner keeps its id until the next owner starts, because
    /// events about the end of an owner are logged a little after the end.
    pub(crate) fn at(&self, id: u32, time_ns: i64) -> Option<&T> {
        let lives = self.lives.get(&id)?;
        let begun = lives.partition_point(|life| life.from_ns <= time_ns);
        Some(&lives.get(begun.checked_sub(1)?)?.thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_reused() {
        let mut lives = Lives::default();
        lives.note(8, 300, Sign::ThereAtEnd, "c");
        lives.note(8, 0, Sign::ThereAtBegin, "a");
        lives.note(8, 100, Sign::End, "a");
        lives.note(8, 200, Sign::Start, "c");
        lives.note(12, 50, Sign::Start, "d");
        lives.settle();
        for (id, time, thing) in [
            (8, -10, Some("a")),
            (8, 50, Some("a")),
            (8, 150, Some("a")),
            (8, 200, Some("c")),
            (8, 400, Some("c")),
            (12, 49, None),
            (12, 50, Some("d")),
            (16, 50, None),
        ] {
            assert_eq!(lives.at(id, time).copied(), thing, "{id} at {time}");
        }
    }

    #[test]
    fn what_only_ended_was_there_before() {
        let mut lives = Lives::default();
        lives.note(4, 100, Sign::End, "a");
        lives.note(4, 200, Sign::ThereAtEnd, "b");
        lives.settle();
        assert_eq!(lives.at(4, 0), Some(&"a"));
        assert_eq!(lives.at(4, 150), Some(&"b"));
    }
}
