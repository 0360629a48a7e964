use super::*;

fn read(
    route: Option<&str>,
    health: Option<&str>,
    mode: Option<&str>,
    is_joining: bool,
) -> Result<Option<Routing>, BadSetting> {
    let args = AgentArgs {
        route_services: route.map(str::to_owned),
        proxy_healthz_bind_address: health.map(str::to_owned),
        proxy_metrics_bind_address: mode.map(str::to_owned),
        ..AgentArgs::default()
    };
    routing(&args, is_joining)
}

/// Of `none`, nowhere.
fn at(health: &str, mode: &str) -> Option<Routing> {
    Some(Routing {
        health_address: health.parse().ok(),
        mode_address: mode.parse().ok(),
    })
}

#[test]
fn services_are_routed_unless_others_do() {
    let usual = at("0.0.0.0:10256", "127.0.0.1:10249");
    assert_eq!(read(None, None, None, false).unwrap(), usual);
    assert_eq!(read(None, None, None, true).unwrap(), None);
    assert_eq!(read(Some("false"), None, None, false).unwrap(), None);
    assert_eq!(
        read(Some("true"), Some("[::1]:9"), Some("[::1]:8"), false).unwrap(),
        at("[::1]:9", "[::1]:8")
    );
    for (health, mode, expected) in [
        (Some("none"), None, at("none", "127.0.0.1:10249")),
        (None, Some("none"), at("0.0.0.0:10256", "none")),
    ] {
        assert_eq!(read(None, health, mode, false).unwrap(), expected);
    }
    for (route, health, mode, is_joining) in [
        (Some("true"), None, None, true),
        (Some("maybe"), None, None, false),
        (None, Some("10256"), None, false),
        (None, None, Some("localhost"), false),
    ] {
        assert!(
            read(route, health, mode, is_joining).is_err(),
            "{route:?} {health:?} {mode:?}"
        );
    }
}

#[test]
fn a_pool_is_read_or_refused_by_its_flag() {
    assert!(pool(&[]).unwrap().is_empty());
    assert!(!pool(&["10.9.0.0/28".to_owned()]).unwrap().is_empty());
    let error = pool(&["10.9.0.0/28".to_owned(), "x".to_owned()]).unwrap_err();
    assert!(error.to_string().contains("load-balancer-pool"), "{error}");
}

#[test]
fn encryption_has_a_port_and_the_network_of_pods() {
    let cluster = "10.42.0.0/16,fd42::/56";
    let read = |encrypt: Option<&str>, port: Option<&str>| {
        let args = ServerArgs {
            encrypt_pod_network: encrypt.map(str::to_owned),
            wireguard_port: port.map(str::to_owned),
            ..ServerArgs::default()
        };
        let read = encryption(&args, cluster);
        read.map_err(|bad| bad.to_string())
    };
    assert_eq!(read(None, None), Ok(None));
    assert_eq!(read(Some("false"), None), Ok(None));
    let on = |port| PodEncryption {
        port,
        cluster_cidr: cluster.to_owned(),
    };
    assert_eq!(read(Some("true"), None), Ok(Some(on(51820))));
    assert_eq!(read(Some("true"), Some("4000")), Ok(Some(on(4000))));
    for (encrypt, port, refused) in [
        (
            Some("yes"),
            None,
            "--encrypt-pod-network \"yes\": must be true or false",
        ),
        (
            None,
            Some("4000"),
            "--wireguard-port \"4000\": needs --encrypt-pod-network",
        ),
        (
            Some("true"),
            Some("0"),
            "--wireguard-port \"0\": must be a port, from 1 to 65535",
        ),
        (
            Some("true"),
            Some("65536"),
            "--wireguard-port \"65536\": must be a port, from 1 to 65535",
        ),
    ] {
        assert_eq!(read(encrypt, port), Err(refused.to_owned()));
    }
}
