//! A profile: which plugins take part where, in which order, with which weights, under which
//! scheduler name.

use super::{Point, SharedPlugin};
use crate::pod_info::PodInfo;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The plugins of each point, by their place in a profile.
type ByPoint = [Vec<usize>; Point::COUNT];

#[derive(Clone, Debug)]
pub struct Profile {
    pub scheduler_name: String,
    /// How many of the nodes are looked for, in percent; 0 leaves it to the size of the cluster.
    pub percentage_of_nodes: usize,
    plugins: Vec<(SharedPlugin, i64)>,
    by_point: ByPoint,
}

impl Profile {
    /// `plugins` at all of their points, with the weight that each one's scores have.
    pub fn new(scheduler_name: &str, plugins: Vec<(SharedPlugin, i64)>) -> Self {
        let mut by_point = ByPoint::default();
        for (place, (plugin, _)) in plugins.iter().enumerate() {
            let points = plugin.points();
            for point in Point::ALL {
                let takes_part = match point {
                    Point::PreFilter => points.pre_filter,
                    Point::Filter => points.filter,
                    Point::PostFilter => points.post_filter,
                    Point::PreScore | Point::Score => points.score,
                    _ => true,
                };
                if takes_part {
                    by_point[point as usize].push(place);
                }
            }
        }
        Self::with_points(scheduler_name, plugins, by_point)
    }

    /// `by_point` has places in `plugins`, in the order in which each point asks them.
    pub fn with_points(
        scheduler_name: &str,
        plugins: Vec<(SharedPlugin, i64)>,
        by_point: ByPoint,
    ) -> Self {
        Self {
            scheduler_name: scheduler_name.to_owned(),
            percentage_of_nodes: 0,
            plugins,
            by_point,
        }
    }

    /// All of them, whatever the point.
    pub fn plugins(&self) -> impl DoubleEndedIterator<Item = &SharedPlugin> {
        self.plugins.iter().map(|(plugin, _)| plugin)
    }

    /// The plugins of a point in their order, with their place in the profile.
    pub fn at(&self, point: Point) -> impl DoubleEndedIterator<Item = (usize, &SharedPlugin)> {
        let places = self.by_point[point as usize].iter();
        places.map(|place| (*place, &self.plugins[*place].0))
    }

    pub fn has(&self, point: Point, place: usize) -> bool {
        self.by_point[point as usize].contains(&place)
    }

    pub fn weight(&self, place: usize) -> i64 {
        self.plugins[place].1
    }

    pub fn by_name(&self, name: &str) -> Option<&SharedPlugin> {
        self.plugins().find(|plugin| plugin.name() == name)
    }
}

/// The profiles of a scheduler, by the name under which pods ask for them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Profiles(Arc<BTreeMap<String, Profile>>);

impl Profiles {
    pub fn new(profiles: impl IntoIterator<Item = Profile>) -> Self {
        let profiles = profiles.into_iter();
        let by_name = profiles.map(|one| (one.scheduler_name.clone(), one));
        Self(Arc::new(by_name.collect()))
    }

    /// `None` for a pod of another scheduler.
    pub fn of(&self, pod: &PodInfo) -> Option<&Profile> {
        self.0.get(pod.scheduler_name())
    }

    pub fn each(&self) -> impl Iterator<Item = &Profile> {
        self.0.values()
    }
}
