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
use crate::tokens::{TokenError, Tokens};
use crate::view::View;
use coracle_api::status::Status;
use http::request::Parts;
use jiff::Timestamp;
use std::sync::Arc;

/// Finds the user behind a request.
pub struct Authenticator {
    clients: ClientCertificates,
    view: Arc<dyn View>,
    tokens: Arc<Tokens>,
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authenticator").finish_non_exhaustive()
    }
}

impl Authenticator {
    pub fn new(clients: ClientCertificates, view: Arc<dyn View>, tokens: Arc<Tokens>) -> Self {
        Self {
            clients,
            view,
            tokens,
        }
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
            let found = self.token(&token, self.tokens.audiences(), now);
            return match found {
                Ok((user, _)) => Ok(user),
                Err(error) => {
                    tracing::debug!(%error, "a token was refused");
                    Err(Status::unauthorized())
                }
            };
        }
        match peer {
            Some(_) => Err(Status::unauthorized()),
            None => Ok(User::anonymous()),
        }
    }

    /// What a token is good for that names no audience of its own.
    pub fn audiences(&self) -> &[String] {
        self.tokens.audiences()
    }

    /// The user behind a token alone, and for which of the wanted audiences it is good.
    pub fn token(
        &self,
        token: &str,
        wanted: &[String],
        now: Timestamp,
    ) -> Result<(User, Vec<String>), TokenError> {
        let view = self.view.as_ref();
        let (mut user, audiences) = match bootstrap_token::user(view, token, now) {
            // It is for the API server, whatever is asked.
            Some(user) => {
                let own = self.tokens.audiences().iter();
                let good: Vec<String> = own.filter(|one| wanted.contains(one)).cloned().collect();
                if good.is_empty() {
                    return Err(TokenError::OfAnother);
                }
                (user, good)
            }
            None => self.tokens.user(view, token, wanted, now)?,
        };
        user.add_authenticated();
        Ok((user, audiences))
    }
}

#[cfg(test)]
mod tests;
