//! Pods on the agent's own network and on one of plugins, while configurations come and go. In a
//! network namespace of the test's own.

use super::Own;
use crate::network::cni::Resolvers;
use crate::network::cni::testing::{Node, PATIENCE, sandbox, wait};
use crate::network::link::BRIDGE;
use crate::network::testing::{Namespace, ip_command, isolated_async};
use crate::runtime::{SandboxId, SandboxStatus};
use std::process::Command;
use std::sync::Arc;
use tokio_util::sync::{CancellationToken, DropGuard};

const LIST: &str = r#"{"cniVersion": "0.4.0", "name": "lab", "plugins": [{"type": "link"}]}"#;
const RESULT: &str = r#"{"ips": [{"address": "10.9.0.2/16", "version": "4"}]}"#;

fn open(node: &Node) -> (Arc<Own>, DropGuard) {
    let opened = Own::open(node.path("network"), node.settings(PATIENCE));
    let own = Arc::new(opened.unwrap());
    let stop = CancellationToken::new();
    tokio::spawn(own.cni.clone().watch(stop.clone()));
    tokio::spawn(own.clone().settle(stop.clone()));
    (own, stop.drop_guard())
}

struct Pod(SandboxStatus, Namespace);

impl Pod {
    fn new(id: &str) -> Self {
        let namespace = Namespace::new();
        let status = SandboxStatus {
            network_namespace: Some(namespace.path.clone()),
            ..sandbox(id)
        };
        Self(status, namespace)
    }

    async fn attach(&self, own: &Own) -> String {
        match own.attach(&self.0, &Resolvers::default()).await {
            Ok(addresses) => addresses.to_string(),
            Err(error) => crate::error::chain(&error),
        }
    }

    fn id(&self) -> &SandboxId {
        &self.0.id
    }
}

fn has_link(name: &str) -> bool {
    let shown = Command::new("ip").args(["link", "show", name]).output();
    shown.unwrap().status.success()
}

#[test]
fn each_pod_keeps_its_network_and_the_agents_own_goes_with_the_last() {
    isolated_async(|| async {
        let node = Node::new();
        node.plugin("link", RESULT);
        let (own, _stop) = open(&node);
        assert_eq!(
            own.problem().as_deref(),
            Some("no podCIDR was given to this node yet")
        );
        own.use_cidrs("10.42.3.0/24").await.unwrap();
        assert_eq!(own.problem(), None);
        let (first, second, third) = (Pod::new("aa"), Pod::new("bb"), Pod::new("cc"));
        assert_eq!(first.attach(&own).await, "10.42.3.2");
        node.configure("10-lab.conflist", LIST);
        assert_eq!(second.attach(&own).await, "10.9.0.2");
        assert_eq!(own.addresses_of(second.id()).to_string(), "10.9.0.2");
        // Also when it is asked for again.
        assert_eq!(first.attach(&own).await, "10.42.3.2");
        assert_eq!(own.addresses_of(first.id()).to_string(), "10.42.3.2");
        wait("plugins are noticed", || own.cni.is_used()).await;
        own.bridged.stand_down().await.unwrap();
        assert!(has_link(BRIDGE), "the first pod needs it");
        own.use_cidrs("10.42.3.0/24").await.unwrap();
        own.detach(first.id()).await.unwrap();
        own.bridged.stand_down().await.unwrap();
        assert!(!has_link(BRIDGE));
        // Nothing makes it again.
        own.use_cidrs("10.42.3.0/24").await.unwrap();
        own.use_kept_cidrs().await.unwrap();
        assert!(!has_link(BRIDGE));
        node.unconfigure("10-lab.conflist");
        wait("the agent's own is there again", || {
            own.problem().is_none() && has_link(BRIDGE)
        })
        .await;
        assert!(third.attach(&own).await.starts_with("10.42.3."));
        own.detach(second.id()).await.unwrap();
        assert!(
            node.log()
                .ends_with(&format!("link DEL bb [{}] eth0\n", second.1.path.display()))
        );
        own.detach(third.id()).await.unwrap();
    });
}

#[test]
fn a_node_that_begins_with_plugins_makes_nothing_of_its_own() {
    isolated_async(|| async {
        let node = Node::new();
        node.plugin("link", RESULT);
        node.configure("10-lab.conflist", LIST);
        // Left by an agent that had no plugins.
        ip_command(&format!("link add {BRIDGE} type bridge"));
        let (own, _stop) = open(&node);
        own.use_cidrs("10.42.3.0/24").await.unwrap();
        wait("what was left is gone", || !has_link(BRIDGE)).await;
        assert_eq!(own.problem(), None);
        let pod = Pod::new("aa");
        assert_eq!(pod.attach(&own).await, "10.9.0.2");
        assert!(!has_link(BRIDGE));
        // The next agent knows the podCIDR, for plugins that ask for it.
        assert_eq!(own.bridged.kept_cidrs().as_deref(), Some("10.42.3.0/24"));
        let (own, _stop) = open(&node);
        assert_eq!(own.addresses_of(pod.id()).to_string(), "10.9.0.2");
        own.reclaim(&[].into()).unwrap();
        own.detach(pod.id()).await.unwrap();
        assert!(own.addresses_of(pod.id()).is_empty());
    });
}

#[test]
fn a_configuration_of_no_use_is_no_reason_for_another_network() {
    isolated_async(|| async {
        let node = Node::new();
        node.configure("10-lab.conf", "{}");
        let (own, _stop) = open(&node);
        own.use_cidrs("10.42.3.0/24").await.unwrap();
        let problem = own.problem().unwrap();
        assert!(
            problem.starts_with("failed to load CNI config file /")
                && problem.ends_with("/10-lab.conf: it has no \"name\""),
            "{problem}"
        );
        let pod = Pod::new("aa");
        assert_eq!(pod.attach(&own).await, problem);
        assert!(!has_link(BRIDGE));
    });
}
