//! Where a value comes from.

/// What stands behind a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// Someone measured it on the drive itself.
    Measured,
    /// The maker or a reviewer's specification table states it.
    Datasheet,
    /// A paper or standard states it.
    Paper,
    /// Chosen so that the model meets a measured or rated figure.
    Fitted,
    /// Nobody said so; a plausible value with a reason.
    Assumed,
    /// Not given: the parser's default.
    Default,
    /// Follows from other values.
    Derived,
    /// Given in the file without a source.
    Unstated,
    /// Given with `--set`.
    CommandLine,
}

impl SourceKind {
    /// The name in drive files and in `lodger drives show`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SourceKind::Measured => "measured",
            SourceKind::Datasheet => "datasheet",
            SourceKind::Paper => "paper",
            SourceKind::Fitted => "fitted",
            SourceKind::Assumed => "assumed",
            SourceKind::Default => "default",
            SourceKind::Derived => "derived",
            SourceKind::Unstated => "unstated",
            SourceKind::CommandLine => "command line",
        }
    }

    /// The kinds that a file may state.
    pub(super) const STATED: [Self; 5] = [
        SourceKind::Measured,
        SourceKind::Datasheet,
        SourceKind::Paper,
        SourceKind::Fitted,
        SourceKind::Assumed,
    ];

    /// One of [`Self::STATED`].
    pub(super) fn stated(name: &str) -> Option<Self> {
        Self::STATED.into_iter().find(|kind| kind.name() == name)
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What stands behind it.
    pub kind: SourceKind,
    /// Which document, measurement or reason.
    pub from: String,
    /// The figures or statements it was chosen to meet, as studies name them
    /// (`kim-2020/Figure 10`): what is held against them is calibrated.
    pub to: Vec<String>,
}

impl Source {
    pub(super) fn unstated() -> Self {
        Self {
            kind: SourceKind::Unstated,
            from: "no source given".to_owned(),
            to: Vec::new(),
        }
    }

    pub(super) fn default() -> Self {
        Self {
            kind: SourceKind::Default,
            from: "default".to_owned(),
            to: Vec::new(),
        }
    }

    pub(super) fn derived(from: &str) -> Self {
        Self {
            kind: SourceKind::Derived,
            from: from.to_owned(),
            to: Vec::new(),
        }
    }
}
