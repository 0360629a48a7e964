//! Labels the Secret of a token of the older kind with the day on which it was last used, so that
//! one that nobody uses can be found.
//!
//! Beside the requests: a use waits for nobody, and one that does not fit in is told of by the next.

use super::legacy::{LAST_USED_LABEL, Used};
use coracle_api::timestamp::format_day;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc;

/// Uses told of and not looked at yet. Clients with such tokens are few.
const WAITING_MAX: usize = 64;
const DAY: SignedDuration = SignedDuration::from_hours(24);

#[derive(Debug)]
pub struct LegacyUses {
    sender: mpsc::Sender<Used>,
    /// Taken by the one who labels.
    receiver: Mutex<Option<mpsc::Receiver<Used>>>,
}

impl Default for LegacyUses {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        Self {
            sender,
            receiver: Mutex::new(Some(receiver)),
        }
    }
}

impl LegacyUses {
    pub fn tell(&self, used: Used) {
        drop(self.sender.try_send(used));
    }

    /// The uses as they come, for the one who labels. Only once.
    pub fn take(&self) -> Option<mpsc::Receiver<Used>> {
        self.receiver.lock().take()
    }
}

impl Used {
    /// The write that labels the Secret; `None` when it says today already, or tomorrow as another
    /// server's clock has it.
    pub fn label(&self, now: Timestamp) -> Option<Request<String>> {
        let today = format_day(now);
        if self.last_used == today
            || now
                .saturating_add(DAY)
                .is_ok_and(|at| format_day(at) == self.last_used)
        {
            return None;
        }
        let path = format!(
            "/api/v1/namespaces/{}/secrets/{}",
            self.namespace, self.secret
        );
        let patch = json!({ "metadata": {
            "uid": self.uid,
            "labels": { LAST_USED_LABEL: today },
        } });
        let request = Request::builder().method(Method::PATCH).uri(path);
        let request = request.header(CONTENT_TYPE, "application/merge-patch+json");
        request.body(patch.to_string()).ok()
    }
}
