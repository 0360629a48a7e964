//! How a change of size in the middle of a rollout is shared out among the sets. Pure.
//!
//! Each set gets its part by its own size, so that the rollout is as far along after the change
//! as before, and a bad new template does not spread faster.

use std::cmp::Reverse;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

use super::sets::{Sets, size};
use super::{revision, spec, template};

/// Gives every active set its part of the deployment's size.
pub(super) fn scale(deployment: &Deployment, sets: &mut Sets) {
    let replicas = spec::replicas(deployment);
    let allowed = if replicas > 0 {
        replicas + spec::max_surge(deployment)
    } else {
        0
    };
    let mut order = sets.active();
    let to_add = allowed
        - order
            .iter()
            .map(|index| size(sets.get(*index)))
            .sum::<i32>();
    // Growth favours the newer of two equal sets, shrinking the older.
    order.sort_by(|a, b| {
        let (a, b) = (sets.get(*a), sets.get(*b));
        let ages = template::by_age(a, b);
        let ages = if to_add > 0 { ages.reverse() } else { ages };
        Reverse(size(a)).cmp(&Reverse(size(b))).then(ages)
    });
    let mut added = 0;
    let mut sizes = Vec::with_capacity(order.len());
    for index in &order {
        let set = sets.get(*index);
        let part = part(deployment, set, to_add, added);
        added += part;
        sizes.push(size(set) + part);
    }
    // What rounding left over goes to the largest.
    if let Some(first) = sizes.first_mut()
        && to_add != 0
    {
        *first = (*first + to_add - added).max(0);
    }
    for (index, new_size) in order.into_iter().zip(sizes) {
        sets.resize(deployment, index, new_size);
    }
}

/// The part of one set in `to_add`, of which `added` are given out already.
fn part(deployment: &Deployment, set: &ReplicaSet, to_add: i32, added: i32) -> i32 {
    if size(set) == 0 || to_add == 0 || to_add == added {
        return 0;
    }
    let (fraction, left) = (fraction(deployment, set), to_add - added);
    if to_add > 0 {
        fraction.min(left)
    } else {
        fraction.max(left)
    }
}

fn fraction(deployment: &Deployment, set: &ReplicaSet) -> i32 {
    let replicas = spec::replicas(deployment);
    if replicas == 0 {
        return -size(set);
    }
    let max = f64::from(replicas + spec::max_surge(deployment));
    let noted = revision::noted_size(set, revision::MAX_REPLICAS).filter(|size| *size > 0);
    // Without the note the deployment's present size has to do.
    let status = deployment.status.as_ref();
    let present = || {
        status
            .and_then(|status| status.replicas)
            .filter(|size| *size > 0)
    };
    let Some(before) = noted.or_else(present) else {
        return 0;
    };
    let new_size = f64::from(size(set)) * max / f64::from(before);
    new_size.round() as i32 - size(set)
}
