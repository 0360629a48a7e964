//! What goes together.

use super::*;
use crate::cli::{Cli, Command};
use clap::Parser;

fn read(flags: &[&str]) -> Result<Option<Joining>, String> {
    let words = ["coracle", "agent"].iter().chain(flags);
    let Command::Agent(command) = Cli::try_parse_from(words).unwrap().command else {
        panic!("not an agent");
    };
    joining(&command.agent, true).map_err(|error| error.to_string())
}

#[test]
fn a_node_of_ours_listens_nowhere() {
    assert_eq!(read(&["--server", "https://gateway:6443"]), Ok(None));
    let refused = read(&["--kubelet-port", "10250"]).unwrap_err();
    assert!(refused.contains("needs --kubeconfig"), "{refused}");
    let refused = read(&["--client-ca-file", "/ca.crt"]).unwrap_err();
    assert!(refused.starts_with("--client-ca-file"), "{refused}");
}

#[test]
fn one_way_to_a_cluster() {
    let kubeconfig = ["--kubeconfig", "/no/such/kubeconfig"];
    for (more, why) in [
        (["--bootstrap-kubeconfig", "/x"], "with --kubeconfig"),
        (["--server", "https://gateway:6443"], "with --server"),
        (["--token", "x"], "with --token"),
        (["--token-file", "/x"], "with --token"),
        (["--kubelet-port", "0"], "number of a port"),
    ] {
        let refused = read(&[kubeconfig, more].concat()).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    let args = AgentArgs {
        kubeconfig: Some("/no/such/kubeconfig".into()),
        ..AgentArgs::default()
    };
    let refused = joining(&args, false).unwrap_err().to_string();
    assert!(refused.contains("with up"), "{refused}");
}

#[test]
fn the_port_is_the_kubelets_unless_it_is_told() {
    let given = read(&["--bootstrap-kubeconfig", "/etc/hostname"])
        .unwrap()
        .unwrap();
    assert!(given.is_bootstrap);
    assert_eq!((given.port, given.client_ca), (10250, None));
    let told = ["--kubeconfig", "/etc/hostname", "--kubelet-port", "10350"];
    let told = read(&told).unwrap().unwrap();
    assert_eq!((told.port, told.is_bootstrap), (10350, false));
}

#[test]
fn where_pods_of_another_cluster_are_is_told() {
    let joined = |more: &[&str]| read(&[&["--kubeconfig", "/etc/hostname"], more].concat());
    assert!(joined(&[]).unwrap().unwrap().pod_networks.is_empty());
    let told = joined(&["--non-masquerade-cidr", "10.0.0.0/8,fd00::/8"]);
    assert_eq!(
        told.unwrap().unwrap().pod_networks,
        ["10.0.0.0/8", "fd00::/8"]
    );
    let never = joined(&["--non-masquerade-cidr", "0.0.0.0/0"]);
    assert_eq!(never.unwrap().unwrap().pod_networks, ["0.0.0.0/0"]);
    for wrong in ["10.0.0.1/8", "10.0.0.0", ""] {
        let refused = joined(&["--non-masquerade-cidr", wrong]).unwrap_err();
        assert!(refused.starts_with("--non-masquerade-cidr"), "{refused}");
    }
    let refused = read(&["--non-masquerade-cidr", "10.0.0.0/8"]).unwrap_err();
    assert!(refused.contains("needs --kubeconfig"), "{refused}");
}
