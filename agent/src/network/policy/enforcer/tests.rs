//! The loop with the real kernel, in a network namespace of the test's own.

use super::super::decode;
use super::super::feed::Hearing;
use super::super::labels::Labels;
use super::super::record::Pod;
use super::super::state::{Here, State};
use super::*;
use crate::network::nft::{Datum, Nft};
use crate::network::testing::isolated_async;
use coracle_api::policy_feed::Told;
use coracle_client::clock::Instant;
use coracle_client::connect::{self, Endpoint, Identity, Trust};
use coracle_client::events::Recorder;
use serde_json::json;
use std::cell::Cell;
use std::future::ready;
use std::io;

/// At most, for what takes a moment.
const WAIT: Duration = Duration::from_secs(60);
/// For what does not come.
const SILENCE: Duration = Duration::from_millis(300);

struct Site {
    shared: Arc<Shared>,
    table: Table,
    hearing: Hearing,
    stop: CancellationToken,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// With the table, and nothing of policies in it.
async fn site(source: Source) -> Site {
    let (table, keeper) = Table::open().unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(keeper.run(stop.clone()));
    let mut epochs = table.epochs();
    let made = timeout(WAIT, epochs.wait_for(|epoch| *epoch > 0));
    made.await.unwrap().unwrap();
    Site {
        shared: shared(source),
        table,
        hearing: Hearing::default(),
        stop,
    }
}

/// Nobody hears it.
fn voice() -> Voice {
    let endpoint = Endpoint::new("http://127.0.0.1:1", Trust::Anybody, Identity::anonymous());
    let client = connect::client(&endpoint.unwrap());
    Voice::new(Recorder::new(client, "kubelet", "here"), "here")
}

fn shared(source: Source) -> Arc<Shared> {
    Arc::new(Shared::new(State::default(), source))
}

/// Isolates pods of this label. Policies that deny all share a chain.
fn isolating(app: &str) -> serde_json::Value {
    json!({
        "podSelector": { "matchLabels": { "app": app } },
        "ingress": [{ "ports": [{ "port": 80 }] }],
    })
}

fn here(app: &str, address: &str) -> Here {
    Here {
        key: format!("shop/{app}").into(),
        pod: Pod {
            labels: Labels::of([("app", app)]),
            addresses: [address.parse().unwrap()].into(),
            ..Pod::default()
        },
    }
}

fn policy(app: &str, is_there: bool) -> Told {
    Told::Policy {
        namespace: "shop".to_owned(),
        name: app.to_owned(),
        spec: is_there.then(|| isolating(app)),
    }
}

impl Site {
    fn enforcer(&self) -> Enforcer {
        Enforcer {
            shared: self.shared.clone(),
            table: self.table.clone(),
            view: View::new(),
            clock: Clock::system(),
            voice: voice(),
        }
    }

    fn begin(&self) {
        tokio::spawn(self.enforcer().run(self.stop.clone()));
    }

    fn tell(&mut self, told: Told) {
        let hearing = &mut self.hearing;
        self.shared.hear(|state| hearing.hear(state, told));
    }

    fn list(&mut self, apps: &[&str]) {
        self.tell(Told::Begin);
        for app in apps {
            self.tell(policy(app, true));
        }
        self.tell(Told::Listed);
    }

    /// Returns when it is in the kernel, or out of it.
    async fn set_here(&self, link: &str, here: Option<Here>) {
        let number = self.shared.set_here(&link.into(), here);
        let applied = timeout(WAIT, self.shared.applied(number));
        applied.await.expect("the kernel has it in time");
    }

    /// As a former agent left them: its pod is isolated, or nothing is.
    async fn leave(&self, is_isolated: bool) {
        let mut state = State::default();
        state.set_here(&"old".into(), Some(here("old", "10.0.0.9")));
        if is_isolated {
            let policy = decode::policy("shop", isolating("old"));
            state.set_policy(&"shop/old".into(), policy);
        }
        let nft = &self.table.nft;
        let (chains, sets) = (nft.chains().await.unwrap(), nft.sets().await.unwrap());
        let batch = kernel::whole(&state.whole([]), &chains, &sets);
        nft.commit(&batch).await.unwrap();
    }

    /// The links of isolated pods.
    async fn links(&self) -> Vec<String> {
        let nft = &self.table.nft;
        let mut links = Vec::new();
        // They may be gone in between.
        for map in kernel::maps(&nft.sets().await.unwrap_or_default()) {
            for element in nft.elements(map).await.unwrap_or_default() {
                let [Datum::Interface(link)] = &element.key[..] else {
                    panic!("{element:?}");
                };
                links.push(link.clone());
            }
        }
        links
    }

    async fn chain_count(&self) -> usize {
        kernel::of_pods(&self.table.nft.chains().await.unwrap()).count()
    }

    async fn until_links(&self, expected: &[&str]) {
        let holding = async {
            while self.links().await != expected {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(WAIT, holding).await.expect("links in time");
    }
}

#[test]
fn what_is_told_is_in_the_kernel_and_comes_back_when_it_is_taken_away() {
    isolated_async(|| async {
        let mut site = site(Source::Nothing).await;
        site.begin();
        site.list(&["db"]);
        site.set_here("one", Some(here("db", "10.0.0.1"))).await;
        assert_eq!(site.links().await, ["one"]);
        site.set_here("two", Some(here("web", "10.0.0.2"))).await;
        assert_eq!(site.links().await, ["one"]);
        site.tell(policy("web", true));
        site.tell(policy("db", false));
        site.until_links(&["two"]).await;
        let stranger = Nft::open().unwrap();
        let mut flush = Batch::new();
        flush.delete_table();
        stranger.commit(&flush).await.unwrap();
        site.until_links(&["two"]).await;
        site.set_here("two", None).await;
        assert!(site.links().await.is_empty());
    });
}

#[test]
fn who_knows_nothing_leaves_rules_as_they_are() {
    isolated_async(|| async {
        let mut site = site(Source::Nothing).await;
        // The server does not tell, and there is nothing that could get lost.
        site.leave(false).await;
        site.shared.answered();
        timeout(WAIT, site.enforcer().known()).await.unwrap();
        // What was known last goes before what is there.
        site.leave(true).await;
        site.shared = shared(Source::Disk);
        site.shared.answered();
        timeout(WAIT, site.enforcer().known()).await.unwrap();

        site.shared = shared(Source::Nothing);
        site.shared.answered();
        site.begin();
        sleep(SILENCE).await;
        assert_eq!(site.links().await, ["old"]);
        // A server that refuses says nothing of policies: pods wait, and are told why.
        let held = timeout(WAIT, async {
            while !site.shared.is_held() {
                sleep(Duration::from_millis(10)).await;
            }
        });
        held.await.unwrap();
        site.list(&["db"]);
        site.set_here("one", Some(here("db", "10.0.0.1"))).await;
        assert!(!site.shared.is_held());
        assert_eq!(site.links().await, ["one"]);
    });
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_asked_again() {
    let (tries, start) = (Cell::new(0), Instant::now());
    let found = found(|| {
        tries.set(tries.get() + 1);
        let source = io::Error::from(io::ErrorKind::Interrupted);
        let failed = NftError::Io {
            action: "read",
            source,
        };
        ready((tries.get() > 3).then_some(Left::Rules).ok_or(failed))
    });
    assert_eq!(timeout(WAIT, found).await.unwrap(), Left::Rules);
    assert_eq!(tries.get(), 4);
    // Less often each time.
    assert_eq!(start.elapsed().as_millis() / 10, 350);
}

#[test]
fn what_is_stale_is_swept_while_others_change() {
    isolated_async(|| async {
        let mut site = site(Source::Nothing).await;
        site.begin();
        site.list(&["db", "web"]);
        site.set_here("one", Some(here("db", "10.0.0.1"))).await;
        site.set_here("two", Some(here("web", "10.0.0.2"))).await;
        assert_eq!(site.chain_count().await, 2);
        site.tell(policy("db", false));
        // For a minute at least.
        for change in 0..600 {
            let address = format!("10.0.0.{}", 3 + change % 2);
            site.set_here("two", Some(here("web", &address))).await;
            sleep(Duration::from_millis(100)).await;
            if site.chain_count().await == 1 {
                assert_eq!(site.links().await, ["two"]);
                return;
            }
        }
        panic!("its chain stays");
    });
}

#[test]
fn the_end_of_a_list_is_waited_for_and_not_asked_for() {
    isolated_async(|| async {
        let mut site = site(Source::Nothing).await;
        let mut running = Running {
            enforcer: site.enforcer(),
            pace: Pace::default(),
        };
        site.shared
            .set_here(&"one".into(), Some(here("db", "10.0.0.1")));
        site.tell(Told::Begin);
        site.tell(policy("db", true));
        running.pace.failed(Instant::now());
        let due = timeout(WAIT, running.pace.due()).await;
        assert_eq!(due, Ok(Due::Retry));
        running.apply().await;
        assert!(timeout(SILENCE, running.pace.due()).await.is_err());
        assert!(site.links().await.is_empty());
        site.tell(Told::Listed);
        running.apply().await;
        assert_eq!(site.links().await, ["one"]);
    });
}
