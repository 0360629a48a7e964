//! Pages, selectors, revisions.

use super::site::{CONFIG_MAPS, Site, config_map, site};
use serde_json::Value;

async fn five() -> Site {
    let site = site().await;
    for name in ["a", "b", "c", "d", "e"] {
        let mut one = config_map(name, "1");
        one["metadata"]["labels"] = serde_json::json!({ "odd": (name != "b").to_string() });
        site.post(CONFIG_MAPS, &one).await.ok();
    }
    site
}

fn names(list: &Value) -> String {
    let items = list["items"].as_array().unwrap().iter();
    let names = items.map(|item| item["metadata"]["name"].as_str().unwrap());
    names.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn pages_show_the_state_of_the_first() {
    let site = five().await;
    let first = site.get(&format!("{CONFIG_MAPS}?limit=2")).await.ok();
    assert_eq!(first["kind"], "ConfigMapList");
    assert_eq!(names(&first), "a b");
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    site.delete(&format!("{CONFIG_MAPS}/c"), &Value::Null)
        .await
        .ok();
    site.post(CONFIG_MAPS, &config_map("f", "1")).await.ok();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = format!("{CONFIG_MAPS}?limit=3&continue={token}");
    let second = site.get(&second).await.ok();
    assert_eq!(names(&second), "c d e");
    assert!(second["metadata"]["continue"].is_null());
    assert_eq!(
        second["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
    let bad = site.get(&format!("{CONFIG_MAPS}?limit=3&continue=x")).await;
    assert_eq!(bad.status, 400);
}

#[tokio::test]
async fn selectors_choose() {
    let site = five().await;
    let by = |selector: &str| format!("{CONFIG_MAPS}?{selector}");
    let chosen = site.get(&by("labelSelector=odd%3Dfalse")).await.ok();
    assert_eq!(names(&chosen), "b");
    let chosen = site.get(&by("fieldSelector=metadata.name%3Dc")).await.ok();
    assert_eq!(names(&chosen), "c");
    let chosen = site
        .get("/api/v1/configmaps?fieldSelector=metadata.name%3Dd")
        .await
        .ok();
    assert_eq!(names(&chosen), "d");
    assert_eq!(
        site.get(&by("fieldSelector=data.key%3D1")).await.status,
        400
    );
    assert_eq!(site.get(&by("labelSelector=a%3D%3D%3Db")).await.status, 400);
}

#[tokio::test]
async fn a_revision_means_what_the_match_says() {
    let site = five().await;
    let list = site.get(CONFIG_MAPS).await.ok();
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    site.delete(&format!("{CONFIG_MAPS}/a"), &Value::Null)
        .await
        .ok();
    let at =
        |how: &str| format!("{CONFIG_MAPS}?resourceVersion={revision}&resourceVersionMatch={how}");
    assert_eq!(names(&site.get(&at("Exact")).await.ok()), "a b c d e");
    assert_eq!(names(&site.get(&at("NotOlderThan")).await.ok()), "b c d e");
    let future = site
        .get(&format!("{CONFIG_MAPS}?resourceVersion=999999"))
        .await;
    assert_eq!(future.status, 504);
    let text = "resourceVersion=x";
    assert_eq!(site.get(&format!("{CONFIG_MAPS}?{text}")).await.status, 400);
    let without = format!("{CONFIG_MAPS}?resourceVersionMatch=Exact");
    assert_eq!(
        site.get(&without).await.failure(),
        "422 Invalid: ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: \
         resourceVersionMatch is forbidden unless resourceVersion is provided"
    );
}

/// Each cell of the table of `resourceVersion` in lists, in the API concepts.
#[tokio::test]
async fn revisions_and_matches_mean_what_the_table_says() {
    let site = five().await;
    let revision = site.store.revision().0;
    let ask = async |query: String| {
        let answer = site.get(&format!("{CONFIG_MAPS}?{query}")).await;
        match answer.status.as_u16() {
            200 => names(&answer.json()),
            code => code.to_string(),
        }
    };
    let all = "a b c d e";
    let (now, future) = (revision.to_string(), (revision + 1000).to_string());
    let cases = [
        ("", "", "", all),
        ("", "", "2", "a b"),
        ("", "Exact", "", "422"),
        ("", "NotOlderThan", "2", "422"),
        ("0", "", "", all),
        ("0", "", "2", all),
        ("0", "Exact", "", "422"),
        ("0", "NotOlderThan", "2", all),
        (&now, "", "", all),
        (&now, "", "2", "a b"),
        (&now, "Exact", "2", "a b"),
        (&now, "NotOlderThan", "2", "a b"),
        (&now, "Other", "", "422"),
        (&future, "Exact", "", "504"),
        (&future, "", "2", "504"),
        ("x", "", "", "400"),
        ("-1", "Exact", "", "400"),
    ];
    for (revision, how, limit, wanted) in cases {
        let query = format!("resourceVersion={revision}&resourceVersionMatch={how}&limit={limit}");
        assert_eq!(ask(query.clone()).await, wanted, "{query}");
    }
    // One state is not waited for, and nobody knows when it will be there.
    let exact = format!("{CONFIG_MAPS}?resourceVersion={future}&resourceVersionMatch=Exact");
    assert!(!site.get(&exact).await.headers.contains_key("retry-after"));
    let future = site
        .get(&format!("{CONFIG_MAPS}?resourceVersion={future}"))
        .await;
    assert!(
        future
            .failure()
            .contains("Timeout: Too large resource version: ")
    );
    let status = future.json();
    assert_eq!(
        status["details"]["causes"][0]["reason"],
        "ResourceVersionTooLarge"
    );
    assert_eq!(future.headers["retry-after"], "1");
}

#[tokio::test]
async fn a_token_goes_with_no_revision_and_no_match() {
    let site = five().await;
    let now = site.store.revision().0;
    let ask = async |query: String| {
        let answer = site.get(&format!("{CONFIG_MAPS}?{query}")).await;
        match answer.status.as_u16() {
            200 => names(&answer.json()),
            code => code.to_string(),
        }
    };
    let first = site.get(&format!("{CONFIG_MAPS}?limit=2")).await.ok();
    let token = first["metadata"]["continue"].as_str().unwrap();
    assert_eq!(
        ask(format!("continue={token}&resourceVersion={now}")).await,
        "400"
    );
    assert_eq!(
        ask(format!("continue={token}&resourceVersion=0&limit=1")).await,
        "c d e"
    );
    let both = format!("continue={token}&resourceVersionMatch=Exact");
    let both = site.get(&format!("{CONFIG_MAPS}?{both}")).await;
    assert_eq!(
        both.json()["details"]["causes"].as_array().unwrap().len(),
        2
    );
    let streaming = format!("{CONFIG_MAPS}?sendInitialEvents=true");
    assert!(
        site.get(&streaming)
            .await
            .failure()
            .ends_with("is forbidden for list")
    );
}

#[tokio::test]
async fn an_old_token_is_exchanged_for_one_that_goes_on_from_the_newest_state() {
    let site = five().await;
    let first = site.get(&format!("{CONFIG_MAPS}?limit=2")).await.ok();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let old = first["metadata"]["resourceVersion"].as_str().unwrap();
    site.delete(&format!("{CONFIG_MAPS}/c"), &Value::Null)
        .await
        .ok();
    site.post(CONFIG_MAPS, &config_map("f", "1")).await.ok();
    site.store.compact(site.store.revision()).await.unwrap();
    let gone = site
        .get(&format!("{CONFIG_MAPS}?limit=2&continue={token}"))
        .await;
    assert_eq!(gone.status, 410);
    let status = gone.json();
    assert_eq!(status["reason"], "Expired");
    let fresh = status["metadata"]["continue"].as_str().unwrap();
    let second = site
        .get(&format!("{CONFIG_MAPS}?limit=2&continue={fresh}"))
        .await
        .ok();
    assert_eq!(names(&second), "d e");
    // From here on the pages are of one state again.
    let token = second["metadata"]["continue"].as_str().unwrap();
    site.post(CONFIG_MAPS, &config_map("g", "1")).await.ok();
    let third = format!("{CONFIG_MAPS}?continue={token}");
    assert_eq!(names(&site.get(&third).await.ok()), "f");
    let exact = format!("{CONFIG_MAPS}?resourceVersion={old}&resourceVersionMatch=Exact");
    assert_eq!(
        site.get(&exact).await.failure(),
        "410 Expired: The resourceVersion for the provided list is too old."
    );
}

#[tokio::test]
async fn pages_of_a_selection_do_not_count_what_remains() {
    let site = five().await;
    let path = format!("{CONFIG_MAPS}?limit=2&labelSelector=odd%3Dtrue");
    let first = site.get(&path).await.ok();
    assert_eq!(names(&first), "a c");
    assert!(first["metadata"]["remainingItemCount"].is_null());
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = site.get(&format!("{path}&continue={token}")).await.ok();
    assert_eq!(names(&second), "d e");
    assert!(second["metadata"]["continue"].is_null());
    // Over all namespaces the token names the namespace too.
    let all = "/api/v1/configmaps?limit=1&labelSelector=odd";
    let first = site.get(all).await.ok();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let rest = site.get(&format!("{all}0&continue={token}")).await;
    assert_eq!(rest.status, 200);
    let rest = site
        .get(&format!(
            "/api/v1/configmaps?labelSelector=odd&continue={token}"
        ))
        .await
        .ok();
    assert_eq!(names(&rest), "b c d e");
}

#[tokio::test]
async fn a_list_of_many_pieces_is_one_document() {
    const OBJECTS: usize = 700;
    let site = site().await;
    for place in 0..OBJECTS {
        let object = config_map(&format!("n{place:03}"), &"x".repeat(1000));
        site.post(CONFIG_MAPS, &object).await.ok();
    }
    let list = site.get(CONFIG_MAPS).await.ok();
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), OBJECTS);
    assert!(items[0].get("kind").is_none(), "the list says it for all");
    let request = http::Request::get(CONFIG_MAPS).body(http_body_util::Full::default());
    let response = site.open(request.unwrap()).await;
    let mut body = response.into_body();
    let mut longest = 0;
    while let Some(frame) = http_body_util::BodyExt::frame(&mut body).await {
        longest = longest.max(frame.unwrap().into_data().unwrap().len());
    }
    assert!(longest < 256 * 1024, "a piece of {longest} bytes");
    let one = format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dn699");
    assert_eq!(names(&site.get(&one).await.ok()), "n699");
    let pretty = site.get(&format!("{CONFIG_MAPS}?pretty=true")).await;
    assert!(
        pretty
            .body
            .starts_with(b"{\n  \"kind\": \"ConfigMapList\",\n")
    );
    assert_eq!(pretty.json(), list);
}

/// A client that saw a newer state elsewhere is given a moment.
#[tokio::test]
async fn a_state_that_is_about_to_come_is_waited_for() {
    let site = five().await;
    let next = site.store.revision().0 + 1;
    let named = format!("{CONFIG_MAPS}/a?resourceVersion={next}");
    let list = format!("{CONFIG_MAPS}?resourceVersion={next}");
    let (one, all, ()) = tokio::join!(site.get(&named), site.get(&list), async {
        // The two wait by now: each of them looks before anything else runs here.
        site.post(CONFIG_MAPS, &config_map("later", "1")).await.ok();
    });
    assert_eq!(one.ok()["metadata"]["name"], "a");
    let items = all.ok()["items"].as_array().unwrap().len();
    assert_eq!(items, 6);
}

/// Nothing that is no stream outlives the time that its client gives it.
#[tokio::test]
async fn a_timeout_cuts_a_wait_short() {
    let site = five().await;
    let future = site.store.revision().0 + 100;
    let path = format!("{CONFIG_MAPS}?resourceVersion={future}&timeout=10ms");
    let late = site.get(&path).await;
    assert_eq!(late.status, 504);
    assert_eq!(late.headers["content-type"], "text/plain; charset=utf-8");
    assert!(
        late.body
            .starts_with(b"{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Timeout: ")
    );
    let bad = site.get("/healthz?timeout=5").await;
    assert_eq!(
        bad.failure(),
        "400 BadRequest: invalid timeout specified in the request URL - time: missing unit in \
         duration \"5\""
    );
}

#[tokio::test]
async fn rows_of_flow_schemas_are_in_the_order_in_which_they_are_asked() {
    let site = site().await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    let shown = site.get_as(path, table).await.ok();
    let rows = shown["rows"].as_array().unwrap();
    let precedences: Vec<i64> = rows
        .iter()
        .map(|row| row["cells"][2].as_i64().unwrap())
        .collect();
    assert!(
        precedences.len() > 5 && precedences.is_sorted(),
        "{precedences:?}"
    );
    assert_eq!(rows[0]["cells"][0], "exempt");
}
