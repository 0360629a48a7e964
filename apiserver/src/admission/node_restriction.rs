//! A node touches itself, its lease and its pods, and gives itself no labels that draw workloads
//! to it. Narrows what the node authorizer, which sees no objects, lets through.

mod references; // What a pod that a node made by itself may not refer to.
mod token; // Tokens for the pods of the node.

use super::{Attributes, Operation, certificates};
use crate::authorize::Authorizer;
use crate::authorize::node::LEASE_NAMESPACE;
use crate::view::View;
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::pod_spec::MIRROR;
use coracle_api::status::{Status, Subject};
use serde_json::Value;
use std::collections::BTreeSet;

/// Labels under kubernetes.io and k8s.io that a node sets on itself.
const OWN_LABELS: &[&str] = &[
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
/// And the namespaces of labels, with all below them.
const OWN_LABEL_NAMESPACES: &[&str] = &["kubelet.kubernetes.io", "node.kubernetes.io"];
const RESTRICTED_LABELS: &str = "node-restriction.kubernetes.io";
const NODE_SIGNERS: &[&str] = &[
    "kubernetes.io/kubelet-serving",
    "kubernetes.io/kube-apiserver-client-kubelet",
];

/// One request of one node.
struct Restriction<'a> {
    view: &'a dyn View,
    authorizer: &'a Authorizer,
    node: &'a str,
    object: Option<&'a Object>,
    asked: &'a Attributes<'a>,
}

pub fn admit(
    view: &dyn View,
    authorizer: &Authorizer,
    object: Option<&Object>,
    asked: &Attributes<'_>,
) -> Result<(), Status> {
    let Some(node) = asked.user.node_name() else {
        return Ok(());
    };
    let restriction = Restriction {
        view,
        authorizer,
        node,
        object,
        asked,
    };
    if node.is_empty() {
        let why = format!("could not determine node from user {:?}", asked.user.name);
        return restriction.refuse(why);
    }
    match (asked.resource.group, asked.resource.plural) {
        ("", "pods") => restriction.pods(),
        ("", "nodes") => restriction.nodes(),
        ("", "persistentvolumeclaims") => restriction.claim(),
        ("", "serviceaccounts") => restriction.token(),
        ("coordination.k8s.io", "leases") => restriction.lease(),
        ("storage.k8s.io", "csinodes") => restriction
            .named_as_itself("can only access CSINode with the same name as the requesting node"),
        ("resource.k8s.io", "resourceslices") => restriction.slice(),
        ("certificates.k8s.io", "certificatesigningrequests") => restriction.signing_request(),
        _ => Ok(()),
    }
}

impl Restriction<'_> {
    fn refuse(&self, why: impl AsRef<str>) -> Result<(), Status> {
        Err(self.asked.forbidden(self.object, why))
    }

    fn pods(&self) -> Result<(), Status> {
        match self.asked.subresource {
            "" => match self.asked.operation {
                Operation::Create => self.mirror_pod(),
                Operation::Delete => self.own_pod(format!(
                    "node {:?} can only delete pods with spec.nodeName set to itself",
                    self.node
                )),
                other => self.refuse(format!(
                    "unexpected operation {:?}, node {:?} can only create and delete mirror pods",
                    other.as_str(),
                    self.node
                )),
            },
            "status" => self.pod_status(),
            "eviction" => self.own_pod(format!(
                "node {} can only evict pods with spec.nodeName set to itself",
                self.node
            )),
            other => self.refuse(format!(
                "unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"
            )),
        }
    }

    fn own_pod(&self, why: String) -> Result<(), Status> {
        let (namespace, name) = (self.asked.namespace, self.asked.name);
        let Some(pod) = self.view.get("", "pods", namespace, name) else {
            return Err(Status::not_found(Subject {
                group: "",
                resource: "pods",
                name,
            }));
        };
        if pod.str(&["spec", "nodeName"]) == self.node {
            return Ok(());
        }
        self.refuse(why)
    }

    fn pod_status(&self) -> Result<(), Status> {
        let node = self.node;
        let (Operation::Update, Some(old), Some(new)) =
            (self.asked.operation, self.asked.old, self.object)
        else {
            let operation = self.asked.operation.as_str();
            return self.refuse(format!("unexpected operation {operation:?}"));
        };
        if old.str(&["spec", "nodeName"]) != node {
            return self.refuse(format!(
                "node {node:?} can only update pod status for pods with spec.nodeName set to itself"
            ));
        }
        if !old.labels().eq(new.labels()) {
            return self.refuse(format!(
                "node {node:?} cannot update labels through pod status"
            ));
        }
        let statuses = |pod: &Object| -> Vec<(String, Value)> {
            let all = pod.list(&["status", "resourceClaimStatuses"]).iter();
            all.map(|one| {
                let name = json::text(one, "name").to_owned();
                (name, json::get(one, "resourceClaimName").clone())
            })
            .collect()
        };
        if statuses(old) != statuses(new) {
            return self.refuse(format!(
                "node {node:?} cannot update resource claim statues"
            ));
        }
        if !same(old, new, &["status", "extendedResourceClaimStatus"]) {
            return self.refuse(format!(
                "node {node:?} cannot update extended resource claim status"
            ));
        }
        Ok(())
    }

    /// Of a claim, a node says how large its volume is and how far growing it has come.
    fn claim(&self) -> Result<(), Status> {
        if self.asked.subresource != "status" {
            return self.refuse("may only update PVC status");
        }
        let (Operation::Update, Some(old), Some(new)) =
            (self.asked.operation, self.asked.old, self.object)
        else {
            let operation = self.asked.operation.as_str();
            return self.refuse(format!("unexpected operation {operation:?}"));
        };
        let fixed = |claim: &Object| {
            let mut claim = claim.clone();
            for path in [
                ["metadata", "resourceVersion"],
                ["metadata", "managedFields"],
                ["status", "capacity"],
                ["status", "conditions"],
                ["status", "allocatedResources"],
                ["status", "allocatedResourceStatuses"],
            ] {
                claim.remove(&path);
            }
            claim.into_value()
        };
        let (old, new) = (fixed(old), fixed(new));
        if json::same(&old, &new) {
            return Ok(());
        }
        let parts = ["metadata", "spec", "status"].into_iter();
        let changed: Vec<&str> = parts
            .filter(|part| !json::same(json::get(&old, part), json::get(&new, part)))
            .collect();
        self.refuse(format!(
            "node {:?} is not allowed to update fields other than status.quantity and \
             status.conditions: {}",
            self.node,
            changed.join(", ")
        ))
    }

    fn slice(&self) -> Result<(), Status> {
        let (word, slice) = match self.asked.operation {
            Operation::Create => ("create", self.object),
            Operation::Delete => ("delete", self.asked.old),
            _ => return Ok(()),
        };
        if slice.is_some_and(|slice| slice.str(&["spec", "nodeName"]) == self.node) {
            return Ok(());
        }
        self.refuse(format!(
            "can only {word} ResourceSlice with the same NodeName as the requesting node"
        ))
    }

    /// The one kind of pod that a node makes: the reflection of one it runs by itself.
    fn mirror_pod(&self) -> Result<(), Status> {
        let (node, Some(pod)) = (self.node, self.object) else {
            return Ok(());
        };
        if pod.annotation(MIRROR).is_none() {
            return self.refuse(format!(
                "pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror pods"
            ));
        }
        if pod.str(&["spec", "nodeName"]) != node {
            return self.refuse(format!(
                "node {node:?} can only create pods with spec.nodeName set to itself"
            ));
        }
        self.owned_by_itself(pod)?;
        match references::of_mirror_pod(pod) {
            Ok(None) => Ok(()),
            Ok(Some(what)) => self.refuse(format!(
                "node {node:?} can not create pods that reference {what}"
            )),
            Err(why) => self.refuse(format!(
                "error checking mirror pod for API references: {why}"
            )),
        }
    }

    fn owned_by_itself(&self, pod: &Object) -> Result<(), Status> {
        let node = self.node;
        let mut owners = pod.owner_references();
        let (Some(owner), None) = (owners.next(), owners.next()) else {
            let article = if pod.owner_references().count() > 1 {
                "a single"
            } else {
                "an"
            };
            return self.refuse(format!(
                "node {node:?} can only create pods with {article} owner reference set to itself"
            ));
        };
        if (owner.api_version, owner.kind, owner.name) != ("v1", "Node", node) {
            return self.refuse(format!(
                "node {node:?} can only create pods with an owner reference set to itself"
            ));
        }
        if !owner.controller {
            return self.refuse(format!(
                "node {node:?} can only create pods with a controller owner reference set to itself"
            ));
        }
        if owner.block_owner_deletion {
            return self.refuse(format!(
                "node {node:?} must not set blockOwnerDeletion on an owner reference"
            ));
        }
        let own = self.view.get("", "nodes", "", node).ok_or_else(|| {
            Status::not_found(Subject {
                group: "",
                resource: "nodes",
                name: node,
            })
        })?;
        if owner.uid == own.uid() {
            return Ok(());
        }
        self.refuse(format!(
            "node {node} UID mismatch: expected {} got {}",
            owner.uid,
            own.uid()
        ))
    }

    fn nodes(&self) -> Result<(), Status> {
        let node = self.node;
        let name = match (self.asked.name, self.object) {
            ("", Some(object)) => object.name(),
            (name, _) => name,
        };
        if name != node {
            return self.refuse(format!(
                "node {node:?} is not allowed to modify node {name:?}"
            ));
        }
        let Some(new) = self.object else {
            return Ok(());
        };
        let none = Object::new("v1", "Node");
        let old = self.asked.old.unwrap_or(&none);
        let same = |path: &[&str]| same(new, old, path);
        let source = new
            .get(&["spec", "configSource"])
            .filter(|source| !source.is_null());
        let forbidden = forbidden_labels(new, old);
        match self.asked.operation {
            Operation::Create if source.is_some() => self.refuse(format!(
                "node {node:?} is not allowed to create pods with a non-nil configSource"
            )),
            Operation::Update if source.is_some() && !same(&["spec", "configSource"]) => self
                .refuse(format!(
                    "node {node:?} is not allowed to update configSource to a new non-nil \
                     configSource"
                )),
            // Beyond upstream: by it all others would send it what is for that network.
            Operation::Create | Operation::Update if chooses_network(new, old) => self.refuse(
                format!("node {node:?} is not allowed to choose the podCIDR of its pods"),
            ),
            Operation::Create if !forbidden.is_empty() => self.refuse(format!(
                "node {node:?} is not allowed to set the following labels: {}",
                forbidden.join(", ")
            )),
            Operation::Update if !same(&["spec", "taints"]) => {
                self.refuse(format!("node {node:?} is not allowed to modify taints"))
            }
            Operation::Update if !same(&["metadata", "ownerReferences"]) => self.refuse(format!(
                "node {node:?} is not allowed to modify ownerReferences"
            )),
            Operation::Update if !forbidden.is_empty() => self.refuse(format!(
                "is not allowed to modify labels: {}",
                forbidden.join(", ")
            )),
            _ => Ok(()),
        }
    }

    fn lease(&self) -> Result<(), Status> {
        if self.asked.namespace != LEASE_NAMESPACE {
            return self.refuse(format!(
                "can only access leases in the {LEASE_NAMESPACE:?} system namespace"
            ));
        }
        self.named_as_itself("can only access node lease with the same name as the requesting node")
    }

    fn named_as_itself(&self, why: &str) -> Result<(), Status> {
        let name = match (self.asked.operation, self.object) {
            (Operation::Create, Some(object)) => object.name(),
            _ => self.asked.name,
        };
        if name == self.node {
            return Ok(());
        }
        self.refuse(why)
    }

    fn signing_request(&self) -> Result<(), Status> {
        let (Operation::Create, Some(request)) = (self.asked.operation, self.object) else {
            return Ok(());
        };
        if !NODE_SIGNERS.contains(&request.str(&["spec", "signerName"])) {
            return Ok(());
        }
        let subject = match certificates::subject(request) {
            Ok(subject) => subject,
            Err(why) => return self.refuse(format!("unable to parse csr: {why}")),
        };
        let own = format!("system:node:{}", self.node);
        if subject.common_name == own {
            return Ok(());
        }
        self.refuse(format!("can only create a node CSR with CN={own}"))
    }
}

/// Whether a field is what it was.
fn same(new: &Object, old: &Object, path: &[&str]) -> bool {
    let field = |object: &'_ Object| object.get(path).cloned().unwrap_or_default();
    json::same(&field(new), &field(old))
}

fn chooses_network(new: &Object, old: &Object) -> bool {
    let one = |node: &'_ Object| node.str(&["spec", "podCIDR"]).to_owned();
    let all = |node: &'_ Object| node.list(&["spec", "podCIDRs"]).to_vec();
    one(new) != one(old) || all(new) != all(old)
}

/// The labels that differ and that a node may not set on itself, sorted.
fn forbidden_labels(new: &Object, old: &Object) -> Vec<String> {
    let changed: BTreeSet<&str> = new
        .labels()
        .filter(|(key, value)| old.label(key) != Some(value))
        .chain(
            old.labels()
                .filter(|(key, value)| new.label(key) != Some(value)),
        )
        .map(|(key, _)| key)
        .collect();
    changed
        .into_iter()
        .filter(|key| is_forbidden(key))
        .map(str::to_owned)
        .collect()
}

fn is_forbidden(key: &str) -> bool {
    let namespace = key.split_once('/').map_or("", |(namespace, _)| namespace);
    let within = |domain: &str| {
        namespace
            .strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if within(RESTRICTED_LABELS) {
        return true;
    }
    let ours = within("kubernetes.io") || within("k8s.io");
    let own = OWN_LABELS.contains(&key) || OWN_LABEL_NAMESPACES.iter().any(|one| within(one));
    ours && !own
}
