//! One file or folder a kind: its row in the catalogue, and its rules.
//!
//! `row` has the shapes that rows share, `plain` the rules of a kind that has none of its own.

pub mod plain;
pub mod row;

pub mod config_map;
pub mod namespace;
pub mod pod;
