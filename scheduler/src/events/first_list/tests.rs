//! A server that does not serve a kind.

use super::*;
use coracle_client::Client;
use coracle_client::informer::Informers;
use k8s_openapi::api::resource::v1::ResourceSlice;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn serving_nothing() -> Client {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| {
        let answer = http::Response::builder().status(404);
        let answer = answer.body(kube::client::Body::from(b"404 page not found".to_vec()));
        std::future::ready(answer)
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn what_is_waited_for_is_told_again_and_again() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _logged = tracing::subscriber::set_default(subscriber);
    let stop = CancellationToken::new();
    let informers = Informers::new(serving_nothing(), stop.clone());
    let slices = informers.get::<ResourceSlice>();
    let waited = tokio::time::timeout(TOLD_EVERY * 7 / 2, synced(&slices)).await;
    assert!(waited.is_err(), "there is no list");
    let said = String::from_utf8(log.0.lock().clone()).expect("text");
    let told = said.lines().filter(|line| {
        line.contains("nothing is scheduled until the kind can be listed")
            && line.contains("kind=ResourceSlice version=resource.k8s.io/v1")
    });
    assert_eq!(told.count(), 3, "{said}");
    stop.cancel();
    assert!(!synced(&slices).await);
}
