//! What plugins see of the world beside the nodes and pods of a snapshot.
//!
//! Kept up to date by `events`; read by plugins at the points that come once a cycle.

use crate::cache::Cache;
use crate::devices::Devices;
use crate::plugins::dynamic_resources::ClaimsMade;
use crate::volumes::Volumes;
use parking_lot::Mutex;
use std::sync::Arc;

mod owners;
mod table;

pub use owners::Owners;
pub(crate) use table::Keeper;
pub use table::Table;

/// Cheap to clone; clones share.
#[derive(Clone, Debug, Default)]
pub struct Views {
    pub cache: Arc<Mutex<Cache>>,
    pub volumes: Arc<Mutex<Volumes>>,
    pub devices: Arc<Mutex<Devices>>,
    /// Claims that were made for extended resources.
    pub claims_made: Arc<ClaimsMade>,
    /// Whom a pod may belong to.
    pub owners: Owners,
    /// Labels of namespaces.
    pub namespaces: Namespaces,
}

/// Labels of namespaces, by name.
pub type Namespaces = Table<crate::selector::Labels>;
