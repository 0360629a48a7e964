//! What upstream takes for a string of a format, and what it does not: tried with its validators.

use super::{FORMATS, Rule, find};

const ROWS: &[(&str, &[&str], &[&str])] = &[
    (
        "bsonobjectid",
        &["507f1f77bcf86cd799439011", "507F1F77BCF86CD799439011"],
        &["507f1f77bcf86cd79943901", "g07f1f77bcf86cd799439011", ""],
    ),
    (
        "byte",
        &["YQ==", "YR==", "YWI=", "YWJj", "+/+/"],
        &["", "Y", "YQ=", "YQ", "-_==", "YQ==\n"],
    ),
    (
        "cidr",
        &[
            "10.0.0.1/8",
            "010.0.0.1/08",
            "::/0",
            "0001::/128",
            "::ffff:1.2.3.4/96",
        ],
        &[
            "10.0.0.1",
            "10.0.0.1/33",
            "::/129",
            "10.0.0.1/+8",
            "a/8",
            "1.2.3.4/8/8",
        ],
    ),
    (
        "credit-card",
        &[
            "4111111111111111",
            "4111-1111 1111a1111",
            "378282246310005",
            "3530111333300000",
        ],
        &[
            "4111111111111112",
            "9111111111111111",
            "1234567812345670",
            "0",
        ],
    ),
    (
        "date",
        &["2024-02-29", "0000-01-01"],
        &[
            "2023-02-29",
            "2024-1-1",
            "20240229",
            "2024-02-29T",
            "+024-02-29",
            "",
        ],
    ),
    (
        "date-time",
        &[
            "2014-12-15T19:30:20.000Z",
            "2014-12-15t19:30:20z",
            "2014-12-15T19:30:20x5+99:99",
            "2014-12-15T19:30:20ztrash",
        ],
        &[
            "2014-12-15 19:30:20Z",
            "2014-12-15T24:30:20Z",
            "2014-12-15T19:30:60Z",
            "2014-12-15T19:30:20",
            "2014-12-15T19:30:20.Z",
            "2014-12-35T19:30:20Z",
        ],
    ),
    (
        "duration",
        &[
            "0",
            "1h30m",
            "-1.5s",
            "3 days, 2 hours",
            "2 week",
            "22 ns",
            "1nanos",
            "4 HRS hours 5 Minutes",
            "5\u{b5}s",
            "in 5 days",
        ],
        &[
            "",
            "1",
            "1nss",
            "2 hrs",
            "days",
            "5 x",
            "2 wks",
            "99999999999999999999 days",
            "5 \u{b5}",
        ],
    ),
    (
        "email",
        &[
            "a@b",
            "a.b@c.d",
            "Some One <a@b>",
            "\"a b\"@c",
            "a@[1.2.3.4]",
            "a@[IPv6:::1]",
            " a@b ",
            "a@b (comment (in it))",
            "g:a@b;",
            "\u{e9}@\u{e9}",
            "A. B. C. <a@b>",
        ],
        &[
            "",
            "a",
            "a@",
            "@b",
            "a..b@c",
            ".a@b",
            "a@b.",
            "a b@c",
            "<a@b",
            "\"\"@b",
            "a@[x]",
            "a@b, c@d",
            "g:;",
            "g:a@b,c@d;",
            "a@b (c",
            "a@b x",
            "\"a@b",
        ],
    ),
    (
        "hexcolor",
        &["#fff", "FFF", "#00ff7F"],
        &["#ff", "#ffff", "##fff", "ggg", ""],
    ),
    (
        "hostname",
        &[
            "a",
            "1",
            "a-b",
            "a-",
            "my-host.example",
            "a--b.example",
            "\u{e9}.example",
            "\u{1f600}.example",
            "x.\u{e9}\u{e9}",
        ],
        &[
            "",
            "my-host",
            "-a",
            "a_b",
            "a.b",
            "a.b1",
            "a-.example",
            "a..example",
            "a.example.",
            "a.\u{1f600}\u{1f600}",
        ],
    ),
    (
        "ipv4",
        &["1.2.3.4", "010.0.0.1", "::ffff:1.2.3.4", "000::01.2.3.4"],
        &[
            "1.2.3",
            "1.2.3.256",
            "::1",
            "1.2.3.4.5",
            "1.2.3.4/8",
            "",
            "1..3.4",
        ],
    ),
    (
        "ipv6",
        &["::", "fe80::1", "::ffff:1.2.3.4", "1:2:3:4:5:6:7::"],
        &[
            "1.2.3.4",
            "fe80::1%eth0",
            "00001::",
            "1:2:3:4:5:6:7:8::",
            "",
            "::01.2.3.4",
            ":::",
        ],
    ),
    (
        "isbn",
        &["0321751043", "978-0321751041", "0 321 75104\t3"],
        &["0321751044", "978-0321751042", ""],
    ),
    (
        "isbn10",
        &["0321751043", "080442957X"],
        &["X804429570", "978-0321751041", "080442957x"],
    ),
    (
        "isbn13",
        &["978-0321751041"],
        &["0321751043", "97803217510411"],
    ),
    (
        "k8s-short-name",
        &["a", "1-a"],
        &[
            "",
            "A",
            "a.b",
            "-a",
            "a-",
            "a23456789012345678901234567890123456789012345678901234567890123456",
        ],
    ),
    (
        "k8s-long-name",
        &[
            "a",
            "a.b-c",
            "a23456789012345678901234567890123456789012345678901234567890123456.b",
        ],
        &["", "a..b", "A", "a.-b"],
    ),
    (
        "mac",
        &[
            "01:23:45:67:89:ab",
            "01-23-45-67-89-AB",
            "0123.4567.89ab",
            "01:23:45:67:89:ab:cd:ef",
        ],
        &[
            "01:23:45:67:89",
            "01:23:45-67:89:ab",
            "0123.4567",
            "1:2:3:4:5:6",
            "",
        ],
    ),
    ("password", &["", "anything"], &[]),
    (
        "rgbcolor",
        &["rgb(0,1,255)", "rgb( 1 , 20\t, 199 )"],
        &[
            "rgb(007,1,1)",
            "rgb(256,1,1)",
            "rgb(1,1)",
            "rgb (1,1,1)",
            "rgba(1,1,1,1)",
            "rgb(+1,1,1)",
        ],
    ),
    (
        "ssn",
        &["123-45-6789", "123 45-6789"],
        &["123456789", "123-456789", "123_45_6789", ""],
    ),
    (
        "uri",
        &[
            "/",
            "/a#b",
            "http://a/b?c",
            "mailto:x",
            "x1.2:x",
            "*",
            "//a",
            "http://[::1]:80/",
            "http://[fe80::1%25eth0]/",
            "x://a:b:1/",
            "a:",
            "/a?%zz",
            "http://\u{e9}/",
        ],
        &[
            "",
            "a",
            "a/b",
            "/a%zz",
            "/a#%zz",
            "http://a#b",
            "http://a b/",
            "http://[::1",
            "/\u{7f}",
            "http://a:b/",
            "http://a:1:2/",
            "http://[1.2.3.4]/",
            "http://a%20b/",
            "http://[a]/",
        ],
    ),
    (
        "uuid",
        &[
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "A0EEBC999C0B-4ef8bb6d6bb9bd380a11",
        ],
        &[
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1",
            "a0ee-bc999c0b4ef8bb6d6bb9bd380a11",
            "",
        ],
    ),
    (
        "uuid3",
        &["a0eebc99-9c0b-3ef8-0b6d-6bb9bd380a11"],
        &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    ),
    (
        "uuid4",
        &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
        &[
            "a0eebc99-9c0b-4ef8-0b6d-6bb9bd380a11",
            "a0eebc99-9c0b-3ef8-bb6d-6bb9bd380a11",
        ],
    ),
    (
        "uuid5",
        &["a0eebc999c0b5ef8bb6d6bb9bd380a11"],
        &["a0eebc99-9c0b-5ef8-cb6d-6bb9bd380a11"],
    ),
];

#[test]
fn strings_are_of_a_format_as_upstream_says() {
    let mut wrong = Vec::new();
    for (format, taken, refused) in ROWS {
        let rule = find(format).unwrap();
        wrong.extend(
            taken
                .iter()
                .filter(|text| !rule.fits(text))
                .map(|text| (format, true, text)),
        );
        wrong.extend(
            refused
                .iter()
                .filter(|text| rule.fits(text))
                .map(|text| (format, false, text)),
        );
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn every_format_is_tried() {
    for (name, rule) in &FORMATS {
        if let Rule::Pattern(pattern) = rule {
            assert!(!pattern.is_match("not of it"), "{name}");
        }
        let tried = ROWS.iter().any(|(own, ..)| own.replace('-', "") == *name);
        assert!(tried, "{name}");
    }
}
