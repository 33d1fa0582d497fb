//! The conversation with an inspector. Everything that it says is taken for hostile: each message
//! comes in its turn and at most as often as it may, and what it has written comes whole, in its
//! order, with the bytes and digests that it said before.

use crate::inspect::report::{self, About, ReportError};
use sha2::{Digest, Sha256};
use tki_evidence::stamp::hex;
use tki_inspector::report::Report;
use tki_inspector::wire::{
    BLOCKED, Done, FILES, Hello, INADEQUATE, InspectorMessage, MALFORMED, MAX_PIECE, PROTOCOL,
    Piece, Progress, Refused, TRIAGE, Written, WrittenFile,
};
use tki_text::printable;

/// The most bytes of what an inspector writes that this tool keeps in memory, whatever /out holds.
pub const MOST_KEPT: u64 = 256 << 20;

/// What is known before the inspector says anything.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// What its report must be about.
    pub about: About<'a>,
    /// The most bytes of all files together.
    pub most: u64,
}

/// What is wrong with what an inspector said.
#[derive(Debug, thiserror::Error)]
pub enum TalkError {
    /// Not a message.
    #[error("{}", printable(&.0.to_string(), 300))]
    Unreadable(#[source] serde_json::Error),
    /// Another version of the conversation.
    #[error("it speaks version {0} of the conversation, and this tool {PROTOCOL}")]
    Protocol(u32),
    /// Another version of the inspector.
    #[error("it is of version {}, and this tool of {}", printable(.0, 40), env!("CARGO_PKG_VERSION"))]
    Version(String),
    /// A message that is not due.
    #[error("`{0}` is not due")]
    Undue(&'static str),
    /// Progress that is none.
    #[error("it has read {items} items of {of}, of a packet of {all}")]
    Progress {
        /// Items read.
        items: u64,
        /// Of so many.
        of: u64,
        /// So many there are.
        all: u64,
    },
    /// Other files than it is to write.
    #[error("it wrote other files than {}", FILES.join(", "))]
    Files,
    /// A digest that has not the form of one.
    #[error("the digest of {} is none", printable(.0, 40))]
    NoDigest(String),
    /// More than /out holds.
    #[error("it wrote {bytes} bytes, and at most {most} are taken")]
    TooMuch {
        /// So much.
        bytes: u64,
        /// What it may.
        most: u64,
    },
    /// A piece of another file than the one whose turn it is, or one that is no piece.
    #[error("a piece of {} is not due, or too long", printable(.0, 40))]
    Piece(String),
    /// A file is not what it said of it.
    #[error("{0} is not the file that it said it had written")]
    Bytes(&'static str),
    /// Something in a file.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The end contradicts what it wrote.
    #[error("it ends with {status}, and {inadequate} claims are not adequate")]
    Done {
        /// The exit status that it says.
        status: i32,
        /// Claims that are not adequate.
        inadequate: u64,
    },
    /// It stops in the middle, or goes on behind the end.
    #[error("it stopped before its end, or went on behind it")]
    End,
    /// It would not go on.
    #[error("it refused: {} ({})", printable(.reason, 1000), printable(.code, 60))]
    Refused {
        /// It is the packet that it refused.
        packet: bool,
        /// Its code.
        code: String,
        /// What is wrong, and where.
        reason: String,
    },
}

/// What an inspector has written, checked.
#[derive(Debug)]
pub struct Inspection {
    /// The report.
    pub report: Report,
    /// Every file, in the order of [`FILES`].
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// The exit status that it said.
    pub status: i32,
    /// How long its self-check took, in microseconds.
    pub selfcheck_us: u64,
    /// How long reading, judging and writing took it, in microseconds.
    pub judged_us: u64,
}

/// What it is about to say.
#[derive(Debug)]
enum Turn {
    /// Its greeting.
    Hello,
    /// How far it is, or what it has written.
    Work,
    /// What it has written, piece by piece.
    Pieces(Written),
    /// Nothing more.
    Over(Done),
}

/// A conversation.
#[derive(Debug)]
pub struct Conversation<'a> {
    terms: Terms<'a>,
    turn: Turn,
    selfcheck_us: u64,
    /// Items that it has said to have read.
    items: u64,
    /// Messages about progress: one for each item, and one at the beginning.
    told: u64,
    files: Vec<(&'static str, Vec<u8>)>,
}

/// What a line came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The greeting: the launcher's turn.
    Hello,
    /// So many items are read.
    Progress(u64),
    /// Something else, and there is more to come.
    More,
    /// Everything was said.
    Done,
}

impl<'a> Conversation<'a> {
    /// Nothing was said.
    pub fn new(terms: Terms<'a>) -> Self {
        Self {
            terms,
            turn: Turn::Hello,
            selfcheck_us: 0,
            items: 0,
            told: 0,
            files: Vec::new(),
        }
    }

    /// Takes in a line.
    pub fn hear(&mut self, line: &[u8]) -> Result<Heard, TalkError> {
        let message = serde_json::from_slice(line).map_err(TalkError::Unreadable)?;
        match message {
            InspectorMessage::Refused(refused) => Err(self.refused(refused)),
            InspectorMessage::Hello(hello) => self.hello(&hello),
            InspectorMessage::Progress(progress) => self.progress(progress),
            InspectorMessage::Written(written) => self.written(written),
            InspectorMessage::Piece(piece) => self.piece(&piece),
            InspectorMessage::Done(done) => self.done(done),
        }
    }

    fn hello(&mut self, hello: &Hello) -> Result<Heard, TalkError> {
        if !matches!(self.turn, Turn::Hello) {
            return Err(TalkError::Undue("hello"));
        }
        if hello.protocol != PROTOCOL {
            return Err(TalkError::Protocol(hello.protocol));
        }
        if hello.version != env!("CARGO_PKG_VERSION") {
            return Err(TalkError::Version(hello.version.clone()));
        }
        self.selfcheck_us = hello.selfcheck_us;
        self.turn = Turn::Work;
        Ok(Heard::Hello)
    }

    fn progress(&mut self, progress: Progress) -> Result<Heard, TalkError> {
        if !matches!(self.turn, Turn::Work) {
            return Err(TalkError::Undue("progress"));
        }
        let all = self.terms.about.packet.items.len() as u64;
        let Progress { items, of } = progress;
        self.told += 1;
        if of != all || items > of || items < self.items || self.told > all + 1 {
            return Err(TalkError::Progress { items, of, all });
        }
        self.items = items;
        Ok(Heard::Progress(items))
    }

    fn written(&mut self, written: Written) -> Result<Heard, TalkError> {
        if !matches!(self.turn, Turn::Work) {
            return Err(TalkError::Undue("written"));
        }
        let names = written.files.iter().map(|file| file.name.as_str());
        if !names.eq(FILES) {
            return Err(TalkError::Files);
        }
        let is_hex = |file: &&WrittenFile| {
            let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            file.sha256.len() == 64 && file.sha256.bytes().all(hex)
        };
        if let Some(file) = written.files.iter().find(|file| !is_hex(file)) {
            return Err(TalkError::NoDigest(file.name.clone()));
        }
        let sizes = written.files.iter().map(|file| file.bytes);
        let bytes = sizes.fold(0, u64::saturating_add);
        let most = self.terms.most.min(MOST_KEPT);
        if bytes > most {
            return Err(TalkError::TooMuch { bytes, most });
        }
        self.turn = Turn::Pieces(written);
        self.begin_files()?;
        Ok(Heard::More)
    }

    /// The file whose pieces come is whole: the next one begins, as does one after a file without
    /// a byte.
    fn begin_files(&mut self) -> Result<(), TalkError> {
        let Turn::Pieces(written) = &self.turn else {
            return Ok(());
        };
        loop {
            if let Some((name, bytes)) = self.files.last() {
                let said = &written.files[self.files.len() - 1];
                if (bytes.len() as u64) < said.bytes {
                    return Ok(());
                }
                if hex(&Sha256::digest(bytes)) != said.sha256 {
                    return Err(TalkError::Bytes(name));
                }
            }
            match FILES.get(self.files.len()) {
                Some(name) => self.files.push((name, Vec::new())),
                None => return Ok(()),
            }
        }
    }

    fn piece(&mut self, piece: &Piece) -> Result<Heard, TalkError> {
        let Turn::Pieces(written) = &self.turn else {
            return Err(TalkError::Undue("piece"));
        };
        let text = piece.text.as_bytes();
        let undue = || TalkError::Piece(piece.name.clone());
        let number = self.files.len().checked_sub(1).ok_or_else(undue)?;
        let (name, bytes) = &mut self.files[number];
        let left = written.files[number].bytes - bytes.len() as u64;
        let fits = !text.is_empty() && text.len() <= MAX_PIECE && text.len() as u64 <= left;
        if piece.name != *name || !fits {
            return Err(undue());
        }
        bytes.extend_from_slice(text);
        self.begin_files()?;
        Ok(Heard::More)
    }

    fn done(&mut self, done: Done) -> Result<Heard, TalkError> {
        let Turn::Pieces(written) = &self.turn else {
            return Err(TalkError::Undue("done"));
        };
        let is_whole = self.files.len() == FILES.len() && {
            let sizes = self.files.iter().map(|(_, bytes)| bytes.len() as u64);
            sizes.eq(written.files.iter().map(|file| file.bytes))
        };
        if !is_whole {
            return Err(TalkError::End);
        }
        let inadequate = written.inadequate;
        let wanted = match inadequate {
            0 => TRIAGE,
            _ => INADEQUATE,
        };
        if done.status != wanted {
            return Err(TalkError::Done {
                status: done.status,
                inadequate,
            });
        }
        let said = (written.claims, inadequate);
        report::check(&self.files, said, self.terms.about)?;
        self.turn = Turn::Over(done);
        Ok(Heard::Done)
    }

    /// It may refuse whenever it has not come to its end, and nothing it said before counts.
    fn refused(&self, refused: Refused) -> TalkError {
        let plain = |byte: u8| byte.is_ascii_lowercase() || b".-".contains(&byte);
        let is_code = !refused.code.is_empty() && refused.code.bytes().all(plain);
        let known = [MALFORMED, BLOCKED].contains(&refused.status);
        if matches!(self.turn, Turn::Over(_)) || !is_code || !known {
            return TalkError::Undue("refused");
        }
        TalkError::Refused {
            packet: refused.status == MALFORMED,
            code: refused.code,
            reason: refused.reason,
        }
    }

    /// Nothing more was said: what it came to.
    pub fn end(self) -> Result<Inspection, TalkError> {
        let Turn::Over(done) = self.turn else {
            return Err(TalkError::End);
        };
        Ok(Inspection {
            report: report::read(&self.files)?,
            files: self.files,
            status: done.status,
            selfcheck_us: self.selfcheck_us,
            judged_us: done.judged_us,
        })
    }
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;
