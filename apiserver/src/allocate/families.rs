//! Which families of addresses a Service has, where the client does not say; what this cluster has
//! no addresses for is refused.

use coracle_api::field::{ErrorList, FieldError, Path};
use coracle_api::kinds::service;
use coracle_api::kinds::service::view::Service;
use coracle_api::object::Object;
use serde_json::Value;

const POLICY: [&str; 2] = ["spec", "ipFamilyPolicy"];
const FAMILIES: [&str; 2] = ["spec", "ipFamilies"];
const ADDRESSES: [&str; 2] = ["spec", "clusterIPs"];
const SINGLE: &str = "SingleStack";
const PREFER: &str = "PreferDualStack";
const REQUIRE: &str = "RequireDualStack";

/// `configured` are the families of the cluster, the default one first.
pub fn settle(
    object: &mut Object,
    old: Option<&Object>,
    configured: &[&'static str],
) -> Result<(), ErrorList> {
    if object.str(&["spec", "type"]) == "ExternalName" || stays_as_preferred(object, old) {
        return Ok(());
    }
    // Its endpoints are made by hand and may be of any family, whatever this cluster has.
    let is_any = object.str(&["spec", "clusterIP"]) == "None"
        && object.string_map(&["spec", "selector"]).next().is_none();
    if object.str(&POLICY).is_empty() {
        let before = old.map_or("", |old| old.str(&POLICY));
        let policy = match before {
            "" if is_any => REQUIRE,
            "" => SINGLE,
            before => before,
        };
        object.set(&POLICY, policy.into());
    }
    refuse(service::address_errors(&Service::of(object)))?;
    let mut errors = old.map_or_else(ErrorList::new, |old| shrink(object, old));
    errors.extend(more_than_single(object));
    errors.extend(of_addresses(object, configured));
    refuse(errors)?;
    if !is_any {
        refuse(missing(object, configured))?;
    }
    let mut families = object.list(&FAMILIES).to_vec();
    if families.is_empty() {
        families.extend(configured.first().map(|family| Value::from(*family)));
    }
    let may_have_both = is_any || configured.len() == 2;
    if may_have_both && families.len() == 1 && object.str(&POLICY) != SINGLE {
        let is_v4 = families[0] == "IPv4";
        families.push(if is_v4 { "IPv6" } else { "IPv4" }.into());
    }
    object.set(&FAMILIES, families.into());
    Ok(())
}

fn refuse(errors: ErrorList) -> Result<(), ErrorList> {
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

/// True for a Service that took what it could get, and is left as it is.
pub fn stays_as_preferred(object: &Object, old: Option<&Object>) -> bool {
    let Some(old) = old else { return false };
    let policy = old.str(&POLICY);
    Service::of(object).needs_cluster_ip()
        && object.str(&["spec", "type"]) == old.str(&["spec", "type"])
        && object.str(&POLICY) == PREFER
        && matches!(policy, "" | PREFER)
        && object.list(&ADDRESSES) == old.list(&ADDRESSES)
        && object.list(&FAMILIES) == old.list(&FAMILIES)
}

/// A Service that goes back to one family loses the second; one that does not may not.
fn shrink(object: &mut Object, old: &Object) -> ErrorList {
    let mut errors = ErrorList::new();
    let is_single = object.str(&POLICY) == SINGLE;
    for (field, what) in [(ADDRESSES, "cluster IP"), (FAMILIES, "IP family")] {
        let (now, before) = (object.list(&field), old.list(&field));
        if !is_single {
            if !now.is_empty() && now.len() < before.len() {
                let detail = format!("must be 'SingleStack' to release the secondary {what}");
                errors.push(policy_error(object, detail));
            }
        } else if now == before && now.len() > 1 {
            let first = now[..1].to_vec();
            object.set(&field, first.into());
        }
    }
    errors
}

fn policy_error(object: &Object, detail: impl Into<String>) -> FieldError {
    let path = Path::root("spec").child("ipFamilyPolicy");
    FieldError::invalid(&path, object.str(&POLICY), detail)
}

fn more_than_single(object: &Object) -> ErrorList {
    if object.str(&POLICY) != SINGLE {
        return ErrorList::new();
    }
    let fields = [
        (ADDRESSES, "multiple cluster IPs"),
        (FAMILIES, "multiple IP families"),
    ];
    let more = fields
        .iter()
        .filter(|(field, _)| object.list(field).len() == 2);
    let errors = more.map(|(_, what)| {
        let detail =
            format!("must be 'RequireDualStack' or 'PreferDualStack' when {what} are specified");
        policy_error(object, detail)
    });
    errors.collect()
}

/// Addresses that were asked for say which families are.
fn of_addresses(object: &mut Object, configured: &[&'static str]) -> ErrorList {
    let mut errors = ErrorList::new();
    let addresses = object.list(&ADDRESSES).to_vec();
    let mut families = object.list(&FAMILIES).to_vec();
    for (index, address) in addresses.iter().enumerate() {
        let text = address.as_str().unwrap_or("");
        if text == "None" {
            break;
        }
        let family = if text.contains(':') { "IPv6" } else { "IPv4" };
        if index < families.len() {
            continue;
        }
        if configured.contains(&family) {
            families.push(family.into());
        } else {
            let path = Path::root("spec").child("clusterIPs").index(index);
            let detail = format!("{family} is not configured on this cluster");
            let value = Value::from(addresses.clone());
            errors.push(FieldError::invalid(&path, value, detail));
        }
    }
    if !families.is_empty() {
        object.set(&FAMILIES, families.into());
    }
    errors
}

/// Says which families a Service asks for that this cluster does not have.
fn missing(object: &Object, configured: &[&'static str]) -> ErrorList {
    let mut errors = ErrorList::new();
    if object.str(&POLICY) == REQUIRE && configured.len() < 2 {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(policy_error(object, detail));
    }
    for (index, asked) in object.list(&FAMILIES).iter().enumerate() {
        if !configured.iter().any(|family| asked == family) {
            let path = Path::root("spec").child("ipFamilies").index(index);
            let detail = "not configured on this cluster";
            errors.push(FieldError::invalid(&path, asked.clone(), detail));
        }
    }
    errors
}
