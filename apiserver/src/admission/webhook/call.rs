//! One webhook, asked: the review is sent, its answer read, and what it tells beside that passed
//! on.

use super::answer::{self, Answer, Fault};
use super::form::Shown;
use super::hook::Hook;
use super::review;
use super::{Does, Failure, Webhooks, annotate};
use crate::admission::Attributes;
use crate::audit::policy::Level;
use crate::metrics::webhooks::{Ending, ErrorType};
use crate::webhook::CallError;
use coracle_api::status::Status;
use tokio::time::Instant;

impl Webhooks {
    /// What the webhook says of the request: an answer that lets it pass.
    pub(super) async fn call(
        &self,
        does: Does,
        hook: &Hook,
        asked: &Attributes<'_>,
        shown: &Shown,
    ) -> Result<Answer, Failure> {
        if asked.dry_run && !hook.takes_trials {
            let name = &hook.name;
            let why = format!("admission webhook {name:?} does not support dry run");
            return Err(Failure::Refused(Status::bad_request(why)));
        }
        let not_called = |why: String, code| Failure::NotCalled { why, code };
        let version = hook.review.ok_or_else(|| {
            let why = "could not create admission objects: webhook does not accept known \
                       AdmissionReview versions (v1, v1beta1)";
            not_called(why.to_owned(), 400)
        })?;
        let no_client = |why: &str| not_called(format!("could not get REST client: {why}"), 500);
        let client = hook.client.as_ref().map_err(|why| no_client(why))?;
        let uid = uuid::Uuid::new_v4().to_string();
        let body = review::body(version, &uid, asked, shown);
        let left = asked.deadline.map(|at| at - Instant::now().min(at));
        let within = left.map_or(hook.timeout, |left| left.min(hook.timeout));
        let posted = self.caller.post(client, body.into(), within).await;
        let failed = |why: String, code| not_called(format!("failed to call webhook: {why}"), code);
        let body = posted.map_err(|error| match &error {
            CallError::Unusable(why) => no_client(why),
            CallError::Unreached { .. } => failed(error.to_string(), 503),
            CallError::Answer { code, .. } => failed(error.to_string(), *code),
        })?;
        let read = answer::read(&body, version, &uid, does == Does::Mutate);
        let answer = read.map_err(|fault| match fault {
            Fault::Undecodable(why) => failed(why, 503),
            Fault::Invalid(why) => {
                not_called(format!("received invalid webhook response: {why}"), 503)
            }
        })?;
        for (key, value) in &answer.annotations {
            annotate(
                asked,
                Level::Metadata,
                format!("{}/{key}", hook.name),
                value,
            );
        }
        asked.warn(answer.warnings.iter().cloned());
        if answer.is_allowed {
            return Ok(answer);
        }
        let denied = answer::denied(&hook.name, answer.status.as_ref());
        Err(Failure::Denied(denied))
    }

    /// Counts how it ended, and says what that means for the request: `None` when it goes on
    /// although the webhook failed. `key` is what the audit record says then.
    pub(super) fn settle<T>(
        &self,
        does: Does,
        hook: &Hook,
        asked: &Attributes<'_>,
        begun: Instant,
        ended: Result<T, Failure>,
    ) -> Result<Option<T>, Status> {
        let forgives = hook.ignores_failures;
        let (code, error) = match &ended {
            Ok(_) => (200, None),
            Err(Failure::NotCalled { code, .. }) => {
                (*code, (!forgives).then_some(ErrorType::CallingWebhook))
            }
            Err(Failure::Denied(status)) => (status.code, Some(ErrorType::None)),
            Err(Failure::Refused(_)) => (0, Some(ErrorType::Internal)),
        };
        self.counts.ended(&Ending {
            name: &hook.name,
            step: does.step(),
            operation: asked.operation.as_str(),
            code,
            error,
            elapsed: begun.elapsed(),
        });
        let name = &hook.name;
        match ended {
            Ok(value) => Ok(Some(value)),
            // Else a client that gives its request little time would leave webhooks out.
            Err(Failure::NotCalled { .. }) if forgives && asked.is_late() => {
                let why = "request did not complete within requested timeout";
                Err(Status::timeout(why, 0))
            }
            Err(Failure::NotCalled { why, .. }) if forgives => {
                tracing::warn!(webhook = name, why, "a webhook failed and is left out");
                self.counts.failed_open(name, does.step());
                Ok(None)
            }
            Err(Failure::NotCalled { why, .. }) => {
                tracing::warn!(
                    webhook = name,
                    why,
                    "a webhook failed, and the request with it"
                );
                Err(Status::internal(format!(
                    "failed calling webhook {name:?}: {why}"
                )))
            }
            Err(Failure::Denied(status) | Failure::Refused(status)) => Err(status),
        }
    }
}
