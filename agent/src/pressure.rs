//! What the node does when memory, disk or process ids run short: says so, makes room, and evicts
//! pods, one at a time.
//!
//! `Tracker` decides from what was observed which conditions hold and which thresholds are to be
//! acted on; `rank` who goes first, `message` with which words, `local` who has gone beyond a
//! limit of its own. `Keeper` looks every 10 s, as upstream, and acts.

mod keeper;
mod local; // Limits of a pod's own. Pure.
pub mod message; // Pure.
mod observe;
mod rank; // Pure.
mod signal;
mod threshold; // Flags. Pure.
mod tracker; // Pure. Start reading here.

pub use keeper::{Conditions, Keeper};
pub use signal::{Condition, Resource, Signal};
pub use threshold::{
    BadThreshold, HARD_DEFAULT, Settings, Threshold, Value, Words, pairs, thresholds,
};
