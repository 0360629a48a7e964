use super::{AddressPool, PoolError};

fn parse(text: &str) -> Result<AddressPool, PoolError> {
    AddressPool::parse(&[text.to_owned()])
}

fn all(text: &str) -> Vec<String> {
    let pool = parse(text).unwrap();
    let both = pool.addresses(true).chain(pool.addresses(false));
    both.map(|address| address.to_string()).collect()
}

#[test]
fn networks_ranges_and_single_addresses_are_read() {
    assert_eq!(all("10.9.0.4/31"), ["10.9.0.4", "10.9.0.5"]);
    assert_eq!(all("10.9.0.7/31"), ["10.9.0.6", "10.9.0.7"]);
    assert_eq!(all("10.9.0.255-10.9.1.0"), ["10.9.0.255", "10.9.1.0"]);
    assert_eq!(all("10.9.0.9"), ["10.9.0.9"]);
    assert_eq!(all("fd09::/127"), ["fd09::", "fd09::1"]);
    let pool = parse("10.9.0.0/16").unwrap();
    assert!(pool.contains("10.9.255.255".parse().unwrap()));
    assert!(!pool.contains("10.10.0.0".parse().unwrap()));
    assert!(!pool.contains("fd09::1".parse().unwrap()));
}

#[test]
fn what_is_no_pool_is_refused() {
    for text in [
        "",
        "x",
        "10.9.0.0/33",
        "10.9.0.5-10.9.0.4",
        "10.9.0.1-fd09::1",
        "10.9.0.1-",
    ] {
        assert_eq!(parse(text), Err(PoolError::Unreadable), "{text}");
    }
    for text in ["10.0.0.0/8", "::/0", "fd09::/64"] {
        assert_eq!(parse(text), Err(PoolError::TooLarge), "{text}");
    }
}
