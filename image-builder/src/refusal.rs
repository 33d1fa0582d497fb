//! The instructions that are refused, each with a reason and an alternative.

/// Why an instruction is refused and what to write instead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// The instruction, in capitals.
    pub(crate) instruction: &'static str,
    /// Why it is refused.
    pub(crate) why: &'static str,
    /// What to write instead.
    pub(crate) next: &'static str,
}

/// Every instruction of the Dockerfile language that is not supported.
const REFUSALS: &[Refusal] = &[
    Refusal {
        instruction: "RUN",
        why: "runs a program during the build, whose result is not reproducible",
        next: "run it before the build and COPY what it wrote",
    },
    Refusal {
        instruction: "ADD",
        why: "can fetch URLs and unpack archives, so its result depends on more than the context",
        next: "use COPY for a local file; fetch, check and unpack anything else before the build",
    },
    Refusal {
        instruction: "ARG",
        why: "makes the image depend on the command line",
        next: "write the value into the Dockerfile",
    },
    Refusal {
        instruction: "VOLUME",
        why: "makes the engine mount a writable volume that the sandbox profile does not list",
        next: "remove it; the sandbox mounts /in and /out itself",
    },
    Refusal {
        instruction: "EXPOSE",
        why: "announces a port, and the sandbox has no network",
        next: "remove it",
    },
    Refusal {
        instruction: "HEALTHCHECK",
        why: "makes the engine start programs in the container on its own",
        next: "remove it",
    },
    Refusal {
        instruction: "ONBUILD",
        why: "defers instructions to another build",
        next: "write the instruction into the Dockerfile that needs it",
    },
    Refusal {
        instruction: "SHELL",
        why: "sets a shell, and no shell form is supported",
        next: "remove it and use the exec form: [\"/program\", \"argument\"]",
    },
    Refusal {
        instruction: "MAINTAINER",
        why: "is deprecated",
        next: "use LABEL org.opencontainers.image.authors=\"NAME\"",
    },
];

/// The refusal of an instruction, if it is one that is refused.
pub(crate) fn refusal(instruction: &str) -> Option<Refusal> {
    REFUSALS
        .iter()
        .find(|refusal| refusal.instruction.eq_ignore_ascii_case(instruction))
        .copied()
}
