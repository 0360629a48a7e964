//! A profile: which plugins, in which order, with which weights, under which scheduler name.

use super::{Points, SharedPlugin};

#[derive(Clone, Debug)]
pub struct Profile {
    pub scheduler_name: String,
    plugins: Vec<(SharedPlugin, i64)>,
}

impl Profile {
    /// `plugins` with the weight that each one's scores have.
    pub fn new(scheduler_name: &str, plugins: Vec<(SharedPlugin, i64)>) -> Self {
        Self {
            scheduler_name: scheduler_name.to_owned(),
            plugins,
        }
    }

    pub fn plugins(&self) -> impl DoubleEndedIterator<Item = &SharedPlugin> {
        self.plugins.iter().map(|(plugin, _)| plugin)
    }

    /// The plugins that take part at a point, with their place in the profile.
    pub fn at(&self, point: fn(Points) -> bool) -> impl Iterator<Item = (usize, &SharedPlugin)> {
        self.plugins()
            .enumerate()
            .filter(move |(_, plugin)| point(plugin.points()))
    }

    pub fn weight(&self, place: usize) -> i64 {
        self.plugins[place].1
    }

    pub fn by_name(&self, name: &str) -> Option<&SharedPlugin> {
        self.plugins().find(|plugin| plugin.name() == name)
    }
}
