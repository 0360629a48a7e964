//! The loop looks at each policy once a generation.

use super::*;
use crate::Config;
use crate::fake_api::FakeApi;
use coracle_client::clock::Clock;
use coracle_client::informer::Informers;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const POLICY: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/p";

fn put(api: &FakeApi, generation: i64, expression: &str) {
    let status = api
        .get(POLICY)
        .map_or(Value::Null, |old| old["status"].clone());
    let policy = json!({
        "metadata": { "name": "p", "generation": generation },
        "spec": {
            "matchConstraints": { "resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
                "operations": ["CREATE"],
            }] },
            "validations": [{ "expression": expression }],
        },
        "status": status,
    });
    api.put(POLICY, policy);
}

/// Waits until a generation was looked at, and gives how many warnings there are.
async fn warnings(api: &FakeApi, generation: i64) -> usize {
    let looked = async {
        loop {
            let status = api.get(POLICY).unwrap()["status"].clone();
            if status["observedGeneration"] == generation {
                let all = status["typeChecking"]["expressionWarnings"].as_array();
                return all.map_or(0, Vec::len);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), looked)
        .await
        .unwrap_or_else(|_| panic!("{generation}: {:?}", api.get(POLICY)))
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_looked_at_once_a_generation() {
    let api = FakeApi::new();
    put(&api, 1, "object.spec.replicas > 1");
    let shutdown = CancellationToken::new();
    let context = Context {
        client: api.client(),
        informers: Informers::new(api.client(), shutdown.clone()),
        config: Arc::new(Config::default()),
        clock: Clock::system(),
        shutdown: shutdown.clone(),
    };
    let running = tokio::spawn(run(context));
    assert_eq!(warnings(&api, 1).await, 0);
    put(&api, 2, "object.spec.replicas > '1'");
    assert_eq!(warnings(&api, 2).await, 1);
    let written = api
        .requests()
        .into_iter()
        .filter(|one| one.starts_with("PATCH"));
    assert_eq!(written.count(), 2, "once a generation");
    shutdown.cancel();
    running.await.unwrap();
}
