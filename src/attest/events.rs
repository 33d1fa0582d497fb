//! What a run tells while it goes on. Who listens shows it, or does not.

/// The stages of a run, in their order, and those of an inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The image is built, and the engine reached.
    Build,
    /// The engine is asked about itself.
    Engine,
    /// The image is loaded.
    Image,
    /// The container is made and started.
    Launch,
    /// The prober probes.
    Probe,
    /// The controls run.
    Controls,
    /// Everything is written down.
    Collect,
    /// Evidence and artifacts are written.
    Write,
    /// A packet is read, to be inspected.
    Packet,
    /// It is put behind /in.
    Fill,
    /// The inspector reads it.
    Inspect,
}

impl Stage {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Engine => "engine",
            Self::Image => "image",
            Self::Launch => "launch",
            Self::Probe => "probe",
            Self::Controls => "controls",
            Self::Collect => "collect",
            Self::Write => "write",
            Self::Packet => "packet",
            Self::Fill => "fill",
            Self::Inspect => "inspect",
        }
    }
}

/// Something that happens in the course of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A stage begins, and the one before is done.
    Begins(Stage),
    /// So much of the stage's work is done.
    Done {
        /// So many of them.
        done: u64,
        /// Of so many.
        of: u64,
    },
    /// The user should know this.
    Note(&'a str),
}

/// Is told what happens.
pub trait Listener {
    /// This has just happened.
    fn hear(&mut self, event: Event);
}

/// Nobody listens.
impl Listener for () {
    fn hear(&mut self, _event: Event) {}
}
