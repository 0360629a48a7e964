//! What loops look after beside workloads: the networks of Services, and claims of devices. No node
//! is there.

use crate::lab::{Lab, wait};

const MORE: &str = r#"
apiVersion: networking.k8s.io/v1
kind: ServiceCIDR
metadata: { name: more }
spec: { cidrs: ["10.99.0.0/28"] }
"#;

const SERVICE: &str = r#"
apiVersion: v1
kind: Service
metadata: { name: in-more }
spec: { clusterIP: 10.99.0.5, ports: [{ port: 80 }] }
"#;

#[test]
fn a_network_of_services_stays_while_a_service_has_an_address_of_it() {
    let mut lab = Lab::new();
    let cluster = lab.server("ranges", &[]);
    let ready = r#"{.status.conditions[?(@.type=="Ready")].status}"#;
    cluster.wait_value(&["servicecidr", "kubernetes"], ready, "True");
    cluster.apply(MORE);
    cluster.wait_value(&["servicecidr", "more"], ready, "True");
    cluster.apply(SERVICE);
    cluster.kubectl(&["delete", "servicecidr", "more", "--wait=false"]);
    let condition = r#"{.status.conditions[?(@.type=="Ready")]['status','reason']}"#;
    cluster.wait_value(&["servicecidr", "more"], condition, "False Terminating");
    // Nobody gets another address of it.
    let other = SERVICE.replace("in-more", "late").replace(".5,", ".6,");
    std::fs::write(lab.path("late.yaml"), other).unwrap();
    let file = lab.path("late.yaml").display().to_string();
    let refused = cluster.try_kubectl(&["apply", "-f", &file]).unwrap_err();
    assert!(
        refused.contains("does not match the current range"),
        "{refused}"
    );
    cluster.kubectl(&["delete", "service", "in-more"]);
    cluster.wait_gone(&["servicecidr", "more"]);
}

const WANTS_A_DEVICE: &str = r#"
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: { name: gpu }
spec:
  metadata: { labels: { kind: gpu } }
  spec:
    devices:
      requests: [{ name: one, exactly: { deviceClassName: gpu.example.org } }]
---
apiVersion: v1
kind: Pod
metadata: { name: wants }
spec:
  resourceClaims: [{ name: device, resourceClaimTemplateName: gpu }]
  containers:
  - name: main
    image: example.test/none:1
    resources: { claims: [{ name: device }] }
"#;

#[test]
fn a_pod_gets_the_claim_of_a_device_that_its_template_says() {
    let mut lab = Lab::new();
    let cluster = lab.server("devices", &[]);
    cluster.wait_value(
        &["serviceaccount", "default"],
        "{.metadata.name}",
        "default",
    );
    cluster.apply(WANTS_A_DEVICE);
    let named = "{.status.resourceClaimStatuses[0].resourceClaimName}";
    let name = wait("the pod is told of its claim", || {
        let name = cluster.value(&["pod", "wants"], named);
        (!name.is_empty()).then_some(name)
    });
    assert!(name.starts_with("wants-device-"), "{name}");
    let of = "{.metadata.labels.kind} {.metadata.ownerReferences[0].name}";
    assert_eq!(cluster.value(&["resourceclaim", &name], of), "gpu wants");
    // As the scheduler would, and whoever ends the pod.
    let uid = cluster.value(&["pod", "wants"], "{.metadata.uid}");
    let reserved = format!(
        r#"{{"status":{{"allocation":{{"devices":{{}}}},"reservedFor":[{{"resource":"pods","name":"wants","uid":"{uid}"}}]}}}}"#
    );
    let patch = ["patch", "resourceclaim", &name, "--subresource=status"];
    cluster.kubectl(&[&patch[..], &["--type=merge", "-p", &reserved]].concat());
    let failed = r#"{"status":{"phase":"Failed"}}"#;
    let patch = ["patch", "pod", "wants", "--subresource=status"];
    cluster.kubectl(&[&patch[..], &["--type=merge", "-p", failed]].concat());
    cluster.wait_gone(&["resourceclaim", &name]);
}
