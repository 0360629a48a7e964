//! What the node tells of what it and its pods use: the kubelet's summary, and metrics made of
//! the same numbers. Everything is read when it is asked for.
//!
//! What is kept between two requests: the last counts of processor time, of which the rates are
//! made, and what walks over directories found.

mod cadvisor; // `/metrics/cadvisor`.
mod claims; // What `/metrics` says of claimed volumes.
mod collect; // From what was seen to a summary.
mod look; // Reads pods and containers.
mod machine; // Reads the whole machine.
mod network; // `/proc/net/dev`. Pure.
mod own; // `/metrics`: the agent itself.
mod rates; // Processors in use. Pure.
mod resource; // `/metrics/resource`.
mod storage; // Disks and volumes.
mod summary; // The document. Pure.

pub use collect::{Part, Stats};
