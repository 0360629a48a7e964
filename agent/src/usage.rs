//! What the node, its pods and containers use: read when asked for, never on a timer of its own.
//!
//! One place for all who want numbers: eviction and the limits of disk, and whoever tells others.
//! Memory, processor and processes are some small files of control groups and cost next to
//! nothing; disk is a walk, so that `Disks` keeps what was measured and says how old it is.

pub mod disk; // A walk over a directory.
pub mod node; // The whole machine.
pub mod pods; // Pods and their containers.

pub use disk::DiskUse;
pub use pods::{ContainerUsage, Disks, PodUsage};
