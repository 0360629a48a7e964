//! Node authorizer: what the agent of a node may do, by its own name.
//!
//! A node reads what its own pods refer to and nothing else of the kind; what it may change of
//! the rest is narrowed further by NodeRestriction admission. Source: upstream's node authorizer.

use super::Decision;
use super::node_graph::{NodeGraph, Placed, Referred, references};
use super::rule::Rule;
use crate::authenticate::User;
use crate::request_info::RequestInfo;
use crate::view::View;
use coracle_api::object::{Object, ObjectKey};
use coracle_api::selector::FieldSelector;
use std::sync::Arc;

pub const LEASE_NAMESPACE: &str = "kube-node-lease";

pub struct NodeAuthorizer {
    graph: NodeGraph,
    /// The rules of `system:node`, for everything that is not divided by node.
    rules: Vec<Rule>,
    view: Arc<dyn View>,
}

impl std::fmt::Debug for NodeAuthorizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeAuthorizer").finish_non_exhaustive()
    }
}

/// `Ok` allows; the text says why there is no opinion.
type Answer = Result<(), String>;

fn refuse(reason: impl Into<String>) -> Answer {
    Err(reason.into())
}

impl NodeAuthorizer {
    pub fn new(rules: Vec<Rule>, view: Arc<dyn View>) -> Self {
        Self {
            graph: NodeGraph::default(),
            rules,
            view,
        }
    }

    /// Takes over one object of a followed resource: its new state, or none when it is gone.
    pub fn apply(&self, plural: &str, key: &ObjectKey, object: Option<&Object>) {
        self.graph.apply(plural, key, object);
    }

    pub fn authorize(&self, user: &User, info: &RequestInfo) -> Decision {
        let answer = match user.node_name() {
            None => refuse(""),
            Some("") => refuse(format!("unknown node for user {:?}", user.name)),
            Some(node) => self.decide(node, info),
        };
        match answer {
            Ok(()) => Decision::Allowed {
                reason: String::new(),
            },
            Err(reason) => Decision::NoOpinion { reason },
        }
    }

    fn decide(&self, node: &str, info: &RequestInfo) -> Answer {
        if !info.is_resource_request {
            let own = format!("/coracle/v1/nodes/{node}/tunnel");
            return if info.verb == "get" && info.path == own {
                Ok(())
            } else {
                self.by_rules(info)
            };
        }
        match (info.group.as_str(), info.resource.as_str()) {
            ("", "secrets") => self.read_referred(node, Referred::Secret, info),
            ("", "configmaps") => self.read_referred(node, Referred::ConfigMap, info),
            ("", "persistentvolumeclaims") => self.claim(node, info),
            ("", "serviceaccounts") => self.service_account(node, info),
            ("coordination.k8s.io", "leases") => lease(node, info),
            ("storage.k8s.io", "csinodes") => csi_node(node, info),
            ("", "nodes") => own_node(node, info),
            ("", "pods") => self.pod(node, info),
            ("", "persistentvolumes") => self.get_one(node, info, |authorizer| {
                authorizer.uses_volume(node, &info.name)
            }),
            ("storage.k8s.io", "volumeattachments") => self.get_one(node, info, |authorizer| {
                authorizer.is_placed(node, Placed::VolumeAttachment, info)
            }),
            ("resource.k8s.io", "resourceclaims") => self.get_one(node, info, |authorizer| {
                authorizer.is_referred(node, Referred::ResourceClaim, info)
            }),
            ("resource.k8s.io", "resourceslices") => self.resource_slice(node, info),
            // Gated off, as upstream has it by default.
            ("certificates.k8s.io", "podcertificaterequests") => refuse(""),
            _ => self.by_rules(info),
        }
    }

    fn by_rules(&self, info: &RequestInfo) -> Answer {
        if self.rules.iter().any(|rule| rule.allows(info)) {
            Ok(())
        } else {
            refuse("")
        }
    }

    fn read_referred(&self, node: &str, kind: Referred, info: &RequestInfo) -> Answer {
        if !matches!(info.verb.as_str(), "get" | "list" | "watch") {
            return refuse("can only read resources of this type");
        }
        if !info.subresource.is_empty() {
            return refuse("cannot read subresource");
        }
        if info.namespace.is_empty() {
            return refuse("can only read namespaced object of this type");
        }
        self.referred(node, kind, info)
    }

    /// A get of one object that something says leads to the node.
    fn get_one(
        &self,
        node: &str,
        info: &RequestInfo,
        is_related: impl FnOnce(&Self) -> bool,
    ) -> Answer {
        if info.verb != "get" {
            return refuse("can only get individual resources of this type");
        }
        if !info.subresource.is_empty() {
            return refuse("cannot get subresource");
        }
        self.related(node, info, is_related)
    }

    fn claim(&self, node: &str, info: &RequestInfo) -> Answer {
        if info.subresource != "status" {
            return self.get_one(node, info, |authorizer| {
                authorizer.is_referred(node, Referred::Claim, info)
            });
        }
        if !matches!(info.verb.as_str(), "update" | "patch") {
            return refuse("can only get/update/patch this type");
        }
        self.referred(node, Referred::Claim, info)
    }

    fn resource_slice(&self, node: &str, info: &RequestInfo) -> Answer {
        if !info.subresource.is_empty() {
            return refuse("cannot authorize ResourceSlice subresources");
        }
        match info.verb.as_str() {
            // NodeRestriction sees which node the new slice names.
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => self.related(node, info, |authorizer| {
                authorizer.is_placed(node, Placed::ResourceSlice, info)
            }),
            "watch" | "list" | "deletecollection" => {
                if selects(&info.field_selector, "spec.nodeName", node) {
                    return Ok(());
                }
                refuse(
                    "can only list/watch/deletecollection resourceslices with nodeName field \
                     selector",
                )
            }
            _ => refuse(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, \
                 create, update, patch, delete, deletecollection",
            ),
        }
    }

    fn service_account(&self, node: &str, info: &RequestInfo) -> Answer {
        if info.verb == "get" && info.subresource.is_empty() {
            return self.read_referred(node, Referred::ServiceAccount, info);
        }
        if info.verb != "create" || info.name.is_empty() {
            return refuse("can only create tokens for individual service accounts");
        }
        if info.subresource != "token" {
            return refuse("can only create token subresource of serviceaccount");
        }
        self.referred(node, Referred::ServiceAccount, info)
    }

    fn referred(&self, node: &str, kind: Referred, info: &RequestInfo) -> Answer {
        self.related(node, info, |authorizer| {
            authorizer.is_referred(node, kind, info)
        })
    }

    fn related(
        &self,
        node: &str,
        info: &RequestInfo,
        is_related: impl FnOnce(&Self) -> bool,
    ) -> Answer {
        if info.name.is_empty() {
            return refuse("No Object name found");
        }
        if is_related(self) {
            Ok(())
        } else {
            refuse(unrelated(node))
        }
    }

    fn is_referred(&self, node: &str, kind: Referred, info: &RequestInfo) -> bool {
        let key = ObjectKey::new(&info.namespace, &info.name);
        self.graph.refers(node, kind, &key) || self.refers_by_now(node, kind, &key)
    }

    /// A pod that was bound a moment ago may not have reached the graph.
    fn refers_by_now(&self, node: &str, kind: Referred, key: &ObjectKey) -> bool {
        let pods = self.view.list("", "pods", Some(&key.namespace));
        pods.iter().any(|pod| {
            pod.str(&["spec", "nodeName"]) == node
                && references(pod).contains(&(kind, key.name.clone()))
        })
    }

    fn uses_volume(&self, node: &str, name: &str) -> bool {
        if self.graph.uses_volume(node, name) {
            return true;
        }
        let Some(volume) = self.view.get("", "persistentvolumes", "", name) else {
            return false;
        };
        let text = |field| volume.str(&["spec", "claimRef", field]);
        let claim = ObjectKey::new(text("namespace"), text("name"));
        !claim.name.is_empty() && self.refers_by_now(node, Referred::Claim, &claim)
    }

    fn is_placed(&self, node: &str, kind: Placed, info: &RequestInfo) -> bool {
        if self.graph.is_placed(node, kind, &info.name) {
            return true;
        }
        self.view
            .get(&info.group, &info.resource, "", &info.name)
            .is_some_and(|object| object.str(&["spec", "nodeName"]) == node)
    }

    fn pod(&self, node: &str, info: &RequestInfo) -> Answer {
        match (info.subresource.as_str(), info.verb.as_str()) {
            ("", "get") => self.own_pod(node, info),
            ("", "list" | "watch") => {
                if selects(&info.field_selector, "spec.nodeName", node) {
                    return Ok(());
                }
                if !info.name.is_empty() {
                    return self.own_pod(node, info);
                }
                refuse("can only list/watch pods with spec.nodeName field selector")
            }
            // Narrowed to the node's own pods by NodeRestriction.
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Ok(())
            }
            _ => refuse(""),
        }
    }

    fn own_pod(&self, node: &str, info: &RequestInfo) -> Answer {
        if info.name.is_empty() {
            return refuse("No Object name found");
        }
        let key = ObjectKey::new(&info.namespace, &info.name);
        let own = self.graph.runs(node, &key)
            || self
                .view
                .get("", "pods", &info.namespace, &info.name)
                .is_some_and(|pod| pod.str(&["spec", "nodeName"]) == node);
        if own { Ok(()) } else { refuse(unrelated(node)) }
    }
}

fn unrelated(node: &str) -> String {
    format!("no relationship found between node '{node}' and this object")
}

fn selects(selector: &str, field: &str, value: &str) -> bool {
    FieldSelector::parse(selector).is_ok_and(|parsed| parsed.exact(field) == Some(value))
}

fn own_node(node: &str, info: &RequestInfo) -> Answer {
    match (info.subresource.as_str(), info.verb.as_str()) {
        // Narrowed to the node's own object by NodeRestriction.
        ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
        ("", "get" | "list" | "watch") => match info.name.as_str() {
            name if name == node => Ok(()),
            "" => refuse(format!(
                "node '{node}' cannot read all nodes, only its own Node object"
            )),
            other => refuse(format!(
                "node '{node}' cannot read '{other}', only its own Node object"
            )),
        },
        _ => refuse(""),
    }
}

fn lease(node: &str, info: &RequestInfo) -> Answer {
    if !is_single_write_or_get(&info.verb) {
        return refuse("can only get, create, update, patch, or delete a node lease");
    }
    if info.namespace != LEASE_NAMESPACE {
        return refuse(format!(
            "can only access leases in the {LEASE_NAMESPACE:?} system namespace"
        ));
    }
    // A create is looked at by NodeRestriction, which sees the name.
    if info.verb != "create" && info.name != node {
        return refuse("can only access node lease with the same name as the requesting node");
    }
    Ok(())
}

fn csi_node(node: &str, info: &RequestInfo) -> Answer {
    if !is_single_write_or_get(&info.verb) {
        return refuse("can only get, create, update, patch, or delete a CSINode");
    }
    if !info.subresource.is_empty() {
        return refuse("cannot authorize CSINode subresources");
    }
    if info.verb != "create" && info.name != node {
        return refuse("can only access CSINode with the same name as the requesting node");
    }
    Ok(())
}

fn is_single_write_or_get(verb: &str) -> bool {
    matches!(verb, "get" | "create" | "update" | "patch" | "delete")
}
