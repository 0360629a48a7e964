//! Jobs whose pods have an index each.

use super::*;

#[test]
fn the_lowest_indexes_come_first_and_each_once() {
    check(
        "job indexed completions=5 parallelism=3",
        expect!["create 0 1 2, active=3"],
    );
    check(
        "job indexed completions=9 parallelism=4 completed=0,2,3 succeeded=3
         pod a i=1 ready
         pod b i=4 succeeded
         pod c i=6",
        expect![[r#"
            create 5 7, active=4, ready=1, succeeded=4, completed=0,2-4
            release b"#]],
    );
}

#[test]
fn pods_of_no_or_the_same_index_go() {
    check(
        "job indexed completions=3 parallelism=3
         pod a i=1
         pod b i=1 ready
         pod c i=7
         pod d
         pod e i=0 ready",
        expect!["remove d a c, active=2, ready=2, terminating=3"],
    );
    // What they did does not count.
    check(
        "job indexed completions=3 parallelism=1
         pod a i=7 failed
         pod b failed
         pod c i=5 succeeded
         pod d i=0 ready",
        expect![[r#"
            nothing, active=1, ready=1
            release b c a"#]],
    );
}

#[test]
fn an_index_completes_once() {
    check(
        "job indexed completions=3 parallelism=3 completed=1 succeeded=1
         pod a i=1 succeeded
         pod b i=0 succeeded
         pod c i=2 succeeded
         pod d i=2 succeeded",
        expect![[r#"
            nothing, succeeded=3, completed=0-2
            SuccessCriteriaMet=True CompletionsReached: Reached expected number of succeeded pods
            release b a c d
            then Complete CompletionsReached"#]],
    );
}

#[test]
fn fewer_completions_forget_indexes_beyond() {
    check(
        "job indexed completions=2 parallelism=2 completed=0,3,4 succeeded=3",
        expect!["create 1, active=1, succeeded=1, completed=0"],
    );
}

#[test]
fn with_limits_per_index_others_go_on() {
    // The failed pod waits with its finalizer for the pod that takes over its count.
    check(
        "job indexed completions=3 parallelism=3 per_index=1 backoff=2147483647
         pod a i=0 failed fails=0 ended=4
         pod b i=1 ready
         pod c i=2 ready",
        expect!["wait 6 s, active=2, ready=2, failed_indexes="],
    );
    check(
        "job indexed completions=3 parallelism=3 per_index=1 backoff=2147483647
         pod a i=0 failed fails=0 ended=15
         pod b i=1 ready
         pod c i=2 failed fails=0 ended=3",
        expect!["create 0, active=2, ready=1, failed_indexes="],
    );
    check(
        "job indexed completions=3 parallelism=3 per_index=1 backoff=2147483647
         pod a i=0 failed fails=0
         pod a2 i=0 ready fails=1
         pod b i=1 failed fails=1
         pod c i=2 ready",
        expect![[r#"
            create 0, active=2, ready=2, failed_indexes=1, counting failed a b
            release a b"#]],
    );
}

#[test]
fn failed_indexes_fail_the_job_in_the_end_or_past_their_limit() {
    check(
        "job indexed completions=3 parallelism=3 per_index=0 backoff=2147483647 completed=0,1
         pod c i=2 failed fails=0",
        expect![[r#"
            end, succeeded=2, completed=0,1, failed_indexes=2, counting failed c
            FailureTarget=True FailedIndexes: Job has failed indexes
            release c
            then Failed FailedIndexes"#]],
    );
    check(
        "job indexed completions=9 parallelism=3 per_index=0 max_failed=1 failed_indexes=4 failed=1
         pod a i=1 failed fails=0
         pod b i=2 ready",
        expect![[r#"
            end b, terminating=1, failed=1, failed_indexes=1,4, counting failed a b
            FailureTarget=True MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed indexes
            release a b
            then Failed MaxFailedIndexesExceeded"#]],
    );
}

#[test]
fn a_policy_may_fail_an_index_or_not_count() {
    check(
        "job indexed completions=3 parallelism=1 per_index=5 backoff=2147483647
         rule FailIndex exit In 9
         rule Ignore exit In 8
         pod a i=0 failed exit=9 fails=0
         pod b i=1 failed exit=8 fails=0",
        expect![[r#"
            create 1, active=1, failed_indexes=0, counting failed a
            release a"#]],
    );
}

#[test]
fn a_success_policy_needs_not_all() {
    check(
        "job indexed completions=9 parallelism=3
         success indexes=7-8
         success indexes=0-3 count=2
         pod a i=0 succeeded
         pod b i=2 succeeded
         pod c i=5 ready",
        expect![[r#"
            end c, terminating=1, succeeded=2, completed=0,2
            SuccessCriteriaMet=True SuccessPolicy: Matched rules at index 1
            release a b c
            then Complete SuccessPolicy"#]],
    );
    check(
        "job indexed completions=9 parallelism=3 completed=0-2 succeeded=3
         success count=4
         success indexes=1-3
         pod c i=5 ready",
        expect!["create 3 4, active=3, ready=1, succeeded=3, completed=0-2"],
    );
}

/// What a pod gets of its index.
#[test]
fn pods_know_their_index_and_what_came_before() {
    let text = "job indexed completions=3 parallelism=3 per_index=3 backoff=2147483647
         pod a i=0 failed fails=1 ignored=2";
    let fixture = parse(text);
    let job: Job = serde_json::from_value(fixture.job.clone()).unwrap();
    let spec = Spec::of(&job).unwrap();
    let (pass, _) = plan(observe(&fixture, &job, &spec), now());
    let of = |index| template::pod(&pass, Some(index));
    expect![[r#"
        {
          "apiVersion": "v1",
          "kind": "Pod",
          "metadata": {
            "annotations": {
              "batch.kubernetes.io/job-completion-index": "0",
              "batch.kubernetes.io/job-index-failure-count": "2",
              "batch.kubernetes.io/job-index-ignored-failure-count": "2"
            },
            "finalizers": [
              "batch.kubernetes.io/job-tracking"
            ],
            "generateName": "work-0-",
            "labels": {
              "app": "work",
              "batch.kubernetes.io/job-completion-index": "0"
            },
            "ownerReferences": [
              {
                "apiVersion": "batch/v1",
                "blockOwnerDeletion": true,
                "controller": true,
                "kind": "Job",
                "name": "work",
                "uid": "job"
              }
            ]
          },
          "spec": {
            "containers": [
              {
                "env": [
                  {
                    "name": "JOB_COMPLETION_INDEX",
                    "valueFrom": {
                      "fieldRef": {
                        "fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"
                      }
                    }
                  }
                ],
                "name": "c"
              }
            ],
            "hostname": "work-0",
            "restartPolicy": "Never"
          }
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&of(0)).unwrap());
    expect![[r#"
        {
          "batch.kubernetes.io/job-completion-index": "2",
          "batch.kubernetes.io/job-index-failure-count": "0"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&of(2).metadata.annotations).unwrap());
}

#[test]
fn the_prefix_of_a_long_name_leaves_room_for_the_index() {
    for (length, index) in [(10, 5), (55, 10), (63, 123)] {
        let mut fixture = parse("job indexed completions=200 parallelism=1");
        fixture.job["metadata"]["name"] = json!("n".repeat(length));
        let job: Job = serde_json::from_value(fixture.job.clone()).unwrap();
        let spec = Spec::of(&job).unwrap();
        let (pass, _) = plan(observe(&fixture, &job, &spec), now());
        let prefix = template::pod(&pass, Some(index))
            .metadata
            .generate_name
            .unwrap();
        assert!(
            prefix.len() <= 58 && prefix.ends_with(&format!("n-{index}-")),
            "{prefix}"
        );
    }
}
