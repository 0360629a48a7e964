//! Everything that decides who may do what, set up together over one store.

use crate::admission::policy;
use crate::admission::webhook::{self, Webhooks};
use crate::admission::{self, Chain};
use crate::aggregation::{self, Aggregation};
use crate::authenticate::impersonate::LastModes;
use crate::authenticate::{self, Authenticator};
use crate::authorize::Authorizer;
use crate::authorize::follow::{self, Followed};
use crate::pki::names::ServerNames;
use crate::pki::{Pki, PkiError};
use crate::proxy::Proxy;
use crate::reviews::Reviews;
use crate::streaming::Streams;
use crate::tokens::{self, LegacyUses, Tokens};
use crate::tunnel::Tunnels;
use crate::view::View;
use coracle_store::Store;
use jiff::Timestamp;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub struct Access {
    pub pki: Arc<Pki>,
    pub authenticator: Arc<Authenticator>,
    pub authorizer: Arc<Authorizer>,
    pub tokens: Arc<Tokens>,
    pub legacy_uses: LegacyUses,
    pub last_modes: LastModes,
    pub admission: Chain,
    pub reviews: Reviews,
    pub tunnels: Tunnels,
    pub streams: Streams,
    pub proxy: Proxy,
    pub aggregation: Arc<Aggregation>,
    store: Store,
    loaded: Mutex<Vec<Followed>>,
}

/// What the operator says about who may come in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub authentication: authenticate::Settings,
    pub tokens: tokens::Settings,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Pki(#[from] PkiError),
    #[error(transparent)]
    Authentication(#[from] authenticate::OpenError),
}

impl Access {
    /// Reads or makes the CA under `pki_directory`. Until `load` nobody but `system:masters` may do
    /// anything. Connections of nodes end with `shutdown`.
    pub fn open(
        pki_directory: &Path,
        names: ServerNames,
        settings: &Settings,
        store: Store,
        now: Timestamp,
        admission: admission::Settings,
        shutdown: CancellationToken,
    ) -> Result<Self, OpenError> {
        let pki = Arc::new(Pki::open(pki_directory, names, now)?);
        let view: Arc<dyn View> = Arc::new(store.clone());
        let tokens = Arc::new(Tokens::open(pki_directory, &settings.tokens)?);
        let authenticator = Authenticator::open(
            &settings.authentication,
            pki.clients().clone(),
            Arc::clone(&view),
            Arc::clone(&tokens),
        )?;
        let authenticator = Arc::new(authenticator);
        let authorizer = Arc::new(Authorizer::new(Arc::clone(&view)));
        let tunnels = Tunnels::new(shutdown.clone());
        let webhooks = Arc::new(Webhooks::new(
            Arc::clone(&view),
            Arc::clone(&authorizer),
            tunnels.clone(),
        ));
        Ok(Self {
            admission: Chain::new(
                Arc::clone(&view),
                Arc::clone(&authorizer),
                admission,
                webhooks,
            ),
            reviews: Reviews::new(Arc::clone(&authorizer), Arc::clone(&authenticator)),
            aggregation: Arc::new(Aggregation::new(
                Arc::clone(&view),
                tunnels.clone(),
                Arc::clone(&pki.front_proxy),
                shutdown.clone(),
            )),
            proxy: Proxy::new(Arc::clone(&view), tunnels.clone()),
            streams: Streams::new(view, Arc::clone(&authorizer), tunnels.clone()),
            pki,
            authenticator,
            authorizer,
            tokens,
            legacy_uses: LegacyUses::default(),
            last_modes: LastModes::default(),
            tunnels,
            store,
            loaded: Mutex::default(),
        })
    }

    /// Reads the rules that are stored: to be done after the bootstrap roles are written and
    /// before anything is served.
    pub fn load(&self) {
        *self.loaded.lock() = follow::load(&self.store, &self.authorizer);
    }

    /// Reads the admission webhooks and the other API servers that are stored: to be done before
    /// anything is served, and after what the server itself writes first, as no node is there to
    /// reach a webhook by.
    pub fn load_webhooks(&self) {
        webhook::follow::load(&self.store, &self.admission.webhooks);
        policy::follow::load(&self.store, &self.admission.policies);
        aggregation::follow::load(&self.store, &self.aggregation);
    }

    /// Follows the store from where `load` left off, and looks after the server's certificate and
    /// the issuers of tokens, until shutdown.
    pub async fn run(
        &self,
        clock: impl Fn() -> Timestamp + Send + Sync,
        shutdown: CancellationToken,
    ) {
        let loaded = std::mem::take(&mut *self.loaded.lock());
        let authorizer = Arc::clone(&self.authorizer);
        let following = follow::follow(self.store.clone(), authorizer, loaded, shutdown.clone());
        let webhooks = Arc::clone(&self.admission.webhooks);
        let hooked = webhook::follow::follow(self.store.clone(), webhooks, shutdown.clone());
        let policies = Arc::clone(&self.admission.policies);
        let ruled = policy::follow::follow(self.store.clone(), policies, shutdown.clone());
        let fresh = Arc::clone(&self.pki).keep_fresh(&clock, shutdown.clone());
        let issuers = async {
            if let Some(issuers) = self.authenticator.issuers() {
                issuers.follow(&clock, shutdown).await;
            }
        };
        tokio::join!(following, hooked, ruled, fresh, issuers);
    }
}

#[cfg(test)]
mod tests;
