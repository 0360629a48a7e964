//! The points at which plugins take part, by upstream's names.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    PreFilter,
    Filter,
    PostFilter,
    Reserve,
    PreScore,
    Score,
    PreBind,
    Bind,
    PostBind,
    Permit,
    PreEnqueue,
    QueueSort,
}

impl Point {
    pub const COUNT: usize = 12;

    /// In the order in which upstream looks at them.
    pub const ALL: [Self; Self::COUNT] = [
        Self::PreFilter,
        Self::Filter,
        Self::PostFilter,
        Self::Reserve,
        Self::PreScore,
        Self::Score,
        Self::PreBind,
        Self::Bind,
        Self::PostBind,
        Self::Permit,
        Self::PreEnqueue,
        Self::QueueSort,
    ];

    /// As messages have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreFilter => "PreFilter",
            Self::Filter => "Filter",
            Self::PostFilter => "PostFilter",
            Self::Reserve => "Reserve",
            Self::PreScore => "PreScore",
            Self::Score => "Score",
            Self::PreBind => "PreBind",
            Self::Bind => "Bind",
            Self::PostBind => "PostBind",
            Self::Permit => "Permit",
            Self::PreEnqueue => "PreEnqueue",
            Self::QueueSort => "QueueSort",
        }
    }
}
