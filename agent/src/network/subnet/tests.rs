//! Texts, bounds, and what is read back.

use super::*;

fn subnet(text: &str) -> Subnet {
    Subnet::parse(text).unwrap()
}

#[test]
fn a_text_is_the_network_that_it_lies_in() {
    for (text, network) in [
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("fd00::1/16", "fd00::/16"),
        ("10.1.2.3/32", "10.1.2.3/32"),
        ("1.2.3.4/0", "0.0.0.0/0"),
        ("fd00::1/0", "::/0"),
        ("::/128", "::/128"),
    ] {
        assert_eq!(subnet(text).to_string(), network);
    }
    for text in ["10.0.0.0/33", "::/129", "10.0.0.0", "x/8", "10.0.0.0/x"] {
        assert_eq!(Subnet::parse(text), None, "{text}");
    }
}

#[test]
fn what_it_holds_is_of_its_family() {
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    for (network, within, is_there) in [
        ("0.0.0.0/0", "1.2.3.4", true),
        ("::/0", "fd00::1", true),
        ("::/0", "1.2.3.4", false),
        ("10.0.0.0/8", "10.255.0.1", true),
        ("10.0.0.0/8", "11.0.0.0", false),
    ] {
        assert_eq!(subnet(network).contains(address(within)), is_there);
    }
    let alone = Subnet::of(address("10.0.0.1"));
    assert_eq!(alone, subnet("10.0.0.1/32"));
}

#[test]
fn what_is_read_is_checked() {
    let network = subnet("10.42.0.0/24");
    let text = serde_json::to_string(&network).unwrap();
    assert_eq!(text, r#""10.42.0.0/24""#);
    assert_eq!(serde_json::from_str::<Subnet>(&text).unwrap(), network);
    assert!(serde_json::from_str::<Subnet>(r#""10.42.0.0/99""#).is_err());
}
