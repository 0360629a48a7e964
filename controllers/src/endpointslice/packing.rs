//! Puts endpoints with the same ports into slices, with as few writes as may be. Pure.
//!
//! What is there stays where it is. Slices that must be written anyway are filled first, the
//! fullest first; what is left goes into one slice that has room for all of it, or into new ones.

use std::cmp::Reverse;

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

use super::desired::Group;
use super::plan::Changes;
use super::slice;
use crate::endpoint_slices::{EndpointKey, endpoints_of, says_the_same};
use crate::services::{Family, Service};

/// As many as upstream's default: a change of one endpoint sends its whole slice to every node.
pub(super) const ENDPOINTS_PER_SLICE_MAX: usize = 100;

pub(super) fn pack(
    service: &Service,
    family: Family,
    existing: Vec<EndpointSlice>,
    mut wanted: Group,
    changes: &mut Changes,
) {
    let (mut update, mut unchanged) = (Vec::new(), Vec::new());
    for one in existing {
        match keep_wanted(service, one, &mut wanted) {
            Kept::Unchanged(one) => unchanged.push(one),
            Kept::Changed(one) => update.push(one),
            Kept::Nothing(one) => changes.delete.push(one),
        }
    }
    update.sort_by_key(|slice| Reverse(endpoints_of(slice).len()));
    for slice in &mut update {
        fill(slice, &mut wanted);
    }
    while !wanted.endpoints.is_empty() {
        match slice_with_room(&unchanged, wanted.endpoints.len()) {
            Some(index) => {
                let mut slice = unchanged.remove(index);
                fill(&mut slice, &mut wanted);
                update.push(slice);
            }
            None => {
                let mut slice = slice::new(service, family, wanted.ports.clone());
                fill(&mut slice, &mut wanted);
                changes.create.push(slice);
            }
        }
    }
    changes.update.append(&mut update);
    changes.unchanged.append(&mut unchanged);
}

enum Kept {
    Unchanged(EndpointSlice),
    Changed(EndpointSlice),
    Nothing(EndpointSlice),
}

/// Leaves in a slice what is wanted, as it is wanted, and takes that off what is to be placed.
fn keep_wanted(service: &Service, mut slice: EndpointSlice, wanted: &mut Group) -> Kept {
    let mut endpoints = Vec::new();
    let mut is_other = false;
    for endpoint in endpoints_of(&slice) {
        if let Some(found) = wanted.endpoints.remove(&EndpointKey::of(endpoint)) {
            is_other |= !says_the_same(&found, endpoint);
            endpoints.push(found);
        }
    }
    is_other |= endpoints.len() != endpoints_of(&slice).len();
    if is_other && endpoints.is_empty() {
        return Kept::Nothing(slice);
    }
    if !is_other && !slice::has_other_labels(&slice, service) {
        return Kept::Unchanged(slice);
    }
    if is_other {
        slice.endpoints = Some(endpoints);
    }
    slice.metadata.labels = Some(slice::labels(service));
    Kept::Changed(slice)
}

fn fill(slice: &mut EndpointSlice, wanted: &mut Group) {
    let endpoints: &mut Vec<Endpoint> = slice.endpoints.get_or_insert_default();
    while endpoints.len() < ENDPOINTS_PER_SLICE_MAX
        && let Some((_, endpoint)) = wanted.endpoints.pop_first()
    {
        endpoints.push(endpoint);
    }
}

/// The slice that is fullest with so many more, if they fit into one.
fn slice_with_room(slices: &[EndpointSlice], count: usize) -> Option<usize> {
    if count >= ENDPOINTS_PER_SLICE_MAX {
        return None;
    }
    let room = |slice: &EndpointSlice| {
        ENDPOINTS_PER_SLICE_MAX.checked_sub(endpoints_of(slice).len() + count)
    };
    let fitting = slices.iter().enumerate();
    let fitting = fitting.filter_map(|(index, slice)| Some((room(slice)?, index)));
    fitting.min().map(|(_, index)| index)
}
