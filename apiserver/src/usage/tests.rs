//! When nodes are asked, and when they are not.

use super::*;
use http::Response;
use hyper::client::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;

/// What a node answers, by how often it was asked before; `None` never.
type Answers = fn(usize) -> Option<String>;

/// A quarter of a core, by its own clock.
fn busy(asked: usize) -> Option<String> {
    let asked = asked + 1;
    let (cpu, at_ms) = (asked as f64 * 0.25, asked * 1_000);
    let labels = "{container=\"c\",namespace=\"ns\",pod=\"p\"}";
    Some(format!(
        "node_cpu_usage_seconds_total {cpu} {at_ms}\nnode_memory_working_set_bytes 7 {at_ms}\n\
         container_cpu_usage_seconds_total{labels} {cpu} {at_ms}\n\
         container_memory_working_set_bytes{labels} 5 {at_ms}\n"
    ))
}

/// Connects a node; the count is of the questions that it got.
async fn connect(tunnels: &Tunnels, node: &str, answers: Answers) -> Arc<AtomicUsize> {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        assert_eq!(request.uri().path(), "/metrics/resource");
        let answer = answers(counted.fetch_add(1, Ordering::SeqCst));
        async move {
            match answer {
                Some(text) => Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(text)))),
                None => std::future::pending().await,
            }
        }
    });
    tokio::spawn(async move {
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        drop(server.serve_connection(TokioIo::new(far), service).await);
    });
    let client = http2::Builder::new(TokioExecutor::new());
    let (sender, driver) = client
        .handshake::<_, Body>(TokioIo::new(near))
        .await
        .unwrap();
    tokio::spawn(driver);
    tunnels.add(node, sender);
    count
}

fn usage() -> (Arc<Usage>, Tunnels) {
    let tunnels = Tunnels::new(CancellationToken::new());
    (Arc::new(Usage::new(tunnels.clone())), tunnels)
}

fn nodes(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn milli_cores(used: Option<Used>) -> Option<u64> {
    Some(used?.cpu_nano_cores / 1_000_000)
}

#[tokio::test(start_paused = true)]
async fn the_first_reader_gets_figures_and_the_next_ones_the_same() {
    let (usage, tunnels) = usage();
    let count = connect(&tunnels, "n", busy).await;
    let names = nodes(&["n", "not connected"]);
    usage.refresh(&names).await;
    assert_eq!(milli_cores(usage.node("n")), Some(250));
    let pod = usage.pod("n", "ns", "p").unwrap();
    assert_eq!(milli_cores(Some(pod[0].1)), Some(250));
    assert_eq!(usage.pod("other", "ns", "p"), None, "not on its word");
    assert_eq!(count.load(Ordering::SeqCst), 2);
    usage.refresh(&names).await;
    assert_eq!(count.load(Ordering::SeqCst), 2, "that was fresh");
    tokio::time::sleep(FRESH).await;
    usage.refresh(&names).await;
    assert_eq!(count.load(Ordering::SeqCst), 3, "one is compared with");
    assert_eq!(usage.kept.lock().nodes.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn readers_that_come_together_wait_for_one_answer() {
    let (usage, tunnels) = usage();
    let count = connect(&tunnels, "n", busy).await;
    let names = nodes(&["n"]);
    join_all((0..50).map(|_| usage.refresh(&names))).await;
    assert_eq!(count.load(Ordering::SeqCst), 2);
    assert!(usage.node("n").is_some());
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_without_a_reader_and_all_is_forgotten() {
    let (usage, tunnels) = usage();
    let count = connect(&tunnels, "n", busy).await;
    tokio::time::sleep(KEPT).await;
    assert_eq!(count.load(Ordering::SeqCst), 0);
    usage.refresh(&nodes(&["n"])).await;
    tokio::time::sleep(KEPT * 2).await;
    assert_eq!(count.load(Ordering::SeqCst), 2);
    assert!(usage.kept.lock().nodes.is_empty());
    assert!(!usage.kept.lock().is_watched);
    usage.refresh(&nodes(&["n"])).await;
    assert!(usage.node("n").is_some(), "a reader begins anew");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_silent_keeps_nobody_from_the_others() {
    let (usage, tunnels) = usage();
    connect(&tunnels, "good", busy).await;
    let silent = connect(&tunnels, "silent", |_| None).await;
    let begun = Instant::now();
    let names = nodes(&["good", "silent"]);
    usage.refresh(&names).await;
    assert!((READER_MAX..ANSWER_MAX).contains(&begun.elapsed()));
    assert!(usage.node("good").is_some());
    assert_eq!(usage.node("silent"), None);
    tokio::time::sleep(ANSWER_MAX).await;
    assert_eq!(silent.load(Ordering::SeqCst), 1);
    usage.refresh(&names).await;
    assert_eq!(silent.load(Ordering::SeqCst), 2, "it is asked again");
}

#[tokio::test(start_paused = true)]
async fn figures_of_a_lost_node_are_shown_no_longer_than_they_are_recent() {
    let (usage, tunnels) = usage();
    connect(&tunnels, "n", |asked| {
        (asked < 2).then(|| busy(asked).unwrap())
    })
    .await;
    let names = nodes(&["n"]);
    usage.refresh(&names).await;
    let measured = Instant::now();
    assert!(usage.node("n").is_some());
    let mut shown = 0;
    while measured.elapsed() < APART_MAX * 2 {
        tokio::time::sleep(FRESH).await;
        usage.refresh(&names).await;
        let is_recent = measured.elapsed() <= APART_MAX;
        shown += usize::from(is_recent);
        assert_eq!(usage.node("n").is_some(), is_recent);
        assert_eq!(usage.pod("n", "ns", "p").is_some(), is_recent);
    }
    assert!(shown > 0, "what is recent was shown meanwhile");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_no_more_is_forgotten_while_others_are_read() {
    let (usage, tunnels) = usage();
    connect(&tunnels, "gone", busy).await;
    connect(&tunnels, "stays", busy).await;
    usage.refresh(&nodes(&["gone", "stays"])).await;
    assert_eq!(usage.kept.lock().nodes.len(), 2);
    let begun = Instant::now();
    while begun.elapsed() < KEPT * 2 + FRESH * 2 {
        tokio::time::sleep(FRESH).await;
        usage.refresh(&nodes(&["stays"])).await;
        assert!(usage.node("stays").is_some());
    }
    let left: Vec<String> = usage.kept.lock().nodes.keys().cloned().collect();
    assert_eq!(left, ["stays"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_end_is_not_taken() {
    let (usage, tunnels) = usage();
    let huge = |_| Some("x 1\n".repeat(ANSWER_BYTES_MAX / 4 + 1));
    connect(&tunnels, "n", huge).await;
    let asked = usage.ask("n").await;
    assert!(matches!(asked, Err(AskError::TooLarge)), "{asked:?}");
}
