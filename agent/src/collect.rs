//! Removes what nobody needs: images, dead containers, what is left of pods that are gone.
//!
//! `images` decides which images go, least recently used first: never one that was imported by
//! hand, is pinned, or is used by a container or a pod that is to run here. When all of those
//! together would not bring the disk below its high mark, none goes: the disk is full of something
//! else, and images that pods need again would be pulled anew for ever. That is said once, and
//! looked at less and less often. `Collector` acts.

mod dead;
mod images; // Pure. Start reading here.
mod keeper;

pub use images::ImagePolicy;
pub use keeper::Collector;
