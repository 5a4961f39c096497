//! Assignment of ids to the series of a timeline.

use crate::NULL_ID;

/// Content of one series of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// One id.
    Id(u32),
    /// All known ids that have no separate series.
    Other,
    /// Rows with an unknown id.
    Unknown,
}

/// Assignment of ids to lanes. A lane is the content of one series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Index in `lanes` of each id's lane. The last entry is for the unknown id.
    lane_of: Vec<u32>,
    lanes: Vec<Lane>,
}

impl Lanes {
    /// Creates a lane for every id below `bound`. This is suitable for some hundred ids (processes,
    /// CPUs).
    pub fn every(bound: u32) -> Lanes {
        Lanes {
            lane_of: (0..=bound).collect(),
            lanes: (0..bound).map(Lane::Id).chain([Lane::Unknown]).collect(),
        }
    }

    /// Creates a lane for each id of `ids`, and one lane for all other ids below `bound`. This is
    /// suitable for many ids (threads, stacks).
    pub fn from_ids(ids: &[u32], bound: u32) -> Lanes {
        const OTHER: u32 = NULL_ID;
        let mut lane_of = vec![OTHER; bound as usize + 1];
        let mut lanes = Vec::new();
        for id in ids.iter().filter(|id| **id < bound) {
            if lane_of[*id as usize] == OTHER {
                lane_of[*id as usize] = lanes.len() as u32;
                lanes.push(Lane::Id(*id));
            }
        }
        let other = lanes.len() as u32;
        for lane in lane_of.iter_mut().filter(|lane| **lane == OTHER) {
            *lane = other;
        }
        lane_of[bound as usize] = other + 1;
        lanes.extend([Lane::Other, Lane::Unknown]);
        Lanes { lane_of, lanes }
    }

    /// Returns all lanes.
    pub(crate) fn list(&self) -> &[Lane] {
        &self.lanes
    }

    /// Returns the index of the id's lane in [`list`](Lanes::list).
    #[inline]
    pub(crate) fn index(&self, id: u32) -> usize {
        let unknown = self.lane_of.len() - 1;
        self.lane_of[(id as usize).min(unknown)] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_find_their_lane() {
        let lane = |lanes: &Lanes, id| lanes.list()[lanes.index(id)];
        let every = Lanes::every(2);
        assert_eq!(lane(&every, 1), Lane::Id(1));
        assert_eq!(lane(&every, 2), Lane::Unknown);
        assert_eq!(lane(&every, NULL_ID), Lane::Unknown);
        let some = Lanes::from_ids(&[3, 1, 3, 9], 5);
        assert_eq!(some.list().len(), 4);
        assert_eq!(lane(&some, 3), Lane::Id(3));
        assert_eq!(lane(&some, 4), Lane::Other);
        assert_eq!(lane(&some, 9), Lane::Unknown);
        assert_eq!(lane(&Lanes::from_ids(&[], 1), 0), Lane::Other);
    }
}
