//! Hints of a Service's traffic distribution: each ready endpoint is for its own zone, and where
//! asked for its own node. Pure.

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointHints, EndpointSlice, ForNode, ForZone};

use super::plan::Changes;
use super::topology::is_ready;
use crate::endpoint_slices::endpoints_of;
use crate::services::Service;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distribution {
    Zone,
    ZoneAndNode,
}

impl Distribution {
    /// None when the Service asks for none that is known.
    pub(super) fn of(service: &Service) -> Option<Self> {
        match service.spec.traffic_distribution.as_deref()? {
            "PreferClose" | "PreferSameZone" => Some(Self::Zone),
            "PreferSameNode" => Some(Self::ZoneAndNode),
            _ => None,
        }
    }

    /// Slices in which a hint is missing or wrong are written with the others.
    pub(super) fn set_hints(self, changes: &mut Changes) {
        let unchanged = std::mem::take(&mut changes.unchanged);
        for slice in unchanged {
            if self.is_right(&slice) {
                changes.unchanged.push(slice);
            } else {
                changes.update.push(slice);
            }
        }
        for slice in changes.create.iter_mut().chain(&mut changes.update) {
            for endpoint in slice.endpoints.iter_mut().flatten() {
                if is_ready(endpoint) {
                    endpoint.hints = self.hints(endpoint);
                }
            }
        }
    }

    fn is_right(self, slice: &EndpointSlice) -> bool {
        let mut ready = endpoints_of(slice)
            .iter()
            .filter(|endpoint| is_ready(endpoint));
        ready.all(|endpoint| {
            let wanted = self.hints(endpoint).unwrap_or_default();
            let found = endpoint.hints.clone().unwrap_or_default();
            found.for_zones.unwrap_or_default() == wanted.for_zones.unwrap_or_default()
                && found.for_nodes.unwrap_or_default() == wanted.for_nodes.unwrap_or_default()
        })
    }

    fn hints(self, endpoint: &Endpoint) -> Option<EndpointHints> {
        let zone = endpoint.zone.clone();
        let node = endpoint.node_name.clone();
        let node = node.filter(|_| self == Self::ZoneAndNode);
        let hints = EndpointHints {
            for_zones: zone.map(|name| vec![ForZone { name }]),
            for_nodes: node.map(|name| vec![ForNode { name }]),
        };
        (hints != EndpointHints::default()).then_some(hints)
    }
}
