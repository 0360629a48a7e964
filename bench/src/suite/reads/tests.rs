use super::*;

#[test]
fn a_page_tells_where_the_next_one_begins() {
    let page = br#"{"kind":"List","metadata":{"continue":"a/b+c=","x":"1"},"items":[]}"#;
    assert_eq!(continuation(page), Some(&b"a/b+c="[..]));
    assert_eq!(continuation(br#"{"metadata":{"continue":""}}"#), None);
    assert_eq!(continuation(br#"{"metadata":{}}"#), None);
    assert_eq!(continuation(br#"{"metadata":{"continue":"a"#), None);
}

#[test]
fn a_token_stands_in_a_query() {
    assert_eq!(escaped(b"aZ9-_/+="), "aZ9-_%2F%2B%3D");
}

#[test]
fn gets_are_measured_once() {
    let cases = cases(7, 1_000, 1_000);
    let shapes: Vec<_> = cases.iter().map(|case| (case.objects, case.gets)).collect();
    assert_eq!(shapes, [(100, 7), (1_000, 0)]);
}
