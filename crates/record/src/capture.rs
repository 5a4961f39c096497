//! Captures: the kernel keywords, stacks and providers that a recording enables.

use std::collections::BTreeSet;

use crate::{Keyword, Kind, Provider, RecorderOption, StackWalk};

/// Kernel keywords, stacks and providers that a recording enables, limited to those that laglab uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    keywords: BTreeSet<Keyword>,
    stacks: BTreeSet<StackWalk>,
    providers: Vec<EnabledProvider>,
}

/// A provider that a recording enables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnabledProvider {
    /// Provider that is enabled.
    pub provider: Provider,
    /// Keyword mask. Events with any of its keywords are recorded. 0 means all events.
    pub keywords: u64,
}

impl Capture {
    /// Returns the smallest capture that records these kinds of events.
    pub fn from_kinds(kinds: impl IntoIterator<Item = Kind>) -> Capture {
        let mut capture = Capture::default();
        for kind in kinds {
            if matches!(kind, Kind::ContextSwitches | Kind::SwitchStacks) {
                // WPR refuses profiles with these keywords if they lack `CpuConfig`.
                capture.add_keyword(Keyword::CpuConfig);
            }
            match kind.recorded_by() {
                RecorderOption::Kernel(keyword) => capture.add_keyword(keyword),
                RecorderOption::Stack(stack) => {
                    capture.add_keyword(stack.needs());
                    capture.add_stack(stack);
                }
                RecorderOption::Provider(provider, keywords) => {
                    capture.add_provider(EnabledProvider { provider, keywords });
                }
            }
        }
        capture
    }

    /// Enables a kernel keyword, but no stacks.
    pub fn add_keyword(&mut self, keyword: Keyword) {
        self.keywords.insert(keyword);
    }

    /// Enables stacks of an event, but not the keyword that records the event.
    pub fn add_stack(&mut self, stack: StackWalk) {
        self.stacks.insert(stack);
    }

    /// Enables a provider. If it is already enabled, adds the keywords.
    pub fn add_provider(&mut self, more: EnabledProvider) {
        let mut providers = self.providers.iter_mut();
        match providers.find(|there| there.provider == more.provider) {
            None => self.providers.push(more),
            Some(there) if there.keywords == 0 || more.keywords == 0 => there.keywords = 0,
            Some(there) => there.keywords |= more.keywords,
        }
        self.providers.sort_by_key(|enabled| enabled.provider);
    }

    /// Returns the keywords of the kernel session, in the order of [`Keyword::ALL`].
    pub fn keywords(&self) -> impl Iterator<Item = Keyword> + '_ {
        self.keywords.iter().copied()
    }

    /// Returns the events whose stacks are recorded, in the order of [`StackWalk::ALL`].
    pub fn stacks(&self) -> impl Iterator<Item = StackWalk> + '_ {
        self.stacks.iter().copied()
    }

    /// Returns the arguments of `xperf -on` for the kernel session: flags joined by `+`, and `-stackwalk` if
    /// stacks are recorded. Returns `None` if the capture has no flag.
    pub fn xperf_flags(&self) -> Option<String> {
        // All versions of xperf record `CpuConfig`, but older versions refuse the flag.
        let flags = (self.keywords()).filter(|keyword| *keyword != Keyword::CpuConfig);
        let flags: Vec<&str> = flags.map(Keyword::xperf).collect();
        let stacks: Vec<&str> = self.stacks().map(StackWalk::xperf).collect();
        match (flags.is_empty(), stacks.is_empty()) {
            (true, _) => None,
            (false, true) => Some(flags.join("+")),
            (false, false) => Some(format!(
                "{} -stackwalk {}",
                flags.join("+"),
                stacks.join("+")
            )),
        }
    }

    /// Returns the enabled providers, without the kernel session.
    pub fn providers(&self) -> &[EnabledProvider] {
        &self.providers
    }

    /// Returns true if events of the kind are recorded. Stacks are recorded only if the keyword of their
    /// events is also enabled.
    pub fn records(&self, kind: Kind) -> bool {
        match kind.recorded_by() {
            RecorderOption::Kernel(keyword) => self.keywords.contains(&keyword),
            RecorderOption::Stack(stack) => {
                self.stacks.contains(&stack) && self.keywords.contains(&stack.needs())
            }
            RecorderOption::Provider(provider, keywords) => self.providers.iter().any(|enabled| {
                enabled.provider == provider
                    && (enabled.keywords == 0 || keywords == 0 || enabled.keywords & keywords != 0)
            }),
        }
    }

    /// Returns the kinds of events that are recorded.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> + '_ {
        Kind::ALL.iter().copied().filter(|kind| self.records(*kind))
    }

    /// Returns the capture without one kind of events. If the events of a stack are then no longer recorded, their
    /// stacks are removed too. If a provider records the kind, the whole provider is removed, with all kinds that it
    /// records.
    #[must_use]
    pub fn without(&self, left_out: Kind) -> Capture {
        let mut less = self.clone();
        match left_out.recorded_by() {
            RecorderOption::Kernel(keyword) => {
                less.keywords.remove(&keyword);
                less.stacks.retain(|stack| stack.needs() != keyword);
            }
            RecorderOption::Stack(stack) => {
                less.stacks.remove(&stack);
            }
            RecorderOption::Provider(provider, _) => {
                less.providers
                    .retain(|enabled| enabled.provider != provider);
            }
        }
        less
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_kinds_include_the_keyword_of_their_events() {
        let capture = Capture::from_kinds([Kind::SwitchStacks, Kind::Images]);
        assert!(capture.records(Kind::ContextSwitches));
        assert!(capture.records(Kind::SwitchStacks));
        let less = capture.without(Kind::ContextSwitches);
        assert_eq!(less, Capture::from_kinds([Kind::Images, Kind::CpuConfig]));
        assert!(
            capture
                .without(Kind::SwitchStacks)
                .records(Kind::ContextSwitches)
        );
    }

    #[test]
    fn provider_keywords_select_kinds() {
        let mut capture = Capture::default();
        let mut enable = |keywords| {
            capture.add_provider(EnabledProvider {
                provider: Provider::KernelProcess,
                keywords,
            });
            capture.records(Kind::Freezes)
        };
        assert!(!enable(0x10));
        assert!(enable(0x200));
        assert_eq!(capture.providers()[0].keywords, 0x210);
        capture.add_provider(EnabledProvider {
            provider: Provider::KernelProcess,
            keywords: 0,
        });
        assert_eq!(capture.providers()[0].keywords, 0);
        assert!(capture.records(Kind::Freezes));
    }
}
