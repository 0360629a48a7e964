//! What a pod is made of, and what of it is put back.

use super::*;

fn made(text: &str) -> Pod {
    let (_, plan) = plan_of(&parse(text));
    let step = plan.phases.into_iter().flatten().next().unwrap();
    match step {
        Step::Create { pod, .. } => *pod,
        Step::Keep { mended, .. } => *mended.unwrap(),
        Step::Delete(pod) => panic!("deletes {}", name(&*pod)),
    }
}

#[test]
fn a_pod_has_name_labels_host_name_and_volumes_of_its_own() {
    let pod = made("sts replicas=3 start=7 claims=log,data");
    let said = serde_json::to_string_pretty(&pod).unwrap();
    expect![[r#"
        {
          "apiVersion": "v1",
          "kind": "Pod",
          "metadata": {
            "annotations": {
              "team": "blue"
            },
            "generateName": "web-",
            "labels": {
              "app": "web",
              "apps.kubernetes.io/pod-index": "7",
              "controller-revision-hash": "new",
              "statefulset.kubernetes.io/pod-name": "web-7"
            },
            "name": "web-7",
            "namespace": "default",
            "ownerReferences": [
              {
                "apiVersion": "apps/v1",
                "blockOwnerDeletion": true,
                "controller": true,
                "kind": "StatefulSet",
                "name": "web",
                "uid": "sts"
              }
            ]
          },
          "spec": {
            "containers": [
              {
                "image": "new",
                "name": "c"
              }
            ],
            "hostname": "web-7",
            "subdomain": "web-peers",
            "volumes": [
              {
                "name": "data",
                "persistentVolumeClaim": {
                  "claimName": "data-web-7"
                }
              },
              {
                "name": "log",
                "persistentVolumeClaim": {
                  "claimName": "log-web-7"
                }
              },
              {
                "emptyDir": {},
                "name": "scratch"
              }
            ]
          }
        }"#]]
    .assert_eq(&said);
}

#[test]
fn below_the_partition_the_template_is_the_old_one() {
    let image = |text| {
        let spec = made(text).spec.unwrap();
        spec.containers[0].image.clone().unwrap()
    };
    assert_eq!(image("sts replicas=2 partition=1"), "old");
    assert_eq!(image("sts replicas=2 partition=1\npod web-0 ready"), "new");
}

#[test]
fn labels_that_were_lost_come_back_and_nothing_else_changes() {
    let pod = made("sts replicas=1\npod web-0 ready unlabeled");
    let labels = pod.metadata.labels.unwrap();
    assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "web-0");
    assert_eq!(labels["apps.kubernetes.io/pod-index"], "0");
    assert_eq!(labels.get("controller-revision-hash"), None);
    assert_eq!(pod.spec.unwrap().hostname, None);
}
