//! Who a packet is for, and what is in one.

/// Who a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Audience {
    /// A person with root or engine rights: Markdown, and the files that it names.
    Operator,
    /// A workflow for GitHub Actions.
    GithubActions,
    /// A pipeline for GitLab CI.
    GitlabCi,
    /// Manifests for Kubernetes.
    Kubernetes,
}

/// A packet before it is written.
#[derive(Debug)]
pub struct Packet {
    /// The text.
    pub text: String,
    /// Files that go beside it.
    pub files: Vec<(&'static str, Vec<u8>)>,
}
