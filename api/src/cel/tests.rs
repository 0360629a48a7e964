//! What can be read, of which type it is, and what is wrong.

use super::*;
use expect_test::{Expect, expect};

fn environment() -> Environment {
    Environment::default()
        .with_bind()
        .with("o", Type::Dyn)
        .with("n", Type::Int)
        .with("s", Type::String)
        .with("l", Type::list(Type::Int))
        .with("m", Type::map(Type::String, Type::list(Type::String)))
        .with("p", Type::of_struct("P"))
        .with_struct(
            "P",
            &[
                ("name", Type::String),
                ("size", Type::parse("kubernetes.Quantity").unwrap()),
            ],
        )
}

fn told(text: &str) -> String {
    match compile(text, &environment()) {
        Ok(found) => found.of.to_string(),
        Err(error) => error,
    }
}

fn check(texts: &[&str], expected: Expect) {
    let lines: Vec<String> = texts
        .iter()
        .map(|text| format!("{text} => {}", told(text)))
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn results() {
    check(
        &[
            "o.a.b == 1 || o['x'].exists(i, i > 2)",
            "n + 1",
            "n < 1.5",
            "[1, 2].map(i, string(i))",
            "l.filter(i, i > 1)",
            "m.all(k, m[k].size() > 0)",
            "m['a'][0]",
            "{'a': 1}",
            "[]",
            "o.?a.orValue('x')",
            "m[?'a'].optMap(v, v.size()).orValue(0)",
            "l.transformList(i, v, i + v)",
            "l.sortBy(i, -i)",
            "cel.bind(x, s, x == 'a')",
            "type(n) == int",
            "p.size.compareTo(quantity('1Gi'))",
            "has(p.name) ? p.name : 'x'",
            "o",
            "null",
            "ip('::1').family() == 6 && ip.isCanonical('::1')",
            "optional.of(1)",
            "timestamp('2020-01-02T03:04:05Z') - duration('1h30m')",
            "n in l && s in m",
            "s.format([1, o])",
            "sets.contains([1], l)",
            "s.split(',').join('.')",
            "dyn(1) == 'a'",
            "l.exists(i, v, i == v)",
            "!o && -n < 0",
        ],
        expect![[r#"
            o.a.b == 1 || o['x'].exists(i, i > 2) => bool
            n + 1 => int
            n < 1.5 => bool
            [1, 2].map(i, string(i)) => list(string)
            l.filter(i, i > 1) => list(int)
            m.all(k, m[k].size() > 0) => bool
            m['a'][0] => string
            {'a': 1} => map(string, int)
            [] => list(dyn)
            o.?a.orValue('x') => dyn
            m[?'a'].optMap(v, v.size()).orValue(0) => int
            l.transformList(i, v, i + v) => list(int)
            l.sortBy(i, -i) => list(int)
            cel.bind(x, s, x == 'a') => bool
            type(n) == int => bool
            p.size.compareTo(quantity('1Gi')) => int
            has(p.name) ? p.name : 'x' => string
            o => dyn
            null => null_type
            ip('::1').family() == 6 && ip.isCanonical('::1') => bool
            optional.of(1) => optional_type(int)
            timestamp('2020-01-02T03:04:05Z') - duration('1h30m') => google.protobuf.Timestamp
            n in l && s in m => bool
            s.format([1, o]) => string
            sets.contains([1], l) => bool
            s.split(',').join('.') => string
            dyn(1) == 'a' => bool
            l.exists(i, v, i == v) => bool
            !o && -n < 0 => bool"#]],
    );
}

#[test]
fn problems_of_names_and_arguments() {
    check(
        &[
            "s ==",
            "'a' == 1 || nobody",
            "n == 'a'",
            "n + s",
            "s.foo(1)",
            "foo(1)",
            "p.nothing",
            "n.field",
            "n && s",
            "s.startsWith(1)",
        ],
        expect![[r#"
            s == => ERROR: <input>:1:5: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
             | s ==
             | ....^
            'a' == 1 || nobody => ERROR: <input>:1:5: found no matching overload for '_==_' applied to '(string, int)'
             | 'a' == 1 || nobody
             | ....^
            ERROR: <input>:1:13: undeclared reference to 'nobody' (in container '')
             | 'a' == 1 || nobody
             | ............^
            n == 'a' => ERROR: <input>:1:3: found no matching overload for '_==_' applied to '(int, string)'
             | n == 'a'
             | ..^
            n + s => ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'
             | n + s
             | ..^
            s.foo(1) => ERROR: <input>:1:6: undeclared reference to 'foo' (in container '')
             | s.foo(1)
             | .....^
            foo(1) => ERROR: <input>:1:4: undeclared reference to 'foo' (in container '')
             | foo(1)
             | ...^
            p.nothing => ERROR: <input>:1:2: undefined field 'nothing'
             | p.nothing
             | .^
            n.field => ERROR: <input>:1:2: type 'int' does not support field selection
             | n.field
             | .^
            n && s => ERROR: <input>:1:1: expected type 'bool' but found 'int'
             | n && s
             | ^
            ERROR: <input>:1:6: expected type 'bool' but found 'string'
             | n && s
             | .....^
            s.startsWith(1) => ERROR: <input>:1:13: found no matching overload for 'startsWith' applied to 'string.(int)'
             | s.startsWith(1)
             | ............^"#]],
    );
}

#[test]
fn problems_of_literals_and_loops() {
    check(
        &[
            "size(1)",
            "[1, 'a']",
            "{'a': 1, 2: 'b'}",
            "n.all(x, true)",
            "l.all(x, x + 1)",
            "l.exists(x, x.y)",
            "quantity('1Gi') > quantity('2Gi')",
            "duration('1x') == timestamp('x')",
            "s.matches('[')",
            "p.name.size() > 'a'.size() ||\n  p.other",
        ],
        expect![[r#"
            size(1) => ERROR: <input>:1:5: found no matching overload for 'size' applied to '(int)'
             | size(1)
             | ....^
            [1, 'a'] => ERROR: <input>:1:5: expected type 'int' but found 'string'
             | [1, 'a']
             | ....^
            {'a': 1, 2: 'b'} => ERROR: <input>:1:10: expected type 'string' but found 'int'
             | {'a': 1, 2: 'b'}
             | .........^
            ERROR: <input>:1:13: expected type 'int' but found 'string'
             | {'a': 1, 2: 'b'}
             | ............^
            n.all(x, true) => ERROR: <input>:1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)
             | n.all(x, true)
             | ^
            l.all(x, x + 1) => ERROR: <input>:1:12: expected type 'bool' but found 'int'
             | l.all(x, x + 1)
             | ...........^
            l.exists(x, x.y) => ERROR: <input>:1:14: type 'int' does not support field selection
             | l.exists(x, x.y)
             | .............^
            quantity('1Gi') > quantity('2Gi') => ERROR: <input>:1:17: found no matching overload for '_>_' applied to '(kubernetes.Quantity, kubernetes.Quantity)'
             | quantity('1Gi') > quantity('2Gi')
             | ................^
            duration('1x') == timestamp('x') => ERROR: <input>:1:16: found no matching overload for '_==_' applied to '(duration, timestamp)'
             | duration('1x') == timestamp('x')
             | ...............^
            s.matches('[') => ERROR: <input>:1:11: invalid matches argument
             | s.matches('[')
             | ..........^
            p.name.size() > 'a'.size() ||
              p.other => ERROR: <input>:2:4: undefined field 'other'
             |   p.other
             | ...^"#]],
    );
}

#[test]
fn problems_of_macros_and_choices() {
    check(
        &[
            "P{name: 1}",
            "Q{}",
            "m.a.b",
            "n.optMap(x, x)",
            "[1, o]",
            "jsonpatch.escapeKey('a')",
            "m[?'a'].optFlatMap(v, v)",
            "l.transformList(i, v, 1, 2)",
            "l.filter(x, x + 1)",
            "l.all(1, true)",
            "true ? 1 : 'a'",
            "1 / 2.0",
        ],
        expect![[r#"
            P{name: 1} => ERROR: <input>:1:7: expected type of field 'name' is 'string' but provided type is 'int'
             | P{name: 1}
             | ......^
            Q{} => ERROR: <input>:1:2: undeclared reference to 'Q' (in container '')
             | Q{}
             | .^
            m.a.b => ERROR: <input>:1:4: type 'list(string)' does not support field selection
             | m.a.b
             | ...^
            n.optMap(x, x) => ERROR: <input>:1:9: found no matching overload for 'hasValue' applied to 'int.()'
             | n.optMap(x, x)
             | ........^
            ERROR: <input>:1:9: found no matching overload for 'value' applied to 'int.()'
             | n.optMap(x, x)
             | ........^
            [1, o] => ERROR: <input>:1:5: expected type 'int' but found 'dyn'
             | [1, o]
             | ....^
            jsonpatch.escapeKey('a') => ERROR: <input>:1:1: undeclared reference to 'jsonpatch' (in container '')
             | jsonpatch.escapeKey('a')
             | ^
            ERROR: <input>:1:20: undeclared reference to 'escapeKey' (in container '')
             | jsonpatch.escapeKey('a')
             | ...................^
            m[?'a'].optFlatMap(v, v) => ERROR: <input>:1:19: found no matching overload for '_?_:_' applied to '(bool, list(string), optional_type(dyn))'
             | m[?'a'].optFlatMap(v, v)
             | ..................^
            l.transformList(i, v, 1, 2) => ERROR: <input>:1:16: found no matching overload for '_?_:_' applied to '(int, list(int), list(int))'
             | l.transformList(i, v, 1, 2)
             | ...............^
            l.filter(x, x + 1) => ERROR: <input>:1:9: found no matching overload for '_?_:_' applied to '(int, list(int), list(int))'
             | l.filter(x, x + 1)
             | ........^
            l.all(1, true) => ERROR: <input>:1:7: argument must be a simple name
             | l.all(1, true)
             | ......^
            true ? 1 : 'a' => ERROR: <input>:1:6: found no matching overload for '_?_:_' applied to '(bool, int, string)'
             | true ? 1 : 'a'
             | .....^
            1 / 2.0 => ERROR: <input>:1:3: found no matching overload for '_/_' applied to '(int, double)'
             | 1 / 2.0
             | ..^"#]],
    );
}

/// Every row of the facts can be read, and says something.
#[test]
fn the_facts_are_good() {
    let functions = Functions::default();
    let names: Vec<&str> = Functions::names().collect();
    assert!(names.len() > 150);
    for name in names {
        assert!(!functions.find(name).unwrap().is_empty(), "{name}");
    }
}

#[test]
fn a_schema_says_what_there_is() {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "size": { "type": "integer" },
            "a-b.c/d__e": { "type": "string" },
            "namespace": { "type": "boolean" },
            "either": { "x-kubernetes-int-or-string": true },
            "when": { "type": "string", "format": "date-time" },
            "list": { "type": "array", "items": { "type": "object",
                "properties": { "x": { "type": "number" } } } },
            "map": { "type": "object", "additionalProperties": { "type": "string" } },
            "open": { "x-kubernetes-preserve-unknown-fields": true },
        },
    });
    let mut environment = Environment::default();
    let of = environment.of_schema(&schema, true, "self").unwrap();
    let environment = environment.with("self", of);
    let told = |text: &str| match compile(text, &environment) {
        Ok(found) => format!("{text} => {}", found.of),
        Err(error) => error,
    };
    let texts = [
        "self.size",
        "self.a__dash__b__dot__c__slash__d__underscores__e",
        "self.__namespace__",
        "self.either",
        "self.when",
        "self.list.map(i, i.x)",
        "self.map",
        "self.metadata.name + self.kind",
        "self.open",
        "self.metadata.labels",
        "self.list[0].y",
    ];
    let lines: Vec<String> = texts.into_iter().map(told).collect();
    expect![[r#"
        self.size => int
        self.a__dash__b__dot__c__slash__d__underscores__e => string
        self.__namespace__ => bool
        self.either => dyn
        self.when => google.protobuf.Timestamp
        self.list.map(i, i.x) => list(double)
        self.map => map(string, string)
        self.metadata.name + self.kind => string
        ERROR: <input>:1:5: undefined field 'open'
         | self.open
         | ....^
        ERROR: <input>:1:14: undefined field 'labels'
         | self.metadata.labels
         | .............^
        ERROR: <input>:1:13: undefined field 'y'
         | self.list[0].y
         | ............^"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn it_is_seen_which_fields_are_looked_at() {
    let environment = ["claims", "user"]
        .into_iter()
        .fold(Environment::default(), |all, name| {
            all.with(name, Type::Dyn)
        });
    let selects = |text: &str| {
        let compiled = compile(text, &environment).unwrap();
        compiled.selects("claims", "email")
    };
    assert!(selects("'x' + claims.email"));
    assert!(selects("claims.?email.orValue('')"));
    assert!(selects("[1].all(x, has(claims.email))"));
    assert!(!selects(
        "claims.email_verified && claims.x.email == 'email'"
    ));
    assert!(!selects("user.email"));
}

/// As many as one may write, of what makes the tree deep.
fn deep(count: usize) -> Vec<String> {
    let chain = |first: &str, link: &str| format!("{first}{}", link.repeat(count));
    let nest = |open: &str, inner: &str, close: &str, count: usize| {
        format!("{}{inner}{}", open.repeat(count), close.repeat(count))
    };
    let bracketed = count.min(90);
    vec![
        chain("1", "+1"),
        chain("o", ".a"),
        chain("o", "[0]"),
        chain("o", ".?a"),
        chain("l", ".map(x,x)"),
        chain("l", ".filter(x,true)"),
        chain("[]", "+[]"),
        chain("o", " in o"),
        chain("s", ".trim()"),
        chain("true", "==true"),
        chain("true", "&&!!true"),
        nest("(", "1", ")", bracketed),
        nest("[", "1", "]", bracketed),
        nest("o[", "1", "]", bracketed),
        nest("cel.bind(x,[1],", "x", ")", bracketed),
        nest("l.exists(x,", "true", ")", bracketed),
        nest("true?1:", "1", "", bracketed),
        nest("l.map(x,", &chain("o", ".a"), ")", bracketed),
    ]
}

#[test]
fn a_hundred_of_anything_is_read() {
    for text in deep(100) {
        assert!(compile(&text, &environment()).is_ok(), "{text}");
    }
}

/// In a test that is not optimized, and from a stack as small as that of a worker.
#[test]
fn nothing_is_too_deep() {
    for count in [1300, 3800, 20_000] {
        for text in deep(count) {
            if let Err(error) = compile(&text, &environment()) {
                assert!(error.contains("limit"), "{error}");
                assert!(text.len() > 4096);
            }
        }
    }
    for sign in ["(", "[", "-", "!", "o."] {
        assert!(compile(&sign.repeat(4000), &environment()).is_err());
    }
}

#[test]
fn what_is_too_much_is_told() {
    let of = |text: String| {
        let told = compile(&text, &environment()).unwrap_err();
        told.lines().next().unwrap_or_default().to_owned()
    };
    let lines = [
        of("1".repeat(100_001)),
        of(format!("1{}", "+1".repeat(5000))),
        of(format!("{}1{}", "(".repeat(98), ")".repeat(98))),
        of(format!("[1]{}.size()==1", ".map(x,{x:x})".repeat(22))),
        of(
            format!("{}x=='a'{}", "cel.bind(x,{x:x},".repeat(30), ")".repeat(30))
                .replacen("{x:x}", "1", 1),
        ),
    ];
    expect![[r#"
        ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000
        ERROR: <input>:-1:0: expression has too many operators: 5000, limit 4096
        ERROR: <input>:-1:0: expression recursion limit exceeded: 96
        ERROR: <input>:1:115: type of expression is too large
        ERROR: <input>:1:161: type of expression is too large"#]]
    .assert_eq(&lines.join("\n"));
}

/// Each problem shows its line, which may be long, and there may be as many as there are characters.
#[test]
fn no_more_is_told_than_can_be_read() {
    for text in [
        "$".repeat(50_000),
        "x+".repeat(2000) + "1",
        format!("[{}1]", "x,".repeat(10_000)),
    ] {
        let told = compile(&text, &environment()).unwrap_err();
        assert!(told.len() < 200_000, "{}", told.len());
        assert!(told.ends_with("more errors were truncated"), "{told}");
    }
}

#[test]
fn work_grows_as_a_power_of_what_is_looked_at() {
    let environment = Environment::default().with("v", Type::Dyn);
    for (text, power) in [
        ("1 + 2 == 3", Some(0)),
        ("v.a == 'x' && v.b.startsWith('y')", Some(0)),
        ("'x' in v.a", Some(1)),
        ("v.a.contains('x')", Some(1)),
        (
            "v.a.map(x, x.y).filter(x, x != '').exists(x, x == 'z')",
            Some(1),
        ),
        ("v.a.all(x, x.b.all(y, y.c.exists(z, z == 'q')))", Some(1)),
        ("v.a.all(x, v.b.exists(y, y == x))", Some(2)),
        ("v.a.all(x, x in v.b)", Some(2)),
        ("v.a.all(x, v.b.all(y, v.c.exists(z, z == y)))", Some(3)),
        ("v.a.map(x, v.b).flatten().all(x, x == 1)", Some(2)),
        // More than it is: lists in a list count with what is in them.
        ("v.a.map(x, v.b).map(x, v.c).flatten().size() > 0", Some(3)),
        ("v.a.map(x, v.b.map(y, v.c)).size() > 0", Some(3)),
        ("[1, 2].all(x, v.a.all(y, x == y))", Some(1)),
        ("v.a.distinct().size() == 1", Some(2)),
        ("lists.range(10).all(x, x in v.a)", Some(1)),
        // The square of each element may be that of the whole.
        ("v.a.all(x, x.all(y, x.all(z, z == y)))", Some(2)),
        ("v.a.all(x, x.b.matches(x.c))", Some(2)),
        (
            "v.a.all(x, x.matches('^[a-z]+$') && v.b.contains('x'))",
            Some(2),
        ),
        ("v.a.replace('', v.b).contains('x')", Some(2)),
        ("v.a.replace('-', '_').contains('x')", Some(1)),
        ("v.a.join(v.b).contains('x')", Some(2)),
        ("v.a.map(x, v.b).join(',').contains('x')", Some(2)),
        ("v.a.matches(v.b)", Some(2)),
        ("v.a.map(x, v).size() > 0", Some(2)),
        (
            "v.a.sortBy(x, v.b.filter(y, y == x).size()).size() > 0",
            Some(2),
        ),
        ("v.a.sortBy(x, x.c)[0] == 'a'", Some(1)),
        ("lists.range(100000).all(x, x > 1)", None),
        ("lists.range(int(v.a)).all(x, x > 1)", None),
    ] {
        let compiled = compile(text, &environment).unwrap();
        let found = compiled.work.map(|work| work.power);
        assert_eq!(found, power, "{text}");
    }
}

/// What an expression brings with it counts too, however small the variables are.
#[test]
fn work_has_a_factor() {
    let environment = Environment::default().with("v", Type::Dyn);
    let steps = |text: &str, size: u64| {
        compile(text, &environment)
            .unwrap()
            .work
            .unwrap()
            .steps(size)
    };
    let ranges = "lists.range(1000).all(a, lists.range(1000).all(b, a < b))";
    assert!(steps(ranges, 1) > 1_000_000);
    assert!(steps("lists.range(1000).all(a, a < 1)", 1) < 20_000);
    let list = format!("[{}1]", "1, ".repeat(999));
    assert!(steps(&format!("{list}.all(a, {list}.all(b, a < b))"), 1) > 1_000_000);
    assert!(steps(&format!("v.all(a, a in {list})"), 10) > 10_000);
    let text = "x".repeat(8000);
    assert!(steps(&format!("'{text}'.replace('', '{text}') == ''"), 1) > 1_000_000);
    assert!(steps("v.a == 'x' && v.b.startsWith('y')", 1_000_000) < 100);
    assert!(steps("v.groups.exists(g, g.matches('^[a-z]+$'))", 10_000) < 1_000_000);
}
