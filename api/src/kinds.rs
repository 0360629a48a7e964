//! One file or folder a kind: its row in the catalogue, and its rules.
//!
//! `row` has the shapes that rows share, `prepare` and `checks` the pieces that strategies and
//! validations are made of, `plain` the rules of a kind that has none of its own.

pub mod checks;
pub mod plain;
pub mod prepare;
pub mod row;
pub mod workload;

pub mod config_map;
pub mod deployment;
pub mod event;
pub mod lease;
pub mod namespace;
pub mod node;
pub mod pod;
pub mod replica_set;
pub mod replication_controller;
pub mod secret;
pub mod service_account;

#[cfg(test)]
mod testing;
