//! What the server serves: its resources, as API discovery tells them.
//!
//! A group that cannot be read leaves the others usable; its failure is told beside them.

use std::collections::{BTreeMap, HashMap, HashSet};

use coracle_client::Client;
use futures::{StreamExt, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResourceList};
use kube::core::gvk::GroupVersion;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};

use crate::refusal;

/// Group versions that are asked for at the same time.
const REQUESTS_AT_ONCE: usize = 4;

/// The metadata of an object of any kind; requests for it ask for nothing else.
pub(crate) type Meta = PartialObjectMeta<DynamicObject>;

/// One resource, in the version the server prefers for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Resource {
    pub(crate) api: ApiResource,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
}

impl Resource {
    pub(crate) fn supports(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// As Kubernetes writes a resource in messages, such as `apps/v1, Resource=deployments`.
    pub(crate) fn text(&self) -> String {
        let ApiResource {
            group,
            version,
            plural,
            ..
        } = &self.api;
        format!("{group}/{version}, Resource={plural}")
    }

    /// The objects of a namespace; all objects of a resource that has none.
    pub(crate) fn objects(&self, client: &Client, namespace: &str) -> kube::Api<Meta> {
        if self.namespaced {
            kube::Api::namespaced_with(client.clone(), namespace, &self.api)
        } else {
            kube::Api::all_with(client.clone(), &self.api)
        }
    }
}

/// What a whole discovery found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Discovered {
    /// Each resource once, in its preferred version.
    pub(crate) resources: Vec<Resource>,
    /// Every kind in every version, by `apiVersion` and `kind`.
    kinds: HashMap<(String, String), Resource>,
    /// What went wrong, by group version.
    pub(crate) failures: BTreeMap<String, String>,
    /// Group versions that are not even that.
    pub(crate) malformed: Vec<String>,
}

impl Discovered {
    pub(crate) fn kind(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        self.kinds.get(&(api_version.to_owned(), kind.to_owned()))
    }

    /// As kube's own clients say it; none if nothing failed.
    pub(crate) fn failure_text(&self) -> Option<String> {
        if self.failures.is_empty() {
            return None;
        }
        let each = self.failures.iter();
        let each: Vec<_> = each.map(|(name, why)| format!("{name}: {why}")).collect();
        let each = each.join(", ");
        Some(format!(
            "unable to retrieve the complete list of server APIs: {each}"
        ))
    }

    /// Adds one list. Lists of a group come with the preferred version first.
    fn add(&mut self, list: &APIResourceList, seen: &mut HashSet<(String, String)>) {
        let parsed = list.group_version.parse::<GroupVersion>().ok();
        let parsed = parsed.filter(|found| !found.version.contains('/'));
        let Some(version) = parsed else {
            self.malformed.push(list.group_version.clone());
            return;
        };
        for found in &list.resources {
            if found.name.contains('/') {
                continue; // A subresource.
            }
            let resource = Resource {
                api: ApiResource {
                    group: version.group.clone(),
                    version: version.version.clone(),
                    api_version: list.group_version.clone(),
                    kind: found.kind.clone(),
                    plural: found.name.clone(),
                },
                namespaced: found.namespaced,
                verbs: found.verbs.clone(),
            };
            let kind = (list.group_version.clone(), found.kind.clone());
            self.kinds.entry(kind).or_insert_with(|| resource.clone());
            if seen.insert((version.group.clone(), found.name.clone())) {
                self.resources.push(resource);
            }
        }
    }
}

/// Asks for every group version there is.
pub(crate) async fn discover(client: &Client) -> Result<Discovered, kube::Error> {
    let groups = client.list_api_groups().await?.groups;
    let core = client.list_core_api_versions().await?.versions;
    let mut wanted: Vec<(String, bool)> = core.into_iter().map(|name| (name, true)).collect();
    for group in &groups {
        wanted.extend(versions_of(group).map(|name| (name, false)));
    }
    let lists = stream::iter(wanted).map(|(name, is_core)| async move {
        let list = if is_core {
            client.list_core_api_resources(&name).await
        } else {
            client.list_api_group_resources(&name).await
        };
        (name, list)
    });
    let lists: Vec<_> = lists.buffered(REQUESTS_AT_ONCE).collect().await;
    let (mut discovered, mut seen) = (Discovered::default(), HashSet::new());
    for (name, list) in lists {
        match list {
            Ok(list) => discovered.add(&list, &mut seen),
            Err(error) => {
                discovered.failures.insert(name, refusal::message(&error));
            }
        }
    }
    Ok(discovered)
}

/// The preferred version, then the others in the server's order.
fn versions_of(group: &APIGroup) -> impl Iterator<Item = String> {
    let preferred = group.preferred_version.as_ref();
    let preferred = preferred.map(|version| version.group_version.clone());
    let others = group.versions.iter();
    let others = others.map(|version| version.group_version.clone());
    let others = others.filter(|version| Some(version) != preferred.as_ref());
    let others: Vec<_> = others.collect();
    preferred.into_iter().chain(others)
}

#[cfg(test)]
mod tests;
