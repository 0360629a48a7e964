//! What claims of volumes use: themselves and their storage, in all and of their storage class.

use super::Scope;
use crate::amounts::Amounts;
use crate::kinds::persistent_volume_claim::class;
use crate::object::Object;
use crate::quantity::Quantity;
use serde_json::Value;

const CLAIMS: &str = "persistentvolumeclaims";
const COUNT: &str = "count/persistentvolumeclaims";
const STORAGE: &str = "requests.storage";
/// Between the name of a storage class and what is used of it.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
const ATTRIBUTES_CLASS: &str = "VolumeAttributesClass";

pub fn counts(name: &str) -> bool {
    let is_of_class = |(_, what): (&str, &str)| matches!(what, CLAIMS | STORAGE);
    matches!(name, CLAIMS | COUNT | STORAGE) || name.rsplit_once(OF_CLASS).is_some_and(is_of_class)
}

pub fn usage(claim: &Object) -> Amounts {
    let class = class(claim);
    let of_class = |what: &str| (!class.is_empty()).then(|| format!("{class}{OF_CLASS}{what}"));
    let mut usage = Amounts::default();
    usage.set_count(CLAIMS, 1);
    usage.set_count(COUNT, 1);
    if let Some(name) = of_class(CLAIMS) {
        usage.set_count(name, 1);
    }
    if let Some(storage) = storage(claim) {
        usage.set(STORAGE, storage);
        if let Some(name) = of_class(STORAGE) {
            usage.set(name, storage);
        }
    }
    usage
}

/// What is asked for, or what was already allocated where that is more. Whole bytes.
fn storage(claim: &Object) -> Option<Quantity> {
    let at = |path: &[&str]| Quantity::from_value(claim.get(path)?).ok().map(whole);
    let asked = at(&["spec", "resources", "requests", "storage"])?;
    let allocated = at(&["status", "allocatedResources", "storage"]);
    let more = allocated.filter(|allocated| *allocated > asked);
    Some(more.unwrap_or(asked))
}

fn whole(quantity: Quantity) -> Quantity {
    if quantity.is_whole() {
        quantity
    } else {
        Quantity::from_units(quantity.value(), quantity.format())
    }
}

pub fn is_in(scope: &Scope, claim: &Object) -> bool {
    if scope.name != ATTRIBUTES_CLASS {
        return false;
    }
    let classes = attributes_classes(claim);
    if classes.is_empty() {
        return scope.selects(None);
    }
    classes.iter().any(|class| scope.selects(Some(class)))
}

/// The class that is asked for, the one in force, and the one that the volume is on its way to.
pub fn attributes_classes(claim: &Object) -> Vec<&str> {
    const PLACES: [&[&str]; 3] = [
        &["spec", "volumeAttributesClassName"],
        &["status", "currentVolumeAttributesClassName"],
        &[
            "status",
            "modifyVolumeStatus",
            "targetVolumeAttributesClassName",
        ],
    ];
    let names = PLACES.iter().filter_map(|path| claim.get(path)?.as_str());
    names.filter(|name| !name.is_empty()).collect()
}

/// Whether a change of a claim's status may change what it uses.
pub fn status_matters(new: &Object, old: &Object) -> bool {
    let allocated = |claim: &Object| {
        let list = claim.get(&["status", "allocatedResources"]);
        Amounts::of(list.unwrap_or(&Value::Null))
    };
    let sorted = |claim| {
        let mut classes = attributes_classes(claim);
        classes.sort_unstable();
        classes.dedup();
        classes
    };
    allocated(new) != allocated(old) || sorted(new) != sorted(old)
}
