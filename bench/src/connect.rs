//! What a connection takes through a Service, beside one to the same pod directly: one after the
//! other, some of the one and then some of the other, so that whatever else the machine does meets
//! both.
//!
//! The far end takes connections and ends them at once: it is the one whose port waits then, and the
//! near end never runs out of ports.

use crate::stats::Report;
use anyhow::{Context, bail};
use coracle_client::clock::Clock;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// So many of the one way before the other has its turn.
const IN_TURN: usize = 50;
/// What takes longer has failed.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// First connections of each way, which nobody counts.
const WARM_UP: usize = 50;

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub direct: SocketAddr,
    pub service: SocketAddr,
    /// Of each way.
    pub count: usize,
}

pub fn run(plan: &Plan) -> anyhow::Result<Report> {
    let clock = Clock::system();
    let ways = [plan.direct, plan.service];
    for to in ways {
        connect(to, WARM_UP, &clock)?;
    }
    let begun = clock.monotonic();
    let (mut all, mut medians) = ([Vec::new(), Vec::new()], Vec::new());
    for round in 0..plan.count.div_ceil(IN_TURN) {
        let mut of_round = [Duration::ZERO; 2];
        // Each way is the first in every other round.
        for way in [round % 2, (round + 1) % 2] {
            let mut times = connect(ways[way], IN_TURN, &clock)?;
            of_round[way] = median(&mut times);
            all[way].extend(times);
        }
        medians.push(of_round);
    }
    let [mut direct, service] = all;
    let direct_ns = nanoseconds(median(&mut direct));
    let service_ns = nanoseconds(median(&mut service.clone()));
    let report = Report::new("connect", service, 0, begun.elapsed());
    Ok(report.with_notes(vec![
        ("ns directly, the median".to_owned(), direct_ns),
        ("ns through the Service, the median".to_owned(), service_ns),
        (
            "thousandths of a direct one, the median of rounds".to_owned(),
            thousandths(&medians),
        ),
    ]))
}

fn connect(to: SocketAddr, count: usize, clock: &Clock) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = clock.monotonic();
        let stream = TcpStream::connect_timeout(&to, CONNECT_MAX);
        times.push(begun.elapsed());
        let mut stream = stream.with_context(|| format!("cannot connect to {to}"))?;
        stream.set_read_timeout(Some(CONNECT_MAX))?;
        if stream.read(&mut [0])? != 0 {
            bail!("{to} says something: `coracle-bench accept` is to be there");
        }
    }
    Ok(times)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Of each round what the Service takes as a share of what the direct way does; the median.
fn thousandths(rounds: &[[Duration; 2]]) -> u64 {
    let shares = rounds.iter().map(|[direct, service]| {
        nanoseconds(*service).saturating_mul(1000) / nanoseconds(*direct).max(1)
    });
    let mut shares: Vec<_> = shares.collect();
    shares.sort_unstable();
    shares.get(shares.len() / 2).copied().unwrap_or_default()
}

/// The far end, until it is ended.
pub fn accept(at: &[SocketAddr]) -> anyhow::Result<()> {
    let listeners = at
        .iter()
        .map(|at| TcpListener::bind(at).with_context(|| format!("cannot listen at {at}")));
    let listeners = listeners.collect::<anyhow::Result<Vec<_>>>()?;
    std::thread::scope(|scope| {
        for listener in &listeners {
            scope.spawn(|| listener.incoming().for_each(drop));
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Duration, IN_TURN, Plan, TcpListener, run, thousandths};

    #[test]
    fn both_ways_are_measured_in_turn() {
        let ways = [0, 1].map(|_| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            std::thread::spawn(move || listener.incoming().for_each(drop));
            address
        });
        let plan = Plan {
            direct: ways[0],
            service: ways[1],
            count: 3 * IN_TURN,
        };
        let report = run(&plan).unwrap();
        assert_eq!((report.count, report.failed), (3 * IN_TURN, 0));
        assert!(report.notes.iter().all(|(_, count)| *count > 0));
    }

    #[test]
    fn one_slow_round_changes_nothing() {
        let round = |direct, service| [direct, service].map(Duration::from_micros);
        let rounds = [round(20, 21), round(200, 20), round(20, 400), round(40, 42)];
        assert_eq!(thousandths(&rounds), 1050);
        assert_eq!(thousandths(&[]), 0);
    }
}
