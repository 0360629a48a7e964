use super::*;
use clap::CommandFactory;

fn given(text: &str) -> Arguments {
    Arguments::try_parse_from(text.split(' ')).expect("what can be asked for")
}

#[test]
fn no_two_arguments_are_at_odds() {
    Arguments::command().debug_assert();
}

#[test]
fn each_server_has_its_name() {
    let text = "coracle-bench writes --kubeconfig a --against b --names";
    let names = |names: &str| {
        let sides = given(&format!("{text} {names}")).sides()?;
        Ok::<_, anyhow::Error>(sides.into_iter().map(|side| side.name).collect::<Vec<_>>())
    };
    assert_eq!(names("ours,theirs").expect("two"), ["ours", "theirs"]);
    assert!(names("ours").is_err());
    let all = given("coracle-bench writes --kubeconfig a --against b");
    let all = all.sides().expect("two").into_iter().map(|side| side.name);
    assert_eq!(all.collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn what_needs_no_server_has_none() {
    let text = "coracle-bench accept --at 127.0.0.1:1";
    assert!(given(text).sides().expect("none").is_empty());
    assert!(given(&format!("{text} --against b")).sides().is_err());
}

#[test]
fn a_plan_has_what_there_is_for_each_server() {
    let text = "coracle-bench coldstart --start a --start-against b --against c --until node";
    let plan = given(text).coldstart().expect("a plan");
    assert_eq!((plan.commands.len(), plan.empty.len()), (2, 0));
    assert_eq!((plan.until, plan.most), (Until::Node, 100_000));
    assert!(given(text).footprint().is_none());
    let text = "coracle-bench footprint --processes a --quick";
    let plan = given(text).footprint().expect("a plan");
    assert_eq!(
        (plan.processes, plan.most),
        (vec![vec!["a".to_owned()]], QUICK)
    );
    let text = "coracle-bench footprint --processes a --against k --processes-against b,c";
    let plan = given(text).footprint().expect("a plan");
    assert_eq!(plan.processes[1], ["b", "c"]);
}
