//! `/metrics`: what the agent runs, under the kubelet's names, and what the agent itself uses.

use super::claims;
use super::collect::Stats;
use crate::node::KUBELET_VERSION;
use crate::pods::is_static;
use crate::runtime::ContainerState;
use coracle_api::exposition::Text;
use coracle_api::exposition::process::{self, Files};
use k8s_openapi::api::core::v1::Pod;
use std::fs;
use std::sync::Arc;

const STATES: [(ContainerState, &str); 4] = [
    (ContainerState::Created, "created"),
    (ContainerState::Exited, "exited"),
    (ContainerState::Running, "running"),
    (ContainerState::Unknown, "unknown"),
];

impl Stats {
    pub async fn own_metrics(&self) -> String {
        let mut text = Text::default();
        let (context, pods) = (&self.context, self.pods.list());
        desired(&mut text, &pods);
        let name = "kubelet_node_name";
        let help = "[ALPHA] The node's name. The count is always 1.";
        text.family(name, "gauge", help);
        text.sample(name, &[("node", &self.node_name)], 1);
        let containers = context.runtime.list_containers().await.unwrap_or_default();
        let name = "kubelet_running_containers";
        text.family(
            name,
            "gauge",
            "[BETA] Number of containers currently running",
        );
        for (state, label) in STATES {
            let count = containers.iter().filter(|one| one.state == state).count();
            if count > 0 {
                text.sample(name, &[("container_state", label)], count);
            }
        }
        let sandboxes = context.runtime.list_sandboxes().await.unwrap_or_default();
        let is_ready =
            |one: &&crate::runtime::SandboxStatus| one.state == crate::runtime::SandboxState::Ready;
        let name = "kubelet_running_pods";
        let help = "[BETA] Number of pods that have a running pod sandbox";
        text.family(name, "gauge", help);
        text.sample(name, &[], sandboxes.iter().filter(is_ready).count());
        claims::text(&mut text, context, &self.pods);
        build(&mut text);
        process::text(&mut text, &files(), self.started());
        text.into_string()
    }
}

fn desired(text: &mut Text, pods: &[Arc<Pod>]) {
    let name = "kubelet_desired_pods";
    let help = "[ALPHA] The number of pods the kubelet is being instructed to run. static is true \
                if the pod is not from the apiserver.";
    text.family(name, "gauge", help);
    let of_files = pods.iter().filter(|pod| is_static(pod)).count();
    text.sample(name, &[("static", "")], pods.len() - of_files);
    text.sample(name, &[("static", "true")], of_files);
}

fn build(text: &mut Text) {
    let name = "kubernetes_build_info";
    let help = "[ALPHA] A metric with a constant '1' value labeled by major, minor, git version, \
                git commit, git tree state, build date, Go version, and compiler from which \
                Kubernetes was built, and platform on which it is running.";
    text.family(name, "gauge", help);
    let mut parts = KUBELET_VERSION.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    let labels = [
        ("git_version", KUBELET_VERSION),
        ("major", major),
        ("minor", minor),
    ];
    text.sample(name, &labels, 1);
}

pub fn files() -> Files {
    let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
    Files {
        status: read("status"),
        stat: read("stat"),
        limits: read("limits"),
        netstat: read("net/netstat"),
        open_files: fs::read_dir("/proc/self/fd").map(Iterator::count).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_of_files_are_counted_apart() {
        let pod = |annotations: serde_json::Value| {
            let pod = json!({ "metadata": { "annotations": annotations } });
            Arc::new(serde_json::from_value(pod).unwrap())
        };
        let of_file = json!({ "kubernetes.io/config.source": "file" });
        let mut text = Text::default();
        desired(
            &mut text,
            &[pod(json!({})), pod(of_file), pod(json!({ "a": "b" }))],
        );
        let text = text.into_string();
        let counts = "kubelet_desired_pods{static=\"\"} 2\n\
                      kubelet_desired_pods{static=\"true\"} 1\n";
        assert!(text.ends_with(counts), "{text}");
    }
}
