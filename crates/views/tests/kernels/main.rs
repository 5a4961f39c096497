//! Compares each kernel with a simple implementation: nested loops and maps.

mod columns;
mod flame;
mod heat_map;
mod histogram;
mod pivot;
mod timeline;
