//! Controllers as processes of their own: of several one leads, and another follows it.

use crate::lab::{Cluster, Lab, wait};
use crate::workloads::{IMAGE, web};

const LEASE: [&str; 4] = ["-n", "kube-system", "lease", "kube-controller-manager"];
const HOLDER: &str = "{.spec.holderIdentity}";

fn replicas_follow(cluster: &Cluster, count: &str) {
    cluster.kubectl(&["scale", "deployment/web", &format!("--replicas={count}")]);
    cluster.wait_value(&["replicasets"], "{.items[*].status.replicas}", count);
}

#[test]
fn controllers_follow_each_other() {
    let mut lab = Lab::new();
    let cluster = lab.server("led", &["--disable", "controllers"]);
    cluster.apply(&web(IMAGE, 1));
    let kubeconfig = cluster.kubeconfig().display().to_string();
    let arguments = ["controllers", "--kubeconfig", &kubeconfig];
    let as_accounts = [
        &arguments[..],
        &["--use-service-account-credentials", "--secure-port=0"],
    ]
    .concat();
    let first = lab.spawn(&cluster.host.clone(), &arguments);
    cluster.wait_value(&["replicasets"], "{.items[*].status.replicas}", "1");
    let holder = cluster.value(&LEASE, HOLDER);
    let second = lab.spawn(&cluster.host.clone(), &as_accounts);
    replicas_follow(&cluster, "2");
    assert_eq!(cluster.value(&LEASE, HOLDER), holder);

    // A stop lets the next one in; so does, after a while, a kill.
    assert!(lab.process(first).terminate().success());
    wait("the second leads", || {
        let now = cluster.value(&LEASE, HOLDER);
        (!now.is_empty() && now != holder).then_some(())
    });
    replicas_follow(&cluster, "3");
    lab.process(second).kill();
    lab.spawn(&cluster.host.clone(), &arguments);
    replicas_follow(&cluster, "1");
}

#[test]
fn a_servers_own_controllers_are_never_joined_by_others() {
    let mut lab = Lab::new();
    let cluster = lab.server("leads", &[]);
    cluster.wait_value(&LEASE, HOLDER, "coracle-server");
    let kubeconfig = cluster.kubeconfig().display().to_string();
    let arguments = ["controllers", "--kubeconfig", &kubeconfig];
    let waits = lab.spawn(&cluster.host.clone(), &arguments);
    lab.process(cluster.process).kill();
    let data_dir = cluster.host.data_dir.display().to_string();
    let without = [
        "server",
        "--data-dir",
        &data_dir,
        "--disable",
        "controllers",
    ];
    lab.spawn(&cluster.host.clone(), &without);
    wait("the one that waited leads", || {
        let holder = cluster.value(&LEASE, HOLDER);
        (!holder.is_empty() && holder != "coracle-server").then_some(())
    });
    cluster.apply(&web(IMAGE, 1));
    cluster.wait_value(&["replicasets"], "{.items[*].status.replicas}", "1");
    assert!(lab.process(waits).terminate().success());
}

#[test]
fn a_server_says_in_a_lease_that_it_is_there() {
    let mut lab = Lab::new();
    let cluster = lab.server("named", &[]);
    let of_servers = "-l=apiserver.kubernetes.io/identity=kube-apiserver";
    let leases = ["-n", "kube-system", "leases", of_servers];
    let (names, holders) = (
        "{.items[*].metadata.name}",
        "{.items[*].spec.holderIdentity}",
    );
    let all = |cluster: &Cluster, wanted: &str| {
        wait("there is one Lease, and another holder", || {
            let name = cluster.value(&leases, names);
            let holder = cluster.value(&leases, holders);
            let is_held = name.starts_with("apiserver-") && holder.starts_with(&format!("{name}_"));
            (is_held && holder != wanted).then_some((name, holder))
        })
    };
    let (name, first) = all(&cluster, "");
    lab.process(cluster.process).kill();
    let data_dir = cluster.host.data_dir.display().to_string();
    lab.spawn(&cluster.host.clone(), &["server", "--data-dir", &data_dir]);
    assert_eq!(all(&cluster, &first).0, name);
}
