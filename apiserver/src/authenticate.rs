//! Who is asking: the chain of authenticators, in upstream's order.
//!
//! A client certificate or a bearer token names a user; a request with neither is anonymous. A
//! certificate or token that is shown and not good is 401, never anonymous. Whether the user may
//! do anything is not decided here.

pub mod bearer; // Bearer tokens as requests carry them.
pub mod bootstrap_token; // Tokens kept as Secrets, for enrolment.
pub mod certificate; // Client certificates.
pub mod impersonate; // Acting as somebody else.
pub mod user; // The user, and the names and groups that Kubernetes knows.

pub use certificate::PeerCertificate;
pub use user::User;

use crate::pki::tls::ClientCertificates;
use crate::view::View;
use coracle_api::status::Status;
use http::request::Parts;
use jiff::Timestamp;
use std::sync::Arc;

/// Finds the user behind a request.
pub struct Authenticator {
    clients: ClientCertificates,
    view: Arc<dyn View>,
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authenticator").finish_non_exhaustive()
    }
}

impl Authenticator {
    pub fn new(clients: ClientCertificates, view: Arc<dyn View>) -> Self {
        Self { clients, view }
    }

    /// `peer` is what the client showed in its handshake.
    pub fn authenticate(
        &self,
        request: &Parts,
        peer: Option<&PeerCertificate>,
        now: Timestamp,
    ) -> Result<User, Status> {
        if let Some(mut user) = peer.and_then(|peer| peer.user(&self.clients, now)) {
            user.add_authenticated();
            return Ok(user);
        }
        if let Some(token) = bearer::token(&request.headers) {
            let found = bootstrap_token::user(self.view.as_ref(), &token, now);
            let mut user = found.ok_or_else(Status::unauthorized)?;
            user.add_authenticated();
            return Ok(user);
        }
        match peer {
            Some(_) => Err(Status::unauthorized()),
            None => Ok(User::anonymous()),
        }
    }

    /// The user behind a token alone, for TokenReview.
    pub fn token(&self, token: &str, now: Timestamp) -> Option<User> {
        let mut user = bootstrap_token::user(self.view.as_ref(), token, now)?;
        user.add_authenticated();
        Some(user)
    }
}

#[cfg(test)]
mod tests;
