//! Node authorizer: what the agent of a node may do, by its own name.
//!
//! A node reads what its own pods refer to and nothing else of the kind; what it may change of
//! the rest is narrowed further by NodeRestriction admission. Source: upstream's node authorizer.

use super::Decision;
use super::node_pods::{NodePods, Referred};
use super::rule::Rule;
use crate::authenticate::User;
use crate::request_info::RequestInfo;
use crate::view::View;
use coracle_api::object::{Object, ObjectKey};
use coracle_api::selector::FieldSelector;
use std::sync::Arc;

pub const LEASE_NAMESPACE: &str = "kube-node-lease";

pub struct NodeAuthorizer {
    pods: NodePods,
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
            pods: NodePods::default(),
            rules,
            view,
        }
    }

    /// Takes over one pod.
    pub fn apply(&self, key: &ObjectKey, pod: Option<&Object>) {
        self.pods.apply(key, pod);
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
            // What hangs on a pod over further objects is not served to nodes yet.
            ("", "persistentvolumes")
            | ("storage.k8s.io", "volumeattachments")
            | ("resource.k8s.io", "resourceclaims" | "resourceslices") => refuse(unrelated(node)),
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

    fn claim(&self, node: &str, info: &RequestInfo) -> Answer {
        match (info.subresource.as_str(), info.verb.as_str()) {
            ("", "get") | ("status", "update" | "patch") => {
                self.referred(node, Referred::Claim, info)
            }
            ("status", _) => refuse("can only get/update/patch this type"),
            ("", _) => refuse("can only get individual resources of this type"),
            _ => refuse("cannot get subresource"),
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
        if info.name.is_empty() {
            return refuse("No Object name found");
        }
        let key = ObjectKey::new(&info.namespace, &info.name);
        let found = self.pods.refers(node, kind, &key)
            // A pod that was bound a moment ago may not have reached the index.
            || self.view.list("", "pods", Some(&info.namespace)).iter().any(|pod| {
                pod.str(&["spec", "nodeName"]) == node
                    && super::node_pods::references(pod).contains(&(kind, info.name.clone()))
            });
        if found {
            Ok(())
        } else {
            refuse(unrelated(node))
        }
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
        let own = self.pods.runs(node, &key)
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
