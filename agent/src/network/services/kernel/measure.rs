//! How long a change takes, and what a connection through a Service costs. Not run by default:
//! `cargo test --release --workspace --lib -- --ignored --nocapture services::kernel::measure`.

#![allow(clippy::print_stderr, clippy::disallowed_methods)] // It measures, and says what.

use super::super::fixtures::{entry, slice};
use super::tests::{Bench, isolated};
use crate::network::testing::ip_command;
use crate::network::view::{Entry, Key};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const ROUNDS: usize = 50;

fn service(number: usize, endpoints: usize) -> (Key, Entry) {
    let (high, low) = (number / 250, number % 250);
    let lines =
        (0..endpoints).map(|place| format!("10.42.{}.{} there\n", place / 250, place % 250));
    let text = format!(
        "ip=10.43.{high}.{low} ports=http/tcp/80/{}",
        30_000 + number
    );
    let slices = [slice("http/tcp/8080", &lines.collect::<String>())];
    (
        format!("default/web-{number}").into(),
        entry(&text, &slices),
    )
}

/// The median and the worst of some rounds.
fn say(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    eprintln!("{what}: median {median:?}, worst {worst:?}");
}

async fn timed(bench: &mut Bench, now: &[(Key, Entry)]) -> Duration {
    let start = Instant::now();
    bench.update(now).await;
    start.elapsed()
}

#[test]
#[ignore = "measures"]
fn a_change_among_a_thousand_services() {
    isolated(async || {
        let mut bench = Bench::new().await;
        let all: Vec<_> = (0..1000).map(|number| service(number, 3)).collect();
        eprintln!(
            "1000 Services of 3 endpoints at once: {:?}",
            timed(&mut bench, &all).await
        );
        let (mut more, mut fewer) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            more.push(timed(&mut bench, &[service(round * 7, 4)]).await);
            fewer.push(timed(&mut bench, &[service(round * 7, 3)]).await);
        }
        say("an endpoint comes to one of 1000 Services", more);
        say("an endpoint goes from one of 1000 Services", fewer);
        let (mut new, mut gone) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            new.push(timed(&mut bench, &[service(1001, 3)]).await);
            gone.push(timed(&mut bench, &[(service(1001, 3).0, Entry::default())]).await);
        }
        say("a Service comes to 1000", new);
        say("a Service goes from 1000", gone);
        let start = Instant::now();
        bench.write_whole().await;
        eprintln!("all of them written again: {:?}", start.elapsed());
    });
}

#[test]
#[ignore = "measures"]
fn a_change_among_a_thousand_endpoints() {
    isolated(async || {
        let mut bench = Bench::new().await;
        let first = timed(&mut bench, &[service(1, 1000)]).await;
        eprintln!("1 Service of 1000 endpoints at once: {first:?}");
        let (mut more, mut fewer) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            more.push(timed(&mut bench, &[service(1, 1001)]).await);
            fewer.push(timed(&mut bench, &[service(1, 1000)]).await);
        }
        say("an endpoint comes to 1000", more);
        say("an endpoint goes from 1000", fewer);
    });
}

/// What a connection takes, of some one after the other.
fn connect(to: SocketAddr) -> Duration {
    const CONNECTIONS: u32 = 100;
    let start = Instant::now();
    for _ in 0..CONNECTIONS {
        drop(TcpStream::connect(to).unwrap());
    }
    start.elapsed() / CONNECTIONS
}

#[test]
#[ignore = "measures"]
fn connections_through_one_of_a_thousand_services() {
    isolated(async || {
        let mut bench = Bench::new().await;
        ip_command("addr add 10.99.0.5/32 dev far");
        let listener = TcpListener::bind("10.99.0.5:8080").unwrap();
        std::thread::spawn(move || listener.incoming().for_each(drop));
        let all: Vec<_> = (0..1000).map(|number| service(number, 3)).collect();
        bench.update(&all).await;
        let lines = "10.99.0.5 there";
        let one = entry(
            "ip=10.43.9.9 ports=http/tcp/80",
            &[slice("http/tcp/8080", lines)],
        );
        bench.update(&[("default/one".into(), one)]).await;
        let ways = ["10.99.0.5:8080", "10.43.9.9:80"].map(|to| to.parse().unwrap());
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..200 {
            for (way, times) in ways.iter().zip(&mut times) {
                times.push(connect(*way));
            }
        }
        // Whatever else the machine does only adds to it.
        let [direct, through] = times.map(|mut times| {
            times.sort();
            times[times.len() / 10]
        });
        let more = through.as_secs_f64() / direct.as_secs_f64() - 1.0;
        eprintln!("a connection takes {direct:?}, and {through:?} through one of 1000 Services");
        eprintln!("which is {:.1}% more", more * 100.0);
    });
}
