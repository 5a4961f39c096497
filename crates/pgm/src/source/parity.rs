//! Requested parity and proactive parity of each group.

use std::collections::{HashMap, VecDeque};

use super::ParityConfig;
use crate::{fec::Code, wire::Sqn};

/// Groups whose parity was requested, and the queue of proactive parity.
#[derive(Debug)]
pub(super) struct ParityGroups {
    config: Option<ParityConfig>,
    /// Proactive parity packets to send, each as a group and an index.
    proactive: VecDeque<(Sqn, usize)>,
    requested: HashMap<Sqn, ParityRequest>,
    /// First packet of the transmit window when groups were last dropped.
    trail: Option<Sqn>,
}

#[derive(Clone, Copy, Debug)]
struct ParityRequest {
    /// Index of the next parity packet. After the last index, the sequence of indices starts again.
    next: usize,
    /// Number of requested parity packets that are still to be sent.
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

    /// Returns the number of packets per group; 1 without parity.
    pub(super) fn group_size(&self) -> u32 {
        self.config.map_or(1, |config| config.group_size)
    }

    /// Records that an original packet was sent. If the packet completes its group, the group's
    /// proactive parity is queued.
    pub(super) fn sent(&mut self, sqn: Sqn) {
        if let Some(config) = self.config
            && sqn.index(config.group_size) == config.group_size - 1
        {
            self.complete(sqn.group(config.group_size));
        }
    }

    /// Queues the proactive parity of a complete group.
    pub(super) fn complete(&mut self, group: Sqn) {
        let proactive = self.config.map_or(0, |config| config.proactive);
        self.proactive
            .extend((0..proactive).map(|index| (group, index)));
    }

    /// Returns true if groups are shortened when the source pauses.
    pub(super) fn shortens_groups(&self) -> bool {
        self.config
            .is_some_and(|config| config.shorten_groups && config.proactive > 0)
    }

    pub(super) fn has_proactive(&self) -> bool {
        !self.proactive.is_empty()
    }

    pub(super) fn next_proactive(&mut self) -> Option<(Sqn, usize)> {
        self.proactive.pop_front()
    }

    /// Records a request for `count` parity packets of a group. If several requests are pending,
    /// the largest count applies. Returns true if no request was pending.
    pub(super) fn request(&mut self, group: Sqn, count: u32) -> bool {
        let proactive = self.config.map_or(0, |config| config.proactive);
        let requested = self.requested.entry(group).or_insert(ParityRequest {
            next: proactive,
            wanted: 0,
        });
        let is_new = requested.wanted == 0;
        requested.wanted = requested.wanted.max(count);
        is_new
    }

    /// Returns the index of the next parity packet for a group, and a flag. The flag is true if more parity
    /// packets of the group are requested.
    pub(super) fn serve(&mut self, group: Sqn) -> Option<(usize, bool)> {
        let max = Code::for_group_size(self.group_size())?.max_parity();
        let requested = self.requested.get_mut(&group)?;
        requested.wanted = requested.wanted.checked_sub(1)?;
        let index = requested.next % max;
        requested.next = index + 1;
        Some((index, requested.wanted > 0))
    }

    /// Drops the requests for groups before `trail`, the first packet of the window.
    pub(super) fn forget_before(&mut self, trail: Sqn) {
        if self.trail.replace(trail) != Some(trail) {
            self.requested.retain(|group, _| !group.is_before(trail));
        }
    }
}
