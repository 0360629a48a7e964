//! The two views of an event: the same fields under other names.

use crate::json;
use crate::object::Object;

const CORE_VERSION: &str = "v1";
const NEW_VERSION: &str = "events.k8s.io/v1";

/// Name in the core view, name in the view of events.k8s.io.
const NAMES: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Times that are shown in the view of events.k8s.io, though they be unset.
pub const TIMES: [&str; 3] = [
    "eventTime",
    "deprecatedFirstTimestamp",
    "deprecatedLastTimestamp",
];
/// Names in the core view, where they are shown though they be empty; in the other they are not.
const TEXTS: [(&str, &str); 2] = [
    ("reportingComponent", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

/// A copy in the stored form, from either form.
pub fn stored(object: &Object) -> Object {
    let mut object = object.clone();
    to_stored(&mut object);
    object
}

pub fn to_stored(object: &mut Object) {
    if object.api_version() == NEW_VERSION {
        rename(
            object,
            NAMES.iter().map(|(core, new)| (*new, *core)),
            CORE_VERSION,
        );
        for (core, _) in TEXTS {
            json::default_in(object.root_mut(), core, "");
        }
    }
}

pub fn from_stored(object: &mut Object) {
    if object.api_version() == CORE_VERSION {
        rename(object, NAMES.iter().copied(), NEW_VERSION);
        for (_, new) in TEXTS {
            if object.str(&[new]).is_empty() {
                object.remove(&[new]);
            }
        }
    }
}

fn rename<'a>(object: &mut Object, names: impl Iterator<Item = (&'a str, &'a str)>, to: &str) {
    let root = object.root_mut();
    for (old, new) in names {
        if let Some(value) = root.remove(old) {
            root.insert(new.to_owned(), value);
        }
    }
    root.insert("apiVersion".to_owned(), to.into());
}
