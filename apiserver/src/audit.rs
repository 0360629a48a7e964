//! The audit log: who asked what of the server, as a policy file wants it recorded.
//!
//! Off without a policy, and then nothing is done for it but that a request gets an id. Never
//! keeps a request waiting: events go to a bounded queue, and what does not fit is counted. What
//! is in bodies, Secrets among them, is recorded by the policy's word alone, as upstream.

pub mod capture; // Bodies, kept on their way.
pub mod event; // One event.
pub mod log; // The file.
pub mod policy; // What is recorded of which requests.
pub mod trail; // The record of one request.

pub use log::LogSettings;
pub use trail::Trail;

use crate::api::PeerAddress;
use crate::config::Clock;
use crate::metrics::text::Text;
use crate::request_info::RequestInfo;
use coracle_api::timestamp::format_micro_time;
use event::{Arrival, Event};
use http::header::{HeaderName, HeaderValue, USER_AGENT};
use http::request::Parts;
use jiff::Timestamp;
use log::Log;
use policy::{BadPolicy, Level, Policy};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
/// Upstream's bound on an id that a client brings.
const ID_MAX: usize = 64;
/// A policy is some kilobytes; one past this is something else.
const POLICY_BYTES_MAX: u64 = 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub policy_file: PathBuf,
    pub log: LogSettings,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("--audit-policy-file {path}: cannot be read: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("--audit-policy-file {path}: {source}")]
    Policy { path: PathBuf, source: BadPolicy },
    #[error("--audit-log-path {path}: cannot be written: {source}")]
    Log { path: String, source: io::Error },
}

#[derive(Debug)]
pub struct Audit {
    policy: Policy,
    log: Log,
    clock: OwnClock,
    events: AtomicU64,
    levels: [AtomicU64; Level::ALL.len()],
}

struct OwnClock(Clock);

impl std::fmt::Debug for OwnClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl Audit {
    pub fn open(settings: &Settings, clock: Clock) -> Result<Self, OpenError> {
        let policy = read_policy(settings)?;
        let path = settings.log.path.as_ref();
        let shown = path.map_or_else(|| "-".to_owned(), |path| path.display().to_string());
        let log = Log::open(settings.log.clone(), Arc::clone(&clock));
        Ok(Self {
            policy,
            log: log.map_err(|source| OpenError::Log {
                path: shown,
                source,
            })?,
            clock: OwnClock(clock),
            events: AtomicU64::new(0),
            levels: Default::default(),
        })
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    fn now(&self) -> Timestamp {
        (self.clock.0)()
    }

    /// Begins the record of a request; it rides along with it.
    pub fn follow(
        self: &Arc<Self>,
        parts: &mut Parts,
        info: &Arc<RequestInfo>,
        id: &HeaderValue,
    ) -> Arc<Trail> {
        let agent = parts.headers.get(USER_AGENT);
        let event = Event::new(Arrival {
            audit_id: id.to_str().unwrap_or("").to_owned(),
            uri: &parts.uri,
            info,
            source_ips: source_ips(parts),
            user_agent: agent.and_then(|agent| agent.to_str().ok()).unwrap_or(""),
            received: format_micro_time(self.now()),
        });
        let trail = Arc::new(Trail::new(Arc::clone(self), Arc::clone(info), event));
        parts.extensions.insert(Arc::clone(&trail));
        trail
    }

    fn count(&self, level: Level) {
        self.levels[level as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn write(&self, line: Vec<u8>) {
        self.events.fetch_add(1, Ordering::Relaxed);
        self.log.write(line);
    }

    /// `apiserver_audit_*`.
    pub fn text(&self, text: &mut Text) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let events = "apiserver_audit_event_total";
        let help = "Counter of audit events generated and sent to the audit backend.";
        text.family(events, "counter", help);
        text.sample(events, &[], load(&self.events));
        let levels = "apiserver_audit_level_total";
        let help = "Counter of policy levels for audit events (1 per request).";
        text.family(levels, "counter", help);
        for (level, count) in Level::ALL.into_iter().zip(&self.levels) {
            if load(count) > 0 {
                text.sample(levels, &[("level", level.name())], load(count));
            }
        }
        let errors = "apiserver_audit_error_total";
        let help = "Counter of audit events that were lost, by what lost them.";
        text.family(errors, "counter", help);
        let counts = self.log.counts();
        for (plugin, count) in [("buffered", &counts.dropped), ("log", &counts.failed)] {
            text.sample(errors, &[("plugin", plugin)], load(count));
        }
    }
}

fn read_policy(settings: &Settings) -> Result<Policy, OpenError> {
    let path = || settings.policy_file.clone();
    let unreadable = |source| OpenError::Unreadable {
        path: path(),
        source,
    };
    let size = std::fs::metadata(path()).map_err(unreadable)?.len();
    if size > POLICY_BYTES_MAX {
        return Err(unreadable(io::ErrorKind::FileTooLarge.into()));
    }
    let text = std::fs::read_to_string(path()).map_err(unreadable)?;
    Policy::parse(&text).map_err(|source| OpenError::Policy {
        path: path(),
        source,
    })
}

/// The id by which a request is known in logs: the client's, or a new one.
pub fn id(parts: &Parts) -> HeaderValue {
    let given = parts.headers.get(AUDIT_ID);
    let given = given.filter(|id| !id.is_empty() && id.to_str().is_ok());
    match given {
        Some(id) if id.len() <= ID_MAX => id.clone(),
        Some(id) => HeaderValue::from_bytes(&id.as_bytes()[..ID_MAX])
            .unwrap_or_else(|_| HeaderValue::from_static("")),
        None => {
            let id = uuid::Builder::from_random_bytes(rand::random()).into_uuid();
            let mut text = uuid::Uuid::encode_buffer();
            HeaderValue::from_str(id.hyphenated().encode_lower(&mut text))
                .expect("a UUID is plain text")
        }
    }
}

/// Proxies on the way first, the other end of the connection last. All but the last are a claim.
fn source_ips(parts: &Parts) -> Vec<String> {
    let header = |name: &HeaderName| {
        let value = parts.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    };
    let mut ips: Vec<IpAddr> = header(&FORWARDED_FOR)
        .split(',')
        .filter_map(|one| one.trim().parse().ok())
        .collect();
    if let Ok(ip) = header(&REAL_IP).trim().parse()
        && !ips.contains(&ip)
    {
        ips.push(ip);
    }
    // A part of this process has no address: it is here.
    let peer = parts.extensions.get::<PeerAddress>();
    let peer = peer.map_or(IpAddr::from([127, 0, 0, 1]), |peer| peer.0);
    if ips.last() != Some(&peer) {
        ips.push(peer.to_canonical());
    }
    ips.iter().map(ToString::to_string).collect()
}
