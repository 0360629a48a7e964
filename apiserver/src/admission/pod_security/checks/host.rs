//! What is the node's: its namespaces, paths and ports, volumes that reach beyond the pod, probes
//! of other hosts, and processes of a Windows node.

use super::{Subject, Violation, containers, plural, quoted, security, setters};
use coracle_api::json;
use serde_json::Value;
use std::collections::BTreeSet;

/// The volumes that the restricted level lets in.
const OWN_VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
/// All others, in the order in which upstream looks for them.
const OTHER_VOLUMES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

pub fn namespaces(subject: Subject<'_>, _: u32) -> Option<Violation> {
    let shared: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .into_iter()
        .filter(|field| json::flag(subject.spec, field))
        .map(|field| format!("{field}=true"))
        .collect();
    (!shared.is_empty()).then(|| Violation::new("host namespaces", shared.join(", ")))
}

pub fn paths(subject: Subject<'_>, _: u32) -> Option<Violation> {
    let names: Vec<&str> = json::list(subject.spec, "volumes")
        .iter()
        .filter(|volume| json::has(volume, "hostPath"))
        .map(|volume| json::text(volume, "name"))
        .collect();
    let word = plural("volume", "volumes", names.len());
    (!names.is_empty())
        .then(|| Violation::new("hostPath volumes", format!("{word} {}", quoted(&names))))
}

pub fn volumes(subject: Subject<'_>, _: u32) -> Option<Violation> {
    let mut types = BTreeSet::new();
    let names: Vec<&str> = json::list(subject.spec, "volumes")
        .iter()
        .filter(|volume| !OWN_VOLUMES.iter().any(|own| json::has(volume, own)))
        .map(|volume| {
            let mut others = OTHER_VOLUMES.into_iter();
            types.insert(
                others
                    .find(|one| json::has(volume, one))
                    .unwrap_or("unknown"),
            );
            json::text(volume, "name")
        })
        .collect();
    if names.is_empty() {
        return None;
    }
    let detail = format!(
        "{} {} {} {} {}",
        plural("volume", "volumes", names.len()),
        quoted(&names),
        plural("uses", "use", names.len()),
        plural(
            "restricted volume type",
            "restricted volume types",
            types.len()
        ),
        quoted(&types)
    );
    Some(Violation::new("restricted volume types", detail))
}

pub fn ports(subject: Subject<'_>, _: u32) -> Option<Violation> {
    // As texts: so upstream sorts them.
    let mut ports = BTreeSet::new();
    let mut names = Vec::new();
    for container in subject.containers() {
        let own = json::list(container, "ports").iter();
        let own = own.filter_map(|port| json::int(port, "hostPort").filter(|port| *port != 0));
        let own: Vec<String> = own.map(|port| port.to_string()).collect();
        if !own.is_empty() {
            names.push(json::text(container, "name").to_owned());
            ports.extend(own);
        }
    }
    if names.is_empty() {
        return None;
    }
    let detail = format!(
        "{} {} {} {}",
        containers(&names),
        plural("uses", "use", names.len()),
        plural("hostPort", "hostPorts", ports.len()),
        ports.into_iter().collect::<Vec<_>>().join(", ")
    );
    Some(Violation::new("hostPort", detail))
}

pub fn probes(subject: Subject<'_>, _: u32) -> Option<Violation> {
    const HANDLERS: [&[&str]; 5] = [
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    let hosts_of = |container: &Value| -> Vec<String> {
        HANDLERS
            .into_iter()
            .flat_map(|path| ["httpGet", "tcpSocket"].map(|kind| (path, kind)))
            .map(|(path, kind)| {
                let handler = json::at(container, path);
                json::text(json::get(handler, kind), "host").to_owned()
            })
            .filter(|host| !host.is_empty())
            .collect()
    };
    let hosts: BTreeSet<String> = subject.containers().flat_map(&hosts_of).collect();
    let names = subject.names(|container| !hosts_of(container).is_empty());
    let names: BTreeSet<String> = names.into_iter().collect();
    if names.is_empty() {
        return None;
    }
    let names: Vec<String> = names.into_iter().collect();
    let detail = format!(
        "{} {} {} {}",
        containers(&names),
        plural("uses", "use", names.len()),
        plural(
            "probe or lifecycle host",
            "probe or lifecycle hosts",
            hosts.len()
        ),
        quoted(&hosts)
    );
    Some(Violation::new("probe or lifecycle host", detail))
}

pub fn windows_processes(subject: Subject<'_>, _: u32) -> Option<Violation> {
    let is_set = |options: &Value| json::flag(options, "hostProcess");
    let pod = is_set(subject.security("windowsOptions"));
    let names = subject.names(|container| is_set(security(container, "windowsOptions")));
    (pod || !names.is_empty()).then(|| {
        let setters = setters(pod, &names);
        let detail =
            format!("{setters} must not set securityContext.windowsOptions.hostProcess=true");
        Violation::new("hostProcess", detail)
    })
}
