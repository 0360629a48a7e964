//! What is recorded of a request, line by line.

use super::super::{LogSettings, Settings, id};
use super::*;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::BodyExt;

struct Site {
    audit: Option<Arc<Audit>>,
    directory: tempfile::TempDir,
}

fn site(rules: &str) -> Site {
    let directory = tempfile::tempdir().unwrap();
    let policy = directory.path().join("policy.yaml");
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}");
    std::fs::write(&policy, text).unwrap();
    let settings = Settings {
        policy_file: policy,
        log: LogSettings {
            path: Some(directory.path().join("audit.log")),
            age_days_max: 0,
            backups_max: 0,
            megabytes_max: 0,
        },
    };
    let now = "2026-06-01T00:00:00Z".parse().unwrap();
    let audit = Audit::open(&settings, Arc::new(move || now)).unwrap();
    Site {
        audit: Some(Arc::new(audit)),
        directory,
    }
}

impl Site {
    /// Asks as jane, reads `body` as a verb would, and gives `answer`.
    async fn ask(&self, method: Method, path: &str, body: &str, answer: (u16, Value)) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .header("user-agent", "kubectl/v1")
            .header("audit-id", "an-id")
            .body(())
            .unwrap();
        let (mut parts, ()) = request.into_parts();
        let info = Arc::new(RequestInfo::parse(&parts.method, &parts.uri));
        let audit = self.audit.as_ref().unwrap();
        let audit_id = id(&parts);
        let trail = audit.follow(&mut parts, &info, &audit_id);
        trail.identified(&User::named("jane"));
        let body = crate::respond::full(Bytes::from(body.to_owned()));
        let body = trail.keep_request(&parts.headers, body);
        body.collect().await.unwrap();
        trail.decided(&Decision::Allowed {
            reason: "because".to_owned(),
        });
        let code = StatusCode::from_u16(answer.0).unwrap();
        let response = crate::respond::json_bytes(code, answer.1.to_string());
        trail.answered(response).collect().await.unwrap();
    }

    /// All lines, once the log is closed.
    fn lines(mut self) -> Vec<Value> {
        self.audit = None;
        let text = std::fs::read_to_string(self.directory.path().join("audit.log")).unwrap();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

const PODS: &str = "/api/v1/namespaces/a/pods";

fn pod() -> Value {
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": { "name": "p", "managedFields": [{ "manager": "m" }] },
    })
}

#[tokio::test]
async fn metadata_is_all_but_the_bodies() {
    let site = site("rules: [{level: Metadata}]\n");
    let body = pod().to_string();
    site.ask(Method::POST, PODS, &body, (201, pod())).await;
    let lines = site.lines();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["stage"], "RequestReceived");
    assert_eq!(
        lines[1],
        json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
            "auditID": "an-id", "stage": "ResponseComplete", "requestURI": PODS, "verb": "create",
            "user": { "username": "jane", "groups": ["system:authenticated"] },
            "sourceIPs": ["127.0.0.1"], "userAgent": "kubectl/v1",
            "objectRef": {
                "resource": "pods", "namespace": "a", "name": "p", "apiVersion": "v1",
            },
            "responseStatus": { "metadata": {}, "code": 201 },
            "requestReceivedTimestamp": "2026-06-01T00:00:00.000000Z",
            "stageTimestamp": "2026-06-01T00:00:00.000000Z",
            "annotations": {
                "authorization.k8s.io/decision": "allow",
                "authorization.k8s.io/reason": "because",
            },
        })
    );
}

#[tokio::test]
async fn bodies_are_recorded_as_far_as_the_policy_says() {
    let site = site(
        "omitStages: [RequestReceived]\nrules:\n- {level: Request, verbs: [create]}\n\
         - {level: RequestResponse, omitManagedFields: true}\n",
    );
    let body = pod().to_string();
    site.ask(Method::POST, PODS, &body, (201, pod())).await;
    let path = format!("{PODS}/p");
    site.ask(Method::PUT, &path, &body, (200, pod())).await;
    site.ask(Method::PATCH, &path, "{\"a\":1}", (200, pod()))
        .await;
    let list = json!({ "kind": "PodList", "items": [pod()] });
    site.ask(Method::GET, PODS, "", (200, list)).await;
    let lines = site.lines();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["requestObject"], pod());
    assert!(lines[0].get("responseObject").is_none());
    let bare = json!({ "kind": "Pod", "apiVersion": "v1", "metadata": { "name": "p" } });
    assert_eq!(
        (&lines[1]["requestObject"], &lines[1]["responseObject"]),
        (&bare, &bare)
    );
    assert_eq!(lines[2]["requestObject"], json!({ "a": 1 }));
    assert_eq!(lines[3]["responseObject"]["items"], json!([bare]));
}

#[tokio::test]
async fn a_failure_is_told_and_a_watch_has_two_ends() {
    let site = site("omitStages: [RequestReceived]\nrules: [{level: Metadata}]\n");
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": "NotFound", "message": "gone", "code": 404,
    });
    let path = format!("{PODS}/p");
    site.ask(Method::GET, &path, "", (404, status)).await;
    site.ask(
        Method::GET,
        &format!("{PODS}?watch=1"),
        "",
        (200, json!({})),
    )
    .await;
    let lines = site.lines();
    assert_eq!(
        lines[0]["responseStatus"],
        json!({
            "metadata": {}, "status": "Failure", "reason": "NotFound", "message": "gone",
            "code": 404,
        })
    );
    let stages: Vec<&str> = lines
        .iter()
        .map(|line| line["stage"].as_str().unwrap())
        .collect();
    assert_eq!(
        stages,
        ["ResponseComplete", "ResponseStarted", "ResponseComplete"]
    );
}

#[tokio::test]
async fn what_is_not_wanted_leaves_nothing() {
    let site = site("rules: [{level: None}]\n");
    site.ask(Method::GET, PODS, "", (200, json!({}))).await;
    let mut text = crate::metrics::text::Text::default();
    site.audit.as_ref().unwrap().text(&mut text);
    let text = text.into_string();
    assert!(
        text.contains("\napiserver_audit_level_total{level=\"None\"} 1\n"),
        "{text}"
    );
    assert!(text.contains("\napiserver_audit_event_total 0\n"), "{text}");
    assert!(site.lines().is_empty());
}

#[tokio::test]
async fn nobody_and_a_panic_are_recorded_in_their_own_ways() {
    let site = site("rules: [{level: Metadata}]\n");
    let audit = Arc::clone(site.audit.as_ref().unwrap());
    let follow = || {
        let (mut parts, ()) = Request::get("/api").body(()).unwrap().into_parts();
        let info = Arc::new(RequestInfo::parse(&parts.method, &parts.uri));
        let bearer = HeaderValue::from_static("Bearer wrong");
        parts.headers.insert("authorization", bearer);
        let id = id(&parts);
        assert_eq!(id.len(), 36);
        (audit.follow(&mut parts, &info, &id), parts)
    };
    let (trail, parts) = follow();
    trail.unrecognized(&parts.headers, false);
    drop(trail.answered(crate::respond::json_bytes(StatusCode::UNAUTHORIZED, "{}")));
    drop((trail, parts)); // The log is closed with the last that holds it.
    let (trail, parts) = follow();
    trail.identified(&User::named("jane"));
    trail.panicked();
    drop((trail, parts, audit));
    let lines = site.lines();
    let stages: Vec<&str> = lines
        .iter()
        .map(|line| line["stage"].as_str().unwrap())
        .collect();
    assert_eq!(stages, ["ResponseStarted", "RequestReceived", "Panic"]);
    assert_eq!(
        lines[0]["responseStatus"],
        json!({
            "metadata": {}, "message": "Authentication failed, attempted: bearer", "code": 401,
        })
    );
    assert_eq!(lines[2]["responseStatus"]["reason"], "InternalError");
}
