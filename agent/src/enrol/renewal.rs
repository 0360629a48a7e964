//! Renews certificates while the agent runs.

use super::files::{Files, Pair};
use super::identity::CLIENT;
use super::lifetime::{Lifetime, serves};
use super::request::{Purpose, obtain};
use crate::families::Families;
use crate::node::OwnAddresses;
use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_client::connect::Identity;
use rand::RngExt;
use std::net::IpAddr;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub const SERVING: &str = "serving";
/// Looks at the wall clock this often at least: it may be set while the node sleeps.
const LOOK_EVERY: Duration = Duration::from_secs(600);
const RETRY_FIRST: Duration = Duration::from_secs(2);
const RETRY_LONGEST: Duration = Duration::from_secs(300);

/// Keeps a node's certificates current.
#[derive(Clone)]
pub struct Keeper {
    pub client: Client,
    pub node_name: String,
    pub files: Files,
    pub clock: Clock,
    pub stop: CancellationToken,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

impl Keeper {
    /// Gets and renews both certificates. The one for TLS servers on this node, at its `addresses`, is
    /// asked for when the node is itself: nobody else gets it. `show` is told of the one on disk and
    /// of each new one.
    pub async fn run(self, identity: Identity, addresses: OwnAddresses, show: impl Fn(&Pair)) {
        self.begin_serving(addresses.all(), &show);
        let has_own = matches!(self.files.pair(CLIENT), Ok(Some(_)));
        let (is_itself, mut becomes_itself) = watch::channel(has_own);
        let client = self.keep_client_certificate(identity, || {
            is_itself.send_replace(true);
        });
        let serving = async {
            if becomes_itself
                .wait_for(|is_itself| *is_itself)
                .await
                .is_ok()
            {
                self.serve(&addresses, &show).await;
            }
        };
        tokio::select! {
            () = self.stop.cancelled() => {}
            ((), ()) = async { tokio::join!(client, serving) } => {}
        }
    }

    fn begin_serving(&self, addresses: Families<IpAddr>, show: &impl Fn(&Pair)) {
        match self.files.pair(SERVING) {
            // Of another name, or of an address that the node had: another is asked for at once.
            Ok(Some(pair)) if !serves(&pair.certificate, &self.node_name, addresses) => {
                if let Err(error) = self.files.remove_pair(SERVING) {
                    tracing::error!(%error, "a certificate of another address is kept");
                }
            }
            Ok(Some(pair)) => show(&pair),
            _ => {}
        }
    }

    /// Asks anew whenever the node has another address.
    async fn serve(&self, addresses: &OwnAddresses, show: &impl Fn(&Pair)) {
        let mut changes = addresses.subscribe();
        loop {
            let current = *changes.borrow_and_update();
            self.begin_serving(current, show);
            let purpose = Purpose::Serving(current);
            tokio::select! {
                () = self.keep_on(SERVING, &purpose, show) => {}
                changed = changes.changed() => if changed.is_err() { return },
            }
        }
    }

    /// All clients use a new one from the next request on.
    async fn keep_client_certificate(&self, identity: Identity, done: impl Fn()) {
        let install = move |pair: &Pair| {
            let set = identity.set_certificate(pair.certificate.as_bytes(), pair.key.as_bytes());
            if let Err(error) = set {
                tracing::error!(%error, "the server sent a certificate that cannot be used");
            }
            done();
        };
        self.keep_on(CLIENT, &Purpose::Client, install).await;
    }

    async fn keep_on(&self, name: &str, purpose: &Purpose, install: impl Fn(&Pair)) {
        let mut pause = RETRY_FIRST;
        loop {
            if let Some(pair) = self.files.pair(name).ok().flatten() {
                self.sleep_until_due(&pair).await;
            }
            match obtain(&self.client, &self.node_name, purpose).await {
                Ok(pair) => {
                    if let Err(error) = self.files.set_pair(name, &pair) {
                        tracing::error!(%error, "a new certificate is not kept");
                    }
                    install(&pair);
                    tracing::info!(certificate = name, "has a new certificate");
                    pause = RETRY_FIRST;
                }
                Err(error) => {
                    tracing::warn!(certificate = name, %error, "no new certificate yet");
                    let jitter = rand::rng().random_range(0.75..1.25);
                    tokio::time::sleep(pause.mul_f64(jitter)).await;
                    pause = (pause * 2).min(RETRY_LONGEST);
                }
            }
        }
    }

    async fn sleep_until_due(&self, pair: &Pair) {
        let Some(lifetime) = Lifetime::of(&pair.certificate) else {
            return;
        };
        let due = lifetime.renew_at(rand::rng().random_range(0.0..1.0));
        loop {
            let left = due.duration_since(self.clock.now());
            let Ok(left) = Duration::try_from(left) else {
                return; // In the past.
            };
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LOOK_EVERY)).await;
        }
    }
}
