//! CSI drivers: what the cluster has to know of a storage driver.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, names, print};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub const ROW: Resource = row::cluster(
    "storage.k8s.io",
    "v1",
    Names {
        kind: "CSIDriver",
        plural: "csidrivers",
        singular: "csidriver",
        schema: "io.k8s.api.storage.v1.CSIDriver",
    },
    &CsiDriver,
);

const COLUMNS: &[Column] = &[
    row::NAME,
    column(
        "AttachRequired",
        "boolean",
        "Whether a volume is attached to the node before it is mounted.",
    ),
    column(
        "PodInfoOnMount",
        "boolean",
        "Whether the driver is told of the pod.",
    ),
    column(
        "StorageCapacity",
        "boolean",
        "Whether the scheduler looks at the room that the driver reports.",
    ),
    column(
        "TokenRequests",
        "string",
        "The audiences of the tokens that the driver gets.",
    ),
    column(
        "RequiresRepublish",
        "boolean",
        "Whether the driver is called again and again for a mounted volume.",
    ),
    column(
        "Modes",
        "string",
        "Whether volumes are persistent, or live with the pod.",
    ),
    row::AGE,
];

/// Tokens live at least ten minutes, and at most 2^32 seconds.
const TOKEN_SECONDS: std::ops::RangeInclusive<i64> = 600..=1 << 32;
const UPDATE_PERIOD_SECONDS_MIN: i64 = 10;

#[derive(Debug)]
struct CsiDriver;

impl Rules for CsiDriver {
    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "spec", json!({}));
        let Some(spec) = object.get_mut(&["spec"]) else {
            return;
        };
        json::default(spec, "attachRequired", true);
        json::default(spec, "podInfoOnMount", false);
        json::default(spec, "storageCapacity", false);
        json::default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        if json::list(spec, "volumeLifecycleModes").is_empty() {
            spec["volumeLifecycleModes"] = json!(["Persistent"]);
        }
        json::default(spec, "requiresRepublish", false);
        json::default(spec, "seLinuxMount", false);
    }

    /// A field of a gate that is shut.
    fn prepare_create(&self, object: &mut Object) {
        object.remove(&["spec", "preventPodSchedulingIfMissing"]);
    }

    fn prepare_update(&self, new: &mut Object, _old: &Object, _part: Part<'_>) {
        self.prepare_create(new);
    }

    fn counts_generations(&self) -> bool {
        true
    }

    /// Only changes are counted, and not the create.
    fn first_generation(&self) -> i64 {
        0
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        spec(object)
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let mut errors = spec(new);
        // Upstream calls the field so in its errors.
        for (field, shown) in [
            ("attachRequired", "attachedRequired"),
            ("volumeLifecycleModes", "volumeLifecycleModes"),
        ] {
            let [new, old] = [new, old].map(|o| o.get(&["spec", field]).unwrap_or(&Value::Null));
            if !json::same(new, old) {
                let path = Path::root("spec").child(shown);
                errors.push(FieldError::invalid(&path, new.clone(), names::IMMUTABLE));
            }
        }
        errors
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let flag = |name: &str| object.bool(&["spec", name]).into();
        let modes: Vec<&str> = object
            .list(&["spec", "volumeLifecycleModes"])
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let audiences: Vec<&str> = object
            .list(&["spec", "tokenRequests"])
            .iter()
            .map(|token| json::text(token, "audience"))
            .collect();
        let tokens = if object.get(&["spec", "tokenRequests"]).is_some() {
            audiences.join(",")
        } else {
            "<unset>".to_owned()
        };
        vec![
            object.name().into(),
            flag("attachRequired"),
            flag("podInfoOnMount"),
            flag("storageCapacity"),
            tokens.into(),
            flag("requiresRepublish"),
            match modes.as_slice() {
                [] => "<none>".into(),
                modes => modes.join(",").into(),
            },
            print::age_of(object, now),
        ]
    }

    fn warnings_on_update(&self, new: &Object, old: &Object) -> Vec<String> {
        let path = ["spec", "tokenRequests"];
        if new.list(&path) == old.list(&path) {
            return Vec::new();
        }
        self.warnings(new)
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        let in_secrets = object.get(&["spec", "serviceAccountTokenInSecrets"]);
        if object.list(&["spec", "tokenRequests"]).is_empty() || in_secrets.is_some() {
            return Vec::new();
        }
        vec![
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to \
             true to prevent possible logging of tokens in volume attributes"
                .to_owned(),
        ]
    }
}

fn spec(object: &Object) -> ErrorList {
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let path = Path::root("spec");
    let mut errors = ErrorList::new();
    checks::one_of(
        &mut errors,
        json::text(spec, "fsGroupPolicy"),
        &["File", "None", "ReadWriteOnceWithFSType"],
        &path.child("fsGroupPolicy"),
    );
    let tokens = json::list(spec, "tokenRequests");
    errors.extend(token_requests(tokens, &path.child("tokenRequests")));
    for mode in json::list(spec, "volumeLifecycleModes") {
        checks::one_of(
            &mut errors,
            mode.as_str().unwrap_or(""),
            &["Persistent", "Ephemeral"],
            &path.child("volumeLifecycleModes"),
        );
    }
    if let Some(period) = json::int(spec, "nodeAllocatableUpdatePeriodSeconds")
        && period < UPDATE_PERIOD_SECONDS_MIN
    {
        let path = path.child("nodeAllocatableUpdatePeriodSeconds");
        let detail = "must be greater than or equal to 10 seconds";
        errors.push(FieldError::invalid(&path, period, detail));
    }
    if let Some(flag) = json::some(spec, "serviceAccountTokenInSecrets")
        && tokens.is_empty()
    {
        let path = path.child("serviceAccountTokenInSecrets");
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.push(FieldError::invalid(&path, flag.clone(), detail));
    }
    errors
}

fn token_requests(tokens: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut audiences = BTreeSet::new();
    for (index, token) in tokens.iter().enumerate() {
        let path = path.index(index);
        let audience = json::text(token, "audience");
        if !audiences.insert(audience) {
            errors.push(FieldError::duplicate(&path.child("audience"), audience));
            continue;
        }
        let Some(seconds) = json::int(token, "expirationSeconds") else {
            continue;
        };
        let detail = if seconds < *TOKEN_SECONDS.start() {
            "may not specify a duration less than 10 minutes"
        } else if seconds > *TOKEN_SECONDS.end() {
            "may not specify a duration larger than 2^32 seconds"
        } else {
            continue;
        };
        errors.push(FieldError::invalid(
            &path.child("expirationSeconds"),
            seconds,
            detail,
        ));
    }
    errors
}

#[cfg(test)]
mod tests;
