//! What a recording holds.

use std::collections::BTreeSet;

use crate::{Keyword, Kind, Needs, Provider, RecordedBy, StackWalk};

/// What a recording holds: the keywords, stacks and providers that it has switched on, of those that
/// laglab uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    keywords: BTreeSet<Keyword>,
    stacks: BTreeSet<StackWalk>,
    providers: Vec<Enabled>,
}

/// A provider that is switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enabled {
    /// The provider.
    pub provider: Provider,
    /// Its keywords: events that have any of them are recorded. 0 stands for all.
    pub keywords: u64,
}

impl Capture {
    /// What records these kinds of events, and no more.
    pub fn of(kinds: impl IntoIterator<Item = Kind>) -> Capture {
        let mut capture = Capture::default();
        for kind in kinds {
            if matches!(kind, Kind::ContextSwitches | Kind::SwitchStacks) {
                // Without it WPR refuses them.
                capture.add_keyword(Keyword::CpuConfig);
            }
            match kind.recorded_by() {
                RecordedBy::Kernel(keyword) => capture.add_keyword(keyword),
                RecordedBy::Stack(stack) => {
                    capture.add_keyword(stack.needs());
                    capture.add_stack(stack);
                }
                RecordedBy::Provider(provider, keywords) => {
                    capture.add_provider(Enabled { provider, keywords });
                }
            }
        }
        capture
    }

    /// Switches a keyword on; nothing beside it.
    pub fn add_keyword(&mut self, keyword: Keyword) {
        self.keywords.insert(keyword);
    }

    /// Switches the walking of stacks on.
    pub fn add_stack(&mut self, stack: StackWalk) {
        self.stacks.insert(stack);
    }

    /// Switches a provider on; one that is on already gets these keywords too.
    pub fn add_provider(&mut self, more: Enabled) {
        let mut providers = self.providers.iter_mut();
        match providers.find(|there| there.provider == more.provider) {
            None => self.providers.push(more),
            Some(there) if there.keywords == 0 || more.keywords == 0 => there.keywords = 0,
            Some(there) => there.keywords |= more.keywords,
        }
        self.providers.sort_by_key(|enabled| enabled.provider);
    }

    /// Keywords of the kernel's session, in the order of [`Keyword::ALL`].
    pub fn keywords(&self) -> impl Iterator<Item = Keyword> + '_ {
        self.keywords.iter().copied()
    }

    /// Stacks that are walked, in the order of [`StackWalk::ALL`].
    pub fn stacks(&self) -> impl Iterator<Item = StackWalk> + '_ {
        self.stacks.iter().copied()
    }

    /// Providers other than the kernel's session.
    pub fn providers(&self) -> &[Enabled] {
        &self.providers
    }

    /// Whether it holds events of that kind, should there be any. Stacks need the keyword of the
    /// events that they are of.
    pub fn records(&self, kind: Kind) -> bool {
        match kind.recorded_by() {
            RecordedBy::Kernel(keyword) => self.keywords.contains(&keyword),
            RecordedBy::Stack(stack) => {
                self.stacks.contains(&stack) && self.keywords.contains(&stack.needs())
            }
            RecordedBy::Provider(provider, keywords) => self.providers.iter().any(|enabled| {
                enabled.provider == provider
                    && (enabled.keywords == 0 || keywords == 0 || enabled.keywords & keywords != 0)
            }),
        }
    }

    /// The kinds of events that it holds.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> + '_ {
        Kind::ALL.into_iter().filter(|kind| self.records(*kind))
    }

    /// The same without one kind; without the stacks of events that are not recorded any more, too.
    #[must_use]
    pub fn without(&self, left_out: Kind) -> Capture {
        let mut less = self.clone();
        match left_out.recorded_by() {
            RecordedBy::Kernel(keyword) => {
                less.keywords.remove(&keyword);
                less.stacks.retain(|stack| stack.needs() != keyword);
            }
            RecordedBy::Stack(stack) => {
                less.stacks.remove(&stack);
            }
            RecordedBy::Provider(provider, _) => {
                less.providers
                    .retain(|enabled| enabled.provider != provider);
            }
        }
        less
    }

    /// Whether a theory of these needs can be judged by it.
    pub fn satisfies(&self, needs: &Needs) -> bool {
        let has_any = |any: &&[Kind]| any.iter().any(|kind| self.records(*kind));
        needs.each_of.iter().all(has_any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_bring_the_keyword_of_their_events_and_go_with_it() {
        let capture = Capture::of([Kind::SwitchStacks, Kind::Images]);
        assert!(capture.records(Kind::ContextSwitches));
        assert!(capture.records(Kind::SwitchStacks));
        let less = capture.without(Kind::ContextSwitches);
        assert_eq!(less, Capture::of([Kind::Images, Kind::CpuConfig]));
        assert!(
            capture
                .without(Kind::SwitchStacks)
                .records(Kind::ContextSwitches)
        );
    }

    #[test]
    fn a_provider_records_what_its_keywords_let_through() {
        let mut capture = Capture::default();
        let mut enable = |keywords| {
            capture.add_provider(Enabled {
                provider: Provider::KernelProcess,
                keywords,
            });
            capture.records(Kind::Freezes)
        };
        assert!(!enable(0x10));
        assert!(enable(0x200));
        assert_eq!(capture.providers()[0].keywords, 0x210);
        capture.add_provider(Enabled {
            provider: Provider::KernelProcess,
            keywords: 0,
        });
        assert_eq!(capture.providers()[0].keywords, 0);
        assert!(capture.records(Kind::Freezes));
    }
}
