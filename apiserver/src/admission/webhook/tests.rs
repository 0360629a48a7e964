//! Which requests concern which webhooks, and what these are shown.

use super::form::{Form, Shown, operation_options};
use super::select;
use super::*;
use crate::admission::How;
use crate::admission::tests::{Asked, as_user};
use crate::authenticate::User;
use crate::options::DeleteOptions;
use crate::query::Query;
use crate::view::tests::Objects;
use coracle_api::object::Object;
use expect_test::{Expect, expect};
use futures::FutureExt;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::Instant;

fn converter() -> Converter {
    Webhooks::new(view(), authorizer(), Tunnels::new(Default::default())).converter()
}

/// Of what waits for nobody.
fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("nobody is asked")
}

fn shown_of(asked: &Attributes<'_>, object: Option<&Object>) -> Shown {
    now(Shown::of(&converter(), Form::asked(asked), asked, object)).unwrap()
}

fn hook(webhook: Value) -> Hook {
    let configuration = json!({ "metadata": { "name": "c" }, "webhooks": [webhook] });
    let configuration = Object::from_value(configuration).unwrap();
    Hook::of(&configuration).remove(0)
}

/// `OPERATIONS GROUPS VERSIONS RESOURCES SCOPE`, each with commas between; `-` is the core group.
fn rule(text: &str) -> Value {
    let mut words = text.split(' ').map(|word| {
        let all = word.split(',').map(|one| if one == "-" { "" } else { one });
        all.collect::<Vec<_>>()
    });
    let mut next = || words.next().unwrap_or_else(|| vec!["*"]);
    json!({
        "operations": next(), "apiGroups": next(), "apiVersions": next(), "resources": next(),
        "scope": next()[0],
    })
}

fn view() -> Arc<Objects> {
    let namespace =
        |name: &str, labels: Value| json!({ "metadata": { "name": name, "labels": labels } });
    Objects::new([
        ("namespaces", namespace("web", json!({ "env": "prod" }))),
        ("namespaces", namespace("lab", json!({}))),
    ])
}

fn authorizer() -> Arc<Authorizer> {
    Arc::new(Authorizer::new(view()))
}

/// In which form the webhook is asked, or why not.
fn selected(hook: &Hook, asked: &Asked<'_>, object: Option<&Value>) -> String {
    let view = view();
    let object = object.map(|object| Object::from_value(object.clone()).unwrap());
    match select::form(view.as_ref(), hook, &asked.attributes(), object.as_ref()) {
        Ok(Some(form)) => format!("{}/{}", form.api_version(), form.resource.plural),
        Ok(None) => "-".to_owned(),
        Err(status) => status.message,
    }
}

/// A rule, and for each request whether it means it.
fn check_rule(text: &str, policy: &str, expected: Expect) {
    let hook = hook(json!({ "rules": [rule(text)], "matchPolicy": policy }));
    let user = User::named("jane");
    let told: Vec<String> = [
        "CREATE pods web p",
        "UPDATE pods/status web p",
        "CONNECT pods/exec web p",
        "DELETE deployments web d",
        "UPDATE deployments/scale web d",
        "CREATE namespaces - web",
        "UPDATE nodes - n",
        "CREATE events web e",
    ]
    .iter()
    .map(|asked| format!("{asked}: {}", selected(&hook, &as_user(&user, asked), None)))
    .filter(|told| !told.ends_with(": -"))
    .collect();
    expected.assert_eq(&told.join("\n"));
}

#[test]
fn rules_mean_what_they_name() {
    check_rule(
        "CREATE - v1 pods *",
        "Exact",
        expect!["CREATE pods web p: v1/pods"],
    );
    check_rule(
        "* * * */* *",
        "Exact",
        expect![[r#"
            CREATE pods web p: v1/pods
            UPDATE pods/status web p: v1/pods
            CONNECT pods/exec web p: v1/pods
            DELETE deployments web d: apps/v1/deployments
            UPDATE deployments/scale web d: autoscaling/v1/deployments
            CREATE namespaces - web: v1/namespaces
            UPDATE nodes - n: v1/nodes
            CREATE events web e: v1/events"#]],
    );
    check_rule(
        "* - * pods/* *",
        "Exact",
        expect![[r#"
            CREATE pods web p: v1/pods
            UPDATE pods/status web p: v1/pods
            CONNECT pods/exec web p: v1/pods"#]],
    );
    check_rule(
        "DELETE,UPDATE apps * *,*/scale *",
        "Exact",
        expect![[r#"
            DELETE deployments web d: apps/v1/deployments
            UPDATE deployments/scale web d: autoscaling/v1/deployments"#]],
    );
    check_rule("* apps v1beta1 * *", "Exact", expect![""]);
}

#[test]
fn a_namespace_is_in_none() {
    check_rule(
        "CREATE,UPDATE - * * Cluster",
        "Exact",
        expect![[r#"
            CREATE namespaces - web: v1/namespaces
            UPDATE nodes - n: v1/nodes"#]],
    );
    check_rule(
        "CREATE - * * Namespaced",
        "Exact",
        expect![[r#"
            CREATE pods web p: v1/pods
            CREATE events web e: v1/events"#]],
    );
}

#[test]
fn equivalent_resources_are_meant_too_where_that_is_asked_for() {
    let other = "CREATE events.k8s.io v1 events *";
    check_rule(other, "Exact", expect![""]);
    check_rule(
        other,
        "Equivalent",
        expect!["CREATE events web e: events.k8s.io/v1/events"],
    );
}

/// Labels of the object and of the old one, as they are selected with `app=web`.
#[test]
fn labels_of_either_state_select() {
    let hook = hook(json!({
        "rules": [rule("*")],
        "objectSelector": { "matchLabels": { "app": "web" } },
    }));
    let labelled = |app: &str| json!({ "metadata": { "labels": { "app": app } } });
    let user = User::named("jane");
    let told = |new: Option<Value>, old: Option<Value>| {
        let old = old.map(|old| Object::from_value(old).unwrap());
        let mut asked = as_user(&user, "UPDATE configmaps web c");
        asked.old = old.as_ref();
        selected(&hook, &asked, new.as_ref()) != "-"
    };
    assert!(told(Some(labelled("web")), None));
    assert!(told(Some(labelled("db")), Some(labelled("web"))));
    assert!(told(None, Some(labelled("web"))));
    assert!(!told(Some(labelled("db")), Some(labelled("db"))));
    assert!(!told(Some(json!({})), None));
    // A Scale has no labels, whatever its parent has.
    let parent = Object::from_value(labelled("web")).unwrap();
    let mut scale = as_user(&user, "UPDATE deployments/scale web d");
    scale.old = Some(&parent);
    let hook = super::tests::hook(json!({
        "rules": [rule("* * * */*")],
        "objectSelector": { "matchLabels": { "app": "web" } },
    }));
    assert_eq!(selected(&hook, &scale, Some(&labelled("web"))), "-");
}

#[test]
fn a_namespace_selects_what_is_in_it_and_itself() {
    let hook = hook(json!({
        "rules": [rule("*")],
        "namespaceSelector": { "matchLabels": { "env": "prod" } },
    }));
    let user = User::named("jane");
    let told = |asked: &str, object: Option<Value>| {
        selected(&hook, &as_user(&user, asked), object.as_ref())
    };
    assert_eq!(told("CREATE pods web p", None), "v1/pods");
    assert_eq!(told("CREATE pods lab p", None), "-");
    assert_eq!(
        told("CREATE pods gone p", None),
        "namespaces \"gone\" not found"
    );
    // What is in no namespace is never left out.
    assert_eq!(told("CREATE nodes - n", None), "v1/nodes");
    let prod = || Some(json!({ "metadata": { "labels": { "env": "prod" } } }));
    assert_eq!(told("CREATE namespaces - new", prod()), "v1/namespaces");
    assert_eq!(told("UPDATE namespaces web web", Some(json!({}))), "-");
    assert_eq!(told("DELETE namespaces web web", None), "v1/namespaces");
    assert_eq!(told("DELETE namespaces lab lab", None), "-");
}

#[test]
fn what_guards_admission_is_not_guarded_by_it() {
    let webhooks = Webhooks::new(view(), authorizer(), Tunnels::new(Default::default()));
    let user = User::named("jane");
    let concerns = |text: &str| webhooks.concerns(Does::Judge, &as_user(&user, text).attributes());
    assert!(!concerns("CREATE pods web p"));
    webhooks
        .lists
        .put(Does::Judge, Arc::from([Arc::new(hook(json!({})))]));
    let all = [
        "CREATE pods web p",
        "DELETE mutatingwebhookconfigurations - m",
        "CREATE validatingadmissionpolicybindings - v",
        "CONNECT pods/exec web p",
        "CONNECT pods/log web p",
        "DELETE pods/eviction web p",
    ];
    let concerned: Vec<&str> = all.into_iter().filter(|text| concerns(text)).collect();
    assert_eq!(concerned, ["CREATE pods web p", "CONNECT pods/exec web p"]);
}

fn check_conditions(conditions: Value, expected: Expect) {
    let hook = hook(json!({ "rules": [rule("*")], "matchConditions": conditions }));
    let user = User::named("jane");
    let asked = as_user(&user, "CREATE deployments web d");
    let object = json!({ "metadata": { "name": "d" }, "spec": { "replicas": 3 } });
    let object = Object::from_value(object).unwrap();
    let asked = asked.attributes();
    let shown = shown_of(&asked, Some(&object));
    let told = match select::meets_conditions(&authorizer(), &hook, &asked, &shown) {
        Ok(met) => met.to_string(),
        Err(status) => format!("{}: {}", status.code, status.message),
    };
    expected.assert_eq(&told);
}

#[test]
fn conditions_must_all_hold() {
    let condition = |text: &str| json!({ "name": "x", "expression": text });
    let all = |texts: &[&str]| texts.iter().map(|text| condition(text)).collect::<Value>();
    check_conditions(
        all(&[
            "object.spec.replicas > 2 && oldObject == null",
            "request.userInfo.username == 'jane' && request.kind.kind == 'Deployment'",
            "request.operation == 'CREATE' && request.namespace == 'web' && !request.dryRun",
            "!has(object.metadata.labels)",
            "!authorizer.group('apps').resource('deployments').namespace('web').check('x').allowed()",
            "authorizer.requestResource.check('create').reason() == ''",
            "!authorizer.path('/healthz').check('get').errored()",
        ]),
        expect!["true"],
    );
    check_conditions(all(&["object.spec.replicas == 4"]), expect!["false"]);
    check_conditions(
        all(&["object.spec.paused == true", "true"]),
        expect![[
            r#"403: deployments.apps "d" is forbidden: expression 'object.spec.paused == true' resulted in error: no such key: paused"#
        ]],
    );
    // One that does not hold decides.
    check_conditions(
        all(&["object.spec.paused == true", "false"]),
        expect!["false"],
    );
}

#[test]
fn failures_of_conditions_leave_out_webhooks_that_may_fail() {
    let hook = hook(json!({
        "rules": [rule("*")],
        "failurePolicy": "Ignore",
        "matchConditions": [{ "name": "x", "expression": "object.none == 1" }],
    }));
    let user = User::named("jane");
    let asked = as_user(&user, "CREATE configmaps web c");
    let asked = asked.attributes();
    let shown = shown_of(&asked, None);
    assert!(!select::meets_conditions(&authorizer(), &hook, &asked, &shown).unwrap());
}

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

#[test]
fn a_scale_is_shown_for_a_scale_and_put_back() {
    let user = User::named("jane");
    let asked = as_user(&user, "UPDATE deployments/scale web d");
    let asked = asked.attributes();
    let form = Form::asked(&asked);
    let mut deployment = object(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" },
        "spec": { "replicas": 2, "selector": { "matchLabels": { "a": "b" } } },
    }));
    let mut shown = now(form.show(&converter(), &asked, &deployment)).unwrap();
    assert_eq!(
        (shown.kind(), shown.api_version()),
        ("Scale", "autoscaling/v1")
    );
    assert_eq!(shown.i64(&["spec", "replicas"]), Some(2));
    shown.set(&["spec", "replicas"], 5.into());
    now(form.take_back(&converter(), &asked, shown, &mut deployment)).unwrap();
    assert_eq!(deployment.i64(&["spec", "replicas"]), Some(5));
    assert_eq!(deployment.kind(), "Deployment");
}

#[test]
fn another_version_is_shown_and_put_back() {
    let user = User::named("jane");
    let asked = as_user(&user, "CREATE events web e");
    let asked = asked.attributes();
    let form = Form::equivalents(&asked).next().unwrap();
    let mut event = object(json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": "e" }, "message": "m",
        "involvedObject": { "kind": "Pod" },
    }));
    let mut shown = now(form.show(&converter(), &asked, &event)).unwrap();
    assert_eq!(shown.api_version(), "events.k8s.io/v1");
    assert_eq!(shown.str(&["note"]), "m");
    assert_eq!(shown.str(&["regarding", "kind"]), "Pod");
    shown.set(&["note"], "n".into());
    now(form.take_back(&converter(), &asked, shown, &mut event)).unwrap();
    assert_eq!(event.api_version(), "v1");
    assert_eq!(event.str(&["message"]), "n");
}

#[test]
fn a_connection_shows_its_options() {
    let user = User::named("jane");
    let told = |text: &str, query: &str, path: &str| {
        let query = Query::parse(query);
        let asked = as_user(&user, text);
        let attributes = Attributes {
            how: How::Connection {
                query: &query,
                path,
            },
            ..asked.attributes()
        };
        let shown = shown_of(&attributes, None);
        Value::Object(shown.object.unwrap().root().clone()).to_string()
    };
    expect![[r#"{"apiVersion":"v1","command":["ls","-l"],"container":"c","kind":"PodExecOptions","stdin":true,"stdout":true}"#]]
        .assert_eq(&told(
            "CONNECT pods/exec web p",
            "command=ls&command=-l&container=c&stdin=true&stdout=1&tty=false",
            "",
        ));
    expect![[r#"{"apiVersion":"v1","kind":"PodAttachOptions","stderr":true}"#]].assert_eq(&told(
        "CONNECT pods/attach web p",
        "stderr=true",
        "",
    ));
    expect![[r#"{"apiVersion":"v1","kind":"PodPortForwardOptions","ports":[80,81]}"#]]
        .assert_eq(&told("CONNECT pods/portforward web p", "ports=80,81", ""));
    expect![[r#"{"apiVersion":"v1","kind":"ServiceProxyOptions","path":"/a/b"}"#]]
        .assert_eq(&told("CONNECT services/proxy web s", "x=y", "/a/b"));
}

#[test]
fn options_are_those_of_the_operation() {
    let user = User::named("jane");
    let query = Query::parse("fieldManager=me&fieldValidation=Strict&force=true&dryRun=All");
    let asked = as_user(&user, "UPDATE pods web p");
    let written = Attributes {
        how: How::Write(&query),
        dry_run: true,
        ..asked.attributes()
    };
    expect![[r#"{"apiVersion":"meta.k8s.io/v1","dryRun":["All"],"fieldManager":"me","fieldValidation":"Strict","kind":"UpdateOptions"}"#]]
        .assert_eq(&operation_options(&written).to_string());
    let deletion = json!({
        "gracePeriodSeconds": 5, "propagationPolicy": "Orphan", "preconditions": { "uid": "u" },
    });
    let deletion = DeleteOptions::from_body(&deletion).unwrap();
    let asked = as_user(&user, "DELETE pods web p");
    let deleted = Attributes {
        how: How::Deletion(&deletion),
        ..asked.attributes()
    };
    expect![[r#"{"apiVersion":"meta.k8s.io/v1","gracePeriodSeconds":5,"kind":"DeleteOptions","preconditions":{"uid":"u"},"propagationPolicy":"Orphan"}"#]]
        .assert_eq(&operation_options(&deleted).to_string());
    let asked = as_user(&user, "CONNECT pods/exec web p");
    assert!(operation_options(&asked.attributes()).is_null());
}

/// What becomes of a request whose webhook fails, with so much time left to it.
async fn failed(policy: &str, left: Option<Duration>) -> Result<Option<()>, String> {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/", closed.local_addr().unwrap().port());
    drop(closed);
    let hook = hook(json!({
        "name": "a.b.c", "failurePolicy": policy, "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5, "sideEffects": "None", "clientConfig": { "url": url },
    }));
    let webhooks = Webhooks::new(view(), authorizer(), Tunnels::new(Default::default()));
    let user = User::named("jane");
    let asked = as_user(&user, "CREATE configmaps web c");
    let asked = Attributes {
        deadline: left.map(|left| Instant::now() + left),
        ..asked.attributes()
    };
    let shown = shown_of(&asked, None);
    let called = webhooks.call(Does::Judge, &hook, &asked, &shown).await;
    let called = called.map(|_| ());
    let settled = webhooks.settle(Does::Judge, &hook, &asked, Instant::now(), called);
    settled.map_err(|status| format!("{} {}: {}", status.code, status.reason, status.message))
}

#[tokio::test]
async fn a_request_without_time_leaves_out_no_webhook() {
    let late = "504 Timeout: request did not complete within requested timeout";
    let none = Some(Duration::ZERO);
    assert_eq!(failed("Ignore", none).await, Err(late.to_owned()));
    assert_eq!(failed("Ignore", None).await, Ok(None));
    let much = Some(Duration::from_secs(600));
    assert_eq!(failed("Ignore", much).await, Ok(None));
    let told = failed("Fail", None).await.unwrap_err();
    assert!(
        told.starts_with(
            "500 InternalError: Internal error occurred: failed calling webhook \"a.b.c\""
        ),
        "{told}"
    );
}
