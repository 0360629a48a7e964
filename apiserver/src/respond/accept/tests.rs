//! Which clause of a header wins.

use super::*;

const LIST: Served = Served {
    table: true,
    route: Route::List,
};

fn take(accept: &str) -> Option<(Form, Target)> {
    let accepted = negotiate(accept, LIST).ok()?;
    Some((accepted.form, accepted.target))
}

#[test]
fn the_best_form_that_can_be_made_is_taken() {
    use Form::{Json, Protobuf, Yaml};
    use Target::{MetadataList, Object, Table};
    let cases = [
        ("", Some((Json, Object))),
        ("*/*", Some((Json, Object))),
        (
            "application/yaml, application/json;q=0.5",
            Some((Yaml, Object)),
        ),
        (
            "application/yaml;q=0.4, application/json;q=0.5",
            Some((Json, Object)),
        ),
        ("*/*, application/yaml", Some((Yaml, Object))),
        ("application/cbor, application/json", Some((Json, Object))),
        (
            "application/vnd.kubernetes.protobuf,application/json",
            Some((Protobuf, Object)),
        ),
        (
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Some((Json, MetadataList)),
        ),
        (
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
             application/json",
            Some((Protobuf, MetadataList)),
        ),
        (
            "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,\
             application/json;as=Table;g=meta.k8s.io;v=v1beta1",
            Some((Json, Table)),
        ),
        (
            "application/yaml;q=nan, application/json;q=0.1",
            Some((Json, Object)),
        ),
        ("application/yaml;q=inf", Some((Yaml, Object))),
        // A quality of nothing is the last choice, not none.
        ("application/json;q=0", Some((Json, Object))),
        (
            "application/json;stream=watch;sv=v1;foo=bar",
            Some((Json, Object)),
        ),
        ("application/json;sv=v2", None),
        ("application/json;stream=other", None),
        ("application/json;as=Table;v=v9;g=meta.k8s.io", None),
        ("application/json;as=Table;v=v1", None),
        ("application/json;as=Pod;v=v1;g=meta.k8s.io", None),
        // A route knows whole types alone.
        ("application/*", None),
        ("text/html", None),
        ("APPLICATION/JSON", None),
    ];
    for (accept, wanted) in cases {
        assert_eq!(take(accept), wanted, "{accept}");
    }
    assert!(negotiate("application/json;pretty=1", LIST).unwrap().pretty);
}

#[test]
fn what_has_no_table_is_refused_as_one_or_taken_in_the_next_form() {
    let bare = Served {
        table: false,
        route: Route::One,
    };
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    assert_eq!(negotiate(table, bare).unwrap_err().code, 406);
    let either = format!("{table},application/json");
    assert_eq!(negotiate(&either, bare).unwrap().target, Target::Object);
    assert_eq!(negotiate(&either, LIST).unwrap().target, Target::Table);
}

#[test]
fn a_refusal_names_what_there_is() {
    let text = |accept, route| {
        let served = Served { table: true, route };
        negotiate(accept, served).unwrap_err().message
    };
    assert!(text("text/html", Route::One).starts_with("406: Not Acceptable\n\nAvailable"));
    assert!(text("text/html", Route::List).ends_with(";stream=watch"));
    assert!(text("application/json;sv=v2", Route::List).ends_with(PLAIN));
    assert!(text("application/yaml", Route::Watch).ends_with(STREAMS));
}
