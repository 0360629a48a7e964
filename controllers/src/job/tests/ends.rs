//! How jobs fail and succeed.

use super::*;

#[test]
fn too_many_failures_fail_the_job() {
    check(
        "job completions=1 backoff=0\npod a failed",
        expect![[r#"
            end, counting failed a
            FailureTarget=True BackoffLimitExceeded: Job has reached the specified backoff limit
            release a
            then Failed BackoffLimitExceeded"#]],
    );
    check(
        "job completions=3 parallelism=3 backoff=1 failed=1\npod a failed\npod b ready\npod c succeeded",
        expect![[r#"
            end b, terminating=1, failed=1, counting succeeded c, counting failed a b
            FailureTarget=True BackoffLimitExceeded: Job has reached the specified backoff limit
            release a b c
            then Failed BackoffLimitExceeded"#]],
    );
    check(
        "job completions=1 backoff=1\npod a failed ended=900",
        expect![[r#"
            create 1, active=1, counting failed a
            release a"#]],
    );
}

#[test]
fn restarts_in_place_count_towards_the_limit() {
    check(
        "job completions=1 backoff=3 onfailure\npod a restarts=2",
        expect!["nothing, active=1"],
    );
    check(
        "job completions=1 backoff=3 onfailure\npod a restarts=3",
        expect![[r#"
            end a, terminating=1, counting failed a
            FailureTarget=True BackoffLimitExceeded: Job has reached the specified backoff limit
            release a
            then Failed BackoffLimitExceeded"#]],
    );
    check(
        "job completions=1 backoff=0 onfailure\npod a restarts=1",
        expect![[r#"
            end a, terminating=1, counting failed a
            FailureTarget=True BackoffLimitExceeded: Job has reached the specified backoff limit
            release a
            then Failed BackoffLimitExceeded"#]],
    );
    check(
        "job completions=1 backoff=3\npod a restarts=9",
        expect!["nothing, active=1"],
    );
}

#[test]
fn a_deadline_ends_a_job_at_work() {
    check(
        "job completions=1 deadline=101 started=100\npod a",
        expect![[r#"
            nothing, active=1
            again in 1 s"#]],
    );
    check(
        "job completions=1 deadline=100 started=100\npod a",
        expect![[r#"
            end a, terminating=1, counting failed a
            FailureTarget=True DeadlineExceeded: Job was active longer than specified deadline
            release a
            then Failed DeadlineExceeded"#]],
    );
    check(
        "job completions=1 deadline=100 started=900 suspend",
        expect![[r#"
            remove none
            Suspended=True JobSuspended: Job suspended
            event Suspended"#]],
    );
}

#[test]
fn an_end_is_not_declared_before_the_cache_shows_all_pods() {
    check(
        "job completions=1 backoff=0 unsatisfied\npod a failed\npod b",
        expect![[r#"
            end b, terminating=1, counting failed a
            release a"#]],
    );
}

#[test]
fn the_first_rule_that_matches_decides_about_a_failure() {
    check(
        "job completions=2 parallelism=2
         rule FailJob exit In 3,42
         pod a failed exit=42
         pod b ready",
        expect![[r#"
            end b, terminating=1, counting failed a b
            FailureTarget=True PodFailurePolicy: Container c for pod default/a failed with exit code 42 matching FailJob rule at index 0
            release a b
            then Failed PodFailurePolicy"#]],
    );
    check(
        "job completions=1 backoff=0
         rule Ignore condition DisruptionTarget
         rule FailJob exit NotIn 7
         pod a failed condition=DisruptionTarget",
        expect![[r#"
            create 1, active=1
            release a"#]],
    );
    check(
        "job completions=1 backoff=0
         rule Count exit In 5
         rule Ignore exit In 5,6
         pod a failed exit=5",
        expect![[r#"
            end, counting failed a
            FailureTarget=True BackoffLimitExceeded: Job has reached the specified backoff limit
            release a
            then Failed BackoffLimitExceeded"#]],
    );
    check(
        "job completions=1
         rule FailJob condition ConfigIssue
         pod a failed condition=ConfigIssue",
        expect![[r#"
            end, counting failed a
            FailureTarget=True PodFailurePolicy: Pod default/a has condition ConfigIssue matching FailJob rule at index 0
            release a
            then Failed PodFailurePolicy"#]],
    );
    check(
        "job completions=1
         rule FailJob exit In 1 other
         pod a failed",
        expect![[r#"
            create 1, active=1, counting failed a
            release a"#]],
    );
    // With a policy, a pod is judged once it has failed.
    check(
        "job completions=1
         rule FailJob exit In 1
         pod a deleting",
        expect!["nothing, terminating=1"],
    );
}

#[test]
fn what_an_earlier_pass_decided_stands() {
    check(
        "job completions=1 condition=FailureTarget:BackoffLimitExceeded\npod a succeeded",
        expect![[r#"
            end, counting succeeded a
            FailureTarget=True BackoffLimitExceeded: told before
            release a
            then Failed BackoffLimitExceeded"#]],
    );
    check(
        "job completions=9 parallelism=3 condition=SuccessCriteriaMet:SuccessPolicy backoff=0
         pod a failed
         pod b ready",
        expect![[r#"
            end b, terminating=1, counting failed a
            SuccessCriteriaMet=True SuccessPolicy: told before
            release a b
            then Complete SuccessPolicy"#]],
    );
}

#[test]
fn the_last_success_completes_the_job() {
    check(
        "job completions=2 succeeded=1\npod a succeeded",
        expect![[r#"
            nothing, succeeded=1, counting succeeded a
            SuccessCriteriaMet=True CompletionsReached: Reached expected number of succeeded pods
            release a
            then Complete CompletionsReached"#]],
    );
    check(
        "job completions=2 succeeded=1\npod a succeeded\npod b ready",
        expect![[r#"
            remove b, terminating=1, succeeded=1, counting succeeded a
            SuccessCriteriaMet=True CompletionsReached: Reached expected number of succeeded pods
            release a b
            then Complete CompletionsReached"#]],
    );
    check(
        "job completions=0",
        expect![[r#"
        nothing
        SuccessCriteriaMet=True CompletionsReached: Reached expected number of succeeded pods
        then Complete CompletionsReached"#]],
    );
}

/// Decided, but Complete comes when all is counted and every pod is gone.
#[test]
fn an_end_waits_for_what_is_uncounted_or_leaving() {
    let end = super::super::conditions::new("Complete", true, "CompletionsReached", "m", now());
    let uncounted = |uids: &[&str]| {
        let uids = uids.iter().map(|uid| (*uid).to_owned()).collect();
        k8s_openapi::api::batch::v1::JobStatus {
            uncounted_terminated_pods: Some(k8s_openapi::api::batch::v1::UncountedTerminatedPods {
                succeeded: Some(uids),
                failed: None,
            }),
            ..Default::default()
        }
    };
    for (uids, terminating, ends) in [
        (&["a"][..], 0, false),
        (&[][..], 1, false),
        (&[][..], 0, true),
    ] {
        let mut status = uncounted(uids);
        assert_eq!(
            track::finish(&mut status, Some(&end), terminating, now()),
            ends
        );
        assert_eq!(status.completion_time.is_some(), ends);
        assert_eq!(status.conditions.is_some(), ends);
    }
    assert!(!track::finish(&mut uncounted(&[]), None, 0, now()));
}
