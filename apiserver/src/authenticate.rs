//! Who is asking: the chain of authenticators, in upstream's order.
//!
//! A client certificate or a bearer token names a user; a request with neither is anonymous, where
//! that is allowed. A certificate or token that is shown and not good is 401, never anonymous, and
//! is never logged. Whether the user may do anything is not decided here.

pub mod anonymous; // Which requests may do without.
pub mod bearer; // Bearer tokens as requests carry them.
pub mod bootstrap_token; // Tokens kept as Secrets, for enrolment.
pub mod certificate; // Client certificates.
pub mod configuration; // The file that names issuers and says who may be anonymous.
pub mod impersonate; // Acting as somebody else.
pub mod issuer; // One issuer of tokens outside the cluster.
pub mod issuers; // All of them, and the file that names them.
mod refusals; // Who was not let in, logged.
mod same_secret; // Comparing secrets.
pub mod token_file; // Tokens in a file.
pub mod user; // The user, and the names and groups that Kubernetes knows.

pub use certificate::PeerCertificate;
pub use same_secret::same_secret;
pub use user::User;

use crate::pki::revoked::Revocations;
use crate::pki::tls::ClientCertificates;
use crate::tokens::{Checked, Remarks, TokenError, Tokens};
use crate::view::View;
use anonymous::Anonymous;
use coracle_api::status::Status;
use http::request::Parts;
use issuers::Issuers;
use jiff::Timestamp;
use refusals::Refusals;
use std::path::PathBuf;
use std::sync::Arc;
use token_file::TokenFile;

/// What the operator says about who may come in, beside certificates and the cluster's own tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub token_file: Option<PathBuf>,
    /// An AuthenticationConfiguration.
    pub configuration: Option<PathBuf>,
    /// Allowed when nothing says otherwise.
    pub anonymous: Option<bool>,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    TokenFile(#[from] token_file::TokenFileError),
    #[error(transparent)]
    Configuration(#[from] issuers::ConfigurationError),
    #[error(
        "--anonymous-auth cannot be used when the file of --authentication-config says who may be \
         anonymous"
    )]
    AnonymousTwice,
}

/// Finds the user behind a request.
pub struct Authenticator {
    clients: ClientCertificates,
    revocations: Revocations,
    view: Arc<dyn View>,
    tokens: Arc<Tokens>,
    token_file: TokenFile,
    issuers: Option<Issuers>,
    anonymous: Anonymous,
    refusals: Refusals,
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authenticator").finish_non_exhaustive()
    }
}

impl Authenticator {
    /// Reads what the settings name.
    pub fn open(
        settings: &Settings,
        clients: ClientCertificates,
        view: Arc<dyn View>,
        tokens: Arc<Tokens>,
    ) -> Result<Self, OpenError> {
        let token_file = match &settings.token_file {
            Some(file) => TokenFile::open(file)?,
            None => TokenFile::default(),
        };
        let file = settings.configuration.as_ref();
        let issuers = file.map(|file| Issuers::open(file, tokens.issuers()));
        let issuers = issuers.transpose()?;
        let in_file = issuers.as_ref().and_then(Issuers::anonymous);
        let anonymous = match (in_file, settings.anonymous) {
            (Some(_), Some(_)) => return Err(OpenError::AnonymousTwice),
            (Some(anonymous), None) => anonymous,
            (None, flag) => Anonymous::from_flag(flag.unwrap_or(true)),
        };
        Ok(Self {
            clients,
            revocations: Revocations::default(),
            view,
            tokens,
            token_file,
            issuers,
            anonymous,
            refusals: Refusals::default(),
        })
    }

    /// The user who proved who they are, or is anonymous. `peer` is what the client showed in its
    /// handshake.
    pub async fn authenticate(
        &self,
        request: &Parts,
        peer: Option<&PeerCertificate>,
        now: Timestamp,
        remarks: &mut Remarks,
    ) -> Result<User, Status> {
        let mut refusal = None;
        if let Some(peer) = peer {
            let view = self.view.as_ref();
            match peer.user(&self.clients, &self.revocations, view, now) {
                Ok(mut user) => {
                    user.add_authenticated();
                    return Ok(user);
                }
                Err(error) => refusal = Some(error.to_string()),
            }
        }
        if let Some(token) = bearer::token(&request.headers) {
            let wanted = self.tokens.audiences();
            match self.token(&token, wanted, now, remarks).await {
                Ok(Checked { user, .. }) => return Ok(user),
                Err(TokenError::OfAnother) => {
                    refusal = Some("invalid bearer token".to_owned());
                }
                Err(error) => refusal = Some(error.to_string()),
            }
        }
        if refusal.is_none() && self.anonymous.allows(request.uri.path()) {
            return Ok(User::anonymous());
        }
        let why = refusal.unwrap_or_else(|| "no credentials were shown".to_owned());
        self.refusals.log(&why, now);
        Err(Status::unauthorized())
    }

    pub fn issuers(&self) -> Option<&Issuers> {
        self.issuers.as_ref()
    }

    /// What a token is good for that names no audience of its own.
    pub fn audiences(&self) -> &[String] {
        self.tokens.audiences()
    }

    /// The user behind a token alone, and for which of the wanted audiences it is good.
    pub async fn token(
        &self,
        token: &str,
        wanted: &[String],
        now: Timestamp,
        remarks: &mut Remarks,
    ) -> Result<Checked, TokenError> {
        let view = self.view.as_ref();
        if let Some(user) = self.token_file.user(token) {
            return self.for_this_server(user, wanted);
        }
        match self.tokens.check(view, token, wanted, now, remarks) {
            Err(TokenError::OfAnother) => {}
            Err(error) => return Err(error),
            Ok(mut checked) => {
                checked.user.add_authenticated();
                return Ok(checked);
            }
        }
        if let Some(user) = bootstrap_token::user(view, token, now) {
            return self.for_this_server(user, wanted);
        }
        let issuers = self.issuers.as_ref().ok_or(TokenError::OfAnother)?;
        // May fetch keys: too large to be a part of every request.
        let user = Box::pin(issuers.user(token, now)).await;
        let user = user
            .ok_or(TokenError::OfAnother)?
            .map_err(TokenError::Issuer)?;
        self.for_this_server(user, wanted)
    }

    /// A token that knows no audiences is for the API server, whatever is asked.
    fn for_this_server(&self, mut user: User, wanted: &[String]) -> Result<Checked, TokenError> {
        let own = self.tokens.audiences().iter();
        let audiences: Vec<String> = own.filter(|one| wanted.contains(one)).cloned().collect();
        if audiences.is_empty() {
            return Err(TokenError::OfAnother);
        }
        user.add_authenticated();
        Ok(Checked { user, audiences })
    }
}

#[cfg(test)]
mod tests;
