//! What authorization and admission may read: objects by key, never a write.

use coracle_api::object::Object;

/// A read-only look at the newest stored objects. `group` is empty for the core group and
/// `namespace` for cluster-scoped resources.
pub trait View: Send + Sync {
    fn get(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Object>;

    /// All objects, or those of one namespace, in the order of their keys.
    fn list(&self, group: &str, plural: &str, namespace: Option<&str>) -> Vec<Object>;
}

#[cfg(test)]
pub mod tests;
