//! Everything that decides who may do what, set up together over one store.

use crate::admission::Chain;
use crate::authenticate::Authenticator;
use crate::authorize::Authorizer;
use crate::authorize::follow::{self, Followed};
use crate::pki::names::ServerNames;
use crate::pki::{Pki, PkiError};
use crate::proxy::Proxy;
use crate::reviews::Reviews;
use crate::streaming::Streams;
use crate::tokens::{ISSUER_DEFAULT, Tokens};
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
    pub admission: Chain,
    pub reviews: Reviews,
    pub tunnels: Tunnels,
    pub streams: Streams,
    pub proxy: Proxy,
    store: Store,
    loaded: Mutex<Vec<Followed>>,
}

impl Access {
    /// Reads or makes the CA under `pki_directory`. Until `load` nobody but `system:masters` may do
    /// anything. Connections of nodes end with `shutdown`.
    pub fn open(
        pki_directory: &Path,
        names: ServerNames,
        store: Store,
        now: Timestamp,
        shutdown: CancellationToken,
    ) -> Result<Self, PkiError> {
        let pki = Arc::new(Pki::open(pki_directory, names, now)?);
        let view: Arc<dyn View> = Arc::new(store.clone());
        let tokens = Arc::new(Tokens::open(pki_directory, ISSUER_DEFAULT)?);
        let clients = pki.clients().clone();
        let authenticator = Authenticator::new(clients, Arc::clone(&view), Arc::clone(&tokens));
        let authenticator = Arc::new(authenticator);
        let authorizer = Arc::new(Authorizer::new(Arc::clone(&view)));
        let tunnels = Tunnels::new(shutdown);
        Ok(Self {
            admission: Chain::new(Arc::clone(&view), Arc::clone(&authorizer)),
            reviews: Reviews::new(Arc::clone(&authorizer), Arc::clone(&authenticator)),
            proxy: Proxy::new(Arc::clone(&view), tunnels.clone()),
            streams: Streams::new(view, Arc::clone(&authorizer), tunnels.clone()),
            pki,
            authenticator,
            authorizer,
            tokens,
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

    /// Follows the store from where `load` left off, and looks after the server's certificate,
    /// until shutdown.
    pub async fn run(
        &self,
        clock: impl Fn() -> Timestamp + Send + 'static,
        shutdown: CancellationToken,
    ) {
        let loaded = std::mem::take(&mut *self.loaded.lock());
        let authorizer = Arc::clone(&self.authorizer);
        let following = follow::follow(self.store.clone(), authorizer, loaded, shutdown.clone());
        let fresh = Arc::clone(&self.pki).keep_fresh(clock, shutdown);
        tokio::join!(following, fresh);
    }
}

#[cfg(test)]
mod tests;
