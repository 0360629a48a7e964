//! Keeps an informer from asking for watches in a tight loop.
//!
//! A watch that the server ends is asked for again at once, which is right after its ordinary
//! timeout and wrong when a server, or a proxy before it, ends every watch as soon as it begins.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Client;

/// Between the starts of two watches of one informer. Short enough not to be felt.
const WATCH_INTERVAL_MIN: Duration = Duration::from_millis(250);

/// The same client, for one watcher of one kind.
pub fn paced(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let next_start = Arc::new(Mutex::new(Instant::now()));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, next_start) = (client.clone(), next_start.clone());
        async move {
            if is_watch(&request) {
                tokio::time::sleep_until(take_turn(&next_start)).await;
            }
            client.send(request).await
        }
    });
    Client::new(service, namespace)
}

fn take_turn(next_start: &Mutex<Instant>) -> Instant {
    let mut next_start = next_start.lock();
    let start = Instant::now().max(*next_start);
    *next_start = start + WATCH_INTERVAL_MIN;
    start
}

fn is_watch(request: &Request<Body>) -> bool {
    request
        .uri()
        .query()
        .is_some_and(|query| query.split('&').any(|pair| pair == "watch=true"))
}
