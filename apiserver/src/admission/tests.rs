//! Admission against a real store: namespaces, roles, and a bench for its parts.

use super::*;
use crate::bootstrap;
use crate::metrics::text::{Format, Text};
use crate::tunnel::Tunnels;
use crate::view::tests::Objects;
use coracle_api::catalogue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

mod certificates; // Approving, signing and subjects.
mod classes; // Default classes, runtime classes, volumes.
mod limits; // LimitRanges, and pods that grow.
mod nodes; // NodeRestriction and the taint of new nodes.
mod pods; // What happens to a pod on its way in.

#[derive(Debug)]
pub struct Bench {
    pub chain: Chain,
    pub view: Arc<Objects>,
}

pub fn bench(objects: Vec<(&'static str, Value)>) -> Bench {
    let view = Objects::new(objects);
    view.put("namespaces", json!({ "metadata": { "name": "web" } }));
    let dying = json!({ "metadata": { "name": "dying" }, "status": { "phase": "Terminating" } });
    view.put("namespaces", dying);
    let account = json!({ "metadata": { "name": "default", "namespace": "web" } });
    view.put("serviceaccounts", account);
    let authorizer = Authorizer::new(view.clone());
    for object in bootstrap::objects() {
        let plural = bootstrap::plural(&object);
        authorizer.apply(rbac::GROUP, plural, &object.key(), Some(&object));
    }
    let tunnels = Tunnels::new(CancellationToken::new());
    let authorizer = Arc::new(authorizer);
    let webhooks = Webhooks::new(view.clone(), Arc::clone(&authorizer), tunnels);
    let settings = Settings::default();
    let chain = Chain::new(view.clone(), authorizer, settings, Arc::new(webhooks));
    Bench { chain, view }
}

/// What is asked: `OPERATION plural[/subresource] namespace name`, with `-` for none.
#[derive(Debug)]
pub struct Asked<'a> {
    pub user: &'a User,
    pub text: &'a str,
    pub old: Option<&'a Object>,
    pub warnings: Warnings,
}

impl Asked<'_> {
    pub fn attributes<'a>(&'a self) -> Attributes<'a> {
        let mut words = self.text.split(' ');
        let operation = match words.next().unwrap() {
            "CREATE" => Operation::Create,
            "UPDATE" => Operation::Update,
            "DELETE" => Operation::Delete,
            _ => Operation::Connect,
        };
        let what = words.next().unwrap();
        let (plural, subresource) = what.split_once('/').unwrap_or((what, ""));
        let mut word = || words.next().filter(|word| *word != "-").unwrap_or("");
        Attributes {
            user: self.user,
            operation,
            resource: catalogue::all()
                .iter()
                .find(|row| row.plural == plural)
                .unwrap(),
            subresource,
            namespace: word(),
            name: word(),
            old: self.old,
            dry_run: false,
            warnings: &self.warnings,
            trail: None,
            how: How::Unsaid,
            deadline: None,
        }
    }
}

impl Bench {
    /// The object after the whole chain, or the message of the refusal.
    pub async fn admit(&self, asked: &Asked<'_>, object: Option<Value>) -> Result<Value, String> {
        let attributes = asked.attributes();
        let Some(object) = object else {
            let answer = self.chain.pass(&attributes).await;
            return answer
                .map(|()| Value::Null)
                .map_err(|status| status.message);
        };
        let mut object = Object::from_value(object).unwrap();
        let mutated = self.chain.mutate(&mut object, &attributes).await;
        let judged = match mutated {
            Ok(()) => self.chain.validate(&object, &attributes).await,
            refused => refused,
        };
        judged
            .map(|()| object.into_value())
            .map_err(|status| status.message)
    }
}

pub fn as_user<'a>(user: &'a User, text: &'a str) -> Asked<'a> {
    Asked {
        user,
        text,
        old: None,
        warnings: Warnings::default(),
    }
}

#[tokio::test]
async fn nothing_is_created_in_a_namespace_that_is_not_there_or_ends() {
    let (bench, jane) = (bench(vec![]), User::named("jane"));
    let map = || Some(json!({ "metadata": { "name": "m" } }));
    let missing = bench
        .admit(&as_user(&jane, "CREATE configmaps gone"), map())
        .await;
    assert_eq!(missing.unwrap_err(), "namespaces \"gone\" not found");
    let missing = bench
        .admit(&as_user(&jane, "UPDATE configmaps gone m"), map())
        .await;
    assert!(missing.is_err());
    let asked = as_user(&jane, "CREATE configmaps dying");
    let mut object = Object::from_value(map().unwrap()).unwrap();
    let status = bench
        .chain
        .mutate(&mut object, &asked.attributes())
        .await
        .unwrap_err();
    expect_test::expect![[r#"configmaps "m" is forbidden: unable to create new content in namespace dying because it is being terminated"#]]
        .assert_eq(&status.message);
    assert_eq!(
        status.details["causes"][0]["reason"],
        "NamespaceTerminating"
    );
    for fine in [
        "UPDATE configmaps dying m",
        "CREATE configmaps web",
        "CREATE nodes -",
    ] {
        assert!(
            bench.admit(&as_user(&jane, fine), map()).await.is_ok(),
            "{fine}"
        );
    }
    let review = "CREATE localsubjectaccessreviews gone";
    assert!(
        bench
            .admit(&as_user(&jane, review), Some(json!({})))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_list_of_revoked_certificates_is_written_only_as_one_that_can_be_read() {
    use crate::pki::revoked::{KEY, NAME, NAMESPACE};
    let (bench, jane) = (bench(vec![]), User::named("jane"));
    let metadata = json!({ "name": NAMESPACE });
    bench
        .view
        .put("namespaces", json!({ "metadata": metadata }));
    let admit = async |operation: &str, namespace: &str, data: Value| {
        let map = json!({ "metadata": { "name": NAME, "namespace": namespace }, "data": data });
        let text = format!("{operation} configmaps {namespace} {NAME}");
        let admitted = bench.admit(&as_user(&jane, &text), Some(map)).await;
        admitted.map(drop).map_err(|why| why.replace(NAME, "NAME"))
    };
    let begins = "configmaps \"NAME\" is forbidden: it must hold a list of revoked certificates";
    for operation in ["CREATE", "UPDATE"] {
        for (data, why) in [
            (json!({}), "it has no \"revoked.json\""),
            (json!({ "other": "{}" }), "it has no \"revoked.json\""),
            (
                json!({ KEY: "nonsense" }),
                "revoked.json: expected ident at line 1 column 2",
            ),
            (
                json!({ KEY: r#"{"certificates":[{"serial":"0x7"}]}"# }),
                "revoked.json: \"0x7\" is no serial number in hexadecimal digits",
            ),
            (
                json!({ KEY: r#"{"users":[{"user":"jane","issuedUntil":"today"}]}"# }),
                "revoked.json: \"today\" is no moment as 2026-01-02T03:04:05Z",
            ),
        ] {
            assert_eq!(
                admit(operation, NAMESPACE, data.clone()).await,
                Err(format!("{begins}: {why}")),
                "{operation} {data}"
            );
            assert_eq!(admit(operation, "web", data).await, Ok(()));
        }
        let good = json!({ KEY: r#"{"certificates":[{"serial":"00:F1"}]}"# });
        assert_eq!(admit(operation, NAMESPACE, good).await, Ok(()));
    }
}

#[tokio::test]
async fn three_namespaces_are_immortal() {
    let (bench, jane) = (bench(vec![]), User::named("jane"));
    for name in ["default", "kube-system", "kube-public"] {
        let text = format!("DELETE namespaces - {name}");
        let refused = bench.admit(&as_user(&jane, &text), None).await.unwrap_err();
        assert!(
            refused.ends_with("is forbidden: this namespace may not be deleted"),
            "{refused}"
        );
    }
    assert!(
        bench
            .admit(&as_user(&jane, "DELETE namespaces - web"), None)
            .await
            .is_ok()
    );
    assert!(
        bench
            .admit(&as_user(&jane, "DELETE configmaps gone m"), None)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_role_is_not_written_by_whom_lacks_its_rights() {
    let (bench, jane) = (bench(vec![]), User::named("jane"));
    let role = json!({
        "metadata": { "name": "r", "namespace": "web" },
        "rules": [{ "verbs": ["get"], "apiGroups": [""], "resources": ["secrets"] }],
    });
    let refused = bench
        .admit(&as_user(&jane, "CREATE roles web"), Some(role.clone()))
        .await;
    assert!(
        refused
            .unwrap_err()
            .contains("permissions not currently held")
    );
    let mut admin = User::named("kubernetes-admin");
    admin.groups.push("system:masters".to_owned());
    assert!(
        bench
            .admit(&as_user(&admin, "CREATE roles web"), Some(role))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn quotas_are_asked_and_timed_unless_left_out() {
    let (mut bench, jane) = (bench(vec![]), User::named("jane"));
    let asked = as_user(&jane, "CREATE configmaps web");
    let full = || async { Err::<(), Status>(Status::failed("no room")) };
    let refused = bench.chain.quotas(&asked.attributes(), full()).await;
    assert_eq!(refused.unwrap_err().message, "no room");
    let mut text = Text::new(Format::Prometheus);
    bench.chain.times().text(&mut text);
    let labels = "name=\"ResourceQuota\",operation=\"CREATE\",rejected=\"true\",type=\"validate\"";
    let text = text.into_string();
    assert!(text.contains(&format!("_count{{{labels}}} 1")), "{text}");
    bench.chain.settings.disabled.insert(Plugin::ResourceQuota);
    let left_out = bench.chain.quotas(&asked.attributes(), full()).await;
    assert_eq!(left_out.unwrap(), None);
}
