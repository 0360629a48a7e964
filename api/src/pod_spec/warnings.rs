//! What a pod spec may hold, and better would not.

use crate::field::Path;
use crate::json;
use serde_json::Value;
use std::collections::BTreeSet;

/// Texts for the `Warning` header. `path` is that of the spec.
pub fn of(spec: &Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    let deprecated_keys = ["beta.kubernetes.io/arch", "beta.kubernetes.io/os"];
    for (key, replacement) in deprecated_keys
        .iter()
        .zip(["kubernetes.io/arch", "kubernetes.io/os"])
    {
        if json::get(spec, "nodeSelector").get(key).is_some() {
            let path = path.child("nodeSelector").key(key);
            warnings.push(format!(
                "{path}: deprecated since v1.14; use \"{replacement}\" instead"
            ));
        }
    }
    for list in ["initContainers", "containers"] {
        for (index, container) in json::list(spec, list).iter().enumerate() {
            let path = path.child(list).index(index);
            warnings.extend(duplicate_env(container, &path));
        }
    }
    if json::int(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        warnings.push(format!(
            "{}: must be >= 0; negative values are invalid and will be treated as 1",
            path.child("terminationGracePeriodSeconds")
        ));
    }
    warnings
}

fn duplicate_env(container: &Value, path: &Path) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut warnings = Vec::new();
    for (index, variable) in json::list(container, "env").iter().enumerate() {
        let name = json::text(variable, "name");
        if !seen.insert(name) {
            let path = path.child("env").index(index);
            warnings.push(format!(
                "{path}: hides previous definition of \"{name}\", which may be \
                                   dropped when using apply"
            ));
        }
    }
    warnings
}
