//! What a slice says beside its endpoints: labels, owner, name. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::discovery::v1::{EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::MANAGER;
use crate::endpoint_slices::{MANAGED_BY, SERVICE_NAME, endpoints_of, name_prefix};
use crate::ownership::controller_reference;
use crate::services::{Family, HEADLESS, Service};

type Labels = BTreeMap<String, String>;

/// An empty slice; the server gives it a name.
pub(super) fn new(service: &Service, family: Family, ports: Vec<EndpointPort>) -> EndpointSlice {
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(name_prefix(service.name())),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels(service)),
            owner_references: Some(vec![controller_reference(service)]),
            ..ObjectMeta::default()
        },
        address_type: family.as_str().to_owned(),
        endpoints: Some(Vec::new()),
        ports: Some(ports),
    }
}

/// Those of the Service, with what says whose the slice is.
pub(super) fn labels(service: &Service) -> Labels {
    let mut labels = own(service.metadata.labels.as_ref());
    if !service.has_address() {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(SERVICE_NAME.to_owned(), service.name().to_owned());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    labels
}

/// Whether the labels that come from the Service are other ones. The reserved ones do not count:
/// they follow with the next write.
pub(super) fn has_other_labels(slice: &EndpointSlice, service: &Service) -> bool {
    own(slice.metadata.labels.as_ref()) != own(service.metadata.labels.as_ref())
}

/// The labels that are not reserved.
fn own(labels: Option<&Labels>) -> Labels {
    let mut labels = labels.cloned().unwrap_or_default();
    labels.retain(|name, _| ![SERVICE_NAME, MANAGED_BY, HEADLESS].contains(&name.as_str()));
    labels
}

pub(super) fn is_owned_by(slice: &EndpointSlice, service: &Service) -> bool {
    let owners = slice.metadata.owner_references.iter().flatten();
    owners
        .filter(|owner| owner.kind == "Service" && owner.api_version == "v1")
        .any(|owner| owner.uid == service.uid())
}

/// Whether a slice is this placeholder already, but for its name and owner.
pub(super) fn is_same_placeholder(slice: &EndpointSlice, placeholder: &EndpointSlice) -> bool {
    slice.address_type == placeholder.address_type
        && slice.metadata.namespace == placeholder.metadata.namespace
        && slice.metadata.labels == placeholder.metadata.labels
        && slice.ports.as_ref().is_none_or(Vec::is_empty)
        && endpoints_of(slice).is_empty()
}
