//! How many watchers would hear of a write, for the guess of what it costs.
//!
//! Counts only. Watches of pods by node are left out, as upstream leaves them out: of all of them
//! one hears.

use crate::query::Query;
use crate::request_info::RequestInfo;
use coracle_api::selector::FieldSelector;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Group, resource, namespace, name: empty where a watch is not narrowed.
type Scope = (String, String, String, String);

#[derive(Debug, Default)]
pub struct Watchers {
    counts: Mutex<BTreeMap<Scope, usize>>,
}

/// A watch that is counted until this is dropped.
#[derive(Debug)]
pub struct Watching {
    watchers: Arc<Watchers>,
    scope: Option<Scope>,
}

impl Watchers {
    pub fn register(self: &Arc<Self>, info: &RequestInfo, query: &Query) -> Watching {
        let own = |text: &str| text.to_owned();
        let scope = (!is_of_one_node(info, query)).then(|| {
            (
                own(&info.group),
                own(&info.resource),
                own(&info.namespace),
                own(&info.name),
            )
        });
        if let Some(scope) = &scope {
            *self.counts.lock().entry(scope.clone()).or_default() += 1;
        }
        Watching {
            watchers: Arc::clone(self),
            scope,
        }
    }

    /// Those of the whole resource, of the namespace, and of the object.
    pub fn interested(&self, info: &RequestInfo) -> usize {
        let counts = self.counts.lock();
        if counts.is_empty() {
            return 0;
        }
        let own = |text: &str| text.to_owned();
        let mut scope = (
            own(&info.group),
            own(&info.resource),
            String::new(),
            String::new(),
        );
        let mut sum = counts.get(&scope).copied().unwrap_or(0);
        if !info.namespace.is_empty() {
            scope.2.push_str(&info.namespace);
            sum += counts.get(&scope).copied().unwrap_or(0);
        }
        if !info.name.is_empty() {
            scope.3.push_str(&info.name);
            sum += counts.get(&scope).copied().unwrap_or(0);
        }
        sum
    }

    /// Watches by group and resource, for the metrics.
    pub fn by_resource(&self) -> BTreeMap<(String, String), usize> {
        let mut sums = BTreeMap::new();
        for ((group, resource, _, _), count) in self.counts.lock().iter() {
            *sums.entry((group.clone(), resource.clone())).or_default() += count;
        }
        sums
    }
}

fn is_of_one_node(info: &RequestInfo, query: &Query) -> bool {
    info.resource == "pods"
        && FieldSelector::parse(query.text("fieldSelector")).is_ok_and(|fields| {
            fields
                .exact("spec.nodeName")
                .is_some_and(|node| !node.is_empty())
        })
}

impl Drop for Watching {
    fn drop(&mut self) {
        let Some(scope) = self.scope.take() else {
            return;
        };
        let mut counts = self.watchers.counts.lock();
        if let Some(count) = counts.get_mut(&scope) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&scope);
            }
        }
    }
}

#[cfg(test)]
mod tests;
