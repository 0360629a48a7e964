//! Accounts annotated `kubernetes.io/enforce-mountable-secrets`: their pods use no other secrets
//! than those that the account lists. Pure.

use coracle_api::json;
use coracle_api::kinds::service_account::MOUNTABLE_SECRETS;
use coracle_api::object::Object;
use serde_json::Value;

/// Says what is not allowed.
pub type Check = fn(&Object, &Object) -> Result<(), String>;

/// All of a new pod.
pub fn check(account: &Object, pod: &Object) -> Result<(), String> {
    if !is_enforced(account) {
        return Ok(());
    }
    let mountable = names(account.list(&["secrets"]));
    let owner = account.name();
    for volume in pod.list(&["spec", "volumes"]) {
        if let Some(secret) = json::some(volume, "secret") {
            let name = json::text(secret, "secretName");
            if !mountable.contains(&name) {
                return Err(format!(
                    "volume with secret.secretName=\"{name}\" is not allowed because service \
                     account {owner} does not reference that secret"
                ));
            }
        }
    }
    for (list, what) in [
        ("initContainers", "init container"),
        ("containers", "container"),
    ] {
        environment(pod.list(&["spec", list]), what, &mountable, owner)?;
    }
    let pulls = names(account.list(&["imagePullSecrets"]));
    for (place, name) in names(pod.list(&["spec", "imagePullSecrets"]))
        .iter()
        .enumerate()
    {
        if !pulls.contains(name) {
            return Err(format!(
                "imagePullSecrets[{place}].name=\"{name}\" is not allowed because service account \
                 {owner} does not reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}

/// What is added to a pod that runs.
pub fn check_ephemeral(account: &Object, pod: &Object) -> Result<(), String> {
    if !is_enforced(account) {
        return Ok(());
    }
    let mountable = names(account.list(&["secrets"]));
    let containers = pod.list(&["spec", "ephemeralContainers"]);
    environment(
        containers,
        "ephemeral container",
        &mountable,
        account.name(),
    )
}

/// As Go's `strconv.ParseBool` reads it.
fn is_enforced(account: &Object) -> bool {
    let text = account.annotation(MOUNTABLE_SECRETS);
    matches!(text, Some("1" | "t" | "T" | "true" | "TRUE" | "True"))
}

fn names(references: &[Value]) -> Vec<&str> {
    let references = references.iter();
    references
        .map(|reference| json::text(reference, "name"))
        .collect()
}

fn environment(
    containers: &[Value],
    what: &str,
    mountable: &[&str],
    owner: &str,
) -> Result<(), String> {
    for container in containers {
        let own = json::text(container, "name");
        let refuse = |how: String, secret: &str| {
            Err(format!(
                "{what} {own} with {how} referencing secret.secretName=\"{secret}\" is not allowed \
                 because service account {owner} does not reference that secret"
            ))
        };
        for variable in json::list(container, "env") {
            let from = json::get(variable, "valueFrom");
            if let Some(secret) = json::some(from, "secretKeyRef") {
                let secret = json::text(secret, "name");
                if !mountable.contains(&secret) {
                    return refuse(format!("envVar {}", json::text(variable, "name")), secret);
                }
            }
        }
        for source in json::list(container, "envFrom") {
            if let Some(secret) = json::some(source, "secretRef") {
                let secret = json::text(secret, "name");
                if !mountable.contains(&secret) {
                    return refuse("envFrom".to_owned(), secret);
                }
            }
        }
    }
    Ok(())
}
