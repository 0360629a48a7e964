//! What is wrong with a configuration, as upstream says it.

use super::*;
use serde_json::json;

fn check(authenticator: Value) -> Vec<String> {
    let file = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [authenticator],
    });
    let configuration = Configuration::read(&file.to_string()).unwrap();
    let errors = validate(&configuration, &["https://own.example".to_owned()]);
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn an_issuer_is_an_https_url_with_audiences() {
    let errors = check(json!({
        "issuer": {
            "url": "http://user@own.example?x=1#y",
            "discoveryURL": "https://own.example",
            "audiences": ["a", "a"],
            "certificateAuthority": "nonsense",
            "egressSelectorType": "moon",
        },
        "claimMappings": { "username": { "claim": "sub" } },
    }));
    expect_test::expect![[r#"
        jwt[0].issuer.url: Invalid value: "http://user@own.example?x=1#y": URL scheme must be https
        jwt[0].issuer.url: Invalid value: "http://user@own.example?x=1#y": URL must not contain a username or password
        jwt[0].issuer.url: Invalid value: "http://user@own.example?x=1#y": URL must not contain a query
        jwt[0].issuer.url: Invalid value: "http://user@own.example?x=1#y": URL must not contain a fragment
        jwt[0].issuer.audiences[1]: Duplicate value: "a"
        jwt[0].issuer.audienceMatchPolicy: Invalid value: "": audienceMatchPolicy must be MatchAny for multiple audiences
        jwt[0].issuer.certificateAuthority: Invalid value: "<omitted>": data does not contain any valid RSA or ECDSA certificates
        jwt[0].issuer.egressSelectorType: Invalid value: "moon": egress selector must be either controlplane or cluster
        jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing"#]]
    .assert_eq(&errors.join("\n"));
}

#[test]
fn expressions_are_compiled_and_claims_named_once() {
    let errors = check(json!({
        "issuer": { "url": "https://own.example", "audiences": [] },
        "claimMappings": {
            "username": { "expression": "claims.email", "prefix": "x" },
            "groups": { "claim": "a", "expression": "b" },
            "uid": { "expression": "user.uid" },
            "extra": [
                { "key": "Example.com/a", "valueExpression": "" },
                { "key": "x.k8s.io/a", "valueExpression": "claims.a" },
            ],
        },
        "claimValidationRules": [
            {},
            { "claim": "a", "message": "m" },
            { "claim": "a" },
            { "expression": "1" },
            { "expression": "claims.a &&" },
        ],
        "userValidationRules": [{}, { "expression": "claims.a == 1" }],
    }));
    expect_test::expect![[r#"
        jwt[0].issuer.url: Invalid value: "https://own.example": URL must not overlap with disallowed issuers: [https://own.example]
        jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required
        jwt[0].claimValidationRules[0]: Required value: claim or expression is required
        jwt[0].claimValidationRules[1].message: Invalid value: "m": may not be specified when claim is set
        jwt[0].claimValidationRules[2].claim: Duplicate value: "a"
        jwt[0].claimValidationRules[3].expression: Invalid value: "1": must evaluate to bool
        jwt[0].claimValidationRules[4].expression: Invalid value: "claims.a &&": compilation failed: ERROR: <input>:1:12: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
         | claims.a &&
         | ...........^
        jwt[0].claimMappings.username.prefix: Invalid value: "x": may not be specified when expression is set
        jwt[0].claimMappings.groups: Invalid value: "": claim and expression can't both be set
        jwt[0].claimMappings.uid.expression: Invalid value: "user.uid": compilation failed: ERROR: <input>:1:1: undeclared reference to 'user' (in container '')
         | user.uid
         | ^
        jwt[0].claimMappings.extra[0].key: Invalid value: "Example.com": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        jwt[0].claimMappings.extra[0].key: Invalid value: "Example.com/a": must be lowercase
        jwt[0].claimMappings.extra[0].valueExpression: Required value
        jwt[0].claimMappings.extra[1].key: Invalid value: "x.k8s.io/a": k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use
        jwt[0].claimMappings.username.expression: Invalid value: "claims.email": claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression
        jwt[0].userValidationRules[0].expression: Required value
        jwt[0].userValidationRules[1].expression: Invalid value: "claims.a == 1": compilation failed: ERROR: <input>:1:1: undeclared reference to 'claims' (in container '')
         | claims.a == 1
         | ^"#]]
    .assert_eq(&errors.join("\n"));
}
