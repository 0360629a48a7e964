//! Between the loops and the server: counts what they do to pods, and does them harm.
//!
//! A life ends at one of its writes, before the server has it or after, when the answer is lost; or
//! at one of its reads, often before it has seen all there is. From then on nothing is answered, as
//! to a process that is no more.

use bytes::Bytes;
use coracle_apiserver::InProcess;
use coracle_client::Client;
use futures::StreamExt;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use kube::client::Body;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::RwLock;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

type Boxed = UnsyncBoxBody<Bytes, tower::BoxError>;

/// Writes that a life may last.
const WRITES_MAX: u32 = 7;
/// Reads that one life of three may last: more than it takes to see all there is.
const READS_MAX: u32 = 400;
const READS_MATTER: f64 = 1.0 / 3.0;
const LATE_MAX: Duration = Duration::from_millis(60);
/// One frame of a watch in so many breaks it.
const BREAK_ONE_IN: u32 = 12;
const REFUSE_ONE_IN: u32 = 15;

/// Pods by UID: a name may come again.
#[derive(Default)]
pub struct Counted {
    pub created: BTreeSet<String>,
    pub deleted: BTreeSet<String>,
}

#[derive(Clone)]
pub struct Faults {
    shared: Arc<Mutex<Shared>>,
    /// The server's, which outlives each life.
    runtime: Handle,
    /// Read as long as a request is under way.
    under_way: Arc<RwLock<()>>,
}

struct Shared {
    random: StdRng,
    counted: Counted,
    life: Option<Life>,
}

struct Life {
    writes_left: u32,
    /// None where its reads do not end it.
    reads_left: Option<u32>,
    /// The server has the last write.
    after: bool,
    dead: CancellationToken,
}

enum Verdict {
    Pass,
    Refuse,
    DieBefore(CancellationToken),
    DieAfter(CancellationToken),
}

impl Faults {
    pub fn new(seed: u64, runtime: Handle) -> Self {
        let shared = Shared {
            random: StdRng::seed_from_u64(seed),
            counted: Counted::default(),
            life: None,
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
            runtime,
            under_way: Arc::default(),
        }
    }

    fn with<T>(&self, take: impl FnOnce(&mut Shared) -> T) -> T {
        take(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A life begins; the token is cancelled at its end.
    pub fn begin(&self) -> CancellationToken {
        let dead = CancellationToken::new();
        self.with(|shared| {
            shared.life = Some(Life {
                writes_left: shared.random.random_range(1..=WRITES_MAX),
                reads_left: shared
                    .random
                    .random_bool(READS_MATTER)
                    .then(|| shared.random.random_range(1..=READS_MAX)),
                after: shared.random.random_bool(0.5),
                dead: dead.clone(),
            });
        });
        dead
    }

    /// What was done to pods since the last call.
    pub fn take_counted(&self) -> Counted {
        self.with(|shared| std::mem::take(&mut shared.counted))
    }

    pub fn client(&self, server: InProcess, life: CancellationToken) -> Client {
        let faults = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (faults, server, life) = (faults.clone(), server.clone(), life.clone());
            async move { Ok::<_, Infallible>(faults.answer(server, life, request).await) }
        });
        Client::new(service, "default")
    }

    async fn answer(
        &self,
        server: InProcess,
        life: CancellationToken,
        request: Request<Body>,
    ) -> Response<Boxed> {
        if life.is_cancelled() {
            return std::future::pending().await;
        }
        let (method, path) = (request.method(), request.uri().path());
        let is_watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"));
        let verdict = match kind(method, path) {
            Kind::Write => self.verdict(),
            Kind::Read => self.verdict_of_read(),
            Kind::Aside => Verdict::Pass,
        };
        match verdict {
            Verdict::Refuse => return refusal(),
            Verdict::DieBefore(dead) => {
                dead.cancel();
                return std::future::pending().await;
            }
            Verdict::DieAfter(dead) => {
                self.done(server, request).await;
                dead.cancel();
                return std::future::pending().await;
            }
            Verdict::Pass if is_watch => return self.late(send(server, request).await),
            Verdict::Pass => {}
        }
        self.done(server, request).await
    }

    /// The server goes on with what it has, whatever becomes of its client.
    async fn done(&self, server: InProcess, request: Request<Body>) -> Response<Boxed> {
        let (faults, asked) = (self.clone(), self.under_way.clone().read_owned().await);
        let doing = self.runtime.spawn(async move {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            let answer = send(server, request).await;
            let answer = faults.count(&method, &path, answer).await;
            drop(asked);
            answer
        });
        doing.await.expect("the server answers")
    }

    /// Returns when no request of a life is under way.
    pub fn wait_idle(&self) {
        drop(self.runtime.block_on(self.under_way.write()));
    }

    fn verdict(&self) -> Verdict {
        self.with(|shared| {
            let Some(life) = &mut shared.life else {
                return Verdict::Pass;
            };
            life.writes_left = life.writes_left.saturating_sub(1);
            if life.writes_left == 0 {
                let dead = life.dead.clone();
                return match life.after {
                    true => Verdict::DieAfter(dead),
                    false => Verdict::DieBefore(dead),
                };
            }
            match shared.random.random_range(0..REFUSE_ONE_IN) {
                0 => Verdict::Refuse,
                _ => Verdict::Pass,
            }
        })
    }

    /// After a read the server is as before it: there is one way to die.
    fn verdict_of_read(&self) -> Verdict {
        self.with(|shared| {
            let Some(life) = &mut shared.life else {
                return Verdict::Pass;
            };
            let Some(reads_left) = &mut life.reads_left else {
                return Verdict::Pass;
            };
            *reads_left = reads_left.saturating_sub(1);
            match reads_left {
                0 => Verdict::DieBefore(life.dead.clone()),
                _ => Verdict::Pass,
            }
        })
    }

    async fn count(&self, method: &Method, path: &str, answer: Response<Boxed>) -> Response<Boxed> {
        let is_of_pod = matches!(*method, Method::POST | Method::DELETE)
            && path.starts_with("/api/v1/namespaces/")
            && path.split('/').nth(5) == Some("pods")
            && path.split('/').count() == if *method == Method::POST { 6 } else { 7 };
        if !is_of_pod || !answer.status().is_success() {
            return answer;
        }
        let (head, body) = answer.into_parts();
        let bytes = body.collect().await.expect("a whole answer").to_bytes();
        let object: Value = serde_json::from_slice(&bytes).expect("JSON");
        let uid = object
            .pointer("/metadata/uid")
            .or(object.pointer("/details/uid"));
        let uid = uid.and_then(Value::as_str).expect("a UID").to_owned();
        self.with(|shared| match *method {
            Method::POST => shared.counted.created.insert(uid),
            _ => shared.counted.deleted.insert(uid),
        });
        Response::from_parts(head, whole(bytes))
    }

    /// Each frame comes a while later, another on each kind; now and then the watch breaks.
    fn late(&self, answer: Response<Boxed>) -> Response<Boxed> {
        let (head, body) = answer.into_parts();
        let faults = self.clone();
        let frames = BodyStream::new(body).then(move |frame| {
            let (late, breaks) = faults.with(|shared| {
                let late = LATE_MAX.mul_f64(shared.random.random_range(0.0..1.0));
                (late, shared.random.random_range(0..BREAK_ONE_IN) == 0)
            });
            async move {
                tokio::time::sleep(late).await;
                (frame, breaks)
            }
        });
        // What it breaks before is not seen, until the next watch or list.
        let whole = frames.take_while(|(_, breaks)| std::future::ready(!breaks));
        let body = StreamBody::new(whole.map(|(frame, _)| frame));
        Response::from_parts(head, UnsyncBoxBody::new(body))
    }
}

enum Kind {
    Read,
    Write,
    /// What is told to people, and who holds what.
    Aside,
}

fn kind(method: &Method, path: &str) -> Kind {
    let is_aside = ["/events", "/leases", "/subjectaccessreviews"];
    match matches!(*method, Method::GET | Method::HEAD) {
        _ if is_aside.iter().any(|part| path.contains(part)) => Kind::Aside,
        true => Kind::Read,
        false => Kind::Write,
    }
}

async fn send(server: InProcess, request: Request<Body>) -> Response<Boxed> {
    let Ok(answer) = server.oneshot(request).await;
    answer
}

fn refusal() -> Response<Boxed> {
    let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,
        "reason":"InternalError","message":"a disk is slow today"}"#;
    let mut answer = Response::new(whole(Bytes::from(status)));
    *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    answer
}

fn whole(bytes: Bytes) -> Boxed {
    Full::from(bytes)
        .map_err(|never| match never {})
        .boxed_unsync()
}
