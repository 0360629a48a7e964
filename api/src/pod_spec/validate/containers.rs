//! Containers: regular ones, init containers and ephemeral ones.

use super::{env, mounts, probes, resources, security};
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::meta_validate::invalid_each;
use crate::pod_spec::resources::is_sidecar;
use crate::{json, names};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What the containers of a spec refer to.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    pub spec: &'a Value,
    /// The well-formed volumes, by name.
    pub volumes: &'a Map<String, Value>,
    pub claims: &'a BTreeSet<String>,
}

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// Fields that an ephemeral container may not have.
const NOT_EPHEMERAL: [&str; 8] = [
    "ports",
    "resources",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "resizePolicy",
    "restartPolicy",
];

impl Scope<'_> {
    fn list(&self, name: &str) -> &[Value] {
        json::list(self.spec, name)
    }

    pub fn regular(&self, path: &Path) -> ErrorList {
        let containers = self.list("containers");
        if containers.is_empty() {
            return vec![FieldError::required(path, "")];
        }
        let mut errors = ErrorList::new();
        let mut seen = BTreeSet::new();
        for (index, container) in containers.iter().enumerate() {
            let path = path.index(index);
            errors.extend(self.any(container, &path));
            let name = json::text(container, "name");
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
            errors.extend(self.running(container, &path));
            errors.extend(restart_policy(container, &path));
        }
        errors.extend(port_conflicts(containers, path));
        errors
    }

    pub fn init(&self, path: &Path) -> ErrorList {
        let mut errors = ErrorList::new();
        let regular = self.list("containers").iter();
        let mut seen: BTreeSet<&str> = regular.map(|c| json::text(c, "name")).collect();
        for (index, container) in self.list("initContainers").iter().enumerate() {
            let at = path.index(index);
            errors.extend(self.any(container, &at));
            errors.extend(restart_policy(container, &at));
            let name = json::text(container, "name");
            if !seen.insert(name) && !name.is_empty() {
                errors.push(FieldError::duplicate(&at.child("name"), name));
            }
            errors.extend(port_conflicts(std::slice::from_ref(container), path));
            if is_sidecar(container) {
                errors.extend(self.running(container, &at));
                continue;
            }
            for field in [
                "lifecycle",
                "livenessProbe",
                "readinessProbe",
                "startupProbe",
            ] {
                if json::has(container, field) {
                    let detail = "may not be set for init containers without restartPolicy=Always";
                    errors.push(FieldError::forbidden(&at.child(field), detail));
                }
            }
        }
        errors
    }

    pub fn ephemeral(&self, path: &Path) -> ErrorList {
        let mut errors = ErrorList::new();
        let lists = ["containers", "initContainers"];
        let others = lists.iter().flat_map(|list| self.list(list));
        let others: BTreeSet<&str> = others.map(|c| json::text(c, "name")).collect();
        let mut seen = others.clone();
        for (index, container) in self.list("ephemeralContainers").iter().enumerate() {
            let path = path.index(index);
            errors.extend(self.any(container, &path));
            errors.extend(image_of_pod(container, &path));
            let name = json::text(container, "name");
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
            let target = json::text(container, "targetContainerName");
            if !target.is_empty() && !others.contains(target) {
                errors.push(FieldError::not_found(
                    &path.child("targetContainerName"),
                    target,
                ));
            }
            let mut forbid = |path: Path| {
                let detail = "cannot be set for an Ephemeral Container";
                errors.push(FieldError::forbidden(&path, detail));
            };
            for field in NOT_EPHEMERAL {
                // Lists and resources are empty when not given; the others are absent.
                let value = json::get(container, field);
                let given = match field {
                    "ports" | "resources" | "resizePolicy" => !json::is_empty(value),
                    _ => !value.is_null(),
                };
                if given {
                    forbid(path.child(field));
                }
            }
            for (index, mount) in json::list(container, "volumeMounts").iter().enumerate() {
                for field in ["subPath", "subPathExpr"] {
                    if !json::text(mount, field).is_empty() {
                        forbid(path.child("volumeMounts").index(index).child(field));
                    }
                }
            }
        }
        errors
    }

    /// What holds for every container.
    fn any(&self, container: &Value, path: &Path) -> ErrorList {
        let mut errors = ErrorList::new();
        match json::text(container, "name") {
            "" => errors.push(FieldError::required(&path.child("name"), "")),
            name => invalid_each(
                &mut errors,
                &path.child("name"),
                name,
                names::dns_label(name),
            ),
        }
        checks::required(&mut errors, container, "image", path);
        let policy = json::text(container, "terminationMessagePolicy");
        let policy_path = path.child("terminationMessagePolicy");
        let policies = &["File", "FallbackToLogsOnError"];
        checks::required_one_of(&mut errors, policy, policies, &policy_path);
        errors.extend(ports(container, &path.child("ports")));
        errors.extend(env::variables(container, &path.child("env")));
        errors.extend(env::sources(container, &path.child("envFrom")));
        errors.extend(mounts::volumes(
            container,
            self.volumes,
            &path.child("volumeMounts"),
        ));
        errors.extend(mounts::devices(
            container,
            self.volumes,
            &path.child("volumeDevices"),
        ));
        let policy = json::text(container, "imagePullPolicy");
        let policies = &["Always", "IfNotPresent", "Never"];
        checks::required_one_of(
            &mut errors,
            policy,
            policies,
            &path.child("imagePullPolicy"),
        );
        let asked = json::get(container, "resources");
        errors.extend(resources::of_container(
            asked,
            self.claims,
            &path.child("resources"),
        ));
        errors.extend(resize_policy(
            container,
            self.spec,
            &path.child("resizePolicy"),
        ));
        let security_path = path.child("securityContext");
        errors.extend(security::container(container, self.spec, &security_path));
        errors
    }

    /// What holds for containers that keep running.
    fn running(&self, container: &Value, path: &Path) -> ErrorList {
        let grace = json::int(self.spec, "terminationGracePeriodSeconds");
        let mut errors = ErrorList::new();
        if let Some(lifecycle) = json::some(container, "lifecycle") {
            let os = json::get(self.spec, "os");
            errors.extend(probes::lifecycle(
                lifecycle,
                grace,
                os,
                &path.child("lifecycle"),
            ));
        }
        for field in PROBES {
            if let Some(probe) = json::some(container, field) {
                errors.extend(probes::probe(probe, field, grace, &path.child(field)));
            }
        }
        errors
    }
}

/// In a pod, and not in a template, the image has no blanks around it.
pub fn image_of_pod(container: &Value, path: &Path) -> ErrorList {
    let image = json::text(container, "image");
    if image.trim().len() == image.len() {
        return ErrorList::new();
    }
    let detail = "must not have leading or trailing whitespace";
    vec![FieldError::invalid(&path.child("image"), image, detail)]
}

/// A container's own restart policy, with rules by exit code.
fn restart_policy(container: &Value, path: &Path) -> ErrorList {
    const RULES_MAX: usize = 20;
    let rules = json::list(container, "restartPolicyRules");
    let rules_path = path.child("restartPolicyRules");
    let mut errors = ErrorList::new();
    let Some(policy) = json::some(container, "restartPolicy").and_then(Value::as_str) else {
        if !rules.is_empty() {
            let detail = "must specify restartPolicy when restart rules are used";
            errors.push(FieldError::required(&path.child("restartPolicy"), detail));
        }
        return errors;
    };
    let policies = &["Always", "Never", "OnFailure"];
    checks::one_of(&mut errors, policy, policies, &path.child("restartPolicy"));
    if rules.len() > RULES_MAX {
        errors.push(FieldError::too_many(&rules_path, rules.len(), RULES_MAX));
    }
    for (index, rule) in rules.iter().enumerate() {
        let path = rules_path.index(index);
        let action = json::text(rule, "action");
        let actions = &["Restart", "RestartAllContainers"];
        checks::one_of(&mut errors, action, actions, &path.child("action"));
        match json::some(rule, "exitCodes") {
            None => errors.push(FieldError::required(
                &path.child("exitCodes"),
                "must be specified",
            )),
            Some(codes) => {
                let path = path.child("exitCodes").child("operator");
                let operator = json::text(codes, "operator");
                checks::one_of(&mut errors, operator, &["In", "NotIn"], &path);
            }
        }
    }
    errors
}

fn ports(container: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (index, port) in json::list(container, "ports").iter().enumerate() {
        let path = path.index(index);
        let name = json::text(port, "name");
        if !name.is_empty() {
            let details = names::port_name(name);
            let bad = !details.is_empty();
            invalid_each(&mut errors, &path.child("name"), name, details);
            if !bad && !seen.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
        }
        let number_path = path.child("containerPort");
        match json::int(port, "containerPort").unwrap_or(0) {
            0 => errors.push(FieldError::required(&number_path, "")),
            number => errors.extend(
                names::port_number(number)
                    .into_iter()
                    .map(|detail| FieldError::invalid(&number_path, number, detail)),
            ),
        }
        let host_port = json::int(port, "hostPort").unwrap_or(0);
        if host_port != 0 {
            for detail in names::port_number(host_port) {
                errors.push(FieldError::invalid(
                    &path.child("hostPort"),
                    host_port,
                    detail,
                ));
            }
        }
        let protocol = json::text(port, "protocol");
        let protocols = &["SCTP", "TCP", "UDP"];
        checks::required_one_of(&mut errors, protocol, protocols, &path.child("protocol"));
    }
    errors
}

/// No two containers open the same port of the host.
fn port_conflicts(containers: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = path.index(index).child("ports");
        for (index, port) in json::list(container, "ports").iter().enumerate() {
            let number = json::int(port, "hostPort").unwrap_or(0);
            let [protocol, ip] = ["protocol", "hostIP"].map(|field| json::text(port, field));
            let key = format!("{protocol}/{ip}/{number}");
            if number != 0 && !seen.insert(key.clone()) {
                let path = path.index(index).child("hostPort");
                errors.push(FieldError::duplicate(&path, key));
            }
        }
    }
    errors
}

fn resize_policy(container: &Value, spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (index, policy) in json::list(container, "resizePolicy").iter().enumerate() {
        let resource = json::text(policy, "resourceName");
        if !seen.insert(resource) {
            errors.push(FieldError::duplicate(&path.index(index), resource));
        }
        checks::required_one_of(&mut errors, resource, &["cpu", "memory"], path);
        let restart = json::text(policy, "restartPolicy");
        let restarts = &["NotRequired", "RestartContainer"];
        checks::required_one_of(&mut errors, restart, restarts, path);
        if json::text(spec, "restartPolicy") == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(path, restart, detail));
        }
    }
    errors
}
