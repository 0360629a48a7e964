//! The default profile, for cycles that ask nobody.

use coracle_client::Client;
use coracle_scheduler::framework::Profile;
use coracle_scheduler::plugins::registry::Plan;
use coracle_scheduler::pod_info::DEFAULT_SCHEDULER;
use coracle_scheduler::views::Views;

pub fn profile(views: &Views) -> Profile {
    let nobody = tower::service_fn(|_: http::Request<kube::client::Body>| {
        let answer = Err(std::io::Error::other("nobody answers"));
        std::future::ready::<Result<http::Response<kube::client::Body>, _>>(answer)
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime without drivers");
    let _entered = runtime.enter();
    Plan::new(DEFAULT_SCHEDULER).build(&Client::new(nobody, "default"), views)
}
