//! A spec and a status in, what is wrong out.

use super::*;
use expect_test::{Expect, expect};
use serde_json::json;

fn check(status: Value, expected: Expect) {
    let spec = json!({
        "initContainers": [{ "name": "first" }],
        "containers": [{ "name": "main",
            "resources": { "requests": { "example.com/gpu": "1", "cpu": "1" } } }],
        "resourceClaims": [{ "name": "a", "resourceClaimTemplateName": "t" }],
    });
    let errors = of_status(&spec, &status, &Path::root("status"));
    let said: Vec<String> = errors
        .iter()
        .map(|one| format!("{}: {}", one.path.as_str(), one.body()))
        .collect();
    expected.assert_eq(&said.join("\n"));
}

#[test]
fn claims_that_were_made() {
    check(json!({}), expect![""]);
    let one = json!({ "name": "a", "resourceClaimName": "p-a-x1" });
    check(json!({ "resourceClaimStatuses": [one] }), expect![""]);
    check(
        json!({ "resourceClaimStatuses": [{ "name": "a" }] }),
        expect![""],
    );
    let other = json!({ "name": "b", "resourceClaimName": "B" });
    check(
        json!({ "resourceClaimStatuses": [one, one, other] }),
        expect![[r#"
            status.resourceClaimStatuses[1].name: Duplicate value: "a"
            status.resourceClaimStatuses[2].name: Invalid value: "b": must match the name of an entry in `spec.resourceClaims`
            status.resourceClaimStatuses[2].resourceClaimName: Invalid value: "B": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]],
    );
}

#[test]
fn a_claim_for_extended_resources() {
    let gpu = json!({ "containerName": "main", "resourceName": "example.com/gpu",
        "requestName": "container-1-request-1" });
    let status = |mappings: Value, name: &str| {
        let one = json!({ "requestMappings": mappings, "resourceClaimName": name });
        json!({ "extendedResourceClaimStatus": one })
    };
    check(status(json!([gpu]), "p-extended-resources-x1"), expect![""]);
    check(
        json!({ "extendedResourceClaimStatus": {} }),
        expect![[r#"
        status.extendedResourceClaimStatus.requestMappings: Required value: at least one request mapping is required
        status.extendedResourceClaimStatus.resourceClaimName: Required value"#]],
    );
    let mut of_nobody = gpu.clone();
    of_nobody["containerName"] = "other".into();
    let mut not_asked = gpu.clone();
    not_asked["containerName"] = "first".into();
    not_asked["requestName"] = "No".into();
    check(
        status(json!([gpu, gpu, of_nobody, not_asked]), "-"),
        expect![[r#"
            status.extendedResourceClaimStatus.requestMappings[1].containerName: Duplicate value: "main"
            status.extendedResourceClaimStatus.requestMappings[1].resourceName: Duplicate value: "example.com/gpu"
            status.extendedResourceClaimStatus.requestMappings[1].requestName: Duplicate value: "container-1-request-1"
            status.extendedResourceClaimStatus.requestMappings[2].containerName: Invalid value: "other": must match the name of an entry in spec.initContainers.name or spec.containers.name
            status.extendedResourceClaimStatus.requestMappings[3].resourceName: Invalid value: "example.com/gpu": must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests
            status.extendedResourceClaimStatus.requestName: Invalid value: "No": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            status.extendedResourceClaimStatus.resourceClaimName: Invalid value: "-": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]],
    );
}
