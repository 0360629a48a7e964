//! Names with several addresses.

use super::*;
use crate::fetch::tests::Site;
use crate::fetch::trusting;
use tokio::net::TcpListener;

fn localhost() -> ServerName<'static> {
    ServerName::try_from("localhost").unwrap()
}

#[tokio::test]
async fn an_address_where_somebody_else_answers_leaves_the_others() {
    let (site, other) = (Site::start().await, Site::start().await);
    let tls = trusting(Some(&site.authority_pem)).unwrap();
    let name = localhost();
    first(&tls, &name, [other.address, site.address].into_iter())
        .await
        .unwrap();
    let error = first(&tls, &name, [other.address].into_iter()).await;
    assert!(matches!(error, Err(DialError::Tls(_))), "{error:?}");
    let error = first(&tls, &name, [].into_iter()).await;
    assert!(matches!(error, Err(DialError::Connect(_))), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn an_address_that_says_nothing_has_an_end() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let tls = trusting(Some(&rcgen_authority())).unwrap();
    let begun = tokio::time::Instant::now();
    let error = first(&tls, &localhost(), [address].into_iter()).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        format!("dial tcp {address}: i/o timeout")
    );
    assert!(begun.elapsed() < 2 * ADDRESS_TIME_MAX);
}

fn rcgen_authority() -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.self_signed(&key).unwrap().pem()
}
