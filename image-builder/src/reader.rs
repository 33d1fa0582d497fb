//! Dockerfile text → [`Recipe`]: everything that is not supported is refused
//! here, with its place, the reason and the alternative.

use std::borrow::Cow;

use parse_dockerfile::{
    Command, Dockerfile, FromInstruction, Instruction, Keyword, UnescapedString,
};

use crate::error::{DockerfileError, Location};
use crate::ids;
use crate::pairs::{self, Pair};
use crate::paths;
use crate::recipe::{Base, Owner, Recipe, Settings, Step};
use crate::refusal::refusal;
use crate::text::{position, shown};

/// The largest Dockerfile that is read.
pub(crate) const MAX_BYTES: usize = 256 * 1024;

pub(crate) const UNSUPPORTED: &str = "dockerfile.unsupported";
pub(crate) const MALFORMED: &str = "dockerfile.malformed";

/// What every step of reading returns.
pub(crate) type Read<T> = Result<T, Box<DockerfileError>>;

/// A Dockerfile's text with the name under which errors show it.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

/// What the instructions before the current one have set.
struct Draft {
    steps: Vec<Step>,
    settings: Settings,
    owner: Option<Owner>,
    escape: char,
}

impl<'a> Reader<'a> {
    /// Checks that the bytes are text of a sane size.
    pub(crate) fn new(file: &'a str, bytes: &'a [u8]) -> Read<Self> {
        let blank = Self { file, text: "" };
        if bytes.len() > MAX_BYTES {
            let why = "is larger than 256 KiB".to_owned();
            return Err(blank.error(MALFORMED, 0, "Dockerfile", why, "shorten it"));
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let valid = &bytes[..error.valid_up_to()];
                let text = std::str::from_utf8(valid).unwrap_or_default();
                let why = "has bytes that are not UTF-8".to_owned();
                let reader = Self { file, text };
                return Err(reader.error(
                    MALFORMED,
                    text.len(),
                    "Dockerfile",
                    why,
                    "save it as UTF-8",
                ));
            }
        };
        // The parser skips a byte order mark and counts from after it; so do we.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let reader = Self { file, text };
        if let Some(offset) = text.find('\0') {
            let why = "has a NUL byte".to_owned();
            return Err(reader.error(MALFORMED, offset, "Dockerfile", why, "remove it"));
        }
        Ok(reader)
    }

    /// Reads the whole file.
    pub(crate) fn recipe(&self) -> Read<Recipe> {
        let parsed = parse_dockerfile::parse(self.text).map_err(|error| self.syntax(&error))?;
        self.check_directives(&parsed)?;
        let mut base = None;
        let escape = &parsed.parser_directives.escape;
        let mut draft = Draft {
            steps: Vec::new(),
            settings: Settings::default(),
            owner: None,
            escape: escape
                .as_ref()
                .map_or('\\', |directive| directive.value.value),
        };
        for instruction in &parsed.instructions {
            match instruction {
                Instruction::From(from) if base.is_none() => base = Some(self.base(from)?),
                Instruction::From(from) => {
                    let why = "starts a second stage, and only one is supported".to_owned();
                    let next = "build the other stage first and COPY its result";
                    return Err(self.error(UNSUPPORTED, from.from.span.start, "FROM", why, next));
                }
                other => self.instruction(other, &mut draft)?,
            }
        }
        let Some((base, from)) = base else {
            return Err(self.no_from());
        };
        let Draft {
            steps, settings, ..
        } = draft;
        Ok(Recipe {
            base,
            steps,
            settings,
            from,
        })
    }

    fn instruction(&self, instruction: &Instruction<'_>, draft: &mut Draft) -> Read<()> {
        let settings = &mut draft.settings;
        match instruction {
            Instruction::Copy(copy) => draft.steps.push(Step::Copy(self.copy(copy)?)),
            Instruction::Label(label) => {
                for (key, value) in self.pairs("LABEL", &label.arguments, draft.escape)? {
                    settings.labels.insert(key, value);
                }
            }
            Instruction::Env(env) => {
                for (key, value) in self.pairs("ENV", &env.arguments, draft.escape)? {
                    self.check_variable(&env.arguments, &key)?;
                    settings.set_env(key, value);
                }
            }
            Instruction::User(user) => {
                let text = self.literal("USER", &user.arguments)?;
                let owner = ids::user(text).map_err(|error| {
                    let (start, why) = (user.arguments.span.start, error.to_string());
                    let next = "write USER UID or USER UID:GID with numbers";
                    self.error(UNSUPPORTED, start, "USER", why, next)
                })?;
                draft.owner = Some(owner);
                settings.user = Some(text.to_owned());
            }
            Instruction::Workdir(workdir) => {
                let path = self.workdir(&workdir.arguments)?;
                settings.workdir = Some(format!("/{path}"));
                draft.steps.push(Step::Workdir {
                    path,
                    owner: draft.owner,
                    at: self.location(workdir.workdir.span.start),
                });
            }
            Instruction::Stopsignal(stop) => {
                let text = self.literal("STOPSIGNAL", &stop.arguments)?;
                if !ids::is_signal(text) {
                    let why = format!("`{}` is not a signal", shown(text));
                    let next = "write a name such as SIGTERM or a number from 1 to 64";
                    return Err(self.error(
                        MALFORMED,
                        stop.arguments.span.start,
                        "STOPSIGNAL",
                        why,
                        next,
                    ));
                }
                settings.stop_signal = Some(text.to_owned());
            }
            Instruction::Entrypoint(entrypoint) => {
                let words =
                    self.exec("ENTRYPOINT", &entrypoint.entrypoint, &entrypoint.arguments)?;
                settings.entrypoint = Some(words);
            }
            Instruction::Cmd(cmd) => {
                settings.cmd = Some(self.exec("CMD", &cmd.cmd, &cmd.arguments)?);
            }
            other => return Err(self.refused(other)),
        }
        Ok(())
    }

    /// `# syntax=` names a program that gives the file its meaning. Only the
    /// stock one has the meaning that this reader implements; nothing is fetched.
    fn check_directives(&self, parsed: &Dockerfile<'_>) -> Read<()> {
        let Some(syntax) = &parsed.parser_directives.syntax else {
            return Ok(());
        };
        let version = syntax.value.value.strip_prefix("docker/dockerfile:1");
        let stock = version.is_some_and(|rest| {
            (rest.is_empty() || rest.starts_with('.'))
                && rest.chars().all(|c| c == '.' || c.is_ascii_digit())
        });
        if stock {
            return Ok(());
        }
        let why = format!("`{}` is another language", shown(syntax.value.value));
        let next = "remove the line or write # syntax=docker/dockerfile:1";
        Err(self.error(UNSUPPORTED, syntax.span().start, "# syntax", why, next))
    }

    fn base(&self, from: &FromInstruction<'_>) -> Read<(Base, Location)> {
        if let Some(flag) = from.options.first() {
            let why = format!("--{} is not supported", shown(&flag.name.value));
            let next = "remove it; the image is built for the machine that builds it";
            return Err(self.error(UNSUPPORTED, flag.span().start, "FROM", why, next));
        }
        let name = self.literal("FROM", &from.image)?;
        let base = match name {
            "scratch" => Base::Scratch,
            name => Base::Named(name.to_owned()),
        };
        Ok((base, self.location(from.image.span.start)))
    }

    fn workdir(&self, argument: &UnescapedString<'_>) -> Read<String> {
        let text = self.literal("WORKDIR", argument)?;
        let start = argument.span.start;
        if !text.starts_with('/') {
            let why = format!("`{}` is relative", shown(text));
            let next = "write the path from the root: WORKDIR /path";
            return Err(self.error(UNSUPPORTED, start, "WORKDIR", why, next));
        }
        paths::clean(text).map_err(|problem| {
            let why = format!("`{}` {}", shown(text), problem.why());
            self.error(
                problem.code(),
                start,
                "WORKDIR",
                why,
                "write a plain absolute path",
            )
        })
    }

    fn exec(&self, name: &str, keyword: &Keyword, command: &Command<'_>) -> Read<Vec<String>> {
        let next = "use the exec form: [\"/program\", \"argument\"]";
        let words = match command {
            Command::Exec(words) => words,
            // The parser takes a broken array for a shell command, silently.
            Command::Shell(shell) if shell.value.starts_with('[') => {
                let why = "has a broken JSON array".to_owned();
                return Err(self.error(MALFORMED, shell.span.start, name, why, next));
            }
            _ => {
                let why = "is in shell form, and the image has no shell".to_owned();
                return Err(self.error(UNSUPPORTED, keyword.span.start, name, why, next));
            }
        };
        for (index, word) in words.value.iter().enumerate() {
            let why = match &*word.value {
                "" if index == 0 => "has an empty program name",
                value if value.contains('\0') => "has a NUL character",
                _ => continue,
            };
            return Err(self.error(MALFORMED, word.span.start, name, why.to_owned(), next));
        }
        Ok(words
            .value
            .iter()
            .map(|word| word.value.to_string())
            .collect())
    }

    fn pairs(&self, name: &str, text: &UnescapedString<'_>, escape: char) -> Read<Vec<Pair>> {
        pairs::parse(&text.value, escape).map_err(|problem| {
            let offset = inside(text, problem.offset);
            let why = problem.why.to_owned();
            self.error(UNSUPPORTED, offset, name, why, problem.next)
        })
    }

    fn check_variable(&self, text: &UnescapedString<'_>, key: &str) -> Read<()> {
        let plain = |c: char| c == '_' || c.is_ascii_alphanumeric();
        if key.chars().all(plain) && !key.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(());
        }
        let why = format!("`{}` is not a variable name", shown(key));
        let next = "use letters, digits and `_`, not starting with a digit";
        Err(self.error(MALFORMED, text.span.start, "ENV", why, next))
    }

    /// An argument that is taken as it stands. Quotes, escapes and variables
    /// would need a shell's reading of the word, so they are refused.
    pub(crate) fn literal<'b>(
        &self,
        name: &str,
        argument: &'b UnescapedString<'_>,
    ) -> Read<&'b str> {
        let text = &*argument.value;
        let Some(found) = text.find(['$', '\'', '"', '\\', '`']) else {
            return Ok(text);
        };
        let (why, next) = match &text[found..=found] {
            "$" => (
                "uses a variable, and variables are not expanded",
                "write the value itself",
            ),
            _ => (
                "has a quote or an escape character where the word is taken literally",
                "write the word without it",
            ),
        };
        Err(self.error(
            UNSUPPORTED,
            inside(argument, found),
            name,
            why.to_owned(),
            next,
        ))
    }

    fn refused(&self, instruction: &Instruction<'_>) -> Box<DockerfileError> {
        let keyword = match instruction {
            Instruction::Run(it) => &it.run,
            Instruction::Add(it) => &it.add,
            Instruction::Arg(it) => &it.arg,
            Instruction::Volume(it) => &it.volume,
            Instruction::Expose(it) => &it.expose,
            Instruction::Healthcheck(it) => &it.healthcheck,
            Instruction::Onbuild(it) => &it.onbuild,
            Instruction::Shell(it) => &it.shell,
            Instruction::Maintainer(it) => &it.maintainer,
            _ => return self.unknown(0, "Dockerfile"),
        };
        let start = keyword.span.start;
        let word = self.text.get(keyword.span.clone()).unwrap_or_default();
        match refusal(word) {
            Some(it) => self.error(
                UNSUPPORTED,
                start,
                it.instruction,
                it.why.to_owned(),
                it.next,
            ),
            None => self.unknown(start, word),
        }
    }

    fn unknown(&self, offset: usize, word: &str) -> Box<DockerfileError> {
        let why = "is not an instruction that is supported here".to_owned();
        self.error(UNSUPPORTED, offset, &shown(word), why, "remove it")
    }

    /// What the parser refused. If the line starts with an instruction that is
    /// refused anyway, that is the better answer than how to spell it.
    fn syntax(&self, error: &parse_dockerfile::Error) -> Box<DockerfileError> {
        let Some(line) = error.line().checked_sub(1) else {
            return self.no_from();
        };
        let start = self
            .text
            .split_inclusive('\n')
            .take(line)
            .map(str::len)
            .sum();
        let rest = self.text.get(start..).unwrap_or_default();
        let indent = rest.len() - rest.trim_start().len();
        let word = rest.split_whitespace().next().unwrap_or("Dockerfile");
        if let Some(it) = refusal(word) {
            return self.error(
                UNSUPPORTED,
                start + indent,
                it.instruction,
                it.why.to_owned(),
                it.next,
            );
        }
        let offset = start + error.column().saturating_sub(1);
        let why = shown(&format!("{error:#}"));
        let word = shown(&word.to_uppercase());
        self.error(MALFORMED, offset, &word, why, "correct the line")
    }

    fn no_from(&self) -> Box<DockerfileError> {
        let why = match self.text.trim() {
            "" => "is empty",
            _ => "has no FROM instruction",
        };
        self.error(
            MALFORMED,
            0,
            "Dockerfile",
            why.to_owned(),
            "start it with FROM scratch",
        )
    }

    pub(crate) fn location(&self, offset: usize) -> Location {
        let (line, column) = position(self.text, offset);
        Location {
            file: self.file.to_owned(),
            line,
            column,
        }
    }

    pub(crate) fn error(
        &self,
        code: &'static str,
        offset: usize,
        instruction: &str,
        why: String,
        next: &str,
    ) -> Box<DockerfileError> {
        Box::new(DockerfileError {
            code,
            at: self.location(offset),
            instruction: instruction.to_owned(),
            why,
            next: next.to_owned(),
        })
    }
}

/// The file offset of a place in an argument. An argument that spans lines was
/// put together by the parser, so that only its start is known.
fn inside(argument: &UnescapedString<'_>, offset: usize) -> usize {
    match argument.value {
        Cow::Borrowed(_) => argument.span.start + offset,
        Cow::Owned(_) => argument.span.start,
    }
}
