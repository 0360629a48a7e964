//! `GET /containerLogs/{namespace}/{pod}/{container}`: a container's log with all its options.

mod follow; // Waits for a file to grow.
mod line; // One line of the CRI format. Pure.
mod read;
mod tail; // Where the last lines begin.

use super::answer::{Body, channel, refuse};
use super::request::Query;
use super::serve::Server;
use crate::pods::state::Observed;
use crate::runtime::{ContainerState, ContainerStatus};
use coracle_api::timestamp;
use http::{Response, StatusCode};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

/// `PodLogOptions`. Checked here too: not all who ask come through the API server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub follow: bool,
    pub previous: bool,
    pub timestamps: bool,
    pub since: Option<Timestamp>,
    pub tail_lines: Option<u64>,
    pub limit_bytes: Option<u64>,
    /// `stdout` or `stderr`; both when None.
    pub stream: Option<&'static str>,
}

impl Options {
    fn read(query: &Query, now: Timestamp) -> Result<Self, (StatusCode, &'static str)> {
        let Ok(options) = Self::decode(query, now) else {
            let text = r#"{"message": "Unable to decode query."}"#;
            return Err((StatusCode::BAD_REQUEST, text));
        };
        let has_one_time = query.get("sinceSeconds").is_none() || query.get("sinceTime").is_none();
        let is_tail_of_all = options.stream.is_none() || options.tail_lines.is_none();
        if has_one_time && is_tail_of_all && are_in_bounds(query) {
            return Ok(options);
        }
        let text = r#"{"message": "Invalid request."}"#;
        Err((StatusCode::UNPROCESSABLE_ENTITY, text))
    }

    fn decode(query: &Query, now: Timestamp) -> Result<Self, String> {
        let since = match (query.number("sinceSeconds")?, query.get("sinceTime")) {
            (Some(seconds), _) => {
                let ago = jiff::SignedDuration::from_secs(seconds);
                now.saturating_sub(ago).ok()
            }
            (None, Some(text)) if !text.is_empty() => {
                Some(timestamp::parse(text).ok_or_else(|| format!("sinceTime: {text:?}"))?)
            }
            _ => None,
        };
        let unsigned = |name: &str| -> Result<Option<u64>, String> {
            let number = query.number(name)?;
            Ok(number.and_then(|number| u64::try_from(number).ok()))
        };
        Ok(Self {
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            timestamps: query.flag("timestamps"),
            since,
            // By its older name it may be said to be all.
            tail_lines: match query.get("tail") {
                Some("all") => None,
                Some(_) => unsigned("tail")?,
                None => unsigned("tailLines")?,
            },
            limit_bytes: unsigned("limitBytes")?,
            stream: match query.get("stream") {
                Some("Stdout") => Some("stdout"),
                Some("Stderr") => Some("stderr"),
                _ => None,
            },
        })
    }
}

/// As upstream has it: a tail of no lines is one, no seconds and no bytes are not.
/// The older name of a tail wins over the newer.
fn are_in_bounds(query: &Query) -> bool {
    let is_from = |name: &str, least: i64| {
        let number = query.number(name);
        number.is_ok_and(|number| number.is_none_or(|number| number >= least))
    };
    let is_tail = match query.get("tail") {
        Some("all") => true,
        Some(_) => is_from("tail", 0),
        None => is_from("tailLines", 0),
    };
    let is_stream = matches!(
        query.get("stream"),
        None | Some("" | "All" | "Stdout" | "Stderr")
    );
    is_tail && is_from("limitBytes", 1) && is_from("sinceSeconds", 1) && is_stream
}

pub async fn answer(
    server: &Server,
    namespace: &str,
    pod: &str,
    container: &str,
    query: &Query,
) -> Response<Body> {
    let options = match Options::read(query, server.stats.context.clock.now()) {
        Ok(options) => options,
        Err((status, text)) => return refuse(status, text),
    };
    let (pod, observed) = match server.find(namespace, pod, "").await {
        Ok(found) => found,
        Err(refusal) => return refusal,
    };
    let instance = match choose(&pod, &observed, container, options.previous) {
        Ok(instance) => instance,
        Err(text) => return refuse(StatusCode::BAD_REQUEST, text),
    };
    // Subscribed before the state is looked at, so that no end is missed.
    let events = server.stats.context.runtime.events();
    let status = server
        .stats
        .context
        .runtime
        .container_status(&instance.id)
        .await;
    let is_running = status.is_ok_and(|status| status.state == ContainerState::Running);
    let path = instance.config.log_path.clone();
    let id = instance.id.clone();
    let (chunks, body) = channel();
    tokio::spawn(async move {
        let end = follow::End::new(events, id, is_running);
        if let Err(error) = read::send(&path, &options, end, &chunks).await {
            tracing::debug!(path = %path.display(), %error, "a log ends early");
        }
    });
    let mut response = Response::new(body);
    let kind = http::HeaderValue::from_static("text/plain");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, kind);
    response
}

/// The instance whose log is asked for, or upstream's words for why there is none.
fn choose<'a>(
    pod: &Pod,
    observed: &'a Observed,
    container: &str,
    previous: bool,
) -> Result<&'a ContainerStatus, String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let instances = observed.instances(container);
    let mut began = instances
        .into_iter()
        .filter(|instance| instance.state != ContainerState::Created);
    if previous {
        // What ended last; the one that runs now is not it, nor the one that has ended for good.
        let mut ended = began.filter(|instance| instance.state == ContainerState::Exited);
        let latest = observed.latest(container);
        let is_dead = latest.is_some_and(|latest| latest.state == ContainerState::Exited);
        let is_current = is_dead && waiting(pod, container).is_none();
        let found = if is_current {
            ended.nth(1)
        } else {
            ended.next()
        };
        return found.ok_or_else(|| {
            format!("previous terminated container {container:?} in pod {name:?} not found")
        });
    }
    began.next().ok_or_else(|| {
        let why = match waiting(pod, container) {
            Some("ErrImagePull") => "image can't be pulled".to_owned(),
            Some("ImagePullBackOff") => "trying and failing to pull image".to_owned(),
            Some(reason) => reason.to_owned(),
            None => "ContainerCreating".to_owned(),
        };
        format!("container {container:?} in pod {name:?} is waiting to start: {why}")
    })
}

/// Why a container is waiting, as the pod's status says it.
fn waiting<'a>(pod: &'a Pod, container: &str) -> Option<&'a str> {
    let status = pod.status.as_ref()?;
    let regular = status.container_statuses.iter().flatten();
    let init = status.init_container_statuses.iter().flatten();
    let added = status.ephemeral_container_statuses.iter().flatten();
    let mut all = regular.chain(init).chain(added);
    let own = all.find(|status| status.name == container)?;
    let waiting = own.state.as_ref()?.waiting.as_ref()?;
    Some(waiting.reason.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests;
