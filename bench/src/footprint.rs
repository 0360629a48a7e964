//! What a server costs: memory at rest, after load and for each object, node and pod; processor
//! time, bytes written and flushes while nothing but heartbeats happens.

use crate::configmaps;
use crate::fake_nodes;
use crate::flushes;
use crate::pairs::{Figure, Pairs};
use crate::patience::{unless_interrupted, within};
use crate::process::{self, Usage};
use crate::scratch::Scratch;
use crate::side::Side;
use anyhow::Context;
use coracle_client::Client;
use coracle_client::connect as server;
use std::time::Duration;

mod load; // What is put on a server.

const CONNECTIONS: usize = 16;
const OBJECTS: usize = 27_000;
const NODES: [usize; 3] = [1, 10, 100];
const PODS: usize = 1_000;
const HOUR_SECONDS: f64 = 3600.0;
const KIB: f64 = 1024.0;

pub struct Plan {
    /// One list a side: names or ids.
    pub processes: Vec<Vec<String>>,
    /// How long the idle server is watched, each time.
    pub period: Duration,
    pub rests: Rests,
    pub bytes: usize,
    /// Not with more objects, nodes or pods than that.
    pub most: usize,
    /// For each load that is put on it.
    pub timeout: Duration,
}

/// How long it is left alone before it is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Rests {
    /// After load: caches are given back and writes gathered until then.
    pub loaded: Duration,
    /// After a deletion once more: memory may be given back late.
    pub deleted: Duration,
}

impl Rests {
    pub const FULL: Self = Self {
        loaded: Duration::from_secs(10),
        deleted: Duration::from_secs(50),
    };
    /// To see that all works.
    pub const QUICK: Self = Self {
        loaded: Duration::from_millis(100),
        deleted: Duration::from_secs(1),
    };
}

/// A side and what was learned of it.
struct Measured<'a> {
    side: &'a str,
    /// As they were called, and who they are.
    processes: Vec<(&'a str, Vec<u32>)>,
    plan: &'a Plan,
    figures: Vec<Figure>,
    said: &'a dyn Fn(String),
}

/// One side after the other, once: each is looked at while it does nothing.
pub async fn run(sides: &[Side], plan: &Plan, said: &dyn Fn(String)) -> anyhow::Result<Pairs> {
    anyhow::ensure!(
        plan.processes.len() == sides.len() && plan.processes.iter().all(|some| !some.is_empty()),
        "each server needs its processes: --processes, and --processes-against for the second"
    );
    let mut pairs = Pairs::new(sides.len());
    for (number, side) in sides.iter().enumerate() {
        let names = &plan.processes[number];
        let ids = process::ids(names)?;
        let mut measured = Measured {
            side: &side.name,
            processes: names.iter().map(String::as_str).zip(ids).collect(),
            plan,
            figures: Vec::new(),
            said,
        };
        let endpoint = side.endpoint()?;
        let scratch = Scratch::create(server::client(&endpoint)).await?;
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|_| server::client(&endpoint))
            .collect();
        let most = NODES.into_iter().filter(|some| *some <= plan.most).max();
        let nodes = fake_nodes::node_names(&scratch, most.unwrap_or_default());
        let done = unless_interrupted(measured.all(&scratch, &clients, &nodes)).await;
        let removed = scratch.remove(&nodes).await;
        done?;
        removed?;
        for figure in measured.figures {
            pairs.add(number, 0, figure);
        }
    }
    Ok(pairs)
}

impl Measured<'_> {
    async fn all(
        &mut self,
        scratch: &Scratch,
        clients: &[Client],
        nodes: &[String],
    ) -> anyhow::Result<()> {
        let idle = self.resident("idle")?;
        self.rest("idle").await?;
        let mut renewals = Vec::new();
        let mut joined = 0;
        for count in NODES.into_iter().filter(|some| *some <= nodes.len()) {
            let more = &nodes[joined..count];
            let joining = fake_nodes::join(scratch, clients, more);
            renewals.push(self.loaded("nodes", joining).await?);
            joined = count;
            tokio::time::sleep(self.plan.rests.loaded).await;
            self.rest(&format!("{count} nodes")).await?;
        }
        let with_nodes = self.resident(&format!("{joined} nodes"))?;
        self.each("node", idle, with_nodes, joined);
        let pods = PODS.min(self.plan.most);
        let making = load::pods(scratch, clients, nodes, pods);
        self.loaded("pods", making).await?;
        tokio::time::sleep(self.plan.rests.loaded).await;
        let with_pods = self.resident(&format!("{pods} pods more"))?;
        self.each("pod", with_nodes, with_pods, pods);
        self.objects(scratch, clients, with_pods).await
    }

    /// Makes many, lists them, and takes them away again.
    async fn objects(
        &mut self,
        scratch: &Scratch,
        clients: &[Client],
        before_kib: f64,
    ) -> anyhow::Result<()> {
        let objects = OBJECTS.min(self.plan.most);
        let making = configmaps::create(scratch, clients, objects, self.plan.bytes);
        let made = self.loaded("objects", making).await?;
        anyhow::ensure!(made.failed == 0, "{} creates failed", made.failed);
        tokio::time::sleep(self.plan.rests.loaded).await;
        let loaded = self.resident(&format!("{objects} objects more"))?;
        self.each("object", before_kib, loaded, objects);
        self.list(scratch, objects).await?;
        let removing = configmaps::delete(scratch, clients, objects);
        self.loaded("objects deleted", removing).await?;
        let mut waited = 0;
        for rest in [self.plan.rests.loaded, self.plan.rests.deleted] {
            tokio::time::sleep(rest).await;
            waited += rest.as_secs();
            let now = self.resident(&format!("{waited} s after the objects were deleted"))?;
            let kept = (now / before_kib - 1.0) * 100.0;
            let what = format!("more than before the objects, {waited} s after");
            self.figures.push(Figure::new(what, "%", kept));
        }
        Ok(())
    }

    async fn loaded<T>(
        &self,
        what: &str,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        (self.said)(format!("{}: {what}", self.side));
        let done = within(self.plan.timeout, work).await;
        done.with_context(|| format!("{what}, {}", self.side))
    }

    fn all_ids(&self) -> Vec<u32> {
        let ids = self.processes.iter().flat_map(|(_, ids)| ids);
        ids.copied().collect()
    }

    /// Of all processes together; where they are several, each is told too.
    fn resident(&mut self, what: &str) -> anyhow::Result<f64> {
        let mut sum = 0.0;
        let mut each = Vec::new();
        for (name, ids) in &self.processes {
            let kib = process::usage(ids)?.resident_kb as f64;
            each.push(Figure::new(
                format!("resident, {what}: {name}"),
                "MiB",
                kib / KIB,
            ));
            sum += kib;
        }
        (self.said)(format!("{}: resident, {what}: {sum} KiB", self.side));
        let what = format!("resident, {what}");
        self.figures.push(Figure::new(what, "MiB", sum / KIB));
        if each.len() > 1 {
            self.figures.extend(each);
        }
        Ok(sum)
    }

    fn each(&mut self, what: &str, before_kib: f64, after_kib: f64, count: usize) {
        let each = (after_kib - before_kib) / count.max(1) as f64;
        let what = format!("resident, per {what}");
        self.figures.push(Figure::new(what, "KiB", each));
    }

    /// What one more list takes while it is answered, once there has been one.
    async fn list(&mut self, scratch: &Scratch, objects: usize) -> anyhow::Result<()> {
        self.loaded("a list", load::list(scratch)).await?;
        tokio::time::sleep(self.plan.rests.loaded).await;
        let ids = self.all_ids();
        let forgotten = ids.iter().try_for_each(|id| process::forget_peak(*id));
        if let Err(error) = forgotten {
            (self.said)(format!("a list's memory is not measured: {error:#}"));
            return Ok(());
        }
        let before = process::usage(&ids)?.resident_kb;
        self.loaded("one more list", load::list(scratch)).await?;
        let peaks = ids.iter().map(|id| process::peak_kb(*id));
        let peaks: u64 = peaks.sum::<anyhow::Result<_>>()?;
        let more = peaks.saturating_sub(before) as f64 / KIB;
        let what = format!("one more list of {objects}, at most");
        self.figures.push(Figure::new(what, "MiB", more));
        Ok(())
    }

    /// What is spent while only heartbeats happen.
    async fn rest(&mut self, what: &str) -> anyhow::Result<()> {
        let period = self.plan.period;
        (self.said)(format!("{}: {what}, for {period:?}", self.side));
        let ids = self.all_ids();
        let before = process::usage(&ids)?;
        let flushes = flushes::count(&ids, period);
        let (flushes, ()) = tokio::join!(flushes, tokio::time::sleep(period));
        let after = process::usage(&ids)?;
        if let Err(error) = &flushes {
            (self.said)(format!("flushes are not counted: {error:#}"));
        }
        let flushes = flushes.ok();
        self.figures
            .extend(spent(what, before, after, flushes, period));
        Ok(())
    }
}

/// Of a period, as a share of a core and for an hour.
fn spent(
    what: &str,
    before: Usage,
    after: Usage,
    flushes: Option<u64>,
    period: Duration,
) -> Vec<Figure> {
    let seconds = period.as_secs_f64();
    let seen = match seconds {
        short if short < 120.0 => format!("{what}, of {short:.0} s"),
        long => format!("{what}, of {:.1} min", long / 60.0),
    };
    let processor = after.processor.saturating_sub(before.processor);
    let share = processor.as_secs_f64() / seconds * 100.0;
    let written = after.written_bytes.saturating_sub(before.written_bytes);
    let an_hour = |count: f64| count / seconds * HOUR_SECONDS;
    let written = an_hour(written as f64 / KIB / KIB);
    let mut figures = vec![
        Figure::new(format!("processor, {seen}"), "% of a core", share),
        Figure::new(format!("written, {seen}"), "MiB/h", written),
    ];
    let flushes = flushes.map(|count| an_hour(count as f64));
    figures.extend(flushes.map(|count| Figure::new(format!("flushes, {seen}"), "/h", count)));
    figures
}

#[cfg(test)]
mod tests {
    use super::{Duration, Usage, spent};

    #[test]
    fn a_period_is_told_as_a_share_and_for_an_hour() {
        let usage = |milliseconds, written_bytes| Usage {
            resident_kb: 1,
            processor: Duration::from_millis(milliseconds),
            written_bytes,
        };
        let period = Duration::from_secs(180);
        let (before, after) = (usage(500, 1 << 20), usage(1_400, 5 << 20));
        let of = |flushes| spent("idle", before, after, flushes, period);
        let found = of(Some(4));
        let expected = [
            ("processor, idle, of 3.0 min", 0.5),
            ("written, idle, of 3.0 min", 80.0),
            ("flushes, idle, of 3.0 min", 80.0),
        ];
        assert_eq!(found.len(), expected.len());
        for (figure, (what, value)) in found.into_iter().zip(expected) {
            assert_eq!(figure.what, what);
            assert!((figure.value - value).abs() < 1e-9, "{figure:?}");
        }
        assert_eq!(of(None).len(), 2);
    }
}
