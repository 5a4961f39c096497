//! Each kernel against the same computed in the plainest way: nested loops and maps.

mod as_of_join;
mod columns;
mod flame;
mod heat_map;
mod histogram;
mod overlap_join;
mod pivot;
mod timeline;
