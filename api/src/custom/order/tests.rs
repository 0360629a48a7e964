use super::*;

#[test]
fn versions_have_upstreams_order() {
    let mut versions = [
        "foo10",
        "v1alpha1",
        "v11beta2",
        "v10",
        "foo1",
        "v2",
        "v3beta1",
        "v10beta3",
        "v12alpha1",
        "v0",
        "v1",
        "v1beta01",
    ]
    .map(str::to_owned);
    sort(&mut versions);
    assert_eq!(
        versions.join(" "),
        "v10 v2 v1 v11beta2 v10beta3 v3beta1 v12alpha1 v1alpha1 foo1 foo10 v0 v1beta01"
    );
}
