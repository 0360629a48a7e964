//! How many endpoints each zone should have by its part of the CPUs. Pure.

use std::collections::BTreeMap;

/// An endpoint may get a fifth above its share of the load, so this part of the endpoints is enough.
const ENOUGH: f64 = 1.0 / (1.0 + 0.2);

/// Endpoints by zone.
pub(super) type Zones = BTreeMap<String, i64>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    pub(super) maximum: i64,
    pub(super) desired: f64,
}

/// A share for each zone, or why no endpoint can be kept below its bound.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // Numbers of endpoints.
pub(super) fn shares(
    ratios: Option<&BTreeMap<String, f64>>,
    endpoints: usize,
) -> Result<BTreeMap<String, Share>, String> {
    let Some(ratios) = ratios else {
        return Err(
            "Insufficient Node information: allocatable CPU or zone not specified on one or more \
             nodes"
                .to_owned(),
        );
    };
    let zones = ratios.len();
    if zones > endpoints {
        let counts = format!("({endpoints} endpoints, {zones} zones)");
        return Err(format!("Insufficient number of endpoints {counts}"));
    }
    let least = |ratio: f64| (ratio * endpoints as f64 * ENOUGH).ceil() as i64;
    let least_of_all: i64 = ratios.values().map(|ratio| least(*ratio)).sum();
    let spare = endpoints as i64 - least_of_all;
    if spare < 0 {
        return Err(format!(
            "Unable to allocate minimum required endpoints to each zone without exceeding \
             overload threshold ({endpoints} endpoints, {zones} zones)"
        ));
    }
    let shares = ratios.iter().map(|(zone, ratio)| {
        let minimum = least(*ratio);
        let share = Share {
            maximum: minimum + spare,
            desired: (ratio * endpoints as f64).max(minimum as f64),
        };
        (zone.clone(), share)
    });
    Ok(shares.collect())
}

/// How many endpoints zones give away, and how many others get, one by one from the richest to the
/// poorest, until what is left is less than half an endpoint.
#[allow(clippy::cast_precision_loss)] // Numbers of endpoints.
pub(super) fn transfers(shares: &BTreeMap<String, Share>, given: &Zones) -> (Zones, Zones) {
    let (mut surplus, mut lack) = (BTreeMap::new(), BTreeMap::new());
    for (zone, share) in shares {
        let excess = given.get(zone).copied().unwrap_or(0) as f64 - share.desired;
        if excess > 0.0 {
            surplus.insert(zone.clone(), excess);
        } else if excess < 0.0 {
            lack.insert(zone.clone(), -excess);
        }
    }
    let (mut giving, mut receiving) = (Zones::new(), Zones::new());
    while let (Some(giver), Some(receiver)) = (greatest(&surplus), greatest(&lack)) {
        let (left, wanted) = (surplus[&giver], lack[&receiver]);
        if left < 0.5 || wanted < 0.5 || (left < 1.0 && wanted < 1.0) {
            break;
        }
        surplus.insert(giver.clone(), left - 1.0);
        lack.insert(receiver.clone(), wanted - 1.0);
        *giving.entry(giver).or_default() += 1;
        *receiving.entry(receiver).or_default() += 1;
    }
    (giving, receiving)
}

fn greatest(zones: &BTreeMap<String, f64>) -> Option<String> {
    let mut found: Option<(&String, f64)> = None;
    for (zone, number) in zones {
        if *number > found.map_or(0.0, |(_, most)| most) {
            found = Some((zone, *number));
        }
    }
    found.map(|(zone, _)| zone.clone())
}

/// Takes one from a zone, if it has any left; a zone with none is not there any more.
pub(super) fn take_one(zones: &mut Zones, zone: &str) -> bool {
    let Some(count) = zones.get_mut(zone) else {
        return false;
    };
    *count -= 1;
    if *count == 0 {
        zones.remove(zone);
    }
    true
}

/// Whether some zone has fewer endpoints than its part of the CPUs calls for.
#[allow(clippy::cast_precision_loss)] // Numbers of endpoints.
pub(super) fn is_overloaded(given: &Zones, ratios: Option<&BTreeMap<String, f64>>) -> bool {
    if given.is_empty() {
        return false;
    }
    let Some(ratios) = ratios else {
        return true;
    };
    let total: i64 = given.values().sum();
    ratios.iter().any(|(zone, ratio)| match given.get(zone) {
        None => true,
        Some(count) => (*count as f64) < (total as f64 * ratio * ENOUGH).ceil(),
    })
}
