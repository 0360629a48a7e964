//! Warnings of one request, which go out with a failure as with an answer.

use crate::respond;
use crate::tunnel::Body;
use coracle_api::status::Status;
use http::Response;
use parking_lot::Mutex;

/// Each warning once, in the order in which they came up.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<Vec<String>>);

impl Warnings {
    pub fn add(&self, warnings: impl IntoIterator<Item = String>) {
        let mut all = self.0.lock();
        for warning in warnings {
            if !all.contains(&warning) {
                all.push(warning);
            }
        }
    }

    #[cfg(test)]
    pub fn texts(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    /// The answer with its warnings. A failure becomes an answer here when there are any.
    pub fn on(self, answer: Result<Response<Body>, Status>) -> Result<Response<Body>, Status> {
        let warnings = self.0.into_inner();
        if warnings.is_empty() {
            return answer;
        }
        let mut response = answer.unwrap_or_else(|status| respond::failure(&status));
        respond::warn(response.headers_mut(), &warnings);
        Ok(response)
    }
}
