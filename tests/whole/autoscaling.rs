//! Autoscalers as users make and read them: where no node is there and what is scaled is only
//! written down, and on the load of real pods.

use crate::lab::{Cluster, Lab, wait};
use crate::workloads::{IMAGE, web, with_images};

/// Waits for what `kubectl describe` says.
fn described(cluster: &Cluster, name: &str, expected: &[&str]) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    wait(&format!("{expected:?} of {name}"), || {
        let text = words(&cluster.kubectl(&["describe", "hpa", name]));
        expected.iter().all(|one| text.contains(one)).then_some(())
    });
}

/// On a metric that nobody serves.
const ON_JOBS: &str = r#"
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: { name: on-jobs }
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: StatefulSet, name: main }
  maxReplicas: 5
  metrics:
  - type: External
    external:
      metric: { name: jobs }
      target: { type: AverageValue, averageValue: "10" }
"#;

const MAIN: &str = r#"
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: main }
spec:
  replicas: 9
  serviceName: main
  selector: { matchLabels: { app: main } }
  template:
    metadata: { labels: { app: main } }
    spec: { containers: [{ name: main, image: "example.test/none:1" }] }
"#;

#[test]
fn an_autoscaler_keeps_its_bounds_and_says_what_it_cannot_read() {
    let mut lab = Lab::new();
    let cluster = lab.server("scaled", &[]);
    cluster.apply(&web(IMAGE, 1));
    let bounds = ["--min=2", "--max=4", "--cpu-percent=50"];
    cluster.kubectl(&[&["autoscale", "deployment", "web"], &bounds[..]].concat());
    cluster.wait_value(&["deployment", "web"], "{.spec.replicas}", "2");
    described(
        &cluster,
        "web",
        &[
            "Reference: Deployment/web",
            "horizontal-pod-autoscaler New size: 2; reason: Current number of \
             replicas below Spec.MinReplicas",
        ],
    );
    // Whoever asks for more than the most does not keep it.
    cluster.kubectl(&["scale", "deployment/web", "--replicas=7"]);
    cluster.wait_value(&["deployment", "web"], "{.spec.replicas}", "4");
    let wants = r#"_autoscaler_controller_desired_replicas{namespace="default",hpa_name="web"} 4"#;
    wait("the server's metrics say what it wants", || {
        let metrics = cluster.kubectl(&["get", "--raw", "/metrics"]);
        metrics.contains(wants).then_some(())
    });

    cluster.apply(ON_JOBS);
    described(
        &cluster,
        "on-jobs",
        &[
            "AbleToScale False FailedGetScale the HPA controller was unable to get the target's \
             current scale: statefulsets.apps \"main\" not found",
        ],
    );
    cluster.apply(MAIN);
    cluster.wait_value(&["statefulset", "main"], "{.spec.replicas}", "5");
    let why = "failed to get jobs external metric: unable to get external metric \
               default/jobs/nil: unable to fetch metrics from external metrics API: the server \
               could not find the requested resource (get jobs.external.metrics.k8s.io)";
    described(
        &cluster,
        "on-jobs",
        &[
            "AbleToScale True SucceededGetScale",
            &format!(
                "ScalingActive False FailedGetExternalMetric the HPA was unable to compute the \
                 replica count: {why}"
            ),
            &format!("horizontal-pod-autoscaler {why}"),
            "horizontal-pod-autoscaler invalid metrics (1 invalid \
             out of 1), first error is: failed to get jobs external metric value: ",
        ],
    );
    let row = cluster.kubectl(&["get", "hpa", "on-jobs"]);
    assert!(row.contains("<unknown>/10 (avg)"), "{row}");
}

/// Burns five times what it asks for, and half of that is wanted.
fn burning() -> String {
    format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: burning }}
spec:
  replicas: 1
  selector: {{ matchLabels: {{ app: burning }} }}
  template:
    metadata: {{ labels: {{ app: burning }} }}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: fire
        image: {IMAGE}
        command: ["sh", "-c", "while true; do :; done"]
        resources: {{ requests: {{ cpu: 20m }}, limits: {{ cpu: 100m }} }}
"#
    )
}

#[test]
fn pods_that_burn_get_company() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "burning");
    cluster.apply(&burning());
    cluster.rolled_out("deployment/burning");
    let bounds = ["--min=1", "--max=2", "--cpu-percent=50"];
    cluster.kubectl(&[&["autoscale", "deployment", "burning"], &bounds[..]].concat());
    wait("there are metrics", || {
        let top = ["top", "pod", "-l", "app=burning", "--no-headers"];
        let text = cluster.try_kubectl(&top).ok()?;
        text.contains("burning").then_some(())
    });
    cluster.wait_value(&["deployment", "burning"], "{.spec.replicas}", "2");
    described(
        &cluster,
        "burning",
        &[
            "ScalingActive True ValidMetricFound the HPA was able to successfully calculate a \
             replica count from cpu resource utilization (percentage of request)",
            "horizontal-pod-autoscaler New size: 2; reason: cpu resource utilization (percentage \
             of request) above target",
        ],
    );
    let percent = "{.status.currentMetrics[0].resource.current.averageUtilization}";
    let above = |value: &str| value.parse::<u32>().is_ok_and(|percent| percent > 50);
    cluster.wait_for(&["hpa", "burning"], percent, "above 50", above);
}

/// A kind of the user's own that has a scale.
const ENGINES: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: engines.example.org }
spec:
  group: example.org
  scope: Namespaced
  names: { plural: engines, singular: engine, kind: Engine, listKind: EngineList }
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: { type: object, properties: { replicas: { type: integer } } }
          status:
            type: object
            properties: { replicas: { type: integer }, selector: { type: string } }
    subresources:
      status: {}
      scale:
        specReplicasPath: .spec.replicas
        statusReplicasPath: .status.replicas
        labelSelectorPath: .status.selector
"#;

const ENGINE: &str = r#"
apiVersion: example.org/v1
kind: Engine
metadata: { name: main }
spec: { replicas: 9 }
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: { name: engine }
spec:
  scaleTargetRef: { apiVersion: example.org/v1, kind: Engine, name: main }
  maxReplicas: 5
"#;

#[test]
fn a_kind_of_the_users_own_is_scaled() {
    let mut lab = Lab::new();
    let cluster = lab.server("engines", &[]);
    cluster.apply(ENGINES);
    let established = r#"{.status.conditions[?(@.type=="Established")].status}"#;
    cluster.wait_value(&["crd", "engines.example.org"], established, "True");
    wait("the kind is served", || {
        cluster.try_kubectl(&["get", "engines"]).ok()
    });
    cluster.apply(ENGINE);
    cluster.wait_value(&["engine", "main"], "{.spec.replicas}", "5");
    let told = "horizontal-pod-autoscaler New size: 5; reason: Current number of replicas above \
                Spec.MaxReplicas";
    described(&cluster, "engine", &[told]);
}
