//! Defaults, validation and printed columns of priority levels.

use crate::kinds::testing::{check_errors, check_row, check_spec};
use expect_test::expect;
use serde_json::{Value, json};

const PLURAL: &str = "prioritylevelconfigurations";

fn level(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": { "name": name }, "spec": spec,
    })
}

fn queuing(queuing: Value) -> Value {
    let response = json!({ "type": "Queue", "queuing": queuing });
    json!({ "type": "Limited", "limited": { "limitResponse": response } })
}

#[test]
fn defaulted() {
    check_spec(
        PLURAL,
        level("mine", queuing(json!({}))),
        expect![[r#"
        limited: {"lendablePercent":0,"limitResponse":{"queuing":{"handSize":8,"queueLengthLimit":50,"queues":64},"type":"Queue"},"nominalConcurrencyShares":30}
        type: "Limited""#]],
    );
    let exempt = json!({ "type": "Exempt", "exempt": {} });
    check_spec(
        PLURAL,
        level("exempt", exempt),
        expect![[r#"
        exempt: {"lendablePercent":0,"nominalConcurrencyShares":0}
        type: "Exempt""#]],
    );
}

#[test]
fn printed() {
    check_row(
        PLURAL,
        level("mine", queuing(json!({}))),
        0,
        expect![[r#"
        Name: mine
        Type: Limited
        NominalConcurrencyShares: 30 (number)
        Queues: 64 (number)
        HandSize: 8 (number)
        QueueLengthLimit: 50 (number)
        Age: <unknown>"#]],
    );
    let exempt = json!({ "type": "Exempt", "exempt": {} });
    check_row(
        PLURAL,
        level("exempt", exempt),
        0,
        expect![[r#"
        Name: exempt
        Type: Exempt
        NominalConcurrencyShares: <none>
        Queues: <none>
        HandSize: <none>
        QueueLengthLimit: <none>
        Age: <unknown>"#]],
    );
}

#[test]
fn types() {
    check_errors(
        PLURAL,
        level("mine", json!({})),
        expect![[r#"spec.type: Unsupported value: "": supported values: "Exempt", "Limited""#]],
    );
    check_errors(
        PLURAL,
        level("mine", json!({ "type": "Exempt", "limited": {} })),
        expect![[r#"
            spec.type: Invalid value: "Exempt": must be 'Exempt' if and only if `name` is 'exempt'
            spec.limited: Forbidden: must be nil if the type is not Limited"#]],
    );
    check_errors(
        PLURAL,
        level("mine", json!({ "type": "Limited", "exempt": {} })),
        expect![[r#"
            spec.exempt: Forbidden: must be nil if the type is Limited
            spec.limited: Required value: must not be empty when type is Limited"#]],
    );
    check_errors(
        PLURAL,
        level("mine", json!({ "type": "Odd" })),
        expect![[r#"spec.type: Unsupported value: "Odd": supported values: "Exempt", "Limited""#]],
    );
}

#[test]
fn limits() {
    check_errors(
        PLURAL,
        level(
            "mine",
            json!({
                "type": "Limited",
                "limited": {
                    "nominalConcurrencyShares": -1,
                    "lendablePercent": 101,
                    "borrowingLimitPercent": -1,
                    "limitResponse": { "type": "Reject", "queuing": {} },
                },
            }),
        ),
        expect![[r#"
            spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer
            spec.limited.limitResponse.queuing: Forbidden: must be nil if limited.limitResponse.type is not Limited
            spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive
            spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer"#]],
    );
    check_errors(
        PLURAL,
        level(
            "mine",
            json!({ "type": "Limited", "limited": { "limitResponse": { "type": "Queue" } } }),
        ),
        expect![
            "spec.limited.limitResponse.queuing: Required value: must not be empty if limited.limitResponse.type is Limited"
        ],
    );
}

#[test]
fn queues() {
    let check = |numbers: Value, expected: expect_test::Expect| {
        check_errors(PLURAL, level("mine", queuing(numbers)), expected);
    };
    check(
        json!({ "queues": -1, "handSize": -1, "queueLengthLimit": -1 }),
        expect![[r#"
            spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive
            spec.limited.limitResponse.queuing.queues: Invalid value: -1: must be positive
            spec.limited.limitResponse.queuing.handSize: Invalid value: -1: must be positive"#]],
    );
    check(
        json!({ "queues": 10_000_001, "handSize": 1 }),
        expect![
            "spec.limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater than 10000000"
        ],
    );
    check(
        json!({ "queues": 4, "handSize": 5 }),
        expect![
            "spec.limited.limitResponse.queuing.handSize: Invalid value: 5: should not be greater than queues (4)"
        ],
    );
    check(json!({ "queues": 128, "handSize": 8 }), expect![[""]]);
    check(
        json!({ "queues": 128, "handSize": 9 }),
        expect![
            "spec.limited.limitResponse.queuing.handSize: Invalid value: 9: required entropy bits of deckSize 128 and handSize 9 should not be greater than 60"
        ],
    );
}

#[test]
fn the_mandatory_are_fixed() {
    let exempt = json!({ "type": "Exempt", "exempt": { "lendablePercent": 5 } });
    check_errors(PLURAL, level("exempt", exempt), expect![[""]]);
    let reject = json!({
        "type": "Limited",
        "limited": { "nominalConcurrencyShares": 9, "limitResponse": { "type": "Reject" } },
    });
    check_errors(
        PLURAL,
        level("catch-all", reject),
        expect![[
            r#"spec: Invalid value: {"Type":"Limited","Limited":{"NominalConcurrencyShares":9,"LimitResponse":{"Type":"Reject","Queuing":null},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":null}: spec of 'catch-all' must equal the fixed value"#
        ]],
    );
}
