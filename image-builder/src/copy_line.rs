//! The `COPY` line: flags, sources, destination.

use parse_dockerfile::{CopyInstruction, Flag, Source};

use crate::error::DockerfileError;
use crate::ids;
use crate::paths;
use crate::reader::{MALFORMED, Read, Reader, UNSUPPORTED};
use crate::recipe::Copy;
use crate::text::shown;

impl Reader<'_> {
    /// Reads a `COPY` instruction.
    pub(crate) fn copy(&self, copy: &CopyInstruction<'_>) -> Read<Copy> {
        let (mut mode, mut owner) = (None, None);
        for flag in &copy.options {
            let value = flag.value.as_ref().map_or("", |value| &value.value);
            match &*flag.name.value {
                "chmod" if mode.is_none() => mode = Some(self.flag(flag, ids::mode(value))?),
                "chown" if owner.is_none() => owner = Some(self.flag(flag, ids::owner(value))?),
                name => return Err(self.unknown_flag(flag, name)),
            }
        }
        let mut sources = Vec::new();
        for source in &copy.src {
            sources.push(self.source(copy, source)?);
        }
        let written = self.literal("COPY", &copy.dest)?;
        let destination = paths::clean(written).map_err(|problem| {
            let why = format!("the destination `{}` {}", shown(written), problem.why());
            let next = "write the destination as a plain absolute path";
            self.error(problem.code(), copy.dest.span.start, "COPY", why, next)
        })?;
        let into_directory =
            destination.is_empty() || written.ends_with('/') || written.ends_with("/.");
        if sources.len() > 1 && !into_directory {
            let why = "has several sources, so the destination must be a directory".to_owned();
            return Err(self.error(
                MALFORMED,
                copy.dest.span.start,
                "COPY",
                why,
                "end it with `/`",
            ));
        }
        Ok(Copy {
            sources,
            absolute: written.starts_with('/'),
            destination,
            into_directory,
            mode,
            owner,
            at: self.location(copy.copy.span.start),
        })
    }

    fn unknown_flag(&self, flag: &Flag<'_>, name: &str) -> Box<DockerfileError> {
        let start = flag.span().start;
        let (why, next) = match name {
            "chmod" | "chown" => (format!("--{name} is given twice"), "keep one"),
            "from" => (
                "--from copies out of another image, and only one stage is supported".to_owned(),
                "put the files into the build context before the build",
            ),
            other => (
                format!("--{} is not supported", shown(other)),
                "remove it; --chmod and --chown are supported",
            ),
        };
        self.error(UNSUPPORTED, start, "COPY", why, next)
    }

    fn flag<T>(&self, flag: &Flag<'_>, value: Result<T, (String, &'static str)>) -> Read<T> {
        value.map_err(|(why, next)| {
            let why = format!("--{} {why}", flag.name.value);
            self.error(UNSUPPORTED, flag.span().start, "COPY", why, next)
        })
    }

    fn source(&self, copy: &CopyInstruction<'_>, source: &Source<'_>) -> Read<String> {
        let path = match source {
            Source::Path(path) => path,
            _ => {
                let why = "has a here-document".to_owned();
                let next = "put the text into a file of the build context";
                return Err(self.error(UNSUPPORTED, copy.copy.span.start, "COPY", why, next));
            }
        };
        let start = path.span.start;
        let unsupported = |why: &str, next| {
            let why = format!("the source `{}` {why}", shown(&path.value));
            Err(self.error(UNSUPPORTED, start, "COPY", why, next))
        };
        if path.value.starts_with('[') {
            return unsupported(
                "starts a broken JSON array or a wildcard",
                "write COPY [\"source\", \"destination\"] or name the file",
            );
        }
        let text = self.literal("COPY", path)?;
        if text.contains(['*', '?', '[']) {
            return unsupported("has a wildcard", "name each file or its directory");
        }
        if text.contains("://") {
            return unsupported("is a URL", "fetch and check it before the build");
        }
        if text.starts_with('/') {
            return unsupported("is absolute", "write it relative to the build context");
        }
        if text.is_empty() {
            return unsupported("is empty", "name a file or directory");
        }
        paths::clean(text).map_err(|problem| {
            let why = format!("the source `{}` {}", shown(text), problem.why());
            let next = "name a path inside the build context";
            self.error(problem.code(), start, "COPY", why, next)
        })
    }
}
