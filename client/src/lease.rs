//! Leases: who leads among several, and that a node is alive.

use std::time::Duration;

mod election;
mod held; // Whether this process leads, for who asks from outside.
mod node;

pub use election::{Election, lead, let_go};
pub use held::Held;
pub use node::NodeLease;

fn whole_seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
