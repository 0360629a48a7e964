//! What is wrong with a node.

use crate::field::{ErrorList, FieldError, Path};
use crate::meta_validate::{invalid_each, label_name};
use crate::object::Object;
use crate::pod_spec::validate::{quantities, taint_effect};
use crate::resource::Part;
use crate::{json, names};
use serde_json::Value;

pub fn node(node: &Object) -> ErrorList {
    // Upstream names the taints under `metadata`; clients see that path.
    let mut errors = taints(
        node.list(&["spec", "taints"]),
        &Path::root("metadata").child("taints"),
    );
    errors.extend(resources(node));
    errors.extend(pod_cidrs(node));
    errors
}

pub fn update(new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
    const CIDR_DETAIL: &str = "node updates may not change podCIDR except from \"\" to valid";
    const PROVIDER_DETAIL: &str =
        "node updates may not change providerID except from \"\" to valid";
    let spec = Path::root("spec");
    let mut errors = ErrorList::new();
    if part == Part::Status {
        errors.extend(resources(new));
    }
    errors.extend(addresses(new));
    let (cidrs, before) = (
        new.list(&["spec", "podCIDRs"]),
        old.list(&["spec", "podCIDRs"]),
    );
    if !before.is_empty() && cidrs != before {
        errors.push(FieldError::forbidden(&spec.child("podCIDRs"), CIDR_DETAIL));
    }
    let provider = old.str(&["spec", "providerID"]);
    if !provider.is_empty() && provider != new.str(&["spec", "providerID"]) {
        errors.push(FieldError::forbidden(
            &spec.child("providerID"),
            PROVIDER_DETAIL,
        ));
    }
    if new.str(&["spec", "externalID"]) != old.str(&["spec", "externalID"]) {
        errors.push(FieldError::forbidden(
            &spec.child("externalID"),
            "may not be updated",
        ));
    }
    // Upstream looks at the taints twice, and says so twice.
    if part != Part::Status {
        let path = Path::root("metadata").child("taints");
        errors.extend(taints(new.list(&["spec", "taints"]), &path));
    }
    errors
}

fn resources(node: &Object) -> ErrorList {
    let mut errors = ErrorList::new();
    for list in ["capacity", "allocatable"] {
        let resources = node.get(&["status", list]).unwrap_or(&Value::Null);
        let path = Path::root("status").child(list);
        errors.extend(quantities(resources, |name| path.child(name)));
    }
    errors
}

fn addresses(node: &Object) -> ErrorList {
    let all = node.list(&["status", "addresses"]);
    let path = Path::root("status").child("addresses");
    (0..all.len())
        .filter(|index| all[..*index].contains(&all[*index]))
        .map(|index| {
            let error = FieldError::duplicate(&path.index(index), all[index].clone());
            error.as_go("io.k8s.api.core.v1.NodeAddress")
        })
        .collect()
}

fn pod_cidrs(node: &Object) -> ErrorList {
    let cidrs = node.list(&["spec", "podCIDRs"]);
    let path = Path::root("spec").child("podCIDRs");
    let mut errors = ErrorList::new();
    for (index, cidr) in cidrs.iter().enumerate() {
        let cidr = cidr.as_str().unwrap_or("");
        invalid_each(&mut errors, &path.index(index), cidr, names::cidr(cidr));
    }
    let is_v6 = |cidr: &Value| cidr.as_str().is_some_and(|cidr| cidr.contains(':'));
    let pair = cidrs.len() == 2 && is_v6(&cidrs[0]) != is_v6(&cidrs[1]);
    if cidrs.len() > 1 && !pair {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(&path, Value::from(cidrs), detail));
    }
    errors
}

fn taints(taints: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let identity = |taint: &Value| {
        (
            json::text(taint, "key").to_owned(),
            json::text(taint, "effect").to_owned(),
        )
    };
    for (index, taint) in taints.iter().enumerate() {
        let path = path.index(index);
        errors.extend(label_name(json::text(taint, "key"), &path.child("key")));
        let value = json::text(taint, "value");
        let details = names::label_value(value);
        if !details.is_empty() {
            errors.push(FieldError::invalid(
                &path.child("value"),
                value,
                details.join(";"),
            ));
        }
        errors.extend(taint_effect(
            json::text(taint, "effect"),
            false,
            &path.child("effect"),
        ));
        if taints[..index]
            .iter()
            .any(|other| identity(other) == identity(taint))
        {
            let mut error = FieldError::duplicate(&path, taint.clone());
            error.detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(error.as_go("io.k8s.api.core.v1.Taint"));
        }
    }
    errors
}
