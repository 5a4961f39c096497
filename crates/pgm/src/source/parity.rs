//! Which parity each group has had and still wants.

use std::collections::{HashMap, VecDeque};

use super::ParityConfig;
use crate::{fec::Code, wire::Sqn};

/// The groups that receivers have asked parity of, and the parity that is sent unasked.
#[derive(Debug)]
pub(super) struct ParityGroups {
    config: Option<ParityConfig>,
    /// Groups and indices of proactive parity that waits.
    proactive: VecDeque<(Sqn, usize)>,
    requested: HashMap<Sqn, Requested>,
    /// The trail when groups were last forgotten.
    trail: Option<Sqn>,
}

#[derive(Clone, Copy, Debug)]
struct Requested {
    /// The index of the parity that goes next: one that was not sent yet, while there are such.
    next: usize,
    /// How many are still wanted.
    wanted: u32,
}

impl ParityGroups {
    pub(super) fn new(config: Option<ParityConfig>) -> Self {
        Self {
            config,
            proactive: VecDeque::new(),
            requested: HashMap::new(),
            trail: None,
        }
    }

    pub(super) fn on_demand(&self) -> bool {
        self.config.is_some_and(|config| config.on_demand)
    }

    /// Packets in a group; 1 without parity.
    pub(super) fn group_size(&self) -> u32 {
        self.config.map_or(1, |config| config.group_size)
    }

    /// An original was sent: if it completes its group, proactive parity follows.
    pub(super) fn sent(&mut self, sqn: Sqn) {
        if let Some(config) = self.config
            && sqn.index(config.group_size) == config.group_size - 1
        {
            self.complete(sqn.group(config.group_size));
        }
    }

    /// Nothing more comes into a group.
    pub(super) fn complete(&mut self, group: Sqn) {
        let proactive = self.config.map_or(0, |config| config.proactive);
        self.proactive
            .extend((0..proactive).map(|index| (group, index)));
    }

    /// Whether groups are cut short where the source pauses.
    pub(super) fn cuts_short(&self) -> bool {
        self.config
            .is_some_and(|config| config.cut_short && config.proactive > 0)
    }

    pub(super) fn has_proactive(&self) -> bool {
        !self.proactive.is_empty()
    }

    pub(super) fn next_proactive(&mut self) -> Option<(Sqn, usize)> {
        self.proactive.pop_front()
    }

    /// A receiver wants `count` more of a group: the largest of all such wishes holds. Says whether
    /// the group did not wait for any before.
    pub(super) fn request(&mut self, group: Sqn, count: u32) -> bool {
        let proactive = self.config.map_or(0, |config| config.proactive);
        let requested = self.requested.entry(group).or_insert(Requested {
            next: proactive,
            wanted: 0,
        });
        let is_new = requested.wanted == 0;
        requested.wanted = requested.wanted.max(count);
        is_new
    }

    /// The index of the parity to send of a group that was asked for, and whether more are wanted.
    pub(super) fn serve(&mut self, group: Sqn) -> Option<(usize, bool)> {
        let most = Code::of(self.group_size())?.most_parity();
        let requested = self.requested.get_mut(&group)?;
        requested.wanted = requested.wanted.checked_sub(1)?;
        let index = requested.next % most;
        requested.next = index + 1;
        Some((index, requested.wanted > 0))
    }

    /// Forgets groups that the window no longer has.
    pub(super) fn forget_before(&mut self, trail: Sqn) {
        if self.trail.replace(trail) != Some(trail) {
            self.requested.retain(|group, _| !group.is_before(trail));
        }
    }
}
