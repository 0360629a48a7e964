//! What admission policies say of writes, from the moment on that they are there.

use super::site::{CONFIG_MAPS, PATIENCE, Site, audited_site, config_map, site};
use expect_test::expect;
use serde_json::{Value, json};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

pub fn policy(name: &str, rule: Value, spec: Value) -> Value {
    let mut all = json!({ "matchConstraints": { "resourceRules": [rule] } });
    for (key, value) in spec.as_object().unwrap() {
        all[key] = value.clone();
    }
    json!({ "metadata": { "name": name }, "spec": all })
}

pub fn rule(group: &str, resource: &str) -> Value {
    json!({
        "apiGroups": [group], "apiVersions": ["v1"], "resources": [resource],
        "operations": ["CREATE", "UPDATE"],
    })
}

/// Adds a policy with a binding of its name, and a validation by which to see that it is in effect.
pub async fn enact(site: &Site, policy: Value, actions: &[&str]) {
    enact_bound(site, policy, json!({ "validationActions": actions })).await;
}

/// The same with what the binding says.
pub async fn enact_bound(site: &Site, mut policy: Value, mut spec: Value) {
    let name = policy["metadata"]["name"].as_str().unwrap().to_owned();
    let rules = &mut policy["spec"]["matchConstraints"]["resourceRules"];
    rules.as_array_mut().unwrap().push(json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["serviceaccounts"],
        "operations": ["CREATE"],
    }));
    let marker = json!({
        "expression": "request.resource.resource != 'serviceaccounts'", "message": "in effect",
    });
    let validations = policy["spec"]["validations"].as_array_mut().unwrap();
    for one in validations.iter_mut() {
        let expression = one["expression"].as_str().unwrap();
        let guarded = format!("request.resource.resource == 'serviceaccounts' || ({expression})");
        one["expression"] = guarded.into();
    }
    validations.push(marker);
    site.post(&format!("{GROUP}/validatingadmissionpolicies"), &policy)
        .await
        .ok();
    spec["policyName"] = name.as_str().into();
    let binding = json!({ "metadata": { "name": name }, "spec": spec });
    site.post(
        &format!("{GROUP}/validatingadmissionpolicybindings"),
        &binding,
    )
    .await
    .ok();
    let account = json!({ "metadata": { "name": "marker" } });
    let trial = "/api/v1/namespaces/kube-public/serviceaccounts?dryRun=All";
    let asked = async {
        loop {
            let answer = site.post(trial, &account).await;
            let mut warned = answer.headers.get_all("warning").iter();
            let is_warned = warned.any(|one| one.to_str().unwrap().contains("in effect"));
            if is_warned || !answer.status.is_success() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, asked).await;
    waited.unwrap_or_else(|_| panic!("{name} is not in effect"));
}

fn deployment(name: &str, replicas: i64) -> Value {
    let labels = json!({ "app": name });
    json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "c", "image": "a" }] },
            },
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_judges_deployments_as_they_are_to_be_stored() {
    let site = site().await;
    site.run();
    let spec = json!({
        "variables": [
            { "name": "replicas", "expression": "object.spec.replicas" },
            { "name": "oddReplicas", "expression": "variables.replicas % 2 == 1" },
        ],
        "validations": [
            {
                "expression": "variables.replicas > 1",
                "messageExpression": "'wants more than ' + string(variables.replicas)",
            },
            { "expression": "variables.oddReplicas" },
            { "expression": "object.spec.template.spec.restartPolicy == 'Always'" },
        ],
    });
    enact(
        &site,
        policy("p", rule("apps", "deployments"), spec),
        &["Deny"],
    )
    .await;
    let few = site.post(DEPLOYMENTS, &deployment("few", 1)).await;
    assert_eq!(
        few.json()["details"]["causes"][0]["message"]
            .as_str()
            .map(|one| one.len() > 10),
        Some(true)
    );
    expect![[
        r#"422 Invalid: deployments.apps "few" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: wants more than 1"#
    ]]
    .assert_eq(&few.failure());
    let even = site.post(DEPLOYMENTS, &deployment("even", 2)).await;
    assert_eq!(even.status, 422);
    site.post(DEPLOYMENTS, &deployment("web", 3)).await.ok();
    // A scale is another resource, and not meant.
    let scale = json!({ "spec": { "replicas": 1 } });
    let path = format!("{DEPLOYMENTS}/web/scale");
    site.patch(&path, "merge-patch", &scale).await.ok();
    let path = format!("{DEPLOYMENTS}/web");
    let patched = site
        .patch(&path, "merge-patch", &json!({ "spec": { "replicas": 4 } }))
        .await;
    assert_eq!(patched.status, 422);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_warns_audits_and_goes_with_its_binding() {
    let site = audited_site().await;
    site.run();
    let annotation = "request.resource.resource == 'configmaps' ? string(object.data.key) : ''";
    let spec = json!({
        "validations": [{ "expression": "object.data.key != 'bad' && 1 < 2" }],
        "auditAnnotations": [{ "key": "seen", "valueExpression": annotation }],
    });
    enact(
        &site,
        policy("p", rule("", "configmaps"), spec),
        &["Warn", "Audit"],
    )
    .await;
    let made = site.post(CONFIG_MAPS, &config_map("m", "bad")).await;
    let warnings: Vec<&str> = made
        .headers
        .get_all("warning")
        .iter()
        .map(|one| one.to_str().unwrap())
        .collect();
    let text = "failed expression: request.resource.resource == 'serviceaccounts' || \
                (object.data.key != 'bad' && 1 < 2)";
    let told = format!(
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': {text}\""
    );
    assert_eq!(warnings, [told]);
    made.ok();
    let event = site.recorded(CONFIG_MAPS).await;
    let annotations = &event["annotations"];
    assert_eq!(annotations["p/seen"], "bad");
    let failure = annotations["validation.policy.admission.k8s.io/validation_failure"].as_str();
    let failure: Value = serde_json::from_str(failure.unwrap()).unwrap();
    let wanted = json!([{
        "message": text, "policy": "p", "binding": "p", "expressionIndex": 0,
        "validationActions": ["Warn", "Audit"],
    }]);
    assert_eq!(failure, wanted);
    site.delete(
        &format!("{GROUP}/validatingadmissionpolicybindings/p"),
        &Value::Null,
    )
    .await
    .ok();
    let gone = async {
        let trial = format!("{CONFIG_MAPS}?dryRun=All");
        loop {
            let made = site.post(&trial, &config_map("n", "bad")).await;
            if made.headers.get("warning").is_none() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
}

/// A mutating policy with a binding of its name; waits until it marks what is made.
pub async fn enact_change(site: &Site, name: &str, rule: Value, mutations: Value) {
    let marker = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["serviceaccounts"],
        "operations": ["CREATE"],
    });
    let policy = json!({
        "metadata": { "name": name },
        "spec": {
            "matchConstraints": { "resourceRules": [rule, marker] },
            "mutations": mutations, "reinvocationPolicy": "Never",
        },
    });
    site.post(&format!("{GROUP}/mutatingadmissionpolicies"), &policy)
        .await
        .ok();
    let binding = json!({ "metadata": { "name": name }, "spec": { "policyName": name } });
    site.post(
        &format!("{GROUP}/mutatingadmissionpolicybindings"),
        &binding,
    )
    .await
    .ok();
    let account = json!({ "metadata": { "name": "marker" } });
    let trial = "/api/v1/namespaces/kube-public/serviceaccounts?dryRun=All";
    let asked = async {
        loop {
            let made = site.post(trial, &account).await.ok();
            if made["metadata"]["annotations"]["by"] == name {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, asked).await;
    waited.unwrap_or_else(|_| panic!("{name} is not in effect"));
}

pub fn mark(name: &str) -> Value {
    let expression =
        format!("Object{{metadata: Object.metadata{{annotations: {{'by': '{name}'}}}}}}");
    json!({ "patchType": "ApplyConfiguration", "applyConfiguration": { "expression": expression } })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_changes_deployments_before_they_are_checked() {
    let site = site().await;
    site.run();
    let sidecar = json!({ "patchType": "JSONPatch", "jsonPatch": { "expression": "
        request.resource.resource == 'deployments' ? [
            JSONPatch{op: 'add', path: '/spec/template/spec/initContainers', value: [
                Object.spec.template.spec.initContainers{
                    name: 'mesh', image: 'mesh:1', restartPolicy: 'Always'}]},
            JSONPatch{op: 'replace', path: '/spec/replicas', value: 2}
        ] : []" } });
    let mutations = json!([mark("p"), sidecar]);
    enact_change(&site, "p", rule("apps", "deployments"), mutations).await;
    let made = site.post(DEPLOYMENTS, &deployment("web", 1)).await.ok();
    assert_eq!(made["metadata"]["annotations"]["by"], "p");
    assert_eq!(made["spec"]["replicas"], 2);
    let mesh = &made["spec"]["template"]["spec"]["initContainers"][0];
    assert_eq!(
        (&mesh["name"], &mesh["image"]),
        (&json!("mesh"), &json!("mesh:1"))
    );
    // What was added is defaulted as what is written.
    assert_eq!(mesh["imagePullPolicy"], "IfNotPresent");
    let shown = site.get("/metrics").await;
    let text = String::from_utf8_lossy(&shown.body).into_owned();
    let counted = "apiserver_mutating_admission_policy_check_total{error_type=\"no_error\",\
                   policy=\"p\",policy_binding=\"p\"}";
    assert!(text.contains(counted));
}

/// It fails for all there is, and is mended all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_changes_writes_can_always_be_mended() {
    let site = site().await;
    site.run();
    let all = json!({
        "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"],
        "operations": ["CREATE", "UPDATE"],
    });
    let missing = "[JSONPatch{op: 'remove', path: '/nobody'}]";
    let broken = json!({ "patchType": "JSONPatch", "jsonPatch": { "expression": missing } });
    let policies = format!("{GROUP}/mutatingadmissionpolicies");
    let bindings = format!("{GROUP}/mutatingadmissionpolicybindings");
    let policy = json!({
        "metadata": { "name": "p" },
        "spec": {
            "matchConstraints": { "resourceRules": [all] },
            "mutations": [broken], "reinvocationPolicy": "Never",
        },
    });
    site.post(&policies, &policy).await.ok();
    let binding = json!({ "metadata": { "name": "p" }, "spec": { "policyName": "p" } });
    site.post(&bindings, &binding).await.ok();
    let trial = format!("{CONFIG_MAPS}?dryRun=All");
    let written = async |is_let_in: bool| {
        let settled = async {
            let map = config_map("marker", "a");
            while site.post(&trial, &map).await.status.is_success() != is_let_in {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, settled).await.is_ok()
    };
    assert!(written(false).await, "the policy is not in effect");
    let labels = json!({ "metadata": { "labels": { "a": "b" } } });
    let patched = site
        .patch(&format!("{bindings}/p"), "merge-patch", &labels)
        .await;
    patched.ok();
    let mended = json!({ "spec": { "failurePolicy": "Ignore" } });
    let patched = site
        .patch(&format!("{policies}/p"), "merge-patch", &mended)
        .await;
    patched.ok();
    assert!(written(true).await, "the policy still stops writes");
}
