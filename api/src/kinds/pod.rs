//! Pods.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names, PART_VERBS};
use crate::resource::{Resource, Subresource, SubresourceKind};

pub const ROW: Resource = Resource {
    short_names: &["po"],
    categories: &["all"],
    subresources: &[
        connect("attach", "PodAttachOptions", &["create", "get"]),
        Subresource {
            name: "binding",
            kind: SubresourceKind::Action,
            body: Some(("", "v1", "Binding")),
            verbs: &["create"],
        },
        part("ephemeralcontainers"),
        Subresource {
            name: "eviction",
            kind: SubresourceKind::Action,
            body: Some(("policy", "v1", "Eviction")),
            verbs: &["create"],
        },
        connect("exec", "PodExecOptions", &["create", "get"]),
        Subresource {
            name: "log",
            kind: SubresourceKind::Connect,
            body: None,
            verbs: &["get"],
        },
        connect("portforward", "PodPortForwardOptions", &["create", "get"]),
        connect(
            "proxy",
            "PodProxyOptions",
            &["create", "delete", "get", "patch", "update"],
        ),
        part("resize"),
        row::STATUS,
    ],
    selectable_fields: &[
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ],
    ..row::namespaced(
        "",
        "v1",
        Names {
            kind: "Pod",
            plural: "pods",
            singular: "pod",
            schema: "io.k8s.api.core.v1.Pod",
        },
        &Plain,
    )
};

const fn connect(
    name: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
) -> Subresource {
    Subresource {
        name,
        kind: SubresourceKind::Connect,
        body: Some(("", "v1", kind)),
        verbs,
    }
}

const fn part(name: &'static str) -> Subresource {
    Subresource {
        name,
        kind: SubresourceKind::Part,
        body: None,
        verbs: PART_VERBS,
    }
}
