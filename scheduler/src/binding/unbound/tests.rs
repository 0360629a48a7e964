//! What users are told of a binding that failed, in upstream's words.

use super::*;
use serde_json::json;

fn told(step: Stage, error: StepError) -> String {
    Unbound::at(step, error).told()
}

#[test]
fn a_failure_names_the_step_and_the_plugin() {
    for (step, expected) in [
        (Stage::Reserve, r#"running Reserve plugin "X": broken"#),
        (Stage::Permit, "waiting on permit for pod: broken"),
        (Stage::PreBind, r#"running PreBind plugin "X": broken"#),
        (Stage::Bind, r#"running Bind plugin "X": broken"#),
    ] {
        let failure = Unbound::at(step, StepError::failed("X", "broken"));
        assert_eq!(failure.told(), expected);
        assert!(!failure.is_refusal());
    }
}

#[test]
fn a_refusal_is_told_of_the_one_node_and_later_by_itself() {
    for (step, expected) in [
        (Stage::Reserve, "0/1 nodes are available: 1 full."),
        (Stage::Permit, "0/1 nodes are available: 1 full."),
        (Stage::PreBind, "full"),
        (Stage::Bind, "full"),
    ] {
        let why = "full".to_owned();
        let refusal = Unbound::at(step, StepError::Refused { plugin: "X", why });
        assert_eq!(refusal.told(), expected);
        assert!(refusal.is_refusal());
    }
}

#[test]
fn a_refusal_of_the_server_is_told_in_its_words_alone() {
    let status = serde_json::from_value(json!({
        "status": "Failure", "code": 404, "reason": "NotFound",
        "message": "pods \"web\" not found",
    }));
    let error = kube::Error::Api(Box::new(status.unwrap()));
    assert_eq!(
        told(Stage::Bind, StepError::failed("DefaultBinder", error)),
        r#"running Bind plugin "DefaultBinder": pods "web" not found"#
    );
}
