//! A server over a temporary store, asked without a connection.

use bytes::Bytes;
use coracle_apiserver::at_rest::{AtRest, Settings};
use coracle_apiserver::audit;
use coracle_apiserver::authenticate::User;
use coracle_apiserver::config::Limits;
use coracle_apiserver::tokens::legacy;
use coracle_apiserver::{Config, InProcess, Server};
use coracle_store::Store;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// No test waits longer for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

const AUDIT_LOG: &str = "audit.log";

/// By the server's clock, which stands still.
pub const NOW: &str = "2026-06-01T00:00:00Z";

pub const HOST_NAME: &str = "edge";

pub struct Site {
    /// Dropped last: the store and its directory are in use until then.
    server: Arc<Server>,
    stop: CancellationToken,
    pub admin: InProcess,
    pub store: Store,
    pub directory: TempDir,
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// The body, whichever of JSON and protobuf it is in.
    pub fn json(&self) -> Value {
        if self.body.starts_with(coracle_api::protobuf::MAGIC) {
            return coracle_api::protobuf::decode(&self.body).unwrap().1;
        }
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{:?}", self.body))
    }

    /// Code, reason and message of a failure.
    pub fn failure(&self) -> String {
        let status = self.json();
        let text = |field: &str| status[field].as_str().unwrap_or("").to_owned();
        format!(
            "{} {}: {}",
            self.status.as_u16(),
            text("reason"),
            text("message")
        )
    }

    #[track_caller]
    pub fn ok(self) -> Value {
        assert!(self.status.is_success(), "{}", self.failure());
        self.json()
    }
}

pub async fn site() -> Site {
    site_with(Limits::default()).await
}

/// With so many seats for requests.
pub async fn site_with(limits: Limits) -> Site {
    site_in(tempfile::tempdir().unwrap(), limits, None, true).await
}

/// That leaves `metrics.k8s.io` to others.
pub async fn site_without_metrics() -> Site {
    let directory = tempfile::tempdir().unwrap();
    site_in(directory, Limits::default(), None, false).await
}

/// That records what is said of every request but its bodies.
pub async fn audited_site() -> Site {
    let directory = tempfile::tempdir().unwrap();
    let policy_file = directory.path().join("policy.yaml");
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{ level: Metadata }]\n";
    std::fs::write(&policy_file, policy).unwrap();
    let log = audit::LogSettings {
        path: Some(directory.path().join(AUDIT_LOG)),
        age_days_max: 0,
        backups_max: 0,
        megabytes_max: 0,
    };
    let audit = audit::Settings { policy_file, log };
    site_in(directory, Limits::default(), Some(audit), true).await
}

async fn site_in(
    directory: TempDir,
    limits: Limits,
    audit: Option<audit::Settings>,
    metrics: bool,
) -> Site {
    let at_rest = AtRest::open(Settings {
        key_file: directory.path().join("pki/secrets.key"),
        configuration: None,
    });
    let at_rest = Arc::new(at_rest.unwrap());
    let opened = Store::open(coracle_store::Config {
        seal: Some(at_rest.seal()),
        ..coracle_store::Config::new(directory.path().join("store"))
    });
    let store = opened.unwrap();
    at_rest.settle().unwrap();
    let now = NOW.parse().unwrap();
    let config = Config {
        data_dir: directory.path().to_owned(),
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        advertise_address: Some(Ipv4Addr::new(192, 0, 2, 7).into()),
        host_name: HOST_NAME.to_owned(),
        tls_sans: Vec::new(),
        service_cidr: "10.43.0.0/16".to_owned(),
        cluster_dns: None,
        pod_encryption: None,
        limits,
        event_ttl: coracle_apiserver::config::EVENT_TTL,
        audit,
        metrics,
        at_rest: Some(at_rest),
        access: coracle_apiserver::access::Settings::default(),
        admission: Default::default(),
        clock: Arc::new(move || now),
    };
    let server = Arc::new(Server::build(config, store.clone()).await.unwrap());
    let mut user = User::named("admin");
    user.groups.push("system:masters".to_owned());
    Site {
        admin: server.in_process(user),
        server,
        stop: CancellationToken::new(),
        store,
        directory,
    }
}

pub const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub fn config_map(name: &str, data: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
        "data": { "key": data },
    })
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Site {
    /// The API as another user sees it.
    pub fn acting_as(&self, user: User) -> InProcess {
        self.server.in_process(user)
    }

    pub fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// A token without an end, as it is kept in a Secret.
    pub fn legacy_token(&self, claims: &legacy::Claims) -> String {
        self.server.legacy_token(claims).unwrap()
    }

    pub fn ca_pem(&self) -> String {
        self.server.ca_pem()
    }

    /// Serves, and follows what is written, for as long as the site is there.
    pub fn run(&self) {
        let (server, stop) = (Arc::clone(&self.server), self.stop.clone());
        tokio::spawn(async move { server.run(stop).await });
    }

    /// Ends what runs.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        let response = self.open(request).await;
        let (parts, body) = response.into_parts();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    pub async fn ask_as(
        &self,
        user: &User,
        method: &str,
        path: &str,
        kind: &str,
        body: &Value,
    ) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", format!("application/{kind}"))
            .body(Full::new(Bytes::from(body.to_string())))
            .unwrap();
        let api = self.acting_as(user.clone());
        let (parts, body) = api.oneshot(request).await.unwrap().into_parts();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    /// Waits until a request to a path is recorded from its beginning to its end.
    pub async fn recorded(&self, path: &str) -> Value {
        let log = self.directory.path().join(AUDIT_LOG);
        let looked = async {
            loop {
                let text = std::fs::read_to_string(&log).unwrap();
                // The last line may be half written.
                let events = text
                    .lines()
                    .filter_map(|line| serde_json::from_str(line).ok());
                let ended = |event: &Value| {
                    event["stage"] == "ResponseComplete" && event["requestURI"] == path
                };
                if let Some(event) = { events }.find(ended) {
                    return event;
                }
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, looked).await;
        waited.unwrap_or_else(|_| panic!("{path} is not recorded"))
    }

    /// Waits until the authorizer has seen that a user may do something.
    pub async fn until_may(&self, user: &User, attributes: Value) {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": attributes },
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let looked = async {
            loop {
                let answer = self.ask_as(user, "POST", path, "json", &review).await.ok();
                if answer["status"]["allowed"] == true {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, looked).await;
        waited.unwrap_or_else(|_| panic!("{} may not {review}", user.name));
    }

    /// A get with headers of the caller's choice.
    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let request = headers
            .iter()
            .fold(Request::get(path), |request, (name, value)| {
                request.header(*name, *value)
            });
        self.send(request.body(Full::default()).unwrap()).await
    }

    /// The answer with its body still to come.
    pub async fn open(
        &self,
        request: Request<Full<Bytes>>,
    ) -> http::Response<coracle_apiserver::tunnel::Body> {
        self.admin.clone().oneshot(request).await.unwrap()
    }

    pub async fn ask(&self, method: &str, path: &str, kind: &str, body: Vec<u8>) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        self.send(request).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", Vec::new()).await
    }

    pub async fn get_as(&self, path: &str, accept: &str) -> Answer {
        let request = Request::get(path).header("accept", accept);
        self.send(request.body(Full::default()).unwrap()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, "application/json", body.to_string().into())
            .await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.ask("PUT", path, "application/json", body.to_string().into())
            .await
    }

    pub async fn patch(&self, path: &str, kind: &str, body: &Value) -> Answer {
        let kind = format!("application/{kind}+json");
        self.ask("PATCH", path, &kind, body.to_string().into())
            .await
    }

    pub async fn delete(&self, path: &str, options: &Value) -> Answer {
        let body = if options.is_null() {
            Vec::new()
        } else {
            options.to_string().into()
        };
        self.ask("DELETE", path, "application/json", body).await
    }
}
