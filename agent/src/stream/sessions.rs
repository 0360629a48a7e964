//! Commands and forwarded ports. A server of ours sends and takes frames; who comes to the node's own
//! port upgrades the connection to streams, which become the same frames here.

use super::answer::{self, Body, refuse};
use super::dial::PodPorts;
use super::exec;
use super::request::{Command, Query, Route};
use super::serve::{Server, Way};
use coracle_api::status::Status;
use coracle_streams::command::{self, Start, Wanted};
use coracle_streams::ports::{self, Pod};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use std::sync::Arc;

/// How a command is started: anew, or the container's own process.
#[derive(Clone, Debug)]
enum Run {
    Exec(Command, Vec<String>),
    Attach(Command),
}

impl Run {
    async fn start(&self, server: &Server, wanted: Wanted, input: Body) -> Response<Body> {
        match self {
            Self::Exec(command, words) => {
                exec::exec(server, command, words.clone(), wanted, input).await
            }
            Self::Attach(command) => exec::attach(server, command, wanted, input).await,
        }
    }

    fn command(&self) -> &Command {
        match self {
            Self::Exec(command, _) | Self::Attach(command) => command,
        }
    }
}

pub async fn answer(
    server: &Server,
    route: Route,
    query: &Query,
    request: Request<Body>,
    way: Way,
) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let run = match route {
        Route::Exec(command) => Run::Exec(command, query.all("command")),
        Route::Attach(command) => Run::Attach(command),
        Route::PortForward {
            namespace,
            pod,
            uid,
        } => return forward(server, &mut parts, query, [namespace, pod, uid]).await,
        _ => return refuse(StatusCode::NOT_FOUND, "404 page not found"),
    };
    let wanted = wanted(query);
    if way == Way::Tunnel {
        return run.start(server, wanted, body).await;
    }
    let wanted = match wanted.check() {
        Ok(wanted) => wanted,
        Err(status) => return refused(&status),
    };
    // What is not there is told before the connection is another protocol's.
    if let Err(refusal) = exec::running(server, run.command()).await {
        return refusal;
    }
    let start = start(server.clone(), run, wanted);
    command::answer(&mut parts, wanted, start).unwrap_or_else(|status| refused(&status))
}

/// Names of ours, and the kubelet's own.
fn wanted(query: &Query) -> Wanted {
    let either = |ours: &str, kubelets: &str| query.flag(ours) || query.flag(kubelets);
    Wanted {
        stdin: either("stdin", "input"),
        stdout: either("stdout", "output"),
        stderr: either("stderr", "error"),
        tty: query.flag("tty"),
    }
}

fn start(server: Server, run: Run, wanted: Wanted) -> Start {
    Box::new(move |input| {
        Box::pin(async move {
            let response = run.start(&server, wanted, input).await;
            if response.status().is_success() {
                return Ok(response.into_body());
            }
            Err(Status::internal(answer::text(response).await))
        })
    })
}

async fn forward(
    server: &Server,
    parts: &mut Parts,
    query: &Query,
    [namespace, name, uid]: [String; 3],
) -> Response<Body> {
    let found = match server.find(&namespace, &name, &uid).await {
        Ok((pod, _)) => pod,
        Err(refusal) => return refusal,
    };
    let uid = found.metadata.uid.clone().unwrap_or_default();
    let pod = Pod {
        name: name.clone(),
        uid: uid.clone(),
        network: Arc::new(PodPorts {
            server: server.clone(),
            namespace,
            name,
            uid,
        }),
    };
    let mut asked = query.all("port");
    asked.extend(query.all("ports"));
    ports::answer(parts, &asked, pod).unwrap_or_else(|status| refused(&status))
}

/// The kubelet's refusals are text.
fn refused(status: &Status) -> Response<Body> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    refuse(code, status.message.clone())
}
